//! Scenes on the virtual wire: 100 Gbps, 2.5 us from host to host, so that a control packet takes 2.5064 us (3.2 ns
//! onto the wire, and again out of the switch) and a full data packet 2.74 us. A bandwidth-delay product is 65,580 B.

use std::collections::{BTreeMap, BTreeSet};

use node::packet::flags;
use node::{Event, FlowState, Packet};
use proptest::prelude::*;
use testing::{PacketFate, Scene, Wire, sent};
use units::{Duration, FlowId, HostId, Rate, Time};

use super::header::{CREDIT_UNIT, trimmed_last_hop};
use super::*;

const PACKET: Duration = Duration::from_ns(120);
const DATA_WAY: Duration = Duration::from_ps(2_740_000);
const CONTROL_WAY: Duration = Duration::from_ps(2_506_400);
/// One and a half bandwidth-delay products.
const WINDOW: u64 = 98_370;
/// 15 us and six queues of 44 packets.
const RTO: Duration = Duration::from_ps(15_000_000 + 6 * 44 * 120_000);

const RCCC: Config = Config {
    congestion_control: CongestionControl::Rccc,
    spraying: Spraying::Mixed,
    entropies: 64,
    trimming: true,
    queue: None,
    initial_window: None,
    target_delay: None,
    quick_adapt: true,
    oversubscription: None,
    ack_bytes: Bytes(16_384),
    rto: None,
    infers_losses: None,
};

fn scene_of(hosts: u32, wire: Wire, config: Config) -> Scene {
    Scene::new(hosts, wire, move |site| config.endpoint(site, &NetworkView::star(site)))
}

fn scene(hosts: u32, config: Config) -> Scene {
    scene_of(hosts, Wire::default(), config)
}

