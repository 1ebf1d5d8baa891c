//! Departures from the paper's text: those of the authors' simulator, and four of ours.
//!
//! A scenario lists them, `departures = ["even_phase", "any_token"]`, takes all of the simulator of June 2022 (the
//! artifact) with `departures = "authors_2022"` or of June 2023 (commit db204da) with `"authors_2023"`, or none with
//! `departures = "paper"`. Ours are the default. [`Departure::Backoff`] and [`Departure::SlowLinks`] keep control
//! packets, which have the highest priority, from filling slow links; [`Departure::ToldUntokened`] and
//! [`Departure::SlowerNic`] serve hosts with unequal NICs. They change nothing on the paper's fabrics.
//!
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
    /// No acks of notifications, no finish from senders, no timers: the receiver reports when it has everything. It has
    /// no effect with `sizes_known = false`, where the finish alone tells a receiver where a flow ends.
    NoHandshakes,
    /// The token window follows the highest token answered, and is relaxed after 1.1 window times without a token.
    /// Tokens live longer, by the time of a packet on one channel.
    LooseWindow,
    /// Missing packets, lost or with unused tokens, are admitted again only when the whole flow has been admitted once
    /// and one window time has passed since, instead of as soon as the sender is matched again. Use with
    /// `loose_window`. It waits for the sender's finish where `sizes_known = false`.
    RetokenAtEnd,
    /// A sender obeys any token, matched or not.
    AnyToken,
    /// A short flow of n packets makes its receiver skip the next n tokens.
    ShortFlowsHoldTokens,
    /// Leaves spray round robin by a counter for each link that packets come over, instead of one for each destination.
    SprayByLink,
    /// Of 2023: channels that are idle in the running data phase are matched along with those of the next, and used at
    /// once, at the lowest priority. Requests, grants and accepts tell how many.
    PromptLinks,
    /// Of 2023: a sender that is left with more than its k channels by an accept says at once how many of them it
    /// can't serve, and the receiver sends no tokens for these.
    TrimmedAccepts,
    /// Ours: a notification or finish that stays unanswered is repeated after a round trip, then after twice as long
    /// each time, up to 64 round trips. In section 3.5 each wait is a round trip, since control packets hardly queue. A
    /// large incast on slow links makes them queue: then what is repeated can fill the link for ever.
    Backoff,
    /// Ours: a stage is so long that in a phase each channel carries a full packet at least, and the requests that a
    /// receiver sends in a round take no more than a tenth of its link, but are as many as its free channels. The first
    /// round asks for the smallest flows, the others ask senders at random. In section 3.4 every sender with
    /// outstanding bytes is asked; each answers with a grant, and on slow links these fill the receiver's link.
    SlowLinks,
    /// Ours: a notification tells how many packets of its flow follow unasked, and these packets repeat that. In
    /// section 3.2 "short" is up to one bandwidth-delay product. Where NICs differ, each end has its own, and a
    /// receiver would ask for what is on its way.
    ToldUntokened,
    /// Ours: a channel between two hosts is the k-th part of what the slower of their NICs carries, and a host has as
    /// many as its link can carry. Notifications, data and matching tell rates. In section 3.4 each host divides its
    /// own bandwidth into k channels. Where NICs differ, a slow host would get channels that it can't fill.
    SlowerNic,
}

impl Departure {
    /// Those of ours, the default.
    pub const OURS: &'static [Departure] = Self::ALL.split_at(12).1;
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
        Departure::SprayByLink,
        Departure::PromptLinks,
        Departure::TrimmedAccepts,
        Departure::Backoff,
        Departure::SlowLinks,
        Departure::ToldUntokened,
        Departure::SlowerNic,
    ];
    const PUBLISHED: &'static [Departure] = Self::ALL.split_at(10).0;
    const NAME: &'static str = "authors_2022";
    const OTHERS: &'static [(&'static str, &'static [Departure])] = &[("authors_2023", Self::ALL.split_at(12).0)];
    const SCHEMA: &'static str = "Departures";

    #[inline]
    fn place(self) -> u16 {
        self as u16
    }
}

/// A set of departures.
pub type Departures = contract::departures::Departures<Departure>;
