//! Recursive halving and doubling: log n steps, for a power of two ranks.

use super::{Channel, Entry, Span, Terms, in_channels, split};
use crate::{Builder, Rank, StepId};

/// An all-reduce among 2^k ranks: each halves what it is responsible for k times, with a partner half as far each time,
/// then doubles it again. A rank sends 2(n-1)/n of the buffer, as in a ring, in 2k messages.
///
/// None if the number of ranks is no power of two.
pub fn halving_doubling(
    b: &mut Builder,
    ranks: &[Rank],
    bytes: u64,
    terms: &Terms,
    entry: Entry<'_>,
) -> Option<Vec<StepId>> {
    let n = ranks.len();
    if !n.is_power_of_two() {
        return None;
    }
    Some(in_channels(b, ranks, bytes, terms, entry, |b, _, span| {
        let mut channel = Channel::new(ranks, terms);
        let mut has = entry.to_vec();
        let parts: Vec<Span> = split(span, n as u64).collect();
        let mut apart = n / 2;
        while apart > 0 {
            // Each keeps the half that its own part is in, and sends the other.
            swap(b, &mut channel, &parts, &mut has, apart, |rank| (rank ^ apart) & !(apart - 1));
            apart /= 2;
        }
        apart = 1;
        while apart < n {
            swap(b, &mut channel, &parts, &mut has, apart, |rank| rank & !(apart - 1));
            apart *= 2;
        }
        channel.ends()
    }))
}

/// Everybody sends `apart` parts, from part `first` on, to the partner, in chunks.
fn swap(
    b: &mut Builder,
    channel: &mut Channel<'_>,
    parts: &[Span],
    has: &mut [Vec<StepId>],
    apart: usize,
    first: impl Fn(usize) -> usize,
) {
    let before = has.to_vec();
    for (rank, before) in before.iter().enumerate() {
        let (first, to) = (first(rank), rank ^ apart);
        let (at, last) = (parts[first].0, parts[first + apart - 1]);
        let span = (at, last.0 + last.1 - at);
        for chunk in split(span, super::chunks(span.1, channel.terms)) {
            has[to].extend(channel.pass(b, rank, to, chunk, before));
        }
    }
    // The next message is the sum of all that came so far, and of its own.
    has.iter_mut().zip(&*channel.ranks).for_each(|(has, &rank)| *has = vec![b.join(rank, has)]);
}
