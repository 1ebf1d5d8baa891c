//! The onward path of a packet, as the switches will choose it (Pyrrha, sections 4.2 and E.1).
//!
//! A node knows the wiring of all switches, their forwarding tables, their hash functions and seeds. So it computes
//! every hop to come with the same functions that the switches use, or reads the hops from the packet's source route.
//! Where switches balance by their own queues or at random, only the hops common to all paths are known: always the
//! last port, which is the root of an incast.
//!
//! New routes change every path from then on (appendix A's re-routing table). The path is computed for every packet
//! while any root is known. So it is an iterator that allocates nothing and stops as soon as its user does.

use std::sync::Arc;

use crate::balance::{hashed_choice, switch_seed};
use crate::packet::flags;
use crate::{Balancing, Packet};
use fabric::{Fabric, Routes};
use units::{NodeId, PortId, SwitchId};

/// An egress port on a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The switch.
    pub switch: SwitchId,
    /// Its port.
    pub port: PortId,
    /// Hops from the node that computes the path to this switch: 0 for the node itself, 1 for its neighbour.
    pub distance: u32,
}

/// A node's knowledge of all other nodes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Downstream {
    peers: Arc<Peers>,
    routes: Arc<Routes>,
}

/// The part that never changes during a run.
#[derive(Debug)]
struct Peers {
    hosts: u32,
    /// By node: index of its first port in `neighbours`. One more entry at the end.
    first_port: Vec<u32>,
    /// The node at the other end of each port, node by node.
    neighbours: Vec<NodeId>,
    /// By transport: how switches choose.
    balancing: Vec<Balancing>,
    /// Seed of the run, from which the switches' seeds follow.
    seed: u64,
}

impl Downstream {
    /// Knowledge of a fabric with this balancing of each transport, in a run with this `seed`.
    pub fn new(fabric: &Fabric, routes: Arc<Routes>, balancing: Vec<Balancing>, seed: u64) -> Downstream {
        let mut first_port = vec![0];
        let mut neighbours = Vec::with_capacity(fabric.links.len());
        for ports in &fabric.ports {
            neighbours.extend(ports.iter().map(|&link| fabric.link(link).to));
            first_port.push(neighbours.len() as u32);
        }
        Downstream { peers: Arc::new(Peers { hosts: fabric.hosts, first_port, neighbours, balancing, seed }), routes }
    }

    /// Switches use these routing tables from now on.
    pub fn set_routes(&mut self, routes: Arc<Routes>) {
        self.routes = routes;
    }

    /// The certain hops of a packet that leaves the node `from` by its port `out`, nearest first: that port itself if
    /// the node is a switch, then ports of later switches. `packet.hops` already counts `from`.
    ///
    /// It ends early if a source route names no valid port or a table has no path. It always ends: by the tables each
    /// hop is nearer to the destination, and a source route has at most eight ports.
    #[inline]
    pub fn onward<'a>(&'a self, from: NodeId, out: PortId, packet: &'a Packet) -> Onward<'a> {
        let next = self.peers.neighbour(from, out).and_then(|next| self.peers.as_switch(next));
        let own = self.peers.as_switch(from);
        let mut path = Onward { downstream: self, packet, next: None, certain_from: 1 };
        if self.adaptive(packet) {
            path.certain_from = self.certain_from(own, next, packet);
        }
        path.next = match own {
            Some(switch) => Some(Hop { switch, port: out, distance: 0 }),
            None => next.and_then(|first| self.hop(first, 1, packet)),
        };
        path
    }

    fn adaptive(&self, packet: &Packet) -> bool {
        !self.peers.balancing[packet.transport as usize].by_hash() && !packet.has(flags::SOURCE_ROUTED)
    }

    /// The distance from which on all paths agree. The node's own choice does not count, since another packet of the
    /// flow may choose differently. Both ends of the first link are checked, since after re-routing a packet may still
    /// leave by a port that is on no shortest path.
    fn certain_from(&self, own: Option<SwitchId>, next: Option<SwitchId>, packet: &Packet) -> u32 {
        let Some(next) = next else { return 1 };
        let Some(hops) = self.routes.distance(next, packet.dst) else { return u32::MAX };
        let peers = &self.peers;
        let beyond = |switch, port| peers.neighbour(peers.as_node(switch), port).and_then(|node| peers.as_switch(node));
        let beyond = |switch, port| beyond(switch, port).expect("ports between switches");
        let shared = |switch| self.routes.shared_hops(switch, packet.dst, beyond);
        hops + 1 - own.map_or(u32::MAX, shared).min(shared(next))
    }

    /// The hop of the packet at `switch`.
    #[inline]
    fn hop(&self, switch: SwitchId, distance: u32, packet: &Packet) -> Option<Hop> {
        if packet.has(flags::SOURCE_ROUTED) {
            let port = packet.label.checked_shr(8 * (u32::from(packet.hops) + distance - 1))? & 0xFF;
            let port = PortId(port as u32);
            self.peers.neighbour(self.peers.as_node(switch), port)?;
            return Some(Hop { switch, port, distance });
        }
        let port = match self.routes.next(switch, packet.dst) {
            [] => return None,
            [only] => *only,
            several => {
                let balancing = self.peers.balancing[packet.transport as usize];
                // With adaptive balancing any choice will do, since its hops are only shown where all paths agree.
                let seed = switch_seed(self.peers.seed, switch);
                several[hashed_choice(balancing, packet, seed, several.len()).unwrap_or(0)]
            }
        };
        Some(Hop { switch, port, distance })
    }

    #[inline]
    fn after(&self, hop: Hop, packet: &Packet) -> Option<Hop> {
        let peers = &self.peers;
        let next = peers.neighbour(peers.as_node(hop.switch), hop.port)?;
        self.hop(peers.as_switch(next)?, hop.distance + 1, packet)
    }
}

impl Peers {
    #[inline]
    fn as_switch(&self, node: NodeId) -> Option<SwitchId> {
        node.0.checked_sub(self.hosts).map(SwitchId)
    }

    #[inline]
    fn as_node(&self, switch: SwitchId) -> NodeId {
        NodeId(self.hosts + switch.0)
    }

    /// The neighbour at a port; `None` if the node has no such port.
    #[inline]
    fn neighbour(&self, node: NodeId, port: PortId) -> Option<NodeId> {
        let ports = self.first_port[node.index()] as usize..self.first_port[node.index() + 1] as usize;
        self.neighbours[ports].get(port.index()).copied()
    }
}

/// Iterator over the hops of one packet: see [`Downstream::onward`].
#[derive(Clone, Debug)]
pub struct Onward<'a> {
    downstream: &'a Downstream,
    packet: &'a Packet,
    next: Option<Hop>,
    /// Hops from this distance on are certain, and so is the node's own port.
    certain_from: u32,
}

impl Iterator for Onward<'_> {
    type Item = Hop;

    #[inline]
    fn next(&mut self) -> Option<Hop> {
        loop {
            let hop = self.next?;
            self.next = self.downstream.after(hop, self.packet);
            if hop.distance == 0 || hop.distance >= self.certain_from {
                return Some(hop);
            }
        }
    }
}

#[cfg(test)]
mod tests;
