use super::*;
use proptest::prelude::*;

#[test]
fn holds_the_papers_range() {
    assert!(AqRate::nearest(Rate::from_bps(8_000_000)).is_some(), "1 MB/s");
    assert!(AqRate::nearest(Rate::from_bps(8_000_000_000_000)).is_some(), "1 TB/s");
}

#[test]
fn what_cannot_be_held_is_not_clamped() {
    for bps in [0, AqRate::BPS_MIN - 1, 16_000_000_000_000, u64::MAX] {
        assert_eq!(AqRate::nearest(Rate::from_bps(bps)), None, "{bps}");
    }
    assert_eq!(AqRate::nearest(Rate::from_bps(AqRate::BPS_MIN)).map(AqRate::exponent), Some(31));
    assert_eq!(AqRate::nearest(Rate::from_bps(AqRate::BPS_MAX)), Some(AqRate::MAX));
}

#[test]
fn a_byte_a_picosecond_is_exact() {
    let rate = AqRate::nearest(Rate::from_bps(8_000_000_000_000)).unwrap();
    assert_eq!((rate.mantissa(), rate.exponent()), (1 << 19, 0));
    assert_eq!(rate.drained(7, 1_007), 1_000);
    assert_eq!(rate.delay(1_000), Duration::from_ps(1_000));
}

proptest! {
    #[test]
    fn rounding_is_within_two_to_the_minus_20(bps in AqRate::BPS_MIN..AqRate::BPS_MAX) {
        let rate = AqRate::nearest(Rate::from_bps(bps)).unwrap();
        // |m 8e12 / 2^(19+k) - bps| <= bps 2^-20, both sides times 2^(19+k).
        let shift = FRACTION + rate.exponent();
        let error = (u128::from(rate.mantissa()) * BITS_PER_BYTE_PS).abs_diff(u128::from(bps) << shift);
        prop_assert!(error << 20 <= u128::from(bps) << shift);
    }

    #[test]
    fn codes_round_trip_and_keep_the_order(code in 9u32 << FRACTION..1 << 24) {
        // From here up (1.9 Mbps) neighbours are more than 1 bps apart.
        let rate = AqRate::from_code(code);
        prop_assert_eq!(AqRate::nearest(rate.rate()), Some(rate));
        prop_assert!(AqRate::from_code(code - 1).rate() < rate.rate());
    }

    #[test]
    fn every_tick_drains_one_byte_or_two(code in 0u32..1 << 24, at in 0u32..1 << 24) {
        let rate = AqRate::from_code(code);
        let bytes = rate.drained(at, (at + 1) & CLOCK_MASK);
        prop_assert!(bytes == 1 || bytes == 2);
    }
}
