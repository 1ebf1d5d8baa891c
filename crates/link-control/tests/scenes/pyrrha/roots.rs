//! One switch: who nominates itself, whom it tells, and what it holds.

use clearway_link_control::pyrrha::Tiers;
use clearway_link_control::pyrrha::frame::RootId;
use node::link::ALL_CLASSES;
use units::{Duration, Time};

use super::net::{HOP_BDP, PACKET};
use super::*;

/// Hosts A and B at switch s, C and D at t.
const PAIR: &[(&str, &str)] = &[("A", "s"), ("B", "s"), ("s", "t"), ("t", "C"), ("t", "D")];

/// Hosts A and B behind two switches.
const CHAIN: &[(&str, &str)] = &[("A", "r"), ("B", "r"), ("r", "s"), ("s", "t"), ("t", "C"), ("t", "D")];

fn pair(config: &Config) -> Net {
    Net::new(PAIR, config)
}

fn is_pause(say: &Frame) -> bool {
    matches!(say, Frame::Pause { .. })
}

fn is_resume(say: &Frame) -> bool {
    matches!(say, Frame::Resume { .. })
}

fn from_to(frames: &[(String, String, Frame)]) -> Vec<(&str, &str)> {
    frames.iter().map(|frame| (&*frame.0, &*frame.1)).collect()
}

#[test]
fn a_port_nominates_itself_above_k_pause_and_tells_each_port_that_feeds_it_once() {
    for k_pause in [1.0, 2.0, 3.5] {
        let mut net = pair(&Config { k_pause, ..no_hosts() });
        // One packet is on its way out; the queue may hold this many.
        let fit = (k_pause * HOP_BDP as f64 / PACKET as f64) as u32;
        net.inject(1, "A", "C", "A", "s", 1 + fit);
        assert_eq!((counter(&net, "s", "pyrrha_nominations"), net.said.len()), (0, 0), "{k_pause}");
        let root = net.root("s", "t");
        let pause = |to: &str| ("s".to_owned(), to.to_owned(), Frame::Pause { root, distance: 1 });
        net.inject(2, "B", "D", "B", "s", 1);
        assert_eq!(counter(&net, "s", "pyrrha_nominations"), 1);
        assert_eq!(said(&net, is_pause), [pause("B")]);
        net.inject(1, "A", "C", "A", "s", 3);
        net.inject(2, "B", "D", "B", "s", 3);
        assert_eq!(said(&net, is_pause), [pause("B"), pause("A")]);
        assert_eq!(counter(&net, "s", "pyrrha_nominations"), 1);
        net.run();
        assert_eq!((said(&net, is_pause).len(), net.delivered.len() as u32), (2, fit + 8));
    }
}

#[test]
fn a_root_resumes_at_k_resume_and_then_is_none() {
    let mut net = pair(&no_hosts());
    net.inject(1, "A", "C", "A", "s", 1 + 28);
    net.run();
    // A packet leaves the queue every 80 ns; 12,500 bytes are reached with the sixteenth, which leaves twelve.
    let root = net.root("s", "t");
    let resumes: Vec<_> = net.said.iter().filter(|frame| is_resume(&frame.say)).collect();
    assert_eq!(resumes.len(), 1);
    assert_eq!((resumes[0].at, resumes[0].say), (Time::from_ps(16 * 80_000), Frame::Resume { root }));
    assert_eq!(net.name(resumes[0].to), "A");
    assert_eq!(counter(&net, "s", "pyrrha_secessions"), 1);
    assert!(net.queues("s", "t").is_empty());
}

#[test]
fn a_root_is_one_until_all_its_children_are_unassigned() {
    let mut net = Net::new(CHAIN, &no_hosts());
    net.inject(1, "A", "C", "s", "t", 1 + 26);
    net.run_for(Duration::from_ns(600)); // s knows by now
    net.inject(1, "A", "C", "r", "s", 4);
    while said(&net, is_resume).is_empty() {
        net.run_for(Duration::from_ns(10));
    }
    // It resumes at once, and is none when s, where four packets wait, has sent the last and said so: the frame goes 5
    // ns, 200 ns and 300 ns, four packets of 80 ns leave, and it goes back behind the last.
    net.run_for(Duration::from_ns(1_300));
    assert_eq!((counter(&net, "t", "pyrrha_secessions"), counter(&net, "t", "pyrrha_roots_left")), (0, 1));
    net.run_for(Duration::from_ns(100));
    assert_eq!((counter(&net, "t", "pyrrha_secessions"), counter(&net, "t", "pyrrha_roots_left")), (1, 0));
    net.run();
    assert_eq!(net.order_of(1).len(), 27 + 4);
}

