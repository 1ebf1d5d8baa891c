//! Flow controls in two switches that are driven step by step: thresholds by arithmetic, and what holds in any order of
//! events.

mod wire;

use catalogue::LinkControl;
use clearway_link_control::{bfc, cbfc, per_flow_queues};
use node::link::Cause;
use proptest::prelude::*;
use proptest::sample::select;
use units::Bytes;
use wire::TwoSwitches;

/// How many packets a host may send until it is told to pause the flow.
fn until_paused(wire: &mut TwoSwitches, src: u32, dst: u32, flow: u32) -> u32 {
    (0..10_000).take_while(|_| wire.send(src, dst, flow)).count() as u32
}

#[test]
fn bfc_pauses_a_flow_at_its_share_of_the_one_hop_product_and_resumes_it_when_that_packet_has_left() {
    for queues in [bfc::Queues::Physical(32), bfc::Queues::Ideal] {
        let config = bfc::Config { queues, ..bfc::Config::default() };
        let mut wire = TwoSwitches::new(&LinkControl::Bfc(config));
        // To a host and back: 200 ns + 650 ns at 100 Gbps are 10,625 bytes. Seven packets are 10,500.
        assert_eq!(until_paused(&mut wire, 0, 2, 1), 8);
        // A second flow there halves the share, 5,312 bytes: three packets are 4,500.
        assert_eq!(until_paused(&mut wire, 1, 2, 2), 4);
        // In turn: the first flow's eighth packet is the twelfth to leave.
        for sent in 1..=12 {
            assert!(!wire.may_send(0, 2, 1) && wire.may_send(1, 2, 2) == (sent > 8), "{sent}");
            assert!(wire.transmit("left", "right") && wire.transmit("right", "host2"));
        }
        assert!(wire.may_send(0, 2, 1) && wire.may_send(1, 2, 2));
        wire.run_dry();
    }
}

/// BFC with these departures and this number of virtual flow ids.
fn departing(departures: &[bfc::Departure], vfids: u32) -> TwoSwitches {
    let departures = departures.iter().copied().collect();
    TwoSwitches::new(&LinkControl::Bfc(bfc::Config { departures, vfids, ..bfc::Config::default() }))
}

#[test]
fn the_published_bfc_serves_its_lowest_queue_until_that_is_empty() {
    for (departures, of_the_second) in [(vec![], 1), (vec![bfc::Departure::LowestFirst], 0)] {
        let mut wire = departing(&departures, 16_384);
        for _ in 0..3 {
            assert!(wire.send(0, 2, 1) && wire.send(1, 3, 2));
        }
        for _ in 0..3 {
            assert!(wire.transmit("left", "right"));
        }
        // In turn, the second of the first three is the second flow's.
        assert_eq!((0..3).take_while(|_| wire.transmit("right", "host3")).count(), of_the_second);
        wire.run_dry();
    }
}

#[test]
fn the_published_bfc_gives_a_flow_the_first_queue_that_is_empty() {
    for (departures, queues) in [(vec![], [0, 1, 2]), (vec![bfc::Departure::FirstQueue], [0, 0, 0])] {
        let mut wire = departing(&departures, 16_384);
        for (flow, queue) in (1..).zip(queues) {
            assert!(wire.send(0, 2, flow));
            let mut causes = Vec::new();
            wire.queues(&mut |view| causes.extend((view.bytes > 0).then_some(view.cause)));
            assert_eq!(causes, [Cause::Queue(queue)]);
            assert!(wire.transmit("left", "right") && wire.transmit("right", "host2"));
        }
        wire.run_dry();
    }
}

#[test]
fn the_published_bfc_pauses_a_host_s_flows_and_not_their_virtual_ids_and_never_its_answers() {
    for (departures, published) in [(vec![], false), (vec![bfc::Departure::HostsByFlow], true)] {
        let mut wire = departing(&departures, 1);
        assert_eq!(until_paused(&mut wire, 0, 2, 1), 8);
        assert_eq!(wire.may_send(0, 2, 2), published);
        wire.run_dry();
        // As many answers as data pause nothing; by BFC they would.
        for _ in 0..20 {
            wire.send_anyway(0, 2, 3, 0);
        }
        assert_eq!(wire.may_send(0, 2, 3), published);
        wire.run_dry();
        assert!(wire.may_send(0, 2, 3) && !wire.held(0));
    }
}

#[test]
fn per_flow_queues_pause_and_resume_at_their_thresholds() {
    let mut wire = TwoSwitches::new(&LinkControl::PerFlowQueues(per_flow_queues::Config::default()));
    // Two products of 10,625 bytes are passed by 15 packets, whatever other flows do.
    assert_eq!(until_paused(&mut wire, 0, 2, 1), 15);
    assert_eq!(until_paused(&mut wire, 1, 3, 2), 15);
    // Seven packets are within one. Both flows take turns.
    for _ in 0..15 {
        assert!(wire.transmit("left", "right"));
    }
    assert!(!wire.may_send(1, 3, 2));
    assert!(wire.transmit("left", "right") && wire.may_send(0, 2, 1) && wire.may_send(1, 3, 2));
    wire.run_dry();
}

#[test]
fn a_paused_flow_of_a_switch_holds_back_no_other() {
    for name in ["bfc", "per_flow_queues"] {
        let mut wire = TwoSwitches::new(&LinkControl::named(name).unwrap());
        // Host 2 takes nothing: its flow fills right's queue until left may send no more of it.
        while wire.send(0, 2, 1) || wire.transmit("left", "right") {}
        assert!(!wire.may_send(0, 2, 1));
        // Host 3's packets pass.
        for _ in 0..50 {
            assert!(wire.send(0, 3, 2) && wire.transmit("left", "right") && wire.transmit("right", "host3"), "{name}");
        }
        wire.run_dry();
    }
}

