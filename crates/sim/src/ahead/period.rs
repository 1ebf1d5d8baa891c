//! What happens in a period, and how it is found in what comes to nodes.

use std::sync::Arc;

use driver::Arrival;
use units::{Duration, Time};

use super::course::Course;
use super::turnover::matches;
use crate::part::Events;

/// A node has a period only if its arrivals repeat at least so often.
const REPEATS: usize = 2;

/// So much earlier, or the beginning.
pub(super) fn back(now: Time, by: Duration) -> Time {
    Time::from_ps(now.ps().saturating_sub(by.ps()))
}

/// What happens in a period.
pub(super) struct Period {
    pub length: Duration,
    /// When the period ended that is described.
    pub end: Time,
    pub course: Course,
    pub events: Arc<Events>,
    /// Packets that come out of links.
    pub hops: u64,
    /// How much of it was itself skipped by averages.
    pub estimated: Duration,
}

impl Period {
    pub fn new(course: Course, hops: u64, estimated: Duration, length: Duration, end: Time) -> Period {
        let events = Arc::new(course.events(back(end, length)));
        Period { length, end, course, events, hops, estimated }
    }

    /// How many windows would have begun if so many periods had been simulated from `now` on, since a run may end only
    /// at the end of a window; and where the last one ends. Windows follow from the times of events alone: each begins
    /// with an event and is so long, or ends at the horizon. `window_end` is where the last one ends that has begun
    /// before.
    pub fn windows(&self, now: Time, times: u64, window_end: Time, lookahead: Duration, horizon: Time) -> (u64, Time) {
        let from = now.ps();
        let end = from + self.length.ps() * times;
        let mut window_end = window_end.ps();
        let mut begun = 0;
        while window_end < end {
            let next = self.events.next(window_end.saturating_sub(from)).expect("what recurs has events");
            let begin = from + next;
            if begin >= end {
                break;
            }
            window_end = (begin + lookahead.ps()).min(horizon.ps());
            begun += 1;
        }
        (begun, Time::from_ps(window_end))
    }
}

/// The shortest time after which what arrives at each node repeats, if it is no longer than `most`; 1 if nothing
/// arrives. The error says why there is none; it does not depend on the order of nodes.
pub(super) fn period_of_all(nodes: impl Iterator<Item = Vec<(u64, u64)>>, most: u64) -> Result<u64, &'static str> {
    common_period(nodes, most, period_of)
}

/// The same for the last of what arrived, however long that was.
pub(super) fn last_period_of_all(nodes: impl Iterator<Item = Vec<(u64, u64)>>, most: u64) -> Result<u64, &'static str> {
    common_period(nodes, most, last_period_of)
}

fn common_period(
    nodes: impl Iterator<Item = Vec<(u64, u64)>>,
    most: u64,
    period_of: fn(&[(u64, u64)]) -> Option<u64>,
) -> Result<u64, &'static str> {
    let mut period = Some(1);
    for arrivals in nodes {
        let of_node = period_of(&arrivals).ok_or("no period was found in what comes to nodes")?;
        period = period.and_then(|period| lcm(period, of_node)).filter(|&period| period <= most);
    }
    period.ok_or("nodes have periods without a short common multiple")
}

/// By node, what arrived since then: the time since the arrival before, and the digest of the packet.
pub(super) fn by_node<'l>(all: impl Iterator<Item = &'l Arrival> + Clone, since: Time) -> Vec<Vec<(u64, u64)>> {
    let nodes = all.clone().map(|of| of.node as usize + 1).max().unwrap_or(0);
    let mut last = vec![None; nodes];
    let mut arrivals = vec![Vec::new(); nodes];
    for arrival in all.filter(|of| of.at >= since) {
        let node = arrival.node as usize;
        if let Some(last) = last[node].replace(arrival.at) {
            arrivals[node].push(((arrival.at - last).ps(), arrival.what()));
        }
    }
    arrivals.retain(|of| !of.is_empty());
    arrivals
}

/// The shortest time after which arrivals repeat, in picoseconds, if they do so often enough.
fn period_of(arrivals: &[(u64, u64)]) -> Option<u64> {
    // By arrival: how many up to it are the same as the first ones (the failure function of Knuth, Morris and Pratt).
    let mut matched = vec![0; arrivals.len()];
    for end in 1..arrivals.len() {
        let mut of: usize = matched[end - 1];
        while of > 0 && arrivals[of] != arrivals[end] {
            of = matched[of - 1];
        }
        matched[end] = of + usize::from(arrivals[of] == arrivals[end]);
    }
    let count = arrivals.len() - matched.last()?;
    (count * REPEATS <= arrivals.len()).then(|| arrivals[..count].iter().map(|of| of.0).sum())
}

/// The time after which the last arrivals repeat, in picoseconds, whatever came before. Of several candidates, the one
/// that has held for the longest time, and at least twice.
fn last_period_of(arrivals: &[(u64, u64)]) -> Option<u64> {
    let back: Vec<_> = arrivals.iter().rev().collect();
    let like = matches(&back);
    let lasted = |&count: &usize| (like[count] + count, std::cmp::Reverse(count));
    let count = (1..back.len()).filter(|&count| like[count] >= count).max_by_key(lasted)?;
    Some(back[..count].iter().map(|of| of.0).sum())
}

fn lcm(one: u64, other: u64) -> Option<u64> {
    let (mut rest, mut divisor) = (one, other);
    while rest > 0 {
        (rest, divisor) = (divisor % rest, rest);
    }
    (one / divisor.max(1)).checked_mul(other)
}

#[cfg(test)]
mod tests;
