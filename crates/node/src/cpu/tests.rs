//! Scenes of cores alone: what happens when, by hand.

use units::{Bytes, Duration, FlowId, HostId, Rate, Time};

use super::*;

fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

/// Packets on their way in are numbered by `class` and `dst`, so that their order can be told.
fn packet(flow: u32, number: u32) -> Packet {
    let mut packet = Packet::bare(FlowId(flow), HostId(0), HostId(number));
    (packet.wire_bytes, packet.payload_bytes) = (1_000, 960);
    packet
}

fn come(cpu: &mut Cpu, at: Time, flow: u32, number: u32) {
    cpu.arrive(at, Arrived { packet: packet(flow, number), transit: Transit::default(), telemetry: None });
}

/// Everything that is done, and when, if nothing else comes.
fn rest(cpu: &mut Cpu) -> Vec<(Time, Done)> {
    let mut all = Vec::new();
    while cpu.next_at() < Time::MAX {
        let now = cpu.next_at();
        all.extend(std::iter::from_fn(|| Some((now, cpu.next(now)?))));
    }
    all
}

/// When batches reach the protocol, and the numbers of their packets.
fn batches(cpu: &mut Cpu) -> Vec<(u64, Vec<u32>)> {
    let of = |(at, done): (Time, Done)| match done {
        Done::Packets(batch) => (at.ps() / 1_000, batch.iter().map(|of| of.packet.dst.0).collect()),
        other => panic!("{other:?}"),
    };
    rest(cpu).into_iter().map(of).collect()
}

/// Two flows that two cores share, by every hash that matters here.
fn apart() -> (u32, u32) {
    let of = |flow| (below(FlowId(flow), Spread::Rss, 2), below(FlowId(flow), Spread::HandOver, 2));
    let first = (0..).find(|&flow| of(flow) == (0, 0)).unwrap();
    (first, (0..).find(|&flow| of(flow) == (1, 1)).unwrap())
}

#[test]
fn a_lone_packet_passes_each_stage_once() {
    let spec = CpuSpec {
        pcie_rate: Some(Rate::from_gbps(8)),
        pcie_latency: Some(ns(300)),
        interrupt_moderation: Some(ns(5_000)),
        interrupt: Some(ns(900)),
        per_packet_receive: Some(ns(200)),
        hand_over: Some(ns(500)),
        per_batch_receive: Some(ns(1_000)),
        per_packet_send: Some(ns(400)),
        ..CpuSpec::default()
    };
    let mut cpu = Cpu::new(spec.costs(1_000));
    come(&mut cpu, Time::from_ns(70), 3, 1);
    // 1000 B at 8 Gbps are 1 us.
    let right = 70 + (1_000 + 300) + 5_000 + 900 + 200 + 500 + 1_000;
    assert_eq!(batches(&mut cpu), [(right, vec![1])]);

    cpu.send(packet(3, 2));
    cpu.hand_out(Time::from_ns(20_000));
    assert!(rest(&mut cpu).is_empty());
    assert_eq!(cpu.bus[1], Time::from_ns(20_000 + 400 + 1_000), "the bus out is another than the bus in");
    assert_eq!(cpu.pull().map(|packet| packet.dst), Some(HostId(2)));
    let both_ways = 2 * (1_000 + 300) + 5_000 + 900 + 200 + 500 + 1_000 + 400;
    assert_eq!(spec.costs(1_000).of_packet(1_000), ns(both_ways));
}

#[test]
fn a_lone_message_takes_its_threads_time_and_wakes_those_that_sleep() {
    let spec = CpuSpec {
        per_message_send: Some(ns(300)),
        per_message_receive: Some(ns(700)),
        wake_up: Some(ns(2_000)),
        polling: Some(ns(50_000)),
        ..CpuSpec::default()
    };
    let mut cpu = Cpu::new(spec.costs(1_000));
    cpu.submit(Time::ZERO, FlowId(0), 4);
    let done = rest(&mut cpu);
    assert!(matches!(done[..], [(at, Done::Submitted(FlowId(0), 4))] if at == Time::from_ns(300)), "{done:?}");
    for (now, right) in [(49_000, 49_700), (60_000, 60_700), (200_000, 202_700)] {
        cpu.read(Time::from_ns(now), Message { flow: FlowId(1), transport: 0, transit: None });
        assert_eq!(rest(&mut cpu)[0].0, Time::from_ns(right), "from {now}");
    }
    assert_eq!(spec.costs(1_000).of_message(), ns(1_000));
    assert_eq!(CpuSpec { polling: None, ..spec }.costs(1_000).of_message(), ns(3_000));
}

