//! Islands: sets of nodes that no flow connects with others.
//!
//! They change with time. A job connects its nodes from its beginning to its end, and a message from its start to its
//! end: each is a [`Bond`]. A district is a set of nodes that every bond connects as a whole or not at all, so an
//! island is one district or several.

use std::collections::{BTreeMap, BTreeSet};

use fabric::Fabric;
use petgraph::unionfind::UnionFind;
use run::{FlowInfo, Plan};
use units::{FlowId, HostId, NodeId, SwitchId, Time, mix};

/// A network's islands. All shortest paths between the two ends of a flow are in one of them, while the flow lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Islands {
    /// By node, its district. What is idle belongs to the first.
    of: Vec<u32>,
    districts: usize,
    bonds: Vec<Bond>,
}

/// What makes one island of districts for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bond {
    /// The districts, one bit each.
    pub districts: u32,
    /// Nothing of it is sent before.
    pub from: Time,
    /// What ends it.
    pub until: Until,
}

/// What ends a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The end of the run.
    RunEnds,
    /// The end of all ranks of this job.
    JobEnds(usize),
    /// The end of this flow.
    FlowEnds(FlowId),
}

/// Who sends to whom.
type Pairs = BTreeSet<(HostId, HostId)>;

/// No more districts than this, since each is a part of its own ([`Cut`](crate::Cut)).
const MOST: usize = 32;
/// Of flows that belong to no job each is a bond, unless there are more: these last for the whole run.
const MOST_FLOWS: usize = 256;

impl Islands {
    /// The whole network is one.
    pub fn one(fabric: &Fabric) -> Islands {
        Islands::lasting(vec![0; fabric.nodes() as usize], 1)
    }

    /// Those of a plan's flows. Where failures or other changes to links come, the whole network is one.
    pub fn of_flows(plan: &Plan) -> Islands {
        if !plan.changes.is_empty() {
            return Islands::one(&plan.fabric);
        }
        let lasting = Islands::that_last(plan);
        Islands::by_time(plan).filter(|by_time| by_time.districts > lasting.districts).unwrap_or(lasting)
    }

    /// The same, if each flow lasts for the whole run. Where they are many, some are put together.
    pub fn that_last(plan: &Plan) -> Islands {
        if !plan.changes.is_empty() {
            return Islands::one(&plan.fabric);
        }
        let pairs: Pairs = plan.flows.iter().map(pair).collect();
        let sets = connected(plan, &clumps(plan), &pairs);
        let number = numbered(senders(plan, &pairs).map(|node| sets[node]));
        let (all, count) = (number.len().max(1), number.len().clamp(1, MOST));
        let island = |set| number.get(&set).map_or(0, |&number| (number * count / all) as u32);
        Islands::lasting(sets.into_iter().map(island).collect(), count)
    }

    /// Each district is an island for the whole run.
    fn lasting(of: Vec<u32>, districts: usize) -> Islands {
        let bond = |district| Bond { districts: 1_u32 << district, from: Time::ZERO, until: Until::RunEnds };
        Islands { of, districts, bonds: (0..districts).map(bond).collect() }
    }

    /// Those that change with time, unless they have too many districts.
    fn by_time(plan: &Plan) -> Option<Islands> {
        let clumps = clumps(plan);
        // By node: a word for all bonds that connect it.
        let mut words = vec![0; clumps.len()];
        let mut bonds = Vec::new();
        for (from, until, pairs) in lasts(plan) {
            let sets = connected(plan, &clumps, &pairs);
            // A job may consist of parts that send nothing to each other.
            for &set in numbered(senders(plan, &pairs).map(|node| sets[node])).keys() {
                let nodes: Vec<usize> = (0..sets.len()).filter(|&node| sets[node] == set).collect();
                nodes.iter().for_each(|&node| words[node] = mix(words[node], bonds.len() as u64 + 1));
                bonds.push((from, until, nodes));
            }
        }
        let number = numbered(words.iter().copied().filter(|&word| word != 0));
        let of: Vec<u32> = words.iter().map(|word| number.get(word).map_or(0, |&number| number as u32)).collect();
        if number.len() > MOST {
            return None;
        }
        let bond = |(from, until, nodes): (Time, Until, Vec<usize>)| Bond {
            districts: nodes.into_iter().fold(0, |all, node| all | 1 << of[node]),
            from,
            until,
        };
        let bonds = bonds.into_iter().map(bond).collect();
        Some(Islands { of, districts: number.len(), bonds })
    }

