//! Where the program in which Pyrrha's authors run BFC (public as NASA-NJU/Pyrrha-NS3) departs from BFC.
//!
//! A scenario lists those that it wants, `departures = ["first_queue", "lowest_first"]`, or takes all of them as
//! `departures = "published"`. What else that program does is a setting elsewhere: 31 queues for data of its 32, acknowledgements in
//! them (`ack_class` of the transport), and no window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contract::departures::Point;

/// One point of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BfcDeparture")]
pub enum Departure {
    /// A flow is given the first usable queue, in place of the empty ones in turn. A queue is usable if it is empty and not both
    /// paused and some flow's.
    FirstQueue,
    /// A flow that finds no usable queue shares one at random, in place of the one that its virtual flow id says.
    RandomSharing,
    /// The first queue that has packets and may send is served, in place of deficit round robin. Their round robin should go on from
    /// where it stopped, but what it remembers goes to another entry than it reads: its loop has counted on by one.
    LowestFirst,
    /// Frames to a host name flows, in place of virtual flow ids, and hold back data alone: answers always go.
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
