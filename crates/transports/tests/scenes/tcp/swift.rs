use clearway_transports::tcp::DelayedAck;

use super::*;

/// A message that does not end while a scene lasts.
const ENDLESS: u64 = 1 << 40;

/// The target that section 3.5 of the paper gives a window of `cwnd` over one switch with default settings, in seconds:
/// on the virtual wire the base target is a round trip and a quarter, and flow scaling adds three at most.
fn target(rtt: f64, cwnd: f64) -> f64 {
    let alpha = 3.0 * rtt / (10f64.sqrt() - 0.1);
    1.25 * rtt + (alpha * (1.0 / cwnd.sqrt() - 0.1)).clamp(0.0, 3.0 * rtt)
}

/// Where `flows` equal flows come to rest on a link of `rate`: their window, and the delay, in seconds. A window of
/// `cwnd` in a delay of `target(cwnd)` is the flow's share of the link.
fn rest(rtt: f64, rate: Rate, flows: f64) -> (f64, f64) {
    let packets = rate.bps() as f64 / 12_000.0 / flows;
    let (mut low, mut high) = (1e-3, 1e5);
    for _ in 0..100 {
        let cwnd: f64 = (low + high) / 2.0;
        (low, high) = if cwnd < packets * target(rtt, cwnd) { (cwnd, high) } else { (low, cwnd) };
    }
    (low, target(rtt, low))
}

/// Round trips of the packets whose acknowledgements left from `begin` on, in seconds, on a wire that loses nothing.
fn round_trips(scene: &Scene, flows: u32, begin: Time, back: Duration) -> Vec<f64> {
    let sent: Vec<Vec<(Time, u64)>> = (0..flows).map(|flow| data::<Header>(scene, FlowId(flow))).collect();
    let trip = |(at, packet, ack): (Time, Packet, Acknowledgement)| {
        let left = sent[packet.flow.index()][(ack.sequence / MSS - 1) as usize].0;
        (at + back - left).secs_f64()
    };
    acks(scene).filter(|ack| ack.0 >= begin).map(trip).collect()
}

/// From the head of a queue to the sender's knowledge: the way back of an acknowledgement.
fn way_back(wire: &Wire) -> Duration {
    wire.delay + wire.rate.transmit(40) + wire.down_rate.unwrap_or(wire.rate).transmit(40)
}

/// 10 Gbps behind NICs of 40, 10 us each way: 22.408 us there and back.
const NARROW: Wire = Wire {
    rate: Rate::from_gbps(40),
    down_rate: Some(Rate::from_gbps(10)),
    delay: Duration::from_us(10),
    queue_bytes_max: 200_000,
    mark_bytes: u64::MAX,
};
const NARROW_RTT: f64 = 20e-6 + 0.3e-6 + 1.2e-6 + 8e-9 + 32e-9;

#[test]
fn a_lone_flow_fills_a_narrow_link_and_keeps_the_delay_at_the_target() {
    let mut scene = scene(2, NARROW, Swift::default());
    scene.send(Time::ZERO, 0, 1, ENDLESS);
    let (begin, end) = (Time::from_ms(5), Time::from_ms(15));
    scene.run_until(end);
    let trips = round_trips(&scene, 1, begin, way_back(&NARROW));
    // A packet takes 1.2 us there.
    assert!(trips.len() as f64 * 1.2e-6 > 0.999 * (end - begin).secs_f64(), "{} packets", trips.len());
    let (_, delay) = rest(NARROW_RTT, Rate::from_gbps(10), 1.0);
    // The window grows by a packet a round trip and learns of it a round trip later; what it then gives up is less.
    assert!(trips.iter().all(|trip| (trip - delay).abs() < 2.0 * 1.2e-6), "{delay}: {trips:?}");
    assert_eq!((scene.overflows, counter(&scene, 0, "timeouts")), (0, 0));
}

