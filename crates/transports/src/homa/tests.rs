//! Scenes on the virtual wire: 100 Gbps, 2.5 us from host to host. A control packet takes 2.5064 us, a full data packet
//! 2.74 us, so that RTTbytes are 5.2464 us: 65,580 bytes, or 44 packets.

use std::collections::BTreeMap;

use node::packet::flags;
use node::{Endpoint, EndpointParams, Event, Packet};
use testing::{PacketFate, Scene, Wire, sent};
use units::{Bytes, Duration, FlowId, HostId, Time};

use super::header::{Answer, Data, Granted};
use super::{Config, Header, aeolus};
use contract::{NetworkView, Scheme};

const RTT_PACKETS: u64 = 44;

fn scene(hosts: u32, config: Config) -> Scene {
    Scene::new(hosts, Wire::default(), move |site| config.endpoint(site, &NetworkView::star(site)))
}

/// Four unscheduled levels and four scheduled ones, whatever comes.
fn four() -> Config {
    Config { cutoffs: [1_000, 10_000, 50_000].map(Bytes).to_vec(), ..Config::default() }
}

fn aeolus_scene(hosts: u32) -> Scene {
    let config = aeolus::Config { homa: four(), ..aeolus::Config::default() };
    Scene::new(hosts, Wire::default(), move |site| config.endpoint(site, &NetworkView::star(site)))
}

/// The unscheduled packets that were sent.
fn unscheduled(scene: &Scene) -> Vec<(Time, Packet, Data)> {
    sent!(scene, Header::Unscheduled(data) => data)
}

/// The scheduled packets that were sent.
fn scheduled(scene: &Scene) -> Vec<(Time, Packet, Data)> {
    sent!(scene, Header::Scheduled(data) => data)
}

fn grants(scene: &Scene) -> Vec<(Time, Packet, Granted)> {
    sent!(scene, Header::Answer { of: Answer::Grant(granted), .. } => granted)
}

/// What was asked for again: what had been granted by then, offset and length.
fn resends(scene: &Scene) -> Vec<(Time, Packet, (Granted, u64, u64))> {
    sent!(scene, Header::Answer { of: Answer::Resend { granted, offset, length }, .. } => (granted, offset, length))
}

fn probes(scene: &Scene) -> Vec<(Time, Packet, ())> {
    sent!(scene, Header::Probe(_))
}

fn is_data(packet: &Packet) -> bool {
    packet.payload_bytes > 0
}

/// The number of a data packet.
fn number(header: &Header) -> Option<u64> {
    match header {
        Header::Unscheduled(data) | Header::Scheduled(data) => Some(data.offset / 1460),
        _ => None,
    }
}

fn resent(scene: &Scene, flow: FlowId) -> u64 {
    let found = scene.events.iter().find_map(|event| match event.2 {
        Event::Completed { flow: of, resent_packets, .. } if of == flow => Some(resent_packets),
        _ => None,
    });
    found.expect("the flow is complete")
}

const fn packets(count: u64) -> u64 {
    count * 1460
}

/// Alone on the wire: `count` packets one behind the other, the way, and the last out of the switch.
fn alone(count: u64) -> Time {
    Time::from_ns(count * 120 + 2_500 + 120)
}

const CONTROL_WAY: Duration = Duration::from_ps(2_506_400);

/// What is lost once.
fn lose(scene: &mut Scene, mut what: impl FnMut(&Packet, &Header) -> bool + 'static) {
    scene.spoil(move |_, packet| if what(packet, &packet.header()) { PacketFate::Drop } else { PacketFate::Pass });
}

#[test]
fn a_message_up_to_rtt_bytes_goes_at_once_and_is_answered_by_one_packet() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(RTT_PACKETS));
    scene.run_until(Time::from_ms(1));
    assert_eq!(scene.delivered_at(flow), Some(alone(RTT_PACKETS)));
    assert_eq!(scene.completed_at(flow), Some(alone(RTT_PACKETS) + CONTROL_WAY));
    assert_eq!(scene.sent.len() as u64, RTT_PACKETS + 1);
}

