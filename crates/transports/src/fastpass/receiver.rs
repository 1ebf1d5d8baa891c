//! The receiver's side: assembles messages and reports completion.

use node::{Event, FlowMap, Packet};
use units::Time;

use super::Header;
use super::header::kind;
use super::sender::Outbox;
use super::terms::Params;
use crate::bits::Bits;
use crate::finished::Finished;

#[derive(Default)]
pub(super) struct Receiver {
    flows: FlowMap<Bits>,
    finished: Finished,
    pub duplicates: u64,
}

impl Receiver {
    /// Handles data or a probe.
    pub fn receive(
        &mut self,
        now: Time,
        packet: &Packet,
        header: &Header,
        terms: &Params,
        out: &mut Outbox,
        events: &mut Vec<Event>,
    ) {
        let (id, attempt) = (packet.flow, header.attempt);
        let complete = Header { attempt, ..Header::of(kind::COMPLETE) };
        let done = self.finished.knows(id, now, terms.patience);
        if header.kind == kind::PROBE {
            let missing = self.flows.slot(id).and_then(|slot| self.flows.get(slot)).map_or(0, |of| of.1.first_missing);
            let state = Header { attempt, first: missing, ..Header::of(kind::STATE) };
            out.push((id, packet.src, if done { complete } else { state }));
            return;
        }
        if done || header.first >= header.packets {
            self.duplicates += u64::from(done);
            return;
        }
        let slot = self.flows.slot(id).unwrap_or_else(|| self.flows.insert(id, Bits::default()));
        let (_, bits) = self.flows.get_mut(slot).expect("just found");
        self.duplicates += u64::from(!bits.insert(header.first));
        if bits.count == header.packets {
            self.flows.remove(slot);
            self.finished.add(id, now, terms.patience);
            out.push((id, packet.src, complete));
            events.push(Event::Delivered { flow: id });
        }
    }
}