#[test]
fn what_goes_through_the_root_waits_and_the_rest_passes_at_line_rate() {
    let mut net = pair(&no_hosts());
    let root = net.root("t", "C");
    net.tell("s", "t", Frame::Pause { root, distance: 1 });
    for _ in 0..10 {
        net.inject(1, "A", "C", "A", "s", 1);
        net.inject(2, "B", "D", "B", "s", 1);
    }
    net.run();
    assert_eq!(net.delivered.len(), 10);
    // Ten packets of 80 ns, back to back, and the last link's own.
    let first = net.delivered[0].0;
    assert_eq!(net.delivered[9].0 - first, Duration::from_ns(9 * 80));
    let queues = net.queues("s", "t");
    assert_eq!(queues.len(), 1);
    assert_eq!((queues[0].cause, queues[0].paused), (root.cause(), true));
    assert_eq!(u64::from(queues[0].bytes), 10 * PACKET);
    net.tell("s", "t", Frame::Resume { root });
    net.run();
    assert_eq!((net.order_of(1).len(), net.queues("s", "t").len()), (10, 0));
    assert_eq!(from_to(&said(&net, |say| matches!(say, Frame::Unassigned { .. }))), [("s", "t")]);
}

#[test]
fn an_isolation_queue_pauses_further_upstream_in_its_root_s_name() {
    let mut net = Net::new(CHAIN, &no_hosts());
    let root = net.root("t", "C");
    net.tell("s", "t", Frame::Pause { root, distance: 1 });
    net.inject(1, "A", "C", "r", "s", 25);
    assert!(net.said.is_empty(), "25,000 bytes are two products");
    net.inject(1, "A", "C", "r", "s", 2);
    assert_eq!(said(&net, is_pause), [("s".to_owned(), "r".to_owned(), Frame::Pause { root, distance: 2 })]);
    net.run();
    // It is known at r by now: what comes there for it waits, in its name again.
    net.inject(1, "A", "C", "A", "r", 27);
    net.inject(2, "B", "D", "B", "r", 1);
    assert_eq!(said(&net, is_pause)[1..], [("r".to_owned(), "A".to_owned(), Frame::Pause { root, distance: 3 })]);
    net.run();
    assert_eq!((net.order_of(1).len(), net.order_of(2).len()), (0, 1));
    // The tree dissolves from its leaves: s lets r go on when it holds 12,000 bytes, r lets A.
    net.said.clear();
    net.tell("s", "t", Frame::Resume { root });
    net.run();
    assert_eq!(from_to(&said(&net, is_resume)), [("s", "r"), ("r", "A")]);
    let gone = |say: &Frame| matches!(say, Frame::Unassigned { .. });
    assert_eq!(from_to(&said(&net, gone)), [("r", "s"), ("s", "t")]);
    assert_eq!(net.order_of(1).len(), 27 + 27);
}

#[test]
fn a_pause_that_names_oneself_is_ignored() {
    let mut net = pair(&no_hosts());
    let own = net.root("s", "A");
    net.tell("s", "t", Frame::Pause { root: own, distance: 3 });
    net.inject(1, "A", "C", "A", "s", 5);
    net.inject(2, "C", "A", "t", "s", 5);
    net.run();
    assert_eq!((net.delivered.len(), counter(&net, "s", "pyrrha_ignored_pauses")), (10, 1));
    // Who said so learns that nothing is held for it here, and need not wait for that.
    net.tell("s", "t", Frame::Resume { root: own });
    net.run();
    assert_eq!(from_to(&said(&net, |say| matches!(say, Frame::Unassigned { .. }))), [("s", "t")]);
}

