use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use units::{HostId, LinkId, PortId, Problem, Stream, SwitchId};

use super::lattice::{DIMS_MAX, Hops, Lattice, Turn, orders};
use super::spray::Spray;
use super::{LinkWeight, Routing};
use crate::{Fabric, Routes};

/// Every routing protocol on one fabric, over the working links.
///
/// Weights are computed on first use and kept. They depend only on the fabric and the routes, so all nodes of a run
/// share one instance, on whatever thread.
pub struct RoutingTables {
    fabric: Arc<Fabric>,
    routes: Arc<Routes>,
    lattice: Option<Lattice>,
    /// Whether no link between switches is dead.
    intact: bool,
    /// For each switch, the number of its component: the switches that it reaches and is reached from.
    component_of: Vec<u32>,
    /// For each component, its switches with hosts: the waypoints for packets within it.
    waypoints: Vec<Vec<SwitchId>>,
    kept: RwLock<Kept>,
    /// By switch, by link: loads of a packet from the switch to a random waypoint (the first phase of VLB).
    outward: Vec<OnceLock<Box<[f32]>>>,
    /// By switch, by link: loads of a packet to the switch from a random waypoint (the second phase of VLB).
    inward: Vec<OnceLock<Box<[f32]>>>,
}

/// Weights by protocol, source and destination switch.
#[derive(Default)]
struct Kept {
    weights: HashMap<(Routing, SwitchId, SwitchId), Arc<[LinkWeight]>>,
    entries: usize,
}

/// Most weights that are kept: 128 MiB. Those of every pair of a 512-node torus under random packet spraying would take
/// more; those of the pairs in a long run take less. Beyond this, weights without a holder are dropped and computed
/// again on demand.
const ENTRIES_MAX: usize = 1 << 24;

impl RoutingTables {
    /// The protocols on a fabric, over the given routes, from which failures may be missing.
    pub fn new(fabric: Arc<Fabric>, routes: Arc<Routes>) -> RoutingTables {
        let lattice = fabric.lattice.as_ref().map(|shape| Lattice::new(&fabric, shape));
        let between = |link: &LinkId| {
            let link = fabric.link(*link);
            fabric.as_switch(link.from).is_some() && fabric.as_switch(link.to).is_some()
        };
        let intact = (0..fabric.links.len()).map(LinkId::from).filter(between).all(|link| routes.works(link));
        let (component_of, waypoints) = components(&fabric, &routes);
        let switches = fabric.switches as usize;
        RoutingTables {
            lattice,
            intact,
            component_of,
            waypoints,
            kept: RwLock::default(),
            outward: vec![OnceLock::new(); switches],
            inward: vec![OnceLock::new(); switches],
            fabric,
            routes,
        }
    }

    /// Whether this fabric's shape allows a protocol.
    pub fn check(&self, routing: Routing) -> Result<(), Problem> {
        let needs = match (routing, &self.lattice) {
            (Routing::DestinationTag, None) => "a torus or a mesh, because it follows dimensions",
            (Routing::Wlb, None) => "a torus, because it chooses a direction around each ring",
            (Routing::Wlb, Some(lattice)) if !lattice.is_torus() => "a torus, because a mesh has no second direction",
            _ => return Ok(()),
        };
        Err(Problem::new("", format!("routing \"{}\" needs {needs}", routing.name())))
    }

    /// The fabric.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// The shortest paths that the protocols use.
    pub fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// The expected number of times that a packet crosses each link between switches, in ascending order of links.
    /// Links with weight 0 are left out. Empty between hosts of one switch and where there is no path.
    ///
    /// Panics if the fabric's shape does not allow the protocol: see [`RoutingTables::check`].
    pub fn weights(&self, routing: Routing, src: HostId, dst: HostId) -> Arc<[LinkWeight]> {
        let (from, to) = (self.routes.home(src), self.routes.home(dst));
        if from == to || self.routes.hops(src, dst).is_none() {
            return Arc::default();
        }
        let key = (routing, from, to);
        if let Some(weights) = self.kept.read().unwrap_or_else(PoisonError::into_inner).weights.get(&key) {
            return weights.clone();
        }
        let weights: Arc<[LinkWeight]> = self.switch_weights(routing, from, to).into();
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.entries > ENTRIES_MAX {
            *kept = Kept::default();
        }
        kept.entries += weights.len();
        kept.weights.insert(key, weights.clone());
        weights
    }

