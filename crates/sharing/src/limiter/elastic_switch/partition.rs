//! Guarantee partitioning (GP): how one end of the pairs divides its hose among them.
//!
//! Max-min by demand: a pair gets what it wants, or an equal share of what pairs with less demand leave. What all of
//! them leave is divided equally on top, so that the whole hose is always given out, and a pair that wakes up is not
//! held to its earlier low demand.

use units::{Rate, Time};

/// A pair's demand on a hose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// It has used less than it might: its demand is this rate.
    Bounded(Rate),
    /// It has used all that it had, and may want more.
    Unbounded,
}

/// Divides `hose`: the parts in the order of `demands`. They add up to `hose`.
pub fn partition(hose: Rate, demands: &[Demand]) -> Vec<Rate> {
    let mut modest: Vec<usize> = (0..demands.len()).collect();
    modest.sort_by_key(|&pair| demands[pair]);
    let mut left = hose.bps();
    let mut parts = vec![0; demands.len()];
    for (served, &pair) in modest.iter().enumerate() {
        let share = left / (demands.len() - served) as u64;
        parts[pair] = match demands[pair] {
            Demand::Bounded(demand) => share.min(demand.bps()),
            Demand::Unbounded => share,
        };
        left -= parts[pair];
    }
    for (served, part) in parts.iter_mut().enumerate() {
        let share = left / (demands.len() - served) as u64;
        *part += share;
        left -= share;
    }
    parts.into_iter().map(Rate::from_bps).collect()
}

/// One end's state of a pair.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// Whether something was sent or waits, in this period or the previous one.
    pub active: bool,
    /// Wire bytes passed in this period.
    pub bytes: u64,
    /// This end's part of its hose.
    pub part: Rate,
    /// The other end's part, as far as known.
    pub other_part: Rate,
    since: Time,
    demand: Demand,
}

impl Claim {
    pub fn new() -> Claim {
        Claim {
            active: false,
            bytes: 0,
            part: Rate::ZERO,
            other_part: UNKNOWN,
            since: Time::ZERO,
            demand: Demand::Unbounded,
        }
    }

    /// A silent pair sends: it gets an equal share at once, until the other end reports.
    pub fn begin(&mut self, now: Time) {
        self.active = true;
        self.since = now;
        self.demand = Demand::Unbounded;
        self.other_part = UNKNOWN;
    }

    /// The pair's guarantee: the lesser part of both ends.
    pub fn guarantee(&self) -> Rate {
        self.part.min(self.other_part)
    }
}

/// The other end's part before its first report. This end's part then counts.
const UNKNOWN: Rate = Rate::from_bps(u64::MAX);

/// Divides `hose` among the active pairs, by their demands at the end of the last period.
pub(super) fn divide<'a>(hose: Rate, claims: impl Iterator<Item = &'a mut Claim>) {
    let active: Vec<&mut Claim> = claims.filter(|claim| claim.active).collect();
    // What the other end does not allow a pair is available to others.
    let demands: Vec<Demand> = active.iter().map(|claim| claim.demand.min(Demand::Bounded(claim.other_part))).collect();
    for (claim, part) in active.into_iter().zip(partition(hose, &demands)) {
        claim.part = part;
    }
}

