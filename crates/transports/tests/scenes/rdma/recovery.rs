use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use proptest::prelude::*;
use units::Stream;

use super::*;

fn with(recovery: Recovery) -> LineRate {
    LineRate { recovery, ..LineRate::default() }
}

#[test]
fn go_back_n_sends_all_again_from_the_first_that_is_missing() {
    let mut scene = scene(2, Wire::default(), with(GO_BACK_N));
    lose::<Header>(&mut scene, &[(10, 1)]);
    let flow = scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(50));
    // Packet 11 shows that 10 is missing. Its NACK is there a round trip after it left, 11 packets' time in.
    let told = Time::ZERO + PACKET * 11 + RTT;
    let again = resent::<Header>(&scene, flow);
    // The NIC is then sending the packet that it began last.
    let from = told.ps().div_ceil(PACKET.ps()) * PACKET.ps();
    assert_eq!(again[0], (Time::from_ps(from), 10));
    // Then all that had been sent by then goes again: from 10 to the one before.
    let had_gone = from / PACKET.ps();
    assert_eq!(again.iter().map(|sent| sent.1).collect::<Vec<_>>(), (10..had_gone).collect::<Vec<_>>());
    // What came out of order was discarded, and one NACK sent for it.
    assert_eq!((counter(&scene, 1, "out_of_order"), counter(&scene, 1, "nacks")), (had_gone - 11, 1));
    assert_eq!((counter(&scene, 0, "recoveries"), counter(&scene, 0, "timeouts")), (1, 0));
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn a_retransmission_that_is_lost_is_missed_again_after_the_interval() {
    let nack_interval = Duration::from_us(10);
    let recovery = Recovery::GoBackN(GoBackN { nack_interval: Some(nack_interval), ..GoBackN::default() });
    let mut scene = scene(2, Wire::default(), with(recovery));
    lose::<Header>(&mut scene, &[(10, 2)]);
    let flow = scene.send(Time::ZERO, 0, 1, 200 * MSS);
    scene.run_until(Time::from_ms(50));
    let tens: Vec<Time> = data::<Header>(&scene, flow).iter().filter(|sent| sent.1 == 10).map(|sent| sent.0).collect();
    assert_eq!(tens.len(), 3);
    // The second NACK leaves with the first packet that is out of order after the interval, a way and a link later.
    let first_nack = Time::ZERO + PACKET * 11 + Duration::from_ns(2_740);
    let least = first_nack + nack_interval + Duration::from_ps(2_506_400);
    assert!(tens[2] >= least && tens[2] <= least + PACKET * 2, "{tens:?} {least}");
    assert_eq!((counter(&scene, 1, "nacks"), counter(&scene, 0, "timeouts")), (2, 0));
}

#[test]
fn a_lost_tail_waits_for_the_timeout() {
    for (recovery, timeout) in [(GO_BACK_N, Duration::from_ms(16)), (IRN, Duration::from_us(100))] {
        let mut scene = scene(2, Wire::default(), with(recovery));
        lose::<Header>(&mut scene, &[(19, 1)]);
        let flow = scene.send(Time::ZERO, 0, 1, 20 * MSS);
        scene.run_until(Time::from_ms(50));
        // Since packet 18 was acknowledged; one packet is in flight then.
        let since = Time::ZERO + PACKET * 18 + RTT;
        assert_eq!(resent::<Header>(&scene, flow), [(since + timeout, 19)]);
        assert_eq!(scene.completed_at(flow), Some(since + timeout + RTT));
        assert_eq!(counter(&scene, 0, "timeouts"), 1);
    }
}

/// The first of 20 packets is lost again and again. Times at which it is sent again.
fn lost_for_ever(recovery: GoBackN) -> (Vec<Time>, u64, bool) {
    let mut scene = scene(2, Wire::default(), with(Recovery::GoBackN(recovery)));
    lose::<Header>(&mut scene, &[(0, 1_000)]);
    let flow = scene.send(Time::ZERO, 0, 1, MSS);
    scene.run_until(Time::from_ms(50));
    let again = resent::<Header>(&scene, flow).iter().map(|sent| sent.0).collect();
    (again, counter(&scene, 0, "given_up"), scene.completed_at(flow).is_some())
}

/// InfiniBand's local ACK timeout: 4.096 us x 2^8 are 1,048.576 us.
#[test]
fn an_exponent_is_a_timeout_and_retries_are_counted() {
    let timeout = Duration::from_ns(1_048_576);
    let (again, given_up, completed) =
        lost_for_ever(GoBackN { ack_timeout: Some(8), retry_cnt: Some(7), ..GoBackN::default() });
    assert_eq!(again, (1..=7).map(|number| Time::ZERO + timeout * number).collect::<Vec<_>>());
    assert_eq!((given_up, completed), (1, false));
    let (again, given_up, _) = lost_for_ever(GoBackN { ack_timeout: Some(8), ..GoBackN::default() });
    assert_eq!((again.len(), given_up), (47, 0));
}

