use clearway_transports::tcp::header::Data;
use node::Marking;
use node::packet::flags;
use units::{Bytes, Stream};

use super::*;

/// A message that does not end while a scene lasts.
const ENDLESS: u64 = 1 << 40;

/// `flows` senders, one endless flow each, to one receiver; starts are spread over 100 us.
fn share<A: Algorithm>(flows: u32, wire: Wire, config: Config<A>) -> Scene {
    let mut scene = scene(flows + 1, wire, config);
    // Equal paths and equal packets would lock in phase, and losses would always hit the same flow (Floyd and Jacobson,
    // "On traffic phase effects in packet-switched gateways", 1992, whose remedy this is): each packet is up to one
    // packet time late.
    let mut random = Stream::new(3, 0, "phase");
    scene.spoil(move |_, _| PacketFate::Delay(Duration::from_ps(random.below(PACKET.ps()))));
    for src in 0..flows {
        scene.send(Time::from_ns(u64::from(100_000 * src / flows)), src, flows, ENDLESS);
    }
    scene
}

/// Bytes of each flow that the receiver had by `at`.
fn received(scene: &Scene, flows: u32, at: Time) -> Vec<u64> {
    let mut bytes = vec![0; flows as usize];
    for (_, packet, ack) in acks(scene).take_while(|ack| ack.0 <= at) {
        bytes[packet.flow.index()] = ack.sequence;
    }
    bytes
}

/// Runs, and compares the flows' shares after the first 2 ms; gives how much of the link they used together.
fn shares_equally<A: Algorithm>(flows: u32, wire: Wire, config: Config<A>, end: Time) -> f64 {
    let begin = Time::from_ms(2);
    let mut scene = share(flows, wire, config);
    scene.run_until(end);
    let (before, after) = (received(&scene, flows, begin), received(&scene, flows, end));
    let bytes: Vec<f64> = before.iter().zip(&after).map(|(before, after)| (after - before) as f64).collect();
    let total = bytes.iter().sum::<f64>();
    let fair = total / f64::from(flows);
    assert!(bytes.iter().all(|bytes| (bytes / fair - 1.0).abs() < 0.05), "{flows} flows: {bytes:?}");
    total / (wire.rate.bytes_in(end - begin) as f64 * 1460.0 / 1500.0)
}

/// Equal flows that lose at a full queue. Who loses is chance, so shares become equal with the number of sawteeth
/// only: short round trips and a small buffer give each flow a thousand.
fn shares_a_drop_tail_queue<A: Algorithm>(config: Config<A>) {
    let wire = Wire { delay: Duration::from_ns(800), queue_bytes_max: 36_000, ..Wire::default() };
    let config = Config { rto_min: Duration::from_us(100), ..config };
    let used = shares_equally(2, wire, config, Time::from_ms(92));
    // The buffer is more than the path holds, so halving leaves no gap.
    assert!(used > 0.99, "{used}");
}

#[test]
fn newreno_flows_share_a_drop_tail_queue() {
    shares_a_drop_tail_queue(NewReno::default());
}

#[test]
fn cubic_flows_share_a_drop_tail_queue() {
    shares_a_drop_tail_queue(Cubic::default());
}

#[test]
fn illinois_flows_share_a_drop_tail_queue() {
    shares_a_drop_tail_queue(Illinois::default());
}

/// How much of a link at 25 Gbps a lone flow uses from 10 ms on, with one bandwidth-delay product of buffer: 52 us of
/// it.
fn lone_at_a_bottleneck<A: Algorithm>(config: Config<A>) -> f64 {
    let rate = Rate::from_gbps(25);
    let buffer = rate.bytes_in(Duration::from_us(52));
    let wire = Wire { down_rate: Some(rate), delay: Duration::from_us(25), queue_bytes_max: buffer, ..Wire::default() };
    let mut scene = scene(2, wire, config);
    scene.send(Time::ZERO, 0, 1, ENDLESS);
    let (begin, end) = (Time::from_ms(10), Time::from_ms(60));
    scene.run_until(end);
    assert!(scene.overflows > 0 && counter(&scene, 0, "timeouts") == 0);
    let bytes = received(&scene, 1, end)[0] - received(&scene, 1, begin)[0];
    bytes as f64 / (rate.bytes_in(end - begin) as f64 * 1460.0 / 1500.0)
}

