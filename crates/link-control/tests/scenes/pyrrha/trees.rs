//! Congestion trees: they merge, tangle, move and vanish, and no flow's packets overtake each other.

use clearway_link_control::pyrrha::Tiers;
use clearway_link_control::pyrrha::frame::RootId;
use proptest::prelude::*;
use units::Duration;

use super::net::HOP_BDP;
use super::*;

/// A line of four switches with hosts at both ends.
const LINE: &[(&str, &str)] =
    &[("A", "q"), ("B", "q"), ("p", "q"), ("Z", "p"), ("q", "r"), ("r", "s"), ("s", "t"), ("t", "C"), ("t", "D")];

fn is_merge(say: &Frame) -> bool {
    matches!(say, Frame::Merge { .. })
}

fn pause(root: RootId, distance: u8) -> Frame {
    Frame::Pause { root, distance }
}

/// Figure 5(a): P1 nominates itself and is upstream of P5.
#[test]
fn a_false_root_that_hears_of_a_new_one_downstream_merges_its_tree_into_that() {
    let mut net = Net::new(LINE, &no_hosts());
    let (p1, p5) = (net.root("r", "s"), net.root("t", "C"));
    // P1's tree has q and p: half of what waits goes to C, half to D.
    for at in [("q", "r"), ("p", "q")] {
        for _ in 0..20 {
            net.inject(1, "Z", "C", at.0, at.1, 1);
            net.inject(2, "Z", "D", at.0, at.1, 1);
        }
        net.run_for(Duration::from_ns(510)); // the frame's way upstream
    }
    let paused = |net: &Net| said(net, |say| matches!(say, Frame::Pause { root, .. } if *root == p1)).len();
    assert_eq!(paused(&net), 2, "r tells q, q tells p");
    net.said.clear();
    net.tell("r", "s", pause(p5, 2));
    assert_eq!(counter(&net, "r", "pyrrha_abdications"), 1);
    net.run_for(Duration::from_us(2));
    let merge =
        |from: &str, to: &str, distance| (from.to_owned(), to.to_owned(), Frame::Merge { old: p1, new: p5, distance });
    assert_eq!(said(&net, is_merge), [merge("r", "q", 3), merge("q", "p", 4)]);
    // The packets that q held for P1 go on, in order; at r those to C meet the queue of the true root.
    net.run();
    assert_eq!(net.order_of(2).len(), 40);
    // All three know the true root, and the two that have heard of it by MERGE hold nothing for it.
    for (from, to, paused) in [("p", "q", false), ("q", "r", false), ("r", "s", true)] {
        let queues = net.queues(from, to);
        let states = queues.iter().map(|queue| (queue.cause, queue.paused, queue.bytes > 0)).collect::<Vec<_>>();
        assert_eq!(states, [(p5.cause(), paused, paused)], "{from}");
    }
    net.tell("r", "s", Frame::Resume { root: p5 });
    net.run();
    assert_eq!(net.order_of(1).len(), 40);
    for (from, to) in [("p", "q"), ("q", "r"), ("r", "s")] {
        assert!(net.queues(from, to).is_empty(), "{from}");
        assert_eq!(counter(&net, from, "pyrrha_roots_left"), 0);
    }
}

/// A port that is a root by traffic of its own hears that a root of which it has known merges into another. Packets to
/// the new root wait for it already, so a later PAUSE for it does not explain the port's own queue.
#[test]
fn a_root_that_has_heard_of_another_by_merge_stays_one() {
    let mut net = Net::new(FORK, &no_hosts());
    let (own, p6, p5) = (net.root("q", "r"), net.root("r", "m"), net.root("s", "C"));
    net.tell("q", "r", pause(p6, 1));
    (0..16).for_each(|flow| net.inject(flow, "A", "C", "A", "q", 1));
    net.run();
    let through_n = (0..16).find(|&flow| !net.order_of(flow).is_empty()).expect("a flow that does not pass m");
    net.inject(through_n, "B", "C", "B", "q", 30);
    assert_eq!(said(&net, |say| *say == Frame::Pause { root: own, distance: 1 }).len(), 1);
    net.tell("q", "r", Frame::Merge { old: p6, new: p5, distance: 3 });
    net.tell("q", "r", pause(p5, 3));
    assert_eq!(counter(&net, "q", "pyrrha_abdications"), 0);
    net.tell("q", "r", Frame::Resume { root: p5 });
    net.run();
    assert_eq!(net.delivered.len(), 16 + 30);
    assert_eq!(counter(&net, "q", "pyrrha_roots_left"), 0);
}

