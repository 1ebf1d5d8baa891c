//! A host of Homa: both sides on one NIC, control packets first.

use std::collections::VecDeque;

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::Header;
use super::params::Params;
use super::receiver::Receiver;
use super::sender::Sender;

#[derive(node::State)]
#[state(unit(self.params.bytes(1)))]
#[state(first(walk.refuse_if(self.params.graduated, "Homa's levels follow what is left of a message")))]
pub(super) struct Homa {
    #[state(built("settings"))]
    params: Params,
    #[state(given(&self.params))]
    sender: Sender,
    #[state(given(&self.params))]
    receiver: Receiver,
    /// Control packets for the NIC.
    control: VecDeque<Packet>,
}

impl Homa {
    pub fn new(params: Params) -> Homa {
        Homa { sender: Sender::default(), receiver: Receiver::new(&params), control: VecDeque::new(), params }
    }
}

impl Endpoint for Homa {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        let (params, control) = (&self.params, &mut self.control);
        match input {
            Input::Send(message) => self.sender.start(cx.now, message, params),
            Input::Packet(packet) => match packet.header() {
                Header::Answer { levels, of } => self.sender.receive(cx, packet, levels, of, params, control),
                header => self.receiver.receive(cx, packet, header, params, control),
            },
            Input::Deadline => {
                self.sender.deadline(cx.now, params, control);
                self.receiver.deadline(cx.now, params, control);
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(open) = self.control.iter().position(|packet| cx.gate.open(packet.class)) {
            return self.control.remove(open);
        }
        self.sender.poll_data(cx, self.receiver.levels(), &self.params, &mut self.control)
    }

    fn poll_at(&self) -> PollAt {
        PollAt::At(self.sender.next_deadline().min(self.receiver.next_deadline()))
    }

    fn came_again(&mut self, flow: FlowId) {
        self.receiver.came_again(flow);
    }

    fn state(&self, flow: FlowId, say: &mut FlowState) {
        self.sender.state(flow, &self.params, say);
        self.receiver.state(flow, &self.params, say);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (sender, receiver) = (&self.sender.counts, &self.receiver.counts);
        vec![
            ("unscheduled", sender.unscheduled),
            ("scheduled", sender.scheduled),
            ("resent", sender.resent),
            ("known_lost", sender.lost),
            ("grants", receiver.grants),
            ("resends", receiver.resends),
            ("busy", sender.busy),
            ("probes", sender.probes),
            ("duplicates", receiver.duplicates),
        ]
    }
}
