//! The departures of the authors' program, beside the paper's protocol.

use clearway_link_control::pyrrha::{Departures, Roots};
use contract::link_control::LinkScheme;
use node::link::Cause;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, SeqDeserializer};
use units::Duration;

use super::net::PACKET_TIME;
use super::*;

/// Three ways up from leaf s, and a line beside it.
const LEAF_SPINE: &[(&str, &str)] = &[
    ("A", "s"),
    ("B", "s"),
    ("s", "x"),
    ("s", "y"),
    ("s", "z"),
    ("x", "t"),
    ("y", "t"),
    ("z", "t"),
    ("t", "C"),
    ("t", "D"),
];

fn is_pause(say: &Frame) -> bool {
    matches!(say, Frame::Pause { .. })
}

fn is_resume(say: &Frame) -> bool {
    matches!(say, Frame::Resume { .. })
}

fn is_merge(say: &Frame) -> bool {
    matches!(say, Frame::Merge { .. })
}

#[test]
fn published_is_what_the_program_does() {
    let published = Departures::published();
    let does =
        [Departure::MergeAtDownPorts, Departure::PauseByIngress, Departure::LimitsByIngress, Departure::HandOnTogether];
    assert!(does.iter().all(|departure| published.has(*departure)));
    // Its rule compares with a sum that it never adds to.
    assert!(!published.has(Departure::UplinksAboveMean));
    let named = |name: &'static str| Departures::deserialize(IntoDeserializer::<ValueError>::into_deserializer(name));
    assert_eq!(named("published"), Ok(published));
    assert!(named("publisht").unwrap_err().to_string().contains("published"));
    let list = ["hand_on_together", "limits_by_ingress", "pause_by_ingress", "merge_at_down_ports"];
    let list: SeqDeserializer<_, ValueError> = SeqDeserializer::new(list.into_iter());
    assert_eq!(Departures::deserialize(list), Ok(published));
}

#[test]
fn a_departure_without_effect_is_advice() {
    let key = |config: Config| {
        assert_eq!(config.check(), Ok(()));
        config.advice()[0].key.clone()
    };
    assert_eq!(key(Config { merging: false, ..departing(&[Departure::MergeAtDownPorts]) }), "departures");
    assert_eq!(key(Config { roots: Roots::Down, ..departing(&[Departure::UplinksAboveMean]) }), "departures");
    assert_eq!(departing(&[Departure::UplinksAboveMean]).advice(), []);
}

#[test]
fn uplinks_that_are_equally_long_make_no_root_and_one_that_is_longer_does() {
    // 60 flows of two packets over three uplinks: each has more than the 25 that make a root.
    let even = |config: &Config| {
        let mut net = Net::new(LEAF_SPINE, config);
        (0..60).for_each(|flow| net.inject(flow, "A", "C", "A", "s", 2));
        let waiting = ["x", "y", "z"].map(|up| net.queues("s", up).iter().map(|queue| queue.bytes).sum::<u32>());
        assert!(waiting.iter().all(|bytes| (26_000..70_000).contains(bytes)), "{waiting:?}");
        counter(&net, "s", "pyrrha_nominations")
    };
    let rule = departing(&[Departure::UplinksAboveMean]);
    assert_eq!((even(&no_hosts()), even(&rule)), (3, 0));
    // One flow alone has more than twice a third of all that waits; below 25 packets it is no root by either rule.
    for (packets, nominations) in [(26, 0), (27, 1)] {
        let mut net = Net::new(LEAF_SPINE, &rule);
        net.inject(1, "A", "C", "A", "s", packets);
        assert_eq!(counter(&net, "s", "pyrrha_nominations"), nominations, "{packets}");
        net.run();
        assert_eq!((net.order_of(1).len(), counter(&net, "s", "pyrrha_roots_left")), (packets as usize, 0));
    }
    // A port that leads down needs no imbalance.
    let mut net = Net::new(LEAF_SPINE, &rule);
    net.inject(1, "A", "C", "x", "t", 27);
    assert_eq!(counter(&net, "t", "pyrrha_nominations"), 1);
}

#[test]
fn roots_that_lead_down_merge_and_those_that_lead_up_stay() {
    // s leads up to x and x down to t; each nominates itself before it hears of t's port to C.
    let abdications = |config: &Config, at: &str, from: &str, next: &str| {
        let mut net = Net::new(&[("A", "s"), ("B", "s"), ("s", "x"), ("x", "t"), ("t", "C"), ("t", "D")], config);
        net.inject(1, "A", "C", from, at, 30);
        assert_eq!(counter(&net, at, "pyrrha_nominations"), 1);
        let root = net.root("t", "C");
        net.tell(at, next, Frame::Pause { root, distance: 1 });
        net.run_for(Duration::from_us(1));
        let merges = said(&net, is_merge).len() as u64;
        net.tell(at, next, Frame::Resume { root });
        net.run();
        assert_eq!((net.order_of(1).len(), counter(&net, at, "pyrrha_roots_left")), (30, 0));
        (counter(&net, at, "pyrrha_abdications"), merges)
    };
    let rule = departing(&[Departure::MergeAtDownPorts]);
    assert_eq!(abdications(&no_hosts(), "s", "A", "x"), (1, 1));
    assert_eq!(abdications(&rule, "s", "A", "x"), (0, 0), "up");
    assert_eq!(abdications(&rule, "x", "s", "t"), (1, 1), "down");
}