#[test]
fn a_root_whose_link_fails_holds_nobody() {
    let mut net = Net::new(CHAIN, &no_hosts());
    let root = net.root("t", "C");
    net.inject(1, "A", "C", "s", "t", 1 + 40);
    net.run_for(Duration::from_ns(600));
    assert_eq!(from_to(&said(&net, is_pause)), [("t", "s")]);
    net.inject(1, "A", "C", "r", "s", 27);
    net.run_for(Duration::from_ns(600));
    assert_eq!(from_to(&said(&net, is_pause)), [("t", "s"), ("s", "r")]);
    net.said.clear();
    net.set_up("t", "C", false);
    net.run();
    assert_eq!(said(&net, is_resume)[0], ("t".to_owned(), "s".to_owned(), Frame::Resume { root }));
    assert_eq!(from_to(&said(&net, is_resume)), [("t", "s"), ("s", "r")]);
    assert!(net.queues("s", "t").is_empty() && net.queues("r", "s").is_empty());
}

#[test]
fn hosts_that_answer_hold_the_flows_that_go_through_a_root_alone() {
    let mut net = pair(&Config::default());
    net.send(1, "A", "C", 400);
    net.send(2, "B", "C", 400);
    net.send(3, "B", "D", 400);
    net.run();
    // B's two flows come at twice its rate here, since this is no NIC: s is told, and tells, of its own port to t.
    for flow in 1..=3 {
        assert_eq!(net.order_of(flow), (0..400).collect::<Vec<_>>());
    }
    assert!(said(&net, is_pause).iter().any(|frame| frame.1 == "A"));
    assert!(net.queues("s", "t").is_empty() && net.queues("t", "C").is_empty());
}

/// A host that takes packets in too slowly has said so once. A failure elsewhere changes the tables.
#[test]
fn a_change_of_routes_does_not_forget_a_slow_host() {
    for hosts in [false, true] {
        let mut net = Net::new(CHAIN, &Config { hosts, ..no_hosts() });
        let root = RootId { node: net.fabric.switches + 2, port: 0, class: 3 };
        assert_eq!(net.name(net.fabric.host_node(units::HostId(2))), "C");
        net.tell("t", "C", Frame::Pause { root, distance: 1 });
        net.inject(1, "A", "C", "s", "t", 27);
        net.run_for(Duration::from_us(1));
        assert_eq!(from_to(&said(&net, is_pause)), [("t", "s")]);
        net.inject(1, "A", "C", "r", "s", 5);
        net.run_for(Duration::from_us(1));
        net.said.clear();
        net.reroute();
        net.inject(2, "B", "D", "s", "t", 3);
        net.run();
        // C has got nothing, D all. The packets that waited further up have come to t, which holds them, and no others
        // wait.
        let held = |net: &Net| net.queues("t", "C").iter().map(|queue| (queue.paused, queue.bytes)).collect::<Vec<_>>();
        assert_eq!((net.order_of(1).len(), net.order_of(2).len()), (0, 3));
        assert_eq!(held(&net), [(true, 32_000)]);
        // The tree has grown again with the first of them, and goes when C has room.
        assert_eq!(from_to(&said(&net, is_pause)), [("t", "s")]);
        net.tell("t", "C", Frame::Resume { root });
        net.run();
        assert_eq!((net.order_of(1).len(), held(&net).len()), (32, 0));
        for switch in ["r", "s", "t"] {
            assert_eq!(counter(&net, switch, "pyrrha_roots_left"), 0);
        }
    }
}

/// The same while it has resumed and its queue still drains, and while nothing waits.
#[test]
fn a_change_of_routes_leaves_no_root_behind_that_a_host_has_ended() {
    for wait in [0, 20, 3_000] {
        let mut net = Net::new(CHAIN, &no_hosts());
        let root = RootId { node: net.fabric.switches + 2, port: 0, class: 3 };
        net.tell("t", "C", Frame::Pause { root, distance: 1 });
        net.inject(1, "A", "C", "s", "t", 27);
        net.run_for(Duration::from_us(1));
        net.tell("t", "C", Frame::Resume { root });
        net.run_for(Duration::from_ns(wait));
        net.reroute();
        net.run();
        assert_eq!(net.order_of(1).len(), 27);
        assert_eq!(counter(&net, "t", "pyrrha_roots_left") + counter(&net, "s", "pyrrha_roots_left"), 0);
    }
}

