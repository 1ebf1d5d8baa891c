//! A host of pFabric: acknowledgements, then the flow with the least remaining.

use std::collections::VecDeque;

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::Header;
use super::params::Params;
use super::receiver::Receiver;
use super::sender::Sender;

#[derive(node::State)]
#[state(unit(u64::from(self.params.site.payload_max())))]
pub(super) struct Pfabric {
    #[state(built("settings"))]
    params: Params,
    sender: Sender,
    receiver: Receiver,
    acks: VecDeque<Packet>,
}

impl Pfabric {
    pub fn new(params: Params) -> Pfabric {
        Pfabric { params, sender: Sender::default(), receiver: Receiver::default(), acks: VecDeque::new() }
    }
}

impl Endpoint for Pfabric {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(message, &self.params),
            Input::Packet(packet) => {
                let (params, acks) = (&self.params, &mut self.acks);
                match packet.header() {
                    Header::Ack(ack) => self.sender.acknowledged(cx, packet, ack, params),
                    Header::Data(data) => acks.extend(self.receiver.data(cx, packet, data, params)),
                    Header::Probe { packets, .. } => acks.push_back(self.receiver.probed(packet, packets, params)),
                }
            }
            Input::Deadline => self.sender.deadline(cx.now, &self.params),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if !self.params.open(cx.gate) {
            return None;
        }
        self.acks.pop_front().or_else(|| self.sender.poll(cx.now, &self.params))
    }

    fn poll_at(&self) -> PollAt {
        self.sender.next_deadline().into()
    }

    fn came_again(&mut self, flow: FlowId) {
        self.receiver.came_again(flow);
    }

    fn state(&self, flow: FlowId, say: &mut FlowState) {
        self.sender.state(flow, &self.params, say);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counts = &self.sender.counts;
        vec![("timeouts", counts.timeouts), ("probes", counts.probes), ("duplicates", self.receiver.duplicates)]
    }
}
