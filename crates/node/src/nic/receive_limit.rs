use std::collections::VecDeque;

use crate::pool::{Hop, Transit};
use crate::{Packet, Telemetry};
use units::{Bytes, Duration, PerByte, Rate, Time};

/// The intake of a host that takes packets in more slowly than its link delivers them, for example because its PCIe bus
/// is congested (Pyrrha, section 4.4). It sits between NIC and endpoints.
#[derive(crate::Saved)]
pub struct ReceiveLimit {
    per_byte: PerByte,
    bytes_max: u64,
    /// When the host will have taken in all waiting packets.
    busy_until: Time,
    /// Bytes that wait.
    pub bytes: u64,
    waiting: VecDeque<Waiting>,
    /// Packets dropped for lack of room.
    pub lost_packets: u64,
}

/// A waiting packet, and when the host begins to take it in.
#[derive(crate::Saved)]
pub struct Waiting {
    at: Time,
    came: Time,
    /// The packet.
    pub packet: Packet,
    /// Its history in the network.
    pub transit: Transit,
    /// Its telemetry, if it is flagged for it.
    pub telemetry: Option<Telemetry>,
}

impl ReceiveLimit {
    /// A host that takes in `rate`, with a NIC buffer of `buffer`.
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

    /// A packet has arrived. If the host is idle the packet is handed on at once, since the link was no faster. Returns
    /// whether there is room for it.
    pub fn push(&mut self, now: Time, packet: Packet, transit: Transit, telemetry: Option<Telemetry>) -> bool {
        let bytes = u64::from(packet.wire_bytes);
        if self.bytes + bytes > self.bytes_max {
            self.lost_packets += 1;
            return false;
        }
        let at = self.busy_until.max(now);
        self.busy_until = at + self.per_byte.transmit(u32::from(packet.wire_bytes));
        self.bytes += bytes;
        self.waiting.push_back(Waiting { at, came: now, packet, transit, telemetry });
        true
    }

    /// When the next packet is handed on.
    pub fn next_at(&self) -> Time {
        self.waiting.front().map_or(Time::MAX, |first| first.at)
    }

    /// The next packet that is due. Its wait counts as queueing of its last hop.
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
