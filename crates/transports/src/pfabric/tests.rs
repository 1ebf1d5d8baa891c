//! Scenes on the virtual wire: 100 Gbps, 2.5 us from host to host, so that an acknowledgement takes 2.5064 us and a
//! full data packet 2.74 us: a round trip of 5.2464 us, in which a host sends 44 packets. (The wire's switch knows
//! nothing of priorities; the queue's scenes are its own.)

use node::Event;
use testing::{PacketFate, Scene, Wire, sent};
use units::{Bytes, Duration, FlowId, Time};

use super::header::{Ack, Data};
use super::{Config, Header};
use contract::{NetworkView, Scheme};

const BDP: u32 = 44;
const PACKET: Duration = Duration::from_ns(120);
const RTT: Duration = Duration::from_ps(5_246_400);
const ACK: Duration = Duration::from_ps(2_506_400);
const DATA: Duration = Duration::from_ps(2_740_000);

fn scene(hosts: u32, config: Config) -> Scene {
    Scene::new(hosts, Wire::default(), move |site| config.endpoint(site, &NetworkView::star(site)))
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

/// 1460 bytes a packet.
const fn packets(count: u64) -> u64 {
    count * 1460
}

fn resent(scene: &Scene, flow: FlowId) -> u64 {
    let found = scene.events.iter().find_map(|event| match event.2 {
        Event::Completed { flow: of, resent_packets, .. } if of == flow => Some(resent_packets),
        _ => None,
    });
    found.expect("the flow is complete")
}

/// Loses a packet of data if `lost` says so of its number and of how often it was sent before.
fn lose(scene: &mut Scene, lost: impl Fn(u32, u32) -> bool + 'static) {
    let mut sent = std::collections::BTreeMap::new();
    scene.spoil(move |_, packet| {
        let Header::Data(Data { packet: number, .. }) = packet.header() else { return PacketFate::Pass };
        let before = sent.entry(number).or_insert(0);
        *before += 1;
        if lost(number, *before - 1) { PacketFate::Drop } else { PacketFate::Pass }
    });
}

#[test]
fn a_lone_flow_has_its_link_for_itself_from_the_first_packet_on() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(10_000));
    scene.run_until(ms(10));
    let delivered = Time::ZERO + PACKET * 9_999 + DATA;
    assert_eq!((scene.delivered_at(flow), scene.completed_at(flow)), (Some(delivered), Some(delivered + ACK)));
    assert_eq!((sent!(scene, Header::Ack(ack) => ack).len(), resent(&scene, flow)), (10_000, 0));
}

#[test]
fn packets_tell_what_remains_of_their_flow() {
    let mut scene = scene(2, Config::default());
    scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    // What is acknowledged does not remain: nothing in the first round trip, then all but what is on its way.
    for (index, (_, _, data)) in sent!(scene, Header::Data(data) => data).into_iter().enumerate() {
        let acknowledged = (index as u64).saturating_sub(u64::from(BDP - 1));
        assert_eq!(data.remaining, packets(100 - acknowledged), "packet {index}");
    }
    assert_eq!(sent!(scene, Header::Ack(_)).len(), 100);
    assert!(sent!(scene, ack @ Header::Ack(_) => ack).iter().all(|sent| sent.2.priority() == 0));
}

#[test]
fn a_host_sends_the_flow_with_the_least_remaining() {
    let mut scene = scene(3, Config::default());
    let long = scene.send(Time::ZERO, 0, 1, packets(1_000));
    let short = scene.send(Time::from_us(30), 0, 2, packets(30));
    scene.run_until(ms(1));
    // It waits for the packet that is being sent, and no more.
    let alone = PACKET * 29 + DATA;
    assert!(scene.delivered_at(short).unwrap() <= Time::from_us(30) + alone + PACKET);
    // The other has lost 30 packet times, and nothing else.
    assert_eq!(scene.delivered_at(long), Some(Time::ZERO + PACKET * 1_029 + DATA));
    assert_eq!(resent(&scene, long), 0);
}

#[test]
fn what_has_not_been_sent_is_not_late() {
    // For 50 round trips a host sends a smaller flow: the other's timer does not run.
    let mut scene = scene(3, Config::default());
    let long = scene.send(Time::ZERO, 0, 1, packets(5_000));
    scene.send(Time::from_us(30), 0, 2, packets(2_000));
    scene.run_until(ms(2));
    assert_eq!(scene.delivered_at(long), Some(Time::ZERO + PACKET * 6_999 + DATA));
    assert_eq!(resent(&scene, long), 0);
}

#[test]
fn a_lost_packet_is_sent_again_three_round_trips_after_the_last_cumulative_acknowledgement() {
    let mut scene = scene(2, Config::default());
    lose(&mut scene, |packet, before| packet == 10 && before == 0);
    let flow = scene.send(Time::ZERO, 0, 1, packets(30));
    scene.run_until(ms(1));
    // Packet 9's acknowledgement comes when 10 full packet times and its way are over.
    let acknowledged = Time::ZERO + PACKET * 9 + RTT;
    let again = acknowledged + RTT * 3;
    assert_eq!(sent!(scene, Header::Data(data) => data).last().map(|sent| (sent.0, sent.2.packet)), Some((again, 10)));
    assert_eq!((scene.delivered_at(flow), resent(&scene, flow)), (Some(again + DATA), 1));
}

