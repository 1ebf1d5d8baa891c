//! Credit-based flow control of Ultra Ethernet's link layer (CBFC; UE specification 1.0, section 5.2): a sender may
//! send only what the receiver of the link has promised room for.
//!
//! Classes are grouped into virtual channels. For each channel, the receiver of a link has room for a number of
//! *credits*, of a fixed number of bytes each; a packet takes its bytes, rounded up to credits. The sender counts the
//! credits that it has consumed, the receiver those that it has freed, since a packet has left its buffer. Both
//! counters have 15 bits and go round. The receiver tells its counter in frames (CF_Update), and the sender sends while
//! consumed less freed leaves room for a full-size packet. So no packet that has credits is ever lost because memory is
//! full, and a link whose credits do not cover its round trip carries as many bytes a round trip as it has credits for.
//!
//! The credits of a packet that is lost on the link, or that the switch discards, would be missing for ever. So the
//! sender reports what it has consumed (CC_Update) when it has no credits left. Since a link keeps its order, packets
//! that the receiver has not seen by then are lost, and it frees their credits.
//!
//! Decided here, where public descriptions leave it open:
//!
//! - *One virtual channel for all classes but 0*, unless `vcs` says otherwise: each takes memory for a round trip of
//!   every link. Within a channel the port's scheduler chooses among classes as always.
//! - *A sender needs the credits of a full-size packet* to send any packet: hardware that chooses a queue does not know
//!   the length of what it will read.
//! - *Senders have all credits when a run begins.* When a link comes up again, its sender has none until the receiver
//!   says how much is free: packets from before the failure may still wait there.
//! - *When CC_Updates are sent*: behind a packet that leaves no credits for another, if half of them were consumed
//!   since the last. The specification has them periodic. Frames are never lost here, so this is enough, and it takes
//!   no bandwidth from a busy link.
//!
//! Packets of classes without a channel, and packets that a switch creates, use the memory that is left beside all
//! credits, and are lost if there is none. Deliberately absent: the negotiation by LLDP, adding and removing channels
//! while a link works, and the spacing of control ordered sets.

mod channels;
mod frame;
mod nic;
mod switch;

use node::packet::CLASSES;
use node::{NicControl, QueueDiscipline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, HostId, NodeId, PortId, Problem, SwitchId};

use contract::link_control::{LinkScheme, LinkView, check_classes, class_mask};
use contract::{About, Compared, HeaderFormat, headers_of};

use channels::{Channels, Params};
pub use frame::{Frame, VCS_MAX};

/// Configuration of CBFC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The classes of each virtual channel. Packets of other classes need no credits, and are dropped when memory is
    /// full. Default: one channel of the classes 1 to 7.
    pub vcs: Vec<Vec<u8>>,
    /// Bytes for which the receiver of each link has room in each virtual channel. Default: enough to keep the link
    /// busy, that is its round trip in full-size packets, three more, and `update`. If the switch's buffer is too small
    /// for that at all ports, each has the same share of it, and links carry less than their rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits: Option<Bytes>,
    /// Bytes of one credit, 32 to 2048. Default: 64B.
    pub credit_size: Bytes,
    /// Bytes that a receiver frees in a virtual channel before it sends an update. Default: 0, an update for each
    /// packet.
    pub update: Bytes,
}

impl Default for Config {
    fn default() -> Config {
        Config { vcs: vec![(1..CLASSES as u8).collect()], credits: None, credit_size: Bytes(64), update: Bytes(0) }
    }
}

/// Most credits of a channel: half of what a counter of 15 bits tells apart.
const CREDITS_MAX: u64 = 1 << 14;

