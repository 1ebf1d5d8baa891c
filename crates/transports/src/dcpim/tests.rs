//! Scenes on the virtual wire: 100 Gbps, 2.5 us from host to host, so that a control packet takes 2.5064 us
//! (3.2 ns onto the wire, and again out of the switch) and a full data packet 2.74 us.

use node::{Clock, EndpointParams, Event, Packet};
use testing::{PacketFate, Scene, Wire, sent};
use units::{Duration, FlowId, HostId, Rate, Time};

use super::header::{Accept, Data, Proposal};
use super::{Config, Departure, Departures, Header};
use contract::{NetworkView, Scheme};

mod later;
mod unequal;

fn scene(hosts: u32, config: Config) -> Scene {
    Scene::new(hosts, Wire::default(), move |site| config.endpoint(site, &NetworkView::star(site)))
}

/// beta * cRTT / 2 with cRTT = 2 * 2.5064 us.
const STAGE: Duration = Duration::from_ps(3_258_320);

/// The start of a stage, counted from 0.
fn stage(number: u64) -> Time {
    Time::ZERO + STAGE * number
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

fn count(scene: &Scene, host: u32, name: &str) -> u64 {
    scene.endpoint(host).counters().into_iter().find(|counter| counter.0 == name).expect("a counter of that name").1
}

fn resent(scene: &Scene, flow: FlowId) -> u64 {
    let found = scene.events.iter().find_map(|event| match event.2 {
        Event::Completed { flow: of, resent_packets, .. } if of == flow => Some(resent_packets),
        _ => None,
    });
    found.expect("the flow is complete")
}

/// 1460 bytes a packet; 46 packets are within 1 BDP (5.48 us: 68,500 bytes).
const fn packets(count: u64) -> u64 {
    count * 1460
}

#[test]
fn a_short_flow_is_sent_at_once_behind_its_notification() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(46));
    scene.run_until(ms(1));
    // Notification, 46 packets, the way; the last packet out of the switch.
    let delivered = Time::from_ps(3_200 + 46 * 120_000 + 2_500_000 + 120_000);
    assert_eq!(scene.delivered_at(flow), Some(delivered));
    // The sender's finish comes 3.2 ns later, and the receiver's takes a control packet's time.
    assert_eq!(scene.completed_at(flow), Some(delivered + Duration::from_ps(3_200 + 2_506_400)));
    assert_eq!(sent!(scene, Header::Token(token) => token).len(), 0);
    assert!(sent!(scene, Header::Data(data) => data).iter().all(|(_, packet, _)| packet.class == 1));
}

#[test]
fn a_long_flow_waits_for_one_matching_phase_of_2r_plus_1_stages() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(47));
    scene.run_until(ms(1));
    // The notification comes within stage 0, whose requests have been sent: it takes part from round 2 on (stage 2).
    let times = |sent: Vec<(Time, Packet, u8)>| sent.into_iter().map(|sent| (sent.0, sent.2)).collect::<Vec<_>>();
    assert_eq!(times(sent!(scene, Header::Request(request) => request.round)), [(stage(2), 2)]);
    assert_eq!(times(sent!(scene, Header::Grant(grant) => grant.round)), [(stage(3), 2)]);
    assert_eq!(times(sent!(scene, Header::Accept(accept) => accept.round)), [(stage(4), 2)]);
    // 47 packets fit into one channel of 61 packets, which sends one each 4 x 120 ns.
    let tokens: Vec<Time> = sent!(scene, Header::Token(token) => token).into_iter().map(|sent| sent.0).collect();
    let expected: Vec<Time> = (0..47).map(|token| stage(9) + Duration::from_ns(480) * token).collect();
    assert_eq!(tokens, expected);
    // Token there, packet back.
    let last = *tokens.last().unwrap() + Duration::from_ps(2_506_400 + 2_740_000);
    assert_eq!(scene.delivered_at(flow), Some(last));
}

