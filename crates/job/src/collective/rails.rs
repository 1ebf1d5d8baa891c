//! Rails: ranks of one node over their own links, ranks of the same place in all nodes over a network of their own.

use super::ring::{Phases, ring};
use super::{Channel, Entry, Span, Terms, in_channels, split};
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
        let mut all: Vec<Vec<StepId>> = vec![Vec::new(); ranks.len()];
        let scattered = in_nodes(b, ranks, local, terms, span, entry, (backwards, Phases::ReduceScatter), &mut all);
        let mut reduced = scattered.clone();
        for (rail, part) in split(span, local as u64).enumerate() {
            let of_rail = |at: usize| at * local + rail;
            let nodes = ranks.len() / local;
            let members: Vec<Rank> = (0..nodes).map(|node| ranks[of_rail(node)]).collect();
            let enter: Vec<Vec<StepId>> = (0..nodes).map(|node| scattered[of_rail(node)].clone()).collect();
            if nodes > 1 {
                let mut channel = Channel::new(&members, terms);
                ring(b, &mut channel, backwards, part, &enter, Phases::Both);
                for (node, ends) in channel.ends().into_iter().enumerate() {
                    reduced[of_rail(node)].extend(ends);
                }
            }
        }
        in_nodes(b, ranks, local, terms, span, &reduced, (backwards, Phases::AllGather), &mut all);
        all.iter_mut().zip(reduced).for_each(|(all, reduced)| all.extend(reduced));
        all
    }))
}

/// A ring in each node: what each rank has to wait for after it. All ends are added to `all`.
#[allow(clippy::too_many_arguments)]
fn in_nodes(
    b: &mut Builder,
    ranks: &[Rank],
    local: usize,
    terms: &Terms,
    span: Span,
    entry: Entry<'_>,
    (backwards, phases): (bool, Phases),
    all: &mut [Vec<StepId>],
) -> Vec<Vec<StepId>> {
    let mut after = entry.to_vec();
    if local < 2 {
        return after;
    }
    for (node, members) in ranks.chunks(local).enumerate() {
        let mut channel = Channel::new(members, terms);
        ring(b, &mut channel, backwards, span, &entry[node * local..][..local], phases);
        for (place, ends) in channel.ends().into_iter().enumerate() {
            after[node * local + place].extend(&ends);
            all[node * local + place].extend(ends);
        }
    }
    after
}