/// The switch between forgets the new root by a failure or by new tables while it waits for nothing: those above, which
/// know it from a MERGE alone, are told, in whatever order frames cross.
#[test]
fn a_root_known_by_merge_alone_is_forgotten_with_the_port_that_told_of_it() {
    for fails in [true, false] {
        for wait in [0, 100, 505, 600, 1_100] {
            let mut net = Net::new(LINE, &no_hosts());
            let p5 = net.root("t", "C");
            for at in [("q", "r"), ("p", "q")] {
                net.inject(1, "Z", "D", at.0, at.1, 40);
                net.run_for(Duration::from_ns(510));
            }
            net.tell("r", "s", pause(p5, 2));
            net.run_for(Duration::from_ns(wait));
            match fails {
                true => net.set_up("r", "s", false),
                false => net.reroute(),
            }
            net.run();
            for switch in ["p", "q", "r", "s"] {
                assert_eq!(counter(&net, switch, "pyrrha_roots_left"), 0, "{switch} {fails} {wait}");
            }
            assert!(net.pool_is_empty());
        }
    }
}

#[test]
fn without_merging_a_false_root_remains_one() {
    let mut net = Net::new(LINE, &Config { merging: false, ..no_hosts() });
    net.inject(1, "Z", "C", "q", "r", 40);
    net.tell("r", "s", pause(net.root("t", "C"), 2));
    net.run();
    assert!(said(&net, is_merge).is_empty());
    assert_eq!(counter(&net, "r", "pyrrha_abdications"), 0);
}

/// Three paths' worth of flows between two switches: some meet P6 and P5, some one of them.
const FORK: &[(&str, &str)] =
    &[("A", "q"), ("B", "q"), ("q", "r"), ("r", "m"), ("r", "n"), ("m", "s"), ("n", "s"), ("s", "C"), ("s", "D")];

/// Figure 5(b): a flow through P6 and P5 waits for both, a flow through one for that one alone.
#[test]
fn a_flow_waits_for_all_roots_on_its_path_and_for_no_other() {
    for tiers in [Tiers::Hierarchy, Tiers::Single] {
        for first in ["P6", "P5"] {
            let mut net = Net::new(FORK, &Config { tiers, ..no_hosts() });
            let (p6, p5) = (net.root("r", "m"), net.root("s", "C"));
            let flows: Vec<u32> = (0..16).collect();
            let to = |flow: u32| if flow.is_multiple_of(2) { "C" } else { "D" };
            // A packet that meets neither goes on; it also shows which flows the hash sends through m.
            net.tell("q", "r", pause(p6, 1));
            flows.iter().for_each(|&flow| net.inject(flow, "A", to(flow), "A", "q", 1));
            net.run();
            let through_m: Vec<u32> = flows.iter().copied().filter(|&flow| net.order_of(flow).is_empty()).collect();
            let kinds = [(true, "C"), (true, "D"), (false, "C"), (false, "D")];
            let of = |kind: (bool, &str)| {
                let is = |flow: &u32| (through_m.contains(flow), to(*flow)) == kind;
                flows.iter().copied().find(is).expect("a flow of each kind among sixteen")
            };
            let [both, only_p6, only_p5, none] = kinds.map(of);
            net.tell("q", "r", Frame::Resume { root: p6 });
            net.run();
            net.delivered.clear();
            net.tell("q", "r", pause(p6, 1));
            net.tell("q", "r", pause(p5, 2));
            [both, only_p6, only_p5, none].iter().for_each(|&flow| net.inject(flow, "A", to(flow), "A", "q", 3));
            net.run();
            let came = |net: &Net| [both, only_p6, only_p5, none].map(|flow| net.order_of(flow).len());
            assert_eq!(came(&net), [0, 0, 0, 3]);
            let (root, then, after) = match first {
                "P6" => (p6, p5, [0, 3, 0, 3]),
                _ => (p5, p6, [0, 0, 3, 3]),
            };
            net.tell("q", "r", Frame::Resume { root });
            net.run();
            assert_eq!(came(&net), after, "{tiers:?} {first}");
            net.tell("q", "r", Frame::Resume { root: then });
            net.run();
            assert_eq!(came(&net), [3; 4]);
            assert!(net.queues("q", "r").is_empty());
        }
    }
}

