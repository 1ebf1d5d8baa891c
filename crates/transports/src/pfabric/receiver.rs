//! The receiver's side: one acknowledgement for each packet.

use node::packet::flags;
use node::{Cx, Event, FlowMap, Packet};
use units::{FlowId, HostId};

use super::Header;
use super::header::{Ack, Data};
use super::params::Params;
use crate::bits::Bits;
use crate::finished::Finished;

#[derive(Default, node::State)]
pub(super) struct Receiver {
    #[state(slots)]
    flows: FlowMap<Incoming>,
    finished: Finished,
    /// Data packets received again.
    #[state(count)]
    pub duplicates: u64,
}

#[derive(node::State)]
#[state(last(walk.steps(walk.flow, &mut { self.received.first_missing })))]
struct Incoming {
    src: HostId,
    packets: u32,
    received: Bits,
}

/// No window reaches this many packets beyond the first missing one.
const AHEAD_MAX: u32 = 1 << 24;

impl Receiver {
    /// The answer to a probe for a flow of this many packets.
    pub fn probed(&mut self, packet: &Packet, packets: u32, params: &Params) -> Packet {
        let known = self.flows.slot(packet.flow).and_then(|slot| self.flows.get(slot));
        let first_missing = known.map_or(0, |(_, flow)| flow.received.first_missing);
        let acked = if self.finished.knows(packet.flow) { packets } else { first_missing };
        answer(packet, Ack { packet: None, acked }, params)
    }

    /// A part of a message; the answer.
    pub fn data(&mut self, cx: &mut Cx<'_>, packet: &Packet, data: Data, params: &Params) -> Option<Packet> {
        let trimmed = packet.has(flags::TRIMMED); // its payload is lost as any other
        let known = self.flows.slot(packet.flow);
        if self.finished.knows(packet.flow) {
            self.duplicates += 1;
            return Some(answer(packet, Ack { packet: None, acked: data.packets }, params));
        }
        if trimmed || data.packet >= data.packets {
            return None;
        }
        let slot = known.unwrap_or_else(|| {
            let flow = Incoming { src: packet.src, packets: data.packets, received: Bits::default() };
            self.flows.insert(packet.flow, flow)
        });
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if flow.src != packet.src || flow.packets != data.packets {
            return None;
        }
        if data.packet - flow.received.first_missing.min(data.packet) > AHEAD_MAX {
            return None;
        }
        self.duplicates += u64::from(!flow.received.insert(data.packet));
        let acked = flow.received.first_missing;
        if acked == flow.packets {
            self.flows.remove(slot);
            self.finished.add(packet.flow);
            cx.events.push(Event::Delivered { flow: packet.flow });
        }
        Some(answer(packet, Ack { packet: Some(data.packet), acked }, params))
    }

    /// A flow has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }
}

fn answer(packet: &Packet, ack: Ack, params: &Params) -> Packet {
    params.packet(packet.flow, packet.src, Header::Ack(ack), 0)
}