#[test]
fn a_lone_illinois_flow_fills_a_link_with_one_bandwidth_delay_product_of_buffer() {
    // A loss takes half at most, and half of path and buffer is the path.
    let used = lone_at_a_bottleneck(Illinois::default());
    assert!(used > 0.995, "{used}");
}

#[test]
fn illinois_and_newreno_live_side_by_side() {
    let rate = Rate::from_gbps(25);
    let queue_bytes_max = rate.bytes_in(Duration::from_us(52));
    let wire = Wire { down_rate: Some(rate), delay: Duration::from_us(25), queue_bytes_max, ..Wire::default() };
    let mut scene = Scene::new(3, wire, |site| match site.host.index() {
        0 => Illinois::default().endpoint(site, &NetworkView::star(site)),
        _ => NewReno::default().endpoint(site, &NetworkView::star(site)),
    });
    // Against phase effects, as above, by a packet's time at the bottleneck.
    let mut random = Stream::new(3, 0, "phase");
    scene.spoil(move |_, _| PacketFate::Delay(Duration::from_ps(random.below(4 * PACKET.ps()))));
    for src in 0..2 {
        scene.send(Time::ZERO, src, 2, ENDLESS);
    }
    let (begin, end) = (Time::from_ms(10), Time::from_ms(210));
    scene.run_until(end);
    let (before, after) = (received(&scene, 2, begin), received(&scene, 2, end));
    let [illinois, newreno] = [0, 1].map(|flow| (after[flow] - before[flow]) as f64);
    // Were all losses common to both, Illinois would have less, by the arithmetic beside its code; but the segment that
    // a full queue loses is often the one that a growing window adds, and near congestion Illinois adds fewer. That
    // neither starves is what the paper claims.
    let ratio = illinois / newreno;
    assert!(ratio > 0.5 && ratio < 2.0, "{ratio}");
    assert!(illinois + newreno > 0.99 * rate.bytes_in(end - begin) as f64 * 1460.0 / 1500.0);
}

/// Equal flows at a queue that marks as the control asks it to: all learn of congestion in the same round trip.
fn shares_a_marking_queue<A: Algorithm>(config: Config<A>) {
    for flows in [2, 8] {
        let delay = Duration::from_ns(1_000 * u64::from(flows));
        let site = EndpointParams {
            host: HostId(0),
            hosts: flows + 1,
            nic_rate: Rate::from_gbps(100),
            data_rtt: delay * 2 + Duration::from_ps(246_400),
            control_rtt: delay * 2,
            data_rtts: Vec::new(),
            mtu_bytes: 1500,
            header_bytes: 40,
            clock: node::Clock::default(),
            transport: 0,
        };
        let Some(Marking::Step { threshold }) = config.requirements(&site).signal.marking() else {
            panic!("no step asked for")
        };
        let wire = Wire { delay, mark_bytes: threshold.get(), ..Wire::default() };
        let used = shares_equally(flows, wire, config.clone(), Time::from_ms(42));
        // The threshold keeps the queue from running empty, but windows are whole segments: at the sawtooth's bottom
        // each flow may lack one of those that fill the path, and at its top none.
        let lacking = f64::from(flows) * PACKET.secs_f64() / site.data_rtt.secs_f64() / 2.0;
        assert!(used > 1.0 - lacking, "{flows} flows: {used}, {lacking}");
    }
}

#[test]
fn newreno_flows_share_a_marking_queue() {
    shares_a_marking_queue(NewReno {
        control: newreno::Config { ecn: true, ..newreno::Config::default() },
        ..NewReno::default()
    });
}

