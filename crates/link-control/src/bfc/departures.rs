//! Departures from BFC of the program in which Pyrrha's authors run it (NASA-NJU/Pyrrha-NS3).
//!
//! A scenario lists them, `departures = ["first_queue", "lowest_first"]`, or takes all with `departures = "published"`.
//! Other differences of that program are settings elsewhere: 31 of its 32 queues for data, acknowledgements in the same
//! queues (`ack_class` of the transport), and no window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contract::departures::Point;

/// A departure from BFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BfcDeparture")]
pub enum Departure {
    /// A flow is assigned the first usable queue, instead of the empty queues in turn. A queue is usable if it is empty
    /// and not both paused and assigned to a flow.
    FirstQueue,
    /// A flow that finds no usable queue shares a random one, instead of the one given by its virtual flow id.
    RandomSharing,
    /// The first queue that has packets and is not paused is served, instead of deficit round robin. The program
    /// intends round robin, but stores the position in another entry than it reads, because its loop variable has
    /// advanced.
    LowestFirst,
    /// Frames to a host name flows instead of virtual flow ids, and pause only data: acknowledgements are always sent.
    HostsByFlow,
}

impl Point for Departure {
    const ALL: &'static [Departure] =
        &[Departure::FirstQueue, Departure::RandomSharing, Departure::LowestFirst, Departure::HostsByFlow];
    const SCHEMA: &'static str = "BfcDepartures";

    #[inline]
    fn place(self) -> u16 {
        self as u16
    }
}

/// A set of departures.
pub type Departures = contract::departures::Departures<Departure>;
