use testing::walks::{NOW, check_moved, check_told_apart};

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

fn walk(sender: &mut Sender, walk: &mut Walk) {
    (2..5).for_each(|flow| walk.flow(&mut FlowId(flow)));
    sender.walk(walk, BYTES);
}

fn flow(sender: &mut Sender) -> &mut Outgoing {
    sender.flows.get_mut(0).expect("it has begun").1
}

#[test]
fn its_walk_names_all_of_a_message() {
    for make in [message, packet] {
        check_told_apart(
            &[],
            make,
            walk,
            &[
                ("the receiver", |sender| flow(sender).dst = HostId(2)),
                ("the length", |sender| flow(sender).bytes += 1),
                ("the number of packets", |sender| flow(sender).packets += 1),
                ("what it waits for", |sender| {
                    let flow = flow(sender);
                    flow.phase = if flow.phase == Phase::Asking { Phase::Granted } else { Phase::Asking };
                }),
                ("how often it has asked", |sender| flow(sender).attempt += 1),
                ("how far it has slots", |sender| flow(sender).granted -= 1),
                ("the first packet of the slots", |sender| flow(sender).grants[0].first += 1),
                ("how many slots it has", |sender| flow(sender).grants[0].packets += 1),
                ("how many of them are used", |sender| flow(sender).grants[0].used += 1),
                ("how far apart they are", |sender| flow(sender).grants[0].stride = 2),
                ("its path", |sender| flow(sender).grants[0].path = 3),
                ("how often it had slots", |sender| flow(sender).grants.clear()),
                ("what was never sent", |sender| flow(sender).distinct -= 1),
                ("what is missing", |sender| flow(sender).missing = 400),
                ("how often nobody answered", |sender| flow(sender).silences += 1),
                ("when it is given up", |sender| flow(sender).give_up += SLOT),
                ("when the next packet leaves", |sender| {
                    sender.due = [Reverse((NOW + SLOT, 0, FLOW))].into();
                }),
                ("whose packet that is", |sender| sender.due = [Reverse((NOW + SLOT / 2, 0, FlowId(4)))].into()),
                ("in which place it is", |sender| sender.due = [Reverse((NOW + SLOT / 2, 1, FLOW))].into()),
                ("that a packet is due", |sender| sender.ready.push_back((0, FLOW))),
                ("its timer", |sender| sender.timers.set(0, NOW + SLOT)),
            ],
            &[
                ("a counter", |sender| sender.counts.probes += 1),
                ("what was missing before", |sender| flow(sender).missing = 200),
            ],
        );
    }
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
    check_moved(&[], SLOT, message, walk, uses, see);
    let gets = |sender: &mut Sender, _| {
        leaves(sender);
        let flow = flow(sender);
        flow.granted += 1;
        let grant = &mut flow.grants[0];
        (grant.first, grant.at) = (grant.first + 1, grant.at + SLOT);
    };
    check_moved(&[], SLOT, packet, walk, gets, see);
}
