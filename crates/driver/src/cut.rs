//! How a network is cut into parts: which node is where.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use fabric::Fabric;
use run::Plan;
use serde::Serialize;
use units::{LinkId, NodeId, PortId};

use crate::{End, Islands};

/// A network cut into parts: where everything is.
pub struct Cut {
    parts: usize,
    /// By district of its islands, its parts.
    districts: Vec<Range<usize>>,
    /// By link, the part of the port at which it begins.
    part_of: Vec<u32>,
    /// By node, its parts, and its place among the hosts or the switches of each. A switch that was taken apart has
    /// several.
    places: Vec<Vec<(u32, u32)>>,
    /// By link, the place of its receiving end in the receiver's part: in the order of nodes and their ports.
    link_rx_of: Vec<u32>,
    /// By link, the place of its sending end in the sender's part.
    link_tx_of: Vec<u32>,
}

/// What a part of a network holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Its hosts.
    pub hosts: u32,
    /// Its switches.
    pub switches: u32,
    /// Other parts that it has links to.
    pub neighbours: u32,
}

impl Cut {
    /// Into at most `parts` parts: no more than there are clumps with hosts, since a clump stays in one part.
    pub fn new(plan: &Plan, parts: usize) -> Cut {
        Cut::of_islands(plan, parts, &Islands::one(plan))
    }

    /// The same, but no part has nodes of two districts. So there may be more.
    pub fn of_islands(plan: &Plan, parts: usize, islands: &Islands) -> Cut {
        let fabric = &plan.fabric;
        let (part_of, districts) = part_of_ports(plan, parts, islands);
        let parts = districts.last().map_or(0, |last| last.end);
        let numbered = |part: u32, count: &mut [u32]| {
            let next = &mut count[part as usize];
            *next += 1;
            *next - 1
        };
        let mut count = vec![0; parts];
        // A link ends at the port at which the one back begins.
        let mut link_rx_of = vec![0; fabric.links.len()];
        for &back in fabric.ports.iter().flatten() {
            link_rx_of[Fabric::reverse(back).index()] = numbered(part_of[back.index()], &mut count);
        }
        // Hosts come first, so outlets are in the order of (node, port) in every part.
        let (mut hosts, mut switches, mut link_txs) = (vec![0; parts], vec![0; parts], vec![0; parts]);
        let (mut places, mut link_tx_of) = (Vec::new(), vec![0; fabric.links.len()]);
        for (node, ports) in (0..).map(NodeId).zip(&fabric.ports) {
            let of_kind = if fabric.as_host(node).is_some() { &mut hosts } else { &mut switches };
            let parts: BTreeSet<u32> = ports.iter().map(|link| part_of[link.index()]).collect();
            for &part in &parts {
                for link in ports {
                    let link_tx = numbered(part, &mut link_txs);
                    if part_of[link.index()] == part {
                        link_tx_of[link.index()] = link_tx;
                    }
                }
            }
            places.push(parts.into_iter().map(|part| (part, numbered(part, of_kind))).collect());
        }
        Cut { parts, districts, part_of, places, link_rx_of, link_tx_of }
    }

    /// What each part holds.
    pub fn shapes(&self, fabric: &Fabric) -> Vec<Shape> {
        let mut shapes = vec![Shape { hosts: 0, switches: 0, neighbours: 0 }; self.parts];
        for node in (0..fabric.nodes()).map(NodeId) {
            for part in self.parts_of(node) {
                let shape = &mut shapes[part];
                *(if fabric.as_host(node).is_some() { &mut shape.hosts } else { &mut shape.switches }) += 1;
            }
        }
        let links = (0..fabric.links.len()).map(LinkId::from);
        let between = links.map(|link| (self.sender_of(link), self.receiver_of(link)));
        let between: BTreeSet<_> = between.filter(|(from, to)| from != to).collect();
        between.iter().for_each(|&(from, _)| shapes[from].neighbours += 1);
        shapes
    }

    /// How many parts.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// By district, its parts.
    pub fn districts(&self) -> &[Range<usize>] {
        &self.districts
    }

    /// The part of a node that was not taken apart.
    pub fn part_of(&self, node: NodeId) -> usize {
        self.places[node.index()][0].0 as usize
    }

    /// The parts of a node: several of a switch that was taken apart.
    pub fn parts_of(&self, node: NodeId) -> impl Iterator<Item = usize> {
        self.places[node.index()].iter().map(|of| of.0 as usize)
    }