#[test]
fn a_long_message_is_granted_packet_by_packet_and_fills_the_wire() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(2_000));
    scene.run_until(Time::from_ms(1));
    assert_eq!(scene.delivered_at(flow), Some(alone(2_000)));
    // Section 3.3: a grant for each packet that comes, until all is granted.
    let grants = grants(&scene);
    assert_eq!(grants.len() as u64, 2_000 - RTT_PACKETS);
    assert!(grants.iter().zip(1..).all(|(grant, count)| grant.2.allowed == count));
    // The only active message has the lowest priority (section 3.4).
    assert!(scheduled(&scene).iter().all(|sent| sent.1.class == 7));
}

#[test]
fn unscheduled_levels_go_by_the_length_of_the_message() {
    let mut scene = scene(2, four());
    for (index, bytes) in [1_000, 1_001, 10_000, 10_001, 50_000, 50_001, 5_000_000].into_iter().enumerate() {
        scene.send(Time::from_us(100 * index as u64), 0, 1, bytes);
    }
    scene.run_until(Time::from_ms(2));
    let classes: Vec<u8> =
        unscheduled(&scene).iter().filter(|sent| sent.2.offset == 0).map(|sent| sent.1.class).collect();
    assert_eq!(classes, [0, 1, 1, 2, 2, 3, 3]);
    assert!(scheduled(&scene).iter().all(|sent| sent.1.class > 3));
}

#[test]
fn cutoffs_follow_recent_traffic_and_reach_senders() {
    // Twenty messages of 1 KB to one of 20: as many bytes of either. All are unscheduled, so that there are seven
    // levels, of which the first three and a half are full with the short ones.
    let mut scene = scene(2, Config::default());
    for turn in 0..400 {
        let bytes = if turn % 21 == 20 { 20_000 } else { 1_000 };
        scene.send(Time::from_us(5 * turn), 0, 1, bytes);
    }
    scene.run_until(Time::from_ms(3));
    let late = |bytes: u64| {
        let sent = unscheduled(&scene);
        let last = sent.iter().rev().find(|sent| sent.2.message.length == bytes);
        last.map(|sent| sent.1.class).expect("both were sent")
    };
    let told = sent!(&scene, Header::Answer { levels, of: Answer::Done } => levels.map(|levels| levels.count));
    assert_eq!(told.last().unwrap().2, Some(7));
    assert_eq!((late(1_000), late(20_000)), (0, 3));
}

#[test]
fn who_has_been_told_nothing_judges_others_by_itself() {
    // Host 0 receives short messages alone; then it sends one of RTTbytes to host 2, of which it has never heard.
    let mut scene = scene(3, Config::default());
    for turn in 0..64 {
        scene.send(Time::from_us(turn), 1, 0, 500);
    }
    let flow = scene.send(Time::from_us(100), 0, 2, 60_000);
    scene.run_until(Time::from_us(101));
    let classes: Vec<u8> = scene.sent.iter().filter(|sent| sent.1.flow == flow).map(|sent| sent.1.class).collect();
    assert_eq!(classes[0], 6, "the last of seven unscheduled levels");
}

#[test]
fn the_lowest_levels_are_used_first_and_shorter_messages_go_above() {
    // Three senders, of 300, 200 and 100 packets, as soon as all are known: ranks by remaining bytes over levels 4 to
    // 7.
    let mut scene = scene(4, four());
    let flows =
        [300, 200, 100].map(|count| (count, scene.send(Time::ZERO, (300 - count as u32) / 100, 3, packets(count))));
    scene.run_until(Time::from_us(20));
    let last = |flow: FlowId| grants(&scene).iter().rfind(|sent| sent.1.flow == flow).unwrap().2.class;
    assert_eq!(flows.map(|(_, flow)| last(flow)), [7, 6, 5]);
}

