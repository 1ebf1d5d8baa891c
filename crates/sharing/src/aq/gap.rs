//! The A-Gap of one AQ and what follows from it for a packet (Theorem 3.2, Algorithms 1 and 2).
//!
//! The state of a switch consists of integers: the gap in whole bytes and the time of the last packet in ticks of the
//! rate's own clock ([`rate`](super::rate)), 24 bits each. A packet costs two multiplications and shifts, a subtraction
//! that stops at zero, an addition and a comparison; the virtual queueing delay needs a division, for which a switch
//! would have a table.
//!
//! *Quantum.* At any packet, the gap differs from the exact recurrence over the same packets by less than what R drains
//! in one tick, plus one byte: under 3 bytes in all, however long the sequence, since rounding does not add up. So in
//! any interval an AQ lets through at most R times the interval, plus the limit, plus this quantum; nothing is added in
//! an interval within one tick. The limit is not reduced by a quantum to compensate: a burst of exactly `limit` bytes
//! into an idle AQ passes, as Algorithm 2 has it. A change of R may add one more quantum.
//!
//! *Wrap-around.* A clock wraps after 2^24 ticks ([`AqRate::wrap`]; 17 ms at 10 Gbps, always 17 to 34 MB worth of R).
//! An AQ must be updated within that time, by a packet or by [`Gap::drain`] ([`Table::sweep`](super::Table::sweep) does
//! so for a switch). Otherwise too little drains and never too much, so the limit becomes stricter.

use node::Marking;
use units::{Bytes, Duration, Problem, Stream, Time};

use super::AqRate;
use contract::CongestionSignal;

/// The largest limit. A gap and the packet that is about to exceed it fit into 24 bits.
pub const LIMIT_MAX: Bytes = Bytes((1 << 24) - 1 - u16::MAX as u64);

/// The limit and the CC fields of an AQ's configuration (Table 1), as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    limit_bytes: u32,
    signal: Signal,
    capped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Signal {
    None,
    Step {
        threshold_bytes: u32,
    },
    /// `slope` is the probability at `max_bytes`, times 2^32.
    Ramp {
        min_bytes: u32,
        max_bytes: u32,
        slope: u64,
    },
}

/// What an AQ does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// False if the packet is dropped; the gap then stays as if it had not arrived.
    pub pass: bool,
    /// Whether the packet is marked "congestion experienced", if it is ECN-capable.
    pub mark: bool,
    /// Growth of the packet's virtual queueing delay: A/R including the packet; zero if it is dropped. Algorithm 2 adds
    /// it only for entities that react to delay. It is computed for all, since section 5.5 compares it with the delay
    /// of a real queue.
    pub virtual_delay: Duration,
}

impl Verdict {
    /// The packet passes unchanged.
    pub const UNTOUCHED: Verdict = Verdict { pass: true, mark: false, virtual_delay: Duration::ZERO };
    const DROP: Verdict = Verdict { pass: false, ..Verdict::UNTOUCHED };
}

/// The A-Gap and when it was last computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub(crate) bytes: u32,
    /// In ticks of the rate's clock.
    pub(crate) last: u32,
}

impl Gap {
    /// A(0) = 0.
    pub fn new(rate: AqRate, now: Time) -> Gap {
        Gap { bytes: 0, last: rate.clock(now) }
    }

    /// A packet of `bytes` arrives. Only a marking ramp draws from `random`.
    #[inline]
    pub fn arrive(&mut self, rate: AqRate, policy: &Policy, now: Time, bytes: u16, random: &mut Stream) -> Verdict {
        self.drain(rate, now);
        let grown = self.bytes + u32::from(bytes);
        if grown > policy.limit_bytes {
            return Verdict::DROP;
        }
        self.bytes = grown;
        let mark = match policy.signal {
            Signal::None => false,
            Signal::Step { threshold_bytes } => grown > threshold_bytes,
            Signal::Ramp { min_bytes, max_bytes, slope } => ramp(grown, min_bytes, max_bytes, slope, random),
        };
        Verdict { pass: true, mark, virtual_delay: rate.delay(grown) }
    }

