use super::*;

/// A flow of 1,000 segments whose first window is 40, with these transmissions lost.
fn spoilt<A: Algorithm>(config: Config<A>, losses: &[(u64, u32)]) -> (Scene, FlowId) {
    let mut scene = scene(2, Wire::default(), Config { initial_window: 40, ..config });
    lose::<Header>(&mut scene, losses);
    let flow = scene.send(Time::ZERO, 0, 1, 1_000 * MSS);
    scene.run_until(Time::from_ms(20));
    assert!(scene.completed_at(flow).is_some());
    (scene, flow)
}

/// How many segments the flow sends in the round trip that begins when the last lost segment is acknowledged: its
/// window.
fn window_after_recovery(scene: &Scene, flow: FlowId) -> usize {
    let repaired = resent::<Header>(scene, flow).last().unwrap().0 + RTT;
    data::<Header>(scene, flow).iter().filter(|sent| sent.0 >= repaired && sent.0 < repaired + RTT).count()
}

#[test]
fn one_loss_costs_one_retransmission_and_half_the_window() {
    let (scene, flow) = spoilt(NewReno::default(), &[(0, 1)]);
    // The third segment that arrives beyond the lost one tells: segment 3 leaves at 360 ns.
    assert_eq!(resent::<Header>(&scene, flow), [(Time::ZERO + RTT + PACKET * 3, 0)]);
    assert_eq!(counter(&scene, 0, "fast_retransmissions"), 1);
    assert_eq!((counter(&scene, 0, "recoveries"), counter(&scene, 0, "timeouts")), (1, 0));
    // RFC 5681 equation 4: half of 40.
    assert_eq!(window_after_recovery(&scene, flow), 20);
}

#[test]
fn cubic_keeps_seven_tenths_of_the_window() {
    let (scene, flow) = spoilt(Cubic::default(), &[(0, 1)]);
    assert_eq!(resent::<Header>(&scene, flow).len(), 1);
    assert_eq!(window_after_recovery(&scene, flow), 28);
}

#[test]
fn dctcp_answers_a_loss_as_newreno_does() {
    let (scene, flow) = spoilt(Dctcp::default(), &[(0, 1)]);
    assert_eq!(resent::<Header>(&scene, flow).len(), 1);
    assert_eq!(window_after_recovery(&scene, flow), 20);
}

#[test]
fn limited_transmit_sends_a_new_segment_for_each_of_the_first_two_that_arrive_beyond() {
    let (scene, flow) = spoilt(NewReno::default(), &[(0, 1)]);
    let at_rtt: Vec<u64> = data::<Header>(&scene, flow)
        .iter()
        .filter(|sent| sent.0 >= Time::ZERO + RTT)
        .map(|sent| sent.1)
        .take(3)
        .collect();
    assert_eq!(at_rtt, [40, 41, 0]);
}

#[test]
fn several_losses_of_a_window_are_repaired_in_one_round_trip() {
    let lost = [0, 5, 10, 11, 12, 30];
    let (scene, flow) = spoilt(NewReno::default(), &lost.map(|segment| (segment, 1)));
    let again = resent::<Header>(&scene, flow);
    assert_eq!(again.iter().map(|sent| sent.1).collect::<Vec<_>>(), lost);
    assert!(again[5].0 - again[0].0 < RTT);
    assert_eq!((counter(&scene, 0, "recoveries"), counter(&scene, 0, "timeouts")), (1, 0));
    assert_eq!(window_after_recovery(&scene, flow), 20);
}

#[test]
fn a_lost_retransmission_waits_for_the_timeout() {
    let (scene, flow) = spoilt(NewReno::default(), &[(0, 2)]);
    let again = resent::<Header>(&scene, flow);
    assert_eq!((again[0].1, again[1].1), (0, 0));
    assert_eq!(again[1].0 - again[0].0, Duration::from_ms(1));
    assert_eq!((counter(&scene, 0, "timeouts"), counter(&scene, 0, "timeout_retransmissions")), (1, 1));
    // What had arrived beyond it was not sent again (RFC 6675 section 5.1).
    assert_eq!(again.len(), 2);
}

