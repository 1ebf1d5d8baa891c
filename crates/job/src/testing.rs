//! Runs a graph where every message takes the same time.

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
