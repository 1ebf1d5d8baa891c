//! Where the authors' simulator (artifact of June 2022) departs from the paper's text.
//!
//! A scenario lists those that it wants, `departures = ["even_phase", "any_token"]`, or takes all of them as
//! `departures = "authors_2022"`. That program also sends nothing of long flows during the first matching phase; so does
//! the paper (footnote 3), and so do we.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contract::departures::Point;

/// One point of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A phase has 2r stages in place of 2r + 1: data begins as the last accepts are sent. Clocks agree exactly.
    EvenPhase,
    /// Channels are asked for by the smallest flow of a sender in place of all its outstanding bytes, less the channels
    /// held in this and the next phase; in rounds 2 to r a drawn entry takes all the channels that it asked for.
    RequestByFlow,
    /// Classes by a flow's total packets (up to 7, 49, 343, 2401, 16807, more: 1 to 6) in place of remaining size.
    PriorityBySize,
    /// A full buffer loses its lowest-priority packet; packets are sprayed round robin from a random start.
    PushOut,
    /// No ack of notifications, no finish of senders, no timers: the receiver says when it has everything.
    NoHandshakes,
    /// The token window looks at the highest token answered, and is relaxed after 1.1 windows' time without a token. Tokens
    /// live longer, by the time of a packet on one channel.
    LooseWindow,
    /// Packets that are missing, lost or of unused tokens, are admitted again only when all of the flow have been admitted
    /// once and one window's time has passed since, in place of as soon as its sender is matched again. With `loose_window`.
    RetokenAtEnd,
    /// A sender obeys any token, matched or not.
    AnyToken,
    /// A short flow of n packets makes its receiver skip the next n tokens.
    ShortFlowsHoldTokens,
}

impl Point for Departure {
    const ALL: &'static [Departure] = &[
        Departure::EvenPhase,
        Departure::RequestByFlow,
        Departure::PriorityBySize,
        Departure::PushOut,
        Departure::NoHandshakes,
        Departure::LooseWindow,
        Departure::RetokenAtEnd,
        Departure::AnyToken,
        Departure::ShortFlowsHoldTokens,
    ];
    const NAME: &'static str = "authors_2022";
    const SCHEMA: &'static str = "Departures";

    #[inline]
    fn place(self) -> u16 {
        self as u16
    }
}

/// A set of departures.
pub type Departures = contract::departures::Departures<Departure>;