    /// Draws a packet's path into `ports`: the output port at each switch, the last of which leads to the host. Returns
    /// false, and leaves `ports` empty, if there is no path or both hosts are the same.
    ///
    /// Panics if the fabric's shape does not allow the protocol: see [`RoutingTables::check`].
    pub fn sample(
        &self,
        routing: Routing,
        src: HostId,
        dst: HostId,
        stream: &mut Stream,
        ports: &mut Vec<PortId>,
    ) -> bool {
        ports.clear();
        if src == dst || self.routes.hops(src, dst).is_none() {
            return false;
        }
        let (from, to) = (self.routes.home(src), self.routes.home(dst));
        match routing {
            _ if from == to => {}
            Routing::RandomPacketSpraying => self.spray().draw(from, to, stream, ports),
            Routing::DestinationTag => {
                let hops = self.lattice().draw_box(from, to, Turn::Minimal, stream);
                self.draw_phase(from, to, &hops, &self.all_dims(), stream, ports);
            }
            Routing::Vlb => {
                let waypoints = self.waypoints_between(from, to);
                let &waypoint = stream.choose(waypoints).unwrap_or(&to);
                self.spray().draw(from, waypoint, stream, ports);
                self.spray().draw(waypoint, to, stream, ports);
            }
            Routing::Wlb => self.draw_weighted(from, to, stream, ports),
        }
        ports.push(self.fabric.link(self.fabric.uplink(dst)).to_port);
        true
    }

    fn draw_weighted(&self, from: SwitchId, to: SwitchId, stream: &mut Stream, ports: &mut Vec<PortId>) {
        let lattice = self.lattice();
        let hops = lattice.draw_box(from, to, Turn::Weighted, stream);
        let first = hops.map(|hops| stream.below(u64::from(hops.unsigned_abs()) + 1) as i32 * hops.signum());
        let waypoint = lattice.follow(from, &first, &self.all_dims(), |_| ());
        if !self.may_go_over(from, waypoint, to) {
            return self.spray().draw(from, to, stream, ports);
        }
        let rest = std::array::from_fn(|dim| hops[dim] - first[dim]);
        for (from, to, hops) in [(from, waypoint, first), (waypoint, to, rest)] {
            let mut order = self.all_dims();
            stream.shuffle(&mut order);
            self.draw_phase(from, to, &hops, &order, stream, ports);
        }
    }

    /// Draws a phase in the given order of dimensions, or sprays it if that path meets a dead link.
    fn draw_phase(
        &self,
        from: SwitchId,
        to: SwitchId,
        hops: &Hops,
        order: &[usize],
        stream: &mut Stream,
        ports: &mut Vec<PortId>,
    ) {
        let begin = ports.len();
        let mut works = true;
        self.lattice().follow(from, hops, order, |link| {
            works &= self.routes.works(link);
            ports.push(self.fabric.link(link).from_port);
        });
        if !works {
            ports.truncate(begin);
            self.spray().draw(from, to, stream, ports);
        }
    }

    /// The weights between two switches. The second must be reachable from the first.
    pub(super) fn switch_weights(&self, routing: Routing, from: SwitchId, to: SwitchId) -> Vec<LinkWeight> {
        let mut weights = Vec::new();
        if routing == Routing::RandomPacketSpraying {
            self.spray().load(from, to, 1.0, |link, share| {
                weights.push(LinkWeight { link, weight: share as f32 });
            });
            weights.sort_unstable_by_key(|weight| weight.link);
        } else {
            let mut loads = vec![0.0; self.fabric.links.len()];
            self.add_loads(routing, from, to, 1.0, &mut loads);
            let passed = (0..loads.len()).map(LinkId::from).zip(loads).filter(|(_, load)| *load > 0.0);
            weights.extend(passed.map(|(link, load)| LinkWeight { link, weight: load as f32 }));
        }
        weights
    }

