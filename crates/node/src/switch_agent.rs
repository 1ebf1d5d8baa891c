//! A transport's part of a switch: what handles those of its packets that ask switches to look at them, as RSVP's do with the
//! router alert option (RFC 2113, RFC 2205).
//!
//! All other packets of the transport pass as anybody's do. An agent decides where such a packet goes, may rewrite it, end it
//! here, or send others; those join the queues of their ports like any packet. It is a state machine like the rest of the house, and has no deadlines: what it keeps runs out by being looked
//! at too late.

use std::sync::Arc;

use fabric::Routes;
use units::{PortId, Stream, SwitchId, Time};

use crate::{Packet, Port};

/// A transport's part of a switch.
pub trait SwitchAgent: Send {
    /// A packet flagged [`ROUTER_ALERT`](crate::packet::flags::ROUTER_ALERT) has come in by `in_port`. Where it goes on, or none if
    /// it ends here. It may be rewritten, but not in its size on the wire.
    fn handle(&mut self, cx: &mut AgentCx<'_>, in_port: PortId, packet: &mut Packet) -> Option<PortId>;

    /// Such a packet was to leave by `port` and has been lost here: there was no room for it, or the link is down. One that is sent in
    /// answer and lost too is told of as well.
    fn lost(&mut self, _cx: &mut AgentCx<'_>, _port: PortId, _packet: &Packet) {}

    /// The switch forwards by other tables from now on.
    fn set_routes(&mut self, _cx: &mut AgentCx<'_>, _routes: &Arc<Routes>) {}

    /// The link at `port` has gone down or come up.
    fn set_up(&mut self, _cx: &mut AgentCx<'_>, _port: PortId, _up: bool) {}

    /// What it counted, by name, for the result.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What an agent may look at and touch while it runs.
pub struct AgentCx<'a> {
    /// The time.
    pub now: Time,
    /// The switch.
    pub switch: SwitchId,
    /// Its ports.
    pub ports: &'a [Port],
    /// The tables that it forwards by.
    pub routes: &'a Routes,
    /// This agent's own random stream.
    pub random: &'a mut Stream,
    pub(crate) made: &'a mut Vec<(PortId, Packet)>,
}

impl<'a> AgentCx<'a> {
    /// For scenes of an agent alone: what it sends is pushed to `made`.
    pub fn new(
        now: Time,
        switch: SwitchId,
        ports: &'a [Port],
        routes: &'a Routes,
        random: &'a mut Stream,
        made: &'a mut Vec<(PortId, Packet)>,
    ) -> AgentCx<'a> {
        AgentCx { now, switch, ports, routes, random, made }
    }

    /// Sends a packet by `port`.
    pub fn send(&mut self, port: PortId, packet: Packet) {
        self.made.push((port, packet));
    }
}
