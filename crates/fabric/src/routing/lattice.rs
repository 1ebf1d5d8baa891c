//! Torus and mesh as coordinates: steps along dimensions, the boxes of hops that oblivious protocols draw, and the
//! exact loads of a random waypoint within a box.

use units::{LinkId, Stream, SwitchId};

use crate::Fabric;

/// Most dimensions of a grid.
pub(super) const DIMS_MAX: usize = 6;

/// Signed hops along each dimension: the path from one switch to another, except for the order of dimensions.
pub(super) type Hops = [i32; DIMS_MAX];

/// The probability of each direction round a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The shorter way. If both are equally long, either at random.
    Minimal,
    /// The shorter way. If both are equally long, forward from even coordinates and backward from odd ones.
    Fixed,
    /// d of k hops forward with probability (k - d) / k, otherwise k - d hops backward.
    Weighted,
}

/// Coordinates, and the link of each step.
pub(super) struct Lattice {
    dims: Vec<u32>,
    wraps: bool,
    /// By switch: the link one step forward and one step backward along each dimension; `None` at the border of a mesh.
    steps: Vec<Option<LinkId>>,
    /// By switch: the switch at the other end of each of these links.
    neighbours: Vec<SwitchId>,
}

impl Lattice {
    pub(super) fn new(fabric: &Fabric, shape: &crate::Lattice) -> Lattice {
        let mut lattice =
            Lattice { dims: shape.dims.clone(), wraps: shape.wraps, steps: Vec::new(), neighbours: Vec::new() };
        for switch in (0..fabric.switches).map(SwitchId) {
            let mut stride = 1;
            for dim in 0..lattice.dims.len() {
                let (length, at) = (lattice.dims[dim], lattice.coordinate(switch, dim));
                let base = switch.0 - at * stride;
                for (to, inside) in [((at + 1) % length, at + 1 < length), ((at + length - 1) % length, at > 0)] {
                    let to = SwitchId(base + to * stride);
                    let link = fabric.links_between(fabric.switch_node(switch), fabric.switch_node(to)).next();
                    lattice.steps.push(link.filter(|_| inside || lattice.is_ring(dim)));
                    lattice.neighbours.push(to);
                }
                stride *= length;
            }
        }
        lattice
    }

    pub(super) fn dims(&self) -> &[u32] {
        &self.dims
    }

    pub(super) fn is_torus(&self) -> bool {
        self.wraps
    }

    pub(super) fn coordinate(&self, switch: SwitchId, dim: usize) -> u32 {
        let stride: u32 = self.dims[..dim].iter().product();
        switch.0 / stride % self.dims[dim]
    }

    /// The switch at these coordinates.
    pub(super) fn switch(&self, coordinates: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator) -> SwitchId {
        let whole = coordinates.zip(&self.dims).rev().fold(0, |number, (at, length)| number * length + at);
        SwitchId(whole)
    }

    /// The coordinates of a switch.
    pub(super) fn coordinates(&self, switch: SwitchId) -> Vec<u32> {
        (0..self.dims.len()).map(|dim| self.coordinate(switch, dim)).collect()
    }

    /// The link one step along a dimension and the switch there; `None` at the border of a mesh.
    pub(super) fn step(&self, at: SwitchId, dim: usize, forward: bool) -> Option<(LinkId, SwitchId)> {
        let index = (at.index() * self.dims.len() + dim) * 2 + usize::from(!forward);
        self.steps[index].map(|link| (link, self.neighbours[index]))
    }

    /// A ring of two would use the same cable twice, so it is a line.
    fn is_ring(&self, dim: usize) -> bool {
        self.wraps && self.dims[dim] > 2
    }

    /// The one or two directions along a dimension, with their probabilities.
    fn turns(&self, from: SwitchId, to: SwitchId, dim: usize, turn: Turn) -> [(i32, f64); 2] {
        let (here, there, length) =
            (self.coordinate(from, dim) as i32, self.coordinate(to, dim) as i32, self.dims[dim] as i32);
        if !self.is_ring(dim) || here == there {
            return [(there - here, 1.0), (0, 0.0)];
        }
        let forward = (there - here).rem_euclid(length);
        let backward = length - forward;
        let likely = match turn {
            Turn::Weighted => f64::from(backward) / f64::from(length),
            Turn::Minimal if forward == backward => 0.5,
            Turn::Fixed if forward == backward => f64::from(1 - here % 2),
            Turn::Minimal | Turn::Fixed => f64::from(u8::from(forward < backward)),
        };
        [(forward, likely), (-backward, 1.0 - likely)]
    }

    /// Every combination of directions, with its probability.
    pub(super) fn boxes(&self, from: SwitchId, to: SwitchId, turn: Turn) -> Vec<(Hops, f64)> {
        let mut boxes = vec![([0; DIMS_MAX], 1.0)];
        for dim in 0..self.dims.len() {
            let turns = self.turns(from, to, dim, turn).into_iter().filter(|&(_, likely)| likely > 0.0);
            let longer = turns.flat_map(|(hops, likely)| {
                boxes.iter().map(move |&(mut all, probability)| {
                    all[dim] = hops;
                    (all, probability * likely)
                })
            });
            boxes = longer.collect();
        }
        boxes
    }

