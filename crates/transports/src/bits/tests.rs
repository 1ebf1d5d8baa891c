use super::*;

proptest::proptest! {
    #[test]
    fn is_a_set(numbers in proptest::collection::vec(0u32..200, 0..300), from in 0u32..220) {
        let (mut bits, mut set) = (Bits::default(), std::collections::BTreeSet::new());
        for number in numbers {
            proptest::prop_assert_eq!(bits.insert(number), set.insert(number));
        }
        proptest::prop_assert_eq!(bits.count as usize, set.len());
        proptest::prop_assert_eq!(bits.first_missing, (0..).find(|number| !set.contains(number)).unwrap());
        proptest::prop_assert_eq!(bits.next_missing(from), (from..).find(|number| !set.contains(number)).unwrap());
    }
}
