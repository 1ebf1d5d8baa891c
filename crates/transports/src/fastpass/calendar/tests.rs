use proptest::prelude::*;
use testing::walks::{NOW, notes};

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

const SLOT: Duration = Duration::from_ns(120);

/// A train that has passed, and one that has not.
fn calendar() -> Calendar {
    let train = |begin: Time, until: Time| Train { begin, until, period: SLOT, busy: SLOT / 2 };
    let trains = vec![train(Time::ZERO, NOW), train(NOW - SLOT * 3, NOW + SLOT * 50)];
    Calendar { trains }
}

/// A train that stays is an appointment; one that is followed by another in each period moves. In both cases its phase
/// stays what it is over whole periods of its own alone.
#[test]
fn its_walk_moves_trains_that_are_followed_by_others() {
    let found = |by: Duration, after: Duration| {
        let mut later = calendar();
        let train = &mut later.trains[1];
        (train.begin, train.until) = (train.begin + by, train.until + by);
        let before = notes(NOW, &[], &mut calendar(), |calendar: &mut Calendar, walk: &mut node::Walk| {
            node::State::visit(calendar, walk, &())
        });
        let after = notes(NOW + after, &[], &mut later, |calendar: &mut Calendar, walk: &mut node::Walk| {
            node::State::visit(calendar, walk, &())
        });
        node::walk::recurrence(&before, &after).map(|found| found.until).ok()
    };
    assert_eq!(found(Duration::ZERO, SLOT * 2), Some(NOW + SLOT * 50));
    assert_eq!(found(SLOT * 2, SLOT * 2), Some(Time::MAX));
    assert_eq!(found(Duration::ZERO, SLOT / 2), None);
}
