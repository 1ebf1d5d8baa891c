//! A host of pHost: both sides on one NIC.

use std::collections::VecDeque;

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::Header;
use super::receiver::Receiver;
use super::sender::Sender;
use super::terms::{CONTROL, Params};

pub(super) struct Phost {
    terms: Params,
    sender: Sender,
    receiver: Receiver,
    /// Control packets for the NIC.
    control: VecDeque<Packet>,
}

impl Phost {
    pub fn new(terms: Params) -> Phost {
        Phost { terms, sender: Sender::default(), receiver: Receiver::default(), control: VecDeque::new() }
    }
}

impl Endpoint for Phost {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(cx.now, message, &self.terms, &mut self.control),
            Input::Packet(packet) => {
                let (terms, control) = (&self.terms, &mut self.control);
                match packet.header() {
                    Header::Data(data) => self.receiver.data(cx, packet, data, terms, control),
                    Header::Rts(flow) => self.receiver.requested(cx.now, packet, flow, terms, control),
                    Header::Token(token) => self.sender.admitted(cx.now, packet, token, terms),
                    Header::Ack => self.sender.acknowledged(cx, packet),
                }
            }
            Input::Deadline => self.sender.deadline(cx.now, &self.terms, &mut self.control),
        }
        self.receiver.send_tokens(cx.now, &self.terms, &mut self.control);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if cx.gate.open(CONTROL)
            && let Some(packet) = self.control.pop_front()
        {
            return Some(packet);
        }
        self.sender.poll_data(cx, &self.terms)
    }

    fn poll_at(&self) -> PollAt {
        PollAt::At(self.receiver.next_token().min(self.sender.next_deadline()))
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
