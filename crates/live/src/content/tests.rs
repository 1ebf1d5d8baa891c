use super::*;

proptest::proptest! {
    #[test]
    fn any_part_of_a_message_is_that_part_of_the_whole(flow: u32, offset in 0u64..100, count in 0usize..100) {
        let (mut whole, mut part) = ([0; 200], [0; 100]);
        write(FlowId(flow), 0, &mut whole);
        write(FlowId(flow), offset, &mut part[..count]);
        proptest::prop_assert_eq!(&whole[offset as usize..][..count], &part[..count]);
        proptest::prop_assert!(is_right(FlowId(flow), offset, &part[..count]));
    }

    #[test]
    fn one_wrong_bit_is_seen_wherever_it_is(flow: u32, offset in 0u64..100, count in 1usize..100, bit: usize) {
        let mut content = vec![0; count];
        write(FlowId(flow), offset, &mut content);
        content[bit % (8 * count) / 8] ^= 1 << (bit % 8);
        proptest::prop_assert!(!is_right(FlowId(flow), offset, &content));
    }

    /// Eight bytes at least: fewer may happen to be the same.
    #[test]
    fn what_belongs_elsewhere_is_wrong(flow: u32, other: u32, offset in 0u64..10_000, at in 0u64..10_000) {
        proptest::prop_assume!((flow, offset) != (other, at));
        let mut content = [0; 64];
        write(FlowId(flow), offset, &mut content);
        proptest::prop_assert!(!is_right(FlowId(other), at, &content));
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
