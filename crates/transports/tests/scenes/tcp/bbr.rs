//! BBR on a path with a bottleneck of 25 Gbps and a round trip of 50 us: what its draft says of its states.

use units::Stream;

use super::*;

/// A message that does not end while a scene lasts.
const ENDLESS: u64 = 1 << 40;

/// Time of a full packet at the bottleneck.
const SLOT: Duration = Duration::from_ns(480);

/// 50 us and the times of a packet, 120 and 480 ns, and of its acknowledgement, 3.2 and 12.8 ns.
const PATH_RTT: Duration = Duration::from_ns(50_616);

/// The path's bandwidth-delay product in packets.
const BDP: f64 = 50_616.0 / 480.0;

const RATE: Rate = Rate::from_gbps(25);

fn wire() -> Wire {
    Wire { rate: Rate::from_gbps(100), down_rate: Some(RATE), delay: Duration::from_us(25), ..Wire::default() }
}

/// The drafts' times.
fn internet() -> Bbr {
    let control = tcp::bbr::Config {
        rtprop_filter_len: Some(Duration::from_ms(10_000)),
        probe_rtt_duration: Some(Duration::from_ms(200)),
        ..tcp::bbr::Config::default()
    };
    Bbr { control, ..Bbr::default() }
}

/// A lone flow that has run until `end`.
fn lone(wire: Wire, end: Time) -> (Scene, FlowId) {
    let mut scene = scene(2, wire, internet());
    let flow = scene.send(Time::ZERO, 0, 1, ENDLESS);
    scene.run_until(end);
    (scene, flow)
}

/// Goodput of the flow to host 1 between two times, as a share of what the bottleneck takes.
fn used(scene: &Scene, from: Time, to: Time) -> f64 {
    let by = |at: Time| acks(scene).take_while(|ack| ack.0 <= at).last().map_or(0, |ack| ack.2.sequence);
    (by(to) - by(from)) as f64 / (RATE.bytes_in(to - from) as f64 * 1460.0 / 1500.0)
}

/// For each acknowledgement, how long its data packet has waited at the bottleneck, in packets. Nothing may have been
/// lost.
fn queues(scene: &Scene, flow: FlowId) -> Vec<(Time, f64)> {
    let sent = data::<Header>(scene, flow);
    let one_way = Duration::from_ns(25_600);
    let queue = |(at, _, ack): (Time, Packet, Acknowledgement)| {
        let (left, segment) = sent[(ack.sequence / MSS - 1) as usize];
        assert_eq!(segment, ack.sequence / MSS - 1);
        (at, (at - left).saturating_sub(one_way).ps() as f64 / SLOT.ps() as f64)
    };
    acks(scene).map(queue).collect()
}

/// The pacing gains by which a flow has sent from a time on, in units of the bottleneck's rate, each with its duration;
/// but for the gap within which one changes to the next.
fn gains(scene: &Scene, flow: FlowId, from: Time) -> Vec<(f64, Duration)> {
    let sent: Vec<Time> = data::<Header>(scene, flow).iter().map(|sent| sent.0).filter(|&at| at >= from).collect();
    let mut gains: Vec<(f64, Duration)> = Vec::new();
    for pair in sent.windows(2) {
        let gap = pair[1] - pair[0];
        let gain = SLOT.ps() as f64 / gap.ps() as f64;
        match gains.last_mut() {
            Some(last) if (last.0 / gain - 1.0).abs() < 0.02 => last.1 += gap,
            _ => gains.push((gain, gap)),
        }
    }
    gains.retain(|gain| gain.1 > SLOT * 2);
    gains
}

#[test]
fn startup_doubles_the_rate_each_round_trip() {
    // 100 Gbps and 1 ms: 8,375 packets, nine doublings from 10 away.
    let wire = Wire { delay: Duration::from_us(500), ..Wire::default() };
    let (scene, flow) = lone(wire, Time::from_ms(10));
    let sent = data::<Header>(&scene, flow);
    let in_round = |round: u64| {
        sent.iter().filter(|s| s.0 >= Time::from_ms(round) && s.0 < Time::from_ms(round + 1)).count() as f64
    };
    let growth = libm::pow(in_round(8) / in_round(2), 1.0 / 6.0);
    assert!((growth / 2.0 - 1.0).abs() < 0.05, "{growth}");
}

