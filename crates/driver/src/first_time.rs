//! Data that arrives at its host for the first time: the useful part of the links' utilisation. The authors of dcPIM
//! plot it as utilisation (their program adds a packet's size when its number is new to the receiver), and so do most
//! papers.

use std::sync::Arc;

use catalogue::Transport;
use node::packet::flags;
use node::{FlowMap, Packet};
use run::{FlowTable, Plan};
use rustc_hash::FxHashSet;
use units::FlowId;

/// The payload that the hosts of a part have received.
#[derive(node::State)]
pub(crate) struct FirstTime {
    #[state(built("settings"))]
    transports: Vec<Transport>,
    table: Arc<FlowTable>,
    /// Flows that have arrived in part.
    flows: FlowMap<ByteRanges>,
    /// Flows that have arrived whole.
    #[state(same(self.whole.len()))]
    whole: FxHashSet<FlowId>,
}

/// Which bytes of a message have come: all below `until`, and beyond it the ranges of `later`, in order and apart.
#[derive(Default, node::State)]
struct ByteRanges {
    /// Bytes of the message.
    bytes: u64,
    #[state(sequence(1))]
    until: u64,
    #[state(sequence(1))]
    later: Vec<(u64, u64)>,
}

impl FirstTime {
    /// Nothing has come yet.
    pub fn new(plan: &Plan) -> FirstTime {
        FirstTime {
            transports: plan.transports.clone(),
            table: plan.flows.clone(),
            flows: FlowMap::default(),
            whole: FxHashSet::default(),
        }
    }

    /// Knows what another of the same hosts knows, in which other flows were to come.
    pub fn take_over(&mut self, other: FirstTime) {
        (self.flows, self.whole) = (other.flows, other.whole);
    }

    /// A packet has come to a host. Returns how many of its bytes on the wire are new.
    #[inline]
    pub fn note(&mut self, packet: &Packet) -> u64 {
        if packet.payload_bytes == 0 || packet.has(flags::TRIMMED) {
            return 0;
        }
        let Some(transport) = self.transports.get(usize::from(packet.transport)) else {
            // Packets of attached hosts belong to no known message, so all their bytes count as new.
            return u64::from(packet.wire_bytes);
        };
        let from = transport.payload_offset(packet);
        let slot = match self.flows.slot(packet.flow) {
            Some(slot) => slot,
            None if self.whole.contains(&packet.flow) => return 0,
            None => {
                let bytes = self.table.try_get(packet.flow).map_or(u64::MAX, |flow| flow.bytes);
                self.flows.insert(packet.flow, ByteRanges { bytes, ..ByteRanges::default() })
            }
        };
        let (_, came) = self.flows.get_mut(slot).expect("just found or made");
        let payload = u64::from(packet.payload_bytes);
        let new = came.add(from, from + payload);
        if new == 0 {
            return 0;
        }
        if came.until == came.bytes {
            self.flows.remove(slot);
            self.whole.insert(packet.flow);
        }
        // Bytes that had come before are left out. The rest of the packet counts, headers included.
        u64::from(packet.wire_bytes) - (payload - new)
    }
}

impl ByteRanges {
    /// Adds a range of bytes. Returns how many of them had not arrived before.
    fn add(&mut self, from: u64, to: u64) -> u64 {
        let from = from.max(self.until);
        if from >= to {
            return 0;
        }
        // The ranges that it meets, those that it only touches too: they become one.
        let first = self.later.partition_point(|range| range.1 < from);
        let beyond = first + self.later[first..].partition_point(|range| range.0 <= to);
        let met = &self.later[first..beyond];
        let there: u64 = met.iter().map(|range| range.1.min(to).saturating_sub(range.0.max(from))).sum();
        let begin = met.first().map_or(from, |range| range.0.min(from));
        let end = met.last().map_or(to, |range| range.1.max(to));
        if begin == self.until {
            self.until = end;
            self.later.drain(first..beyond);
        } else {
            self.later.splice(first..beyond, [(begin, end)]);
        }
        to - from - there
    }
}

#[cfg(test)]
mod tests;