#[test]
fn cubic_flows_share_a_marking_queue() {
    let control = cubic::Config { ecn: true, ..cubic::Config::default() };
    shares_a_marking_queue(Cubic { control, ..Cubic::default() });
}

#[test]
fn dctcp_flows_share_a_queue() {
    // Small steps make DCTCP's shares wander slowly; short round trips make the time seem long.
    for flows in [2, 8] {
        let wire = Wire { delay: Duration::from_us(2), mark_bytes: 10_500, ..Wire::default() };
        shares_equally(flows, wire, Dctcp::default(), Time::from_ms(52));
    }
}

#[test]
fn swift_flows_share_a_queue() {
    for flows in [2, 8] {
        let wire = Wire { delay: Duration::from_us(10), ..Wire::default() };
        let used = shares_equally(flows, wire, Swift::default(), Time::from_ms(22));
        assert!(used > 0.999, "{used}");
    }
}

#[test]
fn dctcp_s_queue_and_alpha_are_as_its_paper_says() {
    // Section 3.3 of the SIGCOMM paper: N flows in step, C x RTT = 50.2464 us at 120 ns a packet, K = 80 packets. The
    // analysis takes alpha for steady, which wants g < 1.386 / sqrt(2 (C x RTT + K)) = 0.044 (equation 15).
    let (k, path) = (80.0, 50_246.4 / 120.0);
    for flows in [2, 4] {
        let wire = Wire { delay: Duration::from_us(25), mark_bytes: 80 * 1_500, ..Wire::default() };
        let control = dctcp::Config { g: 0.02, ..dctcp::Config::default() };
        let mut scene = scene(flows + 1, wire, Dctcp { control, ..Dctcp::default() });
        for src in 0..flows {
            scene.send(Time::ZERO, src, flows, ENDLESS);
        }
        let begin = Time::from_ms(15);
        scene.run_until(Time::from_ms(50));

        let n = f64::from(flows);
        let w = (path + k) / n;
        let (mut all, mut marked) = (0.0, 0.0);
        let (mut least, mut most) = (f64::MAX, 0.0f64);
        let sent: Vec<Vec<(Time, u64)>> = (0..flows).map(|flow| data::<Header>(&scene, FlowId(flow))).collect();
        for (at, packet, ack) in acks(&scene).filter(|ack| ack.0 >= begin) {
            all += 1.0;
            marked += f64::from(u8::from(ack.ece));
            // The queue that a packet met, from how long it was on its way.
            let (left, segment) = sent[packet.flow.index()][(ack.sequence / MSS - 1) as usize];
            assert_eq!(segment, ack.sequence / MSS - 1, "nothing is lost here");
            let queued = (at - left).saturating_sub(Duration::from_ns(25_240)).ps() as f64 / PACKET.ps() as f64;
            (least, most) = (least.min(queued), most.max(queued));
        }
        // The share of marked packets is alpha: equation 6.
        let (alpha, wanted) = (marked / all, alpha_of(w));
        assert!((alpha / wanted - 1.0).abs() < 0.1, "{flows} flows: alpha {alpha}, in theory {wanted}");
        assert!(least > 0.0, "the link is never idle (equation 13)");
        // Equations 8, 10 and 11.
        let amplitude = (2.0 * n * (path + k)).sqrt() / 2.0;
        assert!((most - (k + n)).abs() <= 1.0, "{flows} flows: queue to {most}, in theory {}", k + n);
        assert!((most - least - amplitude).abs() <= 0.4 * amplitude, "{flows} flows: {least} to {most}, {amplitude}");
    }
}

/// Solves equation 6 of the DCTCP paper, alpha^2 (1 - alpha / 4) = (2 W + 1) / (W + 1)^2, by bisection.
fn alpha_of(w: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let alpha: f64 = (low + high) / 2.0;
        let short = alpha * alpha * (1.0 - alpha / 4.0) < (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
        (low, high) = if short { (alpha, high) } else { (low, alpha) };
    }
    low
}