#[test]
fn two_flows_take_half_as_long_on_two_cores() {
    let (one, other) = apart();
    let spec = |cores| CpuSpec { cores: Some(cores), per_packet_receive: Some(ns(100)), ..CpuSpec::default() };
    let time = |cores, flows: [u32; 2]| {
        let mut cpu = Cpu::new(spec(cores).costs(1_000));
        for number in 0..100 {
            come(&mut cpu, Time::ZERO, flows[number as usize % 2], number);
        }
        batches(&mut cpu).last().unwrap().0
    };
    assert_eq!(time(1, [one, other]), 10_000);
    assert_eq!(time(2, [one, one]), 10_000);
    assert_eq!(time(2, [one, other]), 5_000);
}

#[test]
fn a_core_is_slower_while_its_sibling_works_or_polls() {
    let (one, other) = apart();
    let spec = CpuSpec {
        cores: Some(2),
        sibling_slowdown: Some(1.5),
        per_packet_receive: Some(ns(1_000)),
        polling: Some(ns(50_000)),
        ..CpuSpec::default()
    };
    // The second begins while the first works, and goes on at the pace at which it began.
    let mut cpu = Cpu::new(spec.costs(1_000));
    come(&mut cpu, Time::ZERO, one, 1);
    assert!(cpu.next(Time::from_ns(400)).is_none());
    come(&mut cpu, Time::from_ns(400), other, 2);
    assert_eq!(batches(&mut cpu), [(1_000, vec![1]), (1_900, vec![2])]);
    // Thread 0, on core 0, polls from 10 us to 60 us. Core 1 is slower until then, and core 0 itself is not.
    cpu.read(Time::from_ns(10_000), Message { flow: FlowId(0), transport: 0, transit: None });
    rest(&mut cpu);
    for (flow, at, right) in [(one, 20_000, 21_000), (other, 30_000, 31_500), (other, 60_000, 61_000)] {
        come(&mut cpu, Time::from_ns(at), flow, 3);
        assert_eq!(batches(&mut cpu), [(right, vec![3])], "at {at}");
    }
    // Of an odd number the last has no sibling.
    let mut cpu = Cpu::new(CpuSpec { cores: Some(1), ..spec }.costs(1_000));
    come(&mut cpu, Time::ZERO, one, 1);
    assert_eq!(batches(&mut cpu), [(1_000, vec![1])]);
}

#[test]
fn packets_that_come_while_the_nic_holds_its_interrupt_back_are_one_batch() {
    let spec = CpuSpec {
        interrupt_moderation: Some(ns(5_000)),
        interrupt: Some(ns(1_000)),
        per_packet_receive: Some(ns(100)),
        per_batch_receive: Some(ns(2_000)),
        gro: Some(64),
        ..CpuSpec::default()
    };
    // The last comes after the interrupt, while the core works for the others: it is polled without an interrupt, and
    // takes its turn behind them.
    let mut cpu = Cpu::new(spec.costs(1_000));
    (0..5).for_each(|number| come(&mut cpu, Time::from_ns(u64::from(number) * 1_000), 0, number));
    (0..20).for_each(|_| assert!(cpu.next(Time::from_ns(5_500)).is_none()));
    come(&mut cpu, Time::from_ns(5_500), 0, 5);
    let first = 5_000 + 1_000 + 5 * 100 + 2_000;
    assert_eq!(batches(&mut cpu), [(first, vec![0, 1, 2, 3, 4]), (first + 100 + 2_000, vec![5])]);

    // Without moderation each has an interrupt of its own, as it comes alone.
    let mut cpu = Cpu::new(CpuSpec { interrupt_moderation: None, ..spec }.costs(1_000));
    let alone = |number: u32| u64::from(number) * 10_000 + 1_000 + 100 + 2_000;
    let mut all = Vec::new();
    for number in 0..3 {
        come(&mut cpu, Time::from_ns(u64::from(number) * 10_000), 0, number);
        all.extend(batches(&mut cpu));
    }
    assert_eq!(all, (0..3).map(|number| (alone(number), vec![number])).collect::<Vec<_>>());
}

