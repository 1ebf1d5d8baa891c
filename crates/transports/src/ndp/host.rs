//! A host of NDP: both sides on one NIC.

use std::collections::VecDeque;
use std::sync::Arc;

use fabric::Routes;
use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::Header;
use super::params::{CONTROL, DATA, Params};
use super::paths::{Order, Paths};
use super::receiver::Receiver;
use super::sender::Sender;

#[derive(node::State)]
#[state(unit(u64::from(self.params.site.payload_max())))]
pub(super) struct Ndp {
    #[state(built("settings"))]
    params: Params,
    sender: Sender,
    #[state(given(&self.params))]
    receiver: Receiver,
    /// `None` if switches choose paths.
    paths: Option<Paths>,
    /// Control packets for the NIC.
    control: VecDeque<Packet>,
}

impl Ndp {
    pub fn new(params: Params, paths: Option<Paths>) -> Ndp {
        Ndp { sender: Sender::default(), receiver: Receiver::default(), paths, control: VecDeque::new(), params }
    }

    fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let paths = self.paths.as_mut();
        match packet.header() {
            Header::Data(data) if data.returned => {
                self.sender.returned(cx.now, packet, data.packet, &self.params, paths);
            }
            Header::Data(data) => self.receiver.receive(cx, packet, data, &self.params, &mut self.control),
            answer => self.sender.hear(cx, packet, answer, &self.params, paths),
        }
    }
}

impl Endpoint for Ndp {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(cx.now, message, &self.params),
            Input::Packet(packet) => self.receive(cx, packet),
            Input::Deadline => self.sender.deadline(cx.now, &self.params, self.paths.as_mut()),
        }
        self.receiver.send_pulls(cx.now, &self.params, &mut self.control);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if cx.gate.open(CONTROL)
            && let Some(mut packet) = self.control.pop_front()
        {
            if let Some(paths) = &mut self.paths {
                paths.route(&mut packet, Order::Control, None, cx.random);
            }
            return Some(packet);
        }
        if cx.gate.open(DATA) { self.sender.poll_data(cx, &self.params, self.paths.as_mut()) } else { None }
    }

    fn poll_at(&self) -> PollAt {
        PollAt::At(self.sender.next_deadline().min(self.receiver.next_pull()))
    }

    fn set_routes(&mut self, _: &mut Cx<'_>, routes: &Arc<Routes>) {
        if let Some(paths) = &mut self.paths {
            paths.set_routes(routes);
        }
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
            ("acks", receiver.acks),
            ("nacks", receiver.nacks),
            ("pulls", receiver.pulls),
            ("pulls_with_answers", receiver.pulls_with_answers),
            ("pulls_removed", receiver.pulls_removed),
            ("duplicates", receiver.duplicates),
            ("returned", sender.returned),
            ("returned_resent", sender.returned_resent),
            ("timeouts", sender.timeouts),
            ("pulls_missed", sender.pulls_missed),
            ("paths_left_out", self.paths.as_ref().map_or(0, |paths| paths.left_out)),
        ]
    }
}
