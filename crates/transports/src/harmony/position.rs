//! Which links can lie before which on shortest paths: what a link's bound hangs on in the order of arrival
//! ([`bounds`](super::bounds)).
//!
//! How late packets come to a link is at most what the links that can lie before it add. That is a recursion which ends
//! where the links can be put in an order in which each comes after all that can lie before it: on every fabric whose
//! shortest paths go up and then down. On a torus or a mesh links lie before one another in circles, there is no such
//! order, and nothing is proven of the order of arrival.
//!
//! All is done on the fabric folded along its symmetries ([`Quotient`]): a chain of folded links is one of real links,
//! and a circle of them too.

use std::collections::{BTreeSet, VecDeque};

use fabric::{Fabric, Quotient};
use units::{Duration, Rate, SwitchId};

/// The links that switches send on, in groups that nothing distinguishes.
pub(super) struct Chains {
    /// In an order in which each comes after all that can lie before it; the links to the hosts of each rack last.
    groups: Vec<Group>,
    /// By link, the group; none for a host's own link.
    group_of: Vec<Option<u32>>,
}

struct Group {
    rate: Rate,
    /// Places of those that can lie right before it.
    before: Vec<u32>,
}

impl Chains {
    /// None where links lie before one another in circles.
    pub fn new(fabric: &Fabric) -> Option<Chains> {
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
        // Nothing follows the links to hosts, so that their rates make no difference here.
        let racks = groups.len() as u32;
        groups.extend(last.iter().map(|last| Group { rate: Rate::ZERO, before: places(last) }));
        for switch in (0..fabric.switches).map(SwitchId) {
            let to_hosts = fabric.ports[fabric.switch_node(switch).index()].iter();
            let to_hosts = to_hosts.filter(|&&link| fabric.as_host(fabric.link(link).to).is_some());
            to_hosts.for_each(|link| group_of[link.index()] = Some(racks + quotient.class_of(switch) as u32));
        }
        Some(Chains { groups, group_of })
    }

    /// By link, how late packets can come to it at most, where `wait` says how long one waits for a link of a rate to
    /// which packets come so late at most.
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

/// By bundle those that can lie right before it, and by rack those that can lie right before its links to hosts.
fn before(quotient: &Quotient) -> (Vec<BTreeSet<usize>>, Vec<BTreeSet<usize>>) {
    let (racks, classes) = (quotient.racks(), quotient.classes());
    let mut before = vec![BTreeSet::new(); quotient.bundles().len()];
    let mut last = vec![BTreeSet::new(); racks];
    for rack in 0..racks {
        // From the farthest racks on, along all shortest paths to this one.
        let mut order: Vec<usize> = (0..classes).collect();
        order.sort_by_key(|&class| std::cmp::Reverse(quotient.distance(class, rack)));
        let mut into = vec![Vec::new(); classes];
        for class in order.into_iter().filter(|&class| class != rack) {
            // A switch without hosts that no path passes.
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

/// All bundles, each after those before it; none if that can't be.
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
