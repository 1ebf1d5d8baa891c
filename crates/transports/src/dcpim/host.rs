//! A host of dcPIM: the clock of stages, and both sides on one NIC.

use std::collections::VecDeque;

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::{FlowId, Time};

use super::Header;
use super::header::Announced;
use super::params::{CONTROL, Params};
use super::receiver::Receiver;
use super::sender::Sender;

#[derive(node::State)]
#[state(refuse("dcPIM draws at random whose request is granted and whose grant is accepted, in each phase"))]
pub(super) struct Dcpim {
    #[state(built("settings"))]
    params: Params,
    sender: Sender,
    receiver: Receiver,
    /// Control packets for the NIC.
    control: VecDeque<Packet>,
    /// The last stage entered, counted from the clock's zero, and when the next begins.
    stage: i64,
    next_stage_at: Time,
}

impl Dcpim {
    pub fn new(params: Params) -> Dcpim {
        // Its clock may start anywhere, even before zero.
        let first = params.stage_now(Time::ZERO);
        Dcpim {
            sender: Sender::default(),
            receiver: Receiver::default(),
            control: VecDeque::new(),
            stage: first - 1,
            next_stage_at: params.stage_at(first),
            params,
        }
    }

    fn phase(&self) -> i64 {
        self.stage.div_euclid(self.params.stages)
    }

    /// Enters the stages that have begun before `now`, and one that begins now if `inclusive`. A packet that arrives
    /// exactly when a stage begins still belongs to the previous stage.
    fn enter_stages(&mut self, cx: &mut Cx<'_>, inclusive: bool) {
        if cx.now < self.next_stage_at || (cx.now == self.next_stage_at && !inclusive) {
            return;
        }
        let here = self.params.stage_now(cx.now);
        let exactly = self.params.stage_at(here) == cx.now;
        let latest = if exactly && !inclusive { here - 1 } else { here };
        let (before, slept) = (self.phase(), latest > self.stage + 1);
        self.stage = latest;
        self.next_stage_at = self.params.stage_at(latest + 1);
        if self.phase() > before {
            self.sender.forget_over(cx.now);
            if slept {
                // A host with nothing to match sleeps: its earlier matches have expired.
                self.receiver.forget_links();
            }
        }
        self.enter(cx);
    }

    /// Performs the start of a stage (section 3.3, figure 2): even stages accept for one round and request for the
    /// next, odd stages grant.
    fn enter(&mut self, cx: &mut Cx<'_>) {
        let (params, control) = (&self.params, &mut self.control);
        let (phase, stage) = (self.stage.div_euclid(params.stages), self.stage.rem_euclid(params.stages));
        let round = (stage / 2) as u8;
        if stage % 2 == 1 {
            self.sender.grant(phase, params, cx.random, control);
            return;
        }
        if stage > 0 {
            self.receiver.accept(phase, round, cx, params, control);
        } else {
            if params.stages % 2 == 0 {
                // With an even phase the last accepts fall into the next phase's first stage.
                self.receiver.accept(phase - 1, params.rounds, cx, params, control);
            }
            self.receiver.begin_data(phase - 1, cx.now, params);
        }
        if round < params.rounds {
            self.receiver.request(phase, round + 1, cx, params, control);
        }
    }

    fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let (phase, params, control) = (self.phase(), &self.params, &mut self.control);
        let (sender, receiver) = (&mut self.sender, &mut self.receiver);
        match packet.header() {
            Header::Data(data) => receiver.data(cx, packet, data, params, control),
            Header::Notification { class, flow } => {
                let untokened = if class > 0 { params.untokened(flow.untokened) } else { 0 };
                receiver.notified(cx.now, packet, Announced { untokened, ..flow }, params, control);
            }
            Header::SenderFinish { packets } => receiver.sender_finished(cx, packet, packets, params, control),
            Header::Grant(grant) => receiver.granted(packet, grant, phase, params),
            Header::Token(token) => sender.admitted(packet, token, phase, params),
            Header::Ack => sender.acknowledged(packet),
            Header::ReceiverFinish => sender.receiver_finished(cx, packet),
            Header::Request(request) => sender.requested(packet, request, phase, params),
            Header::Accept(accept) => sender.accepted(cx.now, packet, accept, params, control),
            Header::Trim(trim) => receiver.trimmed(packet.src, trim),
        }
    }
}

impl Endpoint for Dcpim {
    // Every phase of matching draws, so that no state is what an earlier one was.

    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        self.enter_stages(cx, matches!(input, Input::Deadline));
        match input {
            Input::Send(message) => self.sender.start(cx.now, message, &self.params, &mut self.control),
            Input::Packet(packet) => self.receive(cx, packet),
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
        self.sender.poll_data(cx, &self.params, &mut self.control)
    }

    fn poll_at(&self) -> PollAt {
        let matching = self.sender.is_matching() || self.receiver.is_matching();
        let stage = if matching { self.next_stage_at } else { Time::MAX };
        PollAt::At(stage.min(self.receiver.next_token()).min(self.sender.next_deadline()))
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
            ("tokens_unmatched", sender.tokens_unmatched),
            ("requests", receiver.requests),
            ("grants", sender.grants),
            ("grants_stale", self.receiver.grants_stale()),
            ("accepts", receiver.accepts),
            ("notifications_resent", sender.notifications_resent),
            ("finishes_resent", sender.finishes_resent),
            ("duplicates", receiver.duplicates),
        ]
    }
}