#[test]
fn startup_s_queue_is_its_window_s_and_drain_takes_it_back() {
    let (scene, flow) = lone(wire(), Time::from_ms(3));
    // A window of 2/ln 2 bandwidth-delay products and three packets, of which one product is on the way.
    let window = 2.0 / std::f64::consts::LN_2 * BDP + 3.0;
    let peak = scene.queue_bytes_peak[1] as f64 / 1500.0;
    assert!((peak - (window - BDP)).abs() <= 2.0, "{peak}, {}", window - BDP);
    // Three round trips without growth end STARTUP, DRAIN takes (2/ln 2 - 1) / (1 - ln 2/2) = 2.9 more; there remain
    // the three packets, and what the cycle's first phase adds and its second takes.
    let after = queues(&scene, flow).into_iter().filter(|queue| queue.0 >= Time::from_us(1_100));
    let (most, least) = after.fold((0.0f64, f64::MAX), |(most, least), q| (most.max(q.1), least.min(q.1)));
    assert!(least <= 4.0 && most <= 0.25 * BDP + 5.0, "{least} {most}");
    assert!(used(&scene, Time::from_ms(1), Time::from_ms(3)) > 0.99);
}

#[test]
fn the_gain_cycle_has_the_draft_s_order_and_durations() {
    let (scene, flow) = lone(wire(), Time::from_ms(5));
    let gains = gains(&scene, flow, Time::from_us(1_300));
    let up = gains.iter().position(|gain| gain.0 > 1.1).unwrap();
    let round_trips = |span: Duration| span.secs_f64() / PATH_RTT.secs_f64();
    let cycles: Vec<_> = gains[up..gains.len() - 1].chunks_exact(3).collect();
    assert!(cycles.len() >= 5);
    for cycle in cycles {
        // The estimate of the bottleneck's rate, by any of the three, is within a percent.
        for (gain, wanted) in cycle.iter().zip([1.25, 0.75, 1.0]) {
            assert!((gain.0 / wanted - 1.0).abs() < 0.01, "{cycle:?}");
        }
        // A round trip, and until so much more is in flight; at most one; six, each to its next acknowledgement.
        let [up, down, cruise] = [0, 1, 2].map(|phase| round_trips(cycle[phase].1));
        assert!((1.0..1.25).contains(&up), "{cycle:?}");
        assert!(down > 0.5 && down < 1.05, "{cycle:?}");
        assert!(cruise > 5.95 && cruise < 6.1, "{cycle:?}");
    }
}

#[test]
fn probe_rtt_has_four_packets_in_flight_for_200_ms_every_10_s() {
    // 100 Mbps and 10 ms: 84 packets.
    let rtt = Duration::from_us(10_135);
    let wire = Wire {
        rate: Rate::from_bps(1_000_000_000),
        down_rate: Some(Rate::from_bps(100_000_000)),
        delay: Duration::from_ms(5),
        ..Wire::default()
    };
    let (scene, flow) = lone(wire, Time::from_ms(12_000));
    let sent: Vec<Time> =
        data::<Header>(&scene, flow).iter().map(|sent| sent.0).filter(|&at| at >= Time::from_ms(500)).collect();
    // With four in flight, the fifth packet leaves a round trip after the first.
    let sparse: Vec<Time> = sent.windows(5).filter(|five| five[4] - five[0] >= rtt).map(|five| five[0]).collect();
    let (begin, end) = (sparse[0], *sparse.last().unwrap());
    // No round trip was as short as the first ones', those before the queue began to grow.
    assert!(begin >= Time::from_ms(10_000) && begin <= Time::from_ms(10_100), "{begin}");
    let lasted = end - begin;
    assert!(lasted >= Duration::from_ms(190) && lasted <= Duration::from_ms(200) + rtt * 3, "{lasted}");
    let four_a_round = sparse.len() as f64 / (lasted.secs_f64() / rtt.secs_f64());
    assert!((four_a_round - 4.0).abs() < 0.3, "{four_a_round}");
    // Afterwards the link is full again.
    let after = sent.iter().filter(|&&at| at >= end + rtt * 4 && at < end + rtt * 4 + Duration::from_ms(1_000)).count();
    assert!((after as f64 / 8_333.0 - 1.0).abs() < 0.02, "{after}");
}

#[test]
fn flows_share_and_keep_the_queue_short() {
    // As on a path of 50 ms, with all times a thousandth.
    let control = tcp::bbr::Config {
        rtprop_filter_len: Some(Duration::from_ms(10)),
        probe_rtt_duration: Some(Duration::from_us(200)),
        ..tcp::bbr::Config::default()
    };
    let mut scene = scene(3, wire(), Bbr { control, ..Bbr::default() });
    scene.send(Time::ZERO, 0, 2, ENDLESS);
    scene.send(Time::from_ms(3), 1, 2, ENDLESS);
    scene.run_until(Time::from_ms(100));
    let by = |flow: u32, at: Time| {
        let of_flow = acks(&scene).take_while(|ack| ack.0 <= at).filter(|ack| ack.1.flow == FlowId(flow));
        of_flow.last().map_or(0, |ack| ack.2.sequence)
    };
    let (begin, end) = (Time::from_ms(40), Time::from_ms(100));
    let bytes = [0, 1].map(|flow| (by(flow, end) - by(flow, begin)) as f64);
    let all = (bytes[0] + bytes[1]) / (RATE.bytes_in(end - begin) as f64 * 1460.0 / 1500.0);
    assert!(bytes[0] / bytes[1] > 0.7 && bytes[0] / bytes[1] < 1.4, "{bytes:?}");
    // PROBE_RTT costs 200 us and a few round trips each 10 ms.
    assert!(all > 0.95, "{all}");
    // Each has two bandwidth-delay products and three packets in flight at most, once STARTUP is over.
    assert_eq!(scene.overflows, 0);
}

