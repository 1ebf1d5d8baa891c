//! A host of Fastpass: both sides on one NIC and, at one host, the arbiter.

use std::collections::VecDeque;

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::{FlowId, HostId, Time};

use super::Header;
use super::arbiter::{Allocation, Answer, Arbiter, Request};
use super::header;
use super::params::{CONTROL, DATA, Params};
use super::receiver::Receiver;
use super::sender::{Outbox, Sender};

#[derive(node::State)]
#[state(unit(u64::from(self.params.site.payload_max())))]
#[state(first(walk.refuse_if(self.params.has_own_clocks(), "hosts of Fastpass go by clocks of their own")))]
#[state(first(walk.not_by_averages("Fastpass has a schedule of exact times, which averages do not keep")))]
pub(super) struct Fastpass {
    #[state(built("settings"))]
    params: Params,
    sender: Sender,
    receiver: Receiver,
    arbiter: Option<Box<Arbiter>>,
    /// The arbiter's answers, and when each has been computed.
    answers: VecDeque<(Time, Answer)>,
    /// Control packets for the NIC.
    control: VecDeque<Packet>,
}

impl Fastpass {
    pub fn new(params: Params) -> Fastpass {
        let arbiter = (params.site.host == params.arbiter).then(|| Box::new(Arbiter::new(params.clone())));
        Fastpass {
            sender: Sender::default(),
            receiver: Receiver::default(),
            arbiter,
            answers: VecDeque::new(),
            control: VecDeque::new(),
            params,
        }
    }

    fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet, out: &mut Outbox) {
        let params = &self.params;
        match packet.header() {
            Header::Data(data) => self.receiver.receive(packet, data, out, cx.events),
            Header::Request(request) => self.asked(cx.now, packet.flow, packet.src, request),
            Header::Probe { attempt, .. } => self.receiver.probed(packet, attempt, out),
            answer => self.sender.hear(cx, packet.flow, packet.src, answer, params, out),
        }
    }

    /// A request has come to the arbiter.
    fn asked(&mut self, now: Time, flow: FlowId, src: HostId, request: header::Request) {
        let Some(arbiter) = &mut self.arbiter else { return };
        let header::Request { attempt, first, packets, dst, admitted, lost } = request;
        let request = Request { flow, src, dst, attempt, first, packets, admitted, lost };
        let now = self.params.schedule_time(now);
        if let Some(answer) = arbiter.request(now, request) {
            self.answers.push_back((now + self.params.processing, answer));
        }
    }

    /// Lets the arbiter make the decisions that are due, and sends the answers that have been computed.
    fn arbitrate(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        let Some(arbiter) = &mut self.arbiter else { return };
        let now = self.params.schedule_time(cx.now);
        if arbiter.next_decision() <= now {
            arbiter.decide(now, &mut self.answers);
        }
        while let Some(&(at, answer)) = self.answers.front() {
            if at > now {
                break;
            }
            self.answers.pop_front();
            let (flow, to, header) = said(&answer);
            if to == self.params.site.host {
                self.sender.hear(cx, flow, to, header, &self.params, out);
            } else {
                self.control.push_back(self.params.control(flow, to, header));
            }
        }
    }

    /// Sends packets to other hosts, and passes packets for the arbiter to it if it is here.
    fn dispatch(&mut self, now: Time, out: &mut Outbox) {
        for (flow, to, header) in out.drain(..) {
            match header {
                Header::Request(request) if to == self.params.site.host => self.asked(now, flow, to, request),
                _ => self.control.push_back(self.params.control(flow, to, header)),
            }
        }
    }
}

/// An answer as a packet.
fn said(answer: &Answer) -> (FlowId, HostId, Header) {
    match *answer {
        Answer::Allocation(Allocation { flow, src, attempt, first, packets, at, stride, path, .. }) => {
            (flow, src, Header::Allocation(header::Allocation { attempt, first, packets, stride, at, path }))
        }
        Answer::Reject { flow, src, attempt } => (flow, src, Header::Reject { attempt }),
        Answer::Wait { flow, src, attempt } => (flow, src, Header::Wait { attempt }),
    }
}

impl Endpoint for Fastpass {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        let mut out = Outbox::new();
        match input {
            Input::Send(message) => self.sender.start(cx.now, message, &self.params, &mut out),
            Input::Packet(packet) => self.receive(cx, packet, &mut out),
            Input::Deadline => self.sender.deadline(cx.now, &self.params, &mut out, cx.events),
        }
        self.dispatch(cx.now, &mut out);
        self.arbitrate(cx, &mut out);
        self.dispatch(cx.now, &mut out);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if cx.gate.open(DATA)
            && let Some(packet) = self.sender.poll_data(cx.now, &self.params)
        {
            return Some(packet);
        }
        if cx.gate.open(CONTROL) { self.control.pop_front() } else { None }
    }

    fn poll_at(&self) -> PollAt {
        let decision = self.arbiter.as_ref().map_or(Time::MAX, |arbiter| arbiter.next_decision());
        let arbiter = self.answers.front().map_or(Time::MAX, |answer| answer.0).min(decision);
        let arbiter = if arbiter == Time::MAX { arbiter } else { self.params.true_time(arbiter) };
        PollAt::At(self.sender.next_deadline().min(arbiter))
    }

    fn came_again(&mut self, flow: FlowId) {
        self.receiver.came_again(flow);
    }

    fn state(&self, flow: FlowId, say: &mut FlowState) {
        self.sender.state(flow, say);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let sender = &self.sender.counts;
        let arbiter = self.arbiter.iter().flat_map(|arbiter| {
            let counts = &arbiter.counts;
            [
                ("allocations", counts.allocations),
                ("rejects", counts.rejects),
                ("path_blocked", counts.path_blocked),
                ("requests_doubled", counts.duplicates),
            ]
        });
        [
            ("requests", sender.requests),
            ("requests_again", sender.requests_again),
            ("probes", sender.probes),
            ("slots_missed", sender.slots_missed),
            ("duplicates", self.receiver.duplicates),
        ]
        .into_iter()
        .chain(arbiter)
        .collect()
    }
}
