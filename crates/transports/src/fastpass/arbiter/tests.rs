//! The arbiter alone: matchings, paths, waiting and rejection.

use node::Walk;
use std::collections::BTreeMap;

use fabric::{Dumbbell, FabricSpec, FatTree, Grid, LeafSpine, Star};
use proptest::prelude::*;
use testing::walks::{NOW, check_moved, notes};
use units::Rate;

use super::super::Config;
use super::super::tests::network;
use super::*;
use contract::NetworkView;

fn arbiter(spec: FabricSpec, config: &Config) -> Arbiter {
    arbiter_on(&network(spec), config)
}

fn arbiter_on(network: &NetworkView, config: &Config) -> Arbiter {
    Arbiter::new(Params::new(config, &network.site, network))
}

/// One switch, and an arbiter that asks nothing of the hosts 1 and on.
fn star(hosts: u32, config: &Config) -> Arbiter {
    arbiter(FabricSpec::Star(Star { hosts, ..Star::default() }), config)
}

fn request(flow: u32, src: u32, dst: u32, packets: u32) -> Request {
    let (flow, src, dst) = (FlowId(flow), HostId(src), HostId(dst));
    Request { flow, src, dst, attempt: 1, first: 0, packets, admitted: false, lost: false }
}

/// Lets it decide all that it has to decide until `end`.
fn decide_until(arbiter: &mut Arbiter, end: Time) -> Vec<(Time, Answer)> {
    let mut answers = VecDeque::new();
    while arbiter.next_decision() <= end {
        let now = arbiter.next_decision();
        arbiter.decide(now, &mut answers);
    }
    answers.into()
}

fn allocations(answers: &[(Time, Answer)]) -> Vec<Allocation> {
    let allocation = |(_, answer): &(Time, Answer)| match *answer {
        Answer::Allocation(allocation) => Some(allocation),
        _ => None,
    };
    answers.iter().filter_map(allocation).collect()
}

fn slot_of(arbiter: &Arbiter, at: Time) -> u64 {
    at.ps() / arbiter.params.slot.ps()
}

#[test]
fn a_request_begins_in_the_first_slot_that_its_sender_can_be_told_of() {
    let mut arbiter = star(4, &Config::default());
    arbiter.request(Time::from_us(1), request(0, 1, 2, 10));
    let answers = decide_until(&mut arbiter, Time::from_ms(1));
    let [(decided, Answer::Allocation(allocation))] = answers[..] else { panic!("{answers:?}") };
    // 1% of each slot is left to control.
    assert_eq!(arbiter.params.slot, Duration::from_ps(121_213));
    assert_eq!(slot_of(&arbiter, allocation.at) * 121_213, allocation.at.ps());
    assert_eq!(allocation.at - decided, arbiter.params.lead);
    assert!((decided - Time::from_us(1)) < arbiter.params.slot);
    assert_eq!((allocation.first, allocation.packets, allocation.stride), (0, 10, 1));
    assert_eq!(allocation.path, 2);
}

