//! Rails: ranks of one node over their own links, ranks of the same place in all nodes over a network of their own.
//!
//! An all-reduce is a reduce-scatter in each node, an all-reduce of each part along its rail, and an all-gather in each
//! node. A reduce-scatter has the first halves of these, an all-gather the second ones, along rails first. Of the parts
//! of a buffer a rank has that of its node within that of its place in the node.

use super::ring::{Phases, ring};
use super::{Channel, Entry, Span, Terms, chunks, in_channels, split};
use crate::{Builder, Rank, StepId};

/// An all-reduce of ranks that are nodes of `local` ranks each, in order: a reduce-scatter in each node, an all-reduce
/// of each part along its rail, an all-gather in each node. Across nodes a rank sends 1/`local` of what it would in one
/// ring.
///
/// It goes chunk after chunk: while one is summed across nodes, the next is scattered and the one before is gathered.
/// A rank has at most [`Terms::slots`] chunks of a channel between its first phase and the end of the second.
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
    phases_of_rails(b, ranks, local, bytes, terms, entry, Phases::Both)
}

/// The same for these phases alone.
pub(super) fn phases_of_rails(
    b: &mut Builder,
    ranks: &[Rank],
    local: usize,
    bytes: u64,
    terms: &Terms,
    entry: Entry<'_>,
    phases: Phases,
) -> Option<Vec<StepId>> {
    if local == 0 || !ranks.len().is_multiple_of(local) {
        return None;
    }
    Some(in_channels(b, ranks, bytes, terms, entry, |b, number, span| {
        let mut rails = Rails::new(ranks, local, terms, number % 2 == 1);
        let mut ends = vec![Vec::new(); ranks.len()];
        // By turn: the steps after which a rank's chunk is summed across nodes.
        let mut reduced: Vec<Vec<Vec<StepId>>> = Vec::new();
        for chunk in split(span, turns(span.1, local as u64, terms)) {
            let free = reduced.len().checked_sub(terms.slots as usize).map(|turn| reduced[turn].clone());
            let enter = free.as_deref().unwrap_or(entry);
            let scattered = (phases != Phases::AllGather).then(|| {
                let scattered = rails.in_nodes(b, chunk, enter, Phases::ReduceScatter);
                joined(b, ranks, enter, scattered)
            });
            let scattered = scattered.as_deref().unwrap_or(enter);
            let across = rails.across(b, chunk, scattered, phases);
            let summed = joined(b, ranks, scattered, across);
            let gathered = match phases {
                Phases::ReduceScatter => vec![Vec::new(); ranks.len()],
                _ => rails.in_nodes(b, chunk, &summed, Phases::AllGather),
            };
            let of_turn = ends.iter_mut().zip(gathered.into_iter().zip(&summed));
            of_turn.for_each(|(ends, (gathered, summed))| ends.extend(gathered.iter().chain(summed)));
            reduced.push(summed);
        }
        ends
    }))
}

/// In how many chunks a channel's span goes: each rank's part of one is a chunk at most.
pub(super) fn turns(span: u64, local: u64, terms: &Terms) -> u64 {
    chunks(span.div_ceil(local), terms)
}

/// One channel: rings in nodes for either phase, and rings across.
struct Rails<'a> {
    local: usize,
    backwards: bool,
    scatter: Vec<Channel<'a>>,
    across: Vec<Channel<'a>>,
    gather: Vec<Channel<'a>>,
}

impl<'a> Rails<'a> {
    fn new(ranks: &'a [Rank], local: usize, terms: &'a Terms, backwards: bool) -> Rails<'a> {
        let nodes = || ranks.chunks(local).map(|node| Channel::new(node, terms)).collect();
        let rail = |rail: usize| ranks.iter().skip(rail).step_by(local).copied().collect::<Vec<Rank>>();
        let across = (0..local).map(|at| Channel::new(rail(at), terms)).collect();
        Rails { local, backwards, scatter: nodes(), across, gather: nodes() }
    }

    /// A ring in each node: its ends at each rank.
    fn in_nodes(&mut self, b: &mut Builder, span: Span, entry: Entry<'_>, phases: Phases) -> Vec<Vec<StepId>> {
        let channels = if phases == Phases::AllGather { &mut self.gather } else { &mut self.scatter };
        let mut ends = Vec::with_capacity(entry.len());
        for (channel, entry) in channels.iter_mut().zip(entry.chunks(self.local)) {
            ring(b, channel, self.backwards, span, entry, phases);
            ends.extend(channel.take_ends());
        }
        ends
    }

    /// A ring across nodes for each place in them: its ends at each rank.
    fn across(&mut self, b: &mut Builder, span: Span, entry: Entry<'_>, phases: Phases) -> Vec<Vec<StepId>> {
        let mut ends = vec![Vec::new(); entry.len()];
        for (rail, (channel, part)) in self.across.iter_mut().zip(split(span, self.local as u64)).enumerate() {
            let places = || (rail..entry.len()).step_by(self.local);
            let enter: Vec<Vec<StepId>> = places().map(|at| entry[at].clone()).collect();
            ring(b, channel, self.backwards, part, &enter, phases);
            places().zip(channel.take_ends()).for_each(|(at, own)| ends[at] = own);
        }
        ends
    }
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