/// Section 3.2: S1 to S5 send to R1, S4 and S5 by P3. When the flows of the others are done and their tree has
/// dissolved, P3 is the root of what S4 and S5 still send.
#[test]
fn the_root_moves_upstream_when_the_flows_beside_have_ended() {
    let cables =
        [("S4", "x"), ("S5", "x"), ("x", "y"), ("S1", "y"), ("S2", "y"), ("S3", "y"), ("y", "R1"), ("y", "R2")];
    for tiers in [Tiers::Hierarchy, Tiers::Single] {
        let mut net = Net::new(&cables, &Config { tiers, ..Config::default() });
        let roots = |net: &Net| {
            let paused = |frame: &net::Said| if let Frame::Pause { root, .. } = frame.say { Some(root) } else { None };
            let mut roots: Vec<_> = net.said.iter().filter_map(paused).collect();
            roots.sort_unstable();
            roots.dedup();
            roots
        };
        for (flow, src) in [(1, "S1"), (2, "S2"), (3, "S3"), (4, "S4"), (5, "S5")] {
            net.send(flow, src, "R1", 300);
        }
        // 1,500 packets take 120 us. While those of S1 to S3 come, all that S4 and S5 have here belongs to P5's tree.
        net.run_for(Duration::from_us(80));
        let (p3, p5) = (net.root("x", "y"), net.root("y", "R1"));
        assert_eq!((roots(&net), counter(&net, "x", "pyrrha_nominations")), (vec![p5], 0));
        net.run_for(Duration::from_us(60));
        assert_eq!(counter(&net, "y", "pyrrha_roots_left") + counter(&net, "x", "pyrrha_roots_left"), 0);
        net.said.clear();
        for (flow, src) in [(6, "S4"), (7, "S5")] {
            net.send(flow, src, "R1", 1_000);
        }
        net.run();
        assert_eq!(roots(&net), [p3]);
        for (flow, packets) in [(1, 300), (2, 300), (3, 300), (4, 300), (5, 300), (6, 1_000), (7, 1_000)] {
            assert_eq!(net.order_of(flow), (0..packets).collect::<Vec<_>>(), "flow {flow} {tiers:?}");
        }
        assert_eq!(counter(&net, "y", "pyrrha_roots_left") + counter(&net, "x", "pyrrha_roots_left"), 0);
    }
}

