//! The seam between TCP and a congestion control: what a control learns, and the little that it decides.

use std::fmt;

use node::Site;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use units::{Duration, Problem, Rate, Time};

use crate::{About, Feedback};

/// A congestion control's settings, from which each flow's [`Control`] is made.
pub trait Algorithm:
    Clone + fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + 'static
{
    /// What it keeps for each flow.
    type Control: Control;

    /// What it is.
    const ABOUT: About;

    /// What the types of its settings can't forbid. Keys are relative to its own table.
    fn check(&self) -> Result<(), Problem>;

    /// How it uses congestion marks.
    fn ecn(&self) -> Ecn;

    /// How switches shall tell it of congestion, where the scenario leaves it open.
    fn feedback(&self, site: &Site) -> Feedback;

    /// The control of a new flow.
    fn start(&self, start: Start) -> Self::Control;
}

/// How a congestion control uses congestion marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Its packets are not ECN-capable.
    Off,
    /// A mark is as good as a loss (RFC 3168): the receiver repeats it until the sender says that it has reduced its
    /// window, and a window that a mark has reduced is not reduced again for a loss of the same round trip.
    Classic,
    /// The share of marked bytes counts (RFC 8257): the receiver reports each packet's mark, and a loss is answered
    /// whether or not marks were.
    Proportional,
}

/// What a flow begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Sender maximum segment size.
    pub mss_bytes: u64,
    /// Initial window (RFC 6928).
    pub window_bytes: u64,
}

/// The congestion control of one flow. Loss recovery is not its business: it says how much may be in flight.
pub trait Control: Send + 'static {
    /// An acknowledgement has come in, whatever it brought.
    fn on_ack(&mut self, ack: &Ack);

    /// The network is congested: told once a window of data, but for timeouts.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// How much may be in flight: cwnd. The sender always allows one segment.
    fn window_bytes(&self) -> u64;

    /// The rate at which packets may leave, headers counted; none sends as the window allows.
    fn pacing(&self) -> Option<Rate> {
        None
    }
}

/// What an acknowledgement tells.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came in.
    pub now: Time,
    /// By how much the cumulative acknowledgement rose.
    pub acked_bytes: u64,
    /// How much is now known to have arrived that was not before, SACKed bytes counted; in whole segments.
    pub delivered_bytes: u64,
    /// Every byte of the flow before this one has arrived: SND.UNA.
    pub una: u64,
    /// The first byte that has not been sent: SND.NXT.
    pub next: u64,
    /// Whether it carries ECE.
    pub marked: bool,
    /// The round trip that it measured.
    pub rtt: Option<Duration>,
    /// The smoothed round trip (RFC 6298).
    pub srtt: Duration,
    /// Switches that it passed.
    pub hops: u8,
    /// Whether the window was full while what it acknowledges was in flight. Where it was not, something else limits
    /// the flow (its host's link, as no host queues for its own), and the window says nothing about the network: it
    /// must not grow (RFC 9438 section 5.8, RFC 7661).
    pub limited: bool,
    /// Where the sender stood when it came in.
    pub phase: Phase,
}

/// Where a sender stands with losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// None to repair.
    Open,
    /// Fast recovery (RFC 6675 section 5): windows stay as they are.
    Recovery,
    /// After a timeout: slow start, repairing as it goes.
    Loss,
}

/// That the network is congested.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// How it showed.
    pub signal: Signal,
    /// What was in flight by the cumulative acknowledgement, at most the window: FlightSize without what limited transmit
    /// has added (RFC 6675 section 5, step 4.2).
    pub flight_bytes: u64,
}

/// How congestion showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A loss that fast retransmission repairs.
    Loss,
    /// A congestion mark.
    Mark,
    /// The retransmission timeout.
    Timeout {
        /// The same segment had timed out before: RFC 5681 section 3.1 holds ssthresh.
        again: bool,
    },
}

#[cfg(test)]
impl Ack {
    /// One that acknowledges `acked_bytes` of data that a full window had sent.
    pub(crate) fn of(acked_bytes: u64) -> Ack {
        Ack {
            now: Time::ZERO,
            acked_bytes,
            delivered_bytes: acked_bytes,
            una: 0,
            next: 0,
            marked: false,
            rtt: None,
            srtt: Duration::ZERO,
            hops: 0,
            limited: true,
            phase: Phase::Open,
        }
    }
}
