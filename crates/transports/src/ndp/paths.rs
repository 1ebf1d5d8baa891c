//! The paths of packets, chosen by their sender (section 3.1.1), and its scoreboard of them (section 3.2.3).
//!
//! Hosts of one rack are reached by the same paths up to the last link, so there is one list and one scoreboard for
//! each rack. What one message learns of a path serves all others, and all packets of a host to a rack together spread
//! evenly.

use std::sync::Arc;

use fabric::{Fabric, Route, Routes};
use node::packet::flags;
use node::{EndpointParams, Packet, prefetch};
use rustc_hash::FxHashMap;
use units::{HostId, PortId, Problem, Stream, SwitchId};

use super::Config;
use contract::NetworkView;

/// If there are more paths than this, a host uses this many random ones: a torus has millions.
const PATHS_MAX: u64 = 256;
/// Number of ACKs and NACKs of a path before it is judged by them.
const SAMPLES_MIN: u32 = 100;
/// Number of lost packets of a path before it is judged by them.
const LOSSES_MIN: u32 = 4;
/// After this many answers for each path all counts are halved, so that paths are avoided for a while and not for ever.
const MEMORY: u32 = 512;

#[derive(node::State)]
pub(super) struct Paths {
    me: HostId,
    penalty: bool,
    fabric: Arc<Fabric>,
    routes: Arc<Routes>,
    /// Number of changes of routes: reports about a path are valid for one period.
    era: u32,
    boards: FxHashMap<SwitchId, RackPaths>,
    /// Number of times that a path was left out of a permutation.
    #[state(count)]
    pub left_out: u64,
}

/// A path that a packet took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub(super) struct PathId {
    era: u32,
    index: u16,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Acked,
    /// Trimmed or returned.
    Nacked,
    Lost,
}

/// Data and control packets use separate permutations: in one permutation in turn, neither would spread evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Data,
    Control,
}

/// The paths to a rack.
#[derive(node::State)]
struct RackPaths {
    #[state(when(self.routes.len() > 1, _))]
    routes: Vec<Score>,
    /// Bits of a port in a route, and number of switches on each path.
    port_bits: u32,
    switches: u32,
    orders: [Permutation; 2],
    /// The sum of all scores.
    #[state(when(self.routes.len() > 1, _))]
    total: Counts,
}

#[derive(Default, node::State)]
struct Permutation {
    order: Vec<u16>,
    next: usize,
}

#[derive(node::State)]
struct Score {
    /// The route without its last hop, to the host itself.
    route: u64,
    counts: Counts,
}

#[derive(Clone, Copy, Default, node::State)]
struct Counts {
    acks: u32,
    nacks: u32,
    losses: u32,
}

/// Whether all paths of a network fit into a packet's label.
pub(super) fn check(network: &NetworkView) -> Result<(), Problem> {
    let fabric = &*network.fabric;
    if let Some(host) = fabric.several_links() {
        let (name, links) = (&fabric.names[host.index()], fabric.uplinks(host).len());
        let message = format!(
            "a source route begins at a host's only switch, and in this fabric {name} has {links} links; let switches \
             choose paths, by paths = \"switches\""
        );
        return Err(Problem::new("paths", message));
    }
    let switches = (0..fabric.switches).map(|switch| fabric.switch_node(SwitchId(switch)));
    let ports = switches.map(|node| fabric.ports[node.index()].len()).max().unwrap_or(0);
    let longest = network.site.data_rtts.iter().map(|of| u32::from(of.0)).max().unwrap_or(0);
    if port_bits(ports, longest).is_none() {
        let message = format!(
            "a source route holds 8 switches of up to 256 ports, or 21 of up to 8; here a path passes {longest} \
             switches of up to {ports} ports; let switches choose paths, by paths = \"switches\""
        );
        return Err(Problem::new("paths", message));
    }
    Ok(())
}

