use super::*;

#[test]
fn a_gate_beneath_others_shows_the_classes_that_packets_go_to() {
    for paused_classes in 0..=u8::MAX {
        let gate = Gate { paused_classes, ..Gate::default() };
        for (beneath, class) in (0..8).flat_map(|beneath| (0..8).map(move |class| (beneath, class))) {
            assert_eq!(gate.beneath(beneath).open(class), gate.open((class + beneath).min(7)));
        }
    }
}

proptest::proptest! {
    #[test]
    fn true_time_is_the_first_instant_at_which_the_clock_shows_it(
        offset_ps in -1_000_000_000i64..1_000_000_000,
        drift_ppb in proptest::prelude::prop_oneof![proptest::prelude::Just(0), -200_000i64..200_000],
        at in 2_000_000_000u64..10_000_000_000_000,
    ) {
        let clock = Clock { offset_ps, drift_ppb };
        let local = clock.local_ps(Time::from_ps(at));
        let first = clock.true_time(local);
        proptest::prop_assert!(first.ps() <= at && clock.local_ps(first) >= local);
        proptest::prop_assert!(clock.local_ps(first - Duration::from_ps(1)) < local);
    }
}