#[test]
fn a_lost_tail_waits_for_a_timeout_that_doubles() {
    let mut scene = scene(2, Wire::default(), NewReno::default());
    lose::<Header>(&mut scene, &[(4, 4)]);
    let flow = scene.send(Time::ZERO, 0, 1, 5 * MSS);
    scene.run_until(Time::from_ms(50));
    // RFC 6298 (5.3): counted from the last acknowledgement of new data, that of the fourth segment.
    let first = Time::ZERO + PACKET * 3 + RTT + Duration::from_ms(1);
    let times: Vec<Time> = resent::<Header>(&scene, flow).iter().map(|sent| sent.0).collect();
    assert_eq!(times, [0, 2, 6, 14].map(|ms| first + Duration::from_ms(ms)));
    assert_eq!(counter(&scene, 0, "timeouts"), 4);
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn after_a_timeout_the_window_opens_from_one_by_slow_start_to_half() {
    // All of the first window is lost.
    let losses: Vec<(u64, u32)> = (0..40).map(|segment| (segment, 1)).collect();
    let (scene, flow) = spoilt(NewReno::default(), &losses);
    let start = resent::<Header>(&scene, flow)[0].0;
    assert_eq!(start, Time::from_ms(1));
    let in_round = |n: u64| {
        let from = start + RTT * n;
        data::<Header>(&scene, flow).iter().filter(|sent| sent.0 >= from && sent.0 < from + RTT).count()
    };
    // ssthresh is 20 segments: 1, 2, 4, 8, 16, then 20 on the way, and one more a round trip.
    assert_eq!([0, 1, 2, 3, 4].map(in_round), [1, 2, 4, 8, 16]);
    assert!((20..=21).contains(&in_round(5)), "{}", in_round(5));
    assert!((21..=22).contains(&in_round(6)), "{}", in_round(6));
    assert_eq!(counter(&scene, 0, "timeout_retransmissions"), 40);
}

#[test]
fn the_timeout_follows_the_measured_round_trip() {
    // 5 ms there and back: above the least timeout. Two packets, the second lost.
    let wire = Wire { delay: Duration::from_us(2_500), ..Wire::default() };
    let mut scene = scene(2, wire, NewReno::default());
    lose::<Header>(&mut scene, &[(1, 1)]);
    let flow = scene.send(Time::ZERO, 0, 1, 2 * MSS);
    scene.run_until(Time::from_ms(100));
    // RFC 6298 (2.2): one sample R makes RTO = R + 4 x R/2 = 3 R, from its arrival after R.
    let rtt = Duration::from_us(5_000) + Duration::from_ps(246_400);
    assert_eq!(resent::<Header>(&scene, flow), [(Time::ZERO + rtt * 4, 1)]);
}

#[test]
fn reordering_below_the_threshold_is_no_loss() {
    let mut scene = scene(2, Wire::default(), NewReno::default());
    // Every tenth segment is overtaken by two.
    scene.spoil(|_, packet| match packet.header::<Header>().sequence() / MSS % 10 {
        5 if packet.payload_bytes > 0 => PacketFate::Delay(PACKET * 2 + Duration::from_ns(60)),
        _ => PacketFate::Pass,
    });
    let flow = scene.send(Time::ZERO, 0, 1, 500 * MSS);
    scene.run_until(Time::from_ms(20));
    assert!(scene.completed_at(flow).is_some());
    assert_eq!(resent::<Header>(&scene, flow), []);
}

#[test]
fn duplicates_are_harmless() {
    let mut scene = scene(2, Wire::default(), NewReno::default());
    scene.spoil(|_, _| PacketFate::Duplicate);
    let flow = scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(20));
    assert_eq!(scene.events.len(), 2, "{:?}", scene.events);
    assert_eq!(resent::<Header>(&scene, flow), []);
    assert_eq!(counter(&scene, 1, "duplicates"), 100);
}

#[test]
fn a_finished_flow_is_still_answered() {
    let mut scene = scene(2, Wire::default(), NewReno::default());
    // The acknowledgement of the end is lost twice.
    scene.spoil(|now, packet| {
        let last = packet.src == HostId(1) && packet.header::<Header>().sequence() == 3 * MSS;
        if last && now < Time::from_ms(2) { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, 3 * MSS);
    scene.run_until(Time::from_ms(20));
    assert_eq!(scene.events.len(), 2, "{:?}", scene.events);
    assert_eq!(resent::<Header>(&scene, flow).iter().map(|sent| sent.1).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(counter(&scene, 1, "duplicates"), 2);
}

#[test]
fn the_end_of_a_message_in_recovery_is_rescued_once() {
    let mut scene = scene(2, Wire::default(), NewReno { initial_window: 40, ..NewReno::default() });
    // The first and the last of 40: after the first is repaired nothing new is left to send, and nobody has overtaken
    // the last. NextSeg() rule 4 sends it without a timeout.
    lose::<Header>(&mut scene, &[(0, 1), (1, 1), (39, 1)]);
    let flow = scene.send(Time::ZERO, 0, 1, 40 * MSS);
    scene.run_until(Time::from_ms(20));
    assert_eq!(resent::<Header>(&scene, flow).iter().map(|sent| sent.1).collect::<Vec<_>>(), [0, 1, 39]);
    assert_eq!(counter(&scene, 0, "timeouts"), 0);
    assert!(scene.completed_at(flow).unwrap() < Time::ZERO + RTT * 5);
}
