//! The contract of a host: a state machine that the driver pulls packets from.
//!
//! The driver (simulator or socket loop) hands in events and the time. It pulls one packet at a time, only when the NIC
//! can send one. Pulling is backpressure: an endpoint never fills its NIC's queue, it chooses the next packet at the
//! last moment, and a paused flow does not block others.
//!
//! An endpoint does no I/O, reads no clock, starts no threads, and draws random numbers only from [`Cx::random`].

use std::sync::Arc;

use fabric::Routes;
use units::{Duration, FlowId, HostId, Rate, Stream, Time};

use crate::packet::CLASSES;
use crate::{FlowState, Header, NicControl, Packet, State, Telemetry};

crate::save_behind!(dyn Endpoint);

/// A scheme's part in a host: sender and receiver of every flow of that host.
pub trait Endpoint: Send + State {
    /// Handles an event at time `cx.now`.
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>);

    /// The next packet to send, or `None` for now. Called only when the NIC can take a packet: after the previous
    /// packet has left, after every [`Endpoint::handle`], and when the gate opens.
    ///
    /// Never returns a packet of a class that `cx.gate` has closed.
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;

    /// When this endpoint wants [`Input::Deadline`]. The driver reads it after each call of the other two methods. A
    /// deadline that is not later than now is handed in at once.
    fn poll_at(&self) -> PollAt;

    /// The topology has changed; these are the new routes. Hosts hear of it at the same time as switches.
    fn set_routes(&mut self, _cx: &mut Cx<'_>, _routes: &Arc<Routes>) {}

    /// Telemetry gathered by the packet that is handed in next. Called only for packets flagged
    /// [`TELEMETRY`](crate::packet::flags::TELEMETRY).
    fn gathered(&mut self, _telemetry: &Telemetry) {}

    /// Initial telemetry of an outgoing packet with that flag. Called once for each packet, when its first bit leaves.
    fn carries(&mut self, _packet: &Packet) -> Telemetry {
        Telemetry::default()
    }

    /// Says what this host has of a flow now, as its sender or its receiver: window, rate, tokens (`measure.flows`).
    /// Nothing for a flow that it doesn't know, or knows no more. Who has nothing to say leaves it out.
    fn state(&self, _flow: FlowId, _say: &mut FlowState) {}

    /// A message has come whole here, in a time that was skipped since it is like one before. Only a transport that
    /// remembers such flows when they have ended does anything.
    fn came_again(&mut self, _flow: FlowId) {}

    /// Counters for the result, by name: retransmissions by cause, control packets by kind.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// An event at an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// An application sends a message from this host.
    Send(&'a Message),
    /// A packet for this host has arrived completely.
    Packet(&'a Packet),
    /// The time named by [`Endpoint::poll_at`] has come. May also come early: check `cx.now`.
    Deadline,
}

/// A message that an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Message {
    /// The message's flow id in the run.
    pub flow: FlowId,
    /// Source.
    pub src: HostId,
    /// Destination.
    pub dst: HostId,
    /// Length in bytes, at least 1.
    pub bytes: u64,
    /// Its traffic class.
    pub class: u16,
    /// Transmission time of a full packet at the rates that AQs on its path guarantee its entity: the least virtual
    /// delay of its packets. Zero without AQs.
    pub virtual_serialisation: Duration,
}

/// When an endpoint next wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PollAt {
    /// At this time, even if nothing happens before.
    At(Time),
    /// Only when a packet or message arrives.
    OnArrival,
}

impl PollAt {
    /// The time; [`Time::MAX`] for never.
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

/// What an endpoint reports to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// At the receiver: every byte of the flow has arrived. Reported once for each flow.
    Delivered {
        /// The flow.
        flow: FlowId,
    },
    /// At the sender: the receiver is known to have every byte. Reported once for each flow.
    Completed {
        /// The flow.
        flow: FlowId,
        /// Data packets sent for the flow, retransmissions included.
        sent_packets: u64,
        /// Retransmissions among them.
        resent_packets: u64,
    },
    /// At the sender: the network refused the flow (a scheme with admission control).
    Rejected {
        /// The flow.
        flow: FlowId,
    },
    /// At the sender: the transport has given the flow up.
    Failed {
        /// The flow.
        flow: FlowId,
        /// The reason.
        reason: &'static str,
    },
    /// At either end: a measurement of the flow, for the result. It has no effect on the run.
    Measured {
        /// The flow.
        flow: FlowId,
        /// Name of the measurement, ending in its unit.
        what: &'static str,
        /// The value.
        value: u64,
    },
}

impl Event {
    /// The reason of a transport that only knows that no answer came in time. The run adds what became of the packets.
    pub const NO_ANSWER: &str = "no answer";
}