#[test]
fn what_one_neighbour_sent_pauses_it_and_not_what_others_did() {
    // A and B each have 20 packets for a root in a queue that 25 make too long.
    let start = |config: &Config| {
        let mut net = Net::new(&[("A", "s"), ("B", "s"), ("s", "t"), ("t", "C"), ("t", "D")], config);
        let root = net.root("t", "C");
        net.tell("s", "t", Frame::Pause { root, distance: 1 });
        net.inject(1, "A", "C", "A", "s", 20);
        net.inject(2, "B", "C", "B", "s", 20);
        (net, root)
    };
    let (net, _) = start(&no_hosts());
    assert_eq!(said(&net, is_pause).len(), 1, "by the queue's length, whoever comes");
    let (mut net, root) = start(&departing(&[Departure::PauseByIngress]));
    net.inject(1, "A", "C", "A", "s", 5);
    assert!(said(&net, is_pause).is_empty(), "25 packets are two products");
    net.inject(1, "A", "C", "A", "s", 1);
    assert_eq!(said(&net, is_pause), [("s".to_owned(), "A".to_owned(), Frame::Pause { root, distance: 2 })]);
    // It goes on when 12 of its own are left.
    net.tell("s", "t", Frame::Resume { root });
    net.run();
    assert_eq!(said(&net, is_resume), [("s".to_owned(), "A".to_owned(), Frame::Resume { root })]);
    assert_eq!((net.delivered.len(), counter(&net, "s", "pyrrha_roots_left")), (46, 0));
    assert!(net.pool_is_empty());
}

#[test]
fn what_one_neighbour_sent_counts_over_all_ports() {
    let mut net = Net::new(LEAF_SPINE, &departing(&[Departure::PauseByIngress]));
    let root = net.root("t", "C");
    ["x", "y", "z"].iter().for_each(|up| net.tell("s", up, Frame::Pause { root, distance: 1 }));
    (0..25).for_each(|flow| net.inject(flow, "A", "C", "A", "s", 1));
    let longest = ["x", "y", "z"].map(|up| net.queues("s", up).iter().map(|queue| queue.bytes).sum::<u32>());
    assert!(longest.iter().all(|bytes| (1..20_000).contains(bytes)), "{longest:?}");
    assert!(said(&net, is_pause).is_empty());
    net.inject(25, "A", "C", "A", "s", 1);
    assert_eq!(said(&net, is_pause), [("s".to_owned(), "A".to_owned(), Frame::Pause { root, distance: 2 })]);
    ["x", "y", "z"].iter().for_each(|up| net.tell("s", up, Frame::Resume { root }));
    net.run();
    assert_eq!(said(&net, is_resume).len(), 1);
    assert_eq!((net.delivered.len(), counter(&net, "s", "pyrrha_roots_left")), (26, 0));
}

#[test]
fn isolation_queues_hand_on_in_turn_or_together() {
    // Twenty packets wait for each of two roots, and twelve of neither in the output queue; then both roots say RESUME.
    let start = |config: &Config| {
        let mut net = Net::new(&[("A", "s"), ("B", "s"), ("s", "t"), ("t", "C"), ("t", "D"), ("t", "E")], config);
        let roots = [net.root("t", "C"), net.root("t", "D")];
        roots.iter().for_each(|&root| net.tell("s", "t", Frame::Pause { root, distance: 1 }));
        net.inject(1, "A", "C", "A", "s", 20);
        net.inject(2, "B", "D", "B", "s", 20);
        net.inject(3, "A", "E", "A", "s", 12);
        roots.iter().for_each(|&root| net.tell("s", "t", Frame::Resume { root }));
        net
    };
    let output = |net: &Net| {
        let queues = net.queues("s", "t");
        queues.iter().filter(|queue| matches!(queue.cause, Cause::Class(_))).map(|queue| queue.bytes).sum::<u32>()
            / 1_000
    };
    for (config, longer) in [(no_hosts(), false), (departing(&[Departure::HandOnTogether]), true)] {
        let mut net = start(&config);
        // The first of the twelve is on its way. While nine more leave, six others join in turn (each third time the
        // output queue sends for itself), or eighteen together.
        let before = output(&net);
        net.run_for(PACKET_TIME * 9);
        let now = output(&net);
        let joined = now + 9 - before;
        if longer {
            assert_eq!(joined, 18);
        } else {
            assert_eq!(joined, 6);
        }
        net.run();
        assert_eq!((net.delivered.len(), counter(&net, "s", "pyrrha_roots_left")), (52, 0));
        for flow in [1, 2, 3] {
            assert!(net.order_of(flow).is_sorted());
        }
        assert!(net.pool_is_empty());
    }
}
