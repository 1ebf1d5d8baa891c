//! Islands: sets of nodes that no flow connects with others.
//!
//! They change with time. A job connects its nodes from its beginning to its end, and a message from its start to its
//! end: each is a [`Bond`]. A district is a set of nodes that every bond connects as a whole or not at all, so an
//! island is one district or several.
//! The state of a switch is one, and so is its digest: it is in one island.

use std::collections::{BTreeMap, BTreeSet};

use fabric::Fabric;
use petgraph::unionfind::UnionFind;
use run::{FlowInfo, Plan};
use units::{FlowId, HostId, LinkId, SwitchId, Time, mix};

/// A network's islands. All shortest paths between the two ends of a flow are in one of them, while the flow lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Islands {
    /// By link, the district of the port at which it begins. What is idle belongs to the first.
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

/// No more districts than a bond has bits. Each is a part of its own ([`Cut`](crate::Cut)).
const MOST: usize = u32::BITS as usize;
/// Of flows that belong to no job each is a bond, unless there are more: these last for the whole run.
const MOST_FLOWS: usize = 256;

impl Islands {
    /// The whole network is one.
    pub fn one(plan: &Plan) -> Islands {
        let bond = Bond { districts: 1, from: Time::ZERO, until: Until::RunEnds };
        Islands { of: vec![0; plan.fabric.links.len()], districts: 1, bonds: vec![bond] }
    }

    /// Those of a plan's flows, which change with time where that gives more. Where failures or other changes to links
    /// come, the whole network is one.
    pub fn of_flows(plan: &Plan) -> Islands {
        let together = whole_nodes(plan);
        let lasting = Islands::lasting(plan, &together);
        Islands::by_time(plan, &together).filter(|by_time| by_time.districts > lasting.districts).unwrap_or(lasting)
    }

    /// Those of flows, if each flow lasts for the whole run. Where they are many, some are put together.
    pub fn that_last(plan: &Plan) -> Islands {
        Islands::lasting(plan, &whole_nodes(plan))
    }

    fn lasting(plan: &Plan, together: &UnionFind<u32>) -> Islands {
        let pairs = all_pairs(plan);
        let sets = connected(plan, together, &pairs);
        let number = busy_sets(plan, &pairs, &sets);
        let (all, count) = (number.len().max(1), number.len().clamp(1, MOST));
        let district = |link: LinkId| number.get(&sets[link.index()]).map(|&number| (number * count / all) as u32);
        let bond = |district| Bond { districts: 1_u32 << district, from: Time::ZERO, until: Until::RunEnds };
        Islands { of: with_idle(plan, district), districts: count, bonds: (0..count).map(bond).collect() }
    }

