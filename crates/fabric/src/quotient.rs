//! A fabric folded along its symmetries, so that a network of 100,000 hosts becomes a few thousand nodes.
//!
//! Switches that are indistinguishable as seen from the racks form one *class*: they have the same delay and, to every
//! class, the same number of links of each kind. (This is the coarsest equitable partition in which every switch with
//! hosts is alone, found by colour refinement.) The spines of a leaf-spine are one class. In a fat-tree, the
//! aggregation switches of a pod are one class, and so are all cores. In a fabric without symmetry each switch is its
//! own class; folding then saves nothing.
//!
//! Links between the same two classes with the same rate and propagation delay form a [`Bundle`]. Two properties of
//! shortest paths between racks follow, by induction over the distance:
//!
//! - the distance to a rack depends only on a switch's class;
//! - if each switch spreads its traffic evenly over its equal-cost ports, all links of a bundle carry the same load,
//!   whatever the traffic. So a bundle is full exactly when each of its links is.
//!
//! Both hold for sums of capacities too: a maximum flow between racks is the same in the folded graph.
//!
//! Deliberately absent: failures, which break the symmetry. Use [`Routes`](crate::Routes) for routes around them.

use std::collections::{BTreeMap, BTreeSet};

use units::{Duration, HostId, LinkId, Rate, SwitchId};

use crate::frontier::{Frontier, Length};
use crate::{Fabric, Link};

/// The folded fabric, with all shortest paths between racks.
///
/// Classes are numbered from 0: first the switches with hosts (racks), in their order, then the other switches.
#[derive(Clone, Debug)]
pub struct Quotient {
    class_of: Vec<u32>,
    racks: usize,
    classes: usize,
    /// In the order of the classes that they leave.
    bundles: Vec<Bundle>,
    /// By class: its first bundle. One more entry at the end.
    first: Vec<u32>,
    /// By rack * classes + class: length of the path to the rack.
    length: Vec<Length>,
    /// By rack * classes + class: the bundle on the path that takes a full packet the least time, with [`SEVERAL`] set
    /// if other bundles lie on shortest paths too.
    fastest: Vec<u32>,
}

/// Links between two classes of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The class that it leaves.
    pub from: usize,
    /// The class that it leads to.
    pub to: usize,
    /// Number of its links at each switch of `from`.
    pub per_switch: u32,
    /// Whether its links join groups of a dragonfly ([`Link::global`]).
    pub global: bool,
    /// Its links, grouped by switch.
    pub links: Vec<LinkId>,
}

const NONE: u32 = u32::MAX;
const SEVERAL: u32 = 1 << 31;

impl Quotient {
    /// Folds a fabric.
    pub fn new(fabric: &Fabric) -> Quotient {
        let (class_of, racks, classes) = partition(fabric);
        let bundles = bundles(fabric, &class_of);
        let below = |class| bundles.partition_point(|bundle| bundle.from < class) as u32;
        let first = (0..=classes).map(below).collect();
        let cells = racks * classes;
        let mut quotient = Quotient {
            class_of,
            racks,
            classes,
            bundles,
            first,
            length: vec![Length::NONE; cells],
            fastest: vec![NONE; cells],
        };
        quotient.find_paths(fabric);
        quotient
    }

    /// Number of switches with hosts.
    pub fn racks(&self) -> usize {
        self.racks
    }

    /// Number of classes, racks included.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// All bundles, by their numbers.
    pub fn bundles(&self) -> &[Bundle] {
        &self.bundles
    }

    /// The class of a switch.
    #[inline]
    pub fn class_of(&self, switch: SwitchId) -> usize {
        self.class_of[switch.index()] as usize
    }

    /// The class of the switch that a host is attached to; of the first, if there are several.
    #[inline]
    pub fn rack_of(&self, fabric: &Fabric, host: HostId) -> usize {
        self.class_of(fabric.rack_of(host))
    }

    /// The classes of all switches that a host is attached to, ascending.
    pub fn racks_of(&self, fabric: &Fabric, host: HostId) -> Vec<usize> {
        let mut racks: Vec<usize> =
            fabric.uplinks(host).iter().map(|&uplink| self.class_of(fabric.switch_at(uplink))).collect();
        racks.sort_unstable();
        racks.dedup();
        racks
    }

    /// Number of links on a shortest path from the nearest of the classes `from` to the nearest of the racks `to`.
    pub fn nearest(&self, from: &[usize], to: &[usize]) -> u32 {
        let each = |&class| to.iter().map(move |&rack| self.distance(class, rack));
        from.iter().flat_map(each).min().unwrap_or(NONE)
    }

    /// Number of links on a shortest path from a switch of `class` to the switch of `rack`.
    #[inline]
    pub fn distance(&self, class: usize, rack: usize) -> u32 {
        self.length(class, rack).links
    }