const fn packets(count: u64) -> u64 {
    count * 1460
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

fn psn(packet: &Packet) -> Option<u32> {
    if let Header::Data(data) = packet.header() { Some(data.psn) } else { None }
}

/// When each copy of a packet was sent.
fn times(scene: &Scene, psn: u32) -> Vec<Time> {
    let all = sent!(scene, Header::Data(data) => data.psn);
    all.into_iter().filter(|sent| sent.2 == psn).map(|sent| sent.0).collect()
}

fn count(scene: &Scene, host: u32, name: &str) -> u64 {
    scene.endpoint(host).counters().into_iter().find(|counter| counter.0 == name).expect("a counter of that name").1
}

fn said(scene: &Scene, host: u32, flow: FlowId, name: &str) -> Option<u64> {
    let mut say = FlowState::default();
    scene.endpoint(host).state(flow, &mut say);
    say.of(name)
}

fn trim(packet: &mut Packet) {
    packet.flags |= flags::TRIMMED;
    (packet.wire_bytes, packet.payload_bytes, packet.class) = (40, 0, 0);
}

/// Whether a packet is data, first sent.
fn first_time() -> impl FnMut(&Packet) -> bool {
    let mut seen = BTreeSet::new();
    move |packet| psn(packet).is_some_and(|psn| seen.insert((packet.flow, psn)))
}

#[test]
fn a_message_needs_no_handshake_and_goes_at_line_rate() {
    for config in [Config::default(), RCCC, Config { congestion_control: CongestionControl::Both, ..RCCC }] {
        let nscc = config.congestion_control == CongestionControl::Nscc;
        let mut scene = scene(2, config);
        let flow = scene.send(Time::ZERO, 0, 1, packets(400));
        scene.run_until(ms(1));
        let delivered = scene.delivered_at(flow).unwrap();
        if nscc {
            assert_eq!(delivered, Time::ZERO + PACKET * 399 + DATA_WAY);
            assert_eq!(scene.completed_at(flow), Some(delivered + CONTROL_WAY));
        } else {
            // Credit is for 99% of the link's rate, and the first asks for it once a round trip late.
            let best = Time::ZERO + PACKET * 399 + DATA_WAY;
            assert!(delivered >= best && delivered <= best + PACKET * 10, "{delivered}");
        }
        assert_eq!((count(&scene, 0, "retransmissions"), count(&scene, 0, "timeouts")), (0, 0));
    }
}

#[test]
fn no_more_than_the_window_is_in_flight() {
    let config = Config { initial_window: Some(Bytes(15_000)), ..Config::default() };
    let mut scene = scene(2, config);
    let flow = scene.send(Time::ZERO, 0, 1, packets(300));
    let mut seen = 0;
    for step in 1..40_000u64 {
        let before = said(&scene, 0, flow, "window_bytes");
        scene.run_until(Time::from_ns(step));
        let (Some(window), Some(out)) =
            (said(&scene, 0, flow, "window_bytes"), said(&scene, 0, flow, "outstanding_bytes"))
        else {
            continue;
        };
        assert!(out <= window.max(before.unwrap_or(0)), "{step} ns: {out} of {window}");
        seen += u64::from(out > window * 9 / 10);
    }
    // It was full for most of the first round trips.
    assert!(seen > 4_000, "{seen}");
    let left: Vec<Time> = sent!(scene, Header::Data(_)).iter().map(|sent| sent.0).collect();
    assert_eq!(left[..10], (0..10).map(|packet| Time::ZERO + PACKET * packet).collect::<Vec<_>>());
    // The eleventh when the first is acknowledged.
    assert_eq!(left[10], Time::ZERO + DATA_WAY + CONTROL_WAY);
}

#[test]
fn a_trimmed_packet_is_sent_again_before_new_ones() {
    for config in [Config::default(), RCCC] {
        let mut scene = scene(2, config);
        let mut first_time = first_time();
        scene.touch(move |_, packet| {
            if first_time(packet) && [Some(3), Some(20)].contains(&psn(packet)) {
                trim(packet);
            }
        });
        let flow = scene.send(Time::ZERO, 0, 1, packets(200));
        scene.run_until(ms(1));
        assert_eq!(sent!(scene, Header::Nack(nack) => nack.psn).iter().map(|nack| nack.2).collect::<Vec<_>>(), [3, 20]);
        for psn in [3, 20] {
            let [first, again] = times(&scene, psn)[..] else { panic!("sent twice") };
            // The header's way and the NACK's, behind a data packet and an answer; then whatever the NIC is sending.
            let heard = CONTROL_WAY * 2 + PACKET;
            assert!(again.since(first) >= heard && again.since(first) <= heard + PACKET * 2, "{}", again.since(first));
        }
        assert_eq!(sent!(scene, Header::Data(_)).len(), 202);
        assert!(scene.delivered_at(flow).is_some());
        assert_eq!((count(&scene, 0, "timeouts"), count(&scene, 1, "duplicates")), (0, 0));
    }
}

#[test]
fn what_nothing_is_heard_of_goes_again_after_the_timeout() {
    for config in [Config::default(), RCCC] {
        let mut scene = scene(2, config);
        let mut first_time = first_time();
        scene.spoil(
            move |_, packet| {
                if first_time(packet) && psn(packet) == Some(5) { PacketFate::Drop } else { PacketFate::Pass }
            },
        );
        let flow = scene.send(Time::ZERO, 0, 1, packets(30));
        scene.run_until(ms(1));
        let lost = Time::ZERO + PACKET * 5;
        // With credit alone, a round trip later: it has none left, and must ask.
        let asks = if times(&scene, 5)[1] == lost + RTO { Duration::ZERO } else { CONTROL_WAY * 2 };
        assert_eq!(times(&scene, 5), [lost, lost + RTO + asks]);
        assert_eq!(scene.delivered_at(flow), Some(lost + RTO + asks + DATA_WAY));
        assert_eq!(count(&scene, 0, "timeouts"), 1);
    }
}

#[test]
fn a_timeout_doubles_while_a_packet_is_lost_again() {
    let mut scene = scene(2, Config::default());
    scene.spoil(
        |now, packet| {
            if psn(packet) == Some(0) && now < Time::from_us(400) { PacketFate::Drop } else { PacketFate::Pass }
        },
    );
    scene.send(Time::ZERO, 0, 1, packets(1));
    scene.run_until(ms(5));
    let at = |factor: u64| Time::ZERO + RTO * factor;
    assert_eq!(times(&scene, 0), [at(0), at(1), at(3), at(7), at(15)]);
}

#[test]
fn without_trimming_what_a_window_and_a_half_overtakes_is_lost() {
    let config = Config { trimming: false, ..Config::default() };
    let mut scene = scene(2, config);
    let mut first_time = first_time();
    scene.spoil(
        move |_, packet| {
            if first_time(packet) && psn(packet) == Some(5) { PacketFate::Drop } else { PacketFate::Pass }
        },
    );
    let flow = scene.send(Time::ZERO, 0, 1, packets(400));
    scene.run_until(ms(1));
    let again = times(&scene, 5)[1];
    // 65 packets after it, which take 7.8 us to leave, and a round trip; its timeout would be 173.4 us.
    assert!(again > Time::from_us(12) && again < Time::from_us(16), "{again}");
    assert_eq!((count(&scene, 0, "timeouts"), count(&scene, 0, "inferred_losses")), (0, 1));
    assert!(scene.delivered_at(flow).unwrap() <= Time::ZERO + PACKET * 402 + DATA_WAY);
}

#[test]
fn packets_of_a_message_carry_all_its_entropy_values_and_answers_carry_theirs() {
    let mut scene = scene(2, Config::default());
    scene.send(Time::ZERO, 0, 1, packets(64));
    scene.run_until(ms(1));
    let labels = |src| {
        let of = scene.sent.iter().filter(move |sent| sent.1.src == HostId(src));
        of.map(|sent| sent.1.flow_label()).collect::<BTreeSet<u32>>()
    };
    // The first 43 before any answer; what comes back unmarked is used again.
    assert!(labels(0).len() >= 43 && labels(0).iter().all(|label| (1..=64).contains(label)));
    assert!(labels(1).is_subset(&labels(0)));
    let mut scene = self::scene(2, Config { spraying: Spraying::Switches, ..Config::default() });
    scene.send(Time::ZERO, 0, 1, packets(64));
    scene.run_until(ms(1));
    assert!(scene.sent.iter().all(|sent| sent.1.flow_label() == 0 && !sent.1.has(flags::COMPACT_ROUTE)));
}

#[test]
fn acknowledgements_name_what_has_come_out_of_order() {
    let mut scene = scene(2, Config::default());
    let mut first_time = first_time();
    scene.spoil(move |_, packet| {
        let late = first_time(packet) && psn(packet).is_some_and(|psn| psn % 7 == 2);
        if late { PacketFate::Delay(Duration::from_us(4)) } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(300));
    scene.run_until(ms(1));
    let selective = sent!(scene, Header::Ack(ack) => ack.bitmap).iter().filter(|ack| ack.2 != 0).count();
    assert!(selective > 10, "{selective}");
    // Nothing is lost, so nothing goes twice.
    assert_eq!(sent!(scene, Header::Data(_)).len(), 300);
    assert!(count(&scene, 1, "out_of_order") > 100 && scene.completed_at(flow).is_some());
}

/// Credit by flow, in bytes, as it is sent.
fn credits(scene: &Scene) -> Vec<(Time, FlowId, u64)> {
    let pulls = sent!(scene, Header::Pull(pull) => u64::from(pull.credit) * CREDIT_UNIT);
    let mut known = BTreeMap::new();
    let more = |(at, packet, credit): (Time, Packet, u64)| {
        let before = known.insert(packet.flow, credit).unwrap_or(0);
        (at, packet.flow, credit - before)
    };
    pulls.into_iter().map(more).collect()
}

#[test]
fn credit_is_given_at_the_rate_of_the_receivers_link_and_to_all_alike() {
    // Packets come out of the network four times as fast as the receiver thinks.
    let wire = Wire { down_rate: Some(Rate::from_gbps(400)), ..Wire::default() };
    let mut scene = scene_of(9, wire, RCCC);
    let flows: Vec<FlowId> = (1..9).map(|src| scene.send(Time::ZERO, src, 0, packets(600))).collect();
    scene.run_until(ms(10));
    assert!(flows.iter().all(|&flow| scene.delivered_at(flow).is_some()));
    let credits = credits(&scene);
    let line = Rate::from_gbps(100);
    let mut given = 0;
    for (at, _, more) in &credits {
        // 0.99 of the rate, from the first on, and what one pull has.
        let most = line.bytes_in(at.since(credits[0].0)) * 99 / 100 + 4 * 1_460 + 4_000;
        given += more;
        assert!(given <= most, "{at}: {given} of {most}");
    }
    // A part in eight each, of the credit until the first has all it wants.
    let until = credits.iter().position(|credit| credit.0 > Time::from_us(300)).unwrap();
    for flow in &flows {
        let of: u64 = credits[50..until].iter().filter(|credit| credit.1 == *flow).map(|credit| credit.2).sum();
        let all: u64 = credits[50..until].iter().map(|credit| credit.2).sum();
        assert!((of * 8).abs_diff(all) * 20 <= all, "{flow:?}: {of} of {all}");
    }
    // What is sent beyond the first window has credit.
    for flow in &flows {
        let sent: u64 = scene
            .sent
            .iter()
            .filter(|sent| sent.1.flow == *flow && psn(&sent.1).is_some())
            .map(|sent| u64::from(sent.1.wire_bytes))
            .sum();
        let credit: u64 = credits.iter().filter(|credit| credit.1 == *flow).map(|credit| credit.2).sum();
        assert!(sent <= WINDOW + credit + 1_500, "{flow:?}: {sent} with {credit}");
    }
}

#[test]
fn a_sender_whose_first_window_is_lost_asks_for_credit() {
    let mut scene = scene(2, RCCC);
    let mut first_time = first_time();
    scene.spoil(move |_, packet| if first_time(packet) { PacketFate::Drop } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 0, 1, packets(66));
    scene.run_until(ms(2));
    let asked = sent!(scene, Header::Rts(_));
    // The first packet times out when it has no credit left.
    assert_eq!(asked[0].0, Time::ZERO + RTO);
    // Credit comes right behind the acknowledgement of the request.
    assert_eq!(times(&scene, 0)[1], asked[0].0 + CONTROL_WAY * 2 + Duration::from_ps(3_200));
    assert!(scene.delivered_at(flow).is_some() && scene.completed_at(flow).is_some());
}

#[test]
fn what_makes_no_sense_is_counted_and_changes_nothing() {
    let mut scene = scene(3, RCCC);
    scene.touch(|now, packet| {
        if now > Time::from_us(3) && now < Time::from_us(8) {
            packet.set_header(match packet.header() {
                Header::Ack(ack) => Header::Ack(header::Ack { cumulative: 1_000_000, ..ack }),
                Header::Data(data) => Header::Data(header::Data { psn: data.psn + 1_000_000, ..data }),
                other => other,
            });
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(300));
    scene.run_until(ms(5));
    assert!(count(&scene, 0, "malformed") + count(&scene, 1, "malformed") > 0);
    assert_eq!(scene.events.iter().filter(|event| event.2 == Event::Delivered { flow }).count(), 1);
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn settings_without_sense_are_refused_and_those_without_effect_are_advice() {
    let refused = |config: Config, key: &str, word: &str| {
        let problem = config.check().expect_err(key);
        assert!(problem.key == key && problem.message.contains(word), "{problem}");
    };
    let idle = |config: Config, key: &str, word: &str| {
        assert_eq!(config.check(), Ok(()));
        let [problem] = &config.advice()[..] else { panic!("{:?}", config.advice()) };
        assert!(problem.key == key && problem.message.contains(word), "{problem}");
    };
    refused(Config { entropies: 48, ..RCCC }, "entropies", "power of two");
    refused(Config { entropies: 0, ..RCCC }, "entropies", "power of two");
    refused(Config { queue: Some(Bytes(0)), ..RCCC }, "queue", "between");
    idle(Config { queue: Some(Bytes(9_000)), trimming: false, ..RCCC }, "queue", "switch.buffer");
    refused(Config { ack_bytes: Bytes(0), ..RCCC }, "ack_bytes", "each packet");
    refused(Config { rto: Some(Duration::ZERO), ..RCCC }, "rto", "above 0");
    refused(Config { oversubscription: Some(0.5), ..RCCC }, "oversubscription", "1 (none)");
    idle(Config { oversubscription: Some(4.0), ..Config::default() }, "oversubscription", "rccc");
    idle(Config { initial_window: Some(Bytes(9_000)), ..RCCC }, "initial_window", "nscc");
    idle(Config { quick_adapt: false, ..RCCC }, "quick_adapt", "nscc");
}

/// A switch of two racks' network with UET's queues, which marks whatever it can.
fn switch(config: &Config) -> node::Switch {
    use node::balance::Balancer;
    use node::pool::Hop;
    let site = node::EndpointParams {
        host: HostId(0),
        hosts: 4,
        nic_rate: Rate::from_gbps(100),
        data_rtt: Duration::from_us(2),
        data_rtts: vec![(1, Duration::from_us(2)), (3, Duration::from_us(2))],
        control_rtt: Duration::from_us(2),
        mtu_bytes: 1500,
        header_bytes: 40,
        clock: node::Clock::default(),
        transport: 0,
    };
    let racks = fabric::LeafSpine { racks: 2, hosts_per_rack: 2, spines: 1, ..fabric::LeafSpine::default() };
    let network = NetworkView::new(fabric::FabricSpec::LeafSpine(racks).build().unwrap(), &site);
    let settings = node::Settings {
        buffer: node::Buffer::PerPort { bytes: Bytes(500_000) },
        overflow: node::Overflow::TailDrop,
        levels: Vec::new(),
        marking: vec![Some(Marking::Step { threshold: Bytes(1) })],
        mark_at: node::MarkAt::default(),
        early_drop: Vec::new(),
        header_bytes: 40,
    };
    let balancer = Balancer::new(Balancing::Ecmp, 1, units::Stream::new(1, 0, "balance"));
    let switch = node::Switch::new(
        SwitchId(0),
        (0..3).map(|_| node::Port::new(Rate::from_gbps(100), Hop::Last, &[])).collect(),
        network.routes.clone(),
        vec![balancer],
        std::sync::Arc::new(settings),
        units::Stream::new(1, 0, "switch"),
        None,
    );
    switch.with_flow_control(config.queueing(&network, SwitchId(0)))
}

#[test]
fn switches_say_whether_the_last_link_has_trimmed_and_mark_it_only_for_windows() {
    let config = Config { queue: Some(Bytes(3_000)), ..RCCC };
    for (config, marks) in
        [(config.clone(), false), (Config { congestion_control: CongestionControl::Nscc, ..config }, true)]
    {
        // To a host of its own rack, and to one of the other.
        for (to, last_hop) in [(HostId(1), true), (HostId(2), false)] {
            let (mut switch, mut pool) = (switch(&config), node::pool::Pool::default());
            for psn in 0..4 {
                let data = header::Data {
                    psn,
                    entropy: 0,
                    pull_target: 0,
                    message_bytes: 9_000,
                    offset: 0,
                    ack_request: false,
                    resent: false,
                    last_hop: false,
                };
                let mut packet = Packet::new(FlowId(0), HostId(0), to, Header::Data(data));
                (packet.wire_bytes, packet.payload_bytes, packet.class) = (1500, 1460, 1);
                packet.flags |= flags::ECT;
                let id = pool.insert(packet, node::pool::Transit::default());
                let received = switch.receive(Time::ZERO, units::PortId(0), &mut pool, id);
                let node::Received::Queued(out) = received else { panic!("{received:?}") };
                assert_eq!(out, units::PortId(to.0.min(2)));
            }
            let mut now = Time::ZERO;
            let mut seen = [0, 0];
            while let Some(id) = switch.transmit(now, units::PortId(to.0.min(2)), &mut pool) {
                now += PACKET;
                let packet = pool.remove(id).packet;
                let Header::Data(data) = packet.header() else { panic!("data") };
                let trimmed = packet.has(flags::TRIMMED);
                assert_eq!(data.last_hop, trimmed && last_hop);
                assert!(trimmed || packet.has(flags::CE) == (marks || !last_hop));
                seen[usize::from(trimmed)] += 1;
            }
            assert_eq!(seen, [2, 2]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..Default::default() })]

    /// Whatever befalls packets, each message is delivered once and completed once, and its receiver is not asked for
    /// more credit than its link can take.
    #[test]
    fn what_always_holds(
        seed: u32,
        flows in proptest::collection::vec((0u64..60, 0u32..4, 1u32..4, 1u64..300_000), 1..8),
        spoilt in 0u64..30,
        cut in 0u64..40,
        marked in 0u64..60,
        control in proptest::sample::select(vec![
            CongestionControl::Nscc, CongestionControl::Rccc, CongestionControl::Both
        ]),
        spraying in proptest::sample::select(vec![
            Spraying::Oblivious, Spraying::Bitmap, Spraying::Reps, Spraying::Mixed, Spraying::Switches
        ]),
        trimming: bool,
        ratio in 1.0f64..8.0,
    ) {
        let oversubscription = (control == CongestionControl::Rccc).then_some(ratio);
        let config =
            Config { congestion_control: control, spraying, trimming, oversubscription, ..Config::default() };
        assert_eq!(config.check(), Ok(()));
        let mut scene = scene(4, config);
        let mut random = units::Stream::new(u64::from(seed), 0, "fates");
        scene.spoil(move |_, _| match random.below(400) {
            at if at < spoilt => PacketFate::Drop,
            at if at < 2 * spoilt => PacketFate::Duplicate,
            at if at < 4 * spoilt => PacketFate::Delay(Duration::from_ns(random.below(6_000))),
            _ => PacketFate::Pass,
        });
        let mut random = units::Stream::new(u64::from(seed), 1, "cuts");
        scene.touch(move |_, packet| {
            if psn(packet).is_some() {
                match random.below(100) {
                    at if at < cut => {
                        if at % 2 == 0 {
                            trimmed_last_hop(packet);
                        }
                        trim(packet);
                    }
                    at if at < cut + marked => packet.flags |= flags::CE,
                    _ => {}
                }
            }
        });
        let sizes: Vec<u64> = flows.iter().map(|flow| flow.3).collect();
        let flows: Vec<FlowId> = flows
            .into_iter()
            .map(|(at, src, away, bytes)| scene.send(Time::from_us(at), src, (src + away) % 4, bytes))
            .collect();
        scene.run_until(ms(400));
        let said = |event: &dyn Fn(&Event) -> bool| scene.events.iter().filter(|said| event(&said.2)).count();
        for (&flow, bytes) in flows.iter().zip(sizes) {
            assert_eq!(said(&|event| *event == Event::Delivered { flow }), 1, "{flow:?} delivered");
            assert_eq!(said(&|event| matches!(event, Event::Completed { flow: of, .. } if *of == flow)), 1, "{flow:?}");
            // Every byte of it was sent, in packets of its own numbers.
            let own = scene.sent.iter().filter(|sent| sent.1.flow == flow).filter_map(|sent| psn(&sent.1));
            let own: BTreeSet<u64> = own.map(u64::from).collect();
            assert!(own.into_iter().eq(0..bytes.div_ceil(1_460)), "{flow:?}");
        }
        assert_eq!((0..4).map(|host| count(&scene, host, "malformed")).sum::<u64>(), 0);
        if control != CongestionControl::Nscc {
            let mut given = [0u64; 4];
            let first = scene.sent.first().map_or(Time::ZERO, |sent| sent.0);
            let pulls = credits(&scene);
            for (at, flow, more) in pulls {
                let to = scene.sent.iter().find(|sent| sent.1.flow == flow && psn(&sent.1).is_some());
                let host = to.expect("data before credit").1.dst.index();
                given[host] += more;
                let most = Rate::from_gbps(100).bytes_in(at.since(first)) + 4 * 1_460 + 256;
                assert!(given[host] <= most, "{at}: {} of {most}", given[host]);
            }
        }
    }
}
