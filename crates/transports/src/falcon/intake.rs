//! The receive buffer: the upper layer takes packets from it one after the other, at a rate.
//!
//! Its mean occupancy, which half of the newest value makes (Isekai's default for section 10.2), is told to senders in
//! 32 equal levels of its size. A packet is acknowledged when the upper layer has taken it (section 6.1.2), so what is
//! in the buffer counts towards the NIC window.

use std::collections::VecDeque;

use units::{FlowId, Time};

use super::header::LEVELS;
use super::params::Nic;

/// A packet in it.
#[derive(Clone, Copy, Debug, node::State)]
pub(super) struct Taken {
    #[state(flow)]
    pub flow: FlowId,
    #[state(sequence)]
    pub psn: u32,
    pub path: u8,
    pub ack_request: bool,
    /// Of payload.
    pub bytes: u64,
}

#[derive(node::State)]
pub(super) struct Intake {
    #[state(built("settings"))]
    nic: Nic,
    /// Packets in it, and when each has been taken.
    queue: VecDeque<(Time, Taken)>,
    bytes: u64,
    mean_bytes: f64,
}

impl Intake {
    pub fn new(nic: Nic) -> Intake {
        Intake { nic, queue: VecDeque::new(), bytes: 0, mean_bytes: 0.0 }
    }

    fn changes_to(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.mean_bytes = (self.mean_bytes + bytes as f64) / 2.0;
    }

    /// The next packet that the upper layer has taken by now.
    pub fn take(&mut self, now: Time) -> Option<Taken> {
        let (_, taken) = *self.queue.front().filter(|packet| packet.0 <= now)?;
        self.queue.pop_front();
        self.changes_to(self.bytes - taken.bytes);
        Some(taken)
    }

    /// Takes in a packet; false if there is no room for it.
    pub fn admit(&mut self, now: Time, packet: Taken) -> bool {
        if self.bytes + packet.bytes > self.nic.buffer_bytes {
            return false;
        }
        let begins = self.queue.back().map_or(now, |last| last.0.max(now));
        self.queue.push_back((begins + self.nic.rate.transmit(packet.bytes), packet));
        self.changes_to(self.bytes + packet.bytes);
        true
    }

    /// How full it is, in levels.
    pub fn level(&self) -> u8 {
        let level = self.mean_bytes * f64::from(LEVELS) / self.nic.buffer_bytes as f64;
        (level as u8).min(LEVELS - 1)
    }

    /// When the upper layer will have taken the next packet.
    pub fn next_at(&self) -> Option<Time> {
        self.queue.front().map(|packet| packet.0)
    }
}
