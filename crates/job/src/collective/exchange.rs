//! Everybody sends to everybody.

use super::{Channel, Entry, Terms, in_channels, split};
use crate::{Builder, Rank, StepId};

/// An all-to-all: each rank sends the n-th part of `bytes` to each other rank.
pub fn all_to_all(b: &mut Builder, ranks: &[Rank], bytes: u64, terms: &Terms, entry: Entry<'_>) -> Vec<StepId> {
    in_channels(b, ranks, bytes, terms, entry, |b, _, span| {
        let mut channel = Channel::new(ranks, terms).by_side();
        let parts: Vec<_> = split(span, ranks.len() as u64).collect();
        pairwise(b, &mut channel, entry, |_, to| parts[to]);
        channel.ends()
    })
}

/// Each rank sends `bytes_of(from, to)` bytes to each other rank, such as tokens to experts. Ranks are counted by their
/// place in `ranks`.
pub fn exchange(
    b: &mut Builder,
    ranks: &[Rank],
    terms: &Terms,
    entry: Entry<'_>,
    bytes_of: impl Fn(usize, usize) -> u64,
) -> Vec<StepId> {
    let mut channel = Channel::new(ranks, terms).by_side();
    pairwise(b, &mut channel, entry, |from, to| (0, bytes_of(from, to)));
    let mut ends = entry.to_vec();
    ends.iter_mut().zip(channel.ends()).for_each(|(all, own)| all.extend(own));
    ends.iter().zip(ranks).map(|(ends, &rank)| b.join(rank, ends)).collect()
}

/// In round k everybody sends to the rank k places further on, so that no receiver is hit by all at once. Rounds
/// overlap as far as [`Terms::slots`] allow, those within a host beside those across.
fn pairwise(b: &mut Builder, channel: &mut Channel<'_>, entry: Entry<'_>, part: impl Fn(usize, usize) -> super::Span) {
    let n = channel.ranks.len();
    for round in 1..n {
        for (from, entry) in entry.iter().enumerate() {
            let to = (from + round) % n;
            let span = part(from, to);
            for chunk in split(span, super::chunks(span.1, channel.terms)) {
                channel.pass(b, from, to, chunk, entry);
            }
        }
    }
}
