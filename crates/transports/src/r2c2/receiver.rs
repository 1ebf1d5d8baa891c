//! The receiver's side: the re-order buffer, and the report of missing packets when the sender asks.

use node::packet::flags;
use node::{Cx, Event, FlowMap, Packet};
use units::{FlowId, HostId};

use super::Header;
use super::header::{Data, Missing, WINDOW};
use super::plane::Plane;
use crate::bits::Bits;
use crate::finished::Finished;

#[derive(Default, node::State)]
pub(super) struct Receiver {
    flows: FlowMap<Incoming>,
    finished: Finished,
    #[state(count)]
    pub duplicates: u64,
}

#[derive(node::State)]
struct Incoming {
    src: HostId,
    have: Bits,
    /// Number of packets, once the last one or a probe has arrived.
    packets: Option<u32>,
    /// Most packets that have waited for an earlier one.
    reordered_max: u32,
}

impl Receiver {
    pub fn data(&mut self, cx: &mut Cx<'_>, packet: &Packet, data: Data, plane: &mut Plane) {
        // A switch may have cut the payload off, which counts as a loss.
        let (payload, Data { last, seq, full, .. }) = (u32::from(packet.payload_bytes), data);
        let whole = if last { (1..=full).contains(&payload) } else { payload == full && full > 0 };
        if !whole || packet.has(flags::TRIMMED) {
            return;
        }
        let Some(slot) = self.slot(packet, plane) else { return };
        let Some((_, incoming)) = self.flows.get_mut(slot) else { return };
        if incoming.packets.is_some_and(|packets| seq >= packets) || seq == u32::MAX {
            return; // no flow has such a packet
        }
        if last && incoming.packets.is_none() {
            incoming.packets = Some(seq + 1);
        }
        if !incoming.have.insert(seq) {
            self.duplicates += 1;
            return;
        }
        let waiting = incoming.have.count - incoming.have.first_missing;
        incoming.reordered_max = incoming.reordered_max.max(waiting);
        if incoming.packets == Some(incoming.have.first_missing) {
            let value = u64::from(incoming.reordered_max);
            self.flows.remove(slot);
            self.finished.add(packet.flow);
            cx.events.push(Event::Measured { flow: packet.flow, what: "reordered_max_packets", value });
            cx.events.push(Event::Delivered { flow: packet.flow });
            plane.send(packet.flow, packet.src, Header::Done);
        }
    }

    /// The sender has sent everything before: reports what is missing from a packet on.
    pub fn probe(&mut self, packet: &Packet, packets: u32, from: u32, plane: &mut Plane) {
        let Some(slot) = self.slot(packet, plane) else { return };
        let Some((_, incoming)) = self.flows.get_mut(slot) else { return };
        if incoming.packets.is_none() && packets > 0 {
            incoming.packets = Some(packets);
        }
        let first = if from == 0 { incoming.have.first_missing } else { incoming.have.next_missing(from) };
        let mut missing = [0u64; 2];
        let mut next = first;
        while next < first.saturating_add(WINDOW) && incoming.packets.is_none_or(|packets| next < packets) {
            let place = next - first;
            missing[place as usize / 64] |= 1 << (place % 64);
            next = incoming.have.next_missing(next + 1);
        }
        plane.send(packet.flow, packet.src, Header::Status(Missing { first, packets: missing }));
    }

    /// A flow has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    /// The flow, known or new; `None` if it is complete, which its sender is told again.
    fn slot(&mut self, packet: &Packet, plane: &mut Plane) -> Option<u32> {
        if let Some(slot) = self.flows.slot(packet.flow) {
            return self.flows.get(slot).is_some_and(|(_, known)| known.src == packet.src).then_some(slot);
        }
        if self.finished.knows(packet.flow) {
            self.duplicates += 1;
            plane.send(packet.flow, packet.src, Header::Done);
            return None;
        }
        let incoming = Incoming { src: packet.src, have: Bits::default(), packets: None, reordered_max: 0 };
        Some(self.flows.insert(packet.flow, incoming))
    }
}
