//! Where the authors' ns-3 (github.com/NASA-NJU/Pyrrha-NS3, `switch-node.cc` and `switch-mmu.cc`) departs from the paper's text.
//!
//! A scenario lists those that it wants, `departures = ["merge_at_down_ports"]`, or takes what that program does as it was
//! published: `departures = "published"`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contract::departures::Point;

/// One point of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A port that leads up nominates itself, and pauses, only while its output queue is above twice the mean of all the
    /// switch's ports that lead up: load without imbalance makes no root there. Not part of "published": the program compares
    /// with a sum (`bytes_up_data`) that nothing in it ever adds to, so that the rule always passes.
    UplinksAboveMean,
    /// A root that leads up stays one, whatever root further downstream it hears of; only those that lead down merge.
    MergeAtDownPorts,
    /// What one neighbour sent and waits in isolation queues of a root, over all ports of the switch, pauses that neighbour, in
    /// place of the length of the queue, which pauses whoever adds to it (section 4.3).
    PauseByIngress,
    /// In every time that a packet takes, each isolation queue that may send hands a packet on to the next one or to the output queue,
    /// however much waits there. The paper has a scheduler for each level of queues and no rule for it; here they take turns
    /// with the output queue without this, so that nothing joins it faster than its link sends.
    HandOnTogether,
}

impl Point for Departure {
    const ALL: &'static [Departure] = &[
        Departure::UplinksAboveMean,
        Departure::MergeAtDownPorts,
        Departure::PauseByIngress,
        Departure::HandOnTogether,
    ];
    const PUBLISHED: &'static [Departure] =
        &[Departure::MergeAtDownPorts, Departure::PauseByIngress, Departure::HandOnTogether];
    const SCHEMA: &'static str = "PyrrhaDepartures";

    #[inline]
    fn place(self) -> u16 {
        self as u16
    }
}

/// A set of departures.
pub type Departures = contract::departures::Departures<Departure>;