/// The frames and packets that a switch in the middle may get.
#[derive(Clone, Debug)]
enum Step {
    Pause(usize),
    Resume(usize),
    Merge(usize, usize),
    Send { flow: u32, packets: u32 },
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0usize..6).prop_map(Step::Pause),
        2 => (0usize..6).prop_map(Step::Resume),
        1 => (0usize..6, 0usize..6).prop_map(|(old, new)| Step::Merge(old, new)),
        3 => (0u32..4, 1u32..5).prop_map(|(flow, packets)| Step::Send { flow, packets }),
        2 => (0u64..400).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// However roots appear, vanish and merge, and however few queues there are: all that was sent comes, in order,
    /// when the last root has resumed, and nothing is left behind.
    #[test]
    fn packets_of_a_flow_never_overtake_each_other(
        steps in steps(),
        tiers in prop::sample::select(vec![Tiers::Hierarchy, Tiers::Single]),
        queues in prop::sample::select(vec![1u16, 2, 3, 100]),
    ) {
        let mut net = Net::new(LINE, &Config { tiers, queues, ..no_hosts() });
        let roots = [
            (net.root("r", "s"), 1),
            (net.root("s", "t"), 2),
            (net.root("t", "C"), 3),
            (net.root("t", "D"), 3),
            // Hosts themselves.
            (RootId { node: net.fabric.switches, port: 0, class: 3 }, 4),
            (RootId { node: net.fabric.switches + 2, port: 0, class: 3 }, 4),
        ];
        let mut sent = [0; 4];
        for step in steps {
            match step {
                Step::Pause(of) => net.tell("q", "r", pause(roots[of].0, roots[of].1)),
                Step::Resume(of) => net.tell("q", "r", Frame::Resume { root: roots[of].0 }),
                Step::Merge(old, new) => {
                    let distance = roots[new].1;
                    net.tell("q", "r", Frame::Merge { old: roots[old].0, new: roots[new].0, distance });
                }
                Step::Wait(ns) => net.run_for(Duration::from_ns(ns)),
                Step::Send { flow, packets } => {
                    let to = if flow < 2 { "C" } else { "D" };
                    for _ in 0..packets {
                        net.inject_numbered(flow, sent[flow as usize], "A", to, "A", "q");
                        sent[flow as usize] += 1;
                    }
                }
            }
        }
        net.run();
        roots.iter().for_each(|&(root, _)| net.tell("q", "r", Frame::Resume { root }));
        net.run();
        for flow in 0..4 {
            prop_assert_eq!(net.order_of(flow), (0..sent[flow as usize]).collect::<Vec<u32>>(), "flow {}", flow);
        }
        prop_assert_eq!(net.queues("q", "r").len(), 0);
        prop_assert!(net.pool_is_empty());
    }
}

/// Five switches in a ring, each port a root at first, and each the next one's upstream neighbour. All merge, around
/// the ring, while packets keep coming: queues of roots that have merged never run empty, and pause no neighbour in
/// their roots' names. Packets that wait there count as the port's own, so that it becomes a root again.
#[test]
fn what_waits_in_a_queue_that_merges_counts_as_the_port_s_own() {
    let name = |index: u32| (format!("H{}", index % 5), format!("s{}", index % 5));
    let names: Vec<_> = (0..6).map(name).collect();
    let of = |index: usize| [(&*names[index].0, &*names[index].1), (&*names[index].1, &*names[index + 1].1)];
    let cables: Vec<(&str, &str)> = (0..5).flat_map(of).collect();
    let mut net = Net::new(&cables, &Config::default());
    for flow in 0..5 {
        net.send(flow, &name(flow).0, &name(flow + 2).0, 1_400);
    }
    for _ in 0..400 {
        net.run_for(Duration::from_us(1));
        for (_, at) in &cables[..10] {
            let ports = cables.iter().filter(|cable| cable.0 == *at).map(|cable| cable.1);
            for to in ports {
                // Two products until it pauses, in each of an isolation queue and the output queue, two more after an
                // abdication, and in each what two neighbours send in the round trip before that takes effect.
                let bytes: u32 = net.queues(at, to).iter().map(|queue| queue.bytes).sum();
                assert!(u64::from(bytes) < (3 * 2 + 2 * 2 + 2) * HOP_BDP, "{bytes} at {at}");
            }
        }
    }
    assert!(said(&net, is_merge).len() > 10);
    assert_eq!(net.delivered.len(), 5 * 1_400);
    for index in 0..5 {
        assert_eq!(counter(&net, &name(index).1, "pyrrha_roots_left"), 0);
    }
}
