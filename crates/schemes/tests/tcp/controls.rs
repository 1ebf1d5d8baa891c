use clearway_schemes::tcp::header::{CWR, ECE};
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
    scene.spoil(move |_, _| Fate::Delay(Duration::from_ps(random.below(PACKET.ps()))));
    for src in 0..flows {
        scene.send(Time::from_ns(u64::from(100_000 * src / flows)), src, flows, ENDLESS);
    }
    scene
}

/// Bytes of each flow that the receiver had by `at`.
fn received(scene: &Scene, flows: u32, at: Time) -> Vec<u64> {
    let mut bytes = vec![0; flows as usize];
    for (_, packet, header) in acks(scene).take_while(|ack| ack.0 <= at) {
        bytes[packet.flow.index()] = header.sequence;
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
/// only: short round trips and a small buffer give each flow some thousands.
fn shares_a_drop_tail_queue<A: Algorithm>(config: Config<A>) {
    let wire = Wire { delay: Duration::from_ns(800), queue_bytes_max: 36_000, ..Wire::default() };
    let config = Config { rto_min: Duration::from_us(100), ..config };
    let used = shares_equally(2, wire, config, Time::from_ms(122));
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

/// Two to eight equal flows that share a queue marked as the control asks, with `share_bytes` a flow on the path.
fn shares_a_marking_queue<A: Algorithm>(config: Config<A>) {
    for flows in [2, 3, 5, 8] {
        let delay = Duration::from_ns(1_000 * u64::from(flows));
        let wire = Wire { delay, ..Wire::default() };
        let rtt = delay * 2 + Duration::from_ps(246_400);
        let site = Site {
            host: HostId(0),
            hosts: 2,
            nic_rate: wire.rate,
            data_rtt: rtt,
            control_rtt: rtt,
            mtu_bytes: 1500,
            header_bytes: 40,
            clock: node::Clock::default(),
            transport: 0,
        };
        let Some(Marking::Step { threshold }) = config.asks(&site).marking else { panic!("no step asked for") };
        let wire = Wire { mark_bytes: threshold.get(), ..wire };
        let used = shares_equally(flows, wire, config.clone(), Time::from_ms(22));
        println!("{flows} {used}");
    }
}

#[test]
fn newreno_flows_share_a_marking_queue() {
    shares_a_marking_queue(NewReno { control: newreno::Config { ecn: true }, ..NewReno::default() });
}

#[test]
fn cubic_flows_share_a_marking_queue() {
    shares_a_marking_queue(Cubic {
        control: cubic::Config { ecn: true, ..cubic::Config::default() },
        ..Cubic::default()
    });
}

#[test]
fn dctcp_flows_share_a_marking_queue() {
    shares_a_marking_queue(Dctcp::default());
}

#[test]
fn dctcp_s_queue_and_alpha_are_as_its_paper_says() {
    // DCTCP section 3.3, N synchronised flows: C x RTT = 50.25 us at 120 ns a packet, K = 80 packets.
  for (flows, g) in [(2u32, 1.0/16.0), (2, 0.02), (2, 0.01), (1, 0.02), (4, 0.02)] {
    let k = 80.0;
    let wire = Wire { delay: Duration::from_us(25), mark_bytes: 80 * 1_500, ..Wire::default() };
    let mut scene = share(flows, wire, Dctcp { control: dctcp::Config { g, ..Default::default() }, ..Dctcp::default() });
    let begin = Time::from_ms(15);
    scene.run_until(Time::from_ms(60));
    // Equation 6 in W* = (C x RTT + K) / N, by bisection.
    let w = (50_246.4 / 120.0 + k) / f64::from(flows);
    let marked_share = |alpha: f64| alpha * alpha * (1.0 - alpha / 4.0) - (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if marked_share(middle) < 0.0 { low = middle } else { high = middle }
    }
    let (all, marked) = acks(&scene)
        .filter(|ack| ack.0 >= begin)
        .fold((0.0, 0.0), |(all, marked), ack| (all + 1.0, marked + f64::from(u8::from(ack.2.has(ECE)))));
    let alpha = marked / all;
    println!("alpha {alpha} theory {low}");
    // The queue that a packet met, from its time on the way.
    let sent: Vec<Vec<(Time, u64)>> = (0..flows).map(|flow| data(&scene, FlowId(flow))).collect();
    let unloaded = Duration::from_ns(25_240);
    let queue = acks(&scene).filter(|ack| ack.0 >= begin).map(|(at, packet, header)| {
        let segment = header.sequence / MSS - 1;
        let left = sent[packet.flow.index()][segment as usize];
        assert_eq!(left.1, segment);
        (at - left.0).saturating_sub(unloaded).ps() as f64 / PACKET.ps() as f64
    });
    let (least, most) = queue.fold((f64::MAX, 0.0f64), |(least, most), queue| (least.min(queue), most.max(queue)));
    // Equations 8, 10 and 11.
    let n = f64::from(flows);
    println!("queue {least} {most} red {} theory {} {}", counter(&scene, 0, "ecn_reductions"), k + n - 0.5 * (2.0 * n * (n * w)).sqrt(), k + n);
}}