    /// Adds the loads of `mass` packets from one switch to another that it reaches. Both may be the same switch: VLB
    /// then still uses a waypoint, as in its analysis.
    pub(super) fn add_loads(&self, routing: Routing, from: SwitchId, to: SwitchId, mass: f64, loads: &mut [f64]) {
        let spray = self.spray();
        let add = |link: LinkId, share: f64| loads[link.index()] += share;
        match routing {
            Routing::RandomPacketSpraying => spray.load(from, to, mass, add),
            Routing::DestinationTag => self.add_dimension_order(from, to, Turn::Minimal, mass, add),
            Routing::Vlb if self.waypoints_between(from, to).is_empty() => spray.load(from, to, mass, add),
            Routing::Vlb => {
                let halves = self.outward(from).iter().zip(self.inward(to));
                for (load, (outward, inward)) in loads.iter_mut().zip(halves) {
                    *load += mass * (f64::from(*outward) + f64::from(*inward));
                }
            }
            Routing::Wlb => self.add_two_phase(from, to, Turn::Weighted, mass, add),
        }
    }

    /// Adds the loads of dimension-order routing with directions drawn by `turn`.
    pub(super) fn add_dimension_order(
        &self,
        from: SwitchId,
        to: SwitchId,
        turn: Turn,
        mass: f64,
        mut add: impl FnMut(LinkId, f64),
    ) {
        let (order, mut dead) = (self.all_dims(), 0.0);
        for (hops, probability) in self.lattice().boxes(from, to, turn) {
            if !self.add_phase(from, &hops, &order, mass * probability, &mut add) {
                dead += mass * probability;
            }
        }
        if dead > 0.0 {
            self.spray().load(from, to, dead, add);
        }
    }

    /// Adds the loads of a random waypoint in the box of hops drawn by `turn`.
    pub(super) fn add_two_phase(
        &self,
        from: SwitchId,
        to: SwitchId,
        turn: Turn,
        mass: f64,
        mut add: impl FnMut(LinkId, f64),
    ) {
        for (hops, probability) in self.lattice().boxes(from, to, turn) {
            match self.intact {
                true => self.lattice().two_phase(from, &hops, mass * probability, &mut add),
                false => self.add_two_phase_around(from, to, &hops, mass * probability, &mut add),
            }
        }
    }

    /// The same with dead links: enumerates waypoints and orders of dimensions.
    fn add_two_phase_around(
        &self,
        from: SwitchId,
        to: SwitchId,
        hops: &Hops,
        mass: f64,
        add: &mut impl FnMut(LinkId, f64),
    ) {
        let lattice = self.lattice();
        let cells: u32 = hops.iter().map(|hops| hops.unsigned_abs() + 1).product();
        let share = mass / f64::from(cells);
        let mut dead = 0.0;
        // Counts the hops to the waypoint through the whole box, like an odometer.
        let mut first: Hops = [0; DIMS_MAX];
        for _ in 0..cells {
            let waypoint = lattice.follow(from, &first, &self.all_dims(), |_| ());
            if self.may_go_over(from, waypoint, to) {
                let rest = std::array::from_fn(|dim| hops[dim] - first[dim]);
                self.add_any_order(from, waypoint, &first, share, add);
                self.add_any_order(waypoint, to, &rest, share, add);
            } else {
                dead += share;
            }
            for (count, &all) in first.iter_mut().zip(hops) {
                if *count != all {
                    *count += all.signum();
                    break;
                }
                *count = 0;
            }
        }
        if dead > 0.0 {
            self.spray().load(from, to, dead, add);
        }
    }

    /// Adds the loads of a phase in a random order of dimensions, sprayed where that meets a dead link.
    fn add_any_order(&self, from: SwitchId, to: SwitchId, hops: &Hops, mass: f64, add: &mut impl FnMut(LinkId, f64)) {
        let orders = orders(hops);
        let share = mass / orders.len() as f64;
        let dead = orders.iter().filter(|order| !self.add_phase(from, hops, order, share, add)).count();
        if dead > 0 {
            self.spray().load(from, to, share * dead as f64, add);
        }
    }

