use node::Walk;
use testing::walks::{NOW, check_moved};

use super::*;

const FLOW: FlowId = FlowId(3);
const SLOT: Duration = Duration::from_ns(120);
const BYTES: u64 = 1_460;

fn outgoing(granted: u32, grant: Grant) -> Outgoing {
    Outgoing {
        dst: HostId(1),
        bytes: 10_000 * BYTES,
        packets: 10_000,
        phase: if granted == 10_000 { Phase::Granted } else { Phase::Asking },
        attempt: 1,
        granted,
        grants: [grant].into(),
        sent_packets: 300,
        distinct: 300,
        missing: 0,
        silences: 0,
        give_up: NOW + Duration::from_us(10_000),
    }
}

fn of(flow: Outgoing) -> Sender {
    let mut sender = Sender::default();
    let slot = sender.flows.insert(FLOW, flow);
    sender.due.push(Reverse((NOW + SLOT / 2, slot, FLOW)));
    sender
}

/// A message with slots for all of its packets.
fn message() -> Sender {
    of(outgoing(10_000, Grant { first: 0, packets: 10_000, used: 300, at: NOW - SLOT * 300, stride: 1, path: 2 }))
}

/// A message with a slot for the next packet.
fn packet() -> Sender {
    of(outgoing(301, Grant { first: 300, packets: 1, used: 0, at: NOW + SLOT / 2, stride: 1, path: 2 }))
}

fn visit_all(sender: &mut Sender, walk: &mut Walk) {
    (2..5).for_each(|flow| walk.flow(&mut FlowId(flow)));
    walk.unit = BYTES;
    node::State::visit(sender, walk, &());
}

fn flow(sender: &mut Sender) -> &mut Outgoing {
    sender.flows.get_mut(0).expect("it has begun").1
}

/// In each period a packet leaves, and where slots are given one by one, another gets one.
#[test]
fn its_walk_moves_all_of_a_message() {
    let leaves = |sender: &mut Sender| {
        let Some(Reverse((at, slot, flow))) = sender.due.pop() else { panic!("none is due") };
        sender.due.push(Reverse((at + SLOT, slot, flow)));
        let flow = self::flow(sender);
        (flow.sent_packets, flow.distinct) = (flow.sent_packets + 1, flow.distinct + 1);
    };
    let see = |sender: &Sender| {
        let flow = sender.flows.of(FLOW).expect("it has begun");
        let Grant { first, packets, used, at, .. } = flow.grants[0];
        let due = sender.due.peek().map(|Reverse((at, ..))| *at);
        ((flow.granted, flow.sent_packets, flow.distinct), (first, packets, used, at), due)
    };
    let uses = |sender: &mut Sender, _| {
        leaves(sender);
        flow(sender).grants[0].used += 1;
    };
    check_moved(&[], SLOT, message, visit_all, uses, see);
    let gets = |sender: &mut Sender, _| {
        leaves(sender);
        let flow = flow(sender);
        flow.granted += 1;
        let grant = &mut flow.grants[0];
        (grant.first, grant.at) = (grant.first + 1, grant.at + SLOT);
    };
    check_moved(&[], SLOT, packet, visit_all, gets, see);
}