    /// The part in which a link begins.
    pub fn sender_of(&self, link: LinkId) -> usize {
        self.part_of[link.index()] as usize
    }

    /// The part in which a link ends.
    pub fn receiver_of(&self, link: LinkId) -> usize {
        self.sender_of(Fabric::reverse(link))
    }

    /// The place of a node among the hosts or the switches of a part.
    pub(crate) fn place_in(&self, part: usize, node: NodeId) -> u32 {
        let mut places = self.places[node.index()].iter();
        places.find(|of| of.0 as usize == part).expect("the node is in that part").1
    }

    /// The place of a link's receiving end in the part of the node that it leads to.
    pub fn link_rx_of(&self, link: LinkId) -> u32 {
        self.link_rx_of[link.index()]
    }

    /// The place of a link's sending end in the part of the node that it comes from.
    pub fn link_tx_of(&self, link: LinkId) -> u32 {
        self.link_tx_of[link.index()]
    }

    /// A port in a part that has its node.
    pub(crate) fn end(&self, fabric: &Fabric, part: usize, node: NodeId, port: PortId) -> End {
        let index = self.place_in(part, node);
        match fabric.as_host(node) {
            Some(_) => End::Host { index, port },
            None => End::Switch { index, port },
        }
    }
}

/// By link the part of the port at which it begins, and by district its parts.
///
/// What must stay together is a clump: a rack's switch with its hosts, and nodes whose links are shorter than the
/// lookahead. Clumps are taken in the order of the fabric's groups (pods, racks, rows), so that neighbours share a
/// part: those with hosts fill one part after the other, and switches without hosts are dealt out evenly over the parts
/// that their group fills, since in a Clos network each of them is as near to one rack as to another.
fn part_of_ports(plan: &Plan, parts: usize, islands: &Islands) -> (Vec<u32>, Vec<Range<usize>>) {
    let fabric = &plan.fabric;
    let clump_of = fabric.clumps(plan.lookahead);
    // By district and clump, the nodes; a switch that is taken apart is in several.
    let mut clumps: BTreeMap<(usize, u32), Vec<NodeId>> = BTreeMap::new();
    for (node, ports) in (0..).map(NodeId).zip(&fabric.ports) {
        let districts: BTreeSet<usize> = ports.iter().map(|&link| islands.district_of(link)).collect();
        for district in districts {
            clumps.entry((district, clump_of[node.index()])).or_default().push(node);
        }
    }
    // By district and group: clumps with hosts, and others.
    let mut groups = vec![BTreeMap::<u32, [Vec<Vec<NodeId>>; 2]>::new(); islands.districts()];
    for ((district, _), clump) in clumps {
        let bare = clump.iter().all(|&node| fabric.as_host(node).is_none());
        let group = fabric.group_of[clump[0].index()];
        groups[district].entry(group).or_default()[usize::from(bare)].push(clump);
    }
    let hosted = |groups: &BTreeMap<u32, [Vec<_>; 2]>| groups.values().map(|of| of[0].len()).sum::<usize>();
    let all = groups.iter().map(hosted).sum::<usize>();
    let (mut part_of, mut ranges) = (vec![0; fabric.links.len()], Vec::new());
    for (district, groups) in groups.iter().enumerate() {
        // A district may have no host, if jobs of different racks share switches.
        let (hosted, mut done) = (hosted(groups).max(1), 0);
        let (first, parts) = (ranges.last().map_or(0, |last: &Range<usize>| last.end), parts.min(all));
        let parts = (parts * hosted / all).clamp(1, hosted);
        for [hosted_here, bare] in groups.values() {
            let part = |place: usize| ((done + place) * parts / hosted).min(parts - 1) + first;
            let count = hosted_here.len();
            let placed = hosted_here.iter().enumerate();
            let dealt = bare.iter().enumerate().map(|(place, clump)| (place * count.max(1) / bare.len(), clump));
            for (place, clump) in placed.chain(dealt) {
                let ports = clump.iter().flat_map(|node| &fabric.ports[node.index()]);
                let here = ports.filter(|&&link| islands.district_of(link) == district);
                here.for_each(|link| part_of[link.index()] = part(place) as u32);
            }
            done += count;
        }
        ranges.push(first..first + parts);
    }
    (part_of, ranges)
}