#[test]
fn pfc_holds_back_all_that_shares_a_class() {
    let mut wire = TwoSwitches::new(&LinkControl::named("pfc").unwrap());
    while wire.send(0, 2, 1) || wire.transmit("left", "right") {}
    assert!(!wire.may_send(0, 3, 2) && wire.may_send(1, 3, 2));
    assert!(wire.send(1, 3, 2) && !wire.transmit("left", "right"));
    wire.run_dry();
}

/// CBFC with room for this many bytes.
fn credits(bytes: u64) -> TwoSwitches {
    TwoSwitches::new(&LinkControl::Cbfc(cbfc::Config { credits: Some(Bytes(bytes)), ..cbfc::Config::default() }))
}

#[test]
fn cbfc_sends_what_there_is_room_for_and_more_when_it_has_left() {
    // 1,500 bytes are 24 credits of 64: eight packets take 192, and one credit less leaves room for seven.
    for (bytes, packets) in [(8 * 24 * 64, 8), (8 * 24 * 64 - 64, 7)] {
        let mut wire = credits(bytes);
        assert_eq!(until_paused(&mut wire, 0, 2, 1), packets);
        // Another host has credits of its own, and flows of the class share them.
        assert!(!wire.may_send(0, 3, 2));
        assert_eq!(until_paused(&mut wire, 1, 3, 3), packets);
        for _ in 0..3 {
            assert!(wire.transmit("left", "right"));
        }
        // The first three were the first host's.
        assert_eq!(until_paused(&mut wire, 0, 2, 1), 3);
        assert!(!wire.may_send(1, 3, 3));
        // Between the switches there is as much room again, less what has gone.
        assert_eq!((0..20).take_while(|_| wire.transmit("left", "right")).count() as u32, packets - 3);
        wire.run_dry();
        assert!(!wire.held(0) && !wire.held(1));
    }
}

#[test]
fn cbfc_s_default_is_the_round_trip_three_packets_and_no_more() {
    let mut wire = TwoSwitches::new(&LinkControl::named("cbfc").unwrap());
    // To the switch and back: 850 ns at 100 Gbps are 10,625 bytes, and 8 of an update: eight packets, and three more.
    assert_eq!(until_paused(&mut wire, 0, 2, 1), 11);
    wire.run_dry();
}

#[test]
fn cbfc_s_counters_go_round() {
    let mut wire = credits(4 * 1_536);
    // A counter of 15 bits goes round after 1,365 packets of 24 credits.
    for _ in 0..3_000 {
        assert!(wire.send(0, 2, 1) && wire.transmit("left", "right") && wire.transmit("right", "host2"));
    }
    assert_eq!(until_paused(&mut wire, 0, 2, 1), 4);
    wire.run_dry();
    // Nothing was lost, so no credits were either.
    assert!(wire.counter("cbfc_updates") > 0 && wire.counter("cbfc_lost_credits") == 0);
}

#[test]
fn congestion_isolation_pauses_the_congesting_flow_and_not_its_neighbour() {
    let mut wire = TwoSwitches::new(&LinkControl::named("congestion_isolation").unwrap());
    while wire.send(0, 2, 1) || wire.transmit("left", "right") {}
    assert!(!wire.may_send(0, 2, 1));
    for _ in 0..50 {
        assert!(wire.send(0, 3, 2) && wire.transmit("left", "right") && wire.transmit("right", "host3"));
    }
    wire.run_dry();
}

/// One step: a host sends, or a switch does.
#[derive(Clone, Debug)]
enum Step {
    Send { flow: u32, packets: u8 },
    Transmit { port: &'static str, packets: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let send = (0u32..40, 1u8..40).prop_map(|(flow, packets)| Step::Send { flow, packets });
    let ports = select(vec!["left to right", "right to left", "right to host2", "right to host3", "left to host0"]);
    let transmit = (ports, 1u8..40).prop_map(|(port, packets)| Step::Transmit { port, packets });
    proptest::collection::vec(prop_oneof![send, transmit], 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever is sent when: each flow in order (the wire checks), and when all has gone, no queue or host is paused
    /// and every pause has had its end.
    #[test]
    fn every_pause_ends(
        name in select(LinkControl::NAMES[1..].to_vec()),
        few in any::<bool>(),
        published in any::<bool>(),
        steps in steps(),
    ) {
        let mut control = LinkControl::named(name).unwrap();
        if let LinkControl::Bfc(config) = &mut control {
            if few {
                config.queues = bfc::Queues::Physical(3);
                config.vfids = 16;
            }
            if published {
                config.departures = bfc::Departures::published();
            }
        }
        let mut wire = TwoSwitches::new(&control);
        for step in steps {
            match step {
                Step::Send { flow, packets } => {
                    // A flow's ends follow from its number: from left to right, and some the other way.
                    let (src, dst) = [(0, 2), (0, 3), (1, 2), (2, 0)][flow as usize % 4];
                    (0..packets).take_while(|_| wire.send(src, dst, flow)).count();
                }
                Step::Transmit { port, packets } => {
                    let (from, to) = port.split_once(" to ").unwrap();
                    (0..packets).take_while(|_| wire.transmit(from, to)).count();
                }
            }
        }
        wire.run_dry();
        wire.queues(&mut |view| panic!("{name}: {view:?}"));
        for host in 0..4 {
            prop_assert!(!wire.held(host), "{name}: host {host}");
        }
        for [pauses, resumes] in [["pfc_pauses", "pfc_resumes"], ["bfc_pauses", "bfc_resumes"], ["flow_pauses",
            "flow_resumes"]] {
            prop_assert_eq!(wire.counter(pauses), wire.counter(resumes), "{}", name);
        }
    }
}
