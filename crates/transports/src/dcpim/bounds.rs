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
mod tests;