    #[inline]
    fn length(&self, class: usize, rack: usize) -> Length {
        self.length[rack * self.classes + class]
    }

    /// The numbers of the bundles that leave a class.
    #[inline]
    pub fn leaving(&self, class: usize) -> std::ops::Range<usize> {
        self.first[class] as usize..self.first[class + 1] as usize
    }

    /// The numbers of the bundles on shortest paths from a class to a rack.
    pub fn towards(&self, class: usize, rack: usize) -> impl Iterator<Item = usize> + '_ {
        let here = self.length(class, rack);
        let fastest = self.fastest[rack * self.classes + class];
        // Without SEVERAL only the fastest bundle leads to the rack, as from a spine.
        let candidates = match fastest & SEVERAL {
            0 => fastest as usize..fastest as usize + 1,
            _ => self.leaving(class),
        };
        candidates.filter(move |&bundle| {
            let Bundle { to, global, .. } = self.bundles[bundle];
            self.length(to, rack).and(global) == here
        })
    }

    /// Fills `links` with the links of a switch that lie on shortest paths to a rack, in port order.
    pub fn leading_on(&self, fabric: &Fabric, switch: SwitchId, rack: usize, links: &mut Vec<LinkId>) {
        let node = fabric.switch_node(switch);
        links.clear();
        for bundle in self.towards(self.class_of(switch), rack) {
            let Bundle { links: all, per_switch, .. } = &self.bundles[bundle];
            let first = all.partition_point(|&link| fabric.link(link).from < node);
            links.extend_from_slice(&all[first..first + *per_switch as usize]);
        }
        links.sort_unstable_by_key(|&link| fabric.link(link).from_port);
    }

    /// The bundles of the fastest shortest path between two racks: the one that takes a single 1,500 B packet the least
    /// time.
    pub fn path(&self, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            if at == to {
                return None;
            }
            let bundle = (self.fastest[to * self.classes + at] & !SEVERAL) as usize;
            at = self.bundles[bundle].to;
            Some(bundle)
        })
    }

    /// Number of parallel links at each hop of the shortest paths from the nearest of the racks `from` to the nearest
    /// of the racks `to`: the most that a message can be spread over there. Also returns the racks where these paths
    /// begin and those where they end.
    pub fn widths(&self, from: &[usize], to: &[usize]) -> (Vec<u32>, [Vec<usize>; 2]) {
        let mut widths = Vec::new();
        let nearest = self.nearest(from, to);
        let starts: Vec<usize> = from.iter().copied().filter(|&rack| self.nearest(&[rack], to) == nearest).collect();
        let mut level = starts.clone();
        for left in (1..=nearest).rev() {
            // Every switch of a class that is reached counts, and all links of a bundle lead on from each.
            let leading = |&class: &usize| {
                let ends = to.iter().filter(move |&&rack| self.distance(class, rack) == left);
                ends.flat_map(move |&rack| self.towards(class, rack))
            };
            let onward: BTreeSet<usize> = level.iter().flat_map(leading).collect();
            widths.push(onward.iter().map(|&bundle| self.bundles[bundle].links.len() as u32).sum());
            level = onward.into_iter().map(|bundle| self.bundles[bundle].to).collect();
            level.sort_unstable();
            level.dedup();
        }
        (widths, [starts, level])
    }

    /// The share of the traffic from one rack to another that crosses each bundle, if every switch spreads it evenly
    /// over its ports on shortest paths. Nearer bundles come first.
    pub fn shares(&self, from: usize, to: usize) -> Vec<(usize, f64)> {
        let mut shares = Vec::new();
        let mut level = vec![(from, 1.0)];
        while level != [(to, 1.0)] {
            let mut next: Vec<(usize, f64)> = Vec::new();
            for (class, mass) in level {
                let ports: u32 = self.towards(class, to).map(|bundle| self.bundles[bundle].per_switch).sum();
                for bundle in self.towards(class, to) {
                    let Bundle { to, per_switch, .. } = self.bundles[bundle];
                    let share =
                        if per_switch == ports { mass } else { mass * f64::from(per_switch) / f64::from(ports) };
                    shares.push((bundle, share));
                    match next.iter_mut().find(|(class, _)| *class == to) {
                        Some((_, mass)) => *mass += share,
                        None => next.push((to, share)),
                    }
                }
            }
            if let [(only, mass)] = &mut next[..] {
                // All traffic passes this class, so its share is 1 whatever the rounding of the sum.
                debug_assert!((*mass - 1.0).abs() < 1e-9, "{mass} of the traffic is in class {only}");
                *mass = 1.0;
            }
            level = next;
        }
        shares
    }

    /// One search backwards from each rack.
    fn find_paths(&mut self, fabric: &Fabric) {
        let cost = |bundle: &Bundle| fabric.hop_time(bundle.links[0], 1500).ps();
        let cost: Vec<u64> = self.bundles.iter().map(cost).collect();
        let mut frontier = Frontier::default();
        let mut time = vec![0u64; self.classes];
        for rack in 0..self.racks {
            let column = rack * self.classes..(rack + 1) * self.classes;
            let (length, fastest) = (&mut self.length[column.clone()], &mut self.fastest[column]);
            (length[rack], time[rack]) = (Length::ZERO, 0);
            frontier.push(Length::ZERO, rack as u32, false);
            while let Some((here, class)) = frontier.pop() {
                let class = class as usize;
                if here != length[class] {
                    continue;
                }
                let (mut best, mut candidates) = ((u64::MAX, NONE), 0);
                // When a class leaves the frontier all nearer classes are settled, so its bundles are too.
                for bundle in self.first[class]..self.first[class + 1] {
                    let Bundle { to, global, .. } = self.bundles[bundle as usize];
                    if here.and(global) < length[to] {
                        length[to] = here.and(global);
                        frontier.push(here.and(global), to as u32, global);
                    } else if length[to].and(global) == here {
                        best = best.min((cost[bundle as usize].saturating_add(time[to]), bundle));
                        candidates += 1;
                    }
                }
                if class != rack {
                    (time[class], fastest[class]) = best;
                    fastest[class] |= if candidates > 1 { SEVERAL } else { 0 };
                }
            }
        }
    }
}

