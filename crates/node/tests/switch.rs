//! Scenes of one switch: what it does with packets that it is handed by hand.

use std::sync::Arc;

use clearway_node as node;
use fabric::{Fabric, FabricSpec, Failures, Routes};
use node::balance::Balancer;
use node::link::{Admission, Dequeued, LinkCx, QueueDiscipline, QueueView};
use node::packet::flags;
use node::pool::{Hop, PacketId, Pool, Transit};
use node::{
    AgentCx, Balancing, Buffer, EarlyDrop, Loss, MarkAt, Marking, Overflow, Packet, Port, Received, ReservedBuffer,
    Settings, Stages, Switch, SwitchAgent,
};
use units::{Bytes, Duration, FlowId, HostId, PortId, Rate, Stream, SwitchId, Time};

struct Scene {
    switch: Switch,
    pool: Pool,
    now: Time,
}

impl Scene {
    /// The middle of a star of four hosts.
    fn star(settings: Settings) -> Scene {
        let fabric = FabricSpec::Star(fabric::Star { hosts: 4, ..Default::default() }).build().unwrap();
        Scene::of(&fabric, SwitchId(0), settings, Balancing::Ecmp, None)
    }

    fn of(
        fabric: &Fabric,
        id: SwitchId,
        settings: Settings,
        balancing: Balancing,
        stages: Option<Box<dyn Stages>>,
    ) -> Scene {
        let ports = &fabric.ports[fabric.switch_node(id).index()];
        let switch = Switch::new(
            id,
            ports.iter().map(|_| Port::new(Rate::from_gbps(100), Hop::Last, &settings.levels)).collect(),
            Arc::new(Routes::compute(fabric, &Failures::default())),
            vec![Balancer::new(balancing, 7, Stream::new(1, 0, "balance"))],
            Arc::new(settings),
            Stream::new(1, 0, "mark"),
            stages,
        );
        Scene { switch, pool: Pool::default(), now: Time::ZERO }
    }

    fn receive(&mut self, packet: Packet) -> Received {
        let id = self.pool.insert(packet, Transit::default());
        self.switch.receive(self.now, PortId(0), &mut self.pool, id)
    }

    /// Sends all that waits at a port and gives it in order.
    fn drain(&mut self, port: u32) -> Vec<Packet> {
        let mut sent = Vec::new();
        while let Some(id) = self.transmit(port) {
            sent.push(self.pool.remove(id).packet);
        }
        sent
    }

    fn transmit(&mut self, port: u32) -> Option<PacketId> {
        self.now = self.now.max(self.switch.port(PortId(port)).free_at());
        self.switch.transmit(self.now, PortId(port), &mut self.pool)
    }
}

fn settings() -> Settings {
    Settings {
        buffer: Buffer::PerPort { bytes: Bytes(15_000) },
        overflow: Overflow::TailDrop,
        levels: Vec::new(),
        marking: vec![None],
        mark_at: MarkAt::default(),
        early_drop: Vec::new(),
        header_bytes: 40,
    }
}

fn packet(flow: u32, dst: u32, class: u8) -> Packet {
    let mut packet = Packet::bare(FlowId(flow), HostId(0), HostId(dst));
    (packet.wire_bytes, packet.payload_bytes, packet.class) = (1500, 1460, class);
    packet
}

fn flows(packets: &[Packet]) -> Vec<u32> {
    packets.iter().map(|packet| packet.flow.0).collect()
}

#[test]
fn lower_classes_go_first_and_each_class_is_in_order() {
    let mut scene = Scene::star(settings());
    for (flow, class) in [(0, 7), (1, 3), (2, 0), (3, 3), (4, 7)] {
        assert_eq!(scene.receive(packet(flow, 1, class)), Received::Queued(PortId(1)));
    }
    assert_eq!(flows(&scene.drain(1)), [2, 1, 3, 0, 4]);
    // Five packets of 120 ns each: the transmitter takes them one after the other.
    assert_eq!(scene.switch.port(PortId(1)).free_at(), Time::from_ns(5 * 120));
}

