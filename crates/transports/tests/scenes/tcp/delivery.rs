use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use clearway_transports::tcp::DelayedAck;
use node::Event;
use units::{Duration, Stream};

use super::*;

#[test]
fn a_lone_packet_takes_the_unloaded_round_trip() {
    let mut scene = scene(2, Wire::default(), NewReno::default());
    let flow = scene.send(Time::ZERO, 0, 1, MSS);
    scene.run_until(Time::from_ms(5));
    assert_eq!(scene.delivered_at(flow), Some(Time::from_ns(2_740)));
    assert_eq!(scene.completed_at(flow), Some(Time::ZERO + RTT));
    assert_eq!(scene.sent.len(), 2);
}

#[test]
fn with_an_open_window_a_message_takes_its_packets_and_one_way() {
    let mut scene = scene(2, Wire::default(), NewReno { initial_window: 2_000, ..NewReno::default() });
    let flow = scene.send(Time::ZERO, 0, 1, 999 * MSS + 1);
    scene.run_until(Time::from_ms(5));
    // 999 full packets and one of 41 bytes (3.28 ns), which the queue behind the switch forwards as they come.
    let delivered = Time::ZERO + PACKET * 999 + Duration::from_ps(2 * 3_280 + 2_500_000);
    // The last full packet is still on its second link when the short one has passed its first.
    let behind = PACKET - Duration::from_ps(3_280);
    assert_eq!(scene.delivered_at(flow), Some(delivered + behind));
}

#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    let mut scene = scene(2, Wire::default(), NewReno::default());
    let flow = scene.send(Time::ZERO, 0, 1, 1_000 * MSS);
    scene.run_until(Time::from_us(100));
    let round = |n: u64| data::<Header>(&scene, flow).iter().filter(|sent| sent.0.ps() / RTT.ps() == n).count();
    // The third round's 40 take 4.8 us of its 5.25; from then on the link is full.
    assert_eq!([round(0), round(1), round(2)], [10, 20, 40]);
    assert!(round(3) == 43 || round(3) == 44, "{}", round(3));
}

fn lone_flow_fills_its_link<A: Algorithm>() {
    let mut scene = scene(2, Wire::default(), Config::<A>::default());
    let flow = scene.send(Time::ZERO, 0, 1, 20_000_000);
    scene.run_until(Time::from_ms(5));
    // Slow start has filled the link after three round trips, then no packet's time is lost.
    let packets = 20_000_000u64.div_ceil(MSS);
    let least = PACKET * packets + Duration::from_ns(2_620);
    let most = least + RTT * 3;
    let took = scene.delivered_at(flow).unwrap() - Time::ZERO;
    assert!(took >= least - PACKET && took <= most, "{took} is not between {least} and {most}");
    let (from, to) = (Time::from_us(100), Time::from_us(1_100));
    let sent = data::<Header>(&scene, flow).iter().filter(|sent| (from..to).contains(&sent.0)).count() as u64;
    let goodput = (sent * MSS) as f64 / Rate::from_gbps(100).bytes_in(to - from) as f64;
    assert!((goodput / (1460.0 / 1500.0) - 1.0).abs() < 0.01, "{goodput}");
    assert_eq!((counter(&scene, 0, "timeouts"), counter(&scene, 0, "recoveries")), (0, 0));
    assert!(scene.queue_bytes_peak[1] <= 3_000, "a lone flow's link is its own bottleneck");
}

#[test]
fn a_lone_flow_fills_its_link_under_any_control() {
    lone_flow_fills_its_link::<newreno::Config>();
    lone_flow_fills_its_link::<cubic::Config>();
    lone_flow_fills_its_link::<dctcp::Config>();
    lone_flow_fills_its_link::<illinois::Config>();
}

#[test]
fn flows_of_a_host_take_turns_by_packet() {
    let config = Config::<Fixed> { initial_window: 100, ..Config::default() };
    let mut scene = scene(3, Wire::default(), config);
    for dst in [1, 2, 1] {
        scene.send(Time::ZERO, 0, dst, 100 * MSS);
    }
    scene.run_until(Time::from_us(30));
    let turns: Vec<u32> = scene.sent.iter().filter(|s| s.1.src == HostId(0)).map(|s| s.1.flow.0).collect();
    // The first packet leaves when the first flow is there alone.
    assert!(turns[1..240].windows(3).all(|three| BTreeSet::from_iter(three).len() == 3), "{turns:?}");
}

