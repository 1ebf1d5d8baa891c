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

#[test]
fn a_clock_that_is_fast_by_100_ppm_sends_10_001_packets_in_the_time_of_10_000() {
    for bps in [1_000_000_000, 100_000_000_000, 1_600_000_000_000, 7_777_777_777] {
        let rate = Rate::from_bps(bps);
        let exact = rate.per_byte();
        let of_many = |per_byte: PerByte, count: u64| per_byte.transmit(1_000_000).ps() as f64 * count as f64;
        for ppb in [100_000, -100_000, 1, 0] {
            let ratio = of_many(exact, 1) / of_many(exact.by_clock(rate, ppb), 1);
            // A byte's time has 2^-20 ps, of 5 ps at 1.6 Tbps.
            assert!((ratio - 1.0 - f64::from(ppb) * 1e-9).abs() < 3e-7, "{bps} {ppb}: {ratio}");
        }
        let other = Rate::from_bps(bps / 3);
        assert_eq!(exact.by_clock(rate, -40_000).at(other), exact.by_clock(other, -40_000), "the clock stays");
        assert_eq!(exact.by_clock(rate, 0), exact);
    }
    let fast = Rate::from_gbps(100).per_byte().by_clock(Rate::from_gbps(100), 100_000);
    assert_eq!(fast.transmit(1_500), Duration::from_ps(119_989), "120 ns / 1.0001, rounded up");
}

#[test]
fn tolerances_are_written_in_parts_per_million_or_billion() {
    assert_eq!("100ppm".parse::<Tolerance>().unwrap(), Tolerance::from_ppm(100));
    assert_eq!("50ppb".parse::<Tolerance>().unwrap().ppb(), 50);
    assert_eq!(Tolerance::from_ppm(100).to_string(), "100ppm");
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