/// Bits of a port in a route over this many switches, the largest of which has this many ports.
fn port_bits(ports: usize, switches: u32) -> Option<u32> {
    match (ports, switches) {
        (0..=256, 0..=8) => Some(8),
        (0..=8, 9..=21) => Some(3),
        _ => None,
    }
}

impl Paths {
    pub fn new(config: &Config, site: &EndpointParams, network: &NetworkView) -> Paths {
        Paths {
            me: site.host,
            penalty: config.path_penalty,
            fabric: network.fabric.clone(),
            routes: network.routes.clone(),
            era: 0,
            boards: FxHashMap::default(),
            left_out: 0,
        }
    }

    /// The paths have changed, and nothing is known of them.
    pub fn set_routes(&mut self, routes: &Arc<Routes>) {
        self.routes = routes.clone();
        self.boards.clear();
        self.era += 1;
    }

    /// Writes the next path to its destination into a packet, other than `avoid` if possible. `None` if there is no
    /// path: the packet then follows the switches' tables, as far as they go.
    pub fn route(
        &mut self,
        packet: &mut Packet,
        order: Order,
        avoid: Option<PathId>,
        random: &mut Stream,
    ) -> Option<PathId> {
        let rack = self.routes.home(packet.dst);
        let &last = self.routes.next(rack, packet.dst).first()?;
        let (fabric, routes, me) = (&*self.fabric, &*self.routes, self.me);
        let board = self.boards.entry(rack).or_insert_with(|| RackPaths::new(fabric, routes, me, packet.dst, random));
        if board.routes.is_empty() {
            return None;
        }
        let avoid = avoid.filter(|path| path.era == self.era).map(|path| path.index);
        let mut index = board.next(order, self.penalty, random, &mut self.left_out);
        if Some(index) == avoid {
            index = board.next(order, self.penalty, random, &mut self.left_out);
        }
        packet.label = board.routes[usize::from(index)].route | u64::from(last.0) << board.last_bit();
        board.prefetch(order);
        packet.flags |= flags::SOURCE_ROUTED | if board.port_bits == 3 { flags::COMPACT_ROUTE } else { 0 };
        Some(PathId { era: self.era, index })
    }

    /// Records the fate of a packet to `dst`.
    pub fn count(&mut self, dst: HostId, path: PathId, outcome: Outcome) {
        if path.era != self.era {
            return;
        }
        let rack = self.routes.home(dst);
        if let Some(board) = self.boards.get_mut(&rack) {
            board.count(path.index, outcome);
        }
    }
}

impl RackPaths {
    /// All paths to the rack of `dst`, or some if there are too many.
    fn new(fabric: &Fabric, routes: &Routes, src: HostId, dst: HostId, random: &mut Stream) -> RackPaths {
        let (home, rack) = (routes.home(src), routes.home(dst));
        let switches = routes.distance(home, dst).unwrap_or(0);
        let largest = fabric.ports.iter().map(Vec::len).max().unwrap_or(0);
        let bits = port_bits(largest, switches);
        let mut found = Vec::new();
        if let Some(bits) = bits.filter(|_| switches > 0) {
            let mut walk = Walk { fabric, routes, dst, rack, bits, ports: Vec::new() };
            if routes.count_paths(fabric, src, dst) <= PATHS_MAX {
                walk.all(home, &mut found);
            } else {
                found.extend((0..PATHS_MAX).map(|_| walk.any(home, random)));
            }
        }
        RackPaths {
            routes: found.into_iter().map(|route| Score { route, counts: Counts::default() }).collect(),
            port_bits: bits.unwrap_or(8),
            switches,
            orders: Default::default(),
            total: Counts::default(),
        }
    }

    /// Asks for the route that comes next.
    fn prefetch(&self, order: Order) {
        let Permutation { order, next } = &self.orders[order as usize];
        if let Some(&index) = order.get(*next) {
            prefetch(&self.routes[usize::from(index)]);
        }
    }