#[test]
fn a_handshake_costs_one_round_trip() {
    let mut scene = scene(2, Wire::default(), NewReno { handshake: true, ..NewReno::default() });
    let flow = scene.send(Time::ZERO, 0, 1, MSS);
    scene.run_until(Time::from_ms(5));
    // Four times 3.2 ns of 40 bytes, and 5 us.
    let control_rtt = Duration::from_ps(5_012_800);
    assert_eq!(scene.completed_at(flow), Some(Time::ZERO + control_rtt + RTT));
    assert_eq!(counter(&scene, 0, "syn_retransmissions"), 0);
}

#[test]
fn a_lost_syn_is_sent_again_and_leaves_a_window_of_one() {
    let mut scene = scene(2, Wire::default(), NewReno { handshake: true, ..NewReno::default() });
    scene.spoil(|now, _| if now < Time::from_ms(3) { PacketFate::Drop } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(10));
    let syns: Vec<Time> = sent!(scene, Header::Syn { .. }).into_iter().map(|syn| syn.0).collect();
    // RFC 6298 (5.5): 1 ms, then 2.
    assert_eq!(syns, [Time::ZERO, Time::from_ms(1), Time::from_ms(3)]);
    assert_eq!(counter(&scene, 0, "syn_retransmissions"), 2);
    // RFC 5681 section 3.1.
    let sent = data::<Header>(&scene, flow);
    let first_round = sent.iter().filter(|s| s.0 < sent[0].0 + RTT).count();
    assert_eq!(first_round, 1);
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn a_delayed_acknowledgement_is_for_two_packets() {
    let delayed_ack = Some(DelayedAck::default());
    let mut scene = scene(2, Wire::default(), NewReno { initial_window: 100, delayed_ack, ..NewReno::default() });
    let flow = scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(5));
    assert!(scene.completed_at(flow).is_some());
    assert_eq!((acks(&scene).count(), scene.sent.len()), (50, 150));
}

#[test]
fn a_delayed_acknowledgement_waits_for_its_timeout_at_most() {
    let delayed_ack = Some(DelayedAck { packets: 2, timeout: Duration::from_us(50) });
    let mut scene = scene(2, Wire::default(), NewReno { initial_window: 1, delayed_ack, ..NewReno::default() });
    let flow = scene.send(Time::ZERO, 0, 1, 2 * MSS);
    scene.run_until(Time::from_ms(5));
    // The first packet's acknowledgement waits, as no second one comes; the message's end is acknowledged at once.
    let sent: Vec<Time> = acks(&scene).map(|ack| ack.0).collect();
    assert_eq!(sent[0], Time::from_ns(2_740) + Duration::from_us(50));
    assert_eq!(scene.completed_at(flow), Some(Time::ZERO + RTT * 2 + Duration::from_us(50)));
}

#[test]
fn a_paused_class_sends_nothing_and_goes_on_after() {
    let mut scene = scene(2, Wire::default(), NewReno::default());
    let flow = scene.send(Time::ZERO, 0, 1, 1_000 * MSS);
    scene.run_until(Time::from_us(20));
    scene.pause(0, 1 << 1);
    // Longer than the timeout, which nothing outstanding can run into.
    scene.run_until(Time::from_ms(5));
    assert!(data::<Header>(&scene, flow).iter().all(|sent| sent.0 <= Time::from_us(20)));
    scene.pause(0, 0);
    scene.run_until(Time::from_ms(10));
    assert!(scene.completed_at(flow).is_some());
    assert_eq!((resent::<Header>(&scene, flow), counter(&scene, 0, "timeouts")), (vec![], 0));
}

#[test]
fn acknowledgements_may_have_a_class_of_their_own() {
    let mut scene = scene(2, Wire::default(), NewReno { ack_class: Some(0), ..NewReno::default() });
    scene.send(Time::ZERO, 0, 1, 10 * MSS);
    scene.run_until(Time::from_ms(5));
    assert!(scene.sent.iter().all(|sent| sent.1.class == u8::from(sent.1.payload_bytes > 0)));
}

