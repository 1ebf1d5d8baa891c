//! The bounds that dcPIM's paper proves about matching, and a study that compares them with matchings.

use units::Stream;

use super::pim::{Demand, sizes};

/// Theorem 1 (section 3.1): how large a matching is expected at least after `rounds` rounds.
///
/// "Let G be a connected bipartite graph with n nodes, and let δ be the average degree. If PIM computes a matching of
/// expected size M* = n/α, for some 1 ≤ α ≤ n, using O(log n) rounds, then after r rounds, dcPIM computes a matching of
/// expected size (1 - δα/4^r) M*."
///
/// `hosts` is n, which the proof counts on each side (senders, and receivers); `degree` is δ; `maximal` is M*. The
/// proof leaves no more than n δ / 4^r senders active, of which PIM could match each, and so doesn't need the graph to
/// be connected. Where the formula is negative it gives no bound, and the result is 0.
pub fn theorem_1(hosts: f64, degree: f64, maximal: f64, rounds: u32) -> f64 {
    let alpha = hosts / maximal;
    let active = degree * alpha / quarters(rounds);
    if maximal > 0.0 { ((1.0 - active) * maximal).max(0.0) } else { 0.0 }
}

/// 4^rounds.
fn quarters(rounds: u32) -> f64 {
    (0..rounds).fold(1.0, |power, _| power * 4.0)
}

/// One line of [`study`]: fractions are of all hosts, means over the row's demands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Senders, and as many receivers: n.
    pub hosts: u32,
    /// Average number of receivers that a sender has data for: δ, as drawn.
    pub degree: f64,
    /// Rounds of matching: r.
    pub rounds: u32,
    /// Matched after this many rounds.
    pub matched: f64,
    /// The bound of [`theorem_1`].
    pub bound: f64,
    /// Matched by a maximal matching: M*/n.
    pub maximal: f64,
    /// Rounds until the matching is maximal.
    pub rounds_to_maximal: f64,
    /// Demands drawn for this row.
    pub demands: u32,
}

/// Number of hosts in all demands of a row, so that small networks are averaged as well as large ones.
const HOSTS_A_ROW: u32 = 1_000_000;

/// Matches random demands (see [`Demand::random`]) among each number of `hosts`, at this average degree. Returns a row
/// for each number of rounds from 1 to `rounds`, with Theorem 1's bound. Hosts have one channel. A row is the mean over
/// as many demands as have a million hosts in total.
pub fn study(hosts: &[u32], degree: f64, rounds: u32, seed: u64) -> Vec<Row> {
    hosts.iter().flat_map(|&hosts| study_one(hosts, degree, rounds, seed)).collect()
}

fn study_one(hosts: u32, degree: f64, rounds: u32, seed: u64) -> Vec<Row> {
    let mut random = Stream::new(seed, u64::from(hosts), "matching study");
    let demands = (HOSTS_A_ROW / hosts.max(1)).max(1);
    let mut matched = vec![0; rounds as usize];
    let (mut drawn_degree, mut maximal, mut rounds_to_maximal) = (0.0, 0, 0);
    for _ in 0..demands {
        let demand = Demand::random(hosts, degree, &mut random);
        let sizes = sizes(&demand, 1, None, &mut random);
        let last = sizes.last().copied().unwrap_or(0);
        for (round, matched) in matched.iter_mut().enumerate() {
            *matched += sizes.get(round).copied().unwrap_or(last);
        }
        drawn_degree += demand.degree();
        maximal += last;
        rounds_to_maximal += sizes.len();
    }
    let all_hosts = f64::from(hosts) * f64::from(demands);
    let degree = drawn_degree / f64::from(demands);
    let row = |(matched, rounds): (usize, u32)| Row {
        hosts,
        degree,
        rounds,
        matched: matched as f64 / all_hosts,
        bound: theorem_1(all_hosts, degree, maximal as f64, rounds) / all_hosts,
        maximal: maximal as f64 / all_hosts,
        rounds_to_maximal: rounds_to_maximal as f64 / f64::from(demands),
        demands,
    };
    matched.into_iter().zip(1..=rounds).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_rounds_match_78_percent_where_pim_reaches_80() {
        // Section 3.1's example: (1 - 5 * 1.25 / 256) * 0.8 = 0.7805 of a million.
        let bound = theorem_1(1e6, 5.0, 0.8e6, 4);
        assert!((bound - 780_468.75).abs() < 1e-3, "{bound}");
        assert!(bound > 0.78e6);
    }

    #[test]
    fn the_dense_matrix_is_guaranteed_a_third_of_what_pim_matches() {
        // Section 4.1: N = δ = 144, M* ≈ 120, so α = 1.2 and 1 - 144 * 1.2 / 256 = 32.5%. (The paper prints 32.9%,
        // which is what an M* of 120.7 gives before rounding.)
        let share = |maximal| theorem_1(144.0, 144.0, maximal, 4) / maximal;
        assert!((share(120.0) - 0.325).abs() < 1e-9);
        assert!((share(120.7) - 0.329).abs() < 1e-3);
    }

    #[test]
    fn where_it_says_nothing_it_says_zero() {
        assert_eq!(theorem_1(100.0, 5.0, 80.0, 1), 0.0);
        assert_eq!(theorem_1(100.0, 0.0, 0.0, 4), 0.0);
    }

    #[test]
    fn matchings_are_never_smaller_than_theorem_1_says() {
        for degree in [1.0, 5.0, 20.0] {
            for row in study(&[100, 10_000], degree, 8, 1) {
                // After all rounds that there are, matching and bound approach M* both; equality is allowed.
                assert!(row.matched >= row.bound, "{row:?}");
                assert!(row.matched <= row.maximal && row.maximal <= 1.0, "{row:?}");
            }
        }
    }

    #[test]
    fn rounds_needed_do_not_depend_on_the_network() {
        // The theorem's point: what four rounds leave unmatched is at most δ/4^4 of the hosts, whatever their number.
        for row in study(&[100, 1_000, 100_000], 5.0, 4, 2).iter().filter(|row| row.rounds == 4) {
            assert!(row.maximal - row.matched <= row.degree / 256.0, "{row:?}");
        }
    }

    #[test]
    fn the_seed_decides_a_study() {
        assert_eq!(study(&[1_000], 5.0, 4, 1), study(&[1_000], 5.0, 4, 1));
        assert_ne!(study(&[1_000], 5.0, 4, 1), study(&[1_000], 5.0, 4, 2));
    }
}
