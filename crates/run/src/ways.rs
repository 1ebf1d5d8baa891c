//! The ways of flows through the network, and the resources that they share there: links, or bundles of links that
//! always carry the same load.
//!
//! If every transport spreads its packets over all shortest paths, resources are the links of hosts and the bundles of
//! the folded fabric. If one transport chooses by a hash, or hosts have several links, resources are single links for
//! all.
//!
//! A bundle is *spare* if it is at least as wide as all links that lead into it together, or as all that lead on from
//! it. (Links back from its far end don't count, since no shortest path turns round.) It can't be full before all of
//! those are, and then they limit the same flows to the same rates. So spare bundles can be ignored. In a fabric of
//! full bisection all bundles are spare.

mod several;

use fabric::{Fabric, Quotient, Tier};
use node::balance::{hashed_choice, switch_seed};
use node::{Balancing, Packet};
use units::{FlowId, HostId, LinkId, Rate};

use crate::{FlowInfo, Jobs, WorkloadPlan};

/// The resources of a network, and which of them each flow uses.
pub struct Ways<'a> {
    fabric: &'a Fabric,
    quotient: &'a Quotient,
    balancing: &'a [Balancing],
    seed: u64,
    /// Whether resources are single links. If not, they are the bundles, then the links from hosts, then those to
    /// hosts.
    by_link: bool,
    /// Whether hosts have several links.
    several: bool,
    /// By bundle: whether it is spare.
    spare: Vec<bool>,
    jobs: &'a Jobs,
}

/// The resources that a flow uses.
#[derive(Default)]
pub struct Way {
    /// Resources and the share of the flow that each carries.
    pub passes: Vec<(u32, f64)>,
    /// Its links, if it has one path.
    pub path: Vec<LinkId>,
}

