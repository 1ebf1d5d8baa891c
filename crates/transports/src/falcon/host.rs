//! A host of Falcon: both sides on one NIC.

use node::{Cx, Endpoint, FlowState, Input, Packet, PollAt};
use units::FlowId;

use super::Header;
use super::params::Params;
use super::receiver::Receiver;
use super::sender::Sender;

#[derive(node::State)]
#[state(unit(u64::from(self.params.site.payload_max())))]
#[state(first(walk.same_of("the part of a nanosecond that has passed", walk.now().ps() % 1_000)))]
pub(super) struct Falcon {
    #[state(built("settings"))]
    params: Params,
    sender: Sender,
    receiver: Receiver,
}

impl Falcon {
    pub fn new(params: Params) -> Falcon {
        let receiver = Receiver::new(&params);
        Falcon { params, sender: Sender::default(), receiver }
    }
}

impl Endpoint for Falcon {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => self.sender.start(cx, message, &self.params),
            Input::Packet(packet) => match packet.header() {
                Header::Data(data) => self.receiver.receive(cx, packet, data, &self.params),
                Header::Ack(ack) => self.sender.acked(cx, packet, &ack, &self.params),
                Header::Nack(nack) => self.sender.nacked(cx, packet, &nack, &self.params),
            },
            Input::Deadline => {
                self.receiver.deadline(cx, &self.params);
                self.sender.deadline(cx, &self.params);
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if cx.gate.open(self.params.ack_class)
            && let Some(answer) = self.receiver.poll_answer(cx.now)
        {
            return Some(answer);
        }
        if cx.gate.open(self.params.class) { self.sender.poll_data(cx, &self.params) } else { None }
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
        let (sent, received) = (&self.sender.counts, &self.receiver.counts);
        vec![
            ("retransmissions", sent.retransmissions),
            ("early_retransmissions", sent.early),
            ("timeouts", sent.timeouts),
            ("probes", sent.probes),
            ("path_changes", sent.path_changes),
            ("acks", received.acks),
            ("nacks", received.nacks),
            ("duplicates", received.duplicates),
            ("out_of_order", received.out_of_order),
            ("trimmed", received.trimmed),
            ("malformed", sent.malformed + received.malformed),
        ]
    }
}
