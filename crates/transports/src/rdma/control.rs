//! The seam between queue pairs and a rate control: what a control learns, and the rate that it decides.

use std::fmt;

use node::{Site, Telemetry};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate, Time};

use contract::{About, CongestionSignal};

/// A rate control's settings, from which each queue pair's [`Control`] is made.
pub trait Algorithm:
    Clone + fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + 'static
{
    /// What it keeps for each queue pair.
    type Control: Control;

    /// What it is.
    const ABOUT: About;

    /// Whether its data shall gather in-band telemetry, for which each packet has room beside its headers.
    const TELEMETRY: bool = false;

    /// Whether that room is beyond the MTU, and not taken from the message bytes of a full packet.
    fn telemetry_beyond_mtu(&self) -> bool {
        false
    }

    /// What the types of its settings can't forbid. Keys are relative to its own table.
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// How switches shall tell it of congestion, where the scenario leaves it open.
    fn signal(&self, site: &Site) -> CongestionSignal;

    /// How receivers report congestion marks; none if its packets are not ECN-capable.
    fn cnp(&self) -> Option<Cnp> {
        None
    }

    /// The control of a new queue pair.
    fn start(&self, start: Start) -> Self::Control;
}

/// How a receiver reports congestion marks: the notification point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Cnp {
    /// In the acknowledgement of each marked packet.
    InAck,
    /// By a packet of its own.
    Packet {
        /// Least time between two of a queue pair (N in DCQCN's paper).
        interval: Duration,
    },
}

/// What a queue pair begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// When.
    pub now: Time,
    /// Rate of the host's link.
    pub line: Rate,
    /// Longest unloaded round trip of a data packet and its acknowledgement, over all pairs of hosts.
    pub rtt: Duration,
}

/// The rate control of one queue pair.
pub trait Control: Send + 'static {
    /// The rate at which packets may leave, headers counted, sent again or not. Asked anew whenever something happens to the
    /// queue pair, and counted from its last packet.
    fn rate(&self) -> Rate;

    /// An answer has come in.
    fn on_ack(&mut self, _ack: &Ack<'_>) {}

    /// A congestion notification has come in; before [`Control::on_ack`] if it came in an acknowledgement.
    fn on_cnp(&mut self, _now: Time) {}

    /// A packet of so many bytes leaves, headers counted.
    fn on_sent(&mut self, _bytes: u16) {}

    /// When it wants [`Control::wake`]. Read after each call of the others.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The time of [`Control::deadline`] has come.
    fn wake(&mut self, _now: Time) {}
}

/// What an answer tells.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// When it came in.
    pub now: Time,
    /// Every byte of the message before this one has arrived.
    pub una: u64,
    /// The first byte that has not been sent, or is to be sent again by go-back-N.
    pub next: u64,
    /// The round trip of the packet that brought it about.
    pub rtt: Duration,
    /// Virtual queueing delay of that packet, if it belonged to an AQ (Augmented Queue, section 3.3.2).
    pub virtual_delay: Option<Duration>,
    /// What that packet has gathered, where the control asks for it ([`Algorithm::TELEMETRY`]).
    pub telemetry: Option<&'a Telemetry>,
}
