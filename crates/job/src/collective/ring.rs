//! Rings: each rank sends to the next alone.

use super::{Channel, Entry, Span, Terms, chunks, in_channels, split};
pub(super) use crate::graph::ring::Phases;
use crate::{Builder, Rank, StepId};

/// An all-reduce of `bytes` at every rank: reduce-scatter, then all-gather; 2(n-1) messages of a rank in a chunk's
/// turn.
pub fn all_reduce(b: &mut Builder, ranks: &[Rank], bytes: u64, terms: &Terms, entry: Entry<'_>) -> Vec<StepId> {
    in_order(b, ranks, bytes, terms, entry, Phases::Both)
}

/// A reduce-scatter of `bytes` at every rank: each ends with the sum of one part.
pub fn reduce_scatter(b: &mut Builder, ranks: &[Rank], bytes: u64, terms: &Terms, entry: Entry<'_>) -> Vec<StepId> {
    in_order(b, ranks, bytes, terms, entry, Phases::ReduceScatter)
}

/// An all-gather to `bytes` at every rank: each begins with one part.
pub fn all_gather(b: &mut Builder, ranks: &[Rank], bytes: u64, terms: &Terms, entry: Entry<'_>) -> Vec<StepId> {
    in_order(b, ranks, bytes, terms, entry, Phases::AllGather)
}

fn in_order(
    b: &mut Builder,
    ranks: &[Rank],
    bytes: u64,
    terms: &Terms,
    entry: Entry<'_>,
    phases: Phases,
) -> Vec<StepId> {
    in_channels(b, ranks, bytes, terms, entry, |b, number, span| {
        let mut channel = Channel::new(ranks, terms);
        ring(b, &mut channel, number % 2 == 1, span, entry, phases);
        channel.ends()
    })
}

/// One channel's ring over `span`. Odd channels go round the other way, so that both directions of links are used.
pub(super) fn ring(
    b: &mut Builder,
    channel: &mut Channel<'_>,
    backwards: bool,
    span: Span,
    entry: Entry<'_>,
    phases: Phases,
) {
    // By formula, unless parts are so short that there is not a message of each in every round.
    if let Some(ends) = b.ring(&channel.ranks, span, (phases, backwards), channel.terms, entry, &mut channel.of_ring) {
        channel.last.iter_mut().zip(ends).for_each(|(last, end)| last.push(end));
        return;
    }
    let n = channel.ranks.len();
    // Place of the i-th on the way round; a rank owns the part of its place in `ranks` either way.
    let place = |i: usize| if backwards { n - 1 - i % n } else { i % n };
    let parts: Vec<Span> = split(span, n as u64).collect();
    let turns = chunks(parts.iter().map(|part| part.1).max().unwrap_or(0), channel.terms);
    for turn in 0..turns {
        let part = |i: usize| split(parts[place(i)], turns).nth(turn as usize).expect("a turn for each chunk");
        // The data that the i-th on the way must have before it can send next.
        let mut has: Vec<Vec<StepId>> = (0..n).map(|i| entry[place(i)].clone()).collect();
        if phases != Phases::AllGather {
            for step in 1..n {
                around(b, channel, &place, entry, &mut has, |i| part(i + n - step));
            }
        }
        if phases != Phases::ReduceScatter {
            for step in 0..n - 1 {
                around(b, channel, &place, entry, &mut has, |i| part(i + n - step));
            }
        }
    }
}

/// Everybody sends one part to the next. Data that a rank receives go on in the next step, once it has entered itself.
fn around(
    b: &mut Builder,
    channel: &mut Channel<'_>,
    place: &impl Fn(usize) -> usize,
    entry: Entry<'_>,
    has: &mut [Vec<StepId>],
    part: impl Fn(usize) -> Span,
) {
    let n = has.len();
    let received: Vec<Option<StepId>> =
        (0..n).map(|i| channel.pass(b, place(i), place(i + 1), part(i), &has[i])).collect();
    for (i, received) in received.into_iter().enumerate() {
        if let Some(received) = received {
            has[(i + 1) % n] = [&entry[place(i + 1)][..], &[received]].concat();
        }
    }
}

/// A broadcast of `bytes` from the first rank, from each to the next, chunk after chunk.
pub fn broadcast(b: &mut Builder, ranks: &[Rank], bytes: u64, terms: &Terms, entry: Entry<'_>) -> Vec<StepId> {
    in_channels(b, ranks, bytes, terms, entry, |b, _, span| {
        let mut channel = Channel::new(ranks, terms);
        for chunk in split(span, chunks(span.1, terms)) {
            let mut has = entry[0].clone();
            for (to, entry) in entry.iter().enumerate().skip(1) {
                if let Some(received) = channel.pass(b, to - 1, to, chunk, &has) {
                    has = [&entry[..], &[received]].concat();
                }
            }
        }
        channel.ends()
    })
}

/// Each rank sends `bytes` to the next, and the last to the first.
pub fn send_receive(b: &mut Builder, ranks: &[Rank], bytes: u64, terms: &Terms, entry: Entry<'_>) -> Vec<StepId> {
    let n = ranks.len();
    in_channels(b, ranks, bytes, terms, entry, |b, _, span| {
        let mut channel = Channel::new(ranks, terms);
        for (from, entry) in entry.iter().enumerate() {
            for chunk in split(span, chunks(span.1, terms)) {
                channel.pass(b, from, (from + 1) % n, chunk, entry);
            }
        }
        channel.ends()
    })
}