#[test]
fn a_paced_control_sends_on_its_clock() {
    let control = Fixed { rate: Some(Rate::from_gbps(10)) };
    let config = Config::<Fixed> { initial_window: 100, control, ..Config::default() };
    let mut scene = scene(2, Wire::default(), config);
    let flow = scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(5));
    let sent = data::<Header>(&scene, flow);
    assert_eq!(sent.len(), 100);
    assert!(sent.windows(2).all(|pair| pair[1].0 - pair[0].0 == Duration::from_ns(1_200)), "{sent:?}");
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn a_host_without_work_asks_for_no_wake() {
    let mut scene = scene(2, Wire::default(), NewReno::default());
    scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(100));
    assert!((0..2).all(|host| scene.endpoint(host).poll_at() == node::PollAt::OnArrival));
}

#[test]
fn a_message_that_was_delivered_completes_after_a_second_without_answers() {
    a_second_without_answers(NewReno { rto_max: Duration::from_ms(20), ..NewReno::default() });
}

/// Random messages over a wire that loses, delays and duplicates.
fn deliver_over_a_bad_wire<A: Algorithm>(config: Config<A>, seed: u64, loss: f64, sizes: &[u64]) {
    let mut scene = scene(3, Wire { queue_bytes_max: 60_000, mark_bytes: 15_000, ..Wire::default() }, config);
    let mut random = Stream::new(seed, 0, "fates");
    // Per flow, what has got through to the switch.
    let passed: Rc<RefCell<BTreeMap<u32, BTreeMap<u64, u64>>>> = Rc::default();
    let seen = passed.clone();
    scene.spoil(move |_, packet| {
        if random.chance(loss) {
            return PacketFate::Drop;
        }
        if let Header::Data(data) = packet.header() {
            let bytes = u64::from(packet.payload_bytes);
            seen.borrow_mut().entry(packet.flow.0).or_default().insert(data.sequence, bytes);
        }
        match random.below(10) {
            0 => PacketFate::Delay(Duration::from_ns(random.below(20_000))),
            1 => PacketFate::Duplicate,
            _ => PacketFate::Pass,
        }
    });
    for (index, &bytes) in sizes.iter().enumerate() {
        let start = Time::from_us(index as u64);
        scene.send(start, index as u32 % 2, 2, bytes);
    }
    // Karn and backing off may make an unlucky flow wait for minutes again and again.
    scene.run_until(Time::from_ms(1_000_000_000));
    for (index, &bytes) in sizes.iter().enumerate() {
        let flow = FlowId(index as u32);
        let said = |wanted: &dyn Fn(&Event) -> bool| scene.events.iter().filter(|event| wanted(&event.2)).count();
        assert_eq!(said(&|event| *event == Event::Delivered { flow }), 1, "flow {index}");
        assert_eq!(said(&|event| matches!(event, Event::Completed { flow: f, .. } if *f == flow)), 1, "flow {index}");
        assert!(scene.delivered_at(flow) < scene.completed_at(flow));
        // Every byte got through, and what was counted is what was sent.
        assert_eq!(passed.borrow()[&flow.0].values().sum::<u64>(), bytes);
        let counted = scene.events.iter().find_map(|event| match event.2 {
            Event::Completed { flow: f, sent_packets, resent_packets } if f == flow => {
                Some((sent_packets, resent_packets))
            }
            _ => None,
        });
        let (sent, again) = (data::<Header>(&scene, flow).len() as u64, resent::<Header>(&scene, flow).len() as u64);
        assert_eq!(counted, Some((sent, again)));
        assert_eq!(sent - again, bytes.div_ceil(MSS));
    }
    assert_eq!((0..3).map(|host| counter(&scene, host, "malformed")).sum::<u64>(), 0);
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(32))]

    #[test]
    fn every_message_arrives_once_whatever_befalls_its_packets(
        seed: u64,
        loss in 0.0..0.3f64,
        handshake: bool,
        delays: bool,
        control in 0..4,
        sizes in proptest::collection::vec(1u64..200_000, 1..8),
    ) {
        let delayed_ack = delays.then(DelayedAck::default);
        match control {
            0 => deliver_over_a_bad_wire(NewReno { handshake, delayed_ack, ..NewReno::default() }, seed, loss, &sizes),
            1 => deliver_over_a_bad_wire(Cubic { handshake, delayed_ack, ..Cubic::default() }, seed, loss, &sizes),
            2 => deliver_over_a_bad_wire(Dctcp { handshake, delayed_ack, ..Dctcp::default() }, seed, loss, &sizes),
            _ => {
                let control = newreno::Config { ecn: true, ..newreno::Config::default() };
                deliver_over_a_bad_wire(NewReno { handshake, delayed_ack, control, ..NewReno::default() }, seed, loss,
                    &sizes);
            }
        }
    }

    /// What a hostile host may send: any header, any flow, any size.
    #[test]
    fn no_packet_panics(
        packets in proptest::collection::vec(
            (0u32..4, proptest::array::uniform32(proptest::bits::u8::ANY), 0u16..1500, 0u8..16, 0u64..300_000),
            1..60,
        ),
    ) {
        use node::wire::Reader;
        use node::{Cx, Endpoint, Gate, Header as _, Input, Message};
        let site = EndpointParams {
            host: HostId(0), hosts: 2, nic_rate: Rate::from_gbps(100), data_rtt: RTT, control_rtt: RTT,
            data_rtts: Vec::new(), mtu_bytes: 1500, header_bytes: 40, clock: node::Clock::default(), transport: 0,
        };
        let delayed_ack = Some(DelayedAck::default());
        let mut endpoint: Box<dyn Endpoint> = Dctcp { delayed_ack, handshake: true,
            ..Dctcp::default() }.endpoint(&site, &NetworkView::star(&site));
        let (mut random, mut events) = (Stream::new(1, 1, "test"), Vec::new());
        for (step, (flow, bytes, payload_bytes, flags, plausible)) in packets.into_iter().enumerate() {
            let mut cx =
                Cx { now: Time::from_us(step as u64), random: &mut random, gate: Gate::default(), events: &mut events };
            let mut header = Header::parse(&mut Reader::new(&bytes, "")).unwrap();
            if bytes[0] & 1 == 0 {
                // Noise alone would rarely get past the first check.
                let plausible = plausible / MSS * MSS;
                match &mut header {
                    Header::Ack(ack) => ack.sequence = plausible,
                    Header::Data(data) => (data.sequence, data.bytes) = (plausible,
                        plausible + u64::from(payload_bytes)),
                    Header::Syn { .. } | Header::SynAck => {}
                }
            }
            let mut packet = Packet::new(FlowId(flow), HostId(1), HostId(0), header);
            (packet.payload_bytes, packet.flags) = (payload_bytes, flags);
            let message = Message {
                flow: FlowId(flow),
                src: HostId(0),
                dst: HostId(1),
                bytes: plausible + 1,
                class: 0,
                virtual_serialisation: Duration::ZERO,
            };
            match step % 5 {
                0 if step < 20 => endpoint.handle(&mut cx, Input::Send(&message)),
                1 => endpoint.handle(&mut cx, Input::Deadline),
                _ => endpoint.handle(&mut cx, Input::Packet(&packet)),
            }
            for _ in 0..4 {
                endpoint.poll_transmit(&mut cx);
            }
        }
    }
}

#[test]
fn what_a_scenario_may_not_say_is_refused_by_name() {
    let problem = |config: NewReno| config.check().unwrap_err().key;
    assert_eq!(problem(NewReno { initial_window: 0, ..NewReno::default() }), "initial_window");
    assert_eq!(problem(NewReno { rto_min: Duration::ZERO, ..NewReno::default() }), "rto_min");
    assert_eq!(problem(NewReno { ack_class: Some(8), ..NewReno::default() }), "ack_class");
    let delay = |packets, us| Some(DelayedAck { packets, timeout: Duration::from_us(us) });
    assert_eq!(problem(NewReno { delayed_ack: delay(1, 1), ..NewReno::default() }), "delayed_ack.packets");
    assert_eq!(problem(NewReno { delayed_ack: delay(2, 1_000), ..NewReno::default() }), "delayed_ack.timeout");
    let control = cubic::Config { beta: 1.0, ..cubic::Config::default() };
    assert_eq!(Cubic { control, ..Cubic::default() }.check().unwrap_err().key, "control.beta");
    let control = dctcp::Config { g: 0.0, ..dctcp::Config::default() };
    assert_eq!(Dctcp { control, ..Dctcp::default() }.check().unwrap_err().key, "control.g");
}
