//! Where the authors' program (published with the paper in 2017) departs from the paper's text, or does what the text leaves open.
//!
//! A scenario lists those that it wants, `departures = ["in_order"]`, or takes all of them as `departures = "published"`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contract::departures::Point;

/// One point of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A host sends packets in the order in which they were pushed and pulled, what is sent again first: a short message waits for
    /// all that longer ones of its host may send. Without it messages take turns, as in the authors' later program.
    InOrder,
    /// Headers are not counted: pulls are as far apart as a full packet's payload takes, and a queue of eight packets has room for the
    /// payload of eight.
    PayloadOnly,
    /// Pulls go on until a message is whole: that its sender has marked its last packet removes none.
    PullsToTheEnd,
}

impl Point for Departure {
    const ALL: &'static [Departure] = &[Departure::InOrder, Departure::PayloadOnly, Departure::PullsToTheEnd];
    const SCHEMA: &'static str = "NdpDepartures";

    #[inline]
    fn place(self) -> u16 {
        self as u16
    }
}

/// A set of departures.
pub type Departures = contract::departures::Departures<Departure>;
