//! The receive buffer: the upper layer takes packets from it one after the other, at a rate.
//!
//! Its mean occupancy, which half of the newest value makes (Isekai's default for section 10.2), is told to senders in
//! 32 equal levels of its size.

use std::collections::VecDeque;

use units::{FlowId, Time};

use super::header::LEVELS;
use super::params::Nic;

pub(super) struct Intake {
    nic: Nic,
    /// Packets in it: when each has been taken, its bytes, and the message that it completes.
    queue: VecDeque<(Time, u64, Option<FlowId>)>,
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

    /// Lets go what the upper layer has taken by now, and gives the messages that are complete with it.
    pub fn advance(&mut self, now: Time, mut complete: impl FnMut(FlowId)) {
        while let Some(&(at, bytes, completes)) = self.queue.front().filter(|packet| packet.0 <= now) {
            debug_assert!(at <= now);
            self.queue.pop_front();
            self.changes_to(self.bytes - bytes);
            completes.into_iter().for_each(&mut complete);
        }
    }

    /// Takes in a packet; false if there is no room for it.
    pub fn admit(&mut self, now: Time, bytes: u64) -> bool {
        if self.bytes + bytes > self.nic.buffer_bytes {
            return false;
        }
        let begins = self.queue.back().map_or(now, |last| last.0.max(now));
        self.queue.push_back((begins + self.nic.rate.transmit(bytes), bytes, None));
        self.changes_to(self.bytes + bytes);
        true
    }

    /// The last packet that was taken in completes a message.
    pub fn completes(&mut self, flow: FlowId) {
        if let Some(last) = self.queue.back_mut() {
            last.2 = Some(flow);
        }
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
