use super::*;

proptest::proptest! {
    #[test]
    fn bytes_are_counted_once(ranges in proptest::collection::vec((0u64..60, 1u64..20), 0..40)) {
        let (mut came, mut seen) = (ByteRanges::default(), std::collections::BTreeSet::new());
        for (from, length) in ranges {
            let new = (from..from + length).filter(|&byte| seen.insert(byte)).count() as u64;
            proptest::prop_assert_eq!(came.add(from, from + length), new);
            proptest::prop_assert!(came.later.iter().all(|range| came.until < range.0 && range.0 < range.1));
            proptest::prop_assert!(came.later.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
