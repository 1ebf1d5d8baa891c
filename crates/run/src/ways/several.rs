//! The ways of flows between hosts with several links, link by link: as at packet level, a host chooses among its links
//! that begin a shortest path, as a switch does among its own, and paths end at the nearest of the receiver's switches.

use fabric::Fabric;
use node::balance::{hashed_choice, switch_seed};
use node::{Balancing, Packet};
use units::{FlowId, HostId, LinkId, SwitchId};

use super::{Way, Ways};
use crate::FlowInfo;

impl Ways<'_> {
    /// Computes the links of a flow.
    pub(super) fn find_way_between_several(&self, id: FlowId, flow: &FlowInfo, way: &mut Way) {
        let racks = self.quotient.racks_of(self.fabric, flow.dst);
        let balancing = self.balancing[usize::from(flow.transport)];
        if balancing.by_hash() {
            self.follow_among_several(id, flow, balancing, &racks, &mut way.path);
            way.passes.extend(way.path.iter().map(|link| (link.0, 1.0)));
        } else {
            self.spread_among_several(id, flow, &racks, &mut way.passes);
        }
    }

    /// The links of a host that begin shortest paths to some racks, in the order of its ports; those to which a flow is
    /// bound, if it is.
    fn first_links(&self, id: FlowId, src: HostId, racks: &[usize]) -> Vec<LinkId> {
        let distance = |&uplink: &LinkId| self.left(self.fabric.switch_at(uplink), racks);
        let uplinks = self.fabric.uplinks(src);
        let nearest = uplinks.iter().map(distance).min();
        let all: Vec<LinkId> = uplinks.iter().copied().filter(|uplink| Some(distance(uplink)) == nearest).collect();
        let Some(bound) = self.jobs.links_of(id, src, uplinks.len() as u32) else { return all };
        let is_bound = |link: &LinkId| bound >> self.fabric.link(*link).from_port.0.min(63) & 1 == 1;
        let some: Vec<LinkId> = all.iter().copied().filter(is_bound).collect();
        if some.is_empty() { all } else { some }
    }

    /// The links of a switch to a host that is attached to it.
    fn last_links(&self, at: SwitchId, dst: HostId) -> impl Iterator<Item = LinkId> + '_ {
        let uplinks = self.fabric.uplinks(dst).iter().copied();
        uplinks.filter(move |&uplink| self.fabric.switch_at(uplink) == at).map(Fabric::reverse)
    }

    /// How many links between switches are left from one to the nearest of some racks.
    fn left(&self, at: SwitchId, racks: &[usize]) -> u32 {
        self.quotient.nearest(&[self.quotient.class_of(at)], racks)
    }

    /// The path of a flow's packets under the hash of its host and of switches.
    fn follow_among_several(
        &self,
        id: FlowId,
        flow: &FlowInfo,
        balancing: Balancing,
        racks: &[usize],
        path: &mut Vec<LinkId>,
    ) {
        let packet = Packet::bare(id, flow.src, flow.dst);
        let choose = |among: &[LinkId], at: SwitchId| match among {
            [only] => *only,
            some => {
                let seed = switch_seed(self.seed, at);
                some[hashed_choice(balancing, &packet, seed, some.len()).expect("by hash")]
            }
        };
        // A host counts as another switch: `node::nic::MultihomedNic`.
        let host = SwitchId(self.fabric.switches + flow.src.0);
        path.push(choose(&self.first_links(id, flow.src, racks), host));
        let (mut among, mut some) = (Vec::new(), Vec::new());
        while let Some(at) = path.last().and_then(|&link| self.fabric.as_switch(self.fabric.link(link).to)) {
            let left = self.left(at, racks);
            among.clear();
            if left == 0 {
                among.extend(self.last_links(at, flow.dst));
            }
            let class = self.quotient.class_of(at);
            for &rack in racks.iter().filter(|&&rack| left > 0 && self.quotient.distance(class, rack) == left) {
                self.quotient.leading_on(self.fabric, at, rack, &mut some);
                among.append(&mut some);
            }
            among.sort_unstable_by_key(|&link| self.fabric.link(link).from_port);
            among.dedup();
            path.push(choose(&among, at));
        }
    }

    /// The links of a flow whose packets are spread evenly at each switch over its shortest paths; at the host, where a
    /// free link takes the next packet, by the links' rates.
    fn spread_among_several(&self, id: FlowId, flow: &FlowInfo, racks: &[usize], passes: &mut Vec<(u32, f64)>) {
        let first = self.first_links(id, flow.src, racks);
        let rate = |link: &LinkId| self.fabric.link(*link).rate.bps() as f64;
        let rates: f64 = first.iter().map(rate).sum();
        let mut level: Vec<(usize, f64)> = Vec::new();
        for link in &first {
            let share = rate(link) / rates;
            passes.push((link.0, share));
            add(&mut level, self.quotient.class_of(self.fabric.switch_at(*link)), share);
        }
        let left = |class: usize| self.quotient.nearest(&[class], racks);
        while level.iter().any(|&(class, _)| left(class) > 0) {
            let mut next = Vec::new();
            for (class, mass) in level {
                let ends = racks.iter().filter(|&&rack| self.quotient.distance(class, rack) == left(class));
                let mut bundles: Vec<usize> = ends.flat_map(|&rack| self.quotient.towards(class, rack)).collect();
                bundles.sort_unstable();
                bundles.dedup();
                let bundles: Vec<_> = bundles.into_iter().map(|bundle| &self.quotient.bundles()[bundle]).collect();
                let ports: u32 = bundles.iter().map(|bundle| bundle.per_switch).sum();
                for bundle in bundles {
                    let share = mass * f64::from(bundle.per_switch) / f64::from(ports);
                    passes.extend(bundle.links.iter().map(|link| (link.0, share / bundle.links.len() as f64)));
                    add(&mut next, bundle.to, share);
                }
            }
            level = next;
        }
        // A rack is a class by itself, so that each class here is a switch.
        let links = self.fabric.uplinks(flow.dst).iter().copied().map(Fabric::reverse);
        for (class, mass) in level {
            let from = |link: &LinkId| self.fabric.as_switch(self.fabric.link(*link).from);
            let mine = links.clone().filter(|link| from(link).is_some_and(|at| self.quotient.class_of(at) == class));
            let count = mine.clone().count() as f64;
            passes.extend(mine.map(|link| (link.0, mass / count)));
        }
    }
}

/// Adds to the mass in a class.
fn add(level: &mut Vec<(usize, f64)>, class: usize, mass: f64) {
    match level.iter_mut().find(|of| of.0 == class) {
        Some((_, sum)) => *sum += mass,
        None => level.push((class, mass)),
    }
}
