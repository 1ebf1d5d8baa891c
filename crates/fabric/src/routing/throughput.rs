//! How much of a traffic pattern a routing algorithm can carry on a torus or mesh: R2C2's Figure 2.
//!
//! Every node sends one packet a unit of time as the pattern says; the links' expected loads follow from the weights;
//! the throughput is the most that every node can send until the most loaded link is full. It is given as a fraction of
//! the network's capacity, which is the throughput of uniform traffic under balanced minimal routing (Dally and Towles,
//! "Principles and Practices of Interconnection Networks", chapter 3: twice the bisection's links a node). In uniform
//! traffic every node sends to all nodes alike, itself included. The worst case is over all permutations: for each link
//! a maximum-weight assignment of destinations to sources finds the permutation that loads it most (Towles and Dally,
//! "Worst-case Traffic for Oblivious Routing Functions", 2002).
//!
//! The paper takes its Figure 2 from that book, for an 8-ary 2-cube. Of its 24 cells 17 are what the protocols of
//! [`Routing`] carry, exactly computed, and four more what near relatives do:
//!
//! - Its column "Random Packet Spraying" is not spraying but two-phase ROMM ([`Algorithm::Romm`]): a random waypoint in
//!   the minimal box, dimension order in both phases. That has bit complement 0.40 and worst case 0.21. Equal shares at
//!   each switch, which is what [`Routing::RandomPacketSpraying`] does, have 0.36 and 0.18, and equal shares of all
//!   shortest paths 0.32 and 0.16.
//! - Destination tag has 0.25 for transpose and worst case where all packets of a source that are as far from their
//!   destination either way take the same way ([`Algorithm::FixedTies`]); where they take both, as with
//!   [`Routing::DestinationTag`], it is 2/7 = 0.29.
//!
//! The last three follow from no definition that we know:
//!
//! - WLB has 2.33 for nearest neighbours in the paper. With the probability (k - d) / k, which gives the cells uniform,
//!   bit complement, tornado and worst case, it is 16/7 = 2.29: a link carries a quarter of the packets of either
//!   direction, 7/8 of those for whom it is the short way, and 1/8 of those for whom it is one of 7 links of the long
//!   way. (7/3 = 2.33 is what a ring of 7 would have.)
//! - Transpose is 0.54 (ROMM) and 0.57 (WLB) in the paper. No order of dimensions gives these two along with the rest:
//!   with a random order in each phase they are 0.60 and 0.71, with a fixed order 0.44 and 0.50. Ties do not explain
//!   it, as WLB has none.
//!
//! Absent on purpose: throughput with dead links, where there is no capacity to be a fraction of.

#[cfg(test)]
mod tests;

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;
use units::{LinkId, Problem, SwitchId};

use super::lattice::{Lattice, Turn};
use super::{Routing, RoutingTables};

/// The routing algorithm: a protocol, or a variant that Figure 2 needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// A protocol of [`Routing`].
    Protocol(Routing),
    /// Two-phase ROMM (Nesson and Johnsson, 1995): minimal, over a random waypoint between source and destination, with
    /// a random order of dimensions in each phase.
    Romm,
    /// Destination tag with fixed ties: of two equally long directions, even coordinates always take the forward one
    /// and odd coordinates the backward one.
    FixedTies,
}

/// The destination of each node's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Equal shares to all adjacent nodes.
    NearestNeighbor,
    /// Equal shares to all nodes, itself included.
    Uniform,
    /// The node mirrored in every dimension: from x to k - 1 - x.
    BitComplement,
    /// The node with the first two coordinates swapped.
    Transpose,
    /// The node just less than half-way round the first dimension: from x to x + k/2 - 1, with k/2 rounded up.
    Tornado,
}

/// By switch: its destinations and the share of its packets for each.
pub type Traffic = Vec<Vec<(SwitchId, f64)>>;

