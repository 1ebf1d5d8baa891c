use testing::walks::{NOW, check_moved};

use super::*;

const ROOT: RootId = RootId { node: 4, port: 1, class: 3 };
const OTHER: RootId = RootId { node: 5, port: 2, class: 3 };
const PERIOD: Duration = Duration::from_ns(120);

/// A port that claims to be a root, with two isolation queues. The second has an order mark that waits for the first.
fn egress() -> Egress {
    let mut egress = Egress::new(PortParams {
        ranks: [0, 1, 0, 0].into(),
        limits: vec![Limits { pause: 10_000, resume: 5_000 }, Limits { pause: 20_000, resume: 10_000 }],
        nominates: true,
        up: true,
        ingresses: Some(4),
        queues: 8,
        packet_time: PERIOD,
    });
    egress.add(Tiers::Hierarchy, ROOT, 1, false);
    egress.add(Tiers::Hierarchy, OTHER, 2, false);
    let upstream = Upstream { held: ports(&[1]), children: ports(&[1, 2]), merged: ports(&[2]) };
    egress.table[0].upstream = upstream.clone();
    egress.outputs.push(Output {
        class: 3,
        bytes: 7_000,
        by_rank: vec![4_000, 3_000],
        claim: Some(Claim { upstream, is_false: false }),
        floor_bytes: Some(6_000),
    });
    (egress.has_marks, egress.since_output, egress.next_hand_on) = (true, 1, NOW + PERIOD);
    egress.turn.push_back(0);
    let one = &mut egress.queues[0];
    (one.bytes, one.by_ingress, one.open, one.in_turn) = (3_000, vec![3_000, 0, 0, 0], true, true);
    one.by_rank = vec![3_000, 0];
    (one.pushed, one.popped) = (12, 10);
    let other = &mut egress.queues[1];
    (other.pushed, other.popped) = (23, 20);
    other.marks.push(Mark { after: 21, other: 0, until: 12 });
    egress
}

fn ports(of: &[u32]) -> super::super::upstream::PortSet {
    let mut ports = super::super::upstream::PortSet::default();
    of.iter().for_each(|&port| ports.insert(PortId(port)));
    ports
}

fn visit_all(egress: &mut Egress, walk: &mut Walk) {
    node::State::visit(egress, walk, &());
}

/// In each period a packet comes to each queue and one leaves, and marks are set anew.
#[test]
fn its_walk_moves_marks() {
    let pass = |egress: &mut Egress, _| {
        for queue in &mut egress.queues {
            (queue.pushed, queue.popped) = (queue.pushed + 1, queue.popped + 1);
            for mark in &mut queue.marks {
                (mark.after, mark.until) = (mark.after + 1, mark.until + 1);
            }
        }
        egress.next_hand_on += PERIOD;
    };
    let see = |egress: &Egress| {
        let queues = egress.queues.iter().map(|queue| (queue.pushed, queue.popped));
        let mark = egress.queues[1].marks[0];
        (queues.collect::<Vec<_>>(), mark.after, mark.until, egress.next_hand_on)
    };
    check_moved(&[], PERIOD, egress, visit_all, pass, see);
}

/// A queue's limits are those of the longest link among those that its packets came by and those that it holds.
#[test]
fn limits_go_by_the_longest_link_that_feeds_a_queue() {
    let mut egress = egress();
    let [short, long] = [(10_000, 5_000), (20_000, 10_000)];
    let output = |egress: &Egress| {
        let limits = egress.output_limits(&egress.outputs[0]);
        (limits.pause, limits.resume)
    };
    let queue = |egress: &Egress| {
        let limits = egress.queue_limits(0, ROOT);
        (limits.pause, limits.resume)
    };
    assert_eq!((output(&egress), queue(&egress)), (long, long), "both hold port 1");
    egress.outputs[0].claim = None;
    assert_eq!(output(&egress), long, "3,000 bytes came by it");
    egress.outputs[0].by_rank = vec![7_000, 0];
    assert_eq!(output(&egress), short);
    egress.table[0].upstream.held = ports(&[2]);
    assert_eq!(queue(&egress), short);
    egress.queues[0].by_rank = vec![2_000, 1_000];
    assert_eq!(queue(&egress), long);
    assert_eq!([0, 1, 2].map(|port| egress.limits_of(PortId(port)).pause), [10_000, 20_000, 10_000]);
}
