use super::*;
use crate::aq::rate::{CLOCK_BITS, FRACTION};
use proptest::prelude::*;
use units::Rate;

/// The recurrence of Theorem 3.2 in exact rationals, scaled by 2^(19+k).
struct Exact {
    gap: i128,
    last: Time,
}

impl Exact {
    fn drain(&mut self, rate: AqRate, now: Time) {
        self.gap = (self.gap - drains(rate, now - self.last)).max(0);
        self.last = now;
    }
}

fn drains(rate: AqRate, span: Duration) -> i128 {
    i128::from(rate.mantissa()) * i128::from(span.ps())
}

fn scaled(rate: AqRate, bytes: impl Into<i128>) -> i128 {
    bytes.into() << (FRACTION + rate.exponent())
}

fn quantum(rate: AqRate) -> i128 {
    scaled(rate, 1) + drains(rate, Duration::from_ps(1 << rate.exponent()))
}

fn random() -> Stream {
    Stream::new(1, 0, "aq")
}

fn gbps(n: u64) -> AqRate {
    AqRate::nearest(Rate::from_gbps(n)).unwrap()
}

fn policy(limit: u64, feedback: CongestionSignal) -> Policy {
    Policy::new(Bytes(limit), feedback).unwrap()
}

/// A rate, the start of the clock, a limit, and packets: (thousandths of the time that R takes for 1,500 bytes
/// since the previous packet, bytes). Some gaps are long, so that clocks wrap and A-Gaps empty.
type Sequence = (AqRate, u64, u64, Vec<(u64, u16)>);

fn sequences(max: usize) -> impl Strategy<Value = Sequence> {
    let wait = prop_oneof![4 => 0u64..3_000, 1 => Just(0u64), 1 => 0u64..10_000_000];
    let packets = prop::collection::vec((wait, 1u16..9_000), 1..max);
    (0u32..1 << 24, 0u64..1 << 60, 9_000u64..100_000, packets)
        .prop_map(|(code, start, limit, packets)| (AqRate::from_code(code), start, limit, packets))
}

