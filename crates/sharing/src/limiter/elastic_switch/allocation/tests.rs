use proptest::prelude::*;

use super::*;

const GBPS: Rate = Rate::from_gbps(1);
const LINK: Rate = Rate::from_gbps(10);

fn free(guarantee: Rate) -> Met {
    Met { guarantee, congested: false, used: true }
}

#[test]
fn without_caution_the_guarantee_has_doubled_after_the_time_of_growth() {
    let probing = Probing { rate_caution: 0.0, ..Probing::default() };
    let mut pair = Allocation::default();
    (0..30).for_each(|_| pair.adapt(&probing, LINK, free(GBPS)));
    assert_eq!(pair.rate(GBPS), Rate::from_gbps(2));
}

#[test]
fn caution_slows_growth_down() {
    let mut pair = Allocation::default();
    (0..30).for_each(|_| pair.adapt(&Probing::default(), LINK, free(GBPS)));
    assert!(pair.rate(GBPS) > GBPS && pair.rate(GBPS) < Rate::from_gbps(2));
}

#[test]
fn after_congestion_it_falls_to_seven_tenths_and_holds_inversely_to_its_guarantee() {
    for (guarantee, intervals) in [(GBPS, 10), (Rate::from_gbps(2), 5)] {
        let mut pair = Allocation::default();
        (0..200).for_each(|_| pair.adapt(&Probing::default(), LINK, free(guarantee)));
        let before = pair.rate(guarantee);
        assert!(before > Rate::from_gbps(3), "{before:?}");
        pair.adapt(&Probing::default(), LINK, Met { congested: true, ..free(guarantee) });
        let cut = pair.rate(guarantee);
        assert_eq!(cut, before.mul_f64(0.7));
        // 625 KB are 5 ms at 1 Gbps, 10 intervals, and half of that at 2 Gbps.
        for _ in 0..intervals {
            pair.adapt(&Probing::default(), LINK, free(guarantee));
            assert_eq!(pair.rate(guarantee), cut);
        }
        pair.adapt(&Probing::default(), LINK, free(guarantee));
        assert!(pair.rate(guarantee) > cut);
    }
}

#[test]
fn signs_of_what_was_sent_before_a_cut_cause_no_other() {
    let mut pair = Allocation { rate: LINK, peak: LINK, base: LINK, ..Allocation::default() };
    let signs = Met { congested: true, ..free(GBPS) };
    (0..3).for_each(|_| pair.adapt(&Probing::default(), LINK, signs));
    assert_eq!(pair.rate(GBPS), Rate::from_gbps(7));
    pair.adapt(&Probing::default(), LINK, signs);
    assert_eq!(pair.rate(GBPS), Rate::from_bps(4_900_000_000), "congestion persists");
}

#[test]
fn a_pair_that_does_not_use_its_rate_does_not_grow() {
    let mut pair = Allocation::default();
    (0..100).for_each(|_| pair.adapt(&Probing::default(), LINK, Met { used: false, ..free(GBPS) }));
    assert_eq!(pair.rate(GBPS), GBPS);
}

proptest! {
    #[test]
    fn whatever_it_meets_it_is_between_guarantee_and_link(
        steps in prop::collection::vec((1u64..10_000_000_000, any::<bool>(), any::<bool>()), 1..100),
    ) {
        let mut pair = Allocation::default();
        for (bps, congested, used) in steps {
            let guarantee = Rate::from_bps(bps);
            pair.adapt(&Probing::default(), LINK, Met { guarantee, congested, used });
            prop_assert!(pair.rate(guarantee) >= guarantee && pair.rate(guarantee) <= LINK);
        }
    }
}