/// 100 us twice, 200 us twice, then 1 ms once; the last wait ends the message. The first timeout is no retry.
#[test]
fn adaptive_timeouts_double_within_their_ranges_and_end() {
    let us = Duration::from_us;
    let ranges = [(us(100), us(300), 2), (us(1_000), us(1_500), 1)];
    let adaptive = ranges.map(|(least, most, retries)| TimeoutRange { least, most, retries }).to_vec();
    let (again, given_up, completed) = lost_for_ever(GoBackN { adaptive, ..GoBackN::default() });
    assert_eq!(again, [100, 200, 400, 600].map(Time::from_us));
    assert_eq!((given_up, completed), (1, false));
}

/// Each acknowledgement of something new begins the timeouts anew: three packets are lost, each for the shortest.
#[test]
fn progress_begins_adaptive_timeouts_anew() {
    let adaptive = vec![TimeoutRange { least: Duration::from_us(50), most: Duration::from_ms(10), retries: 1 }];
    let recovery = Recovery::GoBackN(GoBackN { adaptive, retry_cnt: Some(1), ..GoBackN::default() });
    let config = LineRate { window: Window::Fixed { bdps: 0.01 }, ..with(recovery) };
    let mut scene = scene(2, Wire::default(), config);
    lose::<Header>(&mut scene, &[(0, 1), (3, 1), (7, 1)]);
    let flow = scene.send(Time::ZERO, 0, 1, 10 * MSS);
    scene.run_until(Time::from_ms(50));
    let data = data::<Header>(&scene, flow);
    for lost in [0, 3, 7] {
        let sent: Vec<Time> = data.iter().filter(|sent| sent.1 == lost).map(|sent| sent.0).collect();
        assert_eq!(sent[1], sent[0] + Duration::from_us(50), "{lost}");
    }
    assert!(scene.completed_at(flow).is_some());
}

#[test]
fn timeouts_that_make_no_sense_are_refused() {
    let refused = |own: GoBackN| with(Recovery::GoBackN(own)).check().unwrap_err().to_string();
    let range =
        |least, most, retries| TimeoutRange { least: Duration::from_us(least), most: Duration::from_us(most), retries };
    let adaptive = |adaptive: Vec<TimeoutRange>| GoBackN { adaptive, ..GoBackN::default() };
    for (own, words) in [
        (GoBackN { ack_timeout: Some(0), ..GoBackN::default() }, "go_back_n.ack_timeout: 0 is not between 1 and 31"),
        (GoBackN { retry_cnt: Some(8), ..GoBackN::default() }, "go_back_n.retry_cnt: 8"),
        (
            GoBackN { ack_timeout: Some(9), timeout: Some(Duration::from_ms(1)), ..GoBackN::default() },
            "go_back_n.timeout: timeout, ack_timeout and adaptive say the same",
        ),
        (adaptive(vec![range(9, 8, 1)]), "adaptive[0].most"),
        (adaptive(vec![range(9, 9, 0)]), "adaptive[0].retries"),
        (adaptive(vec![range(9, 9, 1), range(9, 10, 1)]), "adaptive[1].least"),
        (adaptive((1..6).map(|at| range(at * 10, at * 10, 1)).collect()), "more than 4 ranges"),
    ] {
        assert!(refused(own.clone()).contains(words), "{}", refused(own));
    }
}

#[test]
fn irn_waits_longer_while_more_than_three_packets_are_in_flight() {
    for (packets, timeout) in [(3u64, 100), (4, 320)] {
        let mut scene = scene(2, Wire::default(), with(IRN));
        let lost: Vec<(u64, u32)> = (0..packets).map(|packet| (packet, 1)).collect();
        lose::<Header>(&mut scene, &lost);
        let flow = scene.send(Time::ZERO, 0, 1, packets * MSS);
        scene.run_until(Time::from_ms(50));
        let first = Time::from_us(timeout);
        // The first alone; when its answer shows that it, and not the original, has arrived, the others.
        let mut wanted = vec![(first, 0)];
        wanted.extend((1..packets).map(|packet| (first + RTT + PACKET * (packet - 1), packet)));
        assert_eq!(resent::<Header>(&scene, flow), wanted);
    }
}

#[test]
fn a_packet_that_is_only_late_is_sent_again_and_no_other() {
    let mut scene = scene(2, Wire::default(), with(IRN));
    let late = Duration::from_us(150);
    scene.spoil(move |_, packet| if packet.payload_bytes > 0 { PacketFate::Delay(late) } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 0, 1, 3 * MSS);
    scene.run_until(Time::from_ms(50));
    assert_eq!(resent::<Header>(&scene, flow), [(Time::from_us(100), 0)]);
    assert_eq!(scene.completed_at(flow), Some(Time::ZERO + RTT + PACKET * 2 + late));
}

