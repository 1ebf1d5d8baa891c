use super::*;

proptest::proptest! {
    #[test]
    fn any_part_of_a_message_is_that_part_of_the_whole(flow: u32, offset in 0u64..100, count in 0usize..100) {
        let (mut whole, mut part) = (Vec::new(), Vec::new());
        write(FlowId(flow), 0, 200, &mut whole);
        write(FlowId(flow), offset, count, &mut part);
        proptest::prop_assert_eq!(&whole[offset as usize..][..count], &part[..]);
    }

    /// Against one flag a byte.
    #[test]
    fn pieces_are_the_bytes_that_came(spans in proptest::collection::vec((0u64..60, 1u64..20), 1..20)) {
        let mut pieces = Pieces::default();
        let mut came = [false; 80];
        for (begin, length) in spans {
            pieces.add(begin, begin + length);
            came[begin as usize..(begin + length) as usize].fill(true);
        }
        let mut told = [false; 80];
        for &(begin, end) in &pieces.0 {
            told[begin as usize..end as usize].fill(true);
        }
        proptest::prop_assert_eq!(told, came);
        proptest::prop_assert!(pieces.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
