//! What all nodes of a rack know of its topology (section 3.2 assumes that a discovery protocol tells them), and what
//! they compute from it.
//!
//! A broadcast tree is a shortest-path tree of its source. Each switch is below one of its next hops towards the
//! source, drawn by the tree's number, so that the trees of one source, and those of different sources, share the links
//! evenly. Refreshes go over two more trees, whose paths share nothing (`independent`): section 3.2 has the choice of a
//! tree "account for link and node failures" and doesn't say how. Tables only hold a switch's children in a tree: the
//! FIB of section 3.2, indexed by {source, tree}.
//!
//! Every node computes rates from its own view. Equal views have equal rates, so each distinct view is computed once in
//! a run, whichever node asks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fabric::{Fabric, LinkWeight, Routes, Routing, RoutingTables};
use rustc_hash::FxHashMap;
use units::{HostId, LinkId, PortId, SwitchId, mix};

use super::independent;
use super::rates::{Allocator, Flow};
use super::view::View;

/// Most shortest-path trees of a source.
pub const TREES_MAX: u8 = 16;
/// The two trees of refreshes follow.
const REFRESH_TREES: u8 = 2;
/// All trees of a source.
const TREES: usize = (TREES_MAX + REFRESH_TREES) as usize;

/// The tree of a flow's next refresh after this many.
pub fn refresh_tree(refreshes: u8) -> u8 {
    TREES_MAX + refreshes % REFRESH_TREES
}

/// One topology: the initial one, or what failures have left of it.
pub struct Network {
    /// Paths and weights.
    pub tables: RoutingTables,
    trees: Vec<OnceLock<Tree>>,
    /// By switch: its hosts and their ports.
    hosts: Vec<Vec<(HostId, PortId)>>,
}

/// By switch: the ports to its children.
struct Tree {
    first: Vec<u32>,
    ports: Vec<PortId>,
}

impl Network {
    fn new(fabric: Arc<Fabric>, routes: Arc<Routes>) -> Network {
        let mut hosts = vec![Vec::new(); fabric.switches as usize];
        for host in (0..fabric.hosts).map(HostId) {
            let uplink = fabric.link(fabric.uplink(host));
            hosts[fabric.rack_of(host).index()].push((host, uplink.to_port));
        }
        let trees = (0..fabric.hosts as usize * TREES).map(|_| OnceLock::new()).collect();
        Network { tables: RoutingTables::new(fabric, routes), trees, hosts }
    }

    /// The ports by which a switch forwards a broadcast to other switches; `None` for a tree that does not exist.
    pub fn children(&self, src: HostId, tree: u8, switch: SwitchId) -> &[PortId] {
        let place = Some(usize::from(tree)).filter(|&tree| tree < TREES).map(|tree| src.index() * TREES + tree);
        let Some(slot) = place.and_then(|place| self.trees.get(place)) else { return &[] };
        let tree = slot.get_or_init(|| self.grow(src, tree));
        &tree.ports[tree.first[switch.index()] as usize..tree.first[switch.index() + 1] as usize]
    }

    /// The links that a flow uses, including its hosts' links, with the expected number of crossings of a packet.
    /// `None` without a path.
    pub fn links(&self, routing: Routing, src: HostId, dst: HostId) -> Vec<LinkWeight> {
        if self.tables.routes().hops(src, dst).is_none() {
            return Vec::new();
        }
        let (fabric, between) = (self.tables.fabric(), self.tables.weights(routing, src, dst));
        let mut links = Vec::with_capacity(between.len() + 2);
        links.push(LinkWeight { link: fabric.uplink(src), weight: 1.0 });
        links.extend_from_slice(&between);
        links.push(LinkWeight { link: Fabric::reverse(fabric.uplink(dst)), weight: 1.0 });
        links
    }

    /// The hosts of a switch, and their ports.
    pub fn hosts_of(&self, switch: SwitchId) -> &[(HostId, PortId)] {
        &self.hosts[switch.index()]
    }

