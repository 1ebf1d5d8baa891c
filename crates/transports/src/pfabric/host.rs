//! A host of pFabric: acknowledgements, then the flow with the least remaining.

use std::collections::VecDeque;

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::Header;
use super::receiver::Receiver;
use super::sender::Sender;
use super::terms::Params;

pub(super) struct Pfabric {
    terms: Params,
    sender: Sender,
    receiver: Receiver,
    acks: VecDeque<Packet>,
}

impl Pfabric {
    pub fn new(terms: Params) -> Pfabric {
        Pfabric { terms, sender: Sender::default(), receiver: Receiver::default(), acks: VecDeque::new() }
    }
}

impl Endpoint for Pfabric {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(message, &self.terms),
            Input::Packet(packet) => {
                let (terms, acks) = (&self.terms, &mut self.acks);
                match packet.header() {
                    Header::Ack(ack) => self.sender.acknowledged(cx, packet, ack, terms),
                    Header::Data(data) => acks.extend(self.receiver.data(cx, packet, data, terms)),
                    Header::Probe { packets, .. } => acks.push_back(self.receiver.probed(packet, packets, terms)),
                }
            }
            Input::Deadline => self.sender.deadline(cx.now, &self.terms),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if !self.terms.open(cx.gate) {
            return None;
        }
        self.acks.pop_front().or_else(|| self.sender.poll(cx.now, &self.terms))
    }

    fn poll_at(&self) -> PollAt {
        self.sender.next_deadline().into()
    }

    fn state(&self, flow: FlowId, say: &mut FlowState) {
        self.sender.state(flow, &self.terms, say);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counts = &self.sender.counts;
        vec![("timeouts", counts.timeouts), ("probes", counts.probes), ("duplicates", self.receiver.duplicates)]
    }
}
