//! The receiver's side: one acknowledgement for each packet.

use node::packet::flags;
use node::{Cx, Event, FlowMap, Packet};
use rustc_hash::FxHashSet;
use units::{FlowId, HostId};

use super::Header;
use super::header::{NONE, kind};
use super::terms::Params;
use crate::bits::Bits;

#[derive(Default)]
pub(super) struct Receiver {
    flows: FlowMap<Incoming>,
    finished: FxHashSet<FlowId>,
    /// Data packets received again.
    pub duplicates: u64,
}

struct Incoming {
    src: HostId,
    packets: u32,
    received: Bits,
}

/// No window reaches this many packets beyond the first missing one.
const AHEAD_MAX: u32 = 1 << 24;

impl Receiver {
    /// Handles a packet from a sender and returns the answer.
    pub fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet, header: &Header, terms: &Params) -> Option<Packet> {
        let trimmed = packet.has(flags::TRIMMED); // its payload is lost as any other
        let known = self.flows.slot(packet.flow);
        let answer = |number, acked| {
            let header = Header { packet: number, acked, ..Header::of(kind::ACK) };
            Some(terms.packet(packet.flow, packet.src, header, 0))
        };
        if self.finished.contains(&packet.flow) {
            self.duplicates += u64::from(header.kind == kind::DATA);
            return answer(NONE, header.packets);
        }
        if header.kind == kind::PROBE {
            let flow = known.and_then(|slot| self.flows.get(slot));
            return answer(NONE, flow.map_or(0, |(_, flow)| flow.received.first_missing));
        }
        if trimmed || header.packet >= header.packets {
            return None;
        }
        let slot = known.unwrap_or_else(|| {
            let flow = Incoming { src: packet.src, packets: header.packets, received: Bits::default() };
            self.flows.insert(packet.flow, flow)
        });
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if flow.src != packet.src || flow.packets != header.packets {
            return None;
        }
        if header.packet - flow.received.first_missing.min(header.packet) > AHEAD_MAX {
            return None;
        }
        self.duplicates += u64::from(!flow.received.insert(header.packet));
        let acked = flow.received.first_missing;
        if acked == flow.packets {
            self.flows.remove(slot);
            self.finished.insert(packet.flow);
            cx.events.push(Event::Delivered { flow: packet.flow });
        }
        answer(header.packet, acked)
    }
}