#[test]
fn irn_sends_again_what_is_lost_and_goes_on() {
    let mut scene = scene(2, Wire::default(), with(IRN));
    lose::<Header>(&mut scene, &[(10, 1), (12, 1), (13, 1)]);
    let flow = scene.send(Time::ZERO, 0, 1, 100 * MSS);
    scene.run_until(Time::from_ms(50));
    // NACKs come with packets 11 and 14, each a round trip after it left. By the second the window of 45 has closed
    // behind 54, so the link is free.
    let told = |packet: u64| Time::ZERO + PACKET * packet + RTT;
    let slot = |time: Time| Time::from_ps(time.ps().div_ceil(PACKET.ps()) * PACKET.ps());
    let (first, second) = (slot(told(11)), told(14));
    assert_eq!(first, Time::ZERO + PACKET * 55);
    assert_eq!(resent::<Header>(&scene, flow), [(first, 10), (second, 12), (second + PACKET, 13)]);
    assert_eq!(counter(&scene, 0, "recoveries"), 1);
    assert_eq!(counter(&scene, 0, "timeouts"), 0);
    assert!(scene.completed_at(flow).is_some());
    // All that came out of order was answered with a NACK, and kept.
    assert_eq!(counter(&scene, 1, "duplicates"), 0);
}

#[test]
fn reordering_is_taken_for_loss_by_both() {
    // Packet 10 is overtaken by five others.
    let run = |recovery: Recovery| {
        let mut scene = scene(2, Wire::default(), with(recovery));
        scene.spoil(|_, packet| match packet.header::<Header>().sequence() / MSS {
            10 if packet.payload_bytes > 0 => PacketFate::Delay(PACKET * 5),
            _ => PacketFate::Pass,
        });
        let flow = scene.send(Time::ZERO, 0, 1, 100 * MSS);
        scene.run_until(Time::from_ms(50));
        assert!(scene.completed_at(flow).is_some());
        (resent::<Header>(&scene, flow).len(), counter(&scene, 0, "timeouts"))
    };
    // IRN's first NACK sends 10 again, once; go-back-N has discarded 11 to 15 when 10 comes, and sends all that it has
    // sent since.
    assert_eq!(run(IRN), (1, 0));
    let (again, timeouts) = run(GO_BACK_N);
    assert!(again > 40 && timeouts == 0, "{again} {timeouts}");
}

#[test]
fn a_lost_last_acknowledgement_is_given_again() {
    for recovery in [GO_BACK_N, IRN] {
        let mut scene = scene(2, Wire::default(), with(recovery));
        let mut lost = false;
        scene.spoil(move |_, packet| {
            let last = packet.payload_bytes == 0 && packet.header::<Header>().sequence() == 5 * MSS;
            if last && !std::mem::replace(&mut lost, true) { PacketFate::Drop } else { PacketFate::Pass }
        });
        let flow = scene.send(Time::ZERO, 0, 1, 5 * MSS);
        scene.run_until(Time::from_ms(50));
        assert_eq!(counter(&scene, 1, "duplicates"), 1);
        assert!(scene.completed_at(flow).is_some());
        assert_eq!(scene.events.len(), 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// On a path that keeps the order, IRN sends again nothing that has arrived, but for the first packet after a
    /// timeout.
    #[test]
    fn irn_sends_only_what_is_lost_again(seed: u64, loss in 0.0..0.2, packets in 1u64..300) {
        let mut scene = scene(2, Wire::default(), with(IRN));
        let mut random = Stream::new(seed, 0, "fates");
        let arrived: Rc<RefCell<BTreeSet<u64>>> = Rc::default();
        let needless: Rc<RefCell<u64>> = Rc::default();
        let (seen, wasted) = (arrived.clone(), needless.clone());
        scene.spoil(move |_, packet| {
            if packet.payload_bytes == 0 {
                return PacketFate::Pass;
            }
            let number = packet.header::<Header>().sequence() / MSS;
            *wasted.borrow_mut() += u64::from(seen.borrow().contains(&number));
            if random.chance(loss) {
                return PacketFate::Drop;
            }
            seen.borrow_mut().insert(number);
            PacketFate::Pass
        });
        let flow = scene.send(Time::ZERO, 0, 1, packets * MSS);
        scene.run_until(Time::from_ms(1_000));
        prop_assert!(scene.completed_at(flow).is_some());
        prop_assert_eq!(*needless.borrow(), 0);
        prop_assert_eq!(counter(&scene, 1, "duplicates"), 0);
        // And all that is sent again was lost: as many as the wire took.
        prop_assert_eq!(arrived.borrow().len() as u64, packets);
    }
}
