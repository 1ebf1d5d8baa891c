//! The contract of a host: a state machine that is pulled.
//!
//! The driver (simulator or socket loop) hands in what happened and the time, then pulls packets one at a time, only
//! when the NIC can send one. So pulling is backpressure: an endpoint never fills its own NIC's queue, it decides
//! what goes next at the last moment, and a paused flow holds back no other.
//!
//! An endpoint does no I/O, reads no clock, spawns nothing, and draws randomness from [`Cx::random`] only.

use std::sync::Arc;

use fabric::Routes;
use units::{Duration, FlowId, HostId, Rate, Stream, Time};

use crate::{Header, NicControl, Packet, Telemetry};

/// A host's part of a scheme: sender and receiver of every flow of that host.
pub trait Endpoint: Send {
    /// Takes in what happened at `cx.now`.
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>);

    /// The next packet to put on the wire, or none now. Asked only when the NIC can take one; asked again after
    /// it has gone, after every [`Endpoint::handle`], and when the gate opens.
    ///
    /// Never returns a packet of a class that `cx.gate` has closed.
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;

    /// When this endpoint wants [`Input::Deadline`]. The driver reads it after each call of the other two.
    /// A deadline that is not later than now is handed in at once.
    fn poll_at(&self) -> PollAt;

    /// The network's topology has changed: these are the routes now. Every host is told at the same time as switches are.
    fn set_routes(&mut self, _cx: &mut Cx<'_>, _routes: &Arc<Routes>) {}

    /// The packet that is handed in next has gathered this on its way. Said of packets flagged
    /// [`TELEMETRY`](crate::packet::flags::TELEMETRY) alone.
    fn gathered(&mut self, _telemetry: &Telemetry) {}

    /// What a packet of this endpoint with that flag leaves with. Asked once a packet, when its first bit leaves.
    fn carries(&mut self, _packet: &Packet) -> Telemetry {
        Telemetry::default()
    }

    /// What it counted, by name, for the result: retransmissions by cause, control packets by kind.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What happens to an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The application wants a message carried; this host is its source.
    Send(&'a Message),
    /// A packet for this host has come in whole.
    Packet(&'a Packet),
    /// The time named by [`Endpoint::poll_at`] has come. May also come early: look at `cx.now`.
    Deadline,
}

/// A message that an application hands to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number in the run.
    pub flow: FlowId,
    /// Where it is.
    pub src: HostId,
    /// Where it shall go.
    pub dst: HostId,
    /// Its length; at least 1.
    pub bytes: u64,
    /// The class of traffic that it belongs to.
    pub class: u16,
    /// How long a full packet takes at the rates that AQs on its way guarantee its entity: the least virtual delay that its packets can have. Zero
    /// without AQs.
    pub virtual_serialisation: Duration,
}

/// When an endpoint next wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PollAt {
    /// At this time, whatever happens before.
    At(Time),
    /// Only when a packet or message arrives.
    OnArrival,
}

impl PollAt {
    /// The instant, [`Time::MAX`] for never.
    #[inline]
    pub fn time(self) -> Time {
        match self {
            PollAt::At(time) => time,
            PollAt::OnArrival => Time::MAX,
        }
    }
}

impl From<Option<Time>> for PollAt {
    fn from(deadline: Option<Time>) -> Self {
        deadline.map_or(PollAt::OnArrival, PollAt::At)
    }
}

/// What the application at a host learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// At the receiver: every byte of the flow is here. Said once a flow.
    Delivered {
        /// The flow.
        flow: FlowId,
    },
    /// At the sender: it knows that the receiver has every byte. Said once a flow.
    Completed {
        /// The flow.
        flow: FlowId,
        /// Data packets sent for it, first time and again.
        sent_packets: u64,
        /// Those of them that had been sent before.
        resent_packets: u64,
    },
    /// At the sender: the network refused the flow (a scheme with admission control).
    Rejected {
        /// The flow.
        flow: FlowId,
    },
    /// At the sender: the flow was given up.
    Failed {
        /// The flow.
        flow: FlowId,
        /// Why.
        reason: &'static str,
    },
    /// At either end: something that the scheme has measured of the flow, for the result. It changes nothing.
    Measured {
        /// The flow.
        flow: FlowId,
        /// What was measured; ends in its unit.
        what: &'static str,
        /// How much.
        value: u64,
    },
}

/// What an endpoint may look at and write to while it runs.
pub struct Cx<'a> {
    /// The time, by the driver's clock (simulated, or the real one since the run began).
    pub now: Time,
    /// This host's random stream for this scheme.
    pub random: &'a mut Stream,
    /// What the link lets through.
    pub gate: Gate<'a>,
    /// What the application shall learn, in order.
    pub events: &'a mut Vec<Event>,
}

/// Which traffic the host's link may not carry now (link-level flow control).
#[derive(Clone, Copy, Default)]
pub struct Gate<'a> {
    /// One bit a priority class that the switch has paused.
    pub paused_classes: u8,
    transport: u8,
    nic: Option<&'a dyn NicControl>,
}

impl<'a> Gate<'a> {
    /// The gate of a NIC with such a flow control, for the endpoint whose packets say `transport`.
    #[inline]
    pub fn new(nic: Option<&'a dyn NicControl>, transport: u8) -> Gate<'a> {
        Gate { paused_classes: nic.map_or(0, |nic| nic.paused_classes()), transport, nic }
    }

    /// The same gate as an endpoint sees it whose packets go `classes` further down: to it, class 0 is that class, and all that
    /// would be beyond the last are the last.
    #[inline]
    pub const fn beneath(self, classes: u8) -> Gate<'a> {
        Gate { paused_classes: (self.paused_classes as i8 >> classes) as u8, ..self }
    }

