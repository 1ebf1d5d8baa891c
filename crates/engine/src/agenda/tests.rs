use super::*;

proptest::proptest! {
    /// Against the definition: the least (time, source).
    #[test]
    fn first_is_the_least_time_then_the_lowest_source(
        sources in 1usize..40,
        steps in proptest::collection::vec((0usize..40, 0u64..20), 1..200),
    ) {
        let mut agenda = Agenda::new(sources);
        let mut model = vec![u64::MAX; sources];
        for (source, at) in steps {
            let source = source % sources;
            let at = if at == 0 { u64::MAX } else { at };
            agenda.set(source, Time::from_ps(at));
            model[source] = at;
            let least = model.iter().enumerate().map(|(s, &t)| (t, s)).min().unwrap();
            let (time, first) = agenda.first();
            proptest::prop_assert_eq!(time.ps(), least.0);
            proptest::prop_assert!(least.0 == u64::MAX || first == least.1);
        }
    }
}
