//! The order in which the nodes of a part are served within a window.
//!
//! A window is as long as the least delay between parts, but links within a part may be shorter. What a node does in a
//! window reaches others in the same window over such links alone. So nodes are served in an order in which all these
//! links lead onward, each with all of its events before the next: its state is then in the nearest cache for as long
//! as it is needed. Nodes on a circle of short links, such as a rack whose hosts and switch are equally near to each
//! other, have no such order. They share a tournament, in which the earliest event is always next.

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use run::Plan;
use units::LinkId;

use crate::{Carrier, Cut, Driver, End, Probe};

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// By source of events, the place in the order of the node at which they happen; 0 for the timeline, which belongs
    /// to all nodes.
    pub(crate) fn groups(&self, plan: &Plan, cut: &Cut, part: usize) -> Vec<u32> {
        let place = self.places(plan, cut, part);
        let at = |end: End| place[self.node(end)];
        let arrivals = self.links.link_rxs.iter().map(|link_rx| at(link_rx.to));
        let transmissions = self.links.link_txs.iter().map(|link_tx| at(link_tx.from));
        [0].into_iter().chain(arrivals).chain(transmissions).chain(place.iter().copied()).collect()
    }

    /// Hosts by their places in the part, then switches.
    fn node(&self, end: End) -> usize {
        match end {
            End::Host { index, .. } => index as usize,
            End::Switch { index, .. } => self.hosts.len() + index as usize,
        }
    }

    /// By node, its place in the order, from 1 on; the same for nodes on a circle of short links.
    fn places(&self, plan: &Plan, cut: &Cut, part: usize) -> Vec<u32> {
        let nodes = self.hosts.len() + self.switches.len();
        let mut onward = DiGraph::<(), (), usize>::default();
        (0..nodes).for_each(|_| _ = onward.add_node(()));
        // Strongly connected nodes are found in the opposite order, and the later of two that are unrelated first.
        let turned = |node: usize| (nodes - 1 - node).into();
        for link in (0..plan.fabric.links.len()).map(LinkId::from) {
            if cut.sender_of(link) != part || cut.receiver_of(link) != part {
                continue;
            }
            let link_tx = &self.links.link_txs[cut.link_tx_of(link) as usize];
            if link_tx.delay < plan.lookahead {
                let to = self.links.link_rxs[cut.link_rx_of(link) as usize].to;
                onward.add_edge(turned(self.node(link_tx.from)), turned(self.node(to)), ());
            }
        }
        let mut places = vec![0; nodes];
        for (place, together) in (1..).zip(tarjan_scc(&onward).into_iter().rev()) {
            together.into_iter().for_each(|node| places[nodes - 1 - node.index()] = place);
        }
        places
    }
}
