//! A host of pHost: both sides on one NIC.

use std::collections::VecDeque;

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::Header;
use super::params::{CONTROL, Params};
use super::receiver::Receiver;
use super::sender::Sender;

#[derive(node::State)]
#[state(unit(u64::from(self.params.site.payload_max())))]
pub(super) struct Phost {
    #[state(built("settings"))]
    params: Params,
    #[state(given(&self.params))]
    sender: Sender,
    #[state(given(&self.params))]
    receiver: Receiver,
    /// Control packets for the NIC.
    control: VecDeque<Packet>,
}

impl Phost {
    pub fn new(params: Params) -> Phost {
        Phost { params, sender: Sender::default(), receiver: Receiver::default(), control: VecDeque::new() }
    }
}

impl Endpoint for Phost {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(cx.now, message, &self.params, &mut self.control),
            Input::Packet(packet) => {
                let (params, control) = (&self.params, &mut self.control);
                match packet.header() {
                    Header::Data(data) => self.receiver.data(cx, packet, data, params, control),
                    Header::Rts(flow) => self.receiver.requested(cx.now, packet, flow, params, control),
                    Header::Token(token) => self.sender.admitted(cx.now, packet, token, params),
                    Header::Ack => self.sender.acknowledged(cx, packet),
                }
            }
            Input::Deadline => self.sender.deadline(cx.now, &self.params, &mut self.control),
        }
        self.receiver.send_tokens(cx.now, &self.params, &mut self.control);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if cx.gate.open(CONTROL)
            && let Some(packet) = self.control.pop_front()
        {
            return Some(packet);
        }
        self.sender.poll_data(cx, &self.params)
    }

    fn poll_at(&self) -> PollAt {
        PollAt::At(self.receiver.next_token().min(self.sender.next_deadline()))
    }

    fn came_again(&mut self, flow: FlowId) {
        self.receiver.came_again(flow);
    }

    fn state(&self, flow: FlowId, say: &mut FlowState) {
        self.sender.state(flow, say);
        self.receiver.state(flow, say);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (sender, receiver) = (&self.sender.counts, &self.receiver.counts);
        vec![
            ("tokens", receiver.tokens),
            ("tokens_again", receiver.tokens_again),
            ("tokens_expired", sender.tokens_expired),
            ("downgrades", receiver.downgrades),
            ("requests_resent", sender.requests_resent),
            ("duplicates", receiver.duplicates),
        ]
    }
}
