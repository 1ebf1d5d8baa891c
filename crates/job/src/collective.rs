//! The messages of collectives: who sends which part of the buffer to whom, and after what.
//!
//! Algorithms are those of NCCL and MPICH: rings, recursive halving and doubling, two binary trees (Sanders, Speck and
//! Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009), rails (a ring in each node
//! around a ring across nodes), and pairwise exchange. A buffer is divided among channels, which work side by side as
//! NCCL's do, and each channel sends in chunks, of which a few may be under way to a neighbour.
//!
//! Messages of a channel to the same rank go over one connection: one leaves after the other, in the order in which
//! they are due. A rank is done when it has received all and has handed over all that it sends.
//!
//! Every function takes for each rank the steps after which it enters, and returns for each rank the step at which it
//! has its result. Reductions take no time of their own: put computations beside, or [`Terms::latency`].

mod count;
mod exchange;
mod halving;
mod how;
pub mod library;
mod rails;
mod ring;
mod tree;

pub use count::Group;
pub(crate) use count::{SEVERAL, exchanged};
pub use exchange::{all_to_all, exchange};
pub use halving::halving_doubling;
pub use how::{AllReduce, Broadcast, CollectiveAlgorithm, Kind, NotPossible, Parts};
pub use rails::rails;
pub use ring::{all_gather, all_reduce, broadcast, reduce_scatter, send_receive};
pub use tree::{two_trees, two_trees_broadcast};

use std::borrow::Cow;
use std::collections::HashMap;

use units::Duration;

use crate::{Builder, Rank, StepId};

/// How a library carries out collectives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Terms {
    /// Channels that share the buffer and work side by side.
    pub channels: u32,
    /// Most bytes of the buffer in one message.
    pub chunk: u64,
    /// Messages of one channel that a rank may have under way; NCCL has 8 slots.
    pub slots: u32,
    /// Time between the arrival of a message and what is sent because of it.
    pub latency: Duration,
    /// Bytes on the wire for this many bytes of the buffer: (2, 1) for NCCL's LL, (16, 15) for LL128, else (1, 1).
    pub expand: (u64, u64),
    /// Consecutive ranks of a host. In an all-to-all, messages within a host have slots of their own, so that its links
    /// and the network are used at once.
    pub local: u32,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { channels: 1, chunk: u64::MAX, slots: 8, latency: Duration::ZERO, expand: (1, 1), local: 1 }
    }
}

impl Terms {
    /// Payload of a message that carries this many bytes of the buffer.
    pub(crate) fn payload(&self, bytes: u64) -> u64 {
        let (by, of) = self.expand;
        u64::try_from((u128::from(bytes) * u128::from(by)).div_ceil(u128::from(of))).unwrap_or(u64::MAX)
    }
}

/// For each rank, the steps after which it enters.
pub type Entry<'a> = &'a [Vec<StepId>];

/// A part of the buffer: where it begins, and its length.
pub(crate) type Span = (u64, u64);

/// `span` in this many parts, whose lengths differ by one at most. Some are empty if there are more than bytes.
pub(crate) fn split((at, bytes): Span, parts: u64) -> impl ExactSizeIterator<Item = Span> + Clone {
    let (each, more) = (bytes / parts, bytes % parts);
    let begin = move |part: u64| at + part * each + part.min(more);
    (0..parts as usize).map(move |part| (begin(part as u64), begin(part as u64 + 1) - begin(part as u64)))
}

/// The channels' spans.
fn channels(bytes: u64, terms: &Terms) -> impl Iterator<Item = Span> {
    split((0, bytes), u64::from(terms.channels)).filter(|span| span.1 > 0)
}

/// Into how many chunks a part of this many bytes goes.
fn chunks(bytes: u64, terms: &Terms) -> u64 {
    bytes.div_ceil(terms.chunk).max(1)
}

