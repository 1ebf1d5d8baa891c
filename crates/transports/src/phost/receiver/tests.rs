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
    Params::new(&config, &Wire::default().site(HostId(1), 2))
}

/// A flow of which some packets have come, and more have been asked for.
fn receiver() -> Receiver {
    let params = params();
    let mut receiver = Receiver::default();
    let packet = Packet::new(FLOW, HostId(0), HostId(1), Header::Ack);
    let slot = receiver.begin(NOW, &packet, Announced { tenant: 0, packets: 10_000, free: 10 }, &params);
    receiver.turns.take(params.policy, 0);
    receiver.turns.take(params.policy, 0);
    let (_, flow) = receiver.flows.get_mut(slot).expect("it has begun");
    (0..300).for_each(|packet| assert!(flow.received.insert(packet)));
    (flow.admitted, flow.next, flow.tokens, flow.answered) = (310, 310, 310, 300);
    (flow.last_turn, flow.due_at, flow.heard_at) = (1, NOW + PACKET, NOW);
    (receiver.booked, receiver.next_at, receiver.stalled) = (NOW + params.rtt, Some(NOW + PACKET), false);
    receiver
}

fn visit_all(receiver: &mut Receiver, walk: &mut Walk) {
    walk.unit = u64::from(params().site.payload_max());
    node::State::visit(receiver, walk, &params());
}

fn flow(receiver: &mut Receiver) -> &mut Incoming {
    receiver.flows.get_mut(0).expect("it has begun").1
}

/// In each period a packet comes, and a token is given.
#[test]
fn its_walk_moves_all_of_a_flow() {
    let pass = |receiver: &mut Receiver, now: Time| {
        receiver.turns.take(Policy::FlowFairness, 0);
        receiver.booked += PACKET;
        receiver.next_at = Some(now + PACKET * 2);
        receiver.counts.tokens += 1;
        let flow = flow(receiver);
        flow.received.insert(flow.received.first_missing);
        for place in [&mut flow.admitted, &mut flow.next, &mut flow.tokens, &mut flow.answered] {
            *place += 1;
        }
        flow.last_turn += 1;
        (flow.due_at, flow.heard_at) = (now + PACKET * 2, now + PACKET);
    };
    let see = |receiver: &Receiver| {
        let flow = receiver.flows.of(FLOW).expect("it has begun");
        let places = (flow.received.first_missing, flow.admitted, flow.next, flow.tokens, flow.answered);
        let times = (flow.due_at, flow.heard_at, receiver.booked, receiver.next_at);
        (places, times, flow.last_turn, receiver.counts.tokens)
    };
    check_moved(&[], PACKET, receiver, visit_all, pass, see);
}
