//! How many steps and messages a collective has, by formula.

use units::Duration;

use super::ring::Phases;
use super::{AllReduce, Broadcast, CollectiveAlgorithm, Kind, Terms, library};
use crate::graph::ring::turns as turns_by_formula;
use crate::{Builder, Count, Rank, StepId};

/// Ranks of a collective, by their distance: `first`, `first + stride`, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// The first rank.
    pub first: u32,
    /// From one rank to the next.
    pub stride: u32,
    /// How many.
    pub size: u32,
}

/// For how many steps ranks wait where each of them joins those before it goes on.
pub(crate) const SEVERAL: usize = 2;

/// A collective of fewer messages whose ranks wait for nothing before is built to be counted.
const BUILT: u64 = 4_096;

impl CollectiveAlgorithm {
    /// The steps and messages that [`CollectiveAlgorithm::add`] adds among `n` ranks, each of which waits for `waits`
    /// steps first.
    ///
    /// Exact, except where ranks wait for nothing, as at the start of a job, and there are more than 4,096 messages:
    /// then a rank that has one message at most needs no step that joins others, and one is counted for each channel.
    pub fn count(&self, kind: Kind, n: u32, bytes: u64, waits: usize) -> Count {
        let ranks = u64::from(n);
        let joins = if waits == 1 { 0 } else { ranks };
        if n < 2 || bytes == 0 {
            return Count { steps: joins, ..Count::default() };
        }
        if let Some(own) = &self.library {
            let ranks: Vec<Rank> = (0..n).map(Rank).collect();
            return match library::messages(own, kind, &ranks, bytes) {
                Some(_) => self.built(kind, n, bytes, waits),
                None => {
                    let plain = CollectiveAlgorithm { library: None, ..*self }.count(kind, n, bytes, 1);
                    Count { steps: plain.steps.saturating_add(n.into()), ..plain }
                }
            };
        }
        let (messages, inner) = self.messages(kind, ranks, bytes, waits);
        if waits == 0 && messages.messages <= BUILT {
            return self.built(kind, n, bytes, 0);
        }
        let steps = messages.steps(&self.terms).saturating_add(inner).saturating_add(ranks);
        Count { steps, ..messages }
    }

    /// No fewer than the steps that [`CollectiveAlgorithm::add`] adds, whatever ranks wait for: readers of files check
    /// a count before they use it.
    pub fn steps_most(&self, kind: Kind, n: usize, bytes: u64) -> u64 {
        self.count(kind, u32::try_from(n).unwrap_or(u32::MAX), bytes, SEVERAL).steps
    }

    /// Its messages, and the steps by which an algorithm joins others on the way.
    fn messages(&self, kind: Kind, n: u64, bytes: u64, waits: usize) -> (Count, u64) {
        let terms = &self.terms;
        let (mut sent, mut joins) = (Count::default(), 0u64);
        for (span, times) in split(bytes, u64::from(terms.channels)) {
            let (own, own_joins) = match self.by_rails(kind) {
                Some((local, phases)) => rails(span, n, local.into(), phases, terms),
                None => self.of_span(kind, n, span, waits),
            };
            sent = sent.and(own.times(times));
            joins = joins.saturating_add(own_joins.saturating_mul(times));
        }
        (sent, joins)
    }

    /// The same of one channel's span, by another algorithm than rails.
    fn of_span(&self, kind: Kind, n: u64, span: u64, waits: usize) -> (Count, u64) {
        let terms = &self.terms;
        match (kind, self.all_reduce, self.broadcast) {
            (Kind::AllReduce, AllReduce::Ring | AllReduce::Rails(_), _) => (ring(span, n, 2, terms), 0),
            (Kind::AllReduce, AllReduce::Tree, _) => (tree(span, n, 2, terms), 0),
            (Kind::AllReduce, AllReduce::HalvingDoubling, _) => halving_doubling(span, n, terms, waits),
            (Kind::ReduceScatter | Kind::AllGather, ..) => (ring(span, n, 1, terms), 0),
            (Kind::AllToAll, ..) => (pairwise(split(span, n), n, terms), 0),
            (Kind::SendRecv, ..) => (chunked(span, terms).times(n), 0),
            (Kind::Broadcast, _, Broadcast::Ring) => (chunked(span, terms).times(n - 1), 0),
            (Kind::Broadcast, _, Broadcast::Tree) => (tree(span, n, 1, terms), 0),
        }
    }

