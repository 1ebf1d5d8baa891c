//! RACK, tail loss probes and PRR: what RFC 8985 and RFC 9937 say of when is sent what.

use super::*;

fn rack() -> NewReno {
    NewReno { rack: true, tail_loss_probe: true, initial_window: 40, ..NewReno::default() }
}

/// A flow of so many segments whose first window is 40, with these transmissions lost.
fn spoilt(config: NewReno, segments: u64, losses: &[(u64, u32)]) -> (Scene, FlowId) {
    let mut scene = scene(2, Wire::default(), config);
    lose::<Header>(&mut scene, losses);
    let flow = scene.send(Time::ZERO, 0, 1, segments * MSS);
    scene.run_until(Time::from_ms(20));
    assert!(scene.completed_at(flow).is_some());
    (scene, flow)
}

#[test]
fn a_lost_tail_is_probed_for_after_two_round_trips() {
    // The last three of 10, which no later arrival can tell of.
    let (scene, flow) = spoilt(rack(), 10, &[(7, 1), (8, 1), (9, 1)]);
    let again = resent::<Header>(&scene, flow);
    // 2 SRTT after the last acknowledgement, that of segment 6, the last one goes again. Its SACK tells that 7 and 8
    // are lost. Those are repaired without a timeout, which would be after 1 ms.
    let last = acks(&scene).filter(|ack| ack.0 < again[0].0).last().unwrap().0;
    let back = Duration::from_ps(2_506_400);
    assert_eq!(again[0].0, last + back + RTT * 2);
    assert_eq!(again.iter().map(|sent| sent.1).collect::<Vec<_>>(), [9, 7, 8]);
    assert_eq!((counter(&scene, 0, "timeouts"), counter(&scene, 0, "tail_loss_probes")), (0, 1));
    assert!(scene.completed_at(flow).unwrap() < Time::ZERO + RTT * 6);
    // Without, the timeout finds them.
    let (scene, _) = spoilt(NewReno { initial_window: 40, ..NewReno::default() }, 10, &[(7, 1), (8, 1), (9, 1)]);
    assert_eq!(counter(&scene, 0, "timeouts"), 1);
}

#[test]
fn a_lost_probe_waits_for_the_timeout() {
    let (scene, flow) = spoilt(rack(), 10, &[(9, 2)]);
    assert_eq!(resent::<Header>(&scene, flow).iter().map(|sent| sent.1).collect::<Vec<_>>(), [9, 9]);
    assert_eq!((counter(&scene, 0, "timeouts"), counter(&scene, 0, "tail_loss_probes")), (1, 1));
}

#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let (scene, flow) = spoilt(rack(), 1_000, &[(5, 3)]);
    let again = resent::<Header>(&scene, flow);
    assert_eq!(again.iter().map(|sent| sent.1).collect::<Vec<_>>(), [5, 5, 5]);
    // What is sent after it is acknowledged a round trip later; nothing is until half of the window, 20, has drained.
    for pair in again.windows(2) {
        let between = pair[1].0 - pair[0].0;
        assert!(between >= RTT && between <= RTT + PACKET * 21, "{between}");
    }
    assert_eq!((counter(&scene, 0, "timeouts"), counter(&scene, 0, "recoveries")), (0, 1));
}

#[test]
fn after_reordering_a_quarter_of_a_round_trip_is_waited() {
    let mut scene = scene(2, Wire::default(), rack());
    // Every tenth segment is late by ten packets, but less than a quarter of a round trip.
    let late = PACKET * 10;
    assert!(late < RTT / 4);
    scene.spoil(move |_, packet| match packet.header::<Header>().sequence() / MSS % 10 {
        5 if packet.payload_bytes > 0 => PacketFate::Delay(late + Duration::from_ns(60)),
        _ => PacketFate::Pass,
    });
    let flow = scene.send(Time::ZERO, 0, 1, 500 * MSS);
    scene.run_until(Time::from_ms(20));
    assert!(scene.completed_at(flow).is_some());
    // Three later arrivals tell of the first; it comes after all, and from then on RACK waits.
    assert!(resent::<Header>(&scene, flow).len() <= 4, "{:?}", resent::<Header>(&scene, flow));
}

