//! Rails: ranks of one node over their own links, ranks of the same place in all nodes over a network of their own.

use super::ring::{Phases, ring};
use super::{Channel, Entry, Terms, in_channels, split};
use crate::{Builder, Rank, StepId};

/// An all-reduce of ranks that are nodes of `local` ranks each, in order: a reduce-scatter in each node, an all-reduce
/// of each part along its rail, an all-gather in each node. Across nodes a rank sends 1/`local` of what it would in one
/// ring.
///
/// None if `local` does not divide the number of ranks.
pub fn rails(
    b: &mut Builder,
    ranks: &[Rank],
    local: usize,
    bytes: u64,
    terms: &Terms,
    entry: Entry<'_>,
) -> Option<Vec<StepId>> {
    if local == 0 || !ranks.len().is_multiple_of(local) {
        return None;
    }
    Some(in_channels(b, ranks, bytes, terms, entry, |b, number, span| {
        let backwards = number % 2 == 1;
        // A ring in each node: its ends at each rank.
        let in_nodes = |b: &mut Builder, entry: Entry<'_>, phases: Phases| {
            let mut ends = Vec::with_capacity(ranks.len());
            for (members, entry) in ranks.chunks(local).zip(entry.chunks(local)) {
                let mut channel = Channel::new(members, terms);
                ring(b, &mut channel, backwards, span, entry, phases);
                ends.extend(channel.ends());
            }
            ends
        };
        let scattered = in_nodes(b, entry, Phases::ReduceScatter);
        let scattered = joined(b, ranks, entry, scattered);
        let nodes = ranks.len() / local;
        let mut reduced = vec![Vec::new(); ranks.len()];
        for (rail, part) in split(span, local as u64).enumerate() {
            let places = || (0..nodes).map(|node| node * local + rail);
            let members: Vec<Rank> = places().map(|at| ranks[at]).collect();
            let enter: Vec<Vec<StepId>> = places().map(|at| scattered[at].clone()).collect();
            let mut channel = Channel::new(&members, terms);
            ring(b, &mut channel, backwards, part, &enter, Phases::Both);
            places().zip(channel.ends()).for_each(|(at, ends)| reduced[at] = ends);
        }
        let reduced = joined(b, ranks, &scattered, reduced);
        let mut all = in_nodes(b, &reduced, Phases::AllGather);
        all.iter_mut().zip(reduced).for_each(|(all, reduced)| all.extend(reduced));
        all
    }))
}

/// The steps that each rank has to wait for after a phase: one step, if it had any in that. Otherwise each message of
/// the next phase would wait for each of this one.
fn joined(b: &mut Builder, ranks: &[Rank], before: Entry<'_>, ends: Vec<Vec<StepId>>) -> Vec<Vec<StepId>> {
    let all = ranks.iter().zip(before).zip(ends);
    all.map(|((&rank, before), ends)| match ends.is_empty() {
        true => before.clone(),
        false => vec![b.join(rank, &[&before[..], &ends].concat())],
    })
    .collect()
}