#[test]
fn losses_by_chance_do_not_slow_it() {
    let lossy = |seed| {
        let mut random = Stream::new(seed, 0, "loss");
        move |_: Time, packet: &Packet| {
            if packet.payload_bytes > 0 && random.chance(0.001) { PacketFate::Drop } else { PacketFate::Pass }
        }
    };
    let (from, to) = (Time::from_ms(2), Time::from_ms(30));
    let mut bbr = scene(2, wire(), Bbr::default());
    bbr.spoil(lossy(1));
    bbr.send(Time::ZERO, 0, 1, ENDLESS);
    bbr.run_until(to);
    let mut reno = scene(2, wire(), NewReno::default());
    reno.spoil(lossy(1));
    reno.send(Time::ZERO, 0, 1, ENDLESS);
    reno.run_until(to);
    let (bbr, reno) = (used(&bbr, from, to), used(&reno, from, to));
    // Mathis et al.: 1.22 / sqrt(0.001) = 39 packets a round trip of 105.
    assert!(bbr > 0.95 && reno < 0.5, "{bbr} {reno}");
}

#[test]
fn a_loss_costs_one_retransmission_and_the_window_comes_back() {
    let mut scene = scene(2, wire(), Bbr::default());
    lose::<Header>(&mut scene, &[(4_000, 1)]);
    let flow = scene.send(Time::ZERO, 0, 1, ENDLESS);
    scene.run_until(Time::from_ms(4));
    assert_eq!(resent::<Header>(&scene, flow).iter().map(|sent| sent.1).collect::<Vec<_>>(), [4_000]);
    assert_eq!((counter(&scene, 0, "recoveries"), counter(&scene, 0, "timeouts")), (1, 0));
    // Nothing but the lost packet's own place is missing.
    let at = resent::<Header>(&scene, flow)[0].0;
    let from = at + PATH_RTT * 2;
    let busy = used(&scene, at - PATH_RTT * 2, from);
    assert!(busy > 0.98, "{busy}");
    let gains = gains(&scene, flow, from);
    assert!(gains.iter().all(|gain| [0.75, 1.0, 1.25].iter().any(|g| (gain.0 / g - 1.0f64).abs() < 0.02)), "{gains:?}");
}

#[test]
fn it_fills_a_link_with_a_quarter_of_a_bandwidth_delay_product_of_buffer() {
    let (scene, _) = lone(Wire { queue_bytes_max: 40_500, ..wire() }, Time::from_ms(40));
    let used = used(&scene, Time::from_ms(5), Time::from_ms(40));
    assert!(used > 0.95, "{used}");
}

/// Version 3 with the draft's times.
fn v3() -> Bbr {
    let internet = internet();
    Bbr { control: tcp::bbr::Config { version: tcp::bbr::Version::V3, ..internet.control }, ..internet }
}

fn lone_v3(wire: Wire, end: Time) -> (Scene, FlowId) {
    let mut scene = scene(2, wire, v3());
    let flow = scene.send(Time::ZERO, 0, 1, ENDLESS);
    scene.run_until(end);
    (scene, flow)
}

#[test]
fn version_3_s_startup_leaves_a_product_and_drain_takes_it_back() {
    let (scene, flow) = lone_v3(wire(), Time::from_ms(3));
    // DefaultCwndGain bounds what is in flight by two products, and what acknowledgements exceed the rate by.
    let peak = scene.queue_bytes_peak[1] as f64 / 1500.0;
    assert!(peak > 0.9 * BDP && peak < 1.3 * BDP, "{peak}, {BDP}");
    // Half the rate drains it within a few round trips.
    let after = queues(&scene, flow).into_iter().filter(|queue| queue.0 >= Time::from_us(1_000));
    let least = after.fold(f64::MAX, |least, queue| least.min(queue.1));
    assert!(least <= 4.0, "{least}");
}

