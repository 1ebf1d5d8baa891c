//! The interface between queue pairs and a rate control: what a control learns, and the rate that it decides.

use std::fmt;

use node::{EndpointParams, FlowState, Telemetry};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate, Time};

use contract::{About, CongestionSignal};

/// The settings of a rate control, which make the [`Control`] of each queue pair.
pub trait Algorithm:
    Clone + fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + 'static
{
    /// Its state for each queue pair.
    type Control: Control;

    /// Title, source and summary.
    const ABOUT: About;

    /// Whether its data gathers in-band telemetry, for which each packet has room beside its headers.
    const TELEMETRY: bool = false;

    /// Whether that room is beyond the MTU instead of reducing the message bytes of a full packet.
    fn telemetry_beyond_mtu(&self) -> bool {
        false
    }

    /// Checks what the types of its settings can't express. Keys of errors are relative to its own table.
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// How switches should signal congestion. A setting of the scenario takes precedence.
    fn signal(&self, site: &EndpointParams) -> CongestionSignal;

    /// How receivers report congestion marks; `None` if its packets are not ECN-capable.
    fn cnp(&self) -> Option<Cnp> {
        None
    }

    /// The control of a new queue pair.
    fn start(&self, start: Start) -> Self::Control;
}

/// How a receiver reports congestion marks (the notification point).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Cnp {
    /// In the acknowledgement of each marked packet.
    InAck,
    /// In a packet of its own.
    Packet {
        /// Least time between two notifications (N in DCQCN's paper).
        #[schemars(extend("x-least" = "100ns", "x-zero" = true))]
        interval: Duration,
        /// For which queue pairs together that time holds. Default: for each of them.
        #[serde(default, skip_serializing_if = "Spaced::is_default")]
        spaced: Spaced,
    },
}

/// The queue pairs whose notifications keep a least time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spaced {
    /// Each queue pair by itself.
    #[default]
    QueuePair,
    /// All queue pairs of a receiver.
    Receiver,
}

impl Spaced {
    fn is_default(&self) -> bool {
        *self == Spaced::default()
    }
}

/// What a new queue pair knows.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The time.
    pub now: Time,
    /// Rate of the host's link.
    pub line: Rate,
    /// Longest unloaded round trip of a data packet and its acknowledgement, over all pairs of hosts.
    pub rtt: Duration,
}

/// The rate control of one queue pair.
pub trait Control: Send + node::State + 'static {
    /// The rate at which packets may leave, headers and retransmissions included. It is read after every event of the
    /// queue pair, and counts from its last packet.
    fn rate(&self) -> Rate;

    /// An acknowledgement has arrived.
    fn on_ack(&mut self, _ack: &Ack<'_>) {}

    /// A congestion notification has arrived. If it came in an acknowledgement, this is called before
    /// [`Control::on_ack`].
    fn on_cnp(&mut self, _now: Time) {}

    /// A packet of `_bytes` leaves, headers included.
    fn on_sent(&mut self, _bytes: u16) {}

    /// Says what else it has, in the words of its paper, beside its rate.
    fn state(&self, _say: &mut FlowState) {}

    /// When it wants [`Control::wake`]. Read after each call of the other methods.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The time of [`Control::deadline`] has come.
    fn wake(&mut self, _now: Time) {}
}

/// The content of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Time of arrival.
    pub now: Time,
    /// All bytes of the message before this one have arrived.
    pub una: u64,
    /// The first byte that has not been sent, or that go-back-N will send again.
    pub next: u64,
    /// The round trip of the packet that it acknowledges.
    pub rtt: Duration,
    /// Virtual queueing delay of that packet, if it belongs to an AQ (Augmented Queue, section 3.3.2).
    pub virtual_delay: Option<Duration>,
    /// Telemetry of that packet, if the control asks for it ([`Algorithm::TELEMETRY`]).
    pub telemetry: Option<&'a Telemetry>,
}
