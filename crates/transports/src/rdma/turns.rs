//! The order in which a NIC serves the queue pairs that may send.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The order in which a NIC serves the queue pairs that may send. Each sends one packet in its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// A queue pair that becomes ready is served after all that already wait.
    #[default]
    InLine,
    /// Round robin over all queue pairs in the order of their start, as in HPCC's simulator. A new queue pair is last
    /// in the circle, so it waits for half of the others on average; with `in_line` it waits for all of them.
    ByAge,
}

/// Waiting queue pairs, by slot and by number in the order of their start.
#[derive(Debug, node::State)]
pub(crate) enum Waiting {
    InLine(#[state(slots)] VecDeque<u32>),
    ByAge {
        #[state(each((turn("number"), slots)))]
        slots: BTreeMap<u64, u32>,
        /// The queue pair that sent last.
        #[state(turn("number"))]
        last: u64,
    },
}

impl Waiting {
    pub fn new(turns: Turns) -> Waiting {
        match turns {
            Turns::InLine => Waiting::InLine(VecDeque::new()),
            Turns::ByAge => Waiting::ByAge { slots: BTreeMap::new(), last: 0 },
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Waiting::InLine(line) => line.is_empty(),
            Waiting::ByAge { slots, .. } => slots.is_empty(),
        }
    }

    #[inline]
    pub fn push(&mut self, slot: u32, number: u64) {
        match self {
            Waiting::InLine(line) => line.push_back(slot),
            Waiting::ByAge { slots, .. } => {
                slots.insert(number, slot);
            }
        }
    }

    /// Removes the next queue pair.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        match self {
            Waiting::InLine(line) => line.pop_front(),
            Waiting::ByAge { slots, last } => {
                let next = slots.range((Excluded(*last), Unbounded)).next().or_else(|| slots.iter().next());
                let number = *next?.0;
                slots.remove(&number)
            }
        }
    }

    /// A removed queue pair has sent a packet.
    #[inline]
    pub fn sent(&mut self, number: u64) {
        if let Waiting::ByAge { last, .. } = self {
            *last = number;
        }
    }

    /// Removes a queue pair that has ended.
    pub fn remove(&mut self, slot: u32, number: u64) {
        match self {
            Waiting::InLine(line) => line.retain(|&other| other != slot),
            Waiting::ByAge { slots, .. } => {
                slots.remove(&number);
            }
        }
    }
}

#[cfg(test)]
mod tests;
