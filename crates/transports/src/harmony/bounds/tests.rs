use fabric::{FabricSpec, Grid, LeafSpine, Tier};
use units::SwitchId;

use super::*;

/// Harmony's section 5: 100 Gbps to hosts, 400 Gbps to four spines, three switches on a path.
fn paper(slots: u16, rates: &[Rate]) -> Bounds {
    Bounds::among(&Config { slots, ..Config::default() }, &site(), B, rates)
}

fn site() -> EndpointParams {
    EndpointParams {
        host: HostId(0),
        hosts: 144,
        nic_rate: B,
        data_rtt: Duration::from_ns(4_600),
        data_rtts: vec![(1, Duration::from_ns(2_000)), (3, Duration::from_ns(4_600))],
        control_rtt: Duration::from_ns(4_300),
        mtu_bytes: 1500,
        header_bytes: 40,
        clock: node::Clock::default(),
        transport: 0,
    }
}

const B: Rate = Rate::from_gbps(100);
/// Any link, where positions are not used.
const ANY: LinkId = LinkId(0);
const RATES: [Rate; 2] = [Rate::from_gbps(100), Rate::from_gbps(400)];

#[test]
fn links_have_as_many_virtual_links_as_slots_go_into_them() {
    let bounds = paper(8, &RATES);
    let of = |gbps| bounds.virtual_links(Rate::from_gbps(gbps));
    assert_eq!([of(100), of(400), of(50), of(25), of(13), of(12)], [8, 32, 4, 2, 1, 0]);
}

#[test]
fn served_in_the_order_of_arrival_what_is_proven_is_2_to_the_i_minus_1_times_k_minus_1() {
    // In packet times, of nothing but data and links all of one rate.
    for k in 1..=64u64 {
        let (others, period) = (Duration::from_ps(k - 1), Duration::from_ps(k));
        let mut late = Duration::ZERO;
        for i in 0..8 {
            let wait = others + bunched(others, late, period);
            assert_eq!(wait.ps(), (1 << i) * (k - 1), "K = {k}, switch {}", i + 1);
            late += wait;
        }
    }
}

#[test]
fn a_link_is_waited_for_as_long_as_the_order_of_service_says() {
    let bounds = paper(8, &RATES);
    let ps = Duration::from_ps;
    // 7 x 1500 bytes, 1500 of a lower class, 24 x 40 of control: 12,960 bytes. On 400 Gbps four times as much of
    // each.
    assert_eq!(bounds.wait_at(Rate::from_gbps(100), Duration::ZERO), ps(1_036_800));
    assert_eq!(bounds.wait_at(Rate::from_gbps(400), Duration::ZERO), ps(1_036_800));
    // That is more than a period of 969.697 ns, so that others may have two packets more: 31 x 3000 bytes.
    let second = ps(1_036_800 + 1_860_000);
    assert_eq!(bounds.wait_at(Rate::from_gbps(400), ps(1_036_800)), second);
    // At the third switch J is between four and five periods.
    let (late, slow, fast) = (ps(3_933_600), ps(1_036_800 + 4_200_000), ps(1_036_800 + 4_650_000));
    assert_eq!((bounds.before, bounds.wait), (late, late + fast));
    assert_eq!(bounds.queue_bytes(ANY, Rate::from_gbps(100)), Rate::from_gbps(100).bytes_in(slow) + 1_500);

    // In turn: no more at one switch than at another. 1% of what data leave, and 16 x 40 at once, for control.
    let in_turn = Bounds::among(&Config { service: Service::RoundRobin, ..Config::default() }, &site(), B, &RATES);
    let at = |gbps, bytes| {
        assert_eq!(in_turn.wait_at(Rate::from_gbps(gbps), in_turn.before), Rate::from_gbps(gbps).transmit(bytes))
    };
    at(100, 7 * 1_500 + 1_500 + 107 + 640);
    at(400, 31 * 1_500 + 1_500 + 470 + 2_560);
    assert_eq!(in_turn.wait, ps(3 * 1_020_600));
    assert_eq!(in_turn.queue_bytes(ANY, B), (2 * 1_020_600 + 1_019_760) / 80 + 1_500);
    // What is not the theorem's is one packet of a lower class a switch, and control: under a fifth.
    let theorem = super::super::theory::queue_max(3, 8, units::Bytes(1500)).get();
    assert!(in_turn.queue_bytes(ANY, B) - theorem < 4 * 1_500 + 3 * 760);
}