/// One channel: what each rank may have under way.
struct Channel<'a> {
    ranks: Cow<'a, [Rank]>,
    terms: &'a Terms,
    /// By place in `ranks`: the sends so far.
    sends: Vec<Vec<StepId>>,
    /// By place in `ranks`: the sends within hosts so far, if these have slots of their own.
    within: Option<Vec<Vec<StepId>>>,
    /// By place in `ranks`: the steps after which it has all messages and has handed over its own. It need not wait
    /// until its own have arrived, since the library has copied them.
    last: Vec<Vec<StepId>>,
    /// The connection from one place to another.
    connections: HashMap<(usize, usize), u32>,
    /// The first connection of its ring by formula, once it has had one.
    of_ring: Option<u32>,
}

impl<'a> Channel<'a> {
    fn new(ranks: impl Into<Cow<'a, [Rank]>>, terms: &'a Terms) -> Channel<'a> {
        let ranks = ranks.into();
        let (sends, last) = (vec![Vec::new(); ranks.len()], vec![Vec::new(); ranks.len()]);
        Channel { ranks, terms, sends, within: None, last, connections: HashMap::new(), of_ring: None }
    }

    /// The same with slots of their own for messages within hosts.
    fn by_side(mut self) -> Channel<'a> {
        self.within = Some(vec![Vec::new(); self.ranks.len()]);
        self
    }

    /// The sends of a place that share slots with one to another place.
    fn sends(&mut self, from: usize, to: usize) -> &mut Vec<StepId> {
        let host = |place: usize| self.ranks[place].0 / self.terms.local.max(1);
        match &mut self.within {
            Some(within) if host(from) == host(to) => &mut within[from],
            _ => &mut self.sends[from],
        }
    }

    /// Adds a message from one place to another, which leaves once the steps `ready` have ended and a slot is free.
    /// Returns the step after which the receiver has it; none for an empty span, which needs no message.
    fn pass(&mut self, b: &mut Builder, from: usize, to: usize, span: Span, ready: &[StepId]) -> Option<StepId> {
        if span.1 == 0 {
            return None;
        }
        let mut after = ready.to_vec();
        let slots = self.terms.slots as usize;
        let sends = self.sends(from, to);
        if let Some(before) = sends.len().checked_sub(slots) {
            after.push(sends[before]);
        }
        let ends = (self.ranks[from], self.ranks[to]);
        let (send, receive) = b.message(ends, self.terms.payload(span.1), span, &after, &[]);
        let connection = self.connections.entry((from, to)).or_insert_with(|| b.connection());
        b.over(*connection);
        self.sends(from, to).push(send);
        self.last[from].append(&mut after);
        let has = match self.terms.latency {
            Duration::ZERO => receive,
            latency => b.delay(self.ranks[to], latency, &[receive]),
        };
        self.last[to].push(has);
        Some(has)
    }

    /// By rank, the steps that end its part in this channel.
    fn ends(self) -> Vec<Vec<StepId>> {
        self.last
    }

    /// The same, of what has been added since it was asked last. What follows has slots of its own.
    fn take_ends(&mut self) -> Vec<Vec<StepId>> {
        self.sends.iter_mut().for_each(Vec::clear);
        self.last.iter_mut().map(std::mem::take).collect()
    }
}

/// Runs one function for each channel: every rank is done when it is in all of them.
fn in_channels(
    b: &mut Builder,
    ranks: &[Rank],
    bytes: u64,
    terms: &Terms,
    entry: Entry<'_>,
    mut each: impl FnMut(&mut Builder, usize, Span) -> Vec<Vec<StepId>>,
) -> Vec<StepId> {
    let mut ends = entry.to_vec();
    for (number, span) in channels(bytes, terms).enumerate() {
        let of_channel = each(b, number, span);
        ends.iter_mut().zip(of_channel).for_each(|(all, own)| all.extend(own));
    }
    ends.iter().zip(ranks).map(|(ends, &rank)| b.join(rank, ends)).collect()
}

#[cfg(test)]
mod tests;
