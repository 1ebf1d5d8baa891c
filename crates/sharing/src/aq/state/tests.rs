use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn fields_round_trip(tag in 1u32.., code in 0u32..1 << 24, bytes in 0u32..1 << 24, last in 0u32..1 << 24,
        policy: u16) {
        let (id, rate, gap) = (AqId::from_tag(tag).unwrap(), AqRate::from_code(code), Gap { bytes, last });
        let row = Row::new(id, rate, gap, policy);
        prop_assert_eq!((row.tag(), row.rate(), row.gap(), row.policy()), (tag, rate, gap, policy));
        let mut other = Row::new(id, rate, Gap { bytes: !bytes & 0xFF_FFFF, last: 0 }, policy);
        other.set_gap(gap);
        prop_assert_eq!(other, row);
    }
}

#[test]
fn lies_in_memory_as_the_table_says() {
    let (id, rate) = (AqId::from_tag(0x0403_0201).unwrap(), AqRate::from_code(0x07_0605));
    let row = Row::new(id, rate, Gap { bytes: 0x0A_0908, last: 0x0D_0C0B }, 0x0F0E);
    assert_eq!(row.0, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
}
