use testing::check_header;

use super::*;

#[test]
fn bytes_stay_what_they_are() {
    let freed = Frame::Freed { vcs: [3, 31], counts: [0x1234, 0x7FFF] };
    // 00011 001001000110100 11111 111111111111111.
    assert_eq!(check_header(freed, &[]), [0x10, 0x19, 0x23, 0x4F, 0xFF, 0xFF]);
    assert_eq!(check_header(Frame::Consumed { vc: 3, count: 0x1234 }, &[]), [0x11, 0x19, 0x23, 0x40]);
    assert_eq!((freed.packet().wire_bytes, Frame::Consumed { vc: 0, count: 0 }.packet().wire_bytes), (8, 64));
}

proptest::proptest! {
    #[test]
    fn frames_survive_the_wire(
        vcs in proptest::array::uniform2(0u8..32),
        counts in proptest::array::uniform2(0u16..=COUNT),
        noise: Vec<u8>,
    ) {
        check_header(Frame::Freed { vcs, counts }, &noise);
        check_header(Frame::Consumed { vc: vcs[0], count: counts[0] }, &noise);
    }
}