impl<'a> Ways<'a> {
    /// Of a workload's network, in a run with this `seed`.
    pub fn new(workload_plan: &'a WorkloadPlan, seed: u64) -> Ways<'a> {
        let (fabric, quotient) = (&*workload_plan.fabric, &workload_plan.quotient);
        let carriers = &workload_plan.balancing[..workload_plan.transports.len()];
        let several = fabric.several_links().is_some();
        let by_link = several || carriers.iter().any(|balancing| balancing.by_hash());
        let spare = spare(fabric, quotient);
        Ways { fabric, quotient, balancing: carriers, seed, by_link, several, spare, jobs: &workload_plan.jobs }
    }

    /// Number of resources.
    pub fn resources(&self) -> usize {
        match self.by_link {
            true => self.fabric.links.len(),
            false => self.quotient.bundles().len() + 2 * self.fabric.hosts as usize,
        }
    }

    /// One link of a resource, all of whose links are alike, and their number.
    pub fn link(&self, resource: usize) -> (LinkId, usize) {
        if self.by_link {
            return (LinkId::from(resource), 1);
        }
        match resource.checked_sub(self.quotient.bundles().len()) {
            None => {
                let links = &self.quotient.bundles()[resource].links;
                (links[0], links.len())
            }
            Some(end) => {
                let (hosts, end) = (self.fabric.hosts as usize, end as u32);
                let uplink = self.fabric.uplink(HostId(end % self.fabric.hosts));
                (if (end as usize) < hosts { uplink } else { Fabric::reverse(uplink) }, 1)
            }
        }
    }

    /// Whether resources are single links, because a hash chooses the paths of some flows, or hosts have several links.
    pub fn by_link(&self) -> bool {
        self.by_link
    }

    /// All links of a resource.
    pub fn links(&self, resource: usize) -> Vec<LinkId> {
        match self.quotient.bundles().get(resource).filter(|_| !self.by_link) {
            Some(bundle) => bundle.links.clone(),
            None => vec![self.link(resource).0],
        }
    }

    /// By link: its resource.
    pub fn resource_of_links(&self) -> Vec<u32> {
        if self.by_link {
            return (0..self.fabric.links.len() as u32).collect();
        }
        let mut of = vec![0; self.fabric.links.len()];
        for resource in 0..self.resources() {
            match self.quotient.bundles().get(resource) {
                Some(bundle) => bundle.links.iter().for_each(|link| of[link.index()] = resource as u32),
                None => of[self.link(resource).0.index()] = resource as u32,
            }
        }
        of
    }

    /// Capacity of a resource in bits per second. `intake` is the rate at which a host takes packets in, if that may be
    /// less than its link's.
    pub fn capacity_bps(&self, resource: usize, intake: Option<Rate>) -> f64 {
        let (link, count) = self.link(resource);
        let link = self.fabric.link(link);
        let rate = match intake {
            Some(intake) if link.tier == Tier::ToHost => link.rate.min(intake),
            _ => link.rate,
        };
        rate.bps() as f64 * count as f64
    }

    /// Whether a resource may limit a flow before its other resources do.
    pub fn counts(&self, resource: u32) -> bool {
        self.by_link || !self.spare.get(resource as usize).is_some_and(|spare| *spare)
    }

    /// Computes the resources of a flow.
    pub fn find_way(&self, id: FlowId, flow: &FlowInfo, way: &mut Way) {
        way.passes.clear();
        way.path.clear();
        if self.several {
            return self.find_way_between_several(id, flow, way);
        }
        let (up, down) = (self.fabric.uplink(flow.src), Fabric::reverse(self.fabric.uplink(flow.dst)));
        let (from, to) = (self.quotient.rack_of(self.fabric, flow.src), self.quotient.rack_of(self.fabric, flow.dst));
        let balancing = self.balancing[usize::from(flow.transport)];
        if balancing.by_hash() {
            self.follow(id, flow, balancing, &mut way.path);
            way.passes.extend(way.path.iter().map(|link| (link.0, 1.0)));
        } else if self.by_link {
            way.passes.push((up.0, 1.0));
            for (bundle, share) in self.quotient.shares(from, to) {
                let links = &self.quotient.bundles()[bundle].links;
                way.passes.extend(links.iter().map(|link| (link.0, share / links.len() as f64)));
            }
            way.passes.push((down.0, 1.0));
        } else {
            let first = self.quotient.bundles().len() as u32;
            way.passes.push((first + flow.src.0, 1.0));
            way.passes.extend(self.quotient.shares(from, to).into_iter().map(|(bundle, share)| (bundle as u32, share)));
            way.passes.push((first + self.fabric.hosts + flow.dst.0, 1.0));
        }
    }

    /// The path of a flow's packets under the switches' hash.
    fn follow(&self, id: FlowId, flow: &FlowInfo, balancing: Balancing, path: &mut Vec<LinkId>) {
        let packet = Packet::bare(id, flow.src, flow.dst);
        let rack = self.quotient.rack_of(self.fabric, flow.dst);
        path.push(self.fabric.uplink(flow.src));
        let mut candidates = Vec::new();
        let mut at = self.fabric.rack_of(flow.src);
        while at != self.fabric.rack_of(flow.dst) {
            self.quotient.leading_on(self.fabric, at, rack, &mut candidates);
            let choice = match candidates.len() {
                1 => 0,
                count => hashed_choice(balancing, &packet, switch_seed(self.seed, at), count).expect("by hash"),
            };
            let link = candidates[choice];
            path.push(link);
            at = self.fabric.as_switch(self.fabric.link(link).to).expect("only the last hop leads to a host");
        }
        path.push(Fabric::reverse(self.fabric.uplink(flow.dst)));
    }
}

/// By bundle: whether it is spare.
fn spare(fabric: &Fabric, quotient: &Quotient) -> Vec<bool> {
    let bundles = quotient.bundles();
    let width = |bundle: usize| {
        let bundle = &bundles[bundle];
        u128::from(fabric.link(bundle.links[0]).rate.bps()) * bundle.links.len() as u128
    };
    // By class: what its hosts send, which equals what they receive, and the bundles that lead to it.
    let mut hosts = vec![0u128; quotient.classes()];
    for host in (0..fabric.hosts).map(HostId) {
        hosts[quotient.rack_of(fabric, host)] += u128::from(fabric.host_rate(host).bps());
    }
    let mut leading = vec![Vec::new(); quotient.classes()];
    for (number, bundle) in bundles.iter().enumerate() {
        leading[bundle.to].push(number);
    }
    // By spare bundle: the bundles that make it spare.
    let mut instead: Vec<Option<Vec<usize>>> = vec![None; bundles.len()];
    for (number, bundle) in bundles.iter().enumerate() {
        let before: Vec<usize> =
            leading[bundle.from].iter().copied().filter(|&other| bundles[other].from != bundle.to).collect();
        let after: Vec<usize> = quotient.leaving(bundle.to).filter(|&other| bundles[other].to != bundle.from).collect();
        for (class, others) in [(bundle.from, before), (bundle.to, after)] {
            let all = hosts[class] + others.iter().map(|&other| width(other)).sum::<u128>();
            if all <= width(number) && !rests_on(&others, number, &instead) {
                instead[number] = Some(others);
                break;
            }
        }
    }
    instead.into_iter().map(|instead| instead.is_some()).collect()
}

/// Whether one of `bundles` is spare because of `number`, directly or through other spare bundles.
fn rests_on(bundles: &[usize], number: usize, instead: &[Option<Vec<usize>>]) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    let mut waiting = bundles.to_vec();
    while let Some(bundle) = waiting.pop() {
        if bundle == number {
            return true;
        }
        if seen.insert(bundle) {
            waiting.extend(instead[bundle].iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests;
