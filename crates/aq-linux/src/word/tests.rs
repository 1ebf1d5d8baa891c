use contract::CongestionSignal;
use node::Marking;
use proptest::prelude::*;
use sharing::aq::{AqRate, Gap, Policy};
use units::{Stream, Time};

use super::*;

fn policy(limit: u64, threshold: u64) -> Policy {
    let marking = Marking::Step { threshold: Bytes(threshold) };
    Policy::new(Bytes(limit), CongestionSignal::Ecn(marking)).unwrap()
}

/// Runs both over one trace. Wherever they decide differently, the exact gap must be within the sum of their roundings
/// of the bound that they differ about; they are then made equal again.
fn compare(bps: u64, limit: u64, threshold: u64, trace: &[(u64, u16)]) -> Result<(), TestCaseError> {
    // A rate that a switch's row holds exactly enough: 2^-20 of it over a trace of some thousand packets.
    let row = AqRate::nearest(Rate::from_bps(bps)).unwrap();
    let word = Word::new(row.rate(), Bytes(limit), Some(Bytes(threshold)));
    let policy = policy(limit, threshold);
    let mut random = Stream::new(1, 1, "word");
    let start_ns = 1_000_000_000;
    let mut now_ns = start_ns;
    let mut gap = Gap::new(row, Time::from_ns(now_ns));
    let mut when_empty = Word::empty(now_ns);
    let mut sent = 0;
    for &(wait_ns, bytes) in trace {
        now_ns += wait_ns;
        let ours = word.arrive(&mut when_empty, now_ns, bytes.into());
        let theirs = gap.arrive(row, &policy, Time::from_ns(now_ns), bytes, &mut random);
        sent += u64::from(bytes);
        // Three bytes of theirs; of ours half a tick per packet and the slack, and 2^-20 of the rate.
        let quantum = 4 + sent / 500_000 + bps / 8_000_000_000;
        let theirs_is = match theirs {
            v if !v.pass => Verdict::Drop,
            v if v.mark => Verdict::Mark,
            _ => Verdict::Pass,
        };
        let (a, b) = (word.gap(when_empty, now_ns).get(), gap.bytes().get());
        if ours == theirs_is {
            prop_assert!(a.abs_diff(b) <= quantum, "{a} and {b} differ by more than {quantum}");
            continue;
        }
        let after = if theirs.pass { b } else { b + u64::from(bytes) };
        let bound = if Verdict::Drop == ours || Verdict::Drop == theirs_is { limit } else { threshold };
        prop_assert!(after.abs_diff(bound) <= quantum, "{ours:?} and {theirs_is:?} at {after} of {bound}");
        gap = Gap::new(row, Time::from_ns(now_ns));
        when_empty = 0;
    }
    Ok(())
}

proptest! {
    #[test]
    fn it_decides_as_the_switch_does_within_the_roundings_of_both(
        bps in 1_000_000..100_000_000_000_u64,
        limit in 70_000..10_000_000_u64,
        part in 1..100_u64,
        load in 10..400_u64,
        sizes in prop::collection::vec((0..200_u64, 60..65_000_u16), 1..2_000),
    ) {
        // Mean gaps between packets for a load from 0.1 to 4 times the rate. A row's clock must not wrap in between.
        let wrap = AqRate::nearest(Rate::from_bps(bps)).unwrap().wrap().ps() / 1_000 - 1;
        let wait = |(part, bytes): (u64, u16)| {
            (u128::from(bytes) * 8_000_000_000 / u128::from(bps) * u128::from(part) / u128::from(load)) as u64
        };
        let trace: Vec<_> = sizes.iter().map(|&(part, bytes)| (wait((part, bytes)).min(wrap), bytes)).collect();
        compare(bps, limit, limit * part / 100, &trace)?;
    }

    #[test]
    fn no_interval_passes_more_than_rate_times_time_and_the_limit(
        bps in 64_000..1_000_000_000_000_u64,
        limit in 70_000..1_000_000_u64,
        sizes in prop::collection::vec((0..100_000_u64, 60..65_000_u64), 1..500),
    ) {
        let word = Word::new(Rate::from_bps(bps), Bytes(limit), None);
        let (mut when_empty, mut now_ns, mut passed) = (0, 1 << 40, 0_u64);
        let begin = now_ns;
        for (wait, bytes) in sizes {
            now_ns += wait;
            if word.arrive(&mut when_empty, now_ns, bytes) == Verdict::Pass {
                passed += bytes;
            }
            let most = u128::from(bps) * u128::from(now_ns - begin) / 8_000_000_000 + u128::from(limit);
            // The limit's slack, and a rounding of half a tick in each packet.
            let slack = u128::from(bps) / 8_000_000_000 * 2 + 2 + u128::from(passed / 500_000);
            prop_assert!(u128::from(passed) <= most + slack, "{passed} of {most}");
        }
    }
}

#[test]
fn a_burst_of_exactly_the_limit_passes_and_no_byte_more() {
    for bps in [64_000, 1_000_000, 999_999_999, 10_000_000_000, 100_000_000_000] {
        let word = Word::new(Rate::from_bps(bps), Bytes(150_000), Some(Bytes(75_000)));
        let mut when_empty = 0;
        let verdicts: Vec<_> = (0..101).map(|_| word.arrive(&mut when_empty, 5_000_000_000, 1_500)).collect();
        assert!(verdicts[..50].iter().all(|&v| v == Verdict::Pass), "{bps}");
        assert!(verdicts[50..100].iter().all(|&v| v == Verdict::Mark), "{bps}");
        assert_eq!(verdicts[100], Verdict::Drop, "{bps}");
    }
}

#[test]
fn the_clock_may_wrap_and_an_old_word_is_in_the_past() {
    let word = Word::new(Rate::from_gbps(1), Bytes(100_000), None);
    // The ticks of this instant wrap within the next millisecond: 2^54 ns are 208 days.
    let now_ns = (1 << 54) - 1_000_000;
    let mut when_empty = Word::empty(now_ns);
    for step in 0..10_000 {
        let verdict = word.arrive(&mut when_empty, now_ns + step * 800, 100);
        assert_eq!(verdict, Verdict::Pass, "at {step}");
    }
    for age in [1, 1_000, 86_400, 100 * 86_400, 200 * 86_400_u64] {
        let mut old = when_empty;
        let later = now_ns + 10_000 * 800 + age * 1_000_000_000;
        assert_eq!(word.arrive(&mut old, later, 1_000), Verdict::Pass, "after {age} s");
        assert_eq!(word.gap(old, later).get().abs_diff(1_000), 0, "after {age} s");
    }
}

#[test]
fn a_change_of_rate_keeps_the_virtual_delay() {
    let (fast, slow) = (Rate::from_gbps(4), Rate::from_bps(60_000_000));
    let (fast, slow) = (Word::new(fast, Bytes(500_000), None), Word::new(slow, Bytes(500_000), None));
    let mut when_empty = 0;
    for _ in 0..266 {
        fast.arrive(&mut when_empty, 1_000_000_000, 1_500);
    }
    assert_eq!(Word::delay(when_empty, 1_000_000_000).us_f64().round(), 798.0);
    assert_eq!(slow.gap(when_empty, 1_000_000_000).get(), 5_985);
}
