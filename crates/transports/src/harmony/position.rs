//! Which links can precede which on shortest paths. In the order of arrival the bound of a link depends on the links
//! before it ([`bounds`](super::bounds)).
//!
//! Packets arrive at a link at most as late as they can leave any link that can precede it. This recursion ends if
//! there is a topological order: one in which each link comes after all that can precede it. There is one on every
//! fabric whose shortest paths go up and then down. On a torus or a mesh links precede each other in cycles, there is
//! no such order, and nothing is proven for the order of arrival.
//!
//! All of this is computed on the fabric folded along its symmetries ([`Quotient`]). A path of folded links stands for
//! paths of real links, and a cycle for cycles.

use std::collections::{BTreeSet, VecDeque};

use fabric::{Fabric, Quotient};
use units::{Duration, Rate, SwitchId};

/// The links that leave switches, in groups of links that have the same position, and the order of these groups.
pub(super) struct Precedence {
    /// In topological order, with the links to the hosts of each rack last.
    groups: Vec<Group>,
    /// By link, the group; none for a host's own link.
    group_of: Vec<Option<u32>>,
}

struct Group {
    rate: Rate,
    /// Indices of the groups that can directly precede it.
    before: Vec<u32>,
}

impl Precedence {
    /// None if links precede each other in cycles.
    pub fn new(fabric: &Fabric) -> Option<Precedence> {
        let quotient = Quotient::new(fabric);
        let (before, last) = before(&quotient);
        let order = sorted(&before)?;
        let mut place_of = vec![0; order.len()];
        for (place, &bundle) in (0..).zip(&order) {
            place_of[bundle] = place;
        }
        let places = |bundles: &BTreeSet<usize>| bundles.iter().map(|&bundle| place_of[bundle]).collect();
        let mut group_of = vec![None; fabric.links.len()];
        let mut groups = Vec::new();
        for &bundle in &order {
            let links = &quotient.bundles()[bundle].links;
            links.iter().for_each(|link| group_of[link.index()] = Some(groups.len() as u32));
            groups.push(Group { rate: fabric.link(links[0]).rate, before: places(&before[bundle]) });
        }
        // Nothing follows the links to hosts, so that their rates do not matter here.
        let racks = groups.len() as u32;
        groups.extend(last.iter().map(|last| Group { rate: Rate::ZERO, before: places(last) }));
        for switch in (0..fabric.switches).map(SwitchId) {
            let to_hosts = fabric.ports[fabric.switch_node(switch).index()].iter();
            let to_hosts = to_hosts.filter(|&&link| fabric.as_host(fabric.link(link).to).is_some());
            to_hosts.for_each(|link| group_of[link.index()] = Some(racks + quotient.class_of(switch) as u32));
        }
        Some(Precedence { groups, group_of })
    }

    /// By link, how late packets can arrive there at most. `wait` returns the longest wait for a link, given its rate
    /// and how late packets can arrive there.
    pub fn lateness(&self, wait: impl Fn(Rate, Duration) -> Duration) -> Vec<Duration> {
        let mut late: Vec<(Duration, Duration)> = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let before = group.before.iter().map(|&place| late[place as usize].1).max().unwrap_or(Duration::ZERO);
            let here = if group.rate == Rate::ZERO { Duration::ZERO } else { wait(group.rate, before) };
            let behind = Duration::from_ps(before.ps().saturating_add(here.ps()));
            late.push((before, behind));
        }
        self.group_of.iter().map(|group| group.map_or(Duration::ZERO, |group| late[group as usize].0)).collect()
    }
}

/// By bundle, the bundles that can directly precede it; and by rack, those that can directly precede its links to
/// hosts.
fn before(quotient: &Quotient) -> (Vec<BTreeSet<usize>>, Vec<BTreeSet<usize>>) {
    let (racks, classes) = (quotient.racks(), quotient.classes());
    let mut before = vec![BTreeSet::new(); quotient.bundles().len()];
    let mut last = vec![BTreeSet::new(); racks];
    for rack in 0..racks {
        // From the farthest switches on, along all shortest paths to this rack.
        let mut order: Vec<usize> = (0..classes).collect();
        order.sort_by_key(|&class| std::cmp::Reverse(quotient.distance(class, rack)));
        let mut into = vec![Vec::new(); classes];
        for class in order.into_iter().filter(|&class| class != rack) {
            // A switch without hosts that no path to this rack passes.
            if class >= racks && into[class].is_empty() {
                continue;
            }
            for bundle in quotient.towards(class, rack) {
                before[bundle].extend(into[class].iter().copied());
                into[quotient.bundles()[bundle].to].push(bundle);
            }
        }
        last[rack].extend(into[rack].iter().copied());
    }
    (before, last)
}

/// All bundles in topological order; none if there is a cycle.
fn sorted(before: &[BTreeSet<usize>]) -> Option<Vec<usize>> {
    let mut after = vec![Vec::new(); before.len()];
    for (bundle, before) in before.iter().enumerate() {
        before.iter().for_each(|&of| after[of].push(bundle));
    }
    let mut left: Vec<usize> = before.iter().map(BTreeSet::len).collect();
    let mut free: VecDeque<usize> = (0..before.len()).filter(|&bundle| left[bundle] == 0).collect();
    let mut order = Vec::with_capacity(before.len());
    while let Some(bundle) = free.pop_front() {
        order.push(bundle);
        for &next in &after[bundle] {
            left[next] -= 1;
            if left[next] == 0 {
                free.push_back(next);
            }
        }
    }
    (order.len() == before.len()).then_some(order)
}

#[cfg(test)]
mod tests;
