use node::Walk;
use testing::Wire;
use testing::walks::{NOW, check_moved};
use units::Duration;

use super::super::Config;
use super::super::policy::Policy;
use super::*;

const FLOW: FlowId = FlowId(3);
const PACKET: Duration = Duration::from_ns(120);

fn params() -> Params {
    let config = Config { policy: Policy::FlowFairness, ..Config::default() };
    Params::new(&config, &Wire::default().site(HostId(0), 2))
}

/// A flow that has a token, and had its turn some time ago.
fn sender() -> Sender {
    let params = params();
    let mut sender = Sender::default();
    let (src, dst, bytes) = (HostId(0), HostId(1), 14_600_000);
    let message = Message { flow: FLOW, src, dst, bytes, class: 0, virtual_serialisation: Duration::ZERO };
    sender.start(NOW, &message, &params, &mut VecDeque::new());
    sender.turns.take(params.policy, 0);
    sender.turns.take(params.policy, 0);
    let (_, flow) = sender.flows.get_mut(0).expect("it has begun");
    (0..300).for_each(|packet| assert!(flow.sent.insert(packet)));
    (flow.next_free, flow.last_turn, flow.remaining, flow.sent_packets) = (300, 1, 9_800, 300);
    flow.tokens.push_back(Token { packet: 310, number: 310, class: 1, expires: NOW + PACKET });
    sender
}

fn visit_all(sender: &mut Sender, walk: &mut Walk) {
    walk.unit = u64::from(params().site.payload_max());
    node::State::visit(sender, walk, &params());
}

fn flow(sender: &mut Sender) -> &mut Outgoing {
    sender.flows.get_mut(0).expect("it has begun").1
}

/// In each period it sends a packet and gets a token.
#[test]
fn its_walk_moves_all_of_a_flow() {
    let pass = |sender: &mut Sender, now: Time| {
        sender.turns.take(Policy::FlowFairness, 0);
        sender.timers.set(0, sender.timers.get(0).expect("it is armed") + PACKET);
        sender.counts.tokens_expired += 1;
        let flow = flow(sender);
        flow.sent.insert(flow.sent.first_missing);
        flow.next_free += 1;
        flow.remaining -= 1;
        flow.last_turn += 1;
        flow.sent_packets += 1;
        let token = &mut flow.tokens[0];
        (token.packet, token.number, token.expires) = (token.packet + 1, token.number + 1, now + PACKET * 2);
    };
    let see = |sender: &Sender| {
        let flow = sender.flows.of(FLOW).expect("it has begun");
        let &Token { packet, number, expires, .. } = &flow.tokens[0];
        let sent = (flow.sent.count, flow.sent.first_missing, flow.sent_packets, flow.remaining);
        ((packet, number, expires), sent, flow.last_turn, sender.timers.get(0), sender.counts.tokens_expired)
    };
    check_moved(&[], PACKET, sender, visit_all, pass, see);
}
