//! The NIC of a host: paused traffic, the limit of what the host can take in and, for a host with several links, its
//! ports.

mod homes;
mod paused_flows;
mod receive_limit;

use std::collections::VecDeque;

use crate::{NicControl, Packet};
use units::{Duration, Time};

pub use homes::{MultihomedNic, RING};
pub use paused_flows::PausedFlows;
pub use receive_limit::{ReceiveLimit, Waiting};

/// One port of a NIC with a flow control: what is paused, and the packets held for it.
#[derive(node::State)]
#[state(given(()))]
pub struct Nic {
    /// The flow control.
    pub control: Box<dyn NicControl>,
    /// Packets of paused flows.
    pub hold: PausedFlows,
    /// Frames to the switch.
    pub frames: VecDeque<Packet>,
    /// Start of the current pause, if anything is paused.
    #[state(past)]
    paused_since: Option<Time>,
    /// Number of pauses, and their total duration up to the last resume.
    #[state(count)]
    paused: (u64, Duration),
}

impl Nic {
    /// A port at which nothing is paused.
    pub fn new(control: Box<dyn NicControl>) -> Nic {
        let (hold, frames) = (PausedFlows::default(), VecDeque::new());
        Nic { control, hold, frames, paused_since: None, paused: (0, Duration::ZERO) }
    }

    /// Handles a frame from the switch.
    pub fn frame(&mut self, now: Time, frame: &Packet) {
        self.control.frame(now, frame);
        self.note_pause(now);
    }

    /// The link has gone down or come up.
    pub fn reset(&mut self, now: Time, up: bool) {
        self.control.reset(up);
        self.frames.clear();
        self.note_pause(now);
    }

    /// `bytes` have arrived and wait for the host to take them in.
    pub fn intake(&mut self, now: Time, bytes: u64) {
        let frame = self.control.intake(now, bytes);
        self.frames.extend(frame);
    }

    /// A time has come that may be one of its flow control's own.
    pub fn wake(&mut self, now: Time) {
        if self.control.poll_at() <= now {
            let frame = self.control.wake(now);
            self.frames.extend(frame);
            self.note_pause(now);
        }
    }

    /// The next frame to the switch.
    pub fn next_frame(&mut self) -> Option<Packet> {
        self.frames.pop_front().or_else(|| self.control.says())
    }

    /// The class of a packet is paused, and it must not leave: see [`NicControl::counts`].
    pub fn must_hold(&self, packet: &Packet) -> bool {
        self.control.counts() && self.pauses_class(packet)
    }

    /// A packet leaves. Returns the number of the queue that it came from.
    pub fn stamp(&mut self, now: Time, packet: &Packet) -> u16 {
        let queue = self.control.stamp(packet);
        if self.control.counts() {
            self.note_pause(now);
        }
        queue
    }

    /// Whether the class of a packet is paused.
    pub fn pauses_class(&self, packet: &Packet) -> bool {
        self.control.paused_classes() >> packet.class & 1 == 1
    }

    /// Whether the flow of a packet is paused.
    pub fn holds_flow(&self, packet: &Packet) -> bool {
        self.control.held_classes() >> packet.class & 1 == 1
            && !self.control.lets(packet.transport, packet.flow, packet.dst, packet.class, packet.flow_label())
    }

    /// Number of pauses, and their total duration by `end`.
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