#[test]
fn a_hundred_flows_with_less_than_a_packet_each_share_a_link_without_loss() {
    let flows = 100;
    let mut scene = scene(flows + 1, NARROW, Swift { initial_window: 1, ..Swift::default() });
    for src in 0..flows {
        scene.send(Time::from_ns(1_000 * u64::from(src)), src, flows, ENDLESS);
    }
    let (begin, end) = (Time::from_ms(10), Time::from_ms(60));
    scene.run_until(end);
    let timeouts: u64 = (0..flows).map(|src| counter(&scene, src, "timeouts")).sum();
    assert_eq!((scene.overflows, timeouts), (0, 0));
    let trips = round_trips(&scene, flows, begin, way_back(&NARROW));
    assert!(trips.len() as f64 * 1.2e-6 > 0.999 * (end - begin).secs_f64(), "{} packets", trips.len());
    // Little's law: the mean delay holds less than a packet a flow.
    let mean = trips.iter().sum::<f64>() / trips.len() as f64;
    assert!(mean / 1.2e-6 < f64::from(flows), "{mean} s");
    // At rest each would have 0.48 packets. But `ai` is a whole one, so windows swing around that, and the delay with
    // them.
    let (cwnd, delay) = rest(NARROW_RTT, Rate::from_gbps(10), f64::from(flows));
    assert!(cwnd < 0.5 && mean > delay && mean < 1.25 * delay, "{mean} s, at rest {delay}");
    // Each flow's share, from some 400 packets.
    let mut packets = vec![0u32; flows as usize];
    acks(&scene).filter(|ack| ack.0 >= begin).for_each(|ack| packets[ack.1.flow.index()] += 1);
    let fair = trips.len() as f64 / f64::from(flows);
    assert!(packets.iter().all(|&packets| (f64::from(packets) / fair - 1.0).abs() < 0.2), "{packets:?}");
}

#[test]
fn a_second_flow_gets_its_half() {
    let mut scene = scene(3, Wire::default(), Swift::default());
    for src in 0..2 {
        // There is no slow start: from 10 to 44 packets at one a round trip takes 178 us.
        scene.send(Time::from_us(1_000 * u64::from(src)), src, 2, ENDLESS);
    }
    scene.run_until(Time::from_ms(10));
    let sent = |flow, from, to| {
        let within = |sent: &&(Time, u64)| (Time::from_us(from)..Time::from_us(to)).contains(&sent.0);
        data::<Header>(&scene, FlowId(flow)).iter().filter(within).count() as f64
    };
    let link = Duration::from_ms(1).secs_f64() / PACKET.secs_f64();
    assert!(sent(0, 500, 1_000) > 0.999 * link / 2.0, "alone");
    let (first, second) = (sent(0, 5_000, 10_000), sent(1, 5_000, 10_000));
    assert!((first / second - 1.0).abs() < 0.05 && first + second > 4.995 * link, "{first} and {second}");
}

/// Tags the data packets of all flows, each with the virtual delay that `delay` gives its segment.
fn tag(scene: &mut Scene, mut delay: impl FnMut(Time, u64) -> Duration + 'static) {
    scene.touch(move |now, packet| {
        if packet.payload_bytes > 0 {
            packet.set_tags([7, 0]);
            packet.virtual_delay_ns += (delay(now, packet.header::<Header>().sequence() / MSS).ps() / 1_000) as u32;
        }
    });
}

#[test]
fn a_window_of_half_a_packet_is_a_packet_every_two_delays() {
    // The virtual delay is far above the target, so the window stays at its least. On a network of the AQ's rate it
    // would be part of the round trip.
    let control = tcp::swift::Config { min_cwnd: 0.5, ..tcp::swift::Config::default() };
    let mut scene = scene(2, Wire::default(), Swift { initial_window: 1, control, ..Swift::default() });
    tag(&mut scene, |_, _| Duration::from_ms(1));
    let flow = scene.send(Time::ZERO, 0, 1, 50 * MSS);
    scene.run_until(Time::from_ms(200));
    assert!(scene.completed_at(flow).is_some());
    let sent = data::<Header>(&scene, flow);
    let delay = (RTT + Duration::from_ms(1)).secs_f64();
    let gaps: Vec<f64> = sent.windows(2).map(|pair| (pair[1].0 - pair[0].0).secs_f64() / delay).collect();
    assert_eq!(sent.len(), 50);
    assert!(gaps.iter().all(|gap| (gap - 2.0).abs() < 1e-6), "{gaps:?}");
}

