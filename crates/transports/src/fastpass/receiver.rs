//! The receiver's side: assembles messages and reports completion.

use node::{Event, FlowMap, Packet};
use units::FlowId;

use super::Header;
use super::header::Data;
use super::sender::Outbox;
use crate::bits::Bits;
use crate::finished::Finished;

#[derive(Default, node::State)]
pub(super) struct Receiver {
    flows: FlowMap<Bits>,
    finished: Finished,
    #[state(count)]
    pub duplicates: u64,
}

impl Receiver {
    /// The question what is missing.
    pub fn probed(&mut self, packet: &Packet, attempt: u16, out: &mut Outbox) {
        let id = packet.flow;
        let done = self.finished.knows(id);
        let missing = self.flows.slot(id).and_then(|slot| self.flows.get(slot)).map_or(0, |of| of.1.first_missing);
        let state = Header::State { attempt, missing };
        out.push((id, packet.src, if done { Header::Complete { attempt } } else { state }));
    }

    /// A flow has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    /// A part of a message.
    pub fn receive(&mut self, packet: &Packet, data: Data, out: &mut Outbox, events: &mut Vec<Event>) {
        let (id, attempt) = (packet.flow, data.attempt);
        let done = self.finished.knows(id);
        if done || data.packet >= data.packets {
            self.duplicates += u64::from(done);
            return;
        }
        let slot = self.flows.slot(id).unwrap_or_else(|| self.flows.insert(id, Bits::default()));
        let (_, bits) = self.flows.get_mut(slot).expect("just found");
        self.duplicates += u64::from(!bits.insert(data.packet));
        if bits.count == data.packets {
            self.flows.remove(slot);
            self.finished.add(id);
            out.push((id, packet.src, Header::Complete { attempt }));
            events.push(Event::Delivered { flow: id });
        }
    }
}