#[test]
fn version_3_s_cycle_has_the_draft_s_gains_and_probes_each_63_round_trips() {
    let (scene, flow) = lone_v3(wire(), Time::from_ms(16));
    let gains = gains(&scene, flow, Time::from_us(1_300));
    let round_trips = |span: Duration| span.secs_f64() / PATH_RTT.secs_f64();
    // A margin of 1% below each gain. A phase may be cut in two where the estimate of the rate changes.
    let phase = |gain: f64| [0.9, 1.0, 1.25].into_iter().position(|of| (gain / of / 0.99 - 1.0).abs() < 0.02);
    let mut phases: Vec<(usize, f64)> = Vec::new();
    for (gain, span) in &gains {
        let Some(of) = phase(*gain) else { continue };
        match phases.last_mut() {
            Some(last) if last.0 == of => last.1 += round_trips(*span),
            _ => phases.push((of, round_trips(*span))),
        }
    }
    let ups: Vec<usize> = (1..phases.len() - 2).filter(|&index| phases[index].0 == 2).collect();
    assert!(ups.len() >= 3, "{phases:?}");
    for &up in &ups {
        // UP ends after three round trips without growth, DOWN once the queue is gone; CRUISE and REFILL are one here.
        assert!((3.0..6.5).contains(&phases[up].1), "{phases:?}");
        assert_eq!((phases[up + 1].0, phases[up + 2].0), (0, 1), "{phases:?}");
    }
    for pair in ups.windows(2) {
        let between: f64 = phases[pair[0] + 1..pair[1]].iter().map(|phase| phase.1).sum();
        // A round trip is longer while there is a queue.
        assert!(between > 60.0 && between < 70.0, "{between} {phases:?}");
    }
}

#[test]
fn version_3_loses_only_where_it_probes() {
    // A quarter of a product of buffer: each probe overruns it. Version 1 probes each eighth round trip, version 3 each
    // 63rd, and twice then: once to learn that the bound holds (precautionary), once to raise it.
    let shallow = Wire { queue_bytes_max: 40_500, ..wire() };
    let recoveries = |config: Bbr| {
        let mut scene = scene(2, shallow, Bbr { rack: true, ..config });
        scene.send(Time::ZERO, 0, 1, ENDLESS);
        scene.run_until(Time::from_ms(40));
        let used = used(&scene, Time::from_ms(5), Time::from_ms(40));
        let counters = ["recoveries", "timeouts", "fast_retransmissions"].map(|name| counter(&scene, 0, name));
        println!("{counters:?} {used}");
        (counters[0], used)
    };
    let ((first, _), (third, used)) = (recoveries(internet()), recoveries(v3()));
    // 40 ms are 790 round trips.
    assert!(third <= 790 / 63 * 2 + 3 && 2 * third < first && used > 0.85, "{third} {first} {used}");
}

#[test]
fn version_3_s_probe_rtt_keeps_half_a_product_in_flight() {
    let control = tcp::bbr::Config {
        rtprop_filter_len: Some(Duration::from_ms(10)),
        probe_rtt_duration: Some(Duration::from_us(500)),
        ..v3().control
    };
    let mut scene = scene(2, wire(), Bbr { control, ..Bbr::default() });
    let flow = scene.send(Time::ZERO, 0, 1, ENDLESS);
    scene.run_until(Time::from_ms(14));
    let sent: Vec<Time> = data::<Header>(&scene, flow).iter().map(|sent| sent.0).collect();
    let in_round = |from: Time| sent.iter().filter(|&&at| at >= from && at < from + PATH_RTT).count() as f64;
    // The least of a round trip: half of 105 packets, twice, 5 ms apart.
    let starts: Vec<u64> = (1_000..13_800).step_by(10).filter(|&us| in_round(Time::from_us(us)) < 0.6 * BDP).collect();
    assert!(starts.iter().all(|&us| in_round(Time::from_us(us)) > 0.35 * BDP), "{starts:?}");
    let visits = starts.chunk_by(|one, next| next - one < 1_000).count();
    assert_eq!(visits, 2, "{starts:?}");
}

#[test]
fn late_starters_come_to_equal_shares() {
    let mut scene = scene(5, wire(), Bbr::default());
    (0..4).for_each(|host| _ = scene.send(Time::from_ms(host), host as u32, 4, ENDLESS));
    scene.run_until(Time::from_ms(150));
    let by = |flow: u32, at: Time| {
        let of_flow = acks(&scene).take_while(|ack| ack.0 <= at).filter(|ack| ack.1.flow == FlowId(flow));
        of_flow.last().map_or(0, |ack| ack.2.sequence)
    };
    let (begin, end) = (Time::from_ms(75), Time::from_ms(150));
    let bytes = [0, 1, 2, 3].map(|flow| (by(flow, end) - by(flow, begin)) as f64);
    let all = bytes.iter().sum::<f64>();
    let link = RATE.bytes_in(end - begin) as f64 * 1460.0 / 1500.0;
    assert!(all > 0.93 * link, "{}", all / link);
    for share in bytes.map(|bytes| bytes / all) {
        assert!((share / 0.25 - 1.0).abs() < 0.25, "{:?}", bytes.map(|bytes| bytes / all));
    }
}