    /// Adds the loads of a phase in one order of dimensions. If that meets a dead link it adds nothing and returns
    /// false.
    fn add_phase(
        &self,
        from: SwitchId,
        hops: &Hops,
        order: &[usize],
        mass: f64,
        add: &mut impl FnMut(LinkId, f64),
    ) -> bool {
        let mut works = true;
        if !self.intact {
            self.lattice().follow(from, hops, order, |link| works &= self.routes.works(link));
        }
        if works {
            self.lattice().follow(from, hops, order, |link| add(link, mass));
        }
        works
    }

    fn outward(&self, from: SwitchId) -> &[f32] {
        self.outward[from.index()].get_or_init(|| {
            let waypoints = self.waypoints_between(from, from);
            let mut loads = vec![0.0; self.fabric.links.len()];
            for &waypoint in waypoints {
                self.spray().load(from, waypoint, 1.0 / waypoints.len() as f64, |link, share| {
                    loads[link.index()] += share;
                });
            }
            loads.into_iter().map(|load| load as f32).collect()
        })
    }

    fn inward(&self, to: SwitchId) -> &[f32] {
        self.inward[to.index()].get_or_init(|| {
            let waypoints = self.waypoints_between(to, to);
            let mut loads = vec![0.0; self.fabric.links.len()];
            self.spray().gather(waypoints, to, 1.0 / waypoints.len() as f64, |link, share| {
                loads[link.index()] += share;
            });
            loads.into_iter().map(|load| load as f32).collect()
        })
    }

    /// The waypoints from `from` to `to`: switches with hosts that are reachable from the first and reach the second.
    fn waypoints_between(&self, from: SwitchId, to: SwitchId) -> &[SwitchId] {
        let component = self.component_of[from.index()];
        if component == self.component_of[to.index()] { &self.waypoints[component as usize] } else { &[] }
    }

    fn may_go_over(&self, from: SwitchId, waypoint: SwitchId, to: SwitchId) -> bool {
        let component = |switch: SwitchId| self.component_of[switch.index()];
        component(from) == component(waypoint) && component(waypoint) == component(to)
    }

    /// Makes a fabric without failures take the code path for failures (tests).
    #[cfg(test)]
    pub(super) fn assume_failures(&mut self) {
        self.intact = false;
    }

    /// The lattice, if no link is dead.
    pub(super) fn whole_lattice(&self) -> Option<&Lattice> {
        self.lattice.as_ref().filter(|_| self.intact)
    }

    fn spray(&self) -> Spray<'_> {
        Spray { fabric: &self.fabric, routes: &self.routes }
    }

    fn all_dims(&self) -> Vec<usize> {
        (0..self.lattice().dims().len()).collect()
    }

    fn lattice(&self) -> &Lattice {
        self.lattice.as_ref().expect("protocols of dimensions are checked to run on a lattice")
    }
}

/// The number of each switch's strongly connected component, and the switches with hosts of each.
fn components(fabric: &Fabric, routes: &Routes) -> (Vec<u32>, Vec<Vec<SwitchId>>) {
    let mut graph = DiGraph::<(), ()>::new();
    let nodes: Vec<_> = (0..fabric.switches).map(|_| graph.add_node(())).collect();
    for (id, link) in fabric.links.iter().enumerate() {
        let (from, to) = (fabric.as_switch(link.from), fabric.as_switch(link.to));
        if let (Some(from), Some(to), true) = (from, to, routes.works(LinkId::from(id))) {
            graph.add_edge(nodes[from.index()], nodes[to.index()], ());
        }
    }
    let components = tarjan_scc(&graph);
    let mut component_of = vec![0; nodes.len()];
    for (number, component) in components.iter().enumerate() {
        for node in component {
            component_of[node.index()] = number as u32;
        }
    }
    let mut waypoints = vec![Vec::new(); components.len()];
    for &rack in routes.racks() {
        waypoints[component_of[rack.index()] as usize].push(rack);
    }
    (component_of, waypoints)
}
