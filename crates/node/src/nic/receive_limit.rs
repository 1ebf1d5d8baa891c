use std::collections::VecDeque;

use crate::pool::{Hop, Transit};
use crate::{Packet, Telemetry};
use units::{Bytes, Duration, PerByte, Rate, Time};

/// What stands between a host's NIC and its endpoints where the host takes packets in more slowly than its link brings them, as
/// when its PCIe bus is congested (Pyrrha, section 4.4).
pub struct ReceiveLimit {
    per_byte: PerByte,
    bytes_max: u64,
    /// When the host will have taken in all that waits.
    busy_until: Time,
    /// Bytes that wait.
    pub bytes: u64,
    waiting: VecDeque<Waiting>,
    /// Packets that found no room.
    pub lost_packets: u64,
}

/// A packet that waits, and when the host begins to take it in.
pub struct Waiting {
    at: Time,
    came: Time,
    /// The packet.
    pub packet: Packet,
    /// What it met on its way.
    pub transit: Transit,
    /// What it gathered, if it is flagged for it.
    pub telemetry: Option<Telemetry>,
}

impl ReceiveLimit {
    /// A host that takes in `rate`, and whose NIC has room for `buffer` beside.
    pub fn new(rate: Rate, buffer: Bytes) -> ReceiveLimit {
        let per_byte = rate.per_byte();
        ReceiveLimit {
            per_byte,
            bytes_max: buffer.get(),
            busy_until: Time::ZERO,
            bytes: 0,
            waiting: VecDeque::new(),
            lost_packets: 0,
        }
    }

    /// A packet has come. One that meets an idle host is handed on at once, since its link was no faster than what is before it.
    pub fn push(&mut self, now: Time, packet: Packet, transit: Transit, telemetry: Option<Telemetry>) {
        let bytes = u64::from(packet.wire_bytes);
        if self.bytes + bytes > self.bytes_max {
            self.lost_packets += 1;
            return;
        }
        let at = self.busy_until.max(now);
        self.busy_until = at + self.per_byte.transmit(u32::from(packet.wire_bytes));
        self.bytes += bytes;
        self.waiting.push_back(Waiting { at, came: now, packet, transit, telemetry });
    }

    /// When the next packet is handed on.
    pub fn next_at(&self) -> Time {
        self.waiting.front().map_or(Time::MAX, |first| first.at)
    }

    /// The next packet whose turn has come. Its waiting counts as that of its last hop.
    pub fn pop(&mut self, now: Time) -> Option<Waiting> {
        if self.next_at() > now {
            return None;
        }
        let mut first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.packet.wire_bytes);
        let waited: Duration = now - first.came;
        first.transit.queued[Hop::Last as usize] += waited;
        Some(first)
    }
}