    fn built(&self, kind: Kind, n: u32, bytes: u64, waits: usize) -> Count {
        let mut b = Builder::new(n);
        let ranks: Vec<Rank> = (0..n).map(Rank).collect();
        let waits = waits.min(SEVERAL);
        let before = |rank: Rank, b: &mut Builder| (0..waits).map(|_| b.delay(rank, Duration::ZERO, &[])).collect();
        let entry: Vec<Vec<StepId>> = ranks.iter().map(|&rank| before(rank, &mut b)).collect();
        let before = waits as u64 * u64::from(n);
        let added = self.add(&mut b, kind, "", 0, &ranks, bytes, &entry);
        added.map_or(Count::default(), |_| Count { steps: b.count().steps - before, ..b.count() })
    }

    /// The share of a collective's messages that leave their hosts, as (these, all), if hosts have `local` consecutive
    /// ranks each. Exact where all ranks of the group send as many messages.
    pub fn leaving(&self, kind: Kind, group: Group, local: u32) -> (u64, u64) {
        let n = group.size;
        if let Some(own) = &self.library {
            let ranks: Vec<Rank> = (0..n).map(|at| Rank(group.first + at * group.stride)).collect();
            if let Some(all) = library::messages(own, kind, &ranks, 1 << 20) {
                let host = |place: usize| ranks[place].0 / local.max(1);
                let leaving = all.iter().filter(|of| host(of.0) != host(of.1)).count();
                return (leaving as u64, all.len() as u64);
            }
        }
        let host = |place: u32| (group.first + place * group.stride) / local.max(1);
        let apart = |from: u32, to: u32| u64::from(host(from) != host(to));
        let shift = |by: u32| (0..n).map(|place| apart(place, (place + by) % n)).sum::<u64>();
        let all = u64::from(n);
        if let Some((within, _)) = self.by_rails(kind) {
            let (within, nodes) = (within.max(1), n / within.max(1));
            let inner = (0..n).map(|place| apart(place, place / within * within + (place + 1) % within));
            let outer = (0..n).map(|place| apart(place, (place + within) % n));
            let (inner_each, outer_each) = (u64::from(within - 1), u64::from(nodes.saturating_sub(1)));
            let leaving = inner.sum::<u64>() * inner_each + outer.sum::<u64>() * outer_each;
            return (leaving, all * (inner_each + outer_each));
        }
        match (kind, self.all_reduce, self.broadcast) {
            (Kind::AllToAll, ..) => {
                let mut within = 0;
                let mut first = 0;
                for place in 1..=n {
                    if place == n || host(place) != host(first) {
                        let together = u64::from(place - first);
                        within += together * (together - 1);
                        first = place;
                    }
                }
                (all * (all - 1) - within, all * (all - 1))
            }
            (Kind::AllReduce, AllReduce::Tree, _) | (Kind::Broadcast, _, Broadcast::Tree) => {
                // Parents are 1, 2, 4, ... places away: half of all 1, a quarter 2.
                let edge = |place: u32| apart(place, place ^ (1 << place.trailing_zeros()));
                ((1..n).map(edge).sum(), all - 1)
            }
            (Kind::AllReduce, AllReduce::HalvingDoubling, _) => {
                let partners =
                    (0..n.ilog2()).map(|bit| (0..n).map(|place| apart(place, place ^ (1 << bit))).sum::<u64>());
                (partners.sum(), all * u64::from(n.ilog2()))
            }
            _ => (shift(1), all),
        }
    }
}

/// An exchange, [`exchange`](super::exchange), in which each of `n` ranks sends (or gets) messages of these sizes:
/// each size with how many ranks have it. All of them wait for a step at least.
pub(crate) fn exchanged(sizes: impl Iterator<Item = (u64, u64)>, n: u32, terms: &Terms) -> Count {
    let messages = pairwise(sizes, u64::from(n), terms);
    Count { steps: messages.steps(terms).saturating_add(u64::from(n)), ..messages }
}

/// The lengths of `bytes` in this many parts, and how many parts have each: one byte more, or less. Empty ones are left
/// out.
fn split(bytes: u64, parts: u64) -> impl Iterator<Item = (u64, u64)> {
    let (each, more) = (bytes / parts, bytes % parts);
    [(each.saturating_add(1), more), (each, parts - more)]
        .into_iter()
        .filter(|&(length, times)| length > 0 && times > 0)
}

