//! Jobs for other tools: GOAL ([`goal`]), and Chakra's execution traces ([`chakra`]).
//!
//! Both have what the graph has: computations, delays, messages, what waits for what. Collectives are their messages.
//! Read again, they are the same graph but for the ids of steps and messages, and for what neither format has: which
//! part of a buffer a message carries, which collective it belongs to beyond its name, and which messages leave one
//! after the other on a connection.

mod chakra;
mod goal;

pub use chakra::chakra;
pub use goal::goal;

use crate::{Graph, MessageId};

/// A tag for each message. Messages between the same ranks have different ones: two could overtake each other.
///
/// Tags are counted for each pair of ranks, so that they stay small.
fn tags(graph: &Graph) -> Vec<u32> {
    let mut order: Vec<u32> = (0..graph.messages().len() as u32).collect();
    let pair = |message: u32| {
        let message = graph.message(MessageId(message));
        (message.from, message.to)
    };
    order.sort_by_key(|&message| pair(message)); // stable: by id within a pair
    let mut tags = vec![0; order.len()];
    let mut before = None;
    let mut tag = 0;
    for message in order {
        tag = if before == Some(pair(message)) { tag + 1 } else { 0 };
        before = Some(pair(message));
        tags[message as usize] = tag;
    }
    tags
}

/// By step, how many steps it waits for and which: the other way round than [`Graph::after`].
struct Before {
    first: Vec<u32>,
    steps: Vec<u32>,
}

impl Before {
    fn new(graph: &Graph) -> Before {
        let count = graph.steps().len();
        let mut first = Vec::with_capacity(count + 1);
        first.push(0);
        for step in 0..count as u32 {
            first.push(first[step as usize] + graph.needs(crate::StepId(step)));
        }
        let mut next = first.clone();
        let mut steps = vec![0; first[count] as usize];
        for step in 0..count as u32 {
            graph.each_after(crate::StepId(step), |after| {
                steps[next[after.index()] as usize] = step;
                next[after.index()] += 1;
            });
        }
        Before { first, steps }
    }

    fn of(&self, step: u32) -> &[u32] {
        &self.steps[self.first[step as usize] as usize..self.first[step as usize + 1] as usize]
    }
}

#[cfg(test)]
mod tests;
