//! The interface between TCP and a congestion control: what a control learns, and what it decides.

use std::fmt;

use node::{EndpointParams, FlowState};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use units::{Bytes, Duration, FlowId, Problem, Rate, Time};

use super::custom::contract::Sent;
use crate::target_delay::unloaded;
use contract::{About, CongestionSignal};

/// The settings of a congestion control, which make the [`Control`] of each flow.
pub trait Algorithm:
    Clone + fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + 'static
{
    /// Its state for each flow.
    type Control: Control;

    /// Title, source and summary.
    const ABOUT: About;

    /// Whether its controls are a user's own: they are called for packets that leave, have a timer, and may fail.
    const OWN: bool = false;

    /// Whether its controls draw random numbers: [`Start::seed`] is 0 for the others. A host from whose stream nothing
    /// is drawn is what it was when its flows are as they were.
    const DRAWS: bool = false;

    /// The defaults of the TCP around it, given those of all controls.
    fn stack(config: super::Config<Self>) -> super::Config<Self> {
        config
    }

    /// Whether acknowledgements bring it samples of the delivery rate, for which the sender keeps a record of each
    /// packet.
    fn samples_rate(&self) -> bool {
        false
    }

    /// Checks what the types of its settings can't express. Keys of errors are relative to its own table.
    fn check(&self) -> Result<(), Problem>;

    /// Checks that the files or classes that its settings name have been read. Keys of errors are relative to its own
    /// table.
    fn check_on(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// The same in one host, where it may keep what that host's flows share.
    fn at_host(&self) -> Self {
        self.clone()
    }

    /// How it uses congestion marks.
    fn ecn(&self) -> Ecn;

    /// How switches should signal congestion. A setting of the scenario takes precedence.
    fn signal(&self, site: &EndpointParams) -> CongestionSignal;

    /// The queue that keeps a link busy when a window that fills it is cut at a loss; none if losses cut no window.
    fn queue_needed(&self, _site: &EndpointParams) -> Option<Bytes> {
        None
    }

    /// The control of a new flow.
    fn start(&self, start: Start) -> Self::Control;
}

/// How a congestion control uses congestion marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Its packets are not ECN-capable.
    Off,
    /// A mark counts like a loss (RFC 3168). The receiver repeats it until the sender reports that it has reduced its
    /// window. A window that a mark has reduced is not reduced again for a loss of the same round trip.
    Classic,
    /// The share of marked bytes counts (RFC 8257): the receiver reports each packet's mark, and a loss is answered
    /// independently of marks.
    Proportional,
}

/// What a new flow knows.
#[derive(Clone, Copy, Debug, node::State)]
pub struct Start {
    /// Its number, as in results.
    pub flow: FlowId,
    /// When it starts.
    #[state(past)]
    pub now: Time,
    /// Sender maximum segment size.
    pub mss_bytes: u64,
    /// Initial window (RFC 6928).
    pub window_bytes: u64,
    /// Bytes of a full data packet, headers included.
    pub packet_bytes: u64,
    /// Longest unloaded round trip of a data packet and its acknowledgement, over all pairs of hosts.
    pub rtt: Duration,
    /// Intercept of a line with slope `hop_rtt` above all unloaded round trips: `base_rtt + n * hop_rtt` is at least
    /// that of any pair of hosts with n switches between them.
    pub base_rtt: Duration,
    /// What each further switch adds to the unloaded round trip.
    pub hop_rtt: Duration,
    /// Transmission time of a full packet at the rates that its AQs guarantee; zero without AQs.
    pub virtual_serialisation: Duration,
    /// Seed of a random stream of its own.
    #[state(skip("where a control draws by it, no flow takes another's place"))]
    pub seed: u64,
}

impl Start {
    /// What flows of this host know at their start.
    pub(crate) fn at(site: &EndpointParams, initial_window: u16) -> Start {
        let mss_bytes = u64::from(site.payload_max());
        let (base_rtt, hop_rtt) = unloaded(site);
        Start {
            flow: FlowId(0),
            now: Time::ZERO,
            mss_bytes,
            window_bytes: u64::from(initial_window) * mss_bytes,
            packet_bytes: u64::from(site.mtu_bytes),
            rtt: site.data_rtt,
            base_rtt,
            hop_rtt,
            virtual_serialisation: Duration::ZERO,
            seed: 0,
        }
    }
}

/// The congestion control of one flow. It decides how much may be in flight; loss recovery is separate.
pub trait Control: Send + node::State + 'static {
    /// An acknowledgement has arrived.
    fn on_ack(&mut self, ack: &Ack);

    /// The flow's connection is open, after a handshake of this round trip.
    fn on_opened(&mut self, _now: Time, _rtt: Duration) {}

    /// A packet is newly known to be lost, before the acknowledgement that tells. Only with
    /// [`Algorithm::samples_rate`], and not after a timeout.
    fn on_lost(&mut self, _lost: &Lost) {}

    /// The network is congested. Called once for each window of data, except for timeouts.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// How much may be in flight (cwnd). The sender always allows one segment; a control that wants less uses
    /// [`Control::pacing`].
    fn window_bytes(&self) -> u64;

    /// The rate at which packets may leave, headers and retransmissions included; `None` sends as the window allows. It
    /// is read after every event of the flow, and counts from its last packet.
    fn pacing(&self) -> Option<Rate> {
        None
    }

    /// A packet of the flow has left. Only with [`Algorithm::OWN`], as are the three below.
    fn on_send(&mut self, _sent: &Sent) {}

    /// The time of [`Control::timer`] has come.
    fn on_timer(&mut self, _now: Time) {}

    /// When it wants to be called next, whatever happens. It is read after every event of the flow.
    fn timer(&self) -> Option<Time> {
        None
    }

    /// Why the flow can't go on. It is read after every event of the flow, which then ends.
    fn failed(&self) -> Option<&'static str> {
        None
    }

    /// Says what else it has, in the words of its paper, beside window and rate.
    fn state(&self, _say: &mut FlowState) {}

    /// Whether it sends less than it thinks the path would carry, so that delivery rates tell nothing about the path.
    fn holds_back(&self) -> bool {
        false
    }
}

