use super::*;

#[test]
fn a_full_packet_takes_120_ns_at_100_gbps() {
    let per_byte = Rate::from_gbps(100).per_byte();
    assert_eq!(per_byte.transmit(1500), Duration::from_ns(120));
    assert_eq!(Rate::from_gbps(400).per_byte().transmit(1), Duration::from_ps(20));
    assert_eq!(Rate::from_gbps(100).transmit(1500), Duration::from_ns(120));
}

#[test]
fn a_clock_of_nanoseconds_sends_84_bytes_at_400_gbps_in_one() {
    let per_byte = Rate::from_gbps(400).per_byte().in_steps_of(Duration::from_ns(1));
    assert_eq!([84, 126, 1_536].map(|bytes| per_byte.transmit(bytes)), [1, 2, 30].map(Duration::from_ns));
    assert_eq!(Rate::from_gbps(400).per_byte().transmit(84), Duration::from_ps(1_680));
}

proptest::proptest! {
    #[test]
    fn the_fast_form_is_never_early_and_at_most_a_picosecond_late(bps in 1_000_000u64..2_000_000_000_000,
        bytes in 1u32..65_536) {
        let exact = Rate::from_bps(bps).transmit(u64::from(bytes)).ps();
        let fast = Rate::from_bps(bps).per_byte().transmit(bytes).ps();
        proptest::prop_assert!(fast == exact || fast == exact + 1, "{fast} {exact}");
    }

    #[test]
    fn bytes_in_inverts_transmit(bps in 1_000u64..2_000_000_000_000, bytes in 1u64..1_000_000) {
        let rate = Rate::from_bps(bps);
        proptest::prop_assert!(rate.bytes_in(rate.transmit(bytes)) >= bytes);
    }
}