    /// How many districts there are.
    pub fn districts(&self) -> usize {
        self.districts
    }

    /// The district of a node.
    pub fn district_of(&self, node: NodeId) -> usize {
        self.of[node.index()] as usize
    }

    /// What connects districts.
    pub fn bonds(&self) -> &[Bond] {
        &self.bonds
    }
}

/// From when on, and until when, which pairs send.
fn lasts(plan: &Plan) -> Vec<(Time, Until, Pairs)> {
    let mut lasts = Vec::new();
    let mut others: Vec<_> = (0..).map(FlowId).zip(plan.flows.iter()).collect();
    for (number, job) in plan.jobs.iter().enumerate().rev() {
        // The flows of jobs are the last ones, job by job.
        let flows = others.split_off(job.first_flow.index());
        if let Some(begins) = plan.jobs.begins(number) {
            lasts.push((begins, Until::JobEnds(number), flows.into_iter().map(|(_, flow)| pair(flow)).collect()));
        }
    }
    lasts.reverse();
    let begins = |flow: &FlowInfo| flow.begins();
    if others.len() <= MOST_FLOWS && others.iter().all(|(_, flow)| begins(flow).is_some()) {
        let bond = |(id, flow)| Some((begins(flow)?, Until::FlowEnds(id), Pairs::from([pair(flow)])));
        lasts.extend(others.into_iter().filter_map(bond));
    } else {
        lasts.push((Time::ZERO, Until::RunEnds, others.into_iter().map(|(_, flow)| pair(flow)).collect()));
    }
    lasts
}

fn pair(flow: &FlowInfo) -> (HostId, HostId) {
    (flow.src, flow.dst)
}

/// The hosts that send or receive, as nodes, in order.
fn senders(plan: &Plan, pairs: &Pairs) -> impl Iterator<Item = usize> {
    let hosts: BTreeSet<HostId> = pairs.iter().flat_map(|&(src, dst)| [src, dst]).collect();
    hosts.into_iter().map(|host| plan.fabric.host_node(host).index())
}

/// Numbers what is there, in the order in which it comes first.
fn numbered<T: Ord>(of: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut number = BTreeMap::new();
    for of in of {
        let next = number.len();
        number.entry(of).or_insert(next);
    }
    number
}

/// What stays together anyway.
fn clumps(plan: &Plan) -> UnionFind<u32> {
    let mut sets = UnionFind::<u32>::new(plan.fabric.nodes() as usize);
    let mut first_of_clump: BTreeMap<u32, u32> = BTreeMap::new();
    for (node, clump) in (0..).zip(plan.fabric.clumps(plan.lookahead)) {
        let first = *first_of_clump.entry(clump).or_insert(node);
        sets.union(first, node);
    }
    sets
}

/// By node, a name for the set that it is in if all of these send to each other, answers included.
fn connected(plan: &Plan, clumps: &UnionFind<u32>, pairs: &Pairs) -> Vec<u32> {
    let (fabric, mut sets) = (&plan.fabric, clumps.clone());
    // By destination, of those that are reached by the same paths only one: the switches where packets begin.
    let mut begin: BTreeMap<usize, (HostId, BTreeSet<SwitchId>)> = BTreeMap::new();
    for &(src, dst) in pairs {
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
    sets.into_labeling()
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