/// The permutation with the least throughput of an algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstCase {
    /// Throughput as a fraction of capacity.
    pub throughput: f64,
    /// Each switch's destination.
    pub destinations: Vec<SwitchId>,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::Protocol(Routing::RandomPacketSpraying),
        Algorithm::Protocol(Routing::DestinationTag),
        Algorithm::Protocol(Routing::Vlb),
        Algorithm::Protocol(Routing::Wlb),
        Algorithm::Romm,
        Algorithm::FixedTies,
    ];

    /// The algorithm's name: its protocol's, "romm" or "fixed_ties".
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Protocol(routing) => routing.name(),
            Algorithm::Romm => "romm",
            Algorithm::FixedTies => "fixed_ties",
        }
    }

    /// The algorithm with this name.
    pub fn named(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Pattern; 5] =
        [Pattern::NearestNeighbor, Pattern::Uniform, Pattern::BitComplement, Pattern::Transpose, Pattern::Tornado];

    /// The pattern's name, such as "bit_complement".
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::NearestNeighbor => "nearest_neighbor",
            Pattern::Uniform => "uniform",
            Pattern::BitComplement => "bit_complement",
            Pattern::Transpose => "transpose",
            Pattern::Tornado => "tornado",
        }
    }

    /// The pattern with this name.
    pub fn named(name: &str) -> Option<Pattern> {
        Pattern::ALL.into_iter().find(|pattern| pattern.name() == name)
    }

    /// The traffic of each switch of a whole torus or mesh, one packet each.
    pub fn traffic(self, tables: &RoutingTables) -> Result<Traffic, Problem> {
        let lattice = lattice(tables)?;
        let dims = lattice.dims();
        if self == Pattern::Transpose && (dims.len() < 2 || dims[0] != dims[1]) {
            let message =
                format!("transpose swaps the first two dimensions, which must have the same length; dims is {dims:?}");
            return Err(Problem::new("pattern", message));
        }
        let one = |coordinates: Vec<u32>| vec![(lattice.switch(coordinates.into_iter()), 1.0)];
        let sends = |from: SwitchId| {
            let mut at = lattice.coordinates(from);
            match self {
                Pattern::NearestNeighbor => {
                    let steps = (0..dims.len()).flat_map(|dim| [(dim, true), (dim, false)]);
                    let neighbors: Vec<SwitchId> =
                        steps.filter_map(|(dim, forward)| Some(lattice.step(from, dim, forward)?.1)).collect();
                    let share = 1.0 / neighbors.len() as f64;
                    neighbors.into_iter().map(|to| (to, share)).collect()
                }
                Pattern::Uniform => {
                    switches(tables).map(|to| (to, 1.0 / f64::from(tables.fabric().switches))).collect()
                }
                Pattern::BitComplement => one(at.iter().zip(dims).map(|(at, length)| length - 1 - at).collect()),
                Pattern::Transpose => {
                    at.swap(0, 1);
                    one(at)
                }
                Pattern::Tornado => {
                    at[0] = (at[0] + dims[0].div_ceil(2) - 1) % dims[0];
                    one(at)
                }
            }
        };
        Ok(switches(tables).map(sends).collect())
    }
}

/// The expected load of each link, in packets a unit of time.
pub fn channel_loads(tables: &RoutingTables, algorithm: Algorithm, traffic: &Traffic) -> Result<Vec<f64>, Problem> {
    check(tables, algorithm)?;
    let mut loads = vec![0.0; tables.fabric().links.len()];
    for (from, sends) in switches(tables).zip(traffic) {
        for &(to, rate) in sends {
            add_loads(tables, algorithm, from, to, rate, &mut loads);
        }
    }
    Ok(loads)
}

/// The throughput of a traffic pattern as a fraction of the network's capacity; infinite if nothing passes any link.
pub fn throughput(tables: &RoutingTables, algorithm: Algorithm, traffic: &Traffic) -> Result<f64, Problem> {
    Ok(full_load(tables)? / most(&channel_loads(tables, algorithm, traffic)?))
}