#[test]
fn the_oldest_of_those_that_wait_goes_next() {
    let mut arbiter = star(6, &Config::default());
    for (flow, src) in [(0, 1), (1, 5), (2, 3), (3, 4)] {
        arbiter.request(Time::from_ps(u64::from(flow)), request(flow, src, 2, 20));
    }
    let order: Vec<u32> = allocations(&decide_until(&mut arbiter, Time::from_ms(1))).iter().map(|a| a.flow.0).collect();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn who_waits_holds_up_nobody_who_can_go() {
    let mut arbiter = star(6, &Config::default());
    // The second waits for its receiver; the third, younger, has both its ends free.
    for (flow, src, dst) in [(0, 1, 2), (1, 3, 2), (2, 4, 5)] {
        arbiter.request(Time::ZERO, request(flow, src, dst, 100));
    }
    let given = allocations(&decide_until(&mut arbiter, Time::from_ms(1)));
    let begin = |flow| slot_of(&arbiter, given.iter().find(|a| a.flow == FlowId(flow)).unwrap().at);
    assert_eq!(begin(0), begin(2));
    assert_eq!(begin(1), begin(0) + 100);
}

#[test]
fn what_cannot_begin_within_delta_admission_is_rejected() {
    let config = Config { delta_admission: Duration::from_us(20), ..Config::default() };
    let mut arbiter = star(8, &config);
    // 150 slots of 121.2 ns are 18.2 us, 170 are 20.6 us.
    for (flow, src, dst, packets) in [(0, 1, 2, 150), (10, 3, 5, 170), (1, 4, 2, 5), (11, 6, 5, 5)] {
        arbiter.request(Time::ZERO, request(flow, src, dst, packets));
    }
    let answers = decide_until(&mut arbiter, Time::from_ms(1));
    let given: Vec<u32> = allocations(&answers).iter().map(|a| a.flow.0).collect();
    assert_eq!(given, [0, 10, 1]);
    let rejected = (FlowId(11), HostId(6));
    assert!(
        answers
            .iter()
            .any(|(_, answer)| matches!(answer, Answer::Reject { flow, src, .. } if (*flow, *src) == rejected))
    );
    assert_eq!(arbiter.counts.rejects, 1);
}

#[test]
fn a_message_that_has_begun_is_not_rejected() {
    let mut arbiter = star(6, &Config { delta_admission: Duration::from_us(1), ..Config::default() });
    arbiter.request(Time::ZERO, request(0, 1, 2, 1_000));
    arbiter.request(Time::ZERO, Request { admitted: true, ..request(1, 3, 2, 5) });
    assert_eq!(allocations(&decide_until(&mut arbiter, Time::from_ms(1))).len(), 2);
}

#[test]
fn a_doubled_request_is_one_and_a_repeated_one_is_answered() {
    let mut arbiter = star(6, &Config::default());
    let again = |attempt| Request { attempt, ..request(1, 3, 2, 5) };
    arbiter.request(Time::ZERO, request(0, 1, 2, 100));
    assert_eq!(arbiter.request(Time::ZERO, again(1)), None);
    assert_eq!(arbiter.request(Time::ZERO, again(1)), None);
    let wait = Answer::Wait { flow: FlowId(1), src: HostId(3), attempt: 2 };
    assert_eq!(arbiter.request(Time::from_us(1), again(2)), Some(wait));
    let given = allocations(&decide_until(&mut arbiter, Time::from_us(100)));
    assert_eq!(given.iter().map(|a| (a.flow.0, a.attempt)).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    // It has been answered: the same is a double, a higher one means that the answer was lost.
    assert_eq!(arbiter.request(Time::from_us(100), again(2)), None);
    assert!(decide_until(&mut arbiter, Time::from_us(200)).is_empty());
    assert_eq!(arbiter.request(Time::from_us(200), again(3)), None);
    assert_eq!(allocations(&decide_until(&mut arbiter, Time::from_us(300))).len(), 1);
}

#[test]
fn single_packets_go_to_who_has_waited_longest_for_its_last() {
    let mut arbiter = star(6, &Config { granularity: Granularity::Packet, ..Config::default() });
    for (flow, src) in [(0, 1), (1, 3), (2, 4)] {
        arbiter.request(Time::ZERO, request(flow, src, 2, 4));
    }
    let given = allocations(&decide_until(&mut arbiter, Time::from_ms(1)));
    let (flows, slots): (Vec<u32>, Vec<u64>) = given.iter().map(|a| (a.flow.0, slot_of(&arbiter, a.at))).unzip();
    assert_eq!(flows, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert!(slots.windows(2).all(|two| two[1] == two[0] + 1), "{slots:?}");
}

#[test]
fn the_arbiter_s_own_host_leaves_slots_to_control() {
    for granularity in [Granularity::Message, Granularity::Packet] {
        let mut arbiter = star(4, &Config { granularity, control_slots: 4, ..Config::default() });
        for flow in 0..6 {
            arbiter.request(Time::ZERO, request(flow, 0, 1, 5));
        }
        let mut used = Vec::new();
        for Allocation { at, packets, src, dst, stride, .. } in
            allocations(&decide_until(&mut arbiter, Time::from_ms(1)))
        {
            let places = (0..u64::from(packets)).map(|i| arbiter.params.slot_of(src, dst, stride.into(), at, i));
            used.extend(places.map(|place| slot_of(&arbiter, at) + place));
        }
        assert_eq!(used.len(), 30);
        assert!(used.windows(2).all(|two| two[0] < two[1]) && used.iter().all(|slot| slot % 4 > 0), "{used:?}");
        // Ten times three and a pause, nine or ten of these.
        assert!((38..=39).contains(&(used[29] - used[0])), "{used:?}");
    }
}

#[test]
fn four_hosts_share_a_link_four_times_as_fast() {
    let spec = LeafSpine { racks: 2, hosts_per_rack: 5, spines: 1, ..LeafSpine::default() };
    let mut arbiter = arbiter(FabricSpec::LeafSpine(spec), &Config::default());
    for host in 0..5 {
        arbiter.request(Time::ZERO, request(host, host, 5 + host, 50));
    }
    let given = allocations(&decide_until(&mut arbiter, Time::from_ms(1)));
    let lane = arbiter.params.slot / 4;
    let shifts: Vec<u64> = given.iter().map(|a| (a.at - given[0].at).ps() / lane.ps()).collect();
    assert_eq!(shifts[..4], [0, 1, 2, 3]);
    // The fifth waits for the first.
    assert!((200..204).contains(&shifts[4]), "{shifts:?}");
}

#[test]
fn links_on_which_packets_were_lost_are_avoided_for_a_while() {
    let spec = LeafSpine { racks: 2, hosts_per_rack: 2, spines: 2, ..LeafSpine::default() };
    let mut arbiter = arbiter(FabricSpec::LeafSpine(spec), &Config::default());
    let mut spine = |at, request| {
        arbiter.request(at, request);
        let given = allocations(&decide_until(&mut arbiter, at + Duration::from_us(100)));
        given[0].path & 0xFF
    };
    let first = spine(Time::ZERO, request(0, 1, 3, 10));
    let lost = Request { attempt: 2, admitted: true, lost: true, ..request(0, 1, 3, 10) };
    let second = spine(Time::from_us(200), lost);
    assert_ne!(first, second);
    assert_eq!(spine(Time::from_us(400), request(1, 0, 2, 10)), second);
    assert_eq!(spine(Time::from_us(1_300), request(2, 0, 2, 10)), first);
}

#[test]
fn requests_that_make_no_sense_are_not_heard() {
    let mut arbiter = star(4, &Config::default());
    for nonsense in [request(0, 1, 9, 1), request(1, 9, 1, 1), request(2, 1, 1, 1), request(3, 1, 2, 0)] {
        assert_eq!(arbiter.request(Time::ZERO, nonsense), None);
    }
    assert_eq!(arbiter.next_decision(), Time::MAX);
}

/// Source, distance to the destination, packets, microseconds of arrival.
fn demands() -> impl Strategy<Value = Vec<(u32, u32, u32, u64)>> {
    proptest::collection::vec((0u32..100, 1u32..100, 1u32..40, 0u64..30), 1..60)
}

fn fabrics() -> impl Strategy<Value = FabricSpec> {
    let gbps = Rate::from_gbps;
    let leaf_spine = |spine_rate| {
        FabricSpec::LeafSpine(LeafSpine { racks: 3, hosts_per_rack: 4, spines: 2, spine_rate, ..LeafSpine::default() })
    };
    proptest::sample::select(vec![
        leaf_spine(gbps(100)),
        leaf_spine(gbps(400)),
        leaf_spine(gbps(250)),
        leaf_spine(gbps(50)),
        leaf_spine(gbps(33)),
        FabricSpec::FatTree(FatTree { k: 4, ..FatTree::default() }),
        FabricSpec::Dumbbell(Dumbbell { bottleneck_rate: gbps(40), ..Dumbbell::default() }),
        FabricSpec::Torus(Grid { dims: vec![3, 4], ..Grid::default() }),
        FabricSpec::Star(Star::default()),
    ])
}

/// Runs demands through an arbiter, and gives what it allocated.
fn run(arbiter: &mut Arbiter, hosts: u32, demands: &[(u32, u32, u32, u64)]) -> Vec<Allocation> {
    let mut demands: Vec<_> = demands.to_vec();
    demands.sort_by_key(|demand| demand.3);
    let mut answers = Vec::new();
    for (flow, (src, step, packets, at)) in demands.into_iter().enumerate() {
        let at = Time::from_us(at);
        answers.extend(decide_until(arbiter, at));
        let (src, dst) = (src % hosts, (src + 1 + step % (hosts - 1)) % hosts);
        arbiter.request(at, request(flow as u32, src, dst, packets));
    }
    answers.extend(decide_until(arbiter, Time::from_ms(100)));
    allocations(&answers)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Each packet of each allocation is walked over its path, by arithmetic of its own: none finds another on a link.
    #[test]
    fn no_link_is_promised_twice(
        spec in fabrics(), demands in demands(), cut_through: bool, delayed: bool, by_packet: bool,
    ) {
        let mut network = network(spec);
        network.head_bytes = cut_through.then_some(64);
        network.host_delay = if delayed { Duration::from_ns(225) } else { Duration::ZERO };
        let granularity = if by_packet { Granularity::Packet } else { Granularity::Message };
        let config = Config { granularity, delta_admission: Duration::from_ms(10), ..Config::default() };
        let mut arbiter = arbiter_on(&network, &config);
        let fabric = network.fabric.clone();
        let mut used: BTreeMap<LinkId, Vec<(Time, Time)>> = BTreeMap::new();
        let mut packets = 0;
        for Allocation { src, dst, packets: count, at, stride, path, .. } in run(&mut arbiter, fabric.hosts, &demands) {
            packets += count;
            for index in 0..u64::from(count) {
                let place = arbiter.params.slot_of(src, dst, stride.into(), at, index);
                let mut seen = at + arbiter.params.slot * u64::from(stride) * place;
                let (mut link, mut hop, mut tail) = (fabric.uplink(src), 0, seen);
                loop {
                    let rate = fabric.link(link).rate;
                    let gone = (seen + rate.transmit(1500)).max(tail);
                    used.entry(link).or_default().push((seen, gone));
                    let ends = [fabric.uplink(src), fabric::Fabric::reverse(fabric.uplink(dst))];
                    let delay = fabric.delay(link)
                        + if ends.contains(&link) { network.host_delay } else { Duration::ZERO };
                    let Some(switch) = fabric.as_switch(fabric.link(link).to) else { break };
                    let forwards = if cut_through { gone.min(seen + rate.transmit(64)) } else { gone };
                    (seen, tail) = (forwards + delay, gone + delay);
                    link = fabric.out_link(switch, PortId((path >> (8 * hop)) as u32 & 0xFF));
                    hop += 1;
                }
                prop_assert_eq!(fabric.as_host(fabric.link(link).to), Some(dst));
            }
        }
        prop_assert_eq!(packets, demands.iter().map(|demand| demand.2).sum::<u32>(), "all are served");
        for (link, mut times) in used {
            times.sort_unstable();
            prop_assert!(times.windows(2).all(|two| two[0].1 <= two[1].0), "{:?}", fabric.link(link));
        }
    }

    /// On one switch, where slots are all that there is: whoever waited could not have begun, in any slot, since its
    /// sender or its receiver was taken; and of two that wanted the same sender and receiver the older went first.
    #[test]
    fn every_matching_is_maximal(demands in demands()) {
        let mut demands = demands;
        demands.sort_by_key(|demand| demand.3);
        let config = Config { delta_admission: Duration::from_ms(10), ..Config::default() };
        let mut arbiter = star(6, &config);
        // Host 0 is the arbiter's, which leaves slots out.
        let hosts = |&(src, step, ..): &(u32, u32, u32, u64)| (1 + src % 5, 1 + (src + 1 + step % 4) % 5);
        let mut answers = Vec::new();
        for (flow, demand) in demands.iter().enumerate() {
            let at = Time::from_us(demand.3);
            answers.extend(decide_until(&mut arbiter, at));
            let (src, dst) = hosts(demand);
            arbiter.request(at, request(flow as u32, src, dst, demand.2));
        }
        answers.extend(decide_until(&mut arbiter, Time::from_ms(100)));
        let mut given = allocations(&answers);
        given.sort_by_key(|a| a.flow);
        prop_assert_eq!(given.len(), demands.len());
        let slot = arbiter.params.slot;
        let spans: Vec<(u64, u64)> =
            given.iter().map(|a| (slot_of(&arbiter, a.at), slot_of(&arbiter, a.at) + u64::from(a.packets))).collect();
        for (flow, demand) in demands.iter().enumerate() {
            let (src, dst) = hosts(demand);
            let first = (Time::from_us(demand.3) + arbiter.params.lead).ps().div_ceil(slot.ps());
            for waited in first..spans[flow].0 {
                let blocked = spans.iter().zip(&demands).any(|(span, other)| {
                    let (from, to) = hosts(other);
                    (from == src || to == dst) && (span.0..span.1).contains(&waited)
                });
                prop_assert!(blocked, "flow {} could have begun in slot {}", flow, waited);
            }
            let younger = demands.iter().enumerate().skip(flow + 1).filter(|(_, other)| hosts(other) == (src, dst));
            for (other, _) in younger {
                prop_assert!(spans[flow].0 < spans[other].0);
            }
        }
    }
}

/// An arbiter that has answered a request, and to which two others have come, one of them of a message that has begun.
fn busy() -> Arbiter {
    let mut arbiter = star(4, &Config { granularity: Granularity::Packet, ..Config::default() });
    arbiter.request(NOW, request(3, 1, 2, 1_000));
    arbiter.request(NOW, Request { first: 20, packets: 900, admitted: true, ..request(4, 3, 2, 0) });
    let said = Said { attempt: 1, path: Some(2) };
    arbiter.answered.note(NOW - Duration::from_us(1), arbiter.params.patience, FlowId(1), said);
    (arbiter.avoided[0], arbiter.avoiding_until) = (NOW + Duration::from_us(5), NOW + Duration::from_us(5));
    arbiter
}

fn visit_all(arbiter: &mut Arbiter, walk: &mut Walk) {
    (0..5).for_each(|flow| walk.flow(&mut FlowId(flow)));
    node::State::visit(arbiter, walk, &());
}

/// What waits of the second request.
fn begun(arbiter: &mut Arbiter) -> &mut Waiting {
    arbiter.waiting.get_mut(1).expect("it waits").1
}

/// In a round of slots, of which one is left to control, it gives seven to a message.
#[test]
fn its_walk_moves_all_of_an_arbiter() {
    let cycle = busy().params.cycle();
    let make = || {
        let mut arbiter = busy();
        // The other message would be rejected before long.
        arbiter.waiting.get_mut(0).expect("it waits").1.request.admitted = true;
        (arbiter.avoiding_until, arbiter.answered) = (NOW, Answered::default());
        begun(&mut arbiter).turn.0 = NOW.ps() / arbiter.params.slot.ps();
        arbiter
    };
    let pass = |arbiter: &mut Arbiter, _| {
        let Waiting { request, turn, .. } = begun(arbiter);
        (request.first, request.packets, turn.0) = (request.first + 7, request.packets - 7, turn.0 + 8);
        let mut agenda = std::mem::take(&mut arbiter.agenda).into_vec();
        agenda.iter_mut().for_each(|Reverse(of)| of.0 += 8);
        arbiter.agenda = agenda.into();
        arbiter.counts.allocations += 7;
    };
    let see = |arbiter: &Arbiter| {
        let (_, Waiting { request, turn, .. }) = arbiter.waiting.get(1).expect("it waits");
        let agenda: Vec<_> = arbiter.agenda.clone().into_sorted_vec();
        (request.first, request.packets, *turn, agenda, arbiter.counts.allocations)
    };
    check_moved(&[], cycle, make, visit_all, pass, see);
}

/// Slots are counted from the run's beginning, and some of them are left to control.
#[test]
fn its_state_recurs_only_after_whole_rounds_of_slots() {
    let mut idle = star(4, &Config::default());
    let (slot, cycle) = (idle.params.slot, idle.params.cycle());
    let mut recurs = |after: Duration| {
        let [before, after] = [NOW, NOW + after].map(|now| notes(now, &[], &mut idle, visit_all));
        node::walk::recurrence(&before, &after).is_ok()
    };
    assert!(recurs(cycle) && recurs(cycle * 3) && !recurs(slot) && !recurs(cycle + slot));
}
