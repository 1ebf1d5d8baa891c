use proptest::prelude::prop_oneof;

use super::*;

/// Times as runs have them, and some that no run comes to: as far apart as can be.
fn times() -> impl proptest::strategy::Strategy<Value = u64> {
    use proptest::prelude::*;
    prop_oneof![4 => 0u64..20, 1 => Just(NEVER), 1 => (0u32..64, 0u64..20).prop_map(|(bits, more)| (1 << bits) + more),
        1 => any::<u64>(), 1 => NEVER - 20..NEVER]
}

/// The definition of an agenda's first event: the least (time, source).
fn least(of: impl Iterator<Item = (usize, u64)>) -> Option<(u64, usize)> {
    of.filter(|of| of.1 < NEVER).map(|(source, at)| (at, source)).min()
}

proptest::proptest! {
    #[test]
    fn first_is_the_least_time_then_the_lowest_source(
        groups in proptest::collection::vec(0u32..20, 1..300),
        steps in proptest::collection::vec((0usize..300, times()), 1..200),
    ) {
        let mut agenda = Agenda::new(&groups);
        let mut model = vec![NEVER; groups.len()];
        for (source, at) in steps {
            let source = source % groups.len();
            agenda.set(source, Time::from_ps(at));
            model[source] = at;
            let expected = least(model.iter().copied().enumerate());
            let (time, first) = agenda.first();
            proptest::prop_assert_eq!((time < Time::MAX).then_some((time.ps(), first)), expected);
            proptest::prop_assert_eq!(agenda.get(source).ps(), at);
            let others = model.iter().enumerate().any(|(other, &at)| other != first && at != NEVER);
            proptest::prop_assert_eq!(agenda.has_none_but(first), !others);
            // The first of the source's group at a time, for times that a run comes to.
            let of_group = || (0..).zip(&groups).zip(&model).filter(|((_, of), _)| **of == groups[source]);
            let expected = least(of_group().map(|((source, _), &at)| (source, at)));
            for now in [time, Time::from_ps(3)].into_iter().filter(|now| now.ps() < NEVER >> 10) {
                let expected = expected.filter(|&(at, of)| at == now.ps() && of <= source).map(|of| of.1);
                let from = of_group().next().map_or(source, |((source, _), _)| source);
                proptest::prop_assert_eq!(agenda.first_at(now, from, source), expected);
            }
        }
    }

    /// In an open span each group has its events in order, and what they set for themselves and for later groups comes
    /// in its turn.
    #[test]
    fn groups_are_served_one_after_another(
        groups in proptest::collection::vec(0u32..150, 1..300),
        begin in prop_oneof![0u64..20, 0u64..1 << 62],
        steps in proptest::collection::vec((0usize..300, 0u64..40, 0usize..300, 0u64..40), 1..200),
    ) {
        let mut agenda = Agenda::new(&groups);
        let mut model = vec![NEVER; groups.len()];
        let mut sets = steps.into_iter().map(|(one, at, other, then)| {
            (one % groups.len(), begin + at, other % groups.len(), then)
        });
        for (source, at, ..) in sets.by_ref().take(100) {
            agenda.set(source, Time::from_ps(at));
            model[source] = at;
        }
        for end in [begin + 10, begin + 10, begin + 35] {
            let mut now = 0;
            while now < end {
                if agenda.first().0 >= Time::from_ps(end) {
                    break;
                }
                now = agenda.open(Time::from_ps(end)).ps();
                let mut from = 0;
                while let Some(group) = agenda.next_due(from) {
                    while let Some((at, source)) = agenda.next_of(group) {
                        let of_group = (0..).zip(&groups).zip(&model).filter(|((_, of), _)| **of as usize == group);
                        let expected = least(of_group.map(|((source, _), &at)| (source, at)));
                        proptest::prop_assert_eq!(Some((at.ps(), source)), expected);
                        agenda.set(source, Time::MAX);
                        model[source] = NEVER;
                        let Some((_, _, other, then)) = sets.next() else { continue };
                        // Itself and later groups at once, others once the span is over.
                        let then = if groups[other] as usize >= group { at.ps() + then } else { now + then };
                        agenda.set(other, Time::from_ps(then));
                        model[other] = then;
                    }
                    from = group + 1;
                }
                agenda.close();
                let (time, first) = agenda.first();
                let expected = least(model.iter().copied().enumerate());
                proptest::prop_assert_eq!((time < Time::MAX).then_some((time.ps(), first)), expected);
                proptest::prop_assert!(expected.is_none_or(|(at, _)| at >= now));
            }
        }
    }
}
