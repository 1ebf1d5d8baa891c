//! Departures from the paper of the authors' ns-3 program (github.com/NASA-NJU/Pyrrha-NS3, `switch-node.cc` and
//! `switch-mmu.cc`).
//!
//! A scenario lists them, `departures = ["merge_at_down_ports"]`, or takes those of the published program with
//! `departures = "published"`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contract::departures::Point;

/// A departure from the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A port that leads up nominates itself, and pauses, only while its output queue is above twice the mean of all
    /// the switch's ports that lead up: load without imbalance makes no root there. Not part of "published": the
    /// program compares with a sum (`bytes_up_data`) that it never adds to, so its rule always passes.
    UplinksAboveMean,
    /// A root that leads up stays a root, whatever root further downstream it hears of. Only roots that lead down
    /// merge.
    MergeAtDownPorts,
    /// A neighbour is paused by the bytes that it sent and that wait in isolation queues of a root, over all ports of
    /// the switch. In the paper (section 4.3) the length of a queue pauses every neighbour that adds to it.
    PauseByIngress,
    /// Each neighbour is paused and resumed by limits of its own: `K_pause` and `K_resume` times the rate of the
    /// queue's port times the round trip of the link to *that* neighbour. Without this departure a queue has one
    /// length for all, by the longest of these links; the paper has one `K_pause` and does not say by which link. The
    /// two differ where a switch's links differ in length: with this departure a neighbour on a short link is not
    /// resumed while one on a long link keeps the queue between its own limits.
    LimitsByIngress,
    /// Once in each packet time, every isolation queue that may send hands a packet to the next queue or to the output
    /// queue, however long that is. The paper has a scheduler for each level of queues but no rule for it. Without this
    /// departure isolation queues take turns with the output queue, so the output queue fills no faster than its link
    /// sends.
    HandOnTogether,
}

impl Point for Departure {
    const ALL: &'static [Departure] = &[
        Departure::UplinksAboveMean,
        Departure::MergeAtDownPorts,
        Departure::PauseByIngress,
        Departure::LimitsByIngress,
        Departure::HandOnTogether,
    ];
    const PUBLISHED: &'static [Departure] = &[
        Departure::MergeAtDownPorts,
        Departure::PauseByIngress,
        Departure::LimitsByIngress,
        Departure::HandOnTogether,
    ];
    const SCHEMA: &'static str = "PyrrhaDepartures";

    #[inline]
    fn place(self) -> u16 {
        self as u16
    }
}

/// A set of departures.
pub type Departures = contract::departures::Departures<Departure>;