#[test]
fn a_batch_has_as_many_packets_as_gro_says_of_one_flow_and_no_acknowledgement() {
    let batch = ns(1_000);
    let spec = CpuSpec { per_batch_receive: Some(batch), gro: Some(3), ..CpuSpec::default() };
    let mut cpu = Cpu::new(spec.costs(1_000));
    (0..7).for_each(|number| come(&mut cpu, Time::ZERO, 0, number));
    let right = [(1_000, vec![0, 1, 2]), (2_000, vec![3, 4, 5]), (3_000, vec![6])];
    assert_eq!(batches(&mut cpu), right);

    let mut cpu = Cpu::new(CpuSpec { interrupt_moderation: Some(ns(1)), ..spec }.costs(1_000));
    for (number, (flow, payload)) in (0..).zip([(0, 960), (1, 960), (0, 960), (0, 0), (0, 960), (1, 960)]) {
        let mut packet = packet(flow, number);
        packet.payload_bytes = payload;
        cpu.arrive(Time::ZERO, Arrived { packet, transit: Transit::default(), telemetry: None });
    }
    let order: Vec<_> = batches(&mut cpu).into_iter().map(|batch| batch.1).collect();
    assert_eq!(order, [vec![0, 2], vec![1, 5], vec![3], vec![4]]);
}

#[test]
fn a_batch_to_the_nic_costs_once_and_the_bus_bounds_the_rate() {
    let spec = CpuSpec {
        per_packet_send: Some(ns(500)),
        tso: Some(Bytes(3_500)),
        nic_queue: Some(Bytes(100_000)),
        pcie_rate: Some(Rate::from_gbps(8)),
        ..CpuSpec::default()
    };
    let mut cpu = Cpu::new(spec.costs(1_000));
    for number in 0..7 {
        cpu.send(packet(u32::from(number == 6), number));
    }
    cpu.hand_out(Time::ZERO);
    // Batches of 3, 3 and 1 packets: 500 ns each of the core, and 1 us a packet of the bus, which is the slower one.
    let mut out = Vec::new();
    while cpu.next_at() < Time::MAX {
        let now = cpu.next_at();
        assert!(cpu.next(now).is_none());
        out.extend(std::iter::from_fn(|| cpu.pull()).map(|packet| (now.ps() / 1_000, packet.dst.0)));
    }
    assert_eq!(out, (0..7).map(|number| (1_500 + 1_000 * u64::from(number), number)).collect::<Vec<_>>());
}

#[test]
fn transports_are_not_asked_while_the_queue_to_the_link_is_full() {
    let spec = CpuSpec { nic_queue: Some(Bytes(2_500)), ..CpuSpec::default() };
    let mut cpu = Cpu::new(spec.costs(1_000));
    assert_eq!(cpu.room(), 2_500);
    (0..3).for_each(|number| cpu.send(packet(0, number)));
    assert_eq!(cpu.room(), 0, "the third began below the limit");
    cpu.hand_out(Time::ZERO);
    rest(&mut cpu);
    assert!(cpu.pull().is_some());
    assert_eq!(cpu.room(), 500);
    let mut cpu = Cpu::new(CpuSpec { tso: Some(Bytes(9_000)), ..spec }.costs(1_000));
    (0..2).for_each(|number| cpu.send(packet(0, number)));
    assert_eq!(cpu.room(), 9_000, "a whole batch");
    // A batch for each of four cores, and two packets.
    assert_eq!(
        CpuSpec { cores: Some(4), tso: Some(Bytes(9_000)), ..CpuSpec::default() }.costs(1_000).nic_queue,
        38_000
    );
}

#[test]
fn kernels_go_before_threads_and_nothing_is_broken_off() {
    let spec = CpuSpec { per_message_send: Some(ns(1_000)), per_packet_receive: Some(ns(100)), ..CpuSpec::default() };
    let mut cpu = Cpu::new(spec.costs(1_000));
    cpu.submit(Time::ZERO, FlowId(0), 0);
    cpu.submit(Time::ZERO, FlowId(1), 0);
    come(&mut cpu, Time::from_ns(400), 0, 7);
    let order: Vec<_> = rest(&mut cpu).into_iter().map(|(at, done)| (at.ps() / 1_000, format!("{done:.9?}"))).collect();
    let times: Vec<_> = order.iter().map(|of| of.0).collect();
    assert_eq!(times, [1_000, 1_100, 2_100], "{order:?}");
    assert!(order[1].1.starts_with("Packets"), "{order:?}");
}