#[test]
fn after_a_timeout_the_window_grows_from_one_to_half_and_then_by_one_a_round_trip() {
    let mut scene = scene(2, Config::default());
    // The first packet is lost, and everything that was sent after it: a window of 44.
    lose(&mut scene, |packet, before| packet < BDP && before == 0);
    scene.send(Time::ZERO, 0, 1, packets(1_000));
    scene.run_until(ms(1));
    let timeout = Time::ZERO + RTT * 3;
    let sent_in = |round: u64| {
        let (from, to) = (timeout + RTT * round, timeout + RTT * (round + 1));
        sent!(scene, Header::Data(data) => data).iter().filter(|sent| sent.0 >= from && sent.0 < to).count()
    };
    // Slow start doubles to the threshold of 22; then one more each round trip (the round that passes it has both).
    let rounds: Vec<usize> = (0..8).map(sent_in).collect();
    assert_eq!(rounds[..5], [1, 2, 4, 8, 16]);
    assert!((22..=23).contains(&rounds[5]) && rounds[6] <= rounds[5] + 1 && rounds[7] <= rounds[6] + 1, "{rounds:?}");
}

#[test]
fn the_window_stays_within_its_bound() {
    // Acknowledgements are held up, so that all that the window lets out is out.
    let mut scene = scene(2, Config { timeout: 100.0, ..Config::default() });
    scene.spoil(|now, packet| match packet.header() {
        Header::Ack(_) if now > Time::from_us(100) => PacketFate::Drop,
        _ => PacketFate::Pass,
    });
    scene.send(Time::ZERO, 0, 1, packets(10_000));
    scene.run_until(Time::from_us(300));
    let acked = sent!(scene, Header::Ack(ack) => ack).iter().filter(|sent| sent.0 <= Time::from_us(100)).count();
    // 1.25 times 44, and no more on the way.
    assert_eq!(sent!(scene, Header::Data(data) => data).len() - acked, 55);
}

#[test]
fn after_five_timeouts_a_flow_probes_with_headers_until_it_is_answered() {
    let mut scene = scene(2, Config::default());
    let until = Time::from_us(150);
    scene.spoil(move |now, _| if now < until { PacketFate::Drop } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    let timeout = RTT * 3;
    // A window, then one packet after each timeout, and from the fifth on a header.
    let data: Vec<Time> =
        sent!(scene, Header::Data(data) => data).iter().map(|sent| sent.0).filter(|at| *at < until).collect();
    let resent: Vec<Time> = (1..5).map(|timeouts| Time::ZERO + timeout * timeouts).collect();
    assert_eq!(data[BDP as usize..], resent);
    let probes = sent!(scene, Header::Probe { remaining, .. } => remaining);
    let sent: Vec<Time> = probes.iter().map(|sent| sent.0).collect();
    assert_eq!(sent, (5..=10).map(|timeouts| Time::ZERO + timeout * timeouts).collect::<Vec<_>>());
    assert!(probes.iter().all(|sent| sent.1.wire_bytes == 40 && sent.2 == packets(100)));
    // The last is answered, and the flow starts slowly: 1, 2, 4, ... 64 packets, so seven rounds.
    let answered = *sent.last().unwrap() + ACK + ACK;
    let next = sent!(scene, Header::Data(data) => data).into_iter().find(|sent| sent.0 > until).unwrap();
    assert_eq!((next.0, next.2.packet), (answered, 0));
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn a_lost_acknowledgement_costs_nothing_but_the_last() {
    for (lost, expected) in [(3, 0), (9, 1)] {
        let mut scene = scene(2, Config::default());
        let mut left = 1;
        scene.spoil(move |_, packet| {
            let hit =
                left > 0 && matches!(packet.header(), Header::Ack(Ack { packet: Some(number), .. }) if number == lost);
            left -= i32::from(hit);
            if hit { PacketFate::Drop } else { PacketFate::Pass }
        });
        let flow = scene.send(Time::ZERO, 0, 1, packets(10));
        scene.run_until(ms(1));
        assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + PACKET * 9 + DATA));
        assert_eq!(resent(&scene, flow), expected);
    }
}

#[test]
fn a_paused_host_sends_nothing_and_then_everything() {
    let mut scene = scene(2, Config::default());
    scene.pause(0, 1);
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    assert!(scene.sent.is_empty());
    scene.pause(0, 0);
    scene.run_until(ms(2));
    assert_eq!((scene.completed_at(flow).is_some(), resent(&scene, flow)), (true, 0));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 32, ..Default::default() })]

    /// Whatever is lost, delayed or doubled, every flow is delivered once, and its sender learns of it.
    #[test]
    fn every_flow_completes_over_a_bad_wire(
        sizes in proptest::collection::vec((1u64..200_000, 0u32..4, 1u32..4, 0u64..50), 1..12),
        fates: u64,
        window in 1u64..100_000,
        probe_after in 1u32..6,
    ) {
        let config = Config { initial_window: Some(Bytes(window)), probe_after, ..Config::default() };
        let mut scene = scene(4, config);
        scene.spoil_for_a_millisecond(fates, |_| false);
        let send = |&(bytes, src, step, at): &(u64, u32, u32, u64)| {
            scene.send(Time::from_us(at), src, (src + step) % 4, bytes)
        };
        let flows: Vec<FlowId> = sizes.iter().map(send).collect();
        scene.run_until(ms(40));
        for flow in flows {
            let said = |event: Event| scene.events.iter().filter(|said| said.2 == event).count();
            proptest::prop_assert_eq!(said(Event::Delivered { flow }), 1);
            let completed = scene.completed_at(flow);
            proptest::prop_assert!(completed >= scene.delivered_at(flow), "{:?}", completed);
        }
    }
}
