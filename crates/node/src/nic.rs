//! The NIC of a host: what it has been told to hold back, what it can take in, and, with several links, its ports.

mod homes;
mod paused_flows;
mod receive_limit;

use std::collections::VecDeque;

use crate::{NicControl, Packet};
use units::{Duration, Time};

pub use homes::{Homes, RING};
pub use paused_flows::PausedFlows;
pub use receive_limit::{ReceiveLimit, Waiting};

/// A port's part of a flow control: what it has been told to hold back, and the packets that it does.
pub struct Nic {
    /// What the flow control decides.
    pub control: Box<dyn NicControl>,
    /// The packets of paused flows.
    pub hold: PausedFlows,
    /// Frames to the switch.
    pub frames: VecDeque<Packet>,
    /// Since when it has held anything back, if it does.
    paused_since: Option<Time>,
    /// How often it has begun to hold something back, and for how long in all, up to when it last let everything go.
    paused: (u64, Duration),
}

impl Nic {
    /// A port that has been told nothing yet.
    pub fn new(control: Box<dyn NicControl>) -> Nic {
        let (hold, frames) = (PausedFlows::default(), VecDeque::new());
        Nic { control, hold, frames, paused_since: None, paused: (0, Duration::ZERO) }
    }

    /// A frame has come from the switch.
    pub fn frame(&mut self, now: Time, frame: &Packet) {
        self.control.frame(now, frame);
        self.note_pause(now);
    }

    /// The link has gone down or come up.
    pub fn reset(&mut self, now: Time) {
        self.control.reset();
        self.frames.clear();
        self.note_pause(now);
    }

    /// So many bytes that have come in wait until the host takes them.
    pub fn intake(&mut self, bytes: u64) {
        let frame = self.control.intake(bytes);
        self.frames.extend(frame);
    }

    /// Whether the class of a packet may not send now.
    pub fn pauses_class(&self, packet: &Packet) -> bool {
        self.control.paused_classes() >> packet.class & 1 == 1
    }

    /// Whether the flow of a packet may not send now.
    pub fn holds_flow(&self, packet: &Packet) -> bool {
        self.control.held_classes() >> packet.class & 1 == 1
            && !self.control.lets(packet.transport, packet.flow, packet.dst, packet.flow_label())
    }

    /// How often it was told to hold something back, and for how long by `end`.
    pub fn pauses(&self, end: Time) -> (u64, Duration) {
        let (count, time) = self.paused;
        (count, time + self.paused_since.map_or(Duration::ZERO, |since| end.since(since)))
    }

    fn note_pause(&mut self, now: Time) {
        match self.paused_since {
            None if self.control.holds() => {
                self.paused_since = Some(now);
                self.paused.0 += 1;
            }
            Some(since) if !self.control.holds() => {
                self.paused_since = None;
                self.paused.1 += now - since;
            }
            _ => {}
        }
    }
}