impl LinkScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Credit-based flow control (CBFC)",
            source: "Ultra Ethernet 1.0, section 5.2",
            summary: "A sender has credits for the room at the other end of its link, in each virtual channel, and \
                      sends no more than these.",
            needs: "switches: memory for a round trip of each link and virtual channel",
        }
    }

    fn compared(&self) -> Compared {
        Compared::With("rdma")
    }

    fn frames(&self) -> &'static dyn HeaderFormat {
        headers_of::<Frame>()
    }

    fn check(&self) -> Result<(), Problem> {
        if self.vcs.is_empty() {
            return Err(Problem::new("vcs", "no virtual channel would have credits; name one, such as [[1]]"));
        }
        for (vc, classes) in self.vcs.iter().enumerate() {
            let none = "a virtual channel without classes carries nothing; name one, such as [1]";
            let key = format!("vcs[{vc}]");
            check_classes(classes, none).map_err(|problem| Problem::new(&key, problem.message))?;
            let earlier = self.vcs[..vc].iter().position(|other| other.iter().any(|class| classes.contains(class)));
            if let Some(earlier) = earlier {
                let message = format!("has a class that vcs[{earlier}] has too; a class is in one virtual channel");
                return Err(Problem::new(&key, message));
            }
        }
        if !(32..=2_048).contains(&self.credit_size.get()) {
            return Err(Problem::new("credit_size", format!("{} is not from 32B to 2048B", self.credit_size)));
        }
        if self.update.get() > 1_000_000 {
            return Err(Problem::new("update", format!("{} is more than 1MB, and others wait for it", self.update)));
        }
        Ok(())
    }

    fn check_on(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<(), Problem> {
        let (node, params) = (view.fabric.switch_node(switch), self.params(view));
        let size = self.credit_size.get();
        let name = &view.fabric.names[node.index()];
        let least = u64::from(params.full_packet) + params.update;
        for port in self.ports(view, node) {
            let credits = self.credits_into(view, node, port);
            if credits < least {
                let (given, least, update) = (Bytes(credits * size), Bytes(least * size), self.update);
                let message = format!(
                    "a virtual channel of {name} has {given}: fewer than a full-size packet of {}B and {update} to be \
                     told of; write at least {least}, or a larger switch.buffer than {}",
                    view.mtu_bytes,
                    Bytes(view.memory_bytes(node))
                );
                return Err(Problem::new("credits", message));
            }
            if credits > CREDITS_MAX {
                let message = format!(
                    "{} give a virtual channel {credits} credits, and counters of 15 bits tell {CREDITS_MAX} apart; \
                     write larger ones, such as {}",
                    self.credit_size,
                    Bytes((credits * size).div_ceil(CREDITS_MAX).next_power_of_two())
                );
                return Err(Problem::new("credit_size", message));
            }
        }
        let needed = self.reserved_bytes(view, node).saturating_add(self.beside_bytes(view, node));
        if needed > view.memory_bytes(node) {
            let message = format!(
                "{name} needs {} for the credits of its {} ports and {} virtual channels, and a packet's room at each \
                 port beside them; it has a buffer of {}: write a switch.buffer of at least {}",
                Bytes(self.reserved_bytes(view, node)),
                self.ports(view, node).count(),
                self.vcs.len(),
                Bytes(view.memory_bytes(node)),
                Bytes(needed)
            );
            return Err(Problem::new("credits", message));
        }
        Ok(())
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Box<dyn QueueDiscipline> {
        let node = view.fabric.switch_node(switch);
        let channels = self.ports(view, node).map(|port| self.channels(view, node, port)).collect();
        let left = view.memory_bytes(node).saturating_sub(self.reserved_bytes(view, node));
        Box::new(switch::SwitchPart::new(channels, self.held_classes(), left))
    }

    fn nic_control(&self, view: &LinkView<'_>, host: HostId, port: PortId) -> Option<Box<dyn NicControl>> {
        Some(Box::new(nic::NicPart::new(self.channels(view, view.fabric.host_node(host), port))))
    }

    fn held_classes(&self) -> u8 {
        self.vcs.iter().fold(0, |mask, classes| mask | class_mask(classes))
    }

    fn reserves_buffer(&self) -> bool {
        true
    }

    fn pools_buffer(&self) -> bool {
        true
    }
}

impl Config {
    fn params(&self, view: &LinkView<'_>) -> Params {
        let mut vc_of = [None; CLASSES];
        for (vc, classes) in (0..).zip(&self.vcs) {
            classes.iter().for_each(|&class| vc_of[usize::from(class)] = Some(vc));
        }
        let size = self.credit_size.get();
        let full_packet = view.mtu_bytes.div_ceil(size) as u16;
        Params { vc_of, credit_bytes: size as u32, full_packet, update: self.update.get().div_ceil(size) }
    }

    fn ports(&self, view: &LinkView<'_>, node: NodeId) -> impl Iterator<Item = PortId> + use<> {
        (0..view.fabric.ports[node.index()].len()).map(PortId::from)
    }

    /// Credits of a virtual channel with which a link is never idle, in either direction.
    fn busy_credits(&self, view: &LinkView<'_>, node: NodeId, port: PortId) -> u64 {
        // Before a packet's credits come back, the packet itself has to leave, and the update waits for another packet
        // that has begun. Meanwhile a third packet needs room.
        let params = self.params(view);
        let round_trip = view.hop_bdp_bytes(node, port) + u64::from(frame::UPDATE_BYTES);
        (round_trip.div_ceil(view.mtu_bytes) + 3) * u64::from(params.full_packet) + params.update
    }

    /// Credits that a node gives its neighbour at a port in each virtual channel.
    fn credits_into(&self, view: &LinkView<'_>, node: NodeId, port: PortId) -> u64 {
        let size = self.credit_size.get();
        let busy = |port| self.busy_credits(view, node, port);
        match self.credits {
            Some(bytes) => bytes.get() / size,
            None if view.fabric.as_switch(node).is_none() => busy(port),
            None => {
                let all: u64 = self.ports(view, node).map(busy).sum::<u64>() * self.vcs.len() as u64;
                let room = view.memory_bytes(node).saturating_sub(self.beside_bytes(view, node)) / size;
                if all <= room {
                    busy(port)
                } else {
                    (u128::from(busy(port)) * u128::from(room) / u128::from(all)) as u64
                }
            }
        }
    }

    /// Memory of a switch that stands behind the credits of its neighbours.
    fn reserved_bytes(&self, view: &LinkView<'_>, node: NodeId) -> u64 {
        let credits = self.ports(view, node).map(|port| self.credits_into(view, node, port));
        let credits = credits.fold(0, u64::saturating_add);
        credits.saturating_mul(self.vcs.len() as u64).saturating_mul(self.credit_size.get())
    }

    /// Memory that a switch keeps for what has no credits, such as acknowledgements in class 0: a packet at each port.
    fn beside_bytes(&self, view: &LinkView<'_>, node: NodeId) -> u64 {
        self.ports(view, node).count() as u64 * view.mtu_bytes
    }

    fn channels(&self, view: &LinkView<'_>, node: NodeId, port: PortId) -> Channels {
        let link = view.fabric.link(view.fabric.ports[node.index()][port.index()]);
        let out = self.credits_into(view, link.to, link.to_port);
        let into = self.credits_into(view, node, port);
        Channels::new(self.params(view), [out, into].map(|credits| credits.min(CREDITS_MAX) as u16), self.vcs.len())
    }
}