    /// Whether a packet of `class` may go.
    #[inline]
    pub const fn open(self, class: u8) -> bool {
        self.paused_classes >> class & 1 == 0
    }

    /// Whether packets of a flow to `dst`, which bear no flow label, may go. An endpoint that does not ask has its packets held
    /// in the NIC, a queue a flow.
    #[inline]
    pub fn lets(self, flow: FlowId, dst: HostId) -> bool {
        self.nic.is_none_or(|nic| nic.lets(self.transport, flow, dst, 0))
    }

    /// Changes whenever a flow that was held may go: when to ask again.
    #[inline]
    pub fn epoch(self) -> u32 {
        self.nic.map_or(0, |nic| nic.epoch())
    }
}

/// What an endpoint is told about its place when it is built. Everything here follows from the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// This host.
    pub host: HostId,
    /// Hosts in the network.
    pub hosts: u32,
    /// Rate of this host's link, or of all its links together.
    pub nic_rate: Rate,
    /// Longest unloaded round trip of a full data packet and a control packet back, over all pairs of hosts.
    pub data_rtt: Duration,
    /// The same over the pairs with so many switches between them, fewest first.
    pub data_rtts: Vec<(u8, Duration)>,
    /// Longest unloaded round trip of two control packets.
    pub control_rtt: Duration,
    /// Bytes of a full data packet, headers counted.
    pub mtu_bytes: u16,
    /// Headers of a data packet; a control packet is this long and nothing else.
    pub header_bytes: u16,
    /// This host's clock against true time.
    pub clock: Clock,
    /// The index that this scheme's packets carry in `transport`.
    pub transport: u8,
}

impl Site {
    /// Message bytes in a full data packet.
    pub const fn payload_max(&self) -> u16 {
        self.mtu_bytes - self.header_bytes
    }

    /// A packet that carries `payload_bytes` of a message behind the headers. It is of class 0 until that is set, and has
    /// no flags.
    #[inline]
    pub fn data_packet<H: Header>(&self, flow: FlowId, dst: HostId, header: H, payload_bytes: u16) -> Packet {
        let mut packet = self.control_packet(flow, dst, header);
        packet.payload_bytes = payload_bytes;
        packet.wire_bytes += payload_bytes;
        packet
    }

    /// A packet that is its headers alone. It is of class 0, the first served, until another is set, and has no flags.
    #[inline]
    pub fn control_packet<H: Header>(&self, flow: FlowId, dst: HostId, header: H) -> Packet {
        let mut packet = Packet::new(flow, self.host, dst, header);
        packet.wire_bytes = self.header_bytes;
        packet.transport = self.transport;
        packet
    }

    /// Bandwidth-delay product: what fits into one `data_rtt` at the NIC's rate.
    pub fn bdp_bytes(&self) -> u64 {
        self.nic_rate.bytes_in(self.data_rtt)
    }
}

/// A host's own clock, for schemes that act on local time: it runs `drift_ppb` parts in 10^9 too fast and began
/// `offset_ps` ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Picoseconds ahead of true time when the run begins; negative when behind.
    pub offset_ps: i64,
    /// Parts in 10^9 by which it runs fast; negative when slow. Above -10^9.
    pub drift_ppb: i64,
}

impl Clock {
    /// What this clock shows at true time `now`, in picoseconds; it may be before zero.
    pub fn local_ps(self, now: Time) -> i64 {
        if self.drift_ppb == 0 {
            return i64::try_from(now.ps()).map_or(i64::MAX, |now| now.saturating_add(self.offset_ps));
        }
        let now = i128::from(now.ps());
        let drifted = now + now * i128::from(self.drift_ppb) / 1_000_000_000;
        i64::try_from(drifted + i128::from(self.offset_ps)).unwrap_or(i64::MAX)
    }

    /// The first true instant at which this clock shows at least `local_ps`.
    pub fn true_time(self, local_ps: i64) -> Time {
        if self.drift_ppb == 0 {
            return Time::from_ps(local_ps.saturating_sub(self.offset_ps).max(0) as u64);
        }
        let elapsed = (i128::from(local_ps) - i128::from(self.offset_ps)).max(0);
        let speed = 1_000_000_000 + i128::from(self.drift_ppb);
        let guess = (elapsed * 1_000_000_000 / speed) as u64;
        let mut time = guess.saturating_sub(2);
        while self.local_ps(Time::from_ps(time)) < local_ps {
            time += 1;
        }
        Time::from_ps(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_beneath_others_shows_the_classes_that_packets_go_to() {
        for paused_classes in 0..=u8::MAX {
            let gate = Gate { paused_classes, ..Gate::default() };
            for (beneath, class) in (0..8).flat_map(|beneath| (0..8).map(move |class| (beneath, class))) {
                assert_eq!(gate.beneath(beneath).open(class), gate.open((class + beneath).min(7)));
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn true_time_is_the_first_instant_at_which_the_clock_shows_it(
            offset_ps in -1_000_000_000i64..1_000_000_000,
            drift_ppb in proptest::prelude::prop_oneof![proptest::prelude::Just(0), -200_000i64..200_000],
            at in 2_000_000_000u64..10_000_000_000_000,
        ) {
            let clock = Clock { offset_ps, drift_ppb };
            let local = clock.local_ps(Time::from_ps(at));
            let first = clock.true_time(local);
            proptest::prop_assert!(first.ps() <= at && clock.local_ps(first) >= local);
            proptest::prop_assert!(clock.local_ps(first - Duration::from_ps(1)) < local);
        }
    }
}
