use std::collections::BTreeSet;

use proptest::prelude::*;
use units::Stream;

use super::*;

#[test]
fn a_lone_packet_takes_the_unloaded_round_trip() {
    let mut scene = scene(2, Wire::default(), LineRate::default());
    let flow = scene.send(Time::ZERO, 0, 1, MSS);
    scene.run_until(Time::from_ms(50));
    assert_eq!(scene.delivered_at(flow), Some(Time::from_ns(2_740)));
    assert_eq!(scene.completed_at(flow), Some(Time::ZERO + RTT));
    assert_eq!(scene.sent.len(), 2);
}

#[test]
fn packets_and_answers_are_as_long_as_is_said() {
    /// Payload of a full packet, its bytes on the wire, those of an answer.
    fn lengths<A: Algorithm>(config: Config<A>) -> (u16, u16, u16) {
        let mut scene = scene(2, Wire::default(), config);
        let flow = scene.send(Time::ZERO, 0, 1, 10 * MSS);
        scene.run_until(Time::from_ms(50));
        assert!(scene.completed_at(flow).is_some());
        let full = scene.sent.iter().map(|sent| sent.1).find(|packet| packet.payload_bytes > 0).unwrap();
        let answer = scene.sent.iter().map(|sent| sent.1).find(|packet| packet.payload_bytes == 0).unwrap();
        (full.payload_bytes, full.wire_bytes, answer.wire_bytes)
    }
    let beyond = hpcc::Config { telemetry_beyond_mtu: true, ..hpcc::Config::default() };
    assert_eq!(lengths(LineRate::default()), (1_460, 1_500, 40));
    assert_eq!(lengths(LineRate { ack_bytes: Some(Bytes(84)), ..LineRate::default() }), (1_460, 1_500, 84));
    assert_eq!(lengths(Hpcc::default()), (1_418, 1_500, 82));
    let ack_bytes = Some(Bytes(112));
    assert_eq!(lengths(Hpcc { control: beyond, ack_bytes, ..Hpcc::default() }), (1_460, 1_542, 112));
    let error = LineRate { ack_bytes: Some(Bytes(10)), ..LineRate::default() }.check().unwrap_err();
    assert_eq!((error.key.as_str(), error.message.as_str()), ("ack_bytes", "10B is not between 20B and 1500B"));
}

#[test]
fn a_new_queue_pair_waits_for_half_of_the_others_by_age_and_for_all_in_line() {
    // Ten messages of many packets take turns; the eleventh begins while the fifth sends for the third time.
    for (turns, others) in [(Turns::InLine, 10), (Turns::ByAge, 5)] {
        let mut scene = scene(2, Wire::default(), LineRate { turns, ..LineRate::default() });
        let begun = Time::ZERO + PACKET * 24 + Duration::from_ns(1);
        (0..10).for_each(|_| _ = scene.send(Time::ZERO, 0, 1, 40 * MSS));
        let late = scene.send(begun, 0, 1, MSS);
        scene.run_until(Time::from_ms(50));
        // The 25th packet is on its way then.
        let left = data::<Header>(&scene, late)[0].0;
        assert_eq!(left, Time::ZERO + PACKET * (25 + others), "{turns:?}");
    }
}

#[test]
fn a_lone_flow_goes_at_line_rate_under_any_control() {
    fn check<A: Algorithm>(config: Config<A>) {
        let mut scene = scene(2, Wire::default(), config);
        let flow = scene.send(Time::ZERO, 0, 1, 1_000 * MSS);
        scene.run_until(Time::from_ms(50));
        // The window of one product never closes: 1,000 packets, one link and one way more.
        let last = Time::ZERO + PACKET * 1_001 + Duration::from_ns(2_500);
        assert_eq!(scene.delivered_at(flow), Some(last));
        assert!(data::<Header>(&scene, flow).windows(2).all(|pair| pair[1].0 - pair[0].0 == PACKET));
        assert_eq!(counter(&scene, 0, "retransmissions"), 0);
        assert_eq!(scene.queue_bytes_peak[1], 1_500);
    }
    check(LineRate::default());
    check(LineRate { window: Window::Unlimited, ..LineRate::default() });
    check(LineRate { recovery: IRN, ..LineRate::default() });
    check(Dcqcn::default());
    check(Timely::default());
}

