//! Points in which the authors' program (published with the paper in 2017) departs from the paper's text, or decides
//! what the text leaves open.
//!
//! A scenario lists them, `departures = ["in_order"]`, or takes all with `departures = "published"`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contract::departures::Point;

/// A departure from the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A host sends packets in the order in which they were pushed and pulled, retransmissions first: a short message
    /// waits for all that longer ones of its host may send. Without this departure messages take turns, as in the
    /// authors' later program.
    InOrder,
    /// Header bytes do not count: the time between pulls is that of a full packet's payload, and a queue of eight
    /// packets has room for eight payloads.
    PayloadOnly,
    /// Pulls continue until a message is complete. The mark on a sender's last packet removes none.
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
