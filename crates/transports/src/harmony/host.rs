//! A host of Harmony: both sides on one NIC.

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::params::Params;
use super::receiver::Receiver;
use super::sender::Sender;
use super::{Control, Header, SIGNALS, URGENT};

#[derive(node::State)]
#[state(unit(u64::from(self.params.site.payload_max())), first(walk.not_by_averages("slots are counted to the byte")))]
pub(super) struct Harmony {
    #[state(built("settings"))]
    params: Params,
    #[state(given(&self.params))]
    sender: Sender,
    #[state(given(&self.params))]
    receiver: Receiver,
    control: Control,
    /// Number of packets whose source is no other host.
    #[state(count)]
    strangers: u64,
}

impl Harmony {
    pub fn new(params: Params) -> Harmony {
        let (sender, receiver) = (Sender::new(&params), Receiver::new(&params));
        Harmony { params, sender, receiver, control: Control::default(), strangers: 0 }
    }

    /// A control packet has left: starts the timer for its answer.
    fn departed(&mut self, cx: &Cx<'_>, packet: &Packet) {
        match packet.header() {
            Header::Request { .. } => self.sender.departed(cx.now, packet, &self.params),
            Header::Rsvp(rsvp) => self.receiver.departed(cx.now, rsvp, &self.params),
            _ => {}
        }
    }
}

impl Endpoint for Harmony {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        let (params, control) = (&self.params, &mut self.control);
        match input {
            Input::Send(message) => self.sender.start(message, params, control),
            Input::Packet(packet) => {
                let site = &params.site;
                if packet.src == site.host || packet.src.0 >= site.hosts {
                    self.strangers += 1;
                    return;
                }
                match packet.header() {
                    header @ (Header::Request { .. }
                    | Header::Data(_)
                    | Header::Complete { .. }
                    | Header::Reject { .. }) => self.receiver.receive(cx, packet, header, params, control),
                    header => self.sender.receive(cx, packet, header, params, control),
                }
            }
            Input::Deadline => {
                self.sender.deadline(cx, params, control);
                self.receiver.deadline(cx.now, params, control);
            }
        }
    }

    /// The next packet by priority: rsvps and completes, data, other control packets.
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let urgent = if cx.gate.open(URGENT) { self.control.urgent.pop_front() } else { None };
        let packet = match urgent {
            Some(packet) => Some(packet),
            None => self.sender.poll_data(cx, &self.params, &mut self.control),
        };
        let packet = match packet {
            None if cx.gate.open(SIGNALS) => self.control.signals.pop_front(),
            packet => packet,
        }?;
        if packet.payload_bytes == 0 {
            self.departed(cx, &packet);
        }
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
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let (sender, receiver) = (&self.sender.counts, &self.receiver.counts);
        vec![
            ("requests", sender.requests),
            ("requests_again", sender.requests_again),
            ("rsvps", receiver.rsvps),
            ("rsvps_additional", receiver.rsvps_additional),
            ("slots_promoted", receiver.promoted),
            ("rsvps_used", sender.rsvps_used),
            ("rsvps_stale", sender.rsvps_stale),
            ("refused", receiver.refused),
            ("refused_by_senders", sender.rsvps_refused),
            ("refusals_heard", sender.refusals_heard),
            ("rejected", sender.rejected),
            ("rejected_by_receivers", receiver.rejected),
            ("rejected_begun", receiver.rejected_begun),
            ("failures_seen", receiver.failures_seen),
            ("failures_repeated", receiver.failures_repeated),
            ("attempts_failed", sender.attempts_failed),
            ("completes_missed", receiver.completes_missed),
            ("duplicates", receiver.duplicates),
            ("malformed", sender.malformed + receiver.malformed + self.strangers),
            ("busy_at_end", u64::from(!self.sender.is_idle() || !self.receiver.is_idle())),
        ]
    }
}