/// The period from `began` has ended: estimates demands from the bytes that passed and wait.
pub(super) fn estimate<'a>(
    (began, now): (Time, Time),
    hose: Rate,
    headroom: f64,
    claims: impl Iterator<Item = (&'a mut Claim, u64)>,
) {
    let mut active = Vec::new();
    for (claim, waiting) in claims.filter(|(claim, _)| claim.active) {
        claim.active = claim.bytes + waiting > 0;
        if claim.active {
            active.push((claim, waiting));
        }
    }
    let share = Rate::from_bps(hose.bps() / active.len().max(1) as u64);
    for (claim, waiting) in active {
        let bits = u128::from(claim.bytes + waiting) * 8_000_000_000_000;
        let rate = bits.checked_div(u128::from(now.since(began).ps())).unwrap_or(u128::MAX);
        let rate = Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX));
        // A pair younger than the period has not shown its demand yet.
        let used_up = rate >= claim.guarantee().mul_f64(1.0 - headroom);
        claim.demand = if used_up || claim.since > began {
            Demand::Unbounded
        } else {
            Demand::Bounded(Rate::from_bps(rate.bps() + share.mul_f64(headroom).bps()))
        };
        claim.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Duration;

    use super::*;

    const fn gbps(gbps: u64) -> Rate {
        Rate::from_gbps(gbps)
    }

    #[test]
    fn two_who_want_all_get_half_each() {
        assert_eq!(partition(gbps(5), &[Demand::Unbounded; 2]), [Rate::from_bps(2_500_000_000); 2]);
    }

    #[test]
    fn what_the_modest_leave_goes_to_the_others() {
        let demands = [Demand::Unbounded, Demand::Bounded(gbps(1)), Demand::Unbounded, Demand::Bounded(gbps(4))];
        // 1 for the bounded pair, the other 9 equally among three: less than 4.
        assert_eq!(partition(gbps(10), &demands), [gbps(3), gbps(1), gbps(3), gbps(3)]);
    }

    #[test]
    fn what_no_one_wants_is_divided_equally_on_top() {
        assert_eq!(partition(gbps(10), &[Demand::Bounded(gbps(1)), Demand::Bounded(gbps(3))]), [gbps(4), gbps(6)]);
    }

    #[test]
    fn a_part_that_the_other_end_cuts_goes_to_other_pairs() {
        // X, with 6 Gbps, sends to Y and Z. Y also receives from others and leaves X 1 Gbps.
        let mut claims = [Claim::new(), Claim::new()];
        claims.iter_mut().for_each(|claim| claim.begin(Time::ZERO));
        divide(gbps(6), claims.iter_mut());
        assert_eq!(claims.each_ref().map(Claim::guarantee), [gbps(3), gbps(3)]);
        claims[0].other_part = gbps(1);
        divide(gbps(6), claims.iter_mut());
        assert_eq!(claims.each_ref().map(Claim::guarantee), [gbps(1), gbps(5)]);
    }

    /// A pair alone on a hose of 10 Gbps with a guarantee of `guarantee`, after a period of 1 ms in which `bytes`
    /// passed.
    fn after_a_period(guarantee: Rate, bytes: u64) -> Claim {
        let mut claim = Claim::new();
        claim.begin(Time::ZERO);
        claim.part = guarantee;
        claim.bytes = bytes;
        let period = (Time::from_ms(1), Time::from_ms(1) + Duration::from_ms(1));
        estimate(period, gbps(10), 0.1, [(&mut claim, 0)].into_iter());
        claim
    }

    #[test]
    fn demand_is_bounded_below_nine_tenths_of_the_guarantee() {
        // 112.5 KB in 1 ms are 0.9 Gbps.
        assert_eq!(after_a_period(gbps(1), 112_500).demand, Demand::Unbounded);
        // 0.8 Gbps, and a tenth of its share of 10 Gbps above.
        assert_eq!(after_a_period(gbps(1), 100_000).demand, Demand::Bounded(Rate::from_bps(1_800_000_000)));
    }

    #[test]
    fn a_silent_pair_is_no_longer_active() {
        assert!(!after_a_period(gbps(1), 0).active);
    }

    fn demand() -> impl Strategy<Value = Demand> {
        prop_oneof![
            Just(Demand::Unbounded),
            (0u64..30_000_000_000).prop_map(|bps| Demand::Bounded(Rate::from_bps(bps)))
        ]
    }

    proptest! {
        #[test]
        fn parts_sum_up_to_the_hose_and_no_one_below_an_equal_share_is_cut(
            hose in 0u64..100_000_000_000,
            demands in prop::collection::vec(demand(), 1..20),
        ) {
            let parts = partition(Rate::from_bps(hose), &demands);
            prop_assert_eq!(parts.iter().map(|part| part.bps()).sum::<u64>(), hose);
            let share = Rate::from_bps(hose / demands.len() as u64);
            for (demand, &part) in demands.iter().zip(&parts) {
                let wanted = match demand { Demand::Bounded(rate) => share.min(*rate), Demand::Unbounded => share };
                prop_assert!(part >= wanted);
            }
        }

        #[test]
        fn a_guarantee_exceeds_neither_end(
            hose in 0u64..100_000_000_000,
            others in prop::collection::vec(0u64..30_000_000_000, 1..20),
        ) {
            let mut claims = vec![Claim::new(); others.len()];
            for (claim, &other) in claims.iter_mut().zip(&others) {
                claim.begin(Time::ZERO);
                claim.other_part = Rate::from_bps(other);
            }
            divide(Rate::from_bps(hose), claims.iter_mut());
            prop_assert!(claims.iter().map(|claim| claim.guarantee().bps()).sum::<u64>() <= hose);
            prop_assert!(claims.iter().all(|claim| claim.guarantee() <= claim.other_part.min(claim.part)));
        }
    }
}