/// A link as seen by its switch: the class it leads to, its rate and its propagation delay.
type Sight = (u32, Rate, Duration);

/// The class of each switch, the number of racks and that of classes.
fn partition(fabric: &Fabric) -> (Vec<u32>, usize, usize) {
    let mut is_rack = vec![false; fabric.switches as usize];
    for &uplink in (0..fabric.hosts).flat_map(|host| fabric.uplinks(HostId(host))) {
        is_rack[fabric.switch_at(uplink).index()] = true;
    }
    let racks = is_rack.iter().filter(|is_rack| **is_rack).count();
    let mut class_of = vec![0u32; is_rack.len()];
    let mut next_rack = 0..;
    for switch in (0..class_of.len()).filter(|&switch| is_rack[switch]) {
        class_of[switch] = next_rack.next().expect("endless");
    }
    let mut known: BTreeMap<Duration, u32> = BTreeMap::new();
    let others: Vec<SwitchId> = (0..fabric.switches).map(SwitchId).filter(|switch| !is_rack[switch.index()]).collect();
    for switch in &others {
        let next = (racks + known.len()) as u32;
        class_of[switch.index()] = *known.entry(fabric.switch_delay[switch.index()]).or_insert(next);
    }
    let mut classes = racks + known.len();
    loop {
        // A switch's next class depends on its links and on its previous class.
        let mut known: BTreeMap<(u32, Vec<Sight>), u32> = BTreeMap::new();
        let mut refined = class_of.clone();
        for &switch in &others {
            let mut seen: Vec<Sight> = fabric.ports[fabric.switch_node(switch).index()]
                .iter()
                .map(|&link| fabric.link(link))
                .map(|link| (class_of[far_switch(fabric, link)], link.rate, link.propagation))
                .collect();
            seen.sort_unstable();
            let next = (racks + known.len()) as u32;
            refined[switch.index()] = *known.entry((class_of[switch.index()], seen)).or_insert(next);
        }
        let before = std::mem::replace(&mut classes, racks + known.len());
        class_of = refined;
        if classes == before {
            return (class_of, racks, classes);
        }
    }
}

fn far_switch(fabric: &Fabric, link: &Link) -> usize {
    fabric.as_switch(link.to).expect("a switch without hosts has links to switches alone").index()
}

fn bundles(fabric: &Fabric, class_of: &[u32]) -> Vec<Bundle> {
    let mut grouped: BTreeMap<(u32, Sight), Vec<LinkId>> = BTreeMap::new();
    for (id, link) in fabric.links.iter().enumerate() {
        if let (Some(from), Some(to)) = (fabric.as_switch(link.from), fabric.as_switch(link.to)) {
            let key = (class_of[from.index()], (class_of[to.index()], link.rate, link.propagation));
            grouped.entry(key).or_default().push(LinkId::from(id));
        }
    }
    let bundle = |((from, (to, ..)), mut links): ((u32, Sight), Vec<LinkId>)| {
        links.sort_by_key(|&link| fabric.link(link).from);
        let sender = fabric.link(links[0]).from;
        let per_switch = links.iter().filter(|link| fabric.link(**link).from == sender).count() as u32;
        let global = fabric.link(links[0]).global;
        Bundle { from: from as usize, to: to as usize, per_switch, global, links }
    };
    let mut bundles: Vec<Bundle> = grouped.into_iter().map(bundle).collect();
    bundles.sort_by_key(|bundle| (bundle.from, bundle.links[0]));
    bundles
}