/// The permutation with the least throughput of an algorithm, and that throughput.
///
/// The time grows with the cube of the number of switches, for each link. On a torus only the links of one switch are
/// tried, since all others are translations of them.
pub fn worst_case(tables: &RoutingTables, algorithm: Algorithm) -> Result<WorstCase, Problem> {
    check(tables, algorithm)?;
    let lattice = lattice(tables)?;
    // A ring of two has one cable, so forward and backward are the same link and translation symmetry fails.
    let shifts = lattice.is_torus() && !lattice.dims().contains(&2) && algorithm != Algorithm::FixedTies;
    let nodes = tables.fabric().switches;
    let sources = if shifts { 1 } else { nodes };
    let links = tables.fabric().links.len();
    if u64::from(sources) * u64::from(nodes) * links as u64 > LOADS_MAX {
        let message = format!("is too large: the loads of all pairs of {nodes} nodes do not fit in 512 MiB");
        return Err(Problem::new("dims", message));
    }
    let loads = |from: SwitchId| {
        switches(tables).map(move |to| {
            let mut loads = vec![0.0; links];
            add_loads(tables, algorithm, from, to, 1.0, &mut loads);
            loads
        })
    };
    let pairs: Vec<Vec<f64>> = (0..sources).map(SwitchId).flat_map(loads).collect();

    let mut worst = (0.0, Vec::new());
    for at in (0..sources).map(SwitchId) {
        for (dim, forward) in (0..lattice.dims().len()).flat_map(|dim| [(dim, true), (dim, false)]) {
            let Some((link, _)) = lattice.step(at, dim, forward) else { continue };
            let load = |from: SwitchId, to: SwitchId| match shifts {
                false => pairs[(from.0 * nodes + to.0) as usize][link.index()],
                true => {
                    let (to, at) = (shifted_back(lattice, to, from), shifted_back(lattice, at, from));
                    let (link, _) = lattice.step(at, dim, forward).expect("a torus has every step");
                    pairs[to.index()][link.index()]
                }
            };
            // Integers make the solver's comparisons exact.
            let scaled = |(from, to)| (load(SwitchId::from(from), SwitchId::from(to)) * SCALE) as i64;
            let weights = Matrix::from_fn(nodes as usize, nodes as usize, scaled);
            let (_, destinations) = kuhn_munkres(&weights);
            let destinations: Vec<SwitchId> = destinations.into_iter().map(SwitchId::from).collect();
            let total = switches(tables).zip(&destinations).map(|(from, &to)| load(from, to)).sum::<f64>();
            if total > worst.0 {
                worst = (total, destinations);
            }
        }
    }
    Ok(WorstCase { throughput: full_load(tables)? / worst.0, destinations: worst.1 })
}

/// Most loads of pairs that are held at once: 512 MiB.
const LOADS_MAX: u64 = 1 << 26;
/// Integer that stands for a load of 1 in the solver.
const SCALE: f64 = (1u64 << 40) as f64;

/// The load of the busiest link when every node sends at capacity: that of uniform traffic under minimal routing that
/// is balanced within each dimension, such as destination tag. For a k-ary n-cube with even k it is k / 8.
fn full_load(tables: &RoutingTables) -> Result<f64, Problem> {
    let uniform = Pattern::Uniform.traffic(tables)?;
    Ok(most(&channel_loads(tables, Algorithm::Protocol(Routing::DestinationTag), &uniform)?))
}

fn add_loads(tables: &RoutingTables, algorithm: Algorithm, from: SwitchId, to: SwitchId, rate: f64, loads: &mut [f64]) {
    let add = |link: LinkId, share: f64| loads[link.index()] += share;
    match algorithm {
        Algorithm::Protocol(routing) => tables.add_loads(routing, from, to, rate, loads),
        Algorithm::Romm => tables.add_two_phase(from, to, Turn::Minimal, rate, add),
        Algorithm::FixedTies => tables.add_dimension_order(from, to, Turn::Fixed, rate, add),
    }
}

fn check(tables: &RoutingTables, algorithm: Algorithm) -> Result<(), Problem> {
    lattice(tables)?;
    match algorithm {
        Algorithm::Protocol(routing) => tables.check(routing),
        Algorithm::Romm | Algorithm::FixedTies => Ok(()),
    }
}

fn lattice(tables: &RoutingTables) -> Result<&Lattice, Problem> {
    let message = "throughput is a fraction of the capacity of a torus or a mesh, and of a whole one";
    tables.whole_lattice().ok_or_else(|| Problem::new("fabric", message))
}

/// The position of a switch relative to another.
fn shifted_back(lattice: &Lattice, switch: SwitchId, origin: SwitchId) -> SwitchId {
    let (at, origin) = (lattice.coordinates(switch), lattice.coordinates(origin));
    let shifted =
        at.iter().zip(&origin).zip(lattice.dims()).map(|((at, origin), length)| (at + length - origin) % length);
    lattice.switch(shifted)
}

fn switches(tables: &RoutingTables) -> impl DoubleEndedIterator<Item = SwitchId> + use<> {
    (0..tables.fabric().switches).map(SwitchId)
}

fn most(loads: &[f64]) -> f64 {
    loads.iter().fold(0.0, |most, &load| most.max(load))
}