#[test]
fn the_first_round_prefers_the_smallest_flow_on_both_sides() {
    // Section 3.5. One channel a host, all flows known before phase 1 begins at stage 9.
    let config = Config { channels: 1, ..Config::default() };
    let mut scene = scene(4, config);
    // Kept out of phase 0's last rounds: they come when its requests are over.
    let late = stage(7);
    let small = scene.send(late, 0, 2, packets(100));
    scene.send(late, 1, 2, packets(200));
    scene.send(late, 0, 3, packets(300));
    scene.run_until(stage(12));
    let phase1 = |sent: Vec<(Time, Packet, (u32, u8))>| sent.into_iter().filter(|sent| sent.2 == (1, 1));
    // Host 0 is asked by 2 and 3 and grants the small flow; host 2 has grants of 0 and 1 and accepts the small one.
    assert_eq!(phase1(sent!(scene, Header::Request(request) => (request.phase, request.round))).count(), 3);
    let grants = sent!(scene, Header::Grant(grant) => (grant.phase, grant.round));
    let granted: Vec<_> = phase1(grants).map(|sent| (sent.1.src, sent.1.dst)).collect();
    assert_eq!(granted, [(HostId(0), HostId(2)), (HostId(1), HostId(2))]);
    let accepts = sent!(scene, Header::Accept(accept) => (accept.phase, accept.round));
    let accepted: Vec<_> = phase1(accepts).map(|sent| sent.1.flow).collect();
    assert_eq!(accepted, [small]);
}

#[test]
fn the_first_round_prefers_the_smallest_flow_also_where_clocks_differ() {
    // The same with senders' clocks ahead, so that first rounds' requests and grants come too late for their own
    // stages.
    let config = Config { channels: 1, ..Config::default() };
    for ahead in 1..=12 {
        let fast = Clock { offset_ps: ahead * 500_000, drift_ppb: 0 };
        let clocks = [fast, fast, Clock::default(), Clock::default()];
        let mut scene =
            Scene::with_clocks(Wire::default(), &clocks, |site| config.endpoint(site, &NetworkView::star(site)));
        let late = stage(7);
        let small = scene.send(late, 0, 2, packets(100));
        scene.send(late, 1, 2, packets(200));
        scene.send(late, 0, 3, packets(300));
        scene.run_until(stage(18));
        let of_host_2 = |sent: &(Time, Packet, Accept)| sent.1.src == HostId(2) && sent.2.phase == 1;
        let accepted: Vec<_> = sent!(scene, Header::Accept(accept) => accept)
            .into_iter()
            .filter(of_host_2)
            .map(|sent| sent.1.flow)
            .collect();
        assert_eq!(accepted, [small], "{ahead} half microseconds");
    }
}

#[test]
fn later_rounds_are_uniform_over_channels() {
    // Three senders want all of receiver 3's one channel; sizes differ, but are not told. Over many phases each
    // wins a third: with 300 phases, 5 standard deviations are 5 * sqrt(300 * 1/3 * 2/3) = 41.
    let config = Config { channels: 1, sizes_known: false, ..Config::default() };
    let mut scene = scene(4, config);
    for src in 0..3 {
        scene.send(Time::ZERO, src, 3, 1_000_000_000 * u64::from(src + 1));
    }
    scene.run_until(stage(9 * 300));
    let mut wins = [0i32; 3];
    for (_, packet, _) in sent!(scene, Header::Accept(accept) => accept) {
        wins[packet.dst.index()] += 1;
    }
    assert!(wins.iter().sum::<i32>() >= 298 && wins.iter().all(|wins| (wins - 100).abs() < 41), "{wins:?}");
}

#[test]
fn channels_are_asked_for_by_outstanding_packets() {
    // A channel carries floor(9 stages / 120 ns / 4) = 61 packets a phase: 130 packets need 3 channels.
    let mut scene = scene(2, Config::default());
    scene.send(Time::ZERO, 0, 1, packets(130));
    scene.run_until(stage(9));
    let asked: Vec<u8> =
        sent!(scene, Header::Request(request) => request).into_iter().map(|sent| sent.2.channels).collect();
    assert_eq!(asked, [3]);
    // Two flows of one sender add up, and what the matched channels will carry is not asked for again.
    let mut scene = self::scene(2, Config::default());
    scene.send(Time::ZERO, 0, 1, packets(61));
    scene.send(Time::ZERO, 0, 1, packets(60));
    scene.run_until(stage(18));
    let asked: Vec<u8> =
        sent!(scene, Header::Request(request) => request).into_iter().map(|sent| sent.2.channels).collect();
    assert_eq!(asked, [2]);
}

