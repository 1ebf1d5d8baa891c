//! The contract of a hop-by-hop flow control, and the view of the network that it is given.

use std::sync::Arc;

use fabric::{Fabric, Tier};
use node::{Balancing, Buffer, NicControl, QueueDiscipline};
use units::{Bytes, Duration, HostId, NodeId, PortId, Problem, Rate, SwitchId};

use crate::{About, Compared, HeaderFormat};
use node::onward_path::Downstream;

/// A flow control. Each mechanism's `Config` implements this.
pub trait LinkScheme {
    /// Title, source and summary.
    fn about(&self) -> About;

    /// How its frames to neighbours travel as bytes.
    fn frames(&self) -> &'static dyn HeaderFormat;

    /// How `clearway compare --all` runs it.
    fn compared(&self) -> Compared;

    /// Checks what the types of the configuration can't express. Keys of errors are relative to the mechanism's table.
    fn check(&self) -> Result<(), Problem>;

    /// Settings that have no effect beside its others: for each, its key and what gives it one. They are no errors.
    fn advice(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// What a switch must be like for it. Keys are relative to its table.
    fn check_on(&self, _view: &LinkView<'_>, _switch: SwitchId) -> Result<(), Problem> {
        Ok(())
    }

    /// A setting with which it works on a switch, but hardly as it is meant. The key is relative to its table.
    fn doubt(&self, _view: &LinkView<'_>, _switch: SwitchId) -> Option<Problem> {
        None
    }

    /// The memory of a switch, if it has settings of its own for that; otherwise it is as `switch.buffer` says.
    fn memory(&self, _view: &LinkView<'_>, _switch: SwitchId) -> Option<Bytes> {
        None
    }

    /// The largest of these.
    fn memory_max(&self) -> Option<Bytes> {
        None
    }

    /// Its part of a switch that it has been checked on.
    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Box<dyn QueueDiscipline>;

    /// The mechanism's part in a port of a host's NIC; `None` if hosts take no part.
    fn nic_control(&self, view: &LinkView<'_>, host: HostId, port: PortId) -> Option<Box<dyn NicControl>>;

    /// Whether the mechanism rules out circular waits among ports, whatever the routes. `_sharing` tells whether
    /// several congestion roots had to share an isolation queue because none was free.
    fn deadlock_free(&self, _sharing: bool) -> bool {
        false
    }

    /// Whether it queues packets by flow instead of by class.
    fn keeps_flows(&self) -> bool {
        false
    }

    /// Whether it sets memory aside for each port, so that a switch must not refuse a packet while it has any.
    fn reserves_buffer(&self) -> bool {
        false
    }

    /// Whether it counts what a switch holds as a whole, so that ports share all memory for the classes that it keeps
    /// from losses, even where memory is divided by port ([`node::link::Share`]).
    fn pools_buffer(&self) -> bool {
        false
    }

    /// Whether it marks packets by settings of its own, instead of `switch.marking`.
    fn marks(&self) -> bool {
        false
    }

    /// Whether it divides memory and serves queues by settings of its own, so that no class has them for itself.
    fn schedules(&self) -> bool {
        false
    }

    /// Whether its parts of switches are to be woken at times of their own ([`QueueDiscipline::poll_at`]).
    fn keeps_time(&self) -> bool {
        false
    }

    /// Whether its frames may be lost, because what they say ends by itself and is said again. Otherwise links that
    /// lose packets lose none of its frames.
    fn bears_lost_frames(&self) -> bool {
        false
    }

    /// The classes that it may pause, as a bit mask.
    fn held_classes(&self) -> u8;

    /// What it promises about the congestion roots that it names; `None` if it names none.
    fn promise(&self) -> Option<Promise> {
        None
    }
}

/// Promises of a flow control that names congestion roots. The audit checks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// A packet is held only by roots on its own onward path (Pyrrha, Theorem 3.1).
    pub on_path: bool,
    /// A port never has more isolation queues than there are congestion roots.
    pub queue_a_root: bool,
}

/// The network, as a flow control sees it when it is built.
pub struct LinkView<'a> {
    /// Nodes and links.
    pub fabric: &'a Arc<Fabric>,
    /// How switches choose the paths of packets.
    pub downstream: &'a Downstream,
    /// By the packet's `transport`: how its packets are balanced over equal paths.
    pub balancing: &'a [Balancing],
    /// Bytes of a full-size packet.
    pub mtu_bytes: u64,
    /// Processing time that a host adds to the delay of its link, each way.
    pub host_delay: Duration,
    /// Buffer of a NIC for packets that its host has not taken in yet.
    pub intake_buffer: Bytes,
    /// Memory of each switch.
    pub buffer: Buffer,
}

