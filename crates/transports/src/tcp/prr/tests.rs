use proptest::prelude::*;

use super::*;

/// A recovery from one loss among `flight` segments, which the third that arrives beyond it tells of: each
/// acknowledgement delivers one, and what may be sent is sent. Returns how many had been sent after each.
fn one_loss(flight: u64, ssthresh: u64) -> Vec<u64> {
    let mut pipe = flight - 4;
    let mut prr = Prr::new(ssthresh, flight - 3, 1, pipe);
    let (mut sent, mut all) = (Vec::new(), 0);
    for _ in 0..flight - 4 {
        let room = prr.cwnd().saturating_sub(pipe);
        (0..room).for_each(|_| prr.send());
        (pipe, all) = (pipe + room - 1, all + room);
        sent.push(all);
        prr.on_ack(1, pipe, false);
    }
    sent
}

#[test]
fn half_a_window_leaves_for_every_other_that_arrives() {
    // 20 of 38 that are still to come, and CUBIC's 70 of 98, from the first acknowledgement on.
    for (flight, ssthresh) in [(40, 20), (100, 70)] {
        let share = ssthresh as f64 / (flight - 2) as f64;
        for (acks, sent) in (1u32..).zip(one_loss(flight, ssthresh)) {
            assert!((sent as f64 - f64::from(acks) * share).abs() <= 1.0, "{acks}: {sent}");
        }
    }
}

#[test]
fn below_the_threshold_it_grows_by_slow_start_at_most() {
    // Half of 40 was lost at once, and the window is to be 28.
    let mut prr = Prr::new(28, 37, 1, 16);
    assert_eq!(prr.cwnd(), 17, "what arrives is replaced");
    prr.send();
    prr.on_ack(1, 16, false);
    assert_eq!(prr.cwnd(), 17);
    prr.send();
    prr.on_ack(1, 16, true);
    assert_eq!(prr.cwnd(), 18, "and one more where the recovery advances");
    (0..2).for_each(|_| prr.send());
    prr.on_ack(20, 26, true);
    assert_eq!(prr.cwnd(), 28, "but no more than the threshold");
}

proptest! {
    /// The bound of section 6: no more leaves than has arrived, but for one segment for each safe acknowledgement and
    /// the first retransmission. So there is never more in flight than when the recovery began.
    #[test]
    fn no_more_leaves_than_arrives(
        flight in 5u64..200, share in 1u64..10, acks in proptest::collection::vec((0u64..4, any::<bool>()), 1..100),
    ) {
        let ssthresh = (flight * share / 10).max(2);
        let mut pipe = flight;
        let mut prr = Prr::new(ssthresh, flight, 0, pipe);
        let (mut arrived, mut sent, mut safes) = (0, 0, 0);
        for (delivered, safe) in acks {
            let delivered = delivered.min(pipe);
            pipe -= delivered;
            arrived += delivered;
            // By then all that was outstanding has arrived, and the recovery is over.
            if arrived > flight {
                break;
            }
            safes += u64::from(safe);
            prr.on_ack(delivered, pipe, safe);
            let room = prr.cwnd().saturating_sub(pipe);
            (0..room).for_each(|_| prr.send());
            (pipe, sent) = (pipe + room, sent + room);
            prop_assert!(sent <= arrived + safes + 1);
            prop_assert!(pipe <= flight + 1);
        }
    }
}