/// A flow whose window is 0.02 packets from its first acknowledgement on, so that packets leave 50 delays apart, half a
/// second, and whose least timeout is 100 us, with these transmissions lost.
fn slower_than_its_timeout(initial_window: u16, losses: &[(u64, u32)]) -> (Scene, FlowId) {
    let control = tcp::swift::Config { min_cwnd: 0.02, max_mdf: 0.999, beta: 1.0, ..tcp::swift::Config::default() };
    let config = Swift { initial_window, rto_min: Duration::from_us(100), control, ..Swift::default() };
    let mut scene = scene(2, Wire::default(), config);
    tag(&mut scene, |_, _| Duration::from_ms(10));
    lose::<Header>(&mut scene, losses);
    let flow = scene.send(Time::ZERO, 0, 1, 12 * MSS);
    scene.run_until(Time::from_ms(20_000));
    assert!(scene.completed_at(flow).is_some());
    (scene, flow)
}

/// What lies between two packets of such a flow.
const GAP: f64 = 50.0 * (5.2464e-6 + 10e-3);

#[test]
fn packets_further_apart_than_the_timeout_time_out_only_when_lost() {
    let (scene, flow) = slower_than_its_timeout(1, &[]);
    assert_eq!((counter(&scene, 0, "timeouts"), resent::<Header>(&scene, flow).len()), (0, 0));
    let (scene, flow) = slower_than_its_timeout(1, &[(5, 1)]);
    // It times out after 100 us, and what is sent again waits for its turn as anything else does.
    let sent = data::<Header>(&scene, flow);
    assert_eq!(sent.iter().map(|sent| sent.1).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11]);
    assert!(sent.windows(2).all(|pair| ((pair[1].0 - pair[0].0).secs_f64() / GAP - 1.0).abs() < 1e-4), "{sent:?}");
    assert_eq!(counter(&scene, 0, "timeouts"), 1);
}

#[test]
fn a_retransmission_that_waits_for_its_turn_has_not_timed_out() {
    let (scene, flow) = slower_than_its_timeout(4, &[(0, 1)]);
    // Segments 1 to 3 tell of the loss within a round trip, when the window is below one packet already. Segment 0 goes
    // again a gap after segment 3 left, though the timeout would have come before.
    let again = resent::<Header>(&scene, flow);
    assert_eq!(again.len(), 1);
    assert!(((again[0].0.secs_f64() - 3.0 * PACKET.secs_f64()) / GAP - 1.0).abs() < 1e-4, "{again:?}");
    let counts = ["fast_retransmissions", "timeouts", "recoveries"].map(|name| counter(&scene, 0, name));
    assert_eq!(counts, [1, 0, 1]);
}

#[test]
fn five_timeouts_in_a_row_leave_the_least_window_and_one_acknowledgement_a_packet() {
    let mut scene = scene(2, Wire::default(), Swift::default());
    // Nothing arrives for 40 ms: timeouts after 1, 2, 4, 8 and 16 ms more.
    scene.spoil(|now, _| if now < Time::from_ms(40) { PacketFate::Drop } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(80));
    let sent = data::<Header>(&scene, flow);
    let in_ms =
        |from, to| sent.iter().filter(|sent| sent.0 >= Time::from_ms(from) && sent.0 < Time::from_ms(to)).count();
    // Windows of 10, then half at each timeout; below one packet, a packet. The fifth leaves 0.001: 5.2 ms a packet.
    assert_eq!([in_ms(0, 1), in_ms(1, 3), in_ms(3, 7), in_ms(7, 15), in_ms(15, 31)], [10, 5, 2, 1, 1]);
    assert_eq!(in_ms(31, 63), 1);
    // The sixth arrives: 1.001 packets, then one more a round trip, and the rest at once.
    let arrives = sent.iter().find(|sent| sent.0 >= Time::from_ms(63)).unwrap().0;
    assert_eq!(arrives, Time::from_ms(63));
    assert!(scene.completed_at(flow).unwrap() - arrives < RTT * 20);
}

