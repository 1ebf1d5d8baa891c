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
    prop_oneof![Just(Demand::Unbounded), (0u64..30_000_000_000).prop_map(|bps| Demand::Bounded(Rate::from_bps(bps)))]
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
