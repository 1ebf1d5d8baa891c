//! Scenes on the virtual wire: 100 Gbps, 2.5 us from host to host, so that a control packet takes 2.5064 us (3.2 ns
//! onto the wire, and again out of the switch) and a full data packet 2.74 us.

use std::collections::{BTreeMap, BTreeSet};

use node::packet::flags;
use node::{Event, FlowState, Packet};
use proptest::prelude::*;
use testing::{PacketFate, Scene, Wire, sent};
use units::{Duration, FlowId, Time};

use super::header::{Ack, Data, Nack};
use super::*;

const PACKET: Duration = Duration::from_ns(120);
const DATA_WAY: Duration = Duration::from_ps(2_740_000);
const CONTROL_WAY: Duration = Duration::from_ps(2_506_400);
const RTT: Duration = Duration::from_ps(2_740_000 + 2_506_400);

/// One path, a window that holds nothing back here, and an answer to each packet.
fn plain() -> Config {
    Config { paths: 1, initial_fcwnd: 256.0, ack_coalescing_packets: 1, ..Config::default() }
}

fn scene_of(hosts: u32, wire: Wire, config: Config) -> Scene {
    Scene::new(hosts, wire, move |site| config.endpoint(site, &NetworkView::star(site)))
}

fn scene(config: Config) -> Scene {
    scene_of(2, Wire::default(), config)
}

const fn packets(count: u64) -> u64 {
    count * 1460
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

fn data(packet: &Packet) -> Option<Data> {
    if let Header::Data(data) = packet.header() { Some(data) } else { None }
}

/// When each copy of a packet was sent.
fn times(scene: &Scene, psn: u32) -> Vec<Time> {
    let all = sent!(scene, Header::Data(data) => data.psn);
    all.into_iter().filter(|sent| sent.2 == psn).map(|sent| sent.0).collect()
}

fn count(scene: &Scene, host: u32, name: &str) -> u64 {
    scene.endpoint(host).counters().into_iter().find(|counter| counter.0 == name).expect("a counter of that name").1
}

fn said(scene: &Scene, flow: FlowId, name: &str) -> Option<u64> {
    let mut say = FlowState::default();
    scene.endpoint(0).state(flow, &mut say);
    say.of(name)
}

/// Loses the first copy of these packets.
fn lose_once(scene: &mut Scene, lost: &'static [u32]) {
    let mut seen = BTreeSet::new();
    scene.spoil(move |_, packet| match data(packet) {
        Some(data) if lost.contains(&data.psn) && seen.insert(data.psn) => PacketFate::Drop,
        _ => PacketFate::Pass,
    });
}

/// Whether `time` is `expected`, or up to `late` after it. Round trips are measured in whole nanoseconds, so what
/// follows from several may be a few early.
fn soon(time: Time, expected: Time, late: Duration) -> bool {
    time + Duration::from_ns(5) >= expected && time <= expected + late
}

#[test]
fn a_message_needs_no_handshake_and_goes_at_line_rate() {
    for config in [plain(), Config { initial_fcwnd: 256.0, ..Config::default() }] {
        let mut scene = scene(config);
        let flow = scene.send(Time::ZERO, 0, 1, packets(400));
        scene.run_until(ms(1));
        let delivered = Time::ZERO + PACKET * 399 + DATA_WAY;
        assert_eq!(scene.delivered_at(flow), Some(delivered));
        assert_eq!(scene.completed_at(flow), Some(delivered + CONTROL_WAY));
        assert_eq!((count(&scene, 0, "retransmissions"), count(&scene, 1, "duplicates")), (0, 0));
    }
}

#[test]
fn numbers_run_at_most_a_window_ahead_of_the_first_unacknowledged() {
    let config = Config { initial_fcwnd: 10.0, max_fcwnd: 10.0, ..plain() };
    let mut scene = scene(config);
    lose_once(&mut scene, &[30]);
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    let left: Vec<Time> = sent!(scene, Header::Data(_)).iter().map(|sent| sent.0).collect();
    assert_eq!(left[..10], (0..10).map(|packet| Time::ZERO + PACKET * packet).collect::<Vec<_>>());
    assert_eq!(left[10], Time::ZERO + RTT);
    // While 30 is missing, 39 is the last: it waits for 30 though the nine others have arrived.
    let repaired = times(&scene, 30)[1];
    assert!(times(&scene, 39)[0] < repaired && times(&scene, 40)[0] == repaired + RTT);
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn what_later_departures_have_overtaken_goes_again_after_a_quarter_of_a_round_trip() {
    let mut scene = scene(plain());
    lose_once(&mut scene, &[5]);
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    // RFC 8985, section 6.2: its own departure, the round trip of the newest that has arrived, and rtt / 4.
    let [first, again] = times(&scene, 5)[..] else { panic!("twice") };
    assert!(soon(again, first + RTT + RTT / 4, PACKET * 2), "{again}");
    assert_eq!((count(&scene, 0, "early_retransmissions"), count(&scene, 0, "timeouts")), (1, 0));
    assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + PACKET * 100 + DATA_WAY));
}