#[test]
fn no_more_messages_have_grants_than_the_degree_of_overcommitment() {
    for (degree, overcommitment) in [(4, None), (2, Some(2))] {
        let mut scene = scene(9, Config { overcommitment, ..four() });
        for src in 0..8 {
            scene.send(Time::ZERO, src, 8, packets(400 + 10 * u64::from(src)));
        }
        // Before any is wholly granted: the shortest have all grants.
        scene.run_until(Time::from_us(60));
        let mut granted: Vec<u32> = grants(&scene).iter().map(|sent| sent.1.dst.0).collect();
        granted.sort_unstable();
        granted.dedup();
        assert_eq!(granted.len(), degree, "{granted:?}");
    }
}

#[test]
fn one_message_of_a_sender_has_grants_and_the_sender_sends_the_shortest_first() {
    let mut scene = scene(3, four());
    let (long, short) = (scene.send(Time::ZERO, 0, 1, packets(500)), scene.send(Time::from_us(10), 0, 1, packets(200)));
    let elsewhere = scene.send(Time::from_us(20), 0, 2, packets(30));
    scene.run_until(Time::from_ms(1));
    // The last to come is sent whole at once: 30 packets of 120 ns from 20 us on, but for the packet being sent.
    let there = scene.delivered_at(elsewhere).unwrap();
    assert!(there <= Time::from_us(20) + Duration::from_ns(31 * 120 + 2_620), "{there}");
    assert!(scene.delivered_at(short) < scene.delivered_at(long));
    // While the short one needs grants the long one has none, once what it had been granted has been used.
    let grants = grants(&scene);
    let of_short: Vec<Time> = grants.iter().filter(|sent| sent.1.flow == short).map(|sent| sent.0).collect();
    let between = |at: Time| of_short[0] < at && at < *of_short.last().unwrap();
    assert!(!grants.iter().any(|sent| sent.1.flow == long && between(sent.0)));
}

#[test]
fn a_lost_packet_is_asked_for_after_the_timeout_and_comes_once_more() {
    for (count, lost_number) in [(20, 3), (20, 19), (400, 10), (400, 300), (400, 399)] {
        let mut scene = scene(2, four());
        let mut losses = 0;
        lose(&mut scene, move |_, header| {
            let hit = number(header) == Some(lost_number) && losses == 0;
            losses += u32::from(hit);
            hit
        });
        let flow = scene.send(Time::ZERO, 0, 1, packets(count));
        scene.run_until(Time::from_ms(10));
        assert_eq!(resent(&scene, flow), 1, "{lost_number} of {count}");
        let delivered = scene.delivered_at(flow).unwrap();
        // What was behind it came at line rate; then 2 ms of silence, and a round trip.
        let quiet = alone(count) - Duration::from_ns(if lost_number == count - 1 { 120 } else { 0 });
        // The lost packet takes a place among the 44: each round trip, of 43.7 packets, is one short.
        let idle = Duration::from_ns(120) * ((count - lost_number) / RTT_PACKETS);
        let latest = quiet + idle + Duration::from_ms(2) + CONTROL_WAY + Duration::from_ns(2_740 + 240);
        assert!(quiet + Duration::from_ms(2) < delivered && delivered <= latest, "{delivered}");
        assert_eq!(resends(&scene).len(), 1);
    }
}