/// The content of an acknowledgement.
#[derive(Clone, Copy, Debug, node::Saved)]
pub struct Ack {
    /// Time of arrival.
    pub now: Time,
    /// Bytes newly acknowledged cumulatively.
    pub acked_bytes: u64,
    /// Bytes newly known to have arrived, SACKed bytes included, in whole segments.
    pub delivered_bytes: u64,
    /// All bytes of the flow before this one have arrived: SND.UNA.
    pub una: u64,
    /// The first byte that has not been sent: SND.NXT.
    pub next: u64,
    /// Whether it carries ECE.
    pub marked: bool,
    /// The round trip that it measured; `None` by Karn's rule if everything it acknowledges was sent more than once.
    pub rtt: Option<Duration>,
    /// Time since the newest segment that it newly acknowledges was sent, first or again. This is what a timestamp
    /// option would measure, except for segments that were sent again needlessly. `None` if it acknowledges nothing
    /// new.
    pub delay: Option<Duration>,
    /// Virtual queueing delay of the data that it acknowledges, if that belongs to an AQ (Augmented Queue, section
    /// 3.3.2).
    pub virtual_delay: Option<Duration>,
    /// The delivery rate, if the control asks for it ([`Algorithm::samples_rate`]) and this acknowledgement gives a
    /// sample.
    pub rate: Option<RateSample>,
    /// In flight now (RFC 6675's pipe), in whole segments.
    pub in_flight_bytes: u64,
    /// In flight before it arrived, in whole segments.
    pub in_flight_before_bytes: u64,
    /// Bytes newly known to be lost, in whole segments.
    pub lost_bytes: u64,
    /// The smoothed round trip (RFC 6298).
    pub srtt: Duration,
    /// Number of switches that it passed.
    pub hops: u8,
    /// Whether the window was full while the acknowledged data was in flight. If not, something else limits the flow
    /// (its host's link, as hosts have no queue), so the window tells nothing about the network and must not grow (RFC
    /// 9438 section 5.8, RFC 7661).
    pub limited: bool,
    /// Loss-recovery phase of the sender when it arrived.
    pub phase: Phase,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00).
#[derive(Clone, Copy, Debug, node::Saved)]
pub struct RateSample {
    /// Of message bytes, in whole segments.
    pub rate: Rate,
    /// Whether something other than window and pacing limited the flow when the sampled packet was sent.
    pub limited: bool,
    /// Bytes of the flow that have arrived by now.
    pub delivered_bytes: u64,
    /// Bytes that had arrived when that packet was sent.
    pub delivered_before_bytes: u64,
    /// Bytes in flight when it had been sent, itself included.
    pub in_flight_bytes: u64,
    /// Bytes known to be lost since.
    pub lost_bytes: u64,
}

/// A packet that is lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Its first byte.
    pub first: u64,
    /// Its length, that of a full segment.
    pub bytes: u64,
    /// Bytes in flight when it had been sent, itself included.
    pub in_flight_bytes: u64,
    /// Bytes known to be lost since, itself included.
    pub since_bytes: u64,
    /// Whether something other than window and pacing limited the flow when it was sent.
    pub limited: bool,
}

/// Loss-recovery phase of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Phase {
    /// No losses to repair.
    Open,
    /// Fast recovery (RFC 6675 section 5): the window stays.
    Recovery,
    /// After a timeout: slow start with repairs.
    Loss,
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Time of the event.
    pub now: Time,
    /// Its signal.
    pub signal: Signal,
    /// Bytes in flight by the cumulative acknowledgement, at most the window: FlightSize without what limited transmit
    /// has added (RFC 6675 section 5, step 4.2).
    pub flight_bytes: u64,
}

/// The signal of a congestion event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A loss that fast retransmission repairs.
    Loss,
    /// A congestion mark.
    Mark,
    /// The retransmission timeout.
    Timeout {
        /// Whether the same segment had timed out before: ssthresh then stays (RFC 5681 section 3.1).
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
            delay: None,
            virtual_delay: None,
            rate: None,
            in_flight_bytes: 0,
            in_flight_before_bytes: 0,
            lost_bytes: 0,
            srtt: Duration::ZERO,
            hops: 0,
            limited: true,
            phase: Phase::Open,
        }
    }
}

#[cfg(test)]
impl Start {
    /// A window of `segments`, each of `mss_bytes`, on a path of 10 us over one switch.
    pub(crate) fn of(segments: u64, mss_bytes: u64) -> Start {
        let window_bytes = segments * mss_bytes;
        let (rtt, hop_rtt) = (Duration::from_us(10), Duration::from_us(2));
        let (packet_bytes, base_rtt, virtual_serialisation) = (mss_bytes + 40, rtt - hop_rtt, Duration::ZERO);
        let (flow, now, seed) = (FlowId(0), Time::ZERO, 0);
        Start { flow, now, mss_bytes, window_bytes, packet_bytes, rtt, base_rtt, hop_rtt, virtual_serialisation, seed }
    }
}

#[cfg(test)]
impl Congestion {
    /// That `signal` came while a window of `flight_bytes` was full.
    pub(crate) fn of(signal: Signal, flight_bytes: u64) -> Congestion {
        Congestion { now: Time::ZERO, signal, flight_bytes }
    }
}