impl LinkView<'_> {
    /// Memory of a switch. Where it is divided by port, the sum over its ports: a flow control that counts what a
    /// switch holds ([`LinkScheme::pools_buffer`]) counts it in one pool.
    pub fn memory_bytes(&self, switch: NodeId) -> u64 {
        match self.buffer {
            Buffer::Shared { bytes, .. } => bytes.get(),
            Buffer::PerPort { bytes } => bytes.get().saturating_mul(self.fabric.ports[switch.index()].len() as u64),
        }
    }

    /// Bytes that still arrive at a port after the node decides to pause its neighbour: what is in flight both ways,
    /// one packet already begun at each end, and the pause frame (IEEE 802.1Qbb annex O, without the internal delays of
    /// interfaces, which are zero here).
    pub fn reaction_bytes(&self, node: NodeId, port: PortId) -> u64 {
        let rate = self.rate(node, port);
        let begun = rate.transmit(2 * self.mtu_bytes + u64::from(node::link::FRAME_BYTES));
        rate.bytes_in(self.round_trip(node, port) + begun)
    }

    /// One-hop bandwidth-delay product of a port: the link's rate times the round trip to the neighbour.
    pub fn hop_bdp_bytes(&self, node: NodeId, port: PortId) -> u64 {
        self.rate(node, port).bytes_in(self.round_trip(node, port))
    }

    /// Sum of `of` over all ports of a host.
    pub fn of_ports(&self, host: HostId, of: impl Fn(NodeId, PortId) -> u64) -> u64 {
        let ports = (0..self.fabric.uplinks(host).len()).map(PortId::from);
        ports.map(|port| of(self.fabric.host_node(host), port)).sum()
    }

    /// One-hop bandwidth-delay products of a switch for each pair of ports: the rate of the outgoing link times the
    /// round trip of the incoming link. Read them with [`Shares::bytes`].
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

    /// Round-trip delay between a node and its neighbour at a port, without transmission times (BFC's HRTT).
    pub fn round_trip(&self, node: NodeId, port: PortId) -> Duration {
        let there = self.fabric.ports[node.index()][port.index()];
        let way = |id| {
            let link = self.fabric.link(id);
            let at_host = matches!(link.tier, Tier::FromHost | Tier::ToHost);
            self.fabric.delay(id) + if at_host { self.host_delay } else { Duration::ZERO }
        };
        way(there) + way(Fabric::reverse(there))
    }
}

/// One-hop bandwidth-delay products of a switch, for each pair of incoming and outgoing port.
pub struct Shares {
    ports: usize,
    bytes: Vec<u64>,
}

impl Shares {
    /// Bytes that port `out` sends in one round trip of the link at port `into`.
    #[inline]
    pub fn bytes(&self, into: PortId, out: PortId) -> u64 {
        self.bytes[into.index() * self.ports + out.index()]
    }
}

/// A bit mask of `classes`.
pub fn class_mask(classes: &[u8]) -> u8 {
    classes.iter().fold(0, |mask, class| mask | 1 << class)
}

/// Checks that `classes` names valid classes, each once, and at least one. `none` says what an empty list would mean.
pub fn check_classes(classes: &[u8], none: &str) -> Result<(), Problem> {
    let twice = |class: &u8| classes.iter().filter(|other| *other == class).count() > 1;
    if let Some(class) = classes.iter().find(|class| **class > 7 || twice(class)) {
        return Err(Problem::new("classes", format!("{class} is not a class from 0 to 7, or is named twice")));
    }
    if classes.is_empty() {
        return Err(Problem::new("classes", none));
    }
    Ok(())
}