    /// Updates the gap to `now`: max(0, A - R dt).
    #[inline]
    pub fn drain(&mut self, rate: AqRate, now: Time) {
        let clock = rate.clock(now);
        self.bytes = self.bytes.saturating_sub(rate.drained(self.last, clock));
        self.last = clock;
    }

    /// Changes the allocated rate. The virtual delay A/R stays the same, as far as the new limit allows.
    ///
    /// The paper changes rates (section 6) but does not say what becomes of the gap. If its bytes stayed, an entity
    /// that has filled a large gap under a lent rate would have to drain it at its own rate: 400 KB of 4 Gbps at 60
    /// Mbps block every packet for 50 ms. With a constant delay, a rate that falls and returns leaves the gap as it
    /// was, and changing rates lend nothing.
    pub fn change_rate(&mut self, from: AqRate, to: AqRate, policy: &Policy, now: Time) {
        self.drain(from, now);
        if from != to {
            let scaled = (u128::from(self.bytes) * u128::from(to.mantissa())) << from.exponent();
            let parts = u128::from(from.mantissa()) << to.exponent();
            self.bytes = u32::try_from((scaled + parts / 2) / parts).unwrap_or(u32::MAX);
        }
        self.bytes = self.bytes.min(policy.limit_bytes);
        self.last = to.clock(now);
    }

    /// A, as of the last update.
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.bytes))
    }

    /// A/R, as of the last update: how long the last packet would have waited in a queue of its own.
    pub fn virtual_delay(&self, rate: AqRate) -> Duration {
        rate.delay(self.bytes)
    }
}

/// Marks with a probability that grows from 0 at `min` to the slope at `max`, and always above. It compares products
/// and needs no division.
#[inline]
fn ramp(gap: u32, min: u32, max: u32, slope: u64, random: &mut Stream) -> bool {
    if gap <= min {
        return false;
    }
    gap > max || (random.bits() >> 32) * u64::from(max - min) < u64::from(gap - min) * slope
}

impl Policy {
    /// Keys of an error are `limit` and those of `feedback`.
    pub fn new(limit: Bytes, feedback: CongestionSignal) -> Result<Policy, Problem> {
        if limit > LIMIT_MAX || limit.get() == 0 {
            return Err(Problem::new("limit", format!("{limit} is not above 0 and at most {LIMIT_MAX}")));
        }
        // A threshold beyond the largest gap never marks.
        let word = |bytes: Bytes| bytes.get().min(1 << 24) as u32;
        let signal = match feedback {
            CongestionSignal::Drop | CongestionSignal::Delay => Signal::None,
            CongestionSignal::Ecn(Marking::Step { threshold }) => Signal::Step { threshold_bytes: word(threshold) },
            CongestionSignal::Ecn(Marking::GentleRamp { .. }) => {
                let message = "an AQ marks by a step or by a ramp; write one of the two";
                return Err(Problem::new("feedback.ecn.gentle_ramp", message));
            }
            CongestionSignal::Ecn(Marking::Ramp { min, max, probability_max, .. }) => {
                if !(min < max && max <= LIMIT_MAX && (0.0..=1.0).contains(&probability_max)) {
                    let message = format!("a ramp needs min < max <= {LIMIT_MAX} and a probability_max from 0 to 1");
                    return Err(Problem::new("feedback.ecn.ramp", message));
                }
                let slope = (probability_max * (1u64 << 32) as f64) as u64;
                Signal::Ramp { min_bytes: word(min), max_bytes: word(max), slope }
            }
        };
        Ok(Policy { limit_bytes: limit.get() as u32, signal, capped: false })
    }

    /// The same policy for a capped entity: every packet counts, even if the link has capacity to spare.
    pub fn with_cap(self, capped: bool) -> Policy {
        Policy { capped, ..self }
    }

    /// Whether every packet counts, even where packets of other entities bypass their AQ.
    pub fn is_capped(&self) -> bool {
        self.capped
    }

    /// The A-Gap above which packets are dropped.
    pub fn limit(&self) -> Bytes {
        Bytes(u64::from(self.limit_bytes))
    }
}

#[cfg(test)]
mod tests {
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
}
