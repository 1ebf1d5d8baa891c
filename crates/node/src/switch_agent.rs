//! A transport's agent in a switch. It handles the transport's packets that ask switches to look at them, as RSVP's do
//! with the router alert option (RFC 2113, RFC 2205).
//!
//! All other packets of the transport are forwarded as usual. An agent decides where a flagged packet goes. It may
//! rewrite it, consume it, or send others, which join the queues of their ports like any packet. It is a state machine
//! without I/O, clock and deadlines: it checks whether an entry has expired only when it looks at the entry.

use std::sync::Arc;

use fabric::Routes;
use units::{PortId, Stream, SwitchId, Time};

use crate::{Packet, Port};

crate::save_behind!(dyn SwitchAgent);

/// A transport's part of a switch.
pub trait SwitchAgent: Send + crate::State {
    /// A packet flagged [`ROUTER_ALERT`](crate::packet::flags::ROUTER_ALERT) has arrived by `in_port`. Returns its
    /// output port, or `None` if it ends here. The agent may rewrite it, but not its size on the wire.
    fn handle(&mut self, cx: &mut AgentCx<'_>, in_port: PortId, packet: &mut Packet) -> Option<PortId>;

    /// A flagged packet that was to leave by `_port` has been lost here: there was no room for it, or the link is down.
    /// This is also called for packets that the agent sends in response, if they are lost too.
    fn lost(&mut self, _cx: &mut AgentCx<'_>, _port: PortId, _packet: &Packet) {}

    /// The switch uses other routing tables from now on.
    fn set_routes(&mut self, _cx: &mut AgentCx<'_>, _routes: &Arc<Routes>) {}

    /// The link at `port` has gone down or come up.
    fn set_up(&mut self, _cx: &mut AgentCx<'_>, _port: PortId, _up: bool) {}

    /// Counters for the result, by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The context of an agent's call: what it may read and write.
pub struct AgentCx<'a> {
    /// The time.
    pub now: Time,
    /// The switch.
    pub switch: SwitchId,
    /// Its ports.
    pub ports: &'a [Port],
    /// The switch's routing tables.
    pub routes: &'a Routes,
    /// The agent's own random stream.
    pub random: &'a mut Stream,
    pub(crate) made: &'a mut Vec<(PortId, Packet)>,
}

impl<'a> AgentCx<'a> {
    /// For tests of an agent alone: sent packets are pushed to `made`.
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