#[test]
fn acknowledgements_tell_the_virtual_delay_of_the_packet_that_came_last() {
    let delayed_ack = Some(DelayedAck::default());
    let mut scene = scene(2, Wire::default(), Swift { delayed_ack, ..Swift::default() });
    tag(&mut scene, |_, segment| Duration::from_ns(100 * segment));
    scene.send(Time::ZERO, 0, 1, 10 * MSS);
    scene.run_until(Time::from_ms(1));
    let told: Vec<_> = acks(&scene).map(|ack| ack.2.virtual_delay()).collect();
    assert_eq!(told, [1, 3, 5, 7, 9].map(|segment| Some(Duration::from_ns(100 * segment))));
    // Without a tag there is nothing to tell.
    let mut untagged = super::scene(2, Wire::default(), Swift::default());
    untagged.send(Time::ZERO, 0, 1, 10 * MSS);
    untagged.run_until(Time::from_ms(1));
    assert!(acks(&untagged).all(|ack| ack.2.virtual_delay().is_none()));
}

/// `flows` flows over 10 Gbps and 60 us of round trip, every packet tagged where there is an `aq`, whose A-Gap (Theorem
/// 3.2 of the Augmented Queue paper, in time) gives it its virtual delay, and, after the first millisecond, `later` by
/// a queue of others. Gives their rate in bits per second and the mean virtual delay in seconds, from 30 ms to 60.
fn governed(flows: u32, aq: Option<Rate>, later: Duration) -> (f64, f64) {
    let wire = Wire { rate: Rate::from_gbps(10), delay: Duration::from_us(30), ..Wire::default() };
    let mut scene = scene(flows + 1, wire, Swift::default());
    if let Some(aq) = aq {
        let (mut gap, mut last) = (Duration::ZERO, Time::ZERO);
        tag(&mut scene, move |now, _| {
            gap = gap.saturating_sub(now - last) + aq.transmit(1500);
            last = now;
            gap
        });
    }
    scene.spoil(move |now, packet| {
        if packet.payload_bytes > 0 && now > Time::from_ms(1) { PacketFate::Delay(later) } else { PacketFate::Pass }
    });
    for src in 0..flows {
        scene.send(Time::from_us(7 * u64::from(src)), src, flows, ENDLESS);
    }
    let (begin, end) = (Time::from_ms(30), Time::from_ms(60));
    scene.run_until(end);
    let told: Vec<Option<Duration>> =
        acks(&scene).filter(|ack| ack.0 >= begin).map(|ack| ack.2.virtual_delay()).collect();
    let delay: f64 = told.iter().flatten().map(|delay| delay.secs_f64()).sum();
    (told.len() as f64 * 12_000.0 / (end - begin).secs_f64(), delay / told.len() as f64)
}

#[test]
fn under_an_aq_flows_are_as_on_a_network_of_its_rate() {
    let aq = Rate::from_gbps(9);
    let (rate, delay) = governed(5, Some(aq), Duration::ZERO);
    assert!(rate > 0.99 * aq.bps() as f64 && rate < 1.01 * aq.bps() as f64, "{rate}");
    let rtt = 62.464e-6;
    let queued = rest(rtt, aq, 5.0).1 - rtt;
    assert!((delay / queued - 1.0).abs() < 0.2, "{delay}, on a network of its rate {queued}");
}

#[test]
fn a_queue_of_others_does_not_starve_flows_under_an_aq() {
    let (aq, later) = (Rate::from_gbps(5), Duration::from_us(100));
    // 162 us are the target of less than half a packet, a packet of each flow in 350 us: 0.17 Gbps.
    let (alone, _) = governed(5, None, later);
    assert!(alone < 0.1 * aq.bps() as f64, "{alone}");
    let (rate, _) = governed(5, Some(aq), later);
    assert!(rate > 0.5 * aq.bps() as f64, "{rate}");
}
