//! What tests of several modules need: a network on which every message takes the same time, and broken files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use units::{Duration, Time};

use crate::{Done, Graph, MessageId, Progress, Rank};

/// When everything has ended, and all computations.
pub(crate) fn run(graph: &Arc<Graph>, message: Duration) -> (Time, Vec<Done>) {
    let ranks: Vec<Rank> = (0..graph.ranks()).map(Rank).collect();
    let mut progress = Progress::new(Arc::clone(graph), &ranks);
    let mut under_way: BinaryHeap<Reverse<(Time, MessageId)>> = BinaryHeap::new();
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    progress.begin(now, &mut out);
    loop {
        under_way.extend(out.drain(..).map(|id| Reverse((now + message, id))));
        let arrival = under_way.peek().map_or(Time::MAX, |next| next.0.0);
        let next = arrival.min(progress.next_at());
        if next == Time::MAX {
            break;
        }
        now = next;
        if arrival == now {
            let Some(Reverse((_, id))) = under_way.pop() else { unreachable!("it was seen") };
            progress.arrived(id, now, &mut out);
            progress.sent(id, now, &mut out);
        } else {
            progress.wake(now, &mut out);
        }
    }
    assert_eq!(progress.left(), 0, "everything ends");
    (now, progress.done().to_vec())
}

/// The content after a few small changes, always the same ones: bits, bytes, cuts, copies.
pub(crate) fn mangled(seeds: &[Vec<u8>], tries: u64, mut each: impl FnMut(&[u8])) {
    let mut chance = units::Stream::new(1, 0, "mangled");
    for content in seeds {
        (0..content.len().min(300)).for_each(|length| each(&content[..length]));
    }
    for _ in 0..tries {
        let mut bytes = chance.choose(seeds).expect("there are seeds").clone();
        for _ in 0..=chance.below(3) {
            let length = bytes.len() as u64;
            let at = chance.below(length + 1) as usize;
            let end = at + chance.below(length + 1 - at as u64).min(40) as usize;
            match chance.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
                1 if at < bytes.len() => bytes[at] = *chance.choose(b"\0\x01\x7f\x80\xff09{}:-\n").expect("some"),
                2 => drop(bytes.drain(at..end)),
                3 => bytes.truncate(at),
                4 => drop(bytes.splice(at..end, b"18446744073709551615".iter().copied())),
                _ => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        each(&bytes);
    }
    for length in 0..200 {
        let bytes: Vec<u8> = (0..length).map(|_| chance.below(256) as u8).collect();
        each(&bytes);
    }
}