/// Messages of a span that is cut into this many pieces.
fn cut(span: u64, pieces: u64, terms: &Terms) -> Count {
    split(span, pieces).fold(Count::default(), |sum, (length, times)| {
        let one = Count { messages: 1, bytes: terms.payload(length), ..Count::default() };
        sum.and(one.times(times))
    })
}

/// Messages of a span that goes in chunks.
fn chunked(span: u64, terms: &Terms) -> Count {
    cut(span, super::chunks(span, terms), terms)
}

fn ring(span: u64, n: u64, phases: u64, terms: &Terms) -> Count {
    if n < 2 {
        return Count::default();
    }
    let by_formula = turns_by_formula((0, span), n, terms).is_some();
    let turns = super::chunks(span.div_ceil(n), terms);
    let parts =
        split(span, n).fold(Count::default(), |sum, (part, times)| sum.and(cut(part, turns, terms).times(times)));
    let all = parts.times(n - 1).times(phases);
    Count { implied: if by_formula { all.steps(terms).saturating_sub(n) } else { 0 }, ..all }
}

fn tree(span: u64, n: u64, phases: u64, terms: &Terms) -> Count {
    let halves = split(span, 2).fold(Count::default(), |sum, (half, times)| sum.and(chunked(half, terms).times(times)));
    halves.times(n - 1).times(phases)
}

fn pairwise(parts: impl Iterator<Item = (u64, u64)>, n: u64, terms: &Terms) -> Count {
    let all = parts.fold(Count::default(), |sum, (part, times)| sum.and(chunked(part, terms).times(times)));
    all.times(n - 1)
}

fn halving_doubling(span: u64, n: u64, terms: &Terms, waits: usize) -> (Count, u64) {
    let (each, longer) = (span / n, span % n);
    let (mut sent, mut joins) = (Count::default(), 0);
    let mut apart = n / 2;
    while apart > 0 {
        // Blocks of `apart` parts: the first have the longer parts, one has both kinds.
        let (whole, some) = (longer / apart, longer % apart);
        let short = n / apart - whole - u64::from(some > 0);
        let blocks = [(each + 1, whole, 0), (each, u64::from(some > 0), some), (each, short, 0)];
        let (mut getting, mut getting_one) = (0, 0);
        for (length, times, more) in blocks {
            let block = chunked((length * apart).saturating_add(more), terms);
            // Each block is sent by as many ranks as it has parts, once on the way down and once on the way up.
            sent = sent.and(block.times(times).times(2 * apart));
            getting += if block.messages > 0 { times * apart } else { 0 };
            getting_one += if block.messages == 1 { times * apart } else { 0 };
        }
        // A rank joins what it gets with what it has, if it gets something.
        let first = match waits {
            _ if apart < n / 2 => getting,
            0 => n - getting_one,
            1 => getting,
            _ => n,
        };
        joins += first + getting;
        apart /= 2;
    }
    (sent, joins)
}

fn rails(span: u64, n: u64, local: u64, phases: Phases, terms: &Terms) -> (Count, u64) {
    let turns = super::rails::turns(span, local.max(1), terms);
    split(span, turns).fold((Count::default(), 0), |(sent, joins), (chunk, times)| {
        let (own, own_joins) = rails_turn(chunk, n, local, phases, terms);
        (sent.and(own.times(times)), joins.saturating_add(own_joins.saturating_mul(times)))
    })
}

/// Of one chunk.
fn rails_turn(span: u64, n: u64, local: u64, phases: Phases, terms: &Terms) -> (Count, u64) {
    let nodes = n / local.max(1);
    let each = if phases == Phases::Both { 2 } else { 1 };
    let within = ring(span, local, 1, terms).times(each).times(nodes);
    let mut joins = if local > 1 && phases != Phases::AllGather { n } else { 0 };
    let mut across = Count::default();
    for (part, times) in split(span, local.max(1)).filter(|_| nodes > 1) {
        across = across.and(ring(part, nodes, each, terms).times(times));
        joins += nodes * times;
    }
    (within.and(across), joins)
}

impl Count {
    /// Steps of these messages: sent, received, and perhaps delayed.
    fn steps(&self, terms: &Terms) -> u64 {
        self.messages.saturating_mul(if terms.latency == Duration::ZERO { 2 } else { 3 })
    }
}