    /// A random combination of directions.
    pub(super) fn draw_box(&self, from: SwitchId, to: SwitchId, turn: Turn, stream: &mut Stream) -> Hops {
        let mut hops = [0; DIMS_MAX];
        for (dim, hops) in hops.iter_mut().enumerate().take(self.dims.len()) {
            let [first, second] = self.turns(from, to, dim, turn);
            *hops = if second.1 == 0.0 || stream.chance(first.1) { first.0 } else { second.0 };
        }
        hops
    }

    /// Visits the links of these hops, dimension by dimension in the given order, and returns the switch where they
    /// end.
    pub(super) fn follow(
        &self,
        from: SwitchId,
        hops: &Hops,
        order: &[usize],
        mut visit: impl FnMut(LinkId),
    ) -> SwitchId {
        let mut at = from;
        for &dim in order {
            for _ in 0..hops[dim].unsigned_abs() {
                let link;
                (link, at) = self.hop(at, dim, hops[dim] > 0);
                visit(link);
            }
        }
        at
    }

    /// The loads of a packet that goes from a corner of a box to the opposite one over a waypoint drawn uniformly from
    /// all switches of the box, in a random order of dimensions both to the waypoint and from it.
    ///
    /// Let n hops span the box along dimension i. On its way to the waypoint the packet takes the hop that begins c
    /// hops from the source with probability (n - c) / (n + 1). In the dimensions before i it is then at the waypoint's
    /// coordinate, which may be any of the box; in those after i it is still at the source's. The way from the waypoint
    /// is the same, seen from the destination.
    pub(super) fn two_phase(&self, from: SwitchId, hops: &Hops, probability: f64, mut load: impl FnMut(LinkId, f64)) {
        let count = self.dims.len();
        let to = self.follow(from, hops, &Vec::from_iter(0..count), |_| ());
        let back = hops.map(|hops| -hops);
        for dim in (0..count).filter(|&dim| hops[dim] != 0) {
            let span = hops[dim].unsigned_abs();
            // Dimensions without hops do not matter for the order.
            let others: Vec<usize> = (0..count).filter(|&other| other != dim && hops[other] != 0).collect();
            for before in subsets(&others) {
                let cells: u32 = before.iter().map(|&other| hops[other].unsigned_abs() + 1).product();
                let share =
                    probability * order_likely(before.len(), others.len()) / f64::from(cells) / f64::from(span + 1);
                for mut at in self.cells(from, hops, &before) {
                    for done in 0..span {
                        let link;
                        (link, at) = self.hop(at, dim, hops[dim] > 0);
                        load(link, share * f64::from(span - done));
                    }
                }
                // Seen from the destination, the dimensions "before" are those still to come.
                for mut at in self.cells(to, &back, &before) {
                    for left in 0..span {
                        let link;
                        (link, at) = self.hop(at, dim, back[dim] > 0);
                        load(Fabric::reverse(link), share * f64::from(span - left));
                    }
                }
            }
        }
    }

    /// Every switch of the part of a box that spans only the given dimensions.
    fn cells(&self, from: SwitchId, hops: &Hops, dims: &[usize]) -> Vec<SwitchId> {
        let mut cells = vec![from];
        for &dim in dims {
            for index in 0..cells.len() {
                let mut at = cells[index];
                for _ in 0..hops[dim].unsigned_abs() {
                    (_, at) = self.hop(at, dim, hops[dim] > 0);
                    cells.push(at);
                }
            }
        }
        cells
    }

    /// A step that is known to exist because a packet's hops contain it.
    fn hop(&self, at: SwitchId, dim: usize, forward: bool) -> (LinkId, SwitchId) {
        self.step(at, dim, forward).expect("hops stay within the lattice")
    }
}

/// Every subset, each in ascending order.
fn subsets(items: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..1usize << items.len())
        .map(|mask| items.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, &item)| item).collect())
}

/// The probability that a random order of 1 + `others` dimensions places exactly a given set of `before` dimensions
/// before the first.
fn order_likely(before: usize, others: usize) -> f64 {
    factorial(before) * factorial(others - before) / factorial(others + 1)
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|factor| factor as f64).product()
}

/// Every order of the dimensions that have hops.
pub(super) fn orders(hops: &Hops) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for dim in (0..DIMS_MAX).filter(|&dim| hops[dim] != 0) {
        let longer = orders.iter().flat_map(|order: &Vec<usize>| {
            (0..=order.len()).map(move |place| {
                let mut order = order.clone();
                order.insert(place, dim);
                order
            })
        });
        orders = longer.collect();
    }
    orders
}