#[test]
fn a_full_window_is_clocked_by_arrivals() {
    // All 4 channels: a window of 46 packets (68,500 bytes / 1,500, rounded up), however long nothing comes back.
    let mut scene = scene(2, Config::default());
    scene.spoil(|_, packet| match packet.header() {
        Header::Data(_) => PacketFate::Drop,
        _ => PacketFate::Pass,
    });
    scene.send(Time::ZERO, 0, 1, packets(1000));
    scene.run_until(stage(18) - Duration::from_ps(1));
    assert_eq!(sent!(scene, Header::Token(token) => token).len(), 46);
    // On matching again, tokens are sent again from the start of the window (section 3.2).
    scene.run_until(stage(27) - Duration::from_ps(1));
    let again: Vec<u32> = sent!(scene, Header::Token(token) => token)[46..].iter().map(|sent| sent.2.packet).collect();
    assert_eq!(again, (0..46).collect::<Vec<_>>());
}

#[test]
fn a_lost_packet_of_a_long_flow_is_sent_once_more_after_the_next_matching() {
    let mut scene = scene(2, Config::default());
    let mut lost = false;
    scene.spoil(move |_, packet| {
        if matches!(packet.header(), Header::Data(Data { packet: 10, .. })) && !lost {
            lost = true;
            return PacketFate::Drop;
        }
        PacketFate::Pass
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    let sent: Vec<Time> = sent!(scene, Header::Data(data) => data)
        .into_iter()
        .filter(|sent| sent.2.packet == 10)
        .map(|sent| sent.0)
        .collect();
    assert_eq!((sent.len(), resent(&scene, flow)), (2, 1));
    assert!(sent[1] >= stage(18), "not within the phase of its loss: {}", sent[1]);
}

#[test]
fn a_window_of_lost_packets_is_admitted_again_though_round_trips_are_longer_than_phases() {
    // At 1 Gbps a phase lasts 37 us and a round trip 53 us. The sender is matched in every phase, so that tokens of an
    // earlier one are always on their way, and the window is full: waiting for all of them anew would never end.
    let config = Config { departures: Departures::default(), ..Config::default() };
    let wire = Wire { rate: Rate::from_gbps(1), ..Wire::default() };
    let mut scene = Scene::new(2, wire, move |site| config.endpoint(site, &NetworkView::star(site)));
    let until = Time::from_us(500);
    scene.spoil(move |now, packet| match packet.header() {
        Header::Data(_) if now < until => PacketFate::Drop,
        _ => PacketFate::Pass,
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(20));
    scene.run_until(until);
    let window = sent!(scene, Header::Data(data) => data).into_iter().map(|sent| sent.2.packet).max();
    scene.run_until(ms(2));
    assert_eq!(window, Some(4), "53 us are 5 packets");
    // 20 packets take 240 us; the first may wait for a round trip and a phase.
    assert!(scene.delivered_at(flow).is_some_and(|at| at < until + Duration::from_us(500)));
    // No packet is asked for again before it can have come.
    let sent = sent!(scene, Header::Data(data) => data);
    for (at, _, data) in &sent {
        let next = sent.iter().find(|other| other.2.packet == data.packet && other.0 > *at);
        assert!(next.is_none_or(|next| next.0 > *at + Duration::from_us(53)), "{at}: packet {}", data.packet);
    }
}

#[test]
fn a_lost_packet_of_a_short_flow_is_admitted_through_matching() {
    let mut scene = scene(2, Config::default());
    let mut lost = false;
    scene.spoil(move |_, packet| {
        if matches!(packet.header(), Header::Data(_)) && !lost {
            lost = true;
            return PacketFate::Drop;
        }
        PacketFate::Pass
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(20));
    scene.run_until(ms(1));
    assert_eq!((sent!(scene, Header::Token(token) => token).len(), resent(&scene, flow)), (1, 1));
    assert!(scene.delivered_at(flow).unwrap() >= stage(9));
}

#[test]
fn a_notification_and_a_finish_are_sent_again_after_one_round_trip_until_they_are_answered() {
    // Section 3.5. The round trip of two data packets: 5.48 us.
    let name = |packet: &Packet| match packet.header() {
        Header::Notification { .. } => "notification",
        Header::SenderFinish { .. } => "sender's finish",
        Header::ReceiverFinish => "receiver's finish",
        _ => "other",
    };
    for (lost, times) in [("notification", 2), ("sender's finish", 3), ("receiver's finish", 2)] {
        let mut scene = scene(2, Config { departures: Departures::default(), ..Config::default() });
        let mut losses = 0;
        scene.spoil(move |_, packet| {
            if name(packet) == lost && losses < times {
                losses += 1;
                return PacketFate::Drop;
            }
            PacketFate::Pass
        });
        let flow = scene.send(Time::ZERO, 0, 1, packets(100));
        scene.run_until(ms(1));
        assert!(scene.completed_at(flow).is_some(), "{lost}");
        let resent = if lost == "notification" { lost } else { "sender's finish" };
        let sent: Vec<Time> = scene.sent.iter().filter(|sent| name(&sent.1) == resent).map(|sent| sent.0).collect();
        assert_eq!(sent.len(), times + 1, "{lost}");
        // The timer starts when the NIC takes the last data packet, 120 ns before the finish goes out behind it.
        let gaps = sent.windows(2).map(|pair| pair[1] - pair[0]);
        let one_rtt = |gap| gap == Duration::from_ns(5_480) || gap == Duration::from_ns(5_480 - 120);
        assert!(gaps.clone().all(one_rtt), "{:?}", gaps.collect::<Vec<_>>());
    }
}

#[test]
fn with_backoff_each_repetition_waits_twice_as_long_up_to_64_round_trips() {
    let mut scene = scene(2, Config::default());
    scene.spoil(|_, packet| if packet.src == HostId(0) { PacketFate::Drop } else { PacketFate::Pass });
    scene.send(Time::ZERO, 0, 1, packets(100));
    let round_trips = |count: u64| Time::ZERO + Duration::from_ns(5_480) * count;
    scene.run_until(round_trips(256));
    let sent: Vec<Time> = sent!(scene, Header::Notification { flow, .. } => flow).iter().map(|of| of.0).collect();
    assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 127, 191, 255].map(round_trips));
}

#[test]
fn what_has_been_answered_is_repeated_after_one_round_trip_again() {
    // The notification is repeated twice, and answered; then the finish is lost.
    let mut scene = scene(2, Config::default());
    let mut lost = [0, 0];
    scene.spoil(move |_, packet| {
        let (place, times) = match packet.header() {
            Header::Notification { .. } => (0, 2),
            Header::SenderFinish { .. } => (1, 1),
            _ => return PacketFate::Pass,
        };
        lost[place] += 1;
        if lost[place] <= times { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    assert!(scene.completed_at(flow).is_some());
    let finishes: Vec<Time> = sent!(scene, Header::SenderFinish { packets } => packets).iter().map(|of| of.0).collect();
    // The timer starts when the NIC takes the last data packet.
    assert_eq!((finishes.len(), finishes[1] - finishes[0]), (2, Duration::from_ns(5_480 - 120)));
}

/// The long flows of 60 senders to one receiver at 1 Gbps, and the time that they take. Their packets need 28.8 ms.
fn sixty_at_a_gigabit(departures: Departures) -> (Scene, Option<Time>) {
    let wire = Wire { rate: Rate::from_gbps(1), ..Wire::default() };
    let config = Config { departures, ..Config::default() };
    let mut scene = Scene::new(61, wire, move |site| config.endpoint(site, &NetworkView::star(site)));
    let flows: Vec<FlowId> = (1..=60).map(|src| scene.send(Time::ZERO, src, 0, packets(40))).collect();
    scene.run_until(ms(60));
    let last = flows.iter().map(|&flow| scene.completed_at(flow)).collect::<Option<Vec<_>>>();
    (scene, last.and_then(|times| times.into_iter().max()))
}

#[test]
fn a_receiver_on_a_slow_link_asks_a_few_senders_a_round_and_data_come_through() {
    let (scene, last) = sixty_at_a_gigabit(Config::default().departures);
    assert!(last.is_some_and(|last| last < ms(45)), "{last:?}");
    // Four channels in each of 9 stages of 5.4 us, that each carry a packet of 12 us.
    let requests = sent!(scene, Header::Request(request) => request);
    let mut rounds = std::collections::BTreeMap::new();
    requests.iter().for_each(|(_, _, request)| *rounds.entry((request.phase, request.round)).or_insert(0) += 1);
    assert!(rounds.values().all(|&asked| asked <= 4), "{rounds:?}");
    let asked: std::collections::BTreeSet<HostId> = requests.iter().map(|sent| sent.1.dst).collect();
    assert_eq!(asked.len(), 60);
}

#[test]
fn requests_that_have_not_left_when_the_next_are_made_are_dropped() {
    // By the paper all sixty are asked in each round of 8.2 us, which has room for 25 requests.
    let (scene, _) = sixty_at_a_gigabit(Departures::default());
    let requests = sent!(scene, Header::Request(request) => request);
    // When the NIC takes one, the next round's requests have not been made yet. A packet may be in transmission.
    let late = |at: Time, request: Proposal| {
        let stage = u64::from(request.phase) * 9 + 2 * u64::from(request.round);
        at > Time::ZERO + Duration::from_ps(4_082_000) * stage + Duration::from_us(13)
    };
    assert!(requests.len() > 100 && !requests.iter().any(|sent| late(sent.0, sent.2)));
    assert_eq!(requests.len() as u64, count(&scene, 0, "requests"));
}

#[test]
fn unused_tokens_are_discarded_half_a_control_round_trip_after_the_phase() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    // The sender may send control packets only, from before the data phase until it is over by more than the grace.
    scene.run_until(stage(8));
    scene.pause(0, 0b1111_1110);
    scene.run_until(stage(18) + Duration::from_ns(2_600));
    assert_eq!(sent!(scene, Header::Data(data) => data).len(), 0);
    let tokens_before =
        sent!(scene, Header::Token(token) => token).iter().filter(|sent| sent.0 < stage(18)).count() as u64;
    assert!(tokens_before > 0);
    scene.pause(0, 0);
    scene.run_until(ms(1));
    assert_eq!(count(&scene, 0, "tokens_expired"), tokens_before);
    assert!(scene.completed_at(flow).is_some());
    assert_eq!(resent(&scene, flow), 0);
}

#[test]
fn a_token_from_a_receiver_that_is_not_matched_is_not_obeyed() {
    // The accept is lost: the receiver thinks that it is matched, the sender does not (section 3.5).
    let lose_accepts = |scene: &mut Scene| {
        scene.spoil(|now, packet| match packet.header() {
            Header::Accept(_) if now < stage(9) => PacketFate::Drop,
            _ => PacketFate::Pass,
        });
        scene.send(Time::ZERO, 0, 1, packets(61));
        scene.run_until(stage(17));
    };
    let mut paper = scene(2, Config::default());
    lose_accepts(&mut paper);
    assert_eq!(sent!(paper, Header::Data(data) => data).len(), 0);
    assert!(count(&paper, 0, "tokens_unmatched") > 0);
    let departures = [Departure::AnyToken].into_iter().collect::<Departures>();
    let mut authors = scene(2, Config { departures, ..Config::default() });
    lose_accepts(&mut authors);
    assert!(!sent!(authors, Header::Data(data) => data).is_empty());
}

#[test]
fn a_grant_that_comes_more_than_a_round_late_is_ignored() {
    let mut scene = scene(2, Config::default());
    scene.spoil(|now, packet| match packet.header() {
        Header::Grant(_) if now < stage(9) => PacketFate::Delay(STAGE * 4),
        _ => PacketFate::Pass,
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    assert!(count(&scene, 1, "grants_stale") > 0);
    assert!(sent!(scene, Header::Accept(accept) => accept).iter().all(|sent| sent.2.phase > 0));
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn clocks_that_differ_by_more_than_the_slack_still_match() {
    // Section 3.5. The slack of a stage is 0.3 * 2.5064 us = 0.752 us; here clocks differ by two thirds of a stage, in
    // either direction.
    let apart = |offset_ps| [Clock::default(), Clock { offset_ps, drift_ppb: 0 }];
    let config = Config::default();
    let mut scene = Scene::with_clocks(Wire::default(), &apart(2_200_000), move |site| {
        config.endpoint(site, &NetworkView::star(site))
    });
    let there = scene.send(Time::ZERO, 0, 1, packets(500));
    let back = scene.send(Time::ZERO, 1, 0, packets(500));
    scene.run_until(ms(1));
    assert!(scene.completed_at(there).is_some() && scene.completed_at(back).is_some());
}

#[test]
fn a_lost_packet_stalls_a_flow_at_the_authors_timer_and_not_in_the_mended_variant() {
    let run = |departures: Departures| {
        let mut scene = scene(2, Config { departures, ..Config::default() });
        let mut lost = false;
        scene.spoil(move |_, packet| {
            let drop = matches!(packet.header(), Header::Data(Data { packet: 10, .. })) && !lost;
            lost |= drop;
            if drop { PacketFate::Drop } else { PacketFate::Pass }
        });
        let flow = scene.send(Time::ZERO, 0, 1, packets(400));
        scene.run_until(ms(1));
        let sent: Vec<u32> = sent!(scene, Header::Data(data) => data).into_iter().map(|sent| sent.2.packet).collect();
        (sent, scene.delivered_at(flow).expect("delivered"))
    };
    let all = Departures::published();
    let (theirs, at) = run(all);
    // Theirs: when all have been admitted, and a window's time (46 packets, 5.52 us) later.
    assert_eq!(theirs.last(), Some(&10));
    let (mended, mended_at) = run(all.without(Departure::RetokenAtEnd));
    // Mended: in the next phase, a round trip after it has begun; packets go on meanwhile.
    assert_eq!(mended.iter().filter(|&&packet| packet == 10).count(), 2);
    assert_eq!(mended.last(), Some(&399));
    let stall = Duration::from_ns(46 * 120);
    assert!(at >= mended_at + stall, "{at} and {mended_at}");
}

#[test]
fn clocks_that_differ_by_any_time_match_and_fill_the_link() {
    // Section 3.5: clocks need not agree. From a fraction of a stage to days, either way, beside drift; the more than
    // 9 phases of 244 packets that the flow takes are lengthened by less than one.
    let config = Config::default();
    let day = 86_400_000_000_000_000;
    for offset_ps in [1_000_000, 3_000_000, 8_000_000, 15_000_000, 29_000_000, 40_000_000, 1_000_000_000, day, -day] {
        for first in [0, 1] {
            let mut clocks = [Clock::default(); 2];
            clocks[first] = Clock { offset_ps, drift_ppb: 100_000 };
            let mut scene =
                Scene::with_clocks(Wire::default(), &clocks, |site| config.endpoint(site, &NetworkView::star(site)));
            let flow = scene.send(Time::ZERO, 0, 1, packets(2_440));
            scene.run_until(ms(1));
            let delivered = scene.delivered_at(flow).expect("delivered within a millisecond");
            let alone = Duration::from_ns(120) * 2_440 + STAGE * 9;
            assert!(delivered < Time::ZERO + alone + STAGE * 9, "{offset_ps} ps, clock {first}: {delivered}");
        }
    }
}

#[test]
fn one_round_a_phase_is_enough_at_any_offset() {
    // A phase of 3 stages: wherever the sender's one grant stage falls, its grant is used by the next accept stage.
    let config = Config { rounds: 1, ..Config::default() };
    for eighth in 0..24 {
        let clocks = [Clock::default(), Clock { offset_ps: eighth * STAGE.ps() as i64 / 8, drift_ppb: 0 }];
        let mut scene =
            Scene::with_clocks(Wire::default(), &clocks, |site| config.endpoint(site, &NetworkView::star(site)));
        let flows = [scene.send(Time::ZERO, 0, 1, packets(300)), scene.send(Time::ZERO, 1, 0, packets(300))];
        scene.run_until(ms(1));
        assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some()), "{eighth} eighths of a stage");
    }
}

#[test]
fn tokens_are_good_while_the_receivers_data_phase_lasts() {
    // The sender's clock is half a phase ahead or behind: its own data phase is not the receiver's, whose tokens would
    // mostly be void by it. Of 2,000 hardly any expires: the very last of a phase find the sender some packets behind.
    let config = Config::default();
    for offset_ps in [-14_000_000, -5_000_000, 5_000_000, 14_000_000] {
        let clocks = [Clock { offset_ps, drift_ppb: 0 }, Clock::default()];
        let mut scene =
            Scene::with_clocks(Wire::default(), &clocks, |site| config.endpoint(site, &NetworkView::star(site)));
        let flow = scene.send(Time::ZERO, 0, 1, packets(2_000));
        scene.run_until(ms(2));
        assert!(scene.completed_at(flow).is_some());
        let void = count(&scene, 0, "tokens_expired") + count(&scene, 0, "tokens_unmatched");
        assert!(void < 20, "{void} at {offset_ps} ps");
        assert_eq!(resent(&scene, flow), 0);
    }
}

#[test]
fn a_late_grant_does_not_match_the_same_need_twice() {
    // With the sender 1 us ahead each request misses its grant stage by little: its grant comes after the receiver has
    // asked again. 61 packets need one channel; one is accepted.
    let config = Config::default();
    let clocks = [Clock { offset_ps: 1_000_000, drift_ppb: 0 }, Clock::default()];
    let mut scene =
        Scene::with_clocks(Wire::default(), &clocks, |site| config.endpoint(site, &NetworkView::star(site)));
    let flow = scene.send(Time::ZERO, 0, 1, packets(61));
    scene.run_until(ms(1));
    assert!(scene.completed_at(flow).is_some());
    let accepted: u32 =
        sent!(scene, Header::Accept(accept) => accept).iter().map(|sent| u32::from(sent.2.channels)).sum();
    assert!(sent!(scene, Header::Grant(grant) => grant).len() > 1, "the scene has its point");
    assert_eq!(accepted, 1);
}

#[test]
fn a_lone_sender_and_receiver_fill_their_link() {
    // 20,000 packets over four channels: apart from the first phase and the last round trip the wire is always busy.
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(20_000));
    scene.run_until(ms(10));
    let busy = Duration::from_ns(120) * 20_000;
    let delivered = scene.delivered_at(flow).unwrap() - stage(9);
    assert!(delivered >= busy && delivered < busy.mul_f64(1.01), "{delivered} for {busy} of data");
    assert_eq!(resent(&scene, flow), 0);
}

#[test]
fn a_paused_class_holds_back_no_other() {
    let mut scene = scene(3, Config::default());
    scene.pause(0, 0b10);
    let short = scene.send(Time::ZERO, 0, 1, packets(10));
    let long = scene.send(Time::ZERO, 0, 2, packets(100));
    scene.run_until(ms(1));
    // The receiver misses the short flow's packets and admits them in a class that is open.
    assert!(scene.completed_at(short).is_some() && scene.completed_at(long).is_some());
    assert!(scene.sent.iter().all(|sent| sent.1.class != 1));
}

#[test]
fn late_duplicates_of_a_finished_flow_change_nothing() {
    let mut scene = scene(2, Config::default());
    scene.spoil(|_, _| PacketFate::Duplicate);
    let flows: Vec<FlowId> = (1..=4).map(|n| scene.send(Time::ZERO, 0, 1, packets(n * 30))).collect();
    scene.run_until(ms(2));
    for flow in flows {
        let said = |event: Event| scene.events.iter().filter(|said| said.2 == event).count();
        assert_eq!(said(Event::Delivered { flow }), 1);
        assert!(scene.completed_at(flow).is_some());
    }
}

/// What must hold of every matching, told from what was sent: nobody accepts more than `k` channels in a phase of its
/// own, nor grants more at a stage of its own.
fn assert_matching_is_sound(scene: &Scene, hosts: usize, k: u32) {
    let accepts = sent!(scene, Header::Accept(accept) => accept);
    let phases: std::collections::BTreeSet<u32> = accepts.iter().map(|sent| sent.2.phase).collect();
    for phase in phases {
        let mut accepted_by = vec![0; hosts];
        for (_, packet, header) in accepts.iter().filter(|sent| sent.2.phase == phase) {
            accepted_by[packet.src.index()] += u32::from(header.channels);
        }
        assert!(accepted_by.iter().all(|&channels| channels <= k), "phase {phase}: {accepted_by:?}");
    }
    // A stage's grants go out one behind the other, two stages before the next ones.
    let mut granted = vec![(Time::ZERO, 0); hosts];
    for (at, packet, header) in sent!(scene, Header::Grant(grant) => grant) {
        let (last, channels) = &mut granted[packet.src.index()];
        *channels = if at < *last + STAGE { *channels } else { 0 } + u32::from(header.channels);
        *last = at;
        assert!(*channels <= k, "{at}: {channels} channels");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]

    /// Whatever is lost, delayed or doubled, and whatever clocks show, every flow is delivered once and its sender
    /// learns of it.
    #[test]
    fn every_flow_completes_over_a_bad_wire(
        sizes in proptest::collection::vec((1u64..200_000, 0u32..4, 1u32..4, 0u64..50), 1..12),
        fates: u64,
        preset in 0usize..3,
        sizes_known: bool,
        k in 1u8..6,
        offsets in proptest::array::uniform4(proptest::prelude::prop_oneof![0i64..7_000_000, 0i64..70_000_000,
            i64::MIN / 4..i64::MAX / 4]),
        drifts in proptest::array::uniform4(-200_000i64..200_000),
        rounds in 1u8..6,
        // At 1 Gbps a round trip is longer than a phase.
        slow: bool,
    ) {
        let departures = Departures::named(["paper", "authors_2022", "authors_2023"][preset]).expect("a preset");
        let preset = preset > 0;
        let config = Config { rounds, channels: k, sizes_known: sizes_known || preset, departures,
            ..Config::default() };
        let clocks: [Clock; 4] = std::array::from_fn(|host| Clock { offset_ps: offsets[host],
            drift_ppb: drifts[host] });
        let wire = Wire { rate: Rate::from_gbps(if slow { 1 } else { 100 }), ..Wire::default() };
        let mut scene = Scene::with_clocks(wire, &clocks, move |site| config.endpoint(site, &NetworkView::star(site)));
        // The authors' program has no answer to the loss of a control packet.
        scene.spoil_for_a_millisecond(fates, move |packet| preset && packet.payload_bytes == 0);
        let send = |&(bytes, src, step, at): &(u64, u32, u32, u64)| {
            scene.send(Time::from_us(at), src, (src + step) % 4, bytes)
        };
        let flows: Vec<FlowId> = sizes.iter().map(send).collect();
        scene.run_until(ms(if slow { 200 } else { 20 }));
        for flow in flows {
            let said = |event: Event| scene.events.iter().filter(|said| said.2 == event).count();
            proptest::prop_assert_eq!(said(Event::Delivered { flow }), 1);
            let completed = scene.completed_at(flow);
            proptest::prop_assert!(completed >= scene.delivered_at(flow), "{:?}", completed);
        }
        // At 1 Gbps a data packet takes longer than a stage: grants of several stages go out behind it.
        if !slow {
            assert_matching_is_sound(&scene, 4, u32::from(k));
        }
    }
}

#[test]
fn a_short_flow_that_is_lost_whole_is_admitted_whole() {
    // More packets than a channel's window: none of them counts as unanswered.
    let mut scene = scene(2, Config::default());
    scene.spoil(
        |now, packet| if packet.payload_bytes > 0 && now < stage(3) { PacketFate::Drop } else { PacketFate::Pass },
    );
    let flow = scene.send(Time::ZERO, 0, 1, packets(40));
    scene.run_until(ms(1));
    assert_eq!(resent(&scene, flow), 40);
}

#[test]
fn a_slot_used_again_is_not_taken_for_the_flow_before() {
    // The first flow's class is paused, it is delivered by tokens in another, and its place is taken by a second one.
    let mut scene = scene(2, Config::default());
    scene.pause(0, 0b10);
    let first = scene.send(Time::ZERO, 0, 1, packets(40));
    scene.run_until(ms(1));
    assert!(scene.completed_at(first).is_some());
    let second = scene.send(ms(1), 0, 1, packets(3));
    scene.run_until(ms(1) + Duration::from_us(1));
    scene.pause(0, 0);
    scene.run_until(ms(2));
    assert_eq!(resent(&scene, second), 0);
    assert_eq!(sent!(scene, Header::Data(data) => data).iter().filter(|sent| sent.1.flow == second).count(), 3);
}