    fn last_bit(&self) -> u32 {
        (self.switches - 1) * self.port_bits
    }

    fn next(&mut self, order: Order, penalty: bool, random: &mut Stream, left_out: &mut u64) -> u16 {
        let (routes, total) = (&self.routes, &self.total);
        let Permutation { order, next } = &mut self.orders[order as usize];
        if *next >= order.len() {
            let all = 0..routes.len() as u16;
            order.clear();
            order.extend(all.clone().filter(|&index| {
                !(penalty && routes[usize::from(index)].counts.is_outlier(total, routes.len() as u32))
            }));
            *left_out += (routes.len() - order.len()) as u64;
            if order.is_empty() {
                order.extend(all);
            }
            random.shuffle(order);
            *next = 0;
        }
        *next += 1;
        order[*next - 1]
    }

    fn count(&mut self, index: u16, outcome: Outcome) {
        for counts in [&mut self.routes[usize::from(index)].counts, &mut self.total] {
            match outcome {
                Outcome::Acked => counts.acks += 1,
                Outcome::Nacked => counts.nacks += 1,
                Outcome::Lost => counts.losses += 1,
            }
        }
        if self.total.acks + self.total.nacks + self.total.losses >= MEMORY * self.routes.len() as u32 {
            self.total = Counts::default();
            for score in &mut self.routes {
                score.counts.halve();
                self.total.add(&score.counts);
            }
        }
    }
}

impl Counts {
    /// Whether a path is worse than the mean of all `paths`. The paper says "outliers". As in the authors' program, a
    /// path is one if it has more than 1.25 times as many NACKs for each ACK as all paths, and more than 0.3. The paper
    /// has no rule for losses: they count from twice the mean on.
    fn is_outlier(&self, total: &Counts, paths: u32) -> bool {
        let [acks, nacks] = [self.acks, self.nacks].map(u64::from);
        let [all_acks, all_nacks] = [total.acks, total.nacks].map(u64::from);
        let trims = self.acks + self.nacks >= SAMPLES_MIN
            && 4 * nacks * all_acks > 5 * all_nacks * acks
            && 10 * nacks > 3 * acks;
        trims || (paths > 1 && self.losses >= LOSSES_MIN && self.losses * paths >= 2 * total.losses)
    }

    fn halve(&mut self) {
        for count in [&mut self.acks, &mut self.nacks, &mut self.losses] {
            *count /= 2;
        }
    }

    fn add(&mut self, other: &Counts) {
        self.acks += other.acks;
        self.nacks += other.nacks;
        self.losses += other.losses;
    }
}

/// A walk along shortest paths.
struct Walk<'a> {
    fabric: &'a Fabric,
    routes: &'a Routes,
    dst: HostId,
    rack: SwitchId,
    bits: u32,
    ports: Vec<PortId>,
}

impl Walk<'_> {
    fn after(&self, switch: SwitchId, port: PortId) -> SwitchId {
        let next = self.fabric.link(self.fabric.out_link(switch, port)).to;
        self.fabric.as_switch(next).expect("short of the last switch, paths lead to switches")
    }

    fn packed(&self) -> u64 {
        Route::new(&self.ports, self.bits).expect("what fits was checked").0
    }

    fn all(&mut self, at: SwitchId, found: &mut Vec<u64>) {
        if at == self.rack {
            found.push(self.packed());
            return;
        }
        for &port in self.routes.next(at, self.dst) {
            self.ports.push(port);
            self.all(self.after(at, port), found);
            self.ports.pop();
        }
    }

    fn any(&mut self, mut at: SwitchId, random: &mut Stream) -> u64 {
        self.ports.clear();
        while at != self.rack {
            let &port = random.choose(self.routes.next(at, self.dst)).expect("paths were counted");
            self.ports.push(port);
            at = self.after(at, port);
        }
        self.packed()
    }
}

#[cfg(test)]
mod tests;