    fn grow(&self, src: HostId, tree: u8) -> Tree {
        let (fabric, root) = (self.tables.fabric(), self.tables.routes().home(src));
        let own = (tree >= TREES_MAX).then(|| self.independent(root, tree > TREES_MAX));
        let up = |switch: SwitchId| match &own {
            Some(ports) => ports[switch.index()],
            None => self.nearer(src, tree, switch),
        };
        let mut reached = vec![false; fabric.switches as usize];
        reached[root.index()] = true;
        let mut edges = Vec::with_capacity(reached.len());
        // From each switch with hosts back to the part already reached; switches without hosts need nothing.
        for mut switch in (0..fabric.hosts).map(|host| self.tables.routes().home(HostId(host))) {
            while !reached[switch.index()] {
                let Some(port) = up(switch) else { break };
                let up = fabric.link(fabric.out_link(switch, port));
                reached[switch.index()] = true;
                switch = fabric.as_switch(up.to).expect("on the way to another switch");
                edges.push((switch, up.to_port));
            }
        }
        edges.sort_unstable();
        let below = |switch| edges.partition_point(|edge| edge.0.0 < switch) as u32;
        Tree { first: (0..=fabric.switches).map(below).collect(), ports: edges.iter().map(|edge| edge.1).collect() }
    }

    /// In a shortest-path tree, the port of a switch to the one above. It is the first next hop in an order of the
    /// nodes above that is drawn for the tree. Switches with the same nodes above meet at one of them, so in a Clos one
    /// spine leads to all leaves.
    fn nearer(&self, src: HostId, tree: u8, switch: SwitchId) -> Option<PortId> {
        let fabric = self.tables.fabric();
        let above = |port: PortId| fabric.link(fabric.out_link(switch, port)).to;
        let draw = |&port: &PortId| mix(mix(u64::from(tree), u64::from(src.0)), u64::from(above(port).0));
        self.tables.routes().next(switch, src).iter().copied().min_by_key(draw)
    }

    /// The same in one of the trees of refreshes, by switch.
    fn independent(&self, root: SwitchId, higher: bool) -> Vec<Option<PortId>> {
        let (fabric, routes) = (self.tables.fabric(), self.tables.routes());
        let to_switch = |&link: &LinkId| Some((fabric.as_switch(fabric.link(link).to)?, fabric.link(link).from_port));
        let works = |&&link: &&LinkId| routes.works(link) && routes.works(Fabric::reverse(link));
        let ports: Vec<Vec<(SwitchId, PortId)>> = (0..fabric.switches)
            .map(|switch| &fabric.ports[fabric.switch_node(SwitchId(switch)).index()])
            .map(|links| links.iter().filter(works).filter_map(to_switch).collect())
            .collect();
        let neighbours: Vec<Vec<usize>> =
            ports.iter().map(|ports| ports.iter().map(|port| port.0.index()).collect()).collect();
        let parents = independent::parents(&neighbours, root.index(), higher);
        let port = |(of, parent): (&Vec<(SwitchId, PortId)>, Option<usize>)| {
            of.iter().find(|port| Some(port.0.index()) == parent).map(|port| port.1)
        };
        ports.iter().zip(parents).map(port).collect()
    }
}

/// All topologies of a run.
#[derive(Default)]
pub struct Networks(Mutex<Vec<Arc<Network>>>);

impl Networks {
    /// The topology with these routes.
    pub fn of(&self, fabric: &Arc<Fabric>, routes: &Arc<Routes>) -> Arc<Network> {
        let same = |known: &Network| Arc::ptr_eq(known.tables.routes(), routes);
        found_or_made(&self.0, same, || Network::new(fabric.clone(), routes.clone()))
    }
}

/// The rates of all flows of a view.
pub struct Rates {
    /// By source: start of its flows.
    first: Vec<(HostId, u32)>,
    bps: Vec<f64>,
}

impl Rates {
    /// Rates of a source's flows, in order of their keys.
    pub fn of(&self, src: HostId) -> &[f64] {
        let Ok(place) = self.first.binary_search_by_key(&src, |of| of.0) else { return &[] };
        let end = self.first.get(place + 1).map_or(self.bps.len(), |next| next.1 as usize);
        &self.bps[self.first[place].1 as usize..end]
    }

