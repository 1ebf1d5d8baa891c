use proptest::prelude::*;
use units::{Duration, Rate, Time};

use super::{Carried, FINE};

/// A transmitter of `rate` that sends packets one after the other, each after a gap (or a frame, in no counter).
fn busy(rate: Rate, packets: &[(u16, u64, bool)]) -> Vec<(Time, Time, u64)> {
    let mut free_at = Time::ZERO;
    let mut sent = Vec::new();
    for &(bytes, gap, frame) in packets {
        let began = free_at + Duration::from_ps(gap);
        free_at = began + rate.transmit(u64::from(bytes));
        sent.push((began, free_at, if frame { 0 } else { u64::from(bytes) }));
    }
    sent
}

proptest! {
    /// No interval has more than the link carries, and all together have what was sent.
    #[test]
    fn no_interval_has_more_than_the_link_carries_and_all_have_what_was_sent(
        mbps in 1u64..400_000,
        packets in prop::collection::vec((64u16..9_000, 0u64..2_000_000, any::<bool>()), 1..40),
        ps in prop_oneof![1u64..200, 1_000u64..100_000, 1_000_000u64..50_000_000],
    ) {
        let (rate, span) = (Rate::from_bps(mbps * 1_000_000), Duration::from_ps(ps.max(1_000_000 / mbps)));
        let sent = busy(rate, &packets);
        let end = sent.last().map_or(Time::ZERO, |of| of.1);
        // Samples would be too many for slow links and short intervals.
        let span = span.max(Duration::from_ps(end.ps() / 5_000));
        let (mut carried, mut sum, mut now) = (Carried::default(), 0u128, Time::ZERO);
        let most = u128::from(rate.bps()) * u128::from(span.ps()) * FINE / 8_000_000_000_000 + 1;
        while now < end + span + span {
            now += span;
            let begun = &sent[..sent.partition_point(|of| of.0 < now)];
            let bytes = begun.iter().map(|of| of.2).sum();
            let to_leave = begun.last().map_or(Duration::ZERO, |of| of.1.since(now));
            let amount = u128::from(carried.by(span, rate, bytes, to_leave));
            prop_assert!(amount <= most, "{amount} of {most} by {now}");
            sum += amount;
        }
        let all: u64 = sent.iter().map(|of| of.2).sum();
        prop_assert_eq!(sum, u128::from(all) * FINE);
    }
}

#[test]
fn a_packet_is_spread_over_its_transmission() {
    // 1,500 bytes at 100 Gbps take 120 ns, from 50 ns on: 10 ns carry 125 bytes.
    let rate = Rate::from_gbps(100);
    let (began, gone) = (Time::from_ns(50), Time::from_ns(170));
    let mut carried = Carried::default();
    let by = |ns| {
        let now = Time::from_ns(ns);
        let bytes = if began < now { 1_500 } else { 0 };
        u128::from(carried.by(Duration::from_ns(10), rate, bytes, gone.since(now))) / FINE
    };
    let amounts: Vec<u128> = (1..=20).map(|sample| sample * 10).map(by).collect();
    assert_eq!(amounts, [vec![0; 5], vec![125; 12], vec![0; 3]].concat());
}