#[test]
fn prr_sends_in_proportion_to_what_arrives() {
    let (with, flow) = spoilt(NewReno { prr: true, initial_window: 40, ..NewReno::default() }, 1_000, &[(0, 1)]);
    let (without, other) = spoilt(NewReno { initial_window: 40, ..NewReno::default() }, 1_000, &[(0, 1)]);
    // In the second round trip 39 acknowledgements come. RFC 6675: two by limited transmit, the lost one, then none for
    // the twenty that halve the window, then one for each. PRR: one for every second.
    let gaps = |scene: &Scene, flow| {
        let sent = data::<Header>(scene, flow);
        let (from, to) = (Time::ZERO + RTT, Time::ZERO + RTT + PACKET * 40);
        let round: Vec<Time> = sent.iter().map(|sent| sent.0).filter(|&at| at >= from && at < to).collect();
        (round.len(), round.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap())
    };
    let ((sent, gap), (sent_without, gap_without)) = (gaps(&with, flow), gaps(&without, other));
    assert!(gap < PACKET * 4 && gap_without > PACKET * 15, "{gap} {gap_without}");
    assert!((19..=23).contains(&sent) && (19..=23).contains(&sent_without), "{sent} {sent_without}");
    // And then the window is half.
    assert_eq!(resent::<Header>(&with, flow).len(), 1);
}

#[test]
fn every_message_arrives_over_a_network_that_loses_delays_and_duplicates() {
    for seed in 0..20 {
        let mut random = units::Stream::new(seed, 0, "fates");
        let config = NewReno { prr: true, delayed_ack: Some(tcp::DelayedAck::default()), ..rack() };
        let mut scene = scene(3, Wire::default(), config);
        scene.spoil(move |_, _| match random.below(20) {
            0 => PacketFate::Drop,
            1 => PacketFate::Duplicate,
            2 => PacketFate::Delay(Duration::from_ns(100) * (1 + random.below(200))),
            _ => PacketFate::Pass,
        });
        let flows: Vec<FlowId> =
            (0..6u64).map(|n| scene.send(Time::from_us(n), n as u32 % 2, 2, (1 + 97 * n) * MSS)).collect();
        scene.run_until(Time::from_ms(2_000));
        assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some()), "{seed}");
    }
}

#[test]
fn linux_s_settings_are_its_own() {
    let linux = Config::<tcp::linux::Config>::default();
    assert!(linux.rack && linux.tail_loss_probe && linux.prr);
    assert_eq!((linux.rto_min, linux.initial_window), (Duration::from_ms(200), 10));
    assert_eq!(linux.delayed_ack, Some(tcp::DelayedAck { packets: 2, timeout: Duration::from_ms(40) }));
    assert_eq!(linux.control.0, cubic::Config::default());
    assert!(linux.check().is_ok());
}

#[test]
fn a_probe_needs_rack() {
    let config = NewReno { tail_loss_probe: true, ..NewReno::default() };
    assert_eq!(config.check().unwrap_err().key, "tail_loss_probe");
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    /// RFC 8985, section 3: what was sent before a packet that has arrived, and by more than the reordering window, is
    /// lost. On a path that keeps the order that is so: as long as no timer runs out, each lost transmission is
    /// repaired once, and nothing is sent again that has arrived.
    #[test]
    fn what_is_lost_is_sent_again_once_and_nothing_else(
        losses in proptest::collection::btree_map(0u64..300, 1u32..4, 0..40),
        probes in proptest::prelude::any::<bool>(),
        prr in proptest::prelude::any::<bool>(),
    ) {
        let config = NewReno { rack: true, tail_loss_probe: probes, prr, initial_window: 40, ..NewReno::default() };
        let lost: Vec<(u64, u32)> = losses.into_iter().collect();
        let (scene, flow) = spoilt(config, 300, &lost);
        if counter(&scene, 0, "timeouts") == 0 && counter(&scene, 0, "tail_loss_probes") == 0 {
            let mut again: Vec<u64> = resent::<Header>(&scene, flow).into_iter().map(|sent| sent.1).collect();
            again.sort_unstable();
            let wanted: Vec<u64> = lost.iter().flat_map(|&(segment, times)| vec![segment; times as usize]).collect();
            proptest::prop_assert_eq!(again, wanted);
        }
    }
}