#[test]
fn classes_of_one_level_share_by_bytes_whatever_their_packet_sizes() {
    let mut scene = Scene::star(Settings {
        levels: vec![vec![2, 5]],
        buffer: Buffer::PerPort { bytes: Bytes(10_000_000) },
        ..settings()
    });
    for flow in 0..2_000 {
        scene.receive(packet(flow, 1, 2));
        let mut small = packet(flow, 1, 5);
        small.wire_bytes = 300;
        for _ in 0..5 {
            scene.receive(small);
        }
    }
    let mut bytes = [0u32; 8];
    for _ in 0..6_000 {
        let id = scene.transmit(1).unwrap();
        let packet = scene.pool.remove(id).packet;
        bytes[packet.class as usize] += u32::from(packet.wire_bytes);
    }
    let share = f64::from(bytes[2]) / f64::from(bytes[2] + bytes[5]);
    // Deficit round robin is fair within one quantum (9,216 B) a class.
    assert!((share - 0.5).abs() < 2.0 * 9_216.0 / f64::from(bytes[2] + bytes[5]), "{share}");
}

#[test]
fn a_full_port_drops_at_the_tail_and_counts_every_byte() {
    let mut scene = Scene::star(settings());
    let received: Vec<Received> = (0..12).map(|flow| scene.receive(packet(flow, 1, 1))).collect();
    assert_eq!(
        received.iter().filter(|r| **r == Received::Lost(Loss::Overflow, Some(PortId(1)))).count(),
        2,
        "15,000 B hold ten"
    );
    let stats = scene.switch.port(PortId(1)).stats;
    assert_eq!((stats.overflow_packets, stats.overflow_bytes, stats.queued_bytes_max), (2, 3_000, 15_000));
    assert_eq!(scene.receive(packet(20, 2, 1)), Received::Queued(PortId(2)), "other ports have their own buffer");
    assert_eq!(flows(&scene.drain(1)), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_shared_buffer_lets_one_queue_take_alpha_over_one_plus_alpha() {
    // Choudhury and Hahne: a lone queue settles at alpha (B - q), so q = B alpha / (1 + alpha).
    for (alpha, share) in [(1.0f64, 0.5f64), (2.0, 2.0 / 3.0), (0.5, 1.0 / 3.0)] {
        let buffer = Buffer::Shared { bytes: Bytes(1_500_000), alpha: Some(alpha) };
        let mut scene = Scene::star(Settings { buffer, ..settings() });
        let mut held = 0.0f64;
        while scene.receive(packet(0, 1, 1)) == Received::Queued(PortId(1)) {
            held += 1_500.0;
        }
        assert!((held - share * 1_500_000.0).abs() <= 1_500.0 * (1.0 + alpha), "{alpha}: {held}");
        // The rest is for others: a second queue still finds room.
        assert_eq!(scene.receive(packet(1, 2, 1)), Received::Queued(PortId(2)));
    }
}

#[test]
fn the_first_classes_always_have_the_room_that_is_kept_for_them() {
    let kept = ReservedBuffer { guaranteed: 1, reserved: 1, port_bytes: vec![0, 4_500, 3_000, 0] };
    let fill = |buffer| {
        let mut scene = Scene::star(Settings { buffer, ..settings() });
        scene.switch = scene.switch.with_reserved_buffer(Some(kept.clone()));
        let mut taken = |class, dst| {
            let queued = |_: &u32| matches!(scene.receive(packet(0, dst, class)), Received::Queued(_));
            (0..100).take_while(queued).count()
        };
        // Others first, as many as are let in; then the first class.
        [taken(7, 1), taken(7, 2), taken(0, 1), taken(0, 2)]
    };
    // Of ten packets, three are kept at one port and two at the other.
    assert_eq!(fill(Buffer::PerPort { bytes: Bytes(15_000) }), [7, 8, 3, 2]);
    assert_eq!(fill(Buffer::Shared { bytes: Bytes(15_000), alpha: None }), [5, 0, 5, 0]);
    // alpha holds back the others alone: of the five packets that are theirs the first queue may be half of four, the
    // second half of three.
    assert_eq!(fill(Buffer::Shared { bytes: Bytes(15_000), alpha: Some(0.5) }), [2, 1, 7, 0]);
}

#[test]
fn signals_have_room_that_is_not_for_others_and_none_of_what_is_guaranteed() {
    let kept = ReservedBuffer { guaranteed: 1, reserved: 2, port_bytes: vec![3_000; 4] };
    let mut scene = Scene::star(settings());
    scene.switch = scene.switch.with_reserved_buffer(Some(kept));
    let mut taken =
        |class| (0..100).take_while(|_| matches!(scene.receive(packet(0, 1, class)), Received::Queued(_))).count();
    // Of ten packets, two are for what is guaranteed and two more for signals.
    assert_eq!([taken(2), taken(1), taken(2), taken(0), taken(1)], [6, 2, 0, 2, 0]);
    assert_eq!(scene.switch.overflow_by_class()[..3], [1, 2, 2]);
}

#[test]
fn push_out_loses_the_last_packet_of_the_least_urgent_class() {
    let mut scene = Scene::star(Settings { overflow: Overflow::PushOut, ..settings() });
    for flow in 0..10 {
        scene.receive(packet(flow, 1, if flow < 5 { 3 } else { 6 }));
    }
    assert_eq!(scene.receive(packet(10, 1, 1)), Received::Queued(PortId(1)));
    assert_eq!(
        scene.receive(packet(11, 1, 6)),
        Received::Lost(Loss::Overflow, Some(PortId(1))),
        "no class is less urgent"
    );
    assert_eq!(flows(&scene.drain(1)), [10, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(scene.switch.used_bytes(), 0);
}

#[test]
fn trimming_sends_the_headers_on_first() {
    let mut scene = Scene::star(Settings {
        overflow: Overflow::Trim,
        buffer: Buffer::PerPort { bytes: Bytes(15_100) },
        ..settings()
    });
    for flow in 0..11 {
        assert_eq!(scene.receive(packet(flow, 1, 3)), Received::Queued(PortId(1)));
    }
    let sent = scene.drain(1);
    assert_eq!((sent[0].flow.0, sent[0].wire_bytes, sent[0].payload_bytes), (10, 40, 0));
    assert!(sent[0].has(flags::TRIMMED));
    let stats = scene.switch.port(PortId(1)).stats;
    assert_eq!((stats.trimmed_packets, stats.overflow_packets, stats.overflow_bytes), (1, 0, 1_460));
}

#[test]
fn a_step_marks_those_that_join_a_queue_beyond_the_threshold() {
    let marking = Marking::Step { threshold: Bytes(4_500) };
    let mut scene = Scene::star(Settings { marking: vec![Some(marking)], ..settings() });
    for flow in 0..6 {
        let mut capable = packet(flow, 1, 1);
        capable.flags |= flags::ECT;
        scene.receive(capable);
    }
    scene.receive(packet(6, 1, 1));
    let marked: Vec<bool> = scene.drain(1).iter().map(|packet| packet.has(flags::CE)).collect();
    // Three packets are 4,500 B; the fourth joins beyond. The last is not ECN-capable.
    assert_eq!(marked, [false, false, false, true, true, true, false]);
}

#[test]
fn at_departure_what_is_left_behind_counts() {
    let marking = Some(Marking::Step { threshold: Bytes(4_500) });
    let settings = Settings { marking: vec![marking], mark_at: MarkAt::Departure, ..settings() };
    let mut scene = Scene::star(settings);
    for flow in 0..6 {
        let mut capable = packet(flow, 1, 1);
        capable.flags |= flags::ECT;
        scene.receive(capable);
    }
    let marked: Vec<bool> = scene.drain(1).iter().map(|packet| packet.has(flags::CE)).collect();
    // They leave behind five packets, four, then the 4,500 B that are no more than the threshold.
    assert_eq!(marked, [true, true, false, false, false, false]);
}

#[test]
fn a_ramp_scales_with_the_rate_of_the_link() {
    // Ports have 100 Gbps, so that a queue counts half.
    let per = Some(Rate::from_gbps(50));
    let marking = Marking::Ramp { min: Bytes(1_500), max: Bytes(3_000), probability_max: 0.8, per };
    // 0.5, 1, 1.5, 2 and 2.5 packets: from 1 to 2 the probability rises to 0.8.
    marks_with(marking, [0.0, 0.0, 0.4, 0.8, 1.0]);
}

#[test]
fn a_ramp_marks_with_the_probability_of_its_line() {
    let marking = Marking::Ramp { min: Bytes(1_500), max: Bytes(6_000), probability_max: 0.6, per: None };
    // The n-th packet makes the queue n x 1,500 B long: 0, 1/3, 2/3 and all of 0.6; then beyond the ramp.
    marks_with(marking, [0.0, 0.2, 0.4, 0.6, 1.0]);
}

#[test]
fn a_gentle_ramp_goes_on_to_twice_its_end() {
    let marking = Marking::GentleRamp { min: Bytes(1_500), max: Bytes(3_000), probability_max: 0.2 };
    // From 3,000 to 6,000 B it rises from 0.2 to 1.
    marks_with(marking, [0.0, 0.2, 0.6, 1.0, 1.0]);
}

/// The shares of packets that are marked as the first, second, ... of a queue.
fn marks_with(marking: Marking, expected: [f64; 5]) {
    let mut scene = Scene::star(Settings { marking: vec![Some(marking)], ..settings() });
    let mut marks = [0u32; 5];
    let rounds = 4_000;
    for _ in 0..rounds {
        for flow in 0..5 {
            let mut capable = packet(flow, 1, 1);
            capable.flags |= flags::ECT;
            scene.receive(capable);
        }
        for packet in scene.drain(1) {
            marks[packet.flow.index()] += u32::from(packet.has(flags::CE));
        }
    }
    for (mark, expected) in marks.iter().zip(expected) {
        let (share, error) = (f64::from(*mark) / f64::from(rounds), (0.25 / f64::from(rounds)).sqrt());
        assert!((share - expected).abs() <= 4.0 * error, "{share} {expected}");
    }
}

#[test]
fn a_paused_class_holds_back_no_other() {
    let (mut port, mut pool) = (Port::new(Rate::from_gbps(100), Hop::Last, &[]), Pool::default());
    port.set_paused(1 << 2, Time::from_us(1));
    for (flow, class) in [(0, 2), (1, 5)] {
        let id = pool.insert(packet(flow, 1, class), Transit::default());
        port.push(Time::from_us(1), &mut pool, id);
    }
    let mut next = || port.take_next(&mut pool).map(|id| pool.get(id).packet.flow);
    assert_eq!((next(), next()), (Some(FlowId(1)), None));
    port.set_paused(0, Time::from_us(4));
    assert_eq!(port.take_next(&mut pool).map(|id| pool.get(id).packet.flow), Some(FlowId(0)));
    assert_eq!((port.stats.pauses, port.paused_time(Time::from_us(9))), (1, Duration::from_us(3)));
}

#[test]
fn a_dead_link_loses_what_waits_and_what_comes() {
    let mut scene = Scene::star(settings());
    scene.receive(packet(0, 1, 2));
    scene.switch.set_up(scene.now, PortId(1), false, &mut scene.pool);
    assert_eq!(scene.receive(packet(1, 1, 2)), Received::Lost(Loss::Dead, Some(PortId(1))));
    assert_eq!(scene.switch.port(PortId(1)).stats.dead_packets, 2);
    scene.switch.set_up(scene.now, PortId(1), true, &mut scene.pool);
    assert_eq!(scene.receive(packet(2, 1, 2)), Received::Queued(PortId(1)));
    assert!(scene.pool.len() == 1 && scene.switch.used_bytes() == 1_500);
}

#[test]
fn early_drop_by_port_counts_all_that_waits_there() {
    let at = Marking::Step { threshold: Bytes(6_000) };
    for (by_port, fate) in
        [(false, Received::Queued(PortId(1))), (true, Received::Lost(Loss::Overflow, Some(PortId(1))))]
    {
        let mut scene = Scene::star(Settings { early_drop: vec![Some(EarlyDrop { at, by_port })], ..settings() });
        for number in 0..4 {
            let class = if number < 2 { 5 } else { 6 };
            assert_eq!(scene.receive(packet(number, 1, class)), Received::Queued(PortId(1)), "6,000 bytes");
        }
        assert_eq!(scene.receive(packet(4, 1, 5)), fate);
    }
}

#[test]
fn what_cannot_be_marked_is_dropped_where_red_would_mark_it() {
    let marking = Marking::Step { threshold: Bytes(4_500) };
    let early_drop = vec![Some(EarlyDrop { at: marking, by_port: false })];
    let mut scene = Scene::star(Settings { marking: vec![Some(marking)], early_drop, ..settings() });
    let mut capable = packet(0, 1, 1);
    capable.flags |= flags::ECT;
    for _ in 0..3 {
        assert_eq!(scene.receive(packet(1, 1, 1)), Received::Queued(PortId(1)), "up to the threshold");
    }
    assert_eq!(scene.receive(packet(1, 1, 1)), Received::Lost(Loss::Overflow, Some(PortId(1))));
    assert_eq!(scene.receive(capable), Received::Queued(PortId(1)), "RFC 3168 section 5: marked instead");
    let sent = scene.drain(1);
    assert_eq!(sent.iter().map(|packet| packet.has(flags::CE)).collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn a_source_route_is_followed_hop_by_hop_and_a_wrong_one_is_lost() {
    let mut scene = Scene::star(settings());
    let mut routed = packet(0, 1, 1);
    routed.flags |= flags::SOURCE_ROUTED;
    (routed.label, routed.hops) = (0x03_02, 1);
    assert_eq!(scene.receive(routed), Received::Queued(PortId(3)), "the second hop's byte");
    routed.hops = 200;
    assert_eq!(scene.receive(routed), Received::Lost(Loss::NoRoute, None));
    (routed.label, routed.hops) = (0xFF, 0);
    assert_eq!(scene.receive(routed), Received::Lost(Loss::NoRoute, None), "no port 255");
}

#[test]
fn a_packet_ends_at_its_64th_switch_unless_paths_are_that_long() {
    let after = |scene: &mut Scene, hops: u8| {
        let mut packet = packet(0, 1, 1);
        packet.hops = hops;
        scene.receive(packet)
    };
    let mut scene = Scene::star(settings());
    assert_eq!(after(&mut scene, 62), Received::Queued(PortId(1)), "its 63rd");
    assert_eq!(after(&mut scene, 63), Received::Lost(Loss::Expired, Some(PortId(1))));
    assert_eq!(after(&mut scene, 255), Received::Lost(Loss::Expired, Some(PortId(1))));
    let stats = scene.switch.port(PortId(1)).stats;
    assert_eq!((stats.expired_packets, stats.expired_bytes), (2, 3_000));
    let mut long = Scene::star(settings());
    long.switch = long.switch.with_long_paths();
    assert_eq!(after(&mut long, 255), Received::Queued(PortId(1)));
}

/// What each of four spines gets of many flows, as shares.
fn shares(balancing: Balancing, packets_a_flow: u32) -> Vec<f64> {
    let fabric = FabricSpec::LeafSpine(fabric::LeafSpine::default()).build().unwrap();
    let mut scene = Scene::of(&fabric, SwitchId(0), settings(), balancing, None);
    let mut counts = vec![0.0; scene.switch.ports().len()];
    for flow in 0..4_000 {
        for _ in 0..packets_a_flow {
            let Received::Queued(port) = scene.receive(packet(flow, 100, 1)) else { panic!("lost") };
            counts[port.index()] += 1.0;
            scene.drain(port.0);
        }
    }
    let total: f64 = counts.iter().sum();
    counts.into_iter().filter(|&count| count > 0.0).map(|count| count / total).collect()
}

#[test]
fn a_turn_is_of_a_destination_or_of_the_link_that_packets_come_over() {
    // Packets of one link to hosts of two racks in turn. With a counter for each rack its packets take all four spines,
    // with one for the link every second spine.
    let of = |balancing| {
        let fabric = FabricSpec::LeafSpine(fabric::LeafSpine::default()).build().unwrap();
        let mut scene = Scene::of(&fabric, SwitchId(0), settings(), balancing, None);
        let mut ports = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
        for flow in 0..100u32 {
            let rack = flow as usize % 2;
            let Received::Queued(port) = scene.receive(packet(flow, [20, 100][rack], 1)) else { panic!("lost") };
            ports[rack].insert(port);
            scene.drain(port.0);
        }
        ports.map(|ports| ports.len())
    };
    assert_eq!(of(Balancing::RoundRobin), [4, 4]);
    assert_eq!(of(Balancing::RoundRobinByLink), [2, 2]);
}

#[test]
fn balancers_share_as_they_promise() {
    let error = 4.0 * (0.25f64 * 0.75 / 4_000.0).sqrt();
    for balancing in [Balancing::Ecmp, Balancing::Spray, Balancing::Drill { samples: 2, memory: 1 }] {
        let shares = shares(balancing, 1);
        assert!(
            shares.len() == 4 && shares.iter().all(|share| (share - 0.25).abs() < error),
            "{balancing:?} {shares:?}"
        );
    }
    assert_eq!(shares(Balancing::RoundRobin, 1), [0.25; 4]);
    assert_eq!(shares(Balancing::RoundRobinByLink, 1), [0.25; 4]);
    // 1, 1/2, 1/4, 1/8 of 15/8.
    let skewed = shares(Balancing::Skewed { skew: 0.5 }, 1);
    let expected = [8.0 / 15.0, 4.0 / 15.0, 2.0 / 15.0, 1.0 / 15.0];
    assert!(skewed.iter().zip(expected).all(|(share, expected)| (share - expected).abs() < error), "{skewed:?}");
}

#[test]
fn ecmp_keeps_a_flow_on_one_path_and_can_be_foretold() {
    let fabric = FabricSpec::LeafSpine(fabric::LeafSpine::default()).build().unwrap();
    let mut scene = Scene::of(&fabric, SwitchId(0), settings(), Balancing::Ecmp, None);
    let candidates = Routes::compute(&fabric, &Failures::default()).next(SwitchId(0), HostId(100)).to_vec();
    for flow in 0..100 {
        let sample = packet(flow, 100, 1);
        let index = (u64::from(node::balance::path_hash(&sample, 7)) * 4) >> 32;
        for _ in 0..3 {
            assert_eq!(scene.receive(sample), Received::Queued(candidates[index as usize]));
        }
        scene.drain(candidates[index as usize].0);
    }
}

#[test]
fn drill_avoids_the_long_queue() {
    let fabric = FabricSpec::LeafSpine(fabric::LeafSpine::default()).build().unwrap();
    let drill = Balancing::Drill { samples: 2, memory: 1 };
    let mut scene = Scene::of(&fabric, SwitchId(0), settings(), drill, None);
    // Nothing drains: queues stay within a packet of each other, since the shortest seen is always joined.
    for flow in 0..36 {
        scene.receive(packet(flow, 100, 1));
    }
    let queued: Vec<u32> = scene.switch.ports().iter().map(Port::queued_bytes).filter(|&bytes| bytes > 0).collect();
    assert_eq!(queued.len(), 4);
    assert!(queued.iter().max().unwrap() - queued.iter().min().unwrap() <= 3 * 1_500, "{queued:?}");
}

/// Nothing drains: the shortest queue of all is joined each time, so that queues differ by no more than a packet.
#[test]
fn adaptive_routing_joins_the_shortest_queue() {
    let fabric = FabricSpec::LeafSpine(fabric::LeafSpine::default()).build().unwrap();
    let mut scene = Scene::of(&fabric, SwitchId(0), settings(), Balancing::Adaptive { flowlet: Duration::ZERO }, None);
    for packets in 1..=36u32 {
        scene.receive(packet(7, 100, 1)); // one flow: each packet chooses
        let queued: Vec<u32> = scene.switch.ports().iter().map(Port::queued_bytes).filter(|&of| of > 0).collect();
        let whole = packets.div_ceil(4) * 1_500;
        assert_eq!((queued.iter().sum::<u32>(), *queued.iter().max().unwrap()), (packets * 1_500, whole));
    }
}

/// A flow keeps its port, however long the queue, until it has paused; then it takes the shortest.
#[test]
fn a_flowlet_stays_on_its_port() {
    let fabric = FabricSpec::LeafSpine(fabric::LeafSpine::default()).build().unwrap();
    let flowlet = Duration::from_us(50);
    let mut scene = Scene::of(&fabric, SwitchId(0), settings(), Balancing::Adaptive { flowlet }, None);
    let queues = |scene: &Scene| -> Vec<u32> {
        scene.switch.ports().iter().map(Port::queued_bytes).filter(|&of| of > 0).collect()
    };
    for _ in 0..8 {
        scene.receive(packet(7, 100, 1));
        scene.now += Duration::from_us(49);
    }
    assert_eq!(queues(&scene), [8 * 1_500]);
    scene.now += Duration::from_us(1);
    scene.receive(packet(7, 100, 1));
    let mut both = queues(&scene);
    both.sort_unstable();
    assert_eq!(both, [1_500, 8 * 1_500]);
}

#[test]
fn stages_see_every_packet_on_its_way_in_and_out() {
    /// Telemetry in the field for it, and a filter.
    #[derive(node::State)]
    #[state(refuse("a test does not say what of its state moves"))]
    struct Meter;
    impl Stages for Meter {
        fn ingress(&mut self, _: Time, _: PortId, out: &Port, packet: &mut Packet) -> bool {
            packet.flow.0 != 13 && out.queued_bytes() < 6_000
        }
        fn egress(&mut self, _: Time, _: PortId, out: &Port, packet: &mut Packet) -> bool {
            packet.virtual_delay_ns = out.queued_bytes();
            packet.flow.0 != 1
        }
    }
    let fabric = FabricSpec::Star(fabric::Star { hosts: 4, ..Default::default() }).build().unwrap();
    let mut scene = Scene::of(&fabric, SwitchId(0), settings(), Balancing::Ecmp, Some(Box::new(Meter)));
    assert_eq!(scene.receive(packet(13, 1, 1)), Received::Lost(Loss::Stage, Some(PortId(1))));
    for flow in 0..5 {
        scene.receive(packet(flow, 1, 1)); // the last finds the queue too long
    }
    let left_behind: Vec<u32> = scene.drain(1).iter().map(|packet| packet.virtual_delay_ns).collect();
    assert_eq!(left_behind, [4_500, 1_500, 0], "flow 1 goes no further than the egress stage");
    assert_eq!((scene.switch.staged_out, scene.switch.used_bytes()), ((3, 4_500), 0));
}

#[test]
fn an_agent_sees_what_asks_for_it_and_decides_where_that_goes() {
    /// Sends what it sees back to where it came from and on to its destination; ends the flow 13.
    #[derive(node::State)]
    #[state(refuse("a test does not say what of its state moves"))]
    struct Echo;
    impl SwitchAgent for Echo {
        fn handle(&mut self, cx: &mut AgentCx<'_>, in_port: PortId, packet: &mut Packet) -> Option<PortId> {
            if packet.flow.0 == 13 {
                return None;
            }
            cx.send(in_port, *packet);
            packet.class = 3;
            cx.routes.next(cx.switch, packet.dst).first().copied()
        }
    }
    let scene = Scene::star(settings());
    let agents = vec![Some((Box::new(Echo) as Box<dyn SwitchAgent>, Stream::new(1, 0, "agent")))];
    let mut scene = Scene { switch: scene.switch.with_agents(agents), ..scene };
    let alert = |flow| {
        let mut packet = packet(flow, 2, 1);
        packet.flags = flags::ROUTER_ALERT;
        packet
    };
    assert_eq!(scene.receive(packet(1, 1, 1)), Received::Queued(PortId(1)), "others pass");
    assert_eq!(scene.receive(alert(7)), Received::Queued(PortId(2)));
    assert_eq!((scene.switch.take_ready_port(), scene.switch.take_ready_port()), (Some(PortId(0)), None));
    assert_eq!(scene.receive(alert(13)), Received::Taken);
    let sent: Vec<(u32, u8)> =
        (0..3).flat_map(|port| scene.drain(port)).map(|packet| (packet.flow.0, packet.class)).collect();
    assert_eq!(sent, [(7, 1), (1, 1), (7, 3)]);
    assert_eq!((scene.switch.agents_bytes(), scene.pool.len()), ((1_500, 1_500), 0));
}

/// Queues that a transport brings: two packets a port; what comes then cuts off the last one's payload (flow 1), takes
/// its place (flow 2), is sent back to where it came from (flow 3), or is lost.
#[derive(node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct Two;

impl QueueDiscipline for Two {
    fn admit(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> Admission {
        let port = &mut cx.ports[out.index()];
        if port.queued_bytes() < 2 * 1_500 {
            return Admission::ByBuffer;
        }
        match cx.pool.get(id).packet.flow.0 {
            1 => {
                let last = port.push_out(0, cx.pool).expect("two wait");
                cx.trim_waiting(out, last);
                cx.ports[out.index()].push(cx.now, cx.pool, last);
                Admission::ByBuffer
            }
            2 => Admission::Evict(port.push_out(0, cx.pool).expect("two wait")),
            3 => {
                let packet = &mut cx.pool.get_mut(id).packet;
                (packet.src, packet.dst) = (packet.dst, packet.src);
                Admission::Redirect
            }
            _ => Admission::Full,
        }
    }

    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        cx.ports[out.index()].push(cx.now, cx.pool, id);
        cx.ports[out.index()].queued_bytes()
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let id = cx.ports[out.index()].take_next(cx.pool)?;
        Some(Dequeued { id, left_bytes: cx.ports[out.index()].queued_bytes() })
    }

    fn ready(&self, ports: &[Port], out: PortId) -> bool {
        ports[out.index()].has_sendable()
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        cx.ports[port.index()].drain(cx.pool)
    }

    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId> {
        cx.ports[port.index()].push_out(class, cx.pool)
    }

    fn queues(&self, _: &[Port], _: PortId, _: &mut dyn FnMut(QueueView)) {}
}

#[test]
fn queues_that_a_transport_brings_decide_who_has_room_and_bytes_are_counted() {
    let two = |wanted| {
        let Scene { switch, pool, now } = Scene::star(settings());
        let mut scene = Scene { switch: switch.with_flow_control(Some(Box::new(Two))), pool, now };
        for flow in [7, 8] {
            assert_eq!(scene.receive(packet(flow, 1, 3)), Received::Queued(PortId(1)));
        }
        let received = scene.receive(packet(wanted, 1, 3));
        let waiting: u64 = (0..4).map(|port| u64::from(scene.switch.port(PortId(port)).queued_bytes())).sum();
        assert_eq!(scene.switch.used_bytes(), waiting, "flow {wanted}");
        let stats = scene.switch.port(PortId(1)).stats;
        (received, scene, (stats.overflow_packets, stats.overflow_bytes, stats.trimmed_packets))
    };

    let (received, mut scene, counts) = two(1);
    assert_eq!((received, counts), (Received::Queued(PortId(1)), (0, 1_460, 1)), "1,460 of 1,500 bytes are cut off");
    let sent = scene.drain(1);
    assert_eq!(flows(&sent), [8, 7, 1], "headers go first");
    assert!(sent[0].has(flags::TRIMMED) && (sent[0].wire_bytes, sent[0].payload_bytes) == (40, 0));

    let (received, mut scene, counts) = two(2);
    assert_eq!((received, counts), (Received::Queued(PortId(1)), (1, 1_500, 0)));
    assert_eq!((flows(&scene.drain(1)), scene.pool.len()), (vec![7, 2], 0));

    let (received, mut scene, counts) = two(3);
    assert_eq!((received, counts), (Received::Queued(PortId(0)), (0, 0, 0)), "back to host 0");
    assert_eq!((flows(&scene.drain(0)), flows(&scene.drain(1))), (vec![3], vec![7, 8]));

    let (received, mut scene, counts) = two(4);
    assert_eq!((received, counts), (Received::Lost(Loss::Overflow, Some(PortId(1))), (1, 1_500, 0)));
    assert_eq!((flows(&scene.drain(1)), scene.pool.len()), (vec![7, 8], 0));
}