#[test]
fn a_link_s_bound_depends_on_the_links_before_it() {
    let network = |spec: FabricSpec| NetworkView::new(spec.build().unwrap(), &site());
    let leaf_spine =
        LeafSpine { racks: 9, hosts_per_rack: 16, spines: 4, spine_rate: Rate::from_gbps(400), ..Default::default() };
    let ground_of = network(FabricSpec::LeafSpine(leaf_spine));
    let bounds = Bounds::new(&Config::default(), &ground_of);
    let fabric = &ground_of.fabric;
    let of = |tier| {
        let links = (0..fabric.links.len()).map(LinkId::from).filter(|&link| fabric.link(link).tier == tier);
        let mut bytes: Vec<u64> = links.map(|link| bounds.queue_bytes(link, fabric.link(link).rate)).collect();
        bytes.dedup();
        bytes
    };
    // 1.0368 us, then 2.8968, then 5.2368.
    assert_eq!((of(Tier::Up), of(Tier::Down), of(Tier::ToHost)), (vec![53_340], vec![146_340], vec![66_960]));
    assert_eq!(bounds.wait, Duration::from_ps(1_036_800 + 2_896_800 + 5_236_800));
    // Twice that, for the second class, and a packet: the default memory of a port holds it, best effort beneath or
    // not.
    assert!(2 * 146_340 + 1_500 <= 500_000 && bounds.are_proven());
    // Data may go from a host up, from a spine down, and from host to host, but not from a spine back up.
    let leaf = SwitchId(0);
    let ports = &fabric.ports[fabric.switch_node(leaf).index()];
    let late = bounds.lateness(fabric, ports).unwrap();
    let [host, spine] = [0, 16].map(|port| late[port]);
    assert!(host.arriving <= spine.leaving && spine.arriving <= host.leaving && host.arriving <= host.leaving);
    assert!(spine.arriving > spine.leaving);
    // Where links precede each other in cycles, nothing is proven for the order of arrival.
    let torus = || FabricSpec::Torus(Grid { dims: vec![4, 3], ..Default::default() });
    let proven = |service| Bounds::new(&Config { service, ..Config::default() }, &network(torus())).are_proven();
    assert_eq!([Service::Fifo, Service::RoundRobin].map(proven), [false, true]);
}

#[test]
fn at_least_the_theorem_s_room_is_kept_where_what_is_proven_is_more() {
    let bounds = paper(8, &RATES);
    // 8 x (1500 + 120) + 1500 bytes a round, at 100 Gbps the longest.
    assert_eq!(bounds.room_bytes(ANY, B), 3 * 14_460);
    assert_eq!(bounds.room_bytes(ANY, Rate::from_gbps(400)), 32 * 1_620 + 1_500 + 2 * 4 * 14_460);
    let theorem = super::super::theory::queue_max(3, 8, units::Bytes(1500)).get();
    assert!(theorem < bounds.room_bytes(ANY, B) && bounds.room_bytes(ANY, B) < bounds.queue_bytes(ANY, B));
    // In turn what is proven is no more than that, and all of it is kept.
    let in_turn = Bounds::among(&Config { service: Service::RoundRobin, ..Config::default() }, &site(), B, &RATES);
    assert_eq!(in_turn.room_bytes(ANY, B), in_turn.queue_bytes(ANY, B));
}

#[test]
fn behind_fast_links_a_slow_one_with_one_virtual_link_has_a_queue_too() {
    let bounds = paper(1, &RATES);
    // 129.6 ns for a lower class and control at the first switch, 309.6 at the second, and that again at the third.
    assert_eq!(bounds.before, Duration::from_ps(439_200));
    assert_eq!(bounds.queue_bytes(ANY, Rate::from_gbps(100)), 7_110 + 1_500);
    // Whatever the rates, a packet and its period are what they are at the source.
    assert_eq!(bounds.period(1500), Duration::from_ps(121_213));
}

#[test]
fn what_must_have_come_is_later_than_what_can_come() {
    for slots in [1, 8, 64] {
        let bounds = paper(slots, &RATES);
        assert!(bounds.first_data() >= Duration::from_ns(4_600) + bounds.wait * 2);
        assert!(bounds.next_data() >= bounds.period(1500) + bounds.wait);
        // What waits in switches does so once, and not for each packet.
        assert_eq!(bounds.hold(1_460 * 10), bounds.first_data() + (bounds.next_data() - bounds.wait) * 11);
        assert_eq!(bounds.hold(u64::MAX), LONGEST);
    }
}

#[test]
fn the_slowest_links_overflow_nothing() {
    let slow = Rate::from_bps(1);
    let bounds = paper(1_024, &[slow]);
    let _ = (bounds.patience(), bounds.hold(u64::MAX), bounds.slip(slow), bounds.queue_bytes(ANY, slow));
}

#[test]
fn a_sender_asks_again_after_twice_the_time_and_waits_for_a_full_buffer_in_the_end() {
    let bounds = Bounds { loaded_rtt: Duration::from_ms(1), ..paper(8, &RATES) };
    let answer = bounds.answer();
    assert!(answer * 3 < Duration::from_ms(1), "{answer}");
    assert_eq!((bounds.answer_to(1), bounds.answer_to(2)), (answer, answer * 2));
    let last = Duration::from_ms(1) + Config::default().delta_admission;
    assert_eq!((bounds.answer_to(3), bounds.answer_to(16)), (last, last));
    assert!(bounds.patience() >= answer * 3 + last);
    // Nowhere less than it takes.
    let short = Bounds { loaded_rtt: Duration::ZERO, ..bounds };
    assert_eq!((1..=3).map(|tries| short.answer_to(tries)).max(), Some(answer));
}
