use super::*;

#[test]
fn the_highest_byte_comes_first() {
    let mut bytes = vec![9];
    let mut to = Writer::new(&mut bytes);
    to.u8(1);
    to.u16(0x0203);
    to.u32(0x0405_0607);
    to.u64(0x0809_0A0B_0C0D_0E0F);
    assert_eq!(to.written(), (1..=15).collect::<Vec<u8>>());
    to.u128(0x1011_1213_1415_1617_1819_1A1B_1C1D_1E1F);
    to.bytes(&[0x20]);
    assert_eq!(bytes, [&[9][..], &(1..=0x20).collect::<Vec<u8>>()].concat());
}

#[test]
fn what_is_missing_is_named_and_nothing_is_taken() {
    let mut from = Reader::new(&[1, 2, 3], "head");
    assert_eq!((from.u16(), from.u16()), (Ok(0x0102), Err(Malformed { what: "head" })));
    from.begin("tail");
    assert_eq!((from.bytes(2), from.taken()), (Err(Malformed { what: "tail" }), 2));
    assert_eq!((from.u8(), from.rest(), from.taken()), (Ok(3), &[][..], 3));
}

proptest::proptest! {
    #[test]
    fn what_was_written_is_read(byte: u8, short: u16, half: u32, word: u64, long: u128, tail: Vec<u8>) {
        let mut bytes = Vec::new();
        let mut to = Writer::new(&mut bytes);
        to.u8(byte);
        to.u16(short);
        to.u32(half);
        to.u64(word);
        to.u128(long);
        to.bytes(&tail);
        let mut from = Reader::new(&bytes, "");
        proptest::prop_assert_eq!((from.u8(), from.u16(), from.u32()), (Ok(byte), Ok(short), Ok(half)));
        proptest::prop_assert_eq!((from.u64(), from.u128(), from.rest()), (Ok(word), Ok(long), &tail[..]));
    }
}