    /// Rates of all flows.
    pub fn all(&self) -> &[f64] {
        &self.bps
    }
}

/// The rate computation of one topology and headroom.
pub struct Calculator {
    /// The topology.
    pub network: Arc<Network>,
    headroom: f64,
    capacity_bps: Vec<f64>,
    /// As many as were needed at one time.
    allocators: Mutex<Vec<Allocator>>,
    known: Mutex<FxHashMap<u128, Arc<Rates>>>,
}

/// Number of views whose rates are kept.
const KNOWN_MAX: usize = 1024;

impl Calculator {
    fn new(network: Arc<Network>, headroom: f64) -> Calculator {
        let fabric = network.tables.fabric();
        let works = |link: usize| network.tables.routes().works(LinkId::from(link));
        let capacity = |(index, link): (usize, &fabric::Link)| {
            if works(index) { link.rate.bps() as f64 * (1.0 - headroom) } else { 0.0 }
        };
        let capacity_bps: Vec<f64> = fabric.links.iter().enumerate().map(capacity).collect();
        let (allocators, known) = (Mutex::default(), Mutex::default());
        Calculator { network, headroom, capacity_bps, allocators, known }
    }

    /// The rates of a view's flows.
    pub fn rates(&self, view: &View) -> Arc<Rates> {
        let known = |all: &FxHashMap<u128, Arc<Rates>>| all.get(&view.digest()).cloned();
        if let Some(rates) = known(&self.known.lock().unwrap_or_else(PoisonError::into_inner)) {
            return rates;
        }
        let mut first: Vec<(HostId, u32)> = Vec::new();
        let mut weights = Vec::with_capacity(view.len());
        for (index, (key, known)) in (0..).zip(view.iter()) {
            if first.last().is_none_or(|last| last.0 != key.src) {
                first.push((key.src, index));
            }
            weights.push(self.network.links(known.params.routing, key.src, key.dst));
        }
        let flows: Vec<Flow<'_>> =
            view.iter().zip(&weights).map(|((_, known), links)| flow(&known.params, links)).collect();
        let rates = Arc::new(Rates { first, bps: self.allocate(&flows) });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(view.digest(), rates.clone());
        rates
    }

    /// The rates of any flows.
    pub fn allocate(&self, flows: &[Flow<'_>]) -> Vec<f64> {
        let idle = || self.allocators.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut allocator = taken.unwrap_or_else(|| Allocator::new(&self.capacity_bps));
        let rates = allocator.allocate(flows).to_vec();
        idle().push(allocator);
        rates
    }

    /// By link: capacity available to rates, in bits per second.
    pub fn capacity_bps(&self) -> &[f64] {
        &self.capacity_bps
    }

    /// The rate of a flow that is alone in the rack: that of its slowest link. Infinite if it uses none.
    pub fn alone_bps(&self, links: &[LinkWeight]) -> f64 {
        let share = |weight: &LinkWeight| self.capacity_bps[weight.link.index()] / f64::from(weight.weight);
        links.iter().map(share).fold(f64::INFINITY, f64::min)
    }
}

/// A flow's input to the rate computation.
pub fn flow<'a>(params: &super::view::Params, links: &'a [LinkWeight]) -> Flow<'a> {
    Flow { links, weight: f64::from(params.weight), priority: params.priority, demand: params.demand_bps() }
}

/// All calculators of a run.
#[derive(Default)]
pub struct Calculators(Mutex<Vec<Arc<Calculator>>>);

impl Calculators {
    /// The calculator of this topology and headroom.
    pub fn of(&self, network: &Arc<Network>, headroom: f64) -> Arc<Calculator> {
        let same =
            |known: &Calculator| Arc::ptr_eq(&known.network, network) && known.headroom.to_bits() == headroom.to_bits();
        found_or_made(&self.0, same, || Calculator::new(network.clone(), headroom))
    }
}

fn found_or_made<T>(all: &Mutex<Vec<Arc<T>>>, same: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> Arc<T> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.iter().find(|known| same(known)) {
        return known.clone();
    }
    let made = Arc::new(make());
    all.push(made.clone());
    made
}
