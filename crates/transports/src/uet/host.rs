//! A host of UET: both sides on one NIC.

use std::collections::VecDeque;

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::Header;
use super::params::{CONTROL, DATA, Params};
use super::receiver::Receiver;
use super::sender::Sender;
use super::spraying::Spraying;

#[derive(node::State)]
#[state(unit(u64::from(self.params.site.payload_max())), first(walk.not_by_averages("UET's packets are numbered")))]
pub(super) struct Uet {
    #[state(built("settings"))]
    params: Params,
    #[state(given(&self.params))]
    sender: Sender,
    receiver: Receiver,
    /// Control packets for the NIC.
    control: VecDeque<Packet>,
    /// The entropy value of the next control packet that answers no packet.
    turn: u16,
}

impl Uet {
    pub fn new(params: Params, receiver: Receiver) -> Uet {
        Uet { params, sender: Sender::default(), receiver, control: VecDeque::new(), turn: 0 }
    }

    fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        match packet.header() {
            Header::Data(data) => self.receiver.receive(cx, packet, data, &self.params, &mut self.control),
            Header::Rts(rts) => self.receiver.request(packet, rts, &self.params, &mut self.control),
            Header::Ack(ack) => self.sender.acked(cx, packet, ack, &self.params),
            Header::Nack(nack) => self.sender.nacked(cx, packet, nack, &self.params),
            Header::Pull(pull) => self.sender.pulled(cx, packet, pull.credit, &self.params),
        }
    }

    /// Gives a packet its entropy value, as the flow label that switches hash. An answer takes that of its packet.
    fn spray(&mut self, packet: &mut Packet) {
        if self.params.spraying == Spraying::Switches {
            return;
        }
        let entropy = match packet.header() {
            Header::Data(data) => data.entropy,
            Header::Ack(ack) if !ack.of_request => ack.entropy,
            Header::Nack(nack) => nack.entropy,
            Header::Ack(_) | Header::Pull(_) | Header::Rts(_) => {
                self.turn = (self.turn + 1) % self.params.entropies;
                self.turn
            }
        };
        // 0 is no label.
        packet.set_flow_label(u32::from(entropy) + 1);
    }
}

impl Endpoint for Uet {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(cx, message, &self.params),
            Input::Packet(packet) => self.receive(cx, packet),
            Input::Deadline => self.sender.deadline(cx, &self.params, &mut self.control),
        }
        self.receiver.send_pulls(cx, &self.params, &mut self.control);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let answer = if cx.gate.open(CONTROL) { self.control.pop_front() } else { None };
        let mut packet = match answer {
            Some(answer) => answer,
            None if cx.gate.open(DATA) => self.sender.poll_data(cx, &self.params)?,
            None => return None,
        };
        self.spray(&mut packet);
        Some(packet)
    }

    fn poll_at(&self) -> PollAt {
        PollAt::At(self.sender.next_deadline().min(self.receiver.next_deadline()))
    }

    fn came_again(&mut self, flow: FlowId) {
        self.receiver.came_again(flow);
    }

    fn state(&self, flow: FlowId, say: &mut FlowState) {
        self.sender.state(flow, &self.params, say);
        self.receiver.state(flow, say);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (sender, receiver) = (&self.sender.counts, &self.receiver.counts);
        vec![
            ("retransmissions", sender.retransmissions),
            ("timeouts", sender.timeouts),
            ("inferred_losses", sender.inferred_losses),
            ("requests", sender.requests),
            ("acks", receiver.acks),
            ("nacks", receiver.nacks),
            ("pulls", receiver.pulls),
            ("duplicates", receiver.duplicates),
            ("out_of_order", receiver.out_of_order),
            ("trimmed", receiver.trimmed),
            ("malformed", sender.malformed + receiver.malformed),
        ]
    }
}
