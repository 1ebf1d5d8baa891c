//! Departures of the authors' simulator (artifact of June 2022) from the paper's text.
//!
//! A scenario lists them, `departures = ["even_phase", "any_token"]`, or takes all with `departures = "authors_2022"`.
//! That program also sends nothing of long flows during the first matching phase; so does the paper (footnote 3), and
//! so do we.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use contract::departures::Point;

/// A departure from the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Departure {
    /// A phase has 2r stages instead of 2r + 1: data starts when the last accepts are sent. Clocks agree exactly.
    EvenPhase,
    /// Channels are requested for the smallest flow of a sender instead of all its outstanding bytes, less the channels
    /// held in this and the next phase. In rounds 2 to r a drawn entry takes all the channels that it requested.
    RequestByFlow,
    /// Classes follow a flow's total packets (up to 7, 49, 343, 2401, 16807, more: 1 to 6) instead of its remaining
    /// size.
    PriorityBySize,
    /// A full buffer drops its lowest-priority packet; packets are sprayed round robin from a random start.
    PushOut,
    /// No acks of notifications, no finish from senders, no timers: the receiver reports when it has everything.
    NoHandshakes,
    /// The token window follows the highest token answered, and is relaxed after 1.1 window times without a token.
    /// Tokens live longer, by the time of a packet on one channel.
    LooseWindow,
    /// Missing packets, lost or with unused tokens, are admitted again only when the whole flow has been admitted once
    /// and one window time has passed since, instead of as soon as the sender is matched again. Use with
    /// `loose_window`.
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