#[test]
fn a_window_of_half_a_product_halves_the_rate() {
    // 32,790 B open for 23 packets of 1,460 B a round trip.
    for window in [Window::Fixed { bdps: 0.5 }, Window::Variable { bdps: 0.5 }] {
        let mut scene = scene(2, Wire::default(), LineRate { window, ..LineRate::default() });
        let flow = scene.send(Time::ZERO, 0, 1, 1_000 * MSS);
        scene.run_until(Time::from_ms(50));
        let sent = data::<Header>(&scene, flow);
        for round in 0..10u32 {
            assert_eq!(sent[23 * round as usize].0, Time::ZERO + RTT * u64::from(round));
        }
        assert_eq!(in_flight_peak(&scene, flow), 23 * MSS);
    }
}

#[test]
fn what_is_in_flight_in_an_incast_is_a_window_a_flow() {
    let mut scene = scene(9, Wire::default(), LineRate::default());
    let flows: Vec<FlowId> = (1..9).map(|src| scene.send(Time::ZERO, src, 0, 200 * MSS)).collect();
    scene.run_until(Time::from_ms(50));
    // The first queue: 8 windows less what leaves while they come, each of 45 packets (45 x 1,460 B is the first above
    // one product).
    assert!(BDP.div_ceil(MSS) == 45);
    assert!(scene.queue_bytes_peak[0] <= 8 * 45 * 1500);
    assert!(scene.queue_bytes_peak[0] >= 7 * 45 * 1500);
    for flow in flows {
        assert_eq!(in_flight_peak(&scene, flow), 45 * MSS);
        assert!(scene.completed_at(flow).is_some());
    }
    // The link is never idle: 1,600 packets, one link and one way.
    let last =
        scene.events.iter().filter(|event| matches!(event.2, Event::Delivered { .. })).map(|event| event.0).max();
    assert_eq!(last, Some(Time::ZERO + PACKET * 1_601 + Duration::from_ns(2_500)));
}

#[test]
fn flows_of_a_host_take_turns_by_packet() {
    let mut scene = scene(3, Wire::default(), LineRate::default());
    for dst in [1, 2, 1] {
        scene.send(Time::ZERO, 0, dst, 100 * MSS);
    }
    scene.run_until(Time::from_us(30));
    let turns: Vec<u32> = scene.sent.iter().filter(|s| s.1.src == HostId(0)).map(|s| s.1.flow.0).collect();
    // The first packet leaves when the first flow is there alone.
    assert!(turns[1..240].windows(3).all(|three| BTreeSet::from_iter(three).len() == 3), "{turns:?}");
}

#[test]
fn acknowledgements_go_first_and_in_their_own_class() {
    let mut scene = scene(2, Wire::default(), LineRate::default());
    scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.send(Time::ZERO, 1, 0, 100 * MSS);
    scene.run_until(Time::from_ms(50));
    assert!(scene.sent.iter().all(|sent| sent.1.class == if sent.1.payload_bytes > 0 { 3 } else { 0 }));
    // No answer waits for more than the packet that is on the wire when it is due: a packet a PACKET comes in.
    for host in 0..2 {
        let answers: Vec<Time> =
            scene.sent.iter().filter(|s| s.1.src == HostId(host) && s.1.payload_bytes == 0).map(|s| s.0).collect();
        assert_eq!(answers.len(), 100);
        for (n, at) in answers.iter().enumerate() {
            // Data of the other side leaves behind answers of 3.2 ns each, so its arrivals drift by as much.
            let due = Time::ZERO + Duration::from_ns(2_740) + (PACKET + Duration::from_ps(3_200)) * n as u64;
            assert!(*at <= due + PACKET, "host {host}, answer {n}: {at} {due}");
        }
    }
}

#[test]
fn a_paused_class_holds_data_and_lets_acknowledgements_go() {
    let mut scene = scene(2, Wire::default(), LineRate::default());
    let (there, back) = (scene.send(Time::ZERO, 0, 1, 500 * MSS), scene.send(Time::ZERO, 1, 0, 500 * MSS));
    scene.run_until(Time::from_us(20));
    scene.pause(0, 1 << 3);
    // Longer than the timeout, which nothing outstanding can run into.
    scene.run_until(Time::from_ms(40));
    assert!(data::<Header>(&scene, there).iter().all(|sent| sent.0 <= Time::from_us(20)));
    assert!(scene.completed_at(back).is_some() && scene.completed_at(there).is_none());
    scene.pause(0, 0);
    scene.run_until(Time::from_ms(50));
    assert!(scene.completed_at(there).is_some());
    assert_eq!((counter(&scene, 0, "timeouts"), counter(&scene, 0, "retransmissions")), (0, 0));
}

