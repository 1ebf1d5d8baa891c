//! Islands: sets of nodes that no flow connects with others.

use std::collections::{BTreeMap, BTreeSet};

use fabric::Fabric;
use petgraph::unionfind::UnionFind;
use run::Plan;
use rustc_hash::FxHashSet;
use units::{HostId, NodeId, SwitchId};

/// A network's islands. All shortest paths between the two ends of a flow are in one of them. What is idle belongs to
/// the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Islands {
    /// By node, its island.
    of: Vec<u32>,
    count: usize,
}

/// More islands than this are put together to so many: each is a part of its own ([`Cut`](crate::Cut)).
const MOST: usize = 32;

impl Islands {
    /// The whole network is one.
    pub fn one(fabric: &Fabric) -> Islands {
        Islands { of: vec![0; fabric.nodes() as usize], count: 1 }
    }

    /// Between which no flow of the plan goes. Where failures or other changes to links come, the whole network is one.
    pub fn of_flows(plan: &Plan) -> Islands {
        let fabric = &plan.fabric;
        if !plan.changes.is_empty() {
            return Islands::one(fabric);
        }
        let mut sets = UnionFind::<u32>::new(fabric.nodes() as usize);
        let mut first_of_clump: BTreeMap<u32, NodeId> = BTreeMap::new();
        for (node, clump) in (0..).map(NodeId).zip(fabric.clumps(plan.lookahead)) {
            let first = *first_of_clump.entry(clump).or_insert(node);
            sets.union(first.0, node.0);
        }
        let pairs: FxHashSet<(HostId, HostId)> = plan.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
        // By destination, of those that are reached by the same paths only one: the switches where packets begin.
        let mut begin: BTreeMap<usize, (HostId, BTreeSet<SwitchId>)> = BTreeMap::new();
        for &(src, dst) in &pairs {
            sets.union(src.0, dst.0);
            for (from, to) in [(src, dst), (dst, src)] {
                let switches = fabric.uplinks(from).iter().map(|&uplink| fabric.switch_at(uplink));
                let known = begin.entry(plan.routes.group(to)).or_insert_with(|| (to, BTreeSet::new()));
                switches.for_each(|switch| {
                    sets.union(from.0, fabric.switch_node(switch).0);
                    known.1.insert(switch);
                });
            }
        }
        begin.into_values().for_each(|(to, switches)| join_paths(plan, &mut sets, to, switches));
        let busy = pairs.iter().flat_map(|&(src, dst)| [src, dst]).collect::<BTreeSet<_>>();
        Islands::numbered(fabric, &sets, busy.into_iter())
    }

    /// Numbers sets of nodes in the order of their first busy host.
    fn numbered(fabric: &Fabric, sets: &UnionFind<u32>, busy: impl Iterator<Item = HostId>) -> Islands {
        let mut number: BTreeMap<u32, usize> = BTreeMap::new();
        for host in busy {
            let next = number.len();
            number.entry(sets.find(fabric.host_node(host).0)).or_insert(next);
        }
        let (all, count) = (number.len().max(1), number.len().clamp(1, MOST));
        let island = |node: u32| number.get(&sets.find(node)).map_or(0, |&number| number * count / all);
        Islands { of: (0..fabric.nodes()).map(|node| island(node) as u32).collect(), count }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The island of a node.
    pub fn of(&self, node: NodeId) -> usize {
        self.of[node.index()] as usize
    }
}

/// Puts all switches into one set that lie on shortest paths from these switches to a host.
fn join_paths(plan: &Plan, sets: &mut UnionFind<u32>, to: HostId, mut pending: BTreeSet<SwitchId>) {
    let fabric = &plan.fabric;
    let mut seen = pending.clone();
    while let Some(switch) = pending.pop_first() {
        let node = fabric.switch_node(switch);
        for port in plan.routes.next(switch, to) {
            let next = fabric.link(fabric.ports[node.index()][port.index()]).to;
            sets.union(node.0, next.0);
            if let Some(switch) = fabric.as_switch(next)
                && seen.insert(switch)
            {
                pending.insert(switch);
            }
        }
    }
}

#[cfg(test)]
mod tests;
