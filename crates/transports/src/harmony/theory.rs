//! What Harmony's paper proves (section 3.3), as functions.
//!
//! `switches` is #H, the switches on the longest path; `k` is K, the virtual links of each link; `packet` is p, the
//! largest packet with all headers; `rate` is B, that of the slowest link. Where a product is beyond 64 bits it stays
//! at the largest value.

use units::{Bytes, Duration, Rate};

/// Theorem 3.1: the most that any packet finds queued before it at any switch, #H (K - 1) p. From the third switch on
/// an [`adversary`](super::adversary) can exceed it; that module has a bound that always holds.
pub fn queue_max(switches: u32, k: u32, packet: Bytes) -> Bytes {
    queue_max_at(switches, k, packet)
}

/// The same at the i-th switch of a path, from 1 on: i (K - 1) p, what [`queueing_delay_max`] adds up. Packets of the K
/// - 1 other messages may have met each other at each switch before.
pub fn queue_max_at(i: u32, k: u32, packet: Bytes) -> Bytes {
    Bytes(u64::from(i).saturating_mul(u64::from(k.saturating_sub(1))).saturating_mul(packet.0))
}

/// Equation 1: the longest total wait of a packet in all queues of its path, #H (#H + 1) / 2 (K - 1) p/B.
pub fn queueing_delay_max(switches: u32, k: u32, packet: Bytes, rate: Rate) -> Duration {
    let hops = u64::from(switches) * (u64::from(switches) + 1) / 2;
    rate.transmit(queue_max_at(1, k, packet).0.saturating_mul(hops))
}

/// The longest wait at the i-th switch of its path, from 1 on: i (K - 1) p/B.
pub fn queueing_delay_max_at(i: u32, k: u32, packet: Bytes, rate: Rate) -> Duration {
    rate.transmit(queue_max_at(i, k, packet).0)
}

/// K*: the most virtual links with which the queues of Theorem 3.1 fit into a switch with a buffer of S* = `buffer`,
/// even if all its `ports` are full at once, so that nothing is lost to congestion. 0 if none fit, or for a switch
/// without ports.
pub fn k_star(buffer: Bytes, ports: u32, switches: u32, packet: Bytes) -> u64 {
    let all = u64::from(switches).saturating_mul(packet.0).saturating_mul(u64::from(ports));
    buffer.0.checked_div(all).unwrap_or(0)
}

/// Theorem 3.2's f(K, C): which share of the slots that an ideal arbiter would fill Harmony is expected to fill, in a
/// leaf-spine of full bisection with C = `cores`. 0 without virtual links or cores.
///
/// The theorem's sum is E[min(X, K)] / K for X binomial with K C trials of probability 1/C. Its mean is K, so E[min(X,
/// K)] = K - E|X - K| / 2, and De Moivre's mean absolute deviation, E|X - K| = 2 K (1 - 1/C) P(X = K), leaves
///
/// f(K, C) = 1 - (1 - 1/C) P(X = K).
///
/// P(X = K) = Π (K C - K + i) / (i C) · (1 - 1/C)^(C-1) over i = 1..=K: factors above one for small i and below for
/// large. They are taken from both ends, whichever keeps the product near one, so that no K is too large for it.
pub fn slot_efficiency(k: u32, cores: u32) -> f64 {
    if k == 0 || cores == 0 {
        return 0.0;
    }
    let (links, c) = (f64::from(k), f64::from(cores));
    let missed = 1.0 - 1.0 / c;
    let others = libm::pow(missed, c - 1.0);
    let factor = |i: u32| (links * c - links + f64::from(i)) / (f64::from(i) * c) * others;
    let (mut low, mut high) = (1, k);
    let mut just_k = 1.0;
    while low <= high {
        if just_k < 1.0 {
            just_k *= factor(low);
            low += 1;
        } else {
            just_k *= factor(high);
            high -= 1;
        }
    }
    1.0 - missed * just_k
}

/// A message that is being sent in slots, for [`Message::delay_max`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its bytes, headers included.
    pub wire_bytes: Bytes,
    /// Its largest packet.
    pub packet: Bytes,
    /// Number of slots that it has from its first packet to its last.
    pub slots: u32,
    /// Rate of each slot: B/K, less what is kept for control.
    pub slot_rate: Rate,
}

/// The path of a [`Message`] and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Number of switches on the path.
    pub switches: u32,
    /// Time of a full packet there and a control packet back in an empty network.
    pub unloaded_round_trip: Duration,
    /// The longest total delay of a packet in all queues of the path: [`queueing_delay_max`].
    pub queueing: Duration,
    /// Further delay at each transmitter: one best-effort packet already in transmission (section 3.2), and the rsvp
    /// and complete packets that share the first priority, at most K for each link. Zero as the theorem counts.
    pub at_each_hop: Duration,
}

impl Message {
    /// The most between a sender's first use of a rsvp and its receipt of the receiver's `complete`. None without
    /// packets' size or slots.
    ///
    /// The paper leaves the derivation to its technical report and calls it trivial; this one is ours:
    ///
    /// 1. A slot sends one packet every p / (B/K). With the packets dealt evenly to n slots the last one's turn is over
    ///    after ⌈packets / n⌉ of these periods. That has room for a first turn that comes a whole period late.
    /// 2. The last packet, with the sender's `complete` right behind it, and the receiver's `complete` take the
    ///    unloaded round trip,
    /// 3. and wait at most [`Path::queueing`] in each direction: Theorem 3.1 speaks of any packet in a first-priority
    ///    queue, and so of the `complete` too, although it has no virtual link of its own.
    /// 4. Each transmitter, the host's and those of the switches, both ways, adds [`Path::at_each_hop`].
    ///
    /// Hosts' own processing is not in it, as in the paper, nor what a sender lets its pace slip.
    pub fn delay_max(self, path: Path) -> Option<Duration> {
        if self.packet.0 == 0 || self.slots == 0 {
            return None;
        }
        let periods = self.wire_bytes.0.div_ceil(self.packet.0).div_ceil(u64::from(self.slots));
        let paced = self.slot_rate.transmit(periods.saturating_mul(self.packet.0));
        let hops = 2 * (u64::from(path.switches) + 1);
        let waits = path.queueing.ps().saturating_mul(2).saturating_add(path.at_each_hop.ps().saturating_mul(hops));
        let all = paced.ps().saturating_add(path.unloaded_round_trip.ps()).saturating_add(waits);
        Some(Duration::from_ps(all))
    }
}

#[cfg(test)]
mod tests {
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
}
