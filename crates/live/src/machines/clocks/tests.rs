use super::*;

#[test]
fn an_offset_is_right_to_half_a_round_trip() {
    // The other is 1,000 ahead; its answer takes longer than the question.
    let offset = Offset::of(50_000, 51_000 + 10, 50_090);
    assert_eq!(offset, Offset { ahead_ns: 965, trip_ns: 90 });
    assert!(offset.ahead_ns.abs_diff(1_000) <= offset.error_ns());
    assert_eq!(offset.there(60_000), 60_965);
    let behind = Offset::of(5_000_000, 1_000, 5_000_100);
    assert_eq!((behind.ahead_ns, behind.there(5_000_000)), (-4_999_050, 950));
}

/// Any clock may be said.
#[test]
fn a_clock_that_cannot_be_gives_a_number() {
    assert_eq!(Offset::of(0, u64::MAX, 0), Offset { ahead_ns: i64::MAX, trip_ns: 0 });
    assert_eq!(Offset::of(u64::MAX, 0, u64::MAX), Offset { ahead_ns: i64::MIN, trip_ns: 0 });
    assert_eq!(Offset::of(9, 9, 3), Offset { ahead_ns: 0, trip_ns: 0 });
    assert_eq!(Offset { ahead_ns: i64::MIN, trip_ns: 0 }.there(7), 0);
    assert_eq!(Offset::of(0, 0, u64::MAX).error_ns(), 1 << 63);
}