    /// `None` if there are too many districts.
    fn by_time(plan: &Plan, together: &UnionFind<u32>) -> Option<Islands> {
        // By port: a word for all bonds that connect it.
        let mut words = vec![0; together.len()];
        let mut bonds = Vec::new();
        for (from, until, pairs) in lasts(plan) {
            let sets = connected(plan, together, &pairs);
            // A job may consist of parts that send nothing to each other.
            for &set in busy_sets(plan, &pairs, &sets).keys() {
                let ports: Vec<usize> = (0..sets.len()).filter(|&port| sets[port] == set).collect();
                ports.iter().for_each(|&port| words[port] = mix(words[port], bonds.len() as u64 + 1));
                bonds.push((from, until, ports));
            }
        }
        let number = numbered(words.iter().copied().filter(|&word| word != 0));
        if number.len() > MOST {
            return None;
        }
        let of = with_idle(plan, |link| number.get(&words[link.index()]).map(|&number| number as u32));
        let bond = |(from, until, ports): (Time, Until, Vec<usize>)| Bond {
            districts: ports.into_iter().fold(0, |all, port| all | 1 << of[port]),
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

    /// The district of the port at which a link begins.
    pub fn district_of(&self, link: LinkId) -> usize {
        self.of[link.index()] as usize
    }

    /// What connects districts.
    pub fn bonds(&self) -> &[Bond] {
        &self.bonds
    }
}

/// Whether ports of a switch share memory and flow control alone, so that a packet at one port never delays or drops a
/// packet at another by other means: links never change, and no scheme keeps state in switches.
pub(crate) fn ports_are_plain(plan: &Plan) -> bool {
    plan.changes.is_empty()
        && plan.reserved.is_none()
        && plan.queueing.is_none()
        && !plan.has_agents()
        && plan.scenario.sharing.as_scheme().is_none()
}

/// From when on, and until when, which pairs send.
fn lasts(plan: &Plan) -> Vec<(Time, Until, Pairs)> {
    let mut lasts = Vec::new();
    for (number, job) in plan.jobs.iter().enumerate() {
        if let Some(begins) = plan.jobs.begins(number) {
            let mut pairs = Pairs::new();
            job.each_kind(|pair, _, _| _ = pairs.insert(pair));
            lasts.push((begins, Until::JobEnds(number), pairs));
        }
    }
    // Where one job is simulated alone, others never begin.
    let begins_at_all = |(_, flow): &(FlowId, &FlowInfo)| flow.after.is_some() || flow.begins().is_some();
    let others: Vec<_> = (0..).map(FlowId).zip(plan.flows.of_traffic()).filter(begins_at_all).collect();
    let begins = |flow: &FlowInfo| flow.begins();
    if others.len() <= MOST_FLOWS && others.iter().all(|(_, flow)| begins(flow).is_some()) {
        let bond = |(id, flow)| Some((begins(flow)?, Until::FlowEnds(id), Pairs::from([pair(flow)])));
        lasts.extend(others.into_iter().filter_map(bond));
    } else {
        lasts.push((Time::ZERO, Until::RunEnds, others.into_iter().map(|(_, flow)| pair(flow)).collect()));
    }
    lasts
}

fn all_pairs(plan: &Plan) -> Pairs {
    let mut pairs: Pairs = plan.flows.of_traffic().iter().map(pair).collect();
    plan.flows.each_kind_of_jobs(|flow, _| _ = pairs.insert(pair(&flow)));
    pairs
}

fn pair(flow: &FlowInfo) -> (HostId, HostId) {
    (flow.src, flow.dst)
}

/// Numbers the sets that these hosts are in, in their order. By link, `sets` says in which its port is.
fn busy_sets(plan: &Plan, pairs: &Pairs, sets: &[u32]) -> BTreeMap<u32, usize> {
    let hosts: BTreeSet<HostId> = pairs.iter().flat_map(|&(src, dst)| [src, dst]).collect();
    numbered(hosts.into_iter().map(|host| sets[plan.fabric.uplink(host).index()]))
}

/// By link, the district of the port at which it begins. `busy` knows that of a busy port. An idle one stays with a
/// busy one of its node, if there is one, or else belongs to the first district.
fn with_idle(plan: &Plan, busy: impl Fn(LinkId) -> Option<u32>) -> Vec<u32> {
    let mut of = vec![0; plan.fabric.links.len()];
    for ports in &plan.fabric.ports {
        let first = ports.iter().find_map(|&link| busy(link)).unwrap_or(0);
        ports.iter().for_each(|&link| of[link.index()] = busy(link).unwrap_or(first));
    }
    of
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

/// No node is taken apart. Where links change, paths may, and nothing is.
fn whole_nodes(plan: &Plan) -> UnionFind<u32> {
    let links = plan.fabric.links.len();
    let mut nodes = together(plan);
    if !plan.changes.is_empty() {
        (1..links as u32).for_each(|link| {
            nodes.union(0, link);
        });
    }
    nodes
}

/// By link, with the port at which it begins: ports of a node are together, and so are both ends of a link that can't
/// lead from part to part ([`Fabric::clumps`]).
fn together(plan: &Plan) -> UnionFind<u32> {
    let fabric = &plan.fabric;
    let mut together = UnionFind::<u32>::new(fabric.links.len());
    for ports in &fabric.ports {
        ports.windows(2).for_each(|pair| _ = together.union(pair[0].0, pair[1].0));
    }
    let clump_of = fabric.clumps(plan.lookahead);
    for (id, link) in (0..).map(LinkId).zip(&fabric.links) {
        if clump_of[link.from.index()] == clump_of[link.to.index()] {
            together.union(id.0, Fabric::reverse(id).0);
        }
    }
    together
}

/// By link, with the port at which it begins: a name for the set that it is in if all of these send to each other,
/// answers included.
fn connected(plan: &Plan, together: &UnionFind<u32>, pairs: &Pairs) -> Vec<u32> {
    let (fabric, mut sets) = (&plan.fabric, together.clone());
    // Hosts are in one group that are reached by the same paths, but for the last link.
    let mut seen: BTreeSet<(SwitchId, usize)> = BTreeSet::new();
    let mut pending = Vec::new();
    let mut go = |sets: &mut UnionFind<u32>, pending: &mut Vec<(SwitchId, HostId)>, link: LinkId, to: HostId| {
        sets.union(link.0, Fabric::reverse(link).0);
        let Some(switch) = fabric.as_switch(fabric.link(link).to) else { return };
        if let Some(onward) = onward(plan, switch, to).next() {
            sets.union(link.0, onward.0);
        }
        if seen.insert((switch, plan.routes.group(to))) {
            pending.push((switch, to));
        }
    };
    for &(src, dst) in pairs {
        sets.union(fabric.uplink(src).0, fabric.uplink(dst).0);
        for (from, to) in [(src, dst), (dst, src)] {
            fabric.uplinks(from).iter().for_each(|&uplink| go(&mut sets, &mut pending, uplink, to));
        }
    }
    while let Some((switch, to)) = pending.pop() {
        let onward: Vec<LinkId> = onward(plan, switch, to).collect();
        for &link in &onward {
            sets.union(onward[0].0, link.0);
            go(&mut sets, &mut pending, link, to);
        }
    }
    sets.into_labeling()
}

/// The links to other switches on shortest paths from a switch to a host.
fn onward(plan: &Plan, switch: SwitchId, to: HostId) -> impl Iterator<Item = LinkId> {
    let fabric = &plan.fabric;
    links_onward(plan, switch, to).filter(|&link| fabric.as_switch(fabric.link(link).to).is_some())
}

/// The links on shortest paths from a switch to a host.
pub(crate) fn links_onward(plan: &Plan, switch: SwitchId, to: HostId) -> impl Iterator<Item = LinkId> {
    let ports = &plan.fabric.ports[plan.fabric.switch_node(switch).index()];
    plan.routes.next(switch, to).iter().map(|port| ports[port.index()])
}

#[cfg(test)]
mod tests;
