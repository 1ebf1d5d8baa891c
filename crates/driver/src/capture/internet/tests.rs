use super::*;

/// RFC 1071's own example, in two pieces.
#[test]
fn checksums_are_those_of_the_rfc() {
    let bytes = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
    assert_eq!(checksum(0, &bytes), !0xDDF2);
    assert_eq!(checksum(add(0, &bytes[..2]), &bytes[2..]), !0xDDF2);
    assert_eq!(checksum(0, &[0x01]), !0x0100, "an odd byte stands in front of a zero");
}