#[test]
fn a_held_flow_holds_back_no_other() {
    let mut scene = scene(3, Wire::default(), LineRate::default());
    let flows: Vec<FlowId> = [1, 2, 1].map(|dst| scene.send(Time::ZERO, 0, dst, 100 * MSS)).to_vec();
    scene.run_until(Time::from_us(2));
    scene.hold(0, flows[0], true);
    scene.hold(0, flows[1], true);
    scene.run_until(Time::from_us(25));
    assert!(flows[..2].iter().all(|&flow| data::<Header>(&scene, flow).iter().all(|sent| sent.0 <= Time::from_us(2))));
    assert!(scene.delivered_at(flows[2]).is_some());
    // Let go one after the other, with nothing else that would wake the host.
    for flow in &flows[..2] {
        scene.hold(0, *flow, false);
        scene.run_until(Time::from_us(25) + Duration::from_us(25 * (1 + u64::from(flow.0))));
        assert!(scene.completed_at(*flow).is_some());
    }
    assert_eq!(counter(&scene, 0, "retransmissions"), 0);
}

#[test]
fn a_host_without_work_asks_for_no_wake() {
    let mut scene = scene(2, Wire { mark_bytes: 3_000, ..Wire::default() }, Dcqcn::default());
    scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(100));
    assert!((0..2).all(|host| scene.endpoint(host).poll_at() == node::PollAt::OnArrival));
}

#[test]
fn a_message_that_was_delivered_completes_after_a_second_without_answers() {
    for recovery in [IRN, GO_BACK_N] {
        a_second_without_answers(LineRate { recovery, ..LineRate::default() });
    }
}

/// Random messages over a wire that loses, delays and duplicates.
fn deliver_over_a_bad_wire<A: Algorithm>(config: Config<A>, seed: u64, loss: f64, sizes: &[u64]) {
    let mut scene = scene(3, Wire { queue_bytes_max: 60_000, mark_bytes: 15_000, ..Wire::default() }, config);
    // HPCC's packets have room for five hops of telemetry.
    let mss = if A::TELEMETRY { MSS - 42 } else { MSS };
    let mut random = Stream::new(seed, 0, "fates");
    scene.spoil(move |_, _| {
        if random.chance(loss) {
            return PacketFate::Drop;
        }
        match random.below(10) {
            0 => PacketFate::Delay(Duration::from_ns(random.below(20_000))),
            1 => PacketFate::Duplicate,
            _ => PacketFate::Pass,
        }
    });
    for (index, &bytes) in sizes.iter().enumerate() {
        scene.send(Time::from_us(index as u64), index as u32 % 2, 2, bytes);
    }
    scene.run_until(Time::from_ms(60_000));
    for (index, &bytes) in sizes.iter().enumerate() {
        let flow = FlowId(index as u32);
        let said = |wanted: &dyn Fn(&Event) -> bool| scene.events.iter().filter(|event| wanted(&event.2)).count();
        assert_eq!(said(&|event| *event == Event::Delivered { flow }), 1, "flow {index}");
        let completions = |event: &Event| match *event {
            Event::Completed { flow: f, sent_packets, resent_packets } if f == flow => {
                assert_eq!(sent_packets - resent_packets, bytes.div_ceil(mss));
                true
            }
            _ => false,
        };
        assert_eq!(said(&completions), 1, "flow {index}");
        assert!(scene.delivered_at(flow) < scene.completed_at(flow));
        // At most a window, and the packet that finds it open.
        assert!(in_flight_peak(&scene, flow) < BDP + MSS, "flow {index}");
    }
    for host in 0..3 {
        assert_eq!(counter(&scene, host, "malformed"), 0);
        assert_eq!(scene.endpoint(host).poll_at(), node::PollAt::OnArrival);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_message_arrives_once_over_a_bad_wire(
        seed: u64,
        loss in 0.0..0.3,
        sizes in proptest::collection::vec(1u64..200_000, 1..6),
        irn: bool,
    ) {
        let recovery = if irn { IRN } else { GO_BACK_N };
        deliver_over_a_bad_wire(LineRate { recovery: recovery.clone(), ..LineRate::default() }, seed, loss, &sizes);
        deliver_over_a_bad_wire(Dcqcn { recovery: recovery.clone(), ..Dcqcn::default() }, seed, loss, &sizes);
        deliver_over_a_bad_wire(Timely { recovery: recovery.clone(), ..Timely::default() }, seed, loss, &sizes);
        deliver_over_a_bad_wire(Hpcc { recovery, ..Hpcc::default() }, seed, loss, &sizes);
    }
}