fn times(rate: AqRate, start: u64, packets: &[(u64, u16)]) -> Vec<(Time, u16)> {
    let unit = rate.delay(1_500).ps();
    let mut at = start;
    let wait = |thousandths: u64| {
        let span = u128::from(unit) * u128::from(thousandths) / 1_000;
        (span as u64).min(rate.wrap().ps() - (1 << rate.exponent()) - 1) // the rule of the wrap-around
    };
    packets
        .iter()
        .map(|&(thousandths, bytes)| {
            at += wait(thousandths);
            (Time::from_ps(at), bytes)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn the_gap_is_the_exact_recurrence_within_a_quantum((rate, start, limit, packets) in sequences(300)) {
        let policy = policy(limit, CongestionSignal::Drop);
        let start_time = Time::from_ps(start);
        let (mut gap, mut exact) = (Gap::new(rate, start_time), Exact { gap: 0, last: start_time });
        for (now, bytes) in times(rate, start, &packets) {
            exact.drain(rate, now);
            let verdict = gap.arrive(rate, &policy, now, bytes, &mut random());
            if verdict.pass {
                exact.gap += scaled(rate, bytes);
            } else {
                // Every drop is justified: the packet would have exceeded the limit, up to the quantum.
                prop_assert!(exact.gap + scaled(rate, bytes) + quantum(rate) > scaled(rate, limit));
            }
            prop_assert!(gap.bytes <= limit as u32);
            prop_assert!((scaled(rate, gap.bytes) - exact.gap).abs() < quantum(rate));
        }
    }

    #[test]
    fn any_interval_passes_at_most_r_times_it_plus_the_limit((rate, start, limit, packets) in sequences(60)) {
        let policy = policy(limit, CongestionSignal::Drop);
        let mut gap = Gap::new(rate, Time::from_ps(start));
        let mut passed = times(rate, start, &packets);
        passed.retain(|&(now, bytes)| gap.arrive(rate, &policy, now, bytes, &mut random()).pass);
        for (first, &(from, _)) in passed.iter().enumerate() {
            let mut sum = 0;
            for &(to, bytes) in &passed[first..] {
                sum += scaled(rate, bytes);
                let allowed = drains(rate, to - from) + scaled(rate, limit);
                let slack = if rate.clock(from) == rate.clock(to)
                    && to - from < rate.wrap() { 0 } else { quantum(rate) };
                prop_assert!(sum <= allowed + slack);
            }
        }
    }

    #[test]
    fn a_change_of_rate_keeps_the_delay_and_the_limit(a in 0u32..1 << 24, b in 0u32..1 << 24,
        bytes in 1u16..60_000, at in 0u64..1 << 60, limit in 1u64..200_000) {
        let (a, b, now) = (AqRate::from_code(a), AqRate::from_code(b), Time::from_ps(at));
        let mut gap = Gap::new(a, now);
        gap.arrive(a, &policy(60_000, CongestionSignal::Drop), now, bytes, &mut random());
        gap.change_rate(a, b, &policy(limit, CongestionSignal::Drop), now);
        gap.drain(b, now);
        let kept = u128::from(bytes) * u128::from(b.rate().bps()) / u128::from(a.rate().bps().max(1));
        let kept = kept.min(u128::from(limit)) as i64;
        // Rates are rounded to one bit per second, which is 2^-12 of the lowest.
        prop_assert!((i64::from(gap.bytes) - kept).abs() <= 1 + kept / 2_000, "{} for {}", gap.bytes, kept);
        // The same rate: to the byte.
        let before = gap;
        gap.change_rate(b, b, &policy(200_000, CongestionSignal::Drop), now);
        prop_assert_eq!(gap, before);
    }
}

#[test]
fn a_full_gap_passes_the_next_packet_soon_after_its_rate_has_fallen() {
    // 400 KB at 4 Gbps; at 60 Mbps, with a limit of 36 KB, they would be 50 ms.
    let (fast, slow) = (gbps(4), AqRate::nearest(Rate::from_bps(60_000_000)).unwrap());
    let mut gap = Gap::new(fast, Time::ZERO);
    for _ in 0..266 {
        assert!(gap.arrive(fast, &policy(400_000, CongestionSignal::Drop), Time::ZERO, 1_500, &mut random()).pass);
    }
    let small = policy(36_000, CongestionSignal::Drop);
    gap.change_rate(fast, slow, &small, Time::ZERO);
    // 399 KB times 60 / 4,000, and the delay of 798 us is what it was.
    assert_eq!((gap.bytes(), gap.virtual_delay(slow).us_f64().round()), (Bytes(5_985), 798.0));
    assert!(gap.arrive(slow, &small, Time::ZERO, 1_500, &mut random()).pass);
}

#[test]
fn the_quantum_is_under_three_bytes() {
    for code in [0, 1, 12_345_678, (1 << 24) - 1] {
        let rate = AqRate::from_code(code);
        assert!(quantum(rate) < scaled(rate, 3));
    }
}

#[test]
fn a_burst_of_the_limit_passes_and_a_byte_more_is_given_back() {
    let (rate, policy) = (gbps(10), policy(3_000, CongestionSignal::Drop));
    let mut gap = Gap::new(rate, Time::ZERO);
    let mut arrive = |bytes| gap.arrive(rate, &policy, Time::ZERO, bytes, &mut random()).pass;
    assert_eq!([arrive(1_500), arrive(1_499), arrive(2), arrive(1), arrive(1)], [true, true, false, true, false]);
    assert_eq!(gap.bytes(), Bytes(3_000));
}

#[test]
fn twice_the_rate_passes_half_in_the_long_run() {
    // 1,500 bytes each 600 ns are 20 Gbps; 10 pass, and 15,000 bytes once.
    let (rate, policy) = (gbps(10), policy(15_000, CongestionSignal::Drop));
    let mut gap = Gap::new(rate, Time::ZERO);
    let packets = 100_000u64;
    let passed = (0..packets)
        .filter(|i| gap.arrive(rate, &policy, Time::from_ns(600 * i), 1_500, &mut random()).pass)
        .count() as i64;
    assert!((passed - packets as i64 / 2).abs() <= 11, "{passed}");
}

#[test]
fn marks_above_the_threshold_and_not_at_it() {
    let step = Marking::Step { threshold: Bytes(3_000) };
    let (rate, policy) = (gbps(10), policy(100_000, CongestionSignal::Ecn(step)));
    let mut gap = Gap::new(rate, Time::ZERO);
    let marks = [1_500, 1_500, 1, 1_500].map(|b| gap.arrive(rate, &policy, Time::ZERO, b, &mut random()).mark);
    assert_eq!(marks, [false, false, true, true]);
}

#[test]
fn a_ramp_marks_in_proportion() {
    // Half way up a ramp to 0.4: 0.2, so 2,000 of 10,000, with a deviation of 40.
    let mut random = random();
    let slope = (0.4 * (1u64 << 32) as f64) as u64;
    let marked = (0..10_000).filter(|_| ramp(2_000, 1_000, 3_000, slope, &mut random)).count();
    assert!((1_800..2_200).contains(&marked), "{marked}");
    assert!(!ramp(1_000, 1_000, 3_000, 1 << 32, &mut random) && ramp(3_001, 1_000, 3_000, 0, &mut random));
    assert!((0..1_000).all(|_| ramp(3_000, 1_000, 3_000, 1 << 32, &mut random)), "probability 1 is always");
}

#[test]
fn virtual_delay_is_the_gap_over_the_rate() {
    // 15,000 bytes at 10 Gbps are 12 us; the clock ticks in 1.024 ns there.
    let (rate, policy) = (gbps(10), policy(100_000, CongestionSignal::Delay));
    let mut gap = Gap::new(rate, Time::ZERO);
    let delay = (0..10).map(|_| gap.arrive(rate, &policy, Time::ZERO, 1_500, &mut random()).virtual_delay).last();
    let error = delay.unwrap().ps().abs_diff(12_000_000);
    assert!(error <= 1_024 + 12, "{error} ps: a tick, and 1 ppm of the rate");
}

#[test]
fn after_a_missed_wrap_too_little_drains_and_never_too_much() {
    let (rate, policy) = (gbps(10), policy(10_000, CongestionSignal::Drop));
    let mut gap = Gap::new(rate, Time::ZERO);
    gap.arrive(rate, &policy, Time::ZERO, 9_000, &mut random());
    gap.drain(rate, Time::ZERO + rate.wrap());
    assert_eq!(gap.bytes, 9_000);
    assert_eq!(rate.wrap(), Duration::from_ps(1 << (CLOCK_BITS + 10)));
}

#[test]
fn refuses_what_it_cannot_hold() {
    let key = |limit, feedback| Policy::new(Bytes(limit), feedback).unwrap_err().key;
    assert_eq!(key(0, CongestionSignal::Drop), "limit");
    assert_eq!(key(LIMIT_MAX.get() + 1, CongestionSignal::Delay), "limit");
    let ramp = Marking::Ramp { min: Bytes(5), max: Bytes(5), probability_max: 0.1, per: None };
    assert_eq!(key(1_000, CongestionSignal::Ecn(ramp)), "feedback.ecn.ramp");
    let gentle = Marking::GentleRamp { min: Bytes(5), max: Bytes(9), probability_max: 0.1 };
    assert_eq!(key(1_000, CongestionSignal::Ecn(gentle)), "feedback.ecn.gentle_ramp");
}
