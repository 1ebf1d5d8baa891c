//! What a flow control between neighbours is: what its `Config` can do, and what it is told of the network.

use std::sync::Arc;

use fabric::{Fabric, Tier};
use node::{Balancing, Header, Malformed, NicControl, Packet, QueueDiscipline};
use units::{Bytes, Duration, HostId, NodeId, PortId, Problem, Rate, SwitchId};

use crate::About;
use node::onward_path::Downstream;

/// What each mechanism's `Config` can do.
pub trait LinkScheme {
    /// What it says to neighbours; where it has several kinds of frames, the one that [`LinkScheme::parse_frame`] tries first.
    type Frame: Header;

    /// What it is and where it is described.
    const ABOUT: About;

    /// What the types of the configuration can't forbid. Keys are relative to its table.
    fn check(&self) -> Result<(), Problem>;

    /// Its part of a switch. An error's key is relative to its table.
    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<Box<dyn QueueDiscipline>, Problem>;

    /// Its part of a port of a host's NIC; none if hosts do not answer.
    fn nic_control(&self, view: &LinkView<'_>, host: HostId, port: PortId) -> Option<Box<dyn NicControl>>;

    /// Appends a frame to a neighbour as it travels.
    fn emit_frame(frame: &Packet, out: &mut Vec<u8>) {
        frame.header::<Self::Frame>().emit(out);
    }

    /// Reads a frame back into a packet whose other fields are there already; how many bytes it took. Any input may come from a socket:
    /// no panic.
    fn parse_frame(bytes: &[u8], frame: &mut Packet) -> Result<usize, Malformed> {
        let (header, taken) = Self::Frame::parse(bytes)?;
        frame.set_header(header);
        Ok(taken)
    }

    /// Whether ports can never wait for each other in a circle under it, whatever the routes; with `sharing`, even by queues that
    /// several congestion roots share because there were no more.
    fn deadlock_free(&self, _sharing: bool) -> bool {
        false
    }

    /// Whether it keeps packets by flow, and not by class.
    fn keeps_flows(&self) -> bool {
        false
    }

    /// The classes that it may hold back, as bits.
    fn held_classes(&self) -> u8;

    /// What it promises of the congestion roots that it names; none if it names none.
    fn promise(&self) -> Option<Promise> {
        None
    }
}

/// What a flow control that names congestion roots can be held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// A packet is held only by roots on its own onward path (Pyrrha, Theorem 3.1).
    pub on_path: bool,
    /// A port never has more isolation queues than there are roots.
    pub queue_a_root: bool,
}

/// What a flow control is told of the network when it is built.
pub struct LinkView<'a> {
    /// Nodes and links.
    pub fabric: &'a Arc<Fabric>,
    /// How switches will choose the paths of packets.
    pub downstream: &'a Downstream,
    /// How each transport's packets choose among equal paths, by the packet's `transport`.
    pub balancing: &'a [Balancing],
    /// Bytes of a full packet.
    pub mtu_bytes: u64,
    /// What a host adds to the delay of its link, each way.
    pub host_delay: Duration,
    /// What a NIC has room for of what its host does not take in fast enough.
    pub intake_buffer: Bytes,
    /// A switch's memory; with memory for each port, that of a port.
    pub buffer: Bytes,
}

impl LinkView<'_> {
    /// Bytes that come in at a node's port between its decision to pause and the silence that follows: what is in flight both
    /// ways, a packet that each end has begun, and the frame (IEEE 802.1Qbb annex O, less the internal delays of interfaces,
    /// which hops here do not have).
    pub fn reaction_bytes(&self, node: NodeId, port: PortId) -> u64 {
        let rate = self.rate(node, port);
        let begun = rate.transmit(2 * self.mtu_bytes + u64::from(node::link::FRAME_BYTES));
        rate.bytes_in(self.round_trip(node, port) + begun)
    }

    /// One-hop bandwidth-delay product of a node's port: the link's rate times the time to the neighbour and back.
    pub fn hop_bdp_bytes(&self, node: NodeId, port: PortId) -> u64 {
        self.rate(node, port).bytes_in(self.round_trip(node, port))
    }

    /// The sum of something over all ports of a host.
    pub fn of_ports(&self, host: HostId, of: impl Fn(NodeId, PortId) -> u64) -> u64 {
        let ports = (0..self.fabric.uplinks(host).len()).map(PortId::from);
        ports.map(|port| of(self.fabric.host_node(host), port)).sum()
    }

    /// What each port of a switch sends, by the port by which it came, while the neighbour there is told and answers: the
    /// rate of the link out times the round trip of the link in. By [`Shares::bytes`].
    pub fn shares(&self, switch: SwitchId) -> Shares {
        let node = self.fabric.switch_node(switch);
        let ports = || (0..self.fabric.ports[node.index()].len()).map(PortId::from);
        let out = |out| self.rate(node, out);
        let bytes = ports().flat_map(|into| ports().map(move |port| out(port).bytes_in(self.round_trip(node, into))));
        Shares { ports: ports().len(), bytes: bytes.collect() }
    }

    /// The rate of a port's link.
    pub fn rate(&self, node: NodeId, port: PortId) -> Rate {
        self.fabric.link(self.fabric.ports[node.index()][port.index()]).rate
    }

    /// From a node to its neighbour at a port and back, without transmission: BFC's HRTT.
    pub fn round_trip(&self, node: NodeId, port: PortId) -> Duration {
        let there = self.fabric.ports[node.index()][port.index()];
        let way = |id| {
            let link = self.fabric.link(id);
            let at_host = matches!(link.tier, Tier::FromHost | Tier::ToHost);
            link.propagation + self.fabric.delay_after(id) + if at_host { self.host_delay } else { Duration::ZERO }
        };
        way(there) + way(Fabric::reverse(there))
    }
}

/// A switch's one-hop bandwidth-delay products, for each port in and out.
pub struct Shares {
    ports: usize,
    bytes: Vec<u64>,
}

impl Shares {
    /// What `out` sends in the round trip of the link at `into`.
    #[inline]
    pub fn bytes(&self, into: PortId, out: PortId) -> u64 {
        self.bytes[into.index() * self.ports + out.index()]
    }
}

/// Classes as bits.
pub fn class_mask(classes: &[u8]) -> u8 {
    classes.iter().fold(0, |mask, class| mask | 1 << class)
}

/// Whether `classes` are classes, each named once, and not none at all, which would have the effect that `none` says.
pub fn check_classes(classes: &[u8], none: &str) -> Result<(), Problem> {
    let twice = |class: &u8| classes.iter().filter(|other| *other == class).count() > 1;
    if let Some(class) = classes.iter().find(|class| **class > 7 || twice(class)) {
        return Err(Problem::new("classes", format!("{class} is not one of 0 to 7, each once")));
    }
    if classes.is_empty() {
        return Err(Problem::new("classes", none));
    }
    Ok(())
}
