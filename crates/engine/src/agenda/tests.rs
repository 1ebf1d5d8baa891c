use super::*;

/// Times as runs have them, and some that no run comes to: as far apart as can be.
fn times() -> impl proptest::strategy::Strategy<Value = u64> {
    use proptest::prelude::*;
    prop_oneof![4 => 0u64..20, 1 => Just(NEVER), 1 => (0u32..64, 0u64..20).prop_map(|(bits, more)| (1 << bits) + more),
        1 => any::<u64>(), 1 => NEVER - 20..NEVER]
}

proptest::proptest! {
    /// Against the definition: the least (time, source).
    #[test]
    fn first_is_the_least_time_then_the_lowest_source(
        sources in 1usize..300,
        steps in proptest::collection::vec((0usize..300, times()), 1..200),
    ) {
        let mut agenda = Agenda::new(sources);
        let mut model = vec![NEVER; sources];
        for (source, at) in steps {
            let source = source % sources;
            agenda.set(source, Time::from_ps(at));
            model[source] = at;
            let least = model.iter().enumerate().map(|(s, &t)| (t, s)).min().unwrap();
            let (time, first) = agenda.first();
            proptest::prop_assert_eq!(time.ps(), least.0);
            proptest::prop_assert!(least.0 == NEVER || first == least.1);
            proptest::prop_assert_eq!(agenda.get(source).ps(), at);
            let others = model.iter().enumerate().any(|(other, &at)| other != first && at != NEVER);
            proptest::prop_assert_eq!(agenda.has_none_but(first), !others);
            // Whether it is first at a time, for times that a run comes to.
            for now in [time, Time::from_ps(3)].into_iter().filter(|now| now.ps() < NEVER >> 10) {
                let expected = time == now && (2..=source).contains(&first);
                proptest::prop_assert_eq!(agenda.is_first_at(now, 2, source), expected);
            }
        }
    }
}
