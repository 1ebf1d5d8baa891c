use super::*;

const MTU: Bytes = Bytes(1_500);
/// Switches between hosts of different pods of a fat-tree.
const FAT_TREE: u32 = 5;

/// The sum of Theorem 3.2 as it is printed, with every binomial probability as a product.
fn as_printed(k: u32, cores: u32) -> f64 {
    let (n, p) = (k * cores, 1.0 / f64::from(cores));
    let probability = |i: u32| {
        let ways = (0..i).map(|j| f64::from(n - j) / f64::from(i - j) * p).product::<f64>();
        ways * (1.0 - p).powi((n - i).cast_signed())
    };
    (0..=n).map(|i| f64::from(i.min(k)) * probability(i)).sum::<f64>() / f64::from(k)
}

#[test]
fn theorem_3_1_gives_the_papers_delays() {
    let at = |gbps| queueing_delay_max(FAT_TREE, 8, MTU, Rate::from_gbps(gbps));
    assert_eq!(at(100), Duration::from_ns(12_600));
    assert_eq!(at(400), Duration::from_ns(3_150));
    assert_eq!(queue_max(FAT_TREE, 8, MTU), Bytes(5 * 7 * 1_500));
}

#[test]
fn the_delay_is_the_sum_over_hops_and_the_last_queue_is_the_largest() {
    for (switches, k) in [(1, 1), (3, 2), (5, 8), (9, 91)] {
        let rate = Rate::from_gbps(100);
        let hops: u64 = (1..=switches).map(|i| queueing_delay_max_at(i, k, MTU, rate).ps()).sum();
        assert_eq!(queueing_delay_max(switches, k, MTU, rate).ps(), hops);
        assert_eq!(queue_max_at(switches, k, MTU), queue_max(switches, k, MTU));
        assert_eq!(queueing_delay_max_at(switches, k, MTU, rate), rate.transmit(queue_max(switches, k, MTU).0));
    }
}

#[test]
fn without_virtual_links_nothing_waits() {
    assert_eq!(queueing_delay_max(FAT_TREE, 1, MTU, Rate::from_gbps(100)), Duration::ZERO);
    assert_eq!(queue_max(FAT_TREE, 1, MTU), Bytes(0));
}

#[test]
fn k_star_is_the_papers_for_its_two_switches() {
    assert_eq!(k_star(Bytes(22_000_000), 32, FAT_TREE, MTU), 91);
    assert_eq!(k_star(Bytes(113_000_000), 64, FAT_TREE, MTU), 235);
    assert_eq!(k_star(Bytes(0), 32, FAT_TREE, MTU), 0);
    assert_eq!(k_star(Bytes(1), 0, 0, Bytes(0)), 0);
}

#[test]
fn theorem_3_2_is_the_sum_that_the_paper_prints() {
    for (k, cores) in [(1, 1), (1, 2), (1, 32), (2, 32), (3, 7), (8, 32), (16, 4), (32, 32)] {
        let (ours, printed) = (slot_efficiency(k, cores), as_printed(k, cores));
        assert!((ours - printed).abs() < 1e-12, "f({k}, {cores}) = {ours}, as printed {printed}");
    }
}

#[test]
fn plain_rsvp_fills_63_percent() {
    assert!((slot_efficiency(1, 32) - 0.63).abs() < 0.01);
    assert!((slot_efficiency(1, 1 << 24) - (1.0 - (-1.0f64).exp())).abs() < 1e-7);
}

#[test]
fn efficiency_grows_with_k_to_one_and_never_beyond() {
    for cores in [2, 32, 256] {
        let f: Vec<f64> = (1..=1_024).map(|k| slot_efficiency(k, cores)).collect();
        assert!(f.windows(2).all(|pair| pair[0] < pair[1]), "{cores} cores");
        // The central limit: E|X - K| is sqrt(2/π) standard deviations, and so is 2 K (1 - f).
        let missed = (1.0 - 1.0 / f64::from(cores)).sqrt() / (2.0 * std::f64::consts::PI * 1_024.0).sqrt();
        assert!((1.0 - f[1_023] - missed).abs() < 1e-3 * missed, "{cores} cores: {}", f[1_023]);
    }
    assert!(slot_efficiency(1_000_000, 256) > 0.9996);
    assert!((slot_efficiency(7, 1) - 1.0).abs() < 1e-15, "one core can't be missed");
    assert!(slot_efficiency(0, 32) == 0.0 && slot_efficiency(8, 0) == 0.0);
}

#[test]
fn a_messages_bound_is_pacing_a_round_trip_and_what_it_waits() {
    let message =
        Message { wire_bytes: Bytes(90 * 1_500), packet: MTU, slots: 1, slot_rate: Rate::from_bps(12_500_000_000) };
    let path = Path {
        switches: 3,
        unloaded_round_trip: Duration::from_ns(4_600),
        queueing: queueing_delay_max(3, 8, MTU, Rate::from_gbps(100)),
        at_each_hop: Duration::ZERO,
    };
    // 90 packets of 960 ns; 6 x 7 x 120 ns each way.
    assert_eq!(message.delay_max(path), Some(Duration::from_ns(90 * 960 + 4_600 + 2 * 5_040)));
    // Four slots: the busiest has 23 packets.
    let four = Message { slots: 4, ..message };
    assert_eq!(four.delay_max(path), Some(Duration::from_ns(23 * 960 + 4_600 + 2 * 5_040)));
    // A best-effort packet at four transmitters there and four back.
    let beside = Path { at_each_hop: Duration::from_ns(120), ..path };
    assert_eq!(four.delay_max(beside), Some(Duration::from_ns(23 * 960 + 4_600 + 2 * 5_040 + 8 * 120)));
}

#[test]
fn no_input_is_too_large_or_too_small() {
    let most = Message { wire_bytes: Bytes(u64::MAX), packet: Bytes(0), slots: 0, slot_rate: Rate::ZERO };
    let path = Path {
        switches: u32::MAX,
        unloaded_round_trip: Duration::MAX,
        queueing: Duration::MAX,
        at_each_hop: Duration::MAX,
    };
    assert_eq!(most.delay_max(path), None);
    assert_eq!(Message { packet: MTU, ..most }.delay_max(path), None);
    assert_eq!(Message { packet: Bytes(1), slots: 1, ..most }.delay_max(path), Some(Duration::MAX));
    assert_eq!(queueing_delay_max(u32::MAX, u32::MAX, Bytes(u64::MAX), Rate::from_bps(1)), Duration::MAX);
    assert_eq!(queue_max(u32::MAX, u32::MAX, Bytes(u64::MAX)), Bytes(u64::MAX));
}