#[test]
fn a_message_of_which_nothing_came_is_asked_about_by_its_sender() {
    let mut scene = scene(2, four());
    scene.spoil(
        |now, packet| if is_data(packet) && now < Time::from_ms(1) { PacketFate::Drop } else { PacketFate::Pass },
    );
    let flow = scene.send(Time::ZERO, 0, 1, packets(20));
    scene.run_until(Time::from_ms(10));
    // 2 ms and two round trips after its last packet left, a probe; the receiver asks for everything.
    let probed = Time::from_ns(19 * 120) + Duration::from_ms(2) + Duration::from_ps(2 * 5_246_400);
    assert_eq!(probes(&scene)[0].0, probed);
    let resends = resends(&scene);
    let (_, offset, length) = resends[0].2;
    assert_eq!((resends.len(), offset, length), (1, 0, packets(20)));
    let again = probed + CONTROL_WAY * 2;
    let delivered = scene.delivered_at(flow).unwrap();
    assert!(delivered <= again + (alone(20) - Time::ZERO) + Duration::from_ns(10), "{delivered}");
    assert_eq!(resent(&scene, flow), 20);
}

#[test]
fn a_lost_answer_is_said_again_and_nothing_is_delivered_twice() {
    let mut scene = scene(2, four());
    let mut losses = 0;
    lose(&mut scene, move |_, header| {
        let done = matches!(header, Header::Answer { of: Answer::Done, .. });
        losses += u32::from(done);
        done && losses <= 2
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(20));
    scene.run_until(Time::from_ms(10));
    assert_eq!(resent(&scene, flow), 0);
    assert_eq!(probes(&scene).len(), 2);
    assert_eq!(scene.events.iter().filter(|said| said.2 == Event::Delivered { flow }).count(), 1);
}

#[test]
fn a_lost_grant_is_made_up_for_by_the_next_and_lost_grants_by_a_resend() {
    let mut scene = scene(2, four());
    let odd = |granted: &Granted| granted.allowed % 2 == 1;
    lose(&mut scene, move |_, header| matches!(header, Header::Answer { of: Answer::Grant(grant), .. } if odd(grant)));
    let flow = scene.send(Time::ZERO, 0, 1, packets(400));
    scene.run_until(Time::from_ms(1));
    // Two packets of grants come at once then: a packet later each round trip at worst.
    let late = scene.delivered_at(flow).unwrap().since(alone(400));
    assert!(late <= Duration::from_ns(120) * (400 / RTT_PACKETS + 1), "{late}");
    assert_eq!(resent(&scene, flow), 0);
    // All grants for a while: the receiver thinks that RTTbytes are on the way.
    let mut scene = self::scene(2, four());
    scene.spoil(|now, packet| {
        let grant = matches!(packet.header(), Header::Answer { of: Answer::Grant(_), .. });
        if grant && now < Time::from_us(100) { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(400));
    scene.run_until(Time::from_ms(10));
    let resends = resends(&scene);
    let (granted, ..) = resends[0].2;
    assert_eq!((resends.len(), granted.allowed), (1, RTT_PACKETS as u32));
    assert_eq!(resent(&scene, flow), 0, "none of what was asked for had been sent");
    assert!(scene.delivered_at(flow).unwrap() < Time::from_ms(3));
}

#[test]
fn a_sender_that_sends_shorter_messages_says_that_it_is_busy() {
    // Two long messages; the longer has the first RTTbytes out, then waits for more than 2 ms behind the other.
    let mut scene = scene(3, four());
    let long = scene.send(Time::ZERO, 0, 1, packets(60_000));
    let other = scene.send(Time::from_us(2), 0, 2, packets(40_000));
    scene.run_until(Time::from_ms(20));
    assert!(!sent!(&scene, Header::Busy).is_empty());
    assert!(scene.delivered_at(other).unwrap() < scene.delivered_at(long).unwrap());
    assert_eq!(resent(&scene, long) + resent(&scene, other), 0);
}

#[test]
fn a_paused_class_holds_back_no_other() {
    let mut scene = scene(3, four());
    scene.pause(0, 0b1000_0100);
    let held = scene.send(Time::ZERO, 0, 1, 20_000);
    let free = scene.send(Time::ZERO, 0, 2, 200_000);
    scene.run_until(Time::from_us(10));
    assert!(!unscheduled(&scene).iter().any(|sent| sent.1.flow == held));
    assert_eq!(unscheduled(&scene).iter().filter(|sent| sent.1.flow == free).count() as u64, RTT_PACKETS);
    scene.pause(0, 0);
    scene.run_until(Time::from_ms(1));
    assert!(scene.completed_at(held).is_some() && scene.completed_at(free).is_some());
}

#[test]
fn aeolus_sends_a_probe_behind_the_last_unscheduled_packet() {
    let mut scene = aeolus_scene(2);
    let (short, long) = (scene.send(Time::ZERO, 0, 1, packets(20)), scene.send(Time::from_us(50), 0, 1, packets(500)));
    scene.run_until(Time::from_ms(1));
    for (flow, last) in [(short, 20), (long, RTT_PACKETS)] {
        let sent: Vec<(Header, Packet)> = scene
            .sent
            .iter()
            .filter(|sent| sent.1.flow == flow && sent.1.src == HostId(0))
            .map(|sent| (sent.1.header(), sent.1))
            .collect();
        let probe = sent.iter().position(|sent| matches!(sent.0, Header::Probe(_))).unwrap();
        let (before, probe) = (sent[probe - 1], sent[probe]);
        assert!(matches!(before.0, Header::Unscheduled(_)));
        assert_eq!(number(&before.0), Some(last - 1));
        // It must not overtake, and must not be lost as they may.
        assert_eq!(probe.1.class, before.1.class);
        assert_eq!((before.1.has(flags::ECT), probe.1.has(flags::ECT)), (false, true));
    }
    // Alone, nothing is lost and nothing is late: the probe costs 3.2 ns of the wire.
    assert_eq!(scene.delivered_at(short), Some(alone(20)));
    let end = alone(500) + Duration::from_us(50);
    let delivered = scene.delivered_at(long).unwrap();
    assert!(end <= delivered && delivered <= end + Duration::from_ns(10), "{delivered} {end}");
    assert_eq!(resent(&scene, short) + resent(&scene, long), 0);
    // Everything else is protected, and each unscheduled packet but a message's last is acknowledged.
    let exposed = |packet: &Packet| matches!(packet.header(), Header::Unscheduled(_));
    assert!(scene.sent.iter().all(|sent| sent.1.has(flags::ECT) != exposed(&sent.1)));
    assert_eq!(sent!(&scene, Header::Answer { of: Answer::Ack { .. }, .. }).len() as u64, 19 + RTT_PACKETS);
}

#[test]
fn aeolus_sends_lost_unscheduled_packets_first_and_scheduled_within_a_round_trip() {
    for count in [30, 400] {
        let mut scene = aeolus_scene(2);
        let missing = [2, 3, 17, 29];
        lose(&mut scene, move |_, header| {
            matches!(header, Header::Unscheduled(_)) && number(header).is_some_and(|number| missing.contains(&number))
        });
        let flow = scene.send(Time::ZERO, 0, 1, packets(count));
        scene.run_until(Time::from_ms(1));
        let again: Vec<(Time, u64)> = scheduled(&scene)
            .iter()
            .map(|sent| (sent.0, sent.2.offset / 1460))
            .filter(|sent| sent.1 < RTT_PACKETS)
            .collect();
        assert_eq!(again.iter().map(|sent| sent.1).collect::<Vec<_>>(), missing);
        // Behind the probe by a round trip: its way there, the answer's back, and at most a packet at either end, and
        // what a full packet takes longer than the probe.
        let probe = probes(&scene)[0].0;
        assert!(again[0].0 <= probe + CONTROL_WAY * 2 + Duration::from_ns(720), "{} {probe}", again[0].0);
        assert_eq!((resent(&scene, flow), resends(&scene).len()), (4, 0));
        assert!(scene.delivered_at(flow).unwrap() < alone(count) + Duration::from_us(8));
    }
}

#[test]
fn aeolus_grants_a_message_whose_every_packet_was_lost() {
    let mut scene = aeolus_scene(2);
    lose(&mut scene, |_, header| matches!(header, Header::Unscheduled(_)));
    let flow = scene.send(Time::ZERO, 0, 1, packets(RTT_PACKETS));
    scene.run_until(Time::from_ms(1));
    // One way and back, and then the message as if it had begun there. A probe waits for what a full packet takes
    // longer.
    let second = probes(&scene)[0].0 + CONTROL_WAY * 2 + (Duration::from_ns(240) - Duration::from_ps(6_400));
    let expected = second + (alone(RTT_PACKETS) - Time::ZERO);
    let delivered = scene.delivered_at(flow).unwrap();
    assert!(
        delivered <= expected + Duration::from_ns(20) && delivered + Duration::from_ns(20) >= expected,
        "{delivered} {expected}"
    );
}

#[test]
fn a_lost_probe_is_sent_again() {
    let mut scene = aeolus_scene(2);
    scene.spoil(|now, packet| {
        let first = matches!(packet.header(), Header::Unscheduled(_) | Header::Probe(_));
        if first && now < Time::from_ms(1) { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(20));
    scene.run_until(Time::from_ms(10));
    assert_eq!(resent(&scene, flow), 20);
    assert!(scene.delivered_at(flow).unwrap() < Time::from_us(2_030));
}

#[test]
fn packets_from_nowhere_change_nothing() {
    let mut scene = scene(2, four());
    scene.touch(|_, packet| {
        if let Header::Unscheduled(data) = packet.header()
            && data.offset == packets(5)
        {
            packet.set_header(Header::Unscheduled(Data { offset: u64::MAX - 3, ..data }));
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(20));
    scene.run_until(Time::from_ms(1));
    assert_eq!((scene.delivered_at(flow), scene.completed_at(flow)), (None, None));
}

/// What must hold of all grants, told from what was sent: no message has more on its way than RTTbytes, and none is
/// granted more than it has.
fn assert_grants_are_sound(scene: &Scene, sizes: &BTreeMap<FlowId, u64>) {
    let mut granted: BTreeMap<FlowId, u64> = BTreeMap::new();
    // What a receiver had when it granted is at most what had been sent by then.
    let mut sent: BTreeMap<FlowId, std::collections::BTreeSet<u64>> = BTreeMap::new();
    for (_, packet) in &scene.sent {
        match packet.header() {
            Header::Unscheduled(data) | Header::Scheduled(data) => {
                sent.entry(packet.flow).or_default().insert(data.offset);
            }
            Header::Answer { of: Answer::Grant(grant), .. } => {
                let allowed = granted.entry(packet.flow).or_default();
                assert!(u64::from(grant.allowed) >= *allowed, "grants never go back");
                *allowed = u64::from(grant.allowed);
                let (all, sent) = (sizes[&packet.flow].div_ceil(1460), sent[&packet.flow].len() as u64);
                let unscheduled = all.min(RTT_PACKETS);
                assert!(*allowed + unscheduled <= all);
                assert!(*allowed + unscheduled <= sent + RTT_PACKETS, "{allowed} granted, {sent} sent");
            }
            _ => {}
        }
    }
}

fn endpoint(kind: usize, site: &EndpointParams) -> Box<dyn Endpoint> {
    let homa = if kind.is_multiple_of(2) { Config::default() } else { four() };
    let queue = [aeolus::Queue::Port, aeolus::Queue::One][kind / 4];
    let aeolus = aeolus::Config { homa: homa.clone(), queue, ..aeolus::Config::default() };
    if kind & 2 == 0 {
        homa.endpoint(site, &NetworkView::star(site))
    } else {
        aeolus.endpoint(site, &NetworkView::star(site))
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 48, ..Default::default() })]

    /// Whatever is lost, delayed or doubled, every message is delivered once and its sender learns of it.
    #[test]
    fn every_message_completes_over_a_bad_wire(
        sizes in proptest::collection::vec((1u64..300_000, 0u32..4, 1u32..4, 0u64..50), 1..12),
        fates: u64,
        which in 0usize..8,
    ) {
        let mut scene = Scene::new(4, Wire::default(), move |site| endpoint(which, site));
        let mut state = fates | 1;
        scene.spoil(move |now, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match state >> 59 {
                0 | 1 if now < Time::from_ms(1) => PacketFate::Drop,
                2 if now < Time::from_ms(1) => PacketFate::Delay(Duration::from_us(state >> 40 & 31)),
                3 if now < Time::from_ms(1) => PacketFate::Duplicate,
                _ => PacketFate::Pass,
            }
        });
        let send = |&(bytes, src, step, at): &(u64, u32, u32, u64)| {
            (scene.send(Time::from_us(at), src, (src + step) % 4, bytes), bytes)
        };
        let flows: BTreeMap<FlowId, u64> = sizes.iter().map(send).collect();
        scene.run_until(Time::from_ms(60));
        for &flow in flows.keys() {
            let said = |event: Event| scene.events.iter().filter(|said| said.2 == event).count();
            proptest::prop_assert_eq!(said(Event::Delivered { flow }), 1);
            let completed = scene.completed_at(flow);
            proptest::prop_assert!(completed >= scene.delivered_at(flow), "{:?}", completed);
        }
        if which & 2 == 0 {
            assert_grants_are_sound(&scene, &flows);
        }
    }

    /// Over a good wire nothing is sent twice, and a sender never sends of a message while it could of a shorter one.
    #[test]
    fn senders_send_the_fewest_bytes_left_first(sizes in proptest::collection::vec(1u64..60_000, 2..20)) {
        let mut scene = scene(3, four());
        let flows: Vec<(FlowId, u64)> = sizes.iter().map(|&bytes| (scene.send(Time::ZERO, 0, 1, bytes), bytes))
            .collect();
        scene.run_until(Time::from_ms(5));
        // All are unscheduled and there from the first instant on, after the first packet of the first to come.
        let order: Vec<FlowId> = unscheduled(&scene).iter().map(|sent| sent.1.flow).skip(1).collect();
        let mut left: Vec<(u64, FlowId)> = flows.iter().map(|&(flow, bytes)| (bytes, flow)).collect();
        left[0].0 = left[0].0.saturating_sub(1460);
        for flow in order {
            left.retain(|left| left.0 > 0);
            let least = left.iter_mut().min().unwrap();
            proptest::prop_assert_eq!(least.1, flow);
            least.0 = least.0.saturating_sub(1460);
        }
        for (flow, _) in flows {
            proptest::prop_assert_eq!(resent(&scene, flow), 0);
        }
    }
}

#[test]
fn settings_that_cannot_be_are_named() {
    let key = |config: Config| config.check().unwrap_err().key;
    assert_eq!(key(Config { priorities: 1, ..Config::default() }), "priorities");
    assert_eq!(key(Config { rtt_bytes: Some(Bytes(0)), ..Config::default() }), "rtt_bytes");
    assert_eq!(key(Config { unscheduled_levels: Some(8), ..Config::default() }), "unscheduled_levels");
    let idle = Config { unscheduled_levels: Some(2), ..four() };
    assert_eq!((idle.check(), idle.advice()[0].key.as_str()), (Ok(()), "unscheduled_levels"));
    assert_eq!(key(Config { cutoffs: vec![Bytes(5), Bytes(5)], ..Config::default() }), "cutoffs");
    assert_eq!(key(Config { priorities: 4, ..four() }), "cutoffs");
    assert_eq!(key(Config { overcommitment: Some(0), ..Config::default() }), "overcommitment");
    let aeolus = aeolus::Config { homa: Config { priorities: 9, ..Config::default() }, ..aeolus::Config::default() };
    assert_eq!(aeolus.check().unwrap_err().key, "homa.priorities");
}