/// The context of an endpoint's call: what it may read and write.
pub struct Cx<'a> {
    /// Time by the driver's clock: simulated, or real since the start of the run.
    pub now: Time,
    /// Random stream of this host and scheme.
    pub random: &'a mut Stream,
    /// What flow control lets through.
    pub gate: Gate<'a>,
    /// Events for the application, in order.
    pub events: &'a mut Vec<Event>,
}

/// The traffic that the host may send now under hop-by-hop flow control.
#[derive(Clone, Copy, Default)]
pub struct Gate<'a> {
    /// Classes that the switch has paused, as bits.
    pub paused_classes: u8,
    transport: u8,
    /// By how much the endpoint's classes are shifted down.
    beneath: u8,
    nic: Option<&'a dyn NicControl>,
}

impl<'a> Gate<'a> {
    /// The gate of a NIC with this flow control, for the endpoint of transport index `transport`.
    #[inline]
    pub fn new(nic: Option<&'a dyn NicControl>, transport: u8) -> Gate<'a> {
        Gate { paused_classes: nic.map_or(0, |nic| nic.paused_classes()), transport, beneath: 0, nic }
    }

    /// The gate as seen by an endpoint whose classes are shifted down by `classes`: its class 0 is that class. Classes
    /// beyond the last map to the last.
    #[inline]
    pub const fn beneath(self, classes: u8) -> Gate<'a> {
        Gate { paused_classes: (self.paused_classes as i8 >> classes) as u8, beneath: self.beneath + classes, ..self }
    }

    /// Whether a packet of `class` may be sent.
    #[inline]
    pub const fn open(self, class: u8) -> bool {
        self.paused_classes >> class & 1 == 0
    }

    /// Whether packets of a flow to `dst` of `class` without a flow label may be sent. If an endpoint does not ask, the
    /// NIC holds its packets in a queue for each flow.
    #[inline]
    pub fn lets(self, flow: FlowId, dst: HostId, class: u8) -> bool {
        let class = (class + self.beneath).min(CLASSES as u8 - 1);
        self.nic.is_none_or(|nic| nic.lets(self.transport, flow, dst, class, 0))
    }

    /// A number that changes whenever a held flow may send again: the sign to ask again.
    #[inline]
    pub fn epoch(self) -> u32 {
        self.nic.map_or(0, |nic| nic.epoch())
    }
}

/// What an endpoint knows of its host and network when it is built. All of it follows from the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointParams {
    /// The host.
    pub host: HostId,
    /// Number of hosts in the network.
    pub hosts: u32,
    /// Rate of the host's link; the total rate if it has several.
    pub nic_rate: Rate,
    /// Longest unloaded round trip over all pairs of hosts: a full data packet and a control packet back.
    pub data_rtt: Duration,
    /// The same by the number of switches between the hosts, fewest first.
    pub data_rtts: Vec<(u8, Duration)>,
    /// Longest unloaded round trip over all pairs of hosts, with a control packet each way.
    pub control_rtt: Duration,
    /// Bytes of a full data packet, headers included.
    pub mtu_bytes: u16,
    /// Bytes of headers in a data packet, and of a whole control packet.
    pub header_bytes: u16,
    /// The host's clock relative to true time.
    pub clock: Clock,
    /// The index of the transport, which its packets carry in `transport`.
    pub transport: u8,
}

impl EndpointParams {
    /// Message bytes in a full data packet.
    pub const fn payload_max(&self) -> u16 {
        self.mtu_bytes - self.header_bytes
    }

    /// A packet that carries `payload_bytes` of a message behind the headers. It is of class 0 until that is set, and
    /// has no flags.
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

    /// Bandwidth-delay product: bytes that the NIC sends in one `data_rtt`.
    pub fn bdp_bytes(&self) -> u64 {
        self.nic_rate.bytes_in(self.data_rtt)
    }
}

/// A host's clock, for schemes that act on local time. It starts `offset_ps` ahead and runs fast by `drift_ppb` parts
/// in 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Picoseconds ahead of true time at the start; negative when behind.
    pub offset_ps: i64,
    /// Parts in 10^9 by which it runs fast; negative when slow. Greater than -10^9.
    pub drift_ppb: i64,
}

impl Clock {
    /// Local time at true time `now`, in picoseconds. May be negative.
    pub fn local_ps(self, now: Time) -> i64 {
        if self.drift_ppb == 0 {
            return i64::try_from(now.ps()).map_or(i64::MAX, |now| now.saturating_add(self.offset_ps));
        }
        let now = i128::from(now.ps());
        let drifted = now + now * i128::from(self.drift_ppb) / 1_000_000_000;
        i64::try_from(drifted + i128::from(self.offset_ps)).unwrap_or(i64::MAX)
    }

    /// The first true time at which the clock shows at least `local_ps`.
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
mod tests;