#[test]
fn cubic_s_window_follows_its_cubic_after_a_loss() {
    // A path of 835 packets and 100 ms, where the cubic is above what Reno would do. The first of 600 is lost.
    let wire = Wire { rate: Rate::from_bps(100_000_000), delay: Duration::from_ms(50), ..Wire::default() };
    let mut scene = scene(2, wire, Cubic { initial_window: 600, ..Cubic::default() });
    lose::<Header>(&mut scene, &[(0, 1)]);
    let flow = scene.send(Time::ZERO, 0, 1, ENDLESS);
    scene.run_until(Time::from_ms(12_000));
    let rtt = Duration::from_ms(100) + Duration::from_ps(246_400_000);
    let repaired = resent::<Header>(&scene, flow)[0].0 + rtt;
    // RFC 9438: W_max = 600, K = cbrt(600 x 0.3 / 0.4) s, and no more than 7 packets (3 C K^2 x RTT) a round trip.
    let k = libm::cbrt(600.0 * 0.3 / 0.4);
    for round in 0..110 {
        let (from, to) = (repaired + rtt * round, repaired + rtt * (round + 1));
        let window = data::<Header>(&scene, flow).iter().filter(|sent| sent.0 >= from && sent.0 < to).count() as f64;
        let t = (from - repaired).secs_f64();
        let cubic = 0.4 * (t - k) * (t - k) * (t - k) + 600.0;
        assert!((window - cubic).abs() <= 8.0, "after {t} s: {window}, the cubic says {cubic}");
    }
}

#[test]
fn classic_marks_are_echoed_until_the_sender_has_answered_once_a_window() {
    let control = newreno::Config { ecn: true, ..newreno::Config::default() };
    let wire = Wire { mark_bytes: 60_000, ..Wire::default() };
    let mut scene = scene(3, wire, NewReno { control, ..NewReno::default() });
    for src in [0, 1] {
        scene.send(Time::ZERO, src, 2, ENDLESS);
    }
    scene.run_until(Time::from_ms(2));
    for src in [0, 1] {
        let answers = sent!(scene, Header::Data(Data { cwr: true, .. }));
        let answers: Vec<Time> = answers.iter().filter(|sent| sent.1.src == HostId(src)).map(|sent| sent.0).collect();
        let reductions = counter(&scene, src, "ecn_reductions") as usize;
        assert!(reductions > 10 && (answers.len() == reductions || answers.len() + 1 == reductions));
        assert!(answers.windows(2).all(|pair| pair[1] - pair[0] >= RTT));
        assert_eq!(counter(&scene, src, "recoveries"), 0);
    }
    assert!(scene.sent.iter().all(|sent| sent.1.has(flags::ECT) == (sent.1.payload_bytes > 0)));
    assert_eq!(scene.overflows, 0);
}

#[test]
fn thresholds_follow_from_the_bandwidth_delay_product() {
    let scene_site = std::cell::RefCell::new(None);
    Scene::new(1, Wire::default(), |site| {
        *scene_site.borrow_mut() = Some(site.clone());
        NewReno::default().endpoint(site, &NetworkView::star(site))
    });
    let site = scene_site.into_inner().unwrap();
    // 5.2464 us at 100 Gbps.
    assert_eq!(site.bdp_bytes(), 65_580);
    let step = |bytes| Some(Marking::Step { threshold: Bytes(bytes) });
    // 65,580 / 7 = 9,369 bytes, in whole packets of 1,500.
    assert_eq!(Dctcp::default().requirements(&site).signal.marking(), step(10_500));
    let reno = NewReno { control: newreno::Config { ecn: true, ..newreno::Config::default() }, ..NewReno::default() };
    assert_eq!(
        (reno.requirements(&site).signal.marking(), NewReno::default().requirements(&site).signal.marking()),
        (step(65_580), None)
    );
    let cubic = Cubic { control: cubic::Config { ecn: true, ..cubic::Config::default() }, ..Cubic::default() };
    // 3/7 of it.
    assert_eq!(
        (cubic.requirements(&site).signal.marking(), Cubic::default().requirements(&site).signal.marking()),
        (step(28_105), None)
    );
}
