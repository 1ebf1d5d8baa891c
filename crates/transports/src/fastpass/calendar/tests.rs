use proptest::prelude::*;

use super::*;

fn train() -> impl Strategy<Value = (Train, u64)> {
    (0u64..60, 1u64..4, 1u64..8, 1u64..10).prop_map(|(begin, stride, packets, busy)| {
        let (period, busy) = (stride * 10, busy.min(stride * 10));
        let until = Time::from_ps(begin + (packets - 1) * period + busy);
        let [period, busy] = [period, busy].map(Duration::from_ps);
        (Train { begin: Time::from_ps(begin), until, period, busy }, packets)
    })
}

fn instants((train, packets): (Train, u64)) -> impl Iterator<Item = u64> {
    let (begin, period, busy) = (train.begin.ps(), train.period.ps(), train.busy.ps());
    (0..packets).flat_map(move |packet| (0..busy).map(move |at| begin + packet * period + at))
}

proptest! {
    #[test]
    fn trains_that_do_not_clash_never_meet(one in train(), other in train()) {
        let taken: std::collections::BTreeSet<u64> = instants(one).collect();
        let meet = instants(other).any(|at| taken.contains(&at));
        prop_assert!(one.0.clashes(&other.0) || !meet);
        prop_assert_eq!(one.0.clashes(&other.0), other.0.clashes(&one.0));
        // With one period and in each other's time, the rule is exact but for the ends.
        if one.0.period == other.0.period && one.0.begin <= other.0.begin && other.0.until <= one.0.until {
            prop_assert_eq!(one.0.clashes(&other.0), meet);
        }
    }
}
