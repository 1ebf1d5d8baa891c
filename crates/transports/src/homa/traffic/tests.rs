use super::*;

fn traffic(fixed: Option<u8>) -> Traffic {
    Traffic::new(8, fixed)
}

#[test]
fn levels_are_divided_by_the_share_of_unscheduled_bytes() {
    // 60 bytes of 100 unscheduled: 4.8 of 8 levels.
    let mut measured = traffic(None);
    (0..100).for_each(|_| measured.saw(100_000, [(100_000, 60_000)]));
    assert_eq!(measured.levels().count, 5);
    // None, or all: one is left on either side.
    let mut none = traffic(None);
    (0..100).for_each(|_| none.saw(100_000_000, [(100_000_000, 1_000)]));
    let mut all = traffic(None);
    (0..100).for_each(|_| all.saw(1_000, [(1_000, 1_000)]));
    assert_eq!((none.levels().count, all.levels().count), (1, 7));
    let mut fixed = traffic(Some(3));
    (0..100).for_each(|_| fixed.saw(1_000, [(1_000, 1_000)]));
    assert_eq!(fixed.levels().count, 3);
}

#[test]
fn old_traffic_is_forgotten() {
    let mut traffic = traffic(None);
    (0..100_000).for_each(|_| traffic.saw(100, [(100, 100)]));
    (0..40_000).for_each(|_| traffic.saw(100_000, [(100_000, 10_000)]));
    assert_eq!(traffic.levels().count, 1);
}

proptest::proptest! {
    /// No level carries more than its share by more than the sizes that share its last bucket.
    #[test]
    fn cutoffs_balance_unscheduled_bytes(sizes in proptest::collection::vec(1u64..200_000, 64), count in 1u8..8) {
        let mut traffic = traffic(Some(count));
        let unscheduled = |size: u64| size.min(10_000);
        // A number of messages at which cutoffs are worked out.
        sizes.iter().for_each(|&size| traffic.saw(size, [(size, unscheduled(size))]));
        let levels = traffic.levels();
        let mut carried = [0; LEVELS_MAX];
        let mut in_bucket = [0; BUCKETS];
        for &size in &sizes {
            carried[usize::from(levels.of(size))] += unscheduled(size);
            in_bucket[usize::from(bucket(size))] += unscheduled(size);
        }
        let total: u64 = carried.iter().sum();
        let grain = in_bucket.into_iter().max().unwrap();
        for bytes in &carried[..usize::from(count)] {
            proptest::prop_assert!(*bytes <= total / u64::from(count) + grain + 1, "{:?} of {}", carried, total);
        }
        proptest::prop_assert_eq!(carried[usize::from(count)..].iter().sum::<u64>(), 0);
    }

    #[test]
    fn larger_messages_never_have_a_higher_level(a in 1u64..u64::MAX, b in 1u64..u64::MAX, cutoffs: [u8; 6]) {
        let mut cutoffs = cutoffs;
        cutoffs.sort_unstable();
        let levels = Levels { count: 7, cutoffs };
        proptest::prop_assert!(bucket(a.min(b)) <= bucket(a.max(b)));
        proptest::prop_assert!(levels.of(a.min(b)) <= levels.of(a.max(b)));
    }
}