#[test]
fn a_lost_retransmission_is_found_by_time_too() {
    let mut scene = scene(plain());
    let mut copies = 0;
    scene.spoil(move |_, packet| {
        copies += u32::from(data(packet).is_some_and(|data| data.psn == 5));
        let lost = data(packet).is_some_and(|data| data.psn == 5) && copies <= 2;
        if lost { PacketFate::Drop } else { PacketFate::Pass }
    });
    scene.send(Time::ZERO, 0, 1, packets(200));
    scene.run_until(ms(1));
    let [_, second, third] = times(&scene, 5)[..] else { panic!("three times") };
    assert!(soon(third, second + RTT + RTT / 4, PACKET * 2), "{second} {third}");
    assert_eq!(count(&scene, 0, "timeouts"), 0);
}

#[test]
fn a_probe_finds_a_lost_tail() {
    let mut scene = scene(plain());
    lose_once(&mut scene, &[9]);
    let flow = scene.send(Time::ZERO, 0, 1, packets(10));
    scene.run_until(ms(1));
    // Two round trips and the 8 us of coalescing after the last answer, which is that to packet 8.
    let heard = Time::ZERO + PACKET * 8 + RTT;
    let probe = heard + RTT * 2 + Duration::from_us(8);
    assert!(soon(times(&scene, 9)[1], probe, Duration::from_ns(10)), "{}", times(&scene, 9)[1]);
    assert_eq!((count(&scene, 0, "probes"), count(&scene, 0, "timeouts")), (1, 0));
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn without_probes_a_lost_tail_waits_for_the_timeout() {
    let mut scene = scene(Config { early_retransmission: EarlyRetransmission::OooDistance, ..plain() });
    lose_once(&mut scene, &[9]);
    let flow = scene.send(Time::ZERO, 0, 1, packets(10));
    scene.run_until(Time::from_us(252));
    // 250 us are longer than two round trips.
    assert_eq!(times(&scene, 9)[1], Time::ZERO + PACKET * 9 + Duration::from_us(250));
    // 256 packets, less half of them: it was the packet's first timeout.
    assert_eq!(said(&scene, flow, "fcwnd_millipackets"), Some(128_000));
    scene.run_until(ms(1));
    assert_eq!((count(&scene, 0, "timeouts"), count(&scene, 0, "early_retransmissions")), (1, 0));
}

#[test]
fn by_number_a_loss_is_found_when_one_four_higher_has_arrived() {
    let mut scene = scene(Config { early_retransmission: EarlyRetransmission::OooDistance, ..plain() });
    lose_once(&mut scene, &[5]);
    scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    // 5 < 9 - 3, when the answer to 9 is here.
    let again = times(&scene, 5)[1];
    assert!(soon(again, Time::ZERO + PACKET * 9 + RTT, PACKET * 2), "{again}");
}

#[test]
fn reordering_within_a_quarter_of_a_round_trip_is_loss_by_number_and_none_by_time() {
    let resent = |early_retransmission| {
        let mut scene = scene(Config { early_retransmission, ..plain() });
        // Every seventh packet is late by 1.2 us: ten others overtake it.
        scene.spoil(|_, packet| match data(packet) {
            Some(data) if data.psn % 7 == 2 => PacketFate::Delay(Duration::from_ns(1_200)),
            _ => PacketFate::Pass,
        });
        let flow = scene.send(Time::ZERO, 0, 1, packets(300));
        scene.run_until(ms(2));
        assert!(scene.completed_at(flow).is_some() && count(&scene, 1, "out_of_order") > 100);
        assert_eq!(count(&scene, 0, "retransmissions"), count(&scene, 1, "duplicates"));
        count(&scene, 0, "retransmissions")
    };
    assert_eq!(resent(EarlyRetransmission::RackTlp), 0);
    assert!(resent(EarlyRetransmission::OooDistance) > 30);
}

#[test]
fn several_packets_are_acknowledged_at_once() {
    let config = Config { paths: 1, ack_request_percent: 0.0, ..Config::default() };
    let mut scene = scene(config);
    let flow = scene.send(Time::ZERO, 0, 1, packets(3_000));
    scene.run_until(ms(3));
    assert!(scene.completed_at(flow).is_some());
    // Groups of ten.
    assert_eq!(count(&scene, 1, "acks"), 300);
    assert_eq!(sent!(scene, Header::Ack(ack) => ack.echo.held_ns).iter().map(|ack| ack.2).max(), Some(0));
}

#[test]
fn the_wait_for_more_packets_is_no_delay() {
    // A window of eight, so that the tenth never comes: each group waits for 8 us from its first packet on.
    let config = Config { paths: 1, ack_request_percent: 0.0, initial_fcwnd: 8.0, max_fcwnd: 8.0, ..Config::default() };
    let mut scene = scene(config);
    let flow = scene.send(Time::ZERO, 0, 1, packets(80));
    let mut least = u64::MAX;
    for step in 1..120 {
        scene.run_until(Time::from_us(step));
        least = said(&scene, flow, "fcwnd_millipackets").map_or(least, |window| window.min(least));
    }
    // Seven packets come after the first; T3 - T2 counts from the last.
    let held = sent!(scene, Header::Ack(ack) => ack.echo.held_ns);
    assert!(held.len() >= 8 && held[..8].iter().all(|ack| ack.2.abs_diff(8_000 - 7 * 120) <= 1));
    // The target is 8 us, the whole round trip 12.4 us.
    assert_eq!(least, 8_000);
}

#[test]
fn one_packet_in_ten_asks_for_an_answer_and_each_of_a_small_window() {
    let asked = |initial_fcwnd: f64, max_fcwnd: f64| {
        let mut scene = scene(Config { initial_fcwnd, max_fcwnd, ..Config::default() });
        scene.send(Time::ZERO, 0, 1, packets(1_000));
        scene.run_until(ms(10));
        sent!(scene, Header::Data(data) => data.ack_request).iter().filter(|data| data.2).count()
    };
    // Five standard deviations of 1,000 drawings.
    let some = asked(32.0, 256.0);
    assert!((53..150).contains(&some), "{some}");
    assert_eq!(asked(2.0, 2.0), 1_000);
}

#[test]
fn below_one_packet_each_waits_for_a_round_trip_over_the_window() {
    let config = Config {
        initial_fcwnd: 0.25,
        fabric_additive_increment: 1e-9,
        min_fcwnd: 0.25,
        rtt_smoothing_alpha: 0.0,
        ..plain()
    };
    let mut scene = scene(config);
    scene.send(Time::ZERO, 0, 1, packets(20));
    scene.run_until(ms(1));
    let left: Vec<Time> = sent!(scene, Header::Data(_)).iter().map(|sent| sent.0).collect();
    for pair in left[..19].windows(2) {
        // Stamps are in nanoseconds: of four round trips.
        let apart = pair[1].since(pair[0]);
        assert!(apart.ps().abs_diff((RTT * 4).ps()) <= 4_100, "{apart}");
    }
}

#[test]
fn packets_go_over_four_paths_and_answers_return_by_them() {
    let mut scene = scene(Config::default());
    scene.send(Time::ZERO, 0, 1, packets(400));
    scene.run_until(ms(1));
    let mut of_path: BTreeMap<u8, (u64, BTreeSet<u32>)> = BTreeMap::new();
    for (_, packet, data) in sent!(scene, Header::Data(data) => data) {
        let (sent, labels) = of_path.entry(data.path).or_default();
        *sent += 1;
        labels.insert(packet.flow_label());
        assert_eq!(packet.flow_label() & 3, u32::from(data.path));
    }
    // Equal windows, equal turns; one label each while nothing is congested.
    assert!(of_path.len() == 4 && of_path.values().all(|(sent, labels)| sent.abs_diff(100) <= 15 && labels.len() == 1));
    let labels: BTreeSet<u32> = of_path.values().flat_map(|(_, labels)| labels.iter().copied()).collect();
    assert!(labels.len() == 4 && labels.iter().all(|&label| (4..1 << 20).contains(&label)));
    for (_, packet, ack) in sent!(scene, Header::Ack(ack) => ack) {
        assert!(labels.contains(&packet.flow_label()) && packet.flow_label() & 3 == u32::from(ack.echo.path));
    }
}

/// The first label of path 1 leads over a path that is 12 us longer.
fn make_slow(scene: &mut Scene) {
    let mut first = None;
    scene.spoil(move |_, packet| match data(packet) {
        Some(data) if data.path == 1 && *first.get_or_insert(packet.flow_label()) == packet.flow_label() => {
            PacketFate::Delay(Duration::from_us(12))
        }
        _ => PacketFate::Pass,
    });
}

#[test]
fn a_path_that_stays_congested_gets_another_label() {
    let mut scene = scene(Config::default());
    make_slow(&mut scene);
    let flow = scene.send(Time::ZERO, 0, 1, packets(20_000));
    scene.run_until(ms(4));
    assert!(scene.delivered_at(flow).is_some());
    assert_eq!(count(&scene, 0, "path_changes"), 1);
    let sent = sent!(scene, Header::Data(data) => data.path);
    let slow = sent.iter().find(|sent| sent.2 == 1).unwrap().1.flow_label();
    let last = sent.iter().rposition(|sent| sent.1.flow_label() == slow).unwrap();
    // Five round trips of a window, the first of eight packets; what the last of them acknowledges left before.
    assert!(sent[last].0 > Time::from_us(17) && sent[last].0 < Time::from_us(250), "{}", sent[last].0);
    // Others keep theirs.
    let labels: BTreeSet<u32> = sent.iter().map(|sent| sent.1.flow_label()).collect();
    assert_eq!(labels.len(), 5);
}

#[test]
fn a_path_that_fails_gets_another_label_after_a_timeout() {
    let mut scene = scene(Config::default());
    let mut dead = None;
    // The first label of path 2 leads nowhere.
    scene.spoil(move |_, packet| match data(packet) {
        Some(data) if data.path == 2 && *dead.get_or_insert(packet.flow_label()) == packet.flow_label() => {
            PacketFate::Drop
        }
        _ => PacketFate::Pass,
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(2_000));
    scene.run_until(ms(2));
    // The window is closed after 32 packets, 8 of them over path 2. The first is probed for; the others time out 250 us
    // after they went again: when the rest of the window was acknowledged, or the few by which it has grown since, each
    // a round trip and 8 us of coalescing. Then all goes at line rate.
    let sent = sent!(scene, Header::Data(data) => data.path);
    let labels: BTreeSet<u32> = sent.iter().filter(|sent| sent.2 == 2).map(|sent| sent.1.flow_label()).collect();
    assert_eq!((labels.len(), count(&scene, 0, "path_changes")), (2, 1));
    let dead = sent.iter().find(|sent| sent.2 == 2).unwrap().1.flow_label();
    let changed = sent.iter().find(|sent| sent.2 == 2 && sent.1.flow_label() != dead).unwrap().0;
    assert!(changed > Time::from_us(250) && changed < Time::from_us(250 + 2 * 8) + RTT * 2 + PACKET * 40, "{changed}");
    let rest = PACKET * 2_000 + RTT * 3;
    assert!(scene.completed_at(flow).unwrap() < changed + rest + Duration::from_us(100));
    // And without PLB it never ends.
    let mut without = self::scene(Config { plb: false, ..Config::default() });
    without.spoil(
        |_, packet| if data(packet).is_some_and(|data| data.path == 2) { PacketFate::Drop } else { PacketFate::Pass },
    );
    let flow = without.send(Time::ZERO, 0, 1, packets(100));
    without.run_until(ms(20));
    assert_eq!((without.delivered_at(flow), count(&without, 0, "path_changes")), (None, 0));
}

#[test]
fn a_lost_acknowledgement_of_the_upper_layer_is_asked_for_again() {
    let mut scene = slow_receiver(200_000);
    scene.spoil(|now, packet| match packet.header() {
        // The last, when the upper layer has taken all, at 0.47 us a packet.
        Header::Ack(ack) if ack.base == 20 && now < ms(1) => PacketFate::Drop,
        _ => PacketFate::Pass,
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(20));
    scene.run_until(ms(10));
    assert!(scene.delivered_at(flow).unwrap() < Time::from_us(15));
    let asked = scene.completed_at(flow).unwrap();
    assert!(asked > ms(5) && asked < ms(5) + Duration::from_us(40), "{asked}");
}

/// A sender whose window has shrunk below the packets that have arrived and wait for the upper layer's acknowledgement
/// must wait for that. Its tenth packet is lost; the acknowledgements from 280 us on are, too, if `lost` says so.
fn completed_with_a_closed_window(lost: bool) -> Option<Time> {
    let mut scene = scene(Config {
        paths: 1,
        plb: false,
        initial_fcwnd: 1.5,
        ack_coalescing_packets: 3,
        early_retransmission: EarlyRetransmission::OooDistance,
        receive_buffer: Some(buffer(Rate::from_gbps(40), 30_000)),
        ..Config::default()
    });
    let us = Time::from_us;
    scene.spoil(move |now, packet| match packet.header() {
        Header::Data(data) if data.psn == 3 && now < us(100) || data.psn == 9 && now < us(500) => PacketFate::Drop,
        Header::Ack(_) if lost && now > us(278) && now < us(600) => PacketFate::Drop,
        _ => PacketFate::Pass,
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(10));
    scene.run_until(ms(100));
    scene.completed_at(flow)
}

#[test]
fn what_the_upper_layer_takes_after_an_acknowledgement_is_acknowledged_too() {
    let completed = completed_with_a_closed_window(false);
    assert!(completed.is_some_and(|at| at > Time::from_us(500) && at < Time::from_us(600)), "{completed:?}");
}

#[test]
fn a_lost_acknowledgement_of_the_upper_layer_is_asked_for_while_others_are_lost() {
    let completed = completed_with_a_closed_window(true);
    assert!(completed.is_some_and(|at| at > ms(5) && at < ms(6)), "{completed:?}");
}

#[test]
fn a_slow_path_gets_the_smallest_share() {
    let mut scene = scene(Config { plb: false, ..Config::default() });
    make_slow(&mut scene);
    scene.send(Time::ZERO, 0, 1, packets(20_000));
    scene.run_until(ms(4));
    let sent = sent!(scene, Header::Data(data) => data);
    let mut seen = BTreeSet::new();
    let first: Vec<Data> = sent.into_iter().map(|sent| sent.2).filter(|data| seen.insert(data.psn)).collect();
    // Its delay of 17 us is above the target of any window from 0.3 packets on: its weight is 1, the others' 5 until
    // their sum, of which weights are parts, is held at its greatest.
    let slow = first[2_000..6_000].iter().filter(|data| data.path == 1).count();
    assert!((240..=260).contains(&slow), "{slow}");
}

fn slow_receiver(size: u64) -> Scene {
    let receive_buffer = buffer(Rate::from_gbps(25), size);
    scene(Config { receive_buffer: Some(receive_buffer), ..Config::default() })
}

#[test]
fn the_nic_window_keeps_a_slow_receivers_buffer_near_its_target() {
    let mut scene = slow_receiver(200_000);
    let flow = scene.send(Time::ZERO, 0, 1, packets(20_000));
    scene.run_until(ms(20));
    // The upper layer takes 25 Gbps of payload without a pause: 9.344 ms, and the first packet's way.
    let whole = Rate::from_gbps(25).transmit(packets(20_000));
    assert!(soon(scene.delivered_at(flow).unwrap(), Time::ZERO + whole + DATA_WAY, whole / 100));
    assert_eq!(count(&scene, 1, "nacks"), 0);
    // After 2 ms: 15 of 32 levels, 94 KB, give or take what one round trip brings.
    let levels = sent!(scene, Header::Ack(ack) => ack.echo.buffer_level);
    let late: Vec<u64> = levels.iter().filter(|ack| ack.0 > ms(2) && ack.0 < ms(9)).map(|ack| ack.2.into()).collect();
    let mean = late.iter().sum::<u64>() as f64 / late.len() as f64;
    assert!((13.0..=16.0).contains(&mean), "{mean}");
}

#[test]
fn what_finds_no_room_is_refused_and_goes_again() {
    let mut scene = slow_receiver(20_000);
    let flow = scene.send(Time::ZERO, 0, 1, packets(5_000));
    scene.run_until(ms(20));
    assert!(count(&scene, 1, "nacks") > 0 && scene.completed_at(flow).is_some());
    // Nothing waits for a timeout. A window that fills the buffer and is then halved leaves half of the rate at least.
    let whole = Rate::from_gbps(25).transmit(packets(5_000));
    assert!(soon(scene.delivered_at(flow).unwrap(), Time::ZERO + whole + DATA_WAY, whole));
    assert_eq!(count(&scene, 0, "timeouts"), 0);
}

#[test]
fn what_has_lost_its_payload_is_lost() {
    let mut scene = scene(plain());
    scene.touch(|now, packet| {
        if now < Time::from_us(5) && data(packet).is_some_and(|data| data.psn % 7 == 3) {
            packet.flags |= flags::TRIMMED;
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(5));
    let cut = count(&scene, 1, "trimmed");
    assert!(cut > 0 && count(&scene, 0, "retransmissions") >= cut);
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn what_makes_no_sense_is_counted_and_changes_nothing() {
    let mut scene = scene_of(3, Wire::default(), Config::default());
    scene.touch(|now, packet| {
        if now > Time::from_us(3) && now < Time::from_us(8) {
            packet.set_header(match packet.header() {
                Header::Ack(ack) => Header::Ack(Ack { base: 1_000_000, ..ack }),
                Header::Data(data) if data.psn % 3 == 0 => Header::Data(Data { psn: data.psn + 1_000_000, ..data }),
                Header::Data(data) if data.psn % 3 == 1 => Header::Data(Data { path: 200, ..data }),
                other => other,
            });
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(300));
    scene.run_until(ms(5));
    assert!(count(&scene, 0, "malformed") > 0 && count(&scene, 1, "malformed") > 0);
    assert_eq!(scene.events.iter().filter(|event| event.2 == Event::Delivered { flow }).count(), 1);
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn settings_without_sense_are_refused_and_those_without_effect_are_advice() {
    let refused = |config: Config, key: &str, word: &str| {
        let problem = config.check().expect_err(key);
        assert!(problem.key == key && problem.message.contains(word), "{problem}");
    };
    let idle = |config: Config, key: &str, word: &str| {
        assert_eq!(config.check(), Ok(()));
        let [problem] = &config.advice()[..] else { panic!("{:?}", config.advice()) };
        assert!(problem.key == key && problem.message.contains(word), "{problem}");
    };
    let of = Config::default;
    refused(Config { paths: 0, ..of() }, "paths", "1 to 4");
    refused(Config { paths: 5, ..of() }, "paths", "1 to 4");
    refused(Config { max_fcwnd: 3_000.0, ..of() }, "max_fcwnd", "2047");
    refused(Config { initial_fcwnd: 300.0, ..of() }, "initial_fcwnd", "max_fcwnd");
    refused(Config { min_fcwnd: f64::NAN, ..of() }, "min_fcwnd", "0.001");
    refused(Config { ack_coalescing_packets: 0, ..of() }, "ack_coalescing_packets", "at least 1");
    refused(Config { ack_coalescing_timeout: Duration::ZERO, ..of() }, "ack_coalescing_timeout", "above 0");
    idle(Config { ooo_distance_threshold: 9, ..of() }, "ooo_distance_threshold", "ooo_distance");
    let by_number = Config { early_retransmission: EarlyRetransmission::OooDistance, ..of() };
    idle(Config { rack_time_window_rtt_factor: 0.5, ..by_number.clone() }, "rack_time_window_rtt_factor", "rack_tlp");
    idle(Config { min_tlp_timeout: Some(Duration::from_us(9)), ..by_number }, "min_tlp_timeout", "rack_tlp");
    idle(Config { plb: false, plb_attempt_threshold: 9, ..of() }, "plb_attempt_threshold", "plb = true");
    refused(Config { class: 8, ..of() }, "class", "0 to 7");
    let receive_buffer = |rate, size| Config { receive_buffer: Some(buffer(rate, size)), ..of() };
    refused(receive_buffer(Rate::ZERO, 9_000), "receive_buffer.rate", "leave receive_buffer out");
    refused(receive_buffer(Rate::from_gbps(1), 0), "receive_buffer.size", "packet");
}

fn buffer(rate: Rate, size: u64) -> ReceiveBuffer {
    ReceiveBuffer {
        rate,
        size: Bytes(size),
        target_rx_buffer_level: 15,
        initial_ncwnd: 64.0,
        min_ncwnd: 1.0,
        max_ncwnd: 256.0,
        nic_additive_increment: 1.0,
        nic_multiplicative_decrease_factor: 0.8,
        max_nic_multiplicative_decrease_factor: 0.5,
    }
}

fn configs() -> impl Strategy<Value = Config> {
    let early = prop_oneof![Just(EarlyRetransmission::RackTlp), Just(EarlyRetransmission::OooDistance)];
    // Messages are longer than most of these windows.
    let windows = (2.0f64..64.0).prop_flat_map(|most| (0.1..most, Just(most)));
    (1u8..=4, 1u32..12, early, windows, any::<bool>(), any::<bool>()).prop_map(
        |(paths, ack_coalescing_packets, early_retransmission, (initial_fcwnd, max_fcwnd), plb, slow)| Config {
            paths,
            ack_coalescing_packets,
            early_retransmission,
            initial_fcwnd,
            max_fcwnd,
            plb,
            receive_buffer: slow.then(|| buffer(Rate::from_gbps(40), 30_000)),
            ..Config::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the wire does: each message is delivered once and complete, windows are within their bounds, and no
    /// packet leaves whose number is the largest window or more beyond the first that its receiver has said is missing.
    #[test]
    fn all_is_delivered_once_within_the_window(
        config in configs(),
        fates: u64,
        sizes in prop::collection::vec(1u64..200_000, 1..4),
    ) {
        let (least, most) = (config.min_fcwnd, config.max_fcwnd);
        let mut scene = scene_of(3, Wire::default(), config);
        scene.spoil_for_a_millisecond(fates, |_| false);
        let send = |(index, &bytes): (usize, &u64)| {
            scene.send(Time::from_us(index as u64 * 7), 0, 1 + index as u32 % 2, bytes)
        };
        let flows: Vec<FlowId> = sizes.iter().enumerate().map(send).collect();
        for step in 1..1_000u64 {
            scene.run_until(Time::from_us(2 * step));
            for &flow in &flows {
                let Some(window) = said(&scene, flow, "fcwnd_millipackets") else { continue };
                prop_assert!(window as f64 >= least * 1e3 - 1.0 && window as f64 <= most * 1e3);
            }
        }
        scene.run_until(ms(4_000));
        for (&flow, &bytes) in flows.iter().zip(&sizes) {
            let events = |wanted: fn(&Event, FlowId) -> bool| {
                scene.events.iter().filter(|event| wanted(&event.2, flow)).count()
            };
            prop_assert_eq!(events(|event, flow| *event == Event::Delivered { flow }), 1);
            prop_assert_eq!(events(|event, flow| matches!(event, Event::Completed { flow: of, .. } if *of == flow)), 1);
            // Every packet has left, and each is as long as it should be.
            let mut payload = BTreeMap::new();
            let all = sent!(scene, Header::Data(data) => data);
            let answers = sent!(scene, Header::Ack(Ack { base, .. }) | Header::Nack(Nack { base, .. }) => base);
            for (left, packet, data) in all.iter().filter(|sent| sent.1.flow == flow) {
                let said = answers.iter().filter(|answer| answer.1.flow == flow && answer.0 < *left);
                let base = said.map(|answer| answer.2).max().unwrap_or(0);
                let ahead = f64::from(data.psn) - f64::from(base);
                prop_assert!(ahead < most.ceil(), "{} leaves, {base} is missing", data.psn);
                prop_assert!(packet.payload_bytes > 0 && data.offset == u64::from(data.psn) * 1_460);
                payload.insert(data.psn, u64::from(packet.payload_bytes));
            }
            prop_assert_eq!(payload.values().sum::<u64>(), bytes);
        }
    }
}