#[test]
fn a_root_is_one_of_a_class_and_holds_no_other() {
    let mut net = pair(&no_hosts());
    let urgent = net.root("t", "C");
    let bulk = RootId { class: 4, ..urgent };
    net.tell("s", "t", Frame::Pause { root: bulk, distance: 1 });
    net.inject(1, "A", "C", "A", "s", 10);
    net.inject_in(4, 2, ("B", "C"), "B", "s", 10);
    net.inject_in(5, 3, ("B", "C"), "B", "s", 10);
    net.run();
    assert_eq!([1, 2, 3].map(|flow| net.order_of(flow).len()), [10, 0, 10]);
    net.tell("s", "t", Frame::Resume { root: bulk });
    net.run();
    assert_eq!(net.order_of(2).len(), 10);
    // Each class has an output queue: 24,000 bytes of one beside as many of another make no root, 26,000 make one.
    net.inject_in(4, 2, ("A", "C"), "A", "s", 25);
    net.inject(1, "B", "D", "B", "s", 24);
    assert_eq!(counter(&net, "s", "pyrrha_nominations"), 0);
    net.inject_in(4, 2, ("A", "C"), "A", "s", 2);
    net.inject(1, "B", "D", "B", "s", 1);
    let root = RootId { class: 4, ..net.root("s", "t") };
    assert_eq!(said(&net, is_pause), [("s".to_owned(), "A".to_owned(), Frame::Pause { root, distance: 1 })]);
    net.run();
    assert_eq!(counter(&net, "s", "pyrrha_roots_left"), 0);
}

#[test]
fn a_host_that_is_a_root_is_one_of_all_classes() {
    let mut net = pair(&no_hosts());
    let root = RootId { node: net.fabric.switches + 2, port: 0, class: ALL_CLASSES };
    net.tell("t", "C", Frame::Pause { root, distance: 1 });
    for class in [3, 4] {
        net.inject_in(class, u32::from(class), ("A", "C"), "s", "t", 30);
        net.inject_in(class, 5, ("A", "D"), "s", "t", 3);
    }
    net.run();
    assert_eq!([3, 4, 5].map(|flow| net.order_of(flow).len()), [0, 0, 6]);
    let told = |net: &Net| said(net, is_pause).iter().map(|frame| frame.2).collect::<Vec<_>>();
    let of = |class| Frame::Pause { root: RootId { class, ..root }, distance: 2 };
    assert_eq!(told(&net), [of(3), of(4)]);
    net.tell("t", "C", Frame::Resume { root });
    net.run();
    assert_eq!([3, 4].map(|flow| net.order_of(flow).len()), [30, 30]);
    assert_eq!(counter(&net, "t", "pyrrha_roots_left") + counter(&net, "s", "pyrrha_roots_left"), 0);
}

/// Two classes wait for one root, and some of both for none. Strict priority holds whatever the queue.
#[test]
fn a_more_urgent_class_goes_first_from_whichever_queue() {
    for tiers in [Tiers::Hierarchy, Tiers::Single] {
        let mut net = pair(&Config { tiers, ..no_hosts() });
        let roots = [3, 4].map(|class| RootId { class, ..net.root("t", "C") });
        roots.iter().for_each(|&root| net.tell("s", "t", Frame::Pause { root, distance: 1 }));
        net.inject_in(4, 1, ("A", "C"), "A", "s", 12);
        net.inject_in(3, 2, ("A", "C"), "A", "s", 12);
        net.inject_in(4, 3, ("B", "D"), "B", "s", 12);
        net.inject_in(3, 4, ("B", "D"), "B", "s", 12);
        roots.iter().for_each(|&root| net.tell("s", "t", Frame::Resume { root }));
        net.run();
        let classes: Vec<u8> = net.delivered.iter().map(|packet| packet.1.class).collect();
        // The first packet of class 4 to D was on its way before any of class 3 came.
        assert_eq!(classes.len(), 48);
        assert_eq!(classes.iter().skip_while(|class| **class == 4).take(24).filter(|class| **class == 3).count(), 24);
        for flow in 1..=4 {
            assert!(net.order_of(flow).is_sorted());
        }
    }
}
