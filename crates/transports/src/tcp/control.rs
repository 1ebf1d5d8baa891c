//! The seam between TCP and a congestion control: what a control learns, and the little that it decides.

use std::fmt;

use node::Site;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use units::{Duration, Problem, Rate, Time};

use contract::{About, CongestionSignal};

/// A congestion control's settings, from which each flow's [`Control`] is made.
pub trait Algorithm:
    Clone + fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + 'static
{
    /// What it keeps for each flow.
    type Control: Control;

    /// What it is.
    const ABOUT: About;

    /// Whether acknowledgements shall bring it samples of the delivery rate, for which the sender keeps a record a packet.
    const SAMPLES_RATE: bool = false;

    /// What the types of its settings can't forbid. Keys are relative to its own table.
    fn check(&self) -> Result<(), Problem>;

    /// How it uses congestion marks.
    fn ecn(&self) -> Ecn;

    /// How switches shall tell it of congestion, where the scenario leaves it open.
    fn signal(&self, site: &Site) -> CongestionSignal;

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
    /// A full data packet, headers counted.
    pub packet_bytes: u64,
    /// Longest unloaded round trip of a data packet and its acknowledgement, over all pairs of hosts.
    pub rtt: Duration,
    /// With `hop_rtt` a line above unloaded round trips: `base_rtt + n * hop_rtt` is no less than that of any pair of hosts
    /// with n switches between them.
    pub base_rtt: Duration,
    /// What a switch more on the way adds to the unloaded round trip.
    pub hop_rtt: Duration,
    /// How long a full packet takes at the rates that its AQs guarantee; zero without AQs.
    pub virtual_serialisation: Duration,
    /// Chance, for a random stream of its own.
    pub seed: u64,
}

impl Start {
    /// What the flows of a host begin with.
    pub(crate) fn at(site: &Site, initial_window: u16) -> Start {
        let mss_bytes = u64::from(site.payload_max());
        let (base_rtt, hop_rtt) = line_above(&site.data_rtts).unwrap_or((site.data_rtt, Duration::ZERO));
        Start {
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

/// The line with the slope from the first to the last of the points that lies above all of them: its height at 0, and its
/// slope.
fn line_above(points: &[(u8, Duration)]) -> Option<(Duration, Duration)> {
    let (&(first, low), &(last, high)) = (points.first()?, points.last()?);
    let slope = high.saturating_sub(low) / u64::from(last - first).max(1);
    let rise = |at: u8| Duration::from_ps(slope.ps().saturating_mul(u64::from(at)));
    let height = points.iter().map(|&(at, rtt)| rtt.saturating_sub(rise(at))).max()?;
    Some((height, slope))
}

/// The congestion control of one flow. Loss recovery is not its business: it says how much may be in flight.
pub trait Control: Send + 'static {
    /// An acknowledgement has come in, whatever it brought.
    fn on_ack(&mut self, ack: &Ack);

    /// The network is congested: told once a window of data, but for timeouts.
    fn on_congestion(&mut self, congestion: &Congestion);

    /// How much may be in flight: cwnd. The sender always allows one segment; a control that wants less says with
    /// [`Control::pacing`] how seldom.
    fn window_bytes(&self) -> u64;

    /// The rate at which packets may leave, headers counted, sent again or not; none sends as the window allows. It is asked
    /// anew whenever something happens to the flow, and counts from its last packet.
    fn pacing(&self) -> Option<Rate> {
        None
    }

    /// Whether it sends less than it thinks the path would take, so that the rates of what it sends now tell nothing of that.
    fn holds_back(&self) -> bool {
        false
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
    /// The round trip that it measured, by Karn's rule: none where all that it tells of was sent more than once.
    pub rtt: Option<Duration>,
    /// How long ago the newest of what it delivered was sent, first or again: what a timestamp option would measure, but for
    /// a segment that was sent again needlessly. None where it delivered nothing.
    pub delay: Option<Duration>,
    /// Virtual queueing delay that the data met which brought it about, if that belonged to an AQ (Augmented Queue, section
    /// 3.3.2).
    pub virtual_delay: Option<Duration>,
    /// The rate at which data arrives, where the control asks for it ([`Algorithm::SAMPLES_RATE`]) and this
    /// acknowledgement tells.
    pub rate: Option<RateSample>,
    /// In flight now (RFC 6675's pipe), in whole segments.
    pub in_flight_bytes: u64,
    /// In flight before it came in, in whole segments.
    pub in_flight_before_bytes: u64,
    /// How much is lost that was not known to be lost before, in whole segments.
    pub lost_bytes: u64,
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

/// A sample of the rate at which data arrives (draft-cheng-iccrg-delivery-rate-estimation-00).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Of message bytes, in whole segments.
    pub rate: Rate,
    /// Whether something other than window and pacing limited the flow when the packet that gives the sample was sent.
    pub limited: bool,
    /// What has arrived of the flow up to now.
    pub delivered_bytes: u64,
    /// What had arrived when that packet was sent.
    pub delivered_before_bytes: u64,
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
    /// When it did.
    pub now: Time,
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
        Start { mss_bytes, window_bytes, packet_bytes, rtt, base_rtt, hop_rtt, virtual_serialisation, seed: 0 }
    }
}

#[cfg(test)]
impl Congestion {
    /// That `signal` came while a window of `flight_bytes` was full.
    pub(crate) fn of(signal: Signal, flight_bytes: u64) -> Congestion {
        Congestion { now: Time::ZERO, signal, flight_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_lies_above_all_points_and_touches_one() {
        let us = Duration::from_us;
        assert_eq!(line_above(&[]), None);
        assert_eq!(line_above(&[(2, us(7))]), Some((us(7), us(0))));
        // Slope (50 - 10) / (5 - 1); through the first and the last, and through the middle one where that is higher.
        assert_eq!(line_above(&[(1, us(10)), (3, us(20)), (5, us(50))]), Some((us(0), us(10))));
        assert_eq!(line_above(&[(1, us(10)), (3, us(44)), (5, us(50))]), Some((us(14), us(10))));
        // Many switches with shorter links: the line does not fall.
        assert_eq!(line_above(&[(1, us(40)), (2, us(30))]), Some((us(40), us(0))));
    }
}
