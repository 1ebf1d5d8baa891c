//! Two binary trees, each for half of the buffer: a rank that is inside one is a leaf of the other, so that every link
//! is used in both directions.

use super::{Channel, Entry, Span, Terms, chunks, in_channels, split};
use crate::{Builder, Rank, StepId};

/// Parent and children in a binary tree over `n` places in order: the lower bits of a place are its height.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub parent: Option<usize>,
    children: Vec<usize>,
}

/// An in-order binary tree whose root is place 0: odd places are leaves.
pub(super) fn tree(n: usize) -> Vec<Node> {
    let mut nodes = vec![Node::default(); n];
    for place in 1..n {
        let height = 1 << place.trailing_zeros();
        // Above is the place whose lowest bit is the next higher, or, where that is beyond the end, the one below.
        let above = (place ^ height) | (height << 1);
        let mut parent = above;
        while parent >= n {
            parent &= parent - 1; // without its lowest bit
        }
        nodes[place].parent = Some(parent);
        nodes[parent].children.push(place);
    }
    nodes
}

/// The place in the second tree of the rank at `place` in the first: mirrored, or for an odd number moved by one, so
/// that leaves become inner places.
pub(super) fn other(place: usize, n: usize) -> usize {
    if n.is_multiple_of(2) { n - 1 - place } else { (place + n - 1) % n }
}

/// An all-reduce: up both trees and down again, chunk by chunk; a chunk goes down as soon as the root has it.
pub fn two_trees(b: &mut Builder, ranks: &[Rank], bytes: u64, terms: &Terms, entry: Entry<'_>) -> Vec<StepId> {
    both(b, ranks, bytes, terms, entry, true)
}

/// A broadcast from the first rank down both trees.
pub fn two_trees_broadcast(
    b: &mut Builder,
    ranks: &[Rank],
    bytes: u64,
    terms: &Terms,
    entry: Entry<'_>,
) -> Vec<StepId> {
    both(b, ranks, bytes, terms, entry, false)
}

fn both(b: &mut Builder, ranks: &[Rank], bytes: u64, terms: &Terms, entry: Entry<'_>, reduce: bool) -> Vec<StepId> {
    let n = ranks.len();
    let nodes = tree(n);
    in_channels(b, ranks, bytes, terms, entry, |b, _, span| {
        let mut channel = Channel::new(ranks, terms);
        for (half, span) in split(span, 2).enumerate().filter(|of| of.1.1 > 0) {
            // A broadcast's root is the first rank in both trees.
            let rank_at = |place: usize| match (half, reduce) {
                (0, _) => place,
                (_, true) => other(place, n),
                (_, false) if place == 0 => 0,
                (_, false) => 1 + other(place - 1, n - 1),
            };
            for chunk in split(span, chunks(span.1, terms)) {
                pass_chunk(b, &mut channel, &nodes, &rank_at, chunk, entry, reduce);
            }
        }
        channel.ends()
    })
}

fn pass_chunk(
    b: &mut Builder,
    channel: &mut Channel<'_>,
    nodes: &[Node],
    rank_at: &impl Fn(usize) -> usize,
    chunk: Span,
    entry: Entry<'_>,
    reduce: bool,
) {
    // By place, what it must have before it sends: its own, and what its children have sent.
    let mut has: Vec<Vec<StepId>> = (0..nodes.len()).map(|place| entry[rank_at(place)].clone()).collect();
    let down = from_root(nodes);
    if reduce {
        for &place in down.iter().rev() {
            if let Some(parent) = nodes[place].parent {
                let ready = std::mem::take(&mut has[place]);
                let received = channel.pass(b, rank_at(place), rank_at(parent), chunk, &ready);
                has[parent].extend(received);
            }
        }
    }
    for &place in &down {
        let ready = has[place].clone();
        for &child in &nodes[place].children {
            has[child].extend(channel.pass(b, rank_at(place), rank_at(child), chunk, &ready));
        }
    }
}

/// All places, parents before children.
fn from_root(nodes: &[Node]) -> Vec<usize> {
    let mut order = vec![0];
    let mut next = 0;
    while next < order.len() {
        order.extend(&nodes[order[next]].children);
        next += 1;
    }
    order
}