#[test]
fn a_message_waits_for_the_idlest_thread_of_its_socket() {
    let spec = CpuSpec { cores: Some(4), threads: Some(4), per_message_receive: Some(ns(1_000)), ..CpuSpec::default() };
    let times = |ports| {
        let mut cpu = Cpu::new(CpuSpec { ports: Some(ports), ..spec }.costs(1_000));
        for _ in 0..4 {
            cpu.read(Time::ZERO, Message { flow: FlowId(9), transport: 0, transit: None });
        }
        rest(&mut cpu).into_iter().map(|done| done.0.ps() / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(times(4), [1, 2, 3, 4]);
    assert_eq!(times(2), [1, 1, 2, 2]);
    assert_eq!(times(1), [1, 1, 1, 1]);
}

#[test]
fn what_is_wrong_names_its_key() {
    let wrong = |spec: CpuSpec| spec.check().unwrap_err().to_string();
    assert!(wrong(CpuSpec { pcie_rate: Some(Rate::ZERO), ..CpuSpec::default() }).contains("pcie_rate"));
    assert!(wrong(CpuSpec { nic_queue: Some(Bytes(0)), ..CpuSpec::default() }).contains("nic_queue"));
    let many = wrong(CpuSpec { ports: Some(7), threads: Some(6), ..CpuSpec::default() });
    assert!(many.contains("ports") && many.contains("at most 6"), "{many}");
    let idle = CpuSpec { gro: Some(2), tso: Some(Bytes(9_000)), polling: Some(ns(1)), ..CpuSpec::default() };
    let keys: Vec<_> = idle.advice().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["gro", "tso", "polling"]);
    let like = CpuSpec { like: Some(CpuLike::LinuxXl170), ..idle };
    assert!(like.advice().is_empty());
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever comes when: each packet comes out once, those of a flow in their order, and a core is busy for
        /// exactly as long as its work takes; a single one is never idle while something waits.
        #[test]
        fn nothing_is_lost_or_overtaken_and_no_core_idles(
            comes in prop::collection::vec((0u64..3_000, 0u32..5), 1..200),
            cores in 1u32..5,
            hand_over in 0u64..2,
            gro in 1u32..5,
        ) {
            let spec = CpuSpec {
                cores: Some(cores),
                per_packet_receive: Some(ns(150)),
                per_batch_receive: Some(ns(400)),
                hand_over: Some(ns(hand_over * 300)),
                gro: Some(gro),
                ..CpuSpec::default()
            };
            let mut cpu = Cpu::new(spec.costs(1_000));
            let mut now = Time::ZERO;
            let (mut out, mut last) = (Vec::new(), Time::ZERO);
            let mut batches = 0u64;
            let mut take = |cpu: &mut Cpu, until: Time| {
                while cpu.next_at() <= until {
                    let at = cpu.next_at();
                    while let Some(done) = cpu.next(at) {
                        let Done::Packets(batch) = done else { panic!("{done:?}") };
                        batches += 1;
                        last = at;
                        out.extend(batch.iter().map(|of| (of.packet.flow, of.packet.dst.0)));
                    }
                }
            };
            for (number, (gap, flow)) in (0..).zip(&comes) {
                now += ns(*gap);
                // All of one instant that has come before is done.
                take(&mut cpu, now);
                come(&mut cpu, now, *flow, number);
            }
            take(&mut cpu, Time::from_ms(1_000));
            prop_assert_eq!(out.len(), comes.len());
            for flow in 0..5 {
                let numbers: Vec<_> = out.iter().filter(|of| of.0 == FlowId(flow)).map(|of| of.1).collect();
                prop_assert!(numbers.is_sorted(), "{:?}", numbers);
            }
            if cores == 1 && hand_over == 0 && comes.iter().all(|(gap, _)| *gap < 150) {
                let begun = ns(comes[0].0);
                let work = ns(150) * comes.len() as u64 + ns(400) * batches;
                prop_assert_eq!(last, Time::ZERO + begun + work);
            }
        }
    }
}
