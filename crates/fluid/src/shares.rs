//! Max-min fair rates, kept up to date while flows arrive and depart.
//!
//! A flow uses resources, each with some share of its traffic. Every resource has a *level*: the rate to which it
//! limits a flow if nothing else does. The level is infinite while the resource is not full. The rate of a flow is the
//! least level of its resources, or its own limit if that is less. The rates are max-min fair exactly if each level is
//! the water level of its resource when every flow is limited by its other resources: then the unlimited flows of a
//! full resource have the highest rates of all its flows, so every flow has a bottleneck.
//!
//! An event makes the levels of the flow's resources doubtful. A doubtful level is recomputed. If it changes, those
//! resources become doubtful whose level depends on the flows' new limits. This ends, because a level depends only on
//! lower levels: the lowest is right as soon as it has been recomputed, then the next (the argument of Charny, Clark
//! and Jain for their distributed algorithm, ICC 1995, and of Mozo et al., "B-Neck", 2011). So the lowest doubtful
//! level is recomputed first.
//!
//! A resource that is not full needs no level: its load is enough.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The index of an active flow.
pub(crate) type Slot = u32;

/// Max-min fair shares.
pub(crate) struct Shares {
    resources: Vec<Resource>,
    flows: Vec<Flow>,
    free: Vec<Slot>,
    /// Passages of flows through resources, in blocks.
    passages: Vec<Passage>,
    /// Unused blocks, by length.
    blocks: Vec<Vec<u32>>,
    doubtful: BinaryHeap<Reverse<(u64, u32)>>,
    /// Flows whose rates may have changed since the last [`Shares::settle`].
    touched: Vec<Slot>,
    /// Scratch memory of [`Shares::water_level`].
    limits: Vec<(f64, f64)>,
}

struct Resource {
    capacity: f64,
    level: f64,
    /// The sum of its flows' rates times their shares.
    load: f64,
    members: Vec<Member>,
    doubtful: bool,
}

/// A flow as seen by a resource.
#[derive(Clone, Copy)]
struct Member {
    slot: Slot,
    /// Index in `passages`.
    passage: u32,
}

struct Flow {
    limit: f64,
    rate: f64,
    /// The rate at the last settlement.
    settled: f64,
    first: u32,
    count: u32,
    touched: bool,
    low: Lowest,
}

/// The two lowest levels of a flow's resources, from which its rate without any one resource follows.
#[derive(Clone, Copy)]
struct Lowest {
    least: f64,
    /// The resource with the lowest level.
    of: usize,
    second: f64,
}

impl Default for Lowest {
    fn default() -> Lowest {
        Lowest { least: f64::INFINITY, of: usize::MAX, second: f64::INFINITY }
    }
}

impl Lowest {
    fn and(self, resource: usize, level: f64) -> Lowest {
        match self {
            Lowest { least, .. } if level < least => Lowest { least: level, of: resource, second: least },
            Lowest { second, .. } if level < second => Lowest { second: level, ..self },
            _ => self,
        }
    }

    /// The lowest level except for `resource`'s.
    fn without(self, resource: usize) -> f64 {
        if self.of == resource { self.second } else { self.least }
    }
}

/// A resource as seen by a flow.
#[derive(Clone, Copy, Default)]
struct Passage {
    resource: u32,
    /// Index among the resource's members.
    place: u32,
    share: f64,
}

/// A relative change of a level below this is taken for rounding of sums.
const ROUNDING: f64 = 1e-12;
/// From this share of its capacity on a resource is treated as full, since its load is updated through many changes.
const NEARLY: f64 = 1.0 - 1e-9;

impl Shares {
    /// Shares of resources with these capacities in bits per second, none of them zero.
    pub fn new(capacities: impl Iterator<Item = f64>) -> Shares {
        let resource =
            |capacity| Resource { capacity, level: f64::INFINITY, load: 0.0, members: Vec::new(), doubtful: false };
        Shares {
            resources: capacities.map(resource).collect(),
            flows: Vec::new(),
            free: Vec::new(),
            passages: Vec::new(),
            blocks: Vec::new(),
            doubtful: BinaryHeap::new(),
            touched: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Adds a flow that can send at most `limit` bits per second. It uses each of its resources once, with a share
    /// above 0.
    pub fn insert(&mut self, limit: f64, passes: impl ExactSizeIterator<Item = (u32, f64)>) -> Slot {
        let count = passes.len();
        let first = self.block(count);
        let slot = self.free.pop().unwrap_or(self.flows.len() as Slot);
        for (passage, (resource, share)) in (first..).zip(passes) {
            let members = &mut self.resources[resource as usize].members;
            self.passages[passage as usize] = Passage { resource, place: members.len() as u32, share };
            members.push(Member { slot, passage });
        }
        let low = Lowest::default();
        let flow = Flow { limit, rate: 0.0, settled: 0.0, first, count: count as u32, touched: false, low };
        match self.flows.get_mut(slot as usize) {
            Some(place) => *place = flow,
            None => self.flows.push(flow),
        }
        self.doubt_all(slot);
        let low = self.lowest(slot, usize::MAX);
        self.flows[slot as usize].low = low;
        self.set_rate(slot, f64::min(limit, low.least));
        slot
    }

    /// Removes a flow.
    pub fn remove(&mut self, slot: Slot) {
        self.doubt_all(slot);
        self.set_rate(slot, 0.0);
        let Flow { first, count, .. } = self.flows[slot as usize];
        for passage in first..first + count {
            let Passage { resource, place, .. } = self.passages[passage as usize];
            let members = &mut self.resources[resource as usize].members;
            members.swap_remove(place as usize);
            if let Some(moved) = members.get(place as usize) {
                self.passages[moved.passage as usize].place = place;
            } else if members.is_empty() {
                // The resource is empty: clear the rounding error of its sum.
                self.resources[resource as usize].load = 0.0;
            }
        }
        self.blocks[count as usize].push(first);
        self.flows[slot as usize].limit = 0.0;
        self.free.push(slot);
    }

    /// A flow's rate in bits per second.
    pub fn rate(&self, slot: Slot) -> f64 {
        self.flows[slot as usize].rate
    }

    /// Updates all rates and writes the flows whose rates have changed since the last time into `changed`. Returns the
    /// number of levels computed.
    pub fn settle(&mut self, changed: &mut Vec<Slot>) -> u64 {
        let mut steps = 0;
        while let Some(Reverse((_, resource))) = self.doubtful.pop() {
            self.resources[resource as usize].doubtful = false;
            steps += 1;
            self.level(resource as usize);
        }
        changed.clear();
        for slot in self.touched.drain(..) {
            let flow = &mut self.flows[slot as usize];
            flow.touched = false;
            // A removed flow has limit 0.
            if flow.rate != flow.settled && flow.limit > 0.0 {
                flow.settled = flow.rate;
                changed.push(slot);
            }
        }
        steps
    }

    /// The distance from max-min fairness: the highest load of a resource as a share of its capacity, and the most that
    /// a flow lacks to the highest rate of any of its bottlenecks, as a share of that rate. 1 and 0 if all is right.
    pub fn distance_from_fair(&self) -> (f64, f64) {
        let (mut loaded, mut largest) = (vec![0.0f64; self.resources.len()], vec![0.0f64; self.resources.len()]);
        for (load, (most, resource)) in loaded.iter_mut().zip(largest.iter_mut().zip(&self.resources)) {
            for member in &resource.members {
                let rate = self.flows[member.slot as usize].rate;
                *load += rate * self.passages[member.passage as usize].share;
                *most = f64::max(*most, rate);
            }
            *load /= resource.capacity;
        }
        let full = |resource: usize| loaded[resource] >= 1.0 - 1e-9;
        let mut lacks: f64 = 0.0;
        for flow in self.flows.iter().filter(|flow| flow.limit > 0.0 && flow.rate < flow.limit) {
            let held = self.passages_of(flow).iter().map(|passage| passage.resource as usize).filter(|&of| full(of));
            let least = held.map(|resource| 1.0 - flow.rate / largest[resource]).fold(1.0, f64::min);
            lacks = f64::max(lacks, least);
        }
        (loaded.into_iter().fold(0.0, f64::max), lacks)
    }

    fn passages_of(&self, flow: &Flow) -> &[Passage] {
        &self.passages[flow.first as usize..(flow.first + flow.count) as usize]
    }

    fn block(&mut self, count: usize) -> u32 {
        if self.blocks.len() <= count {
            self.blocks.resize(count + 1, Vec::new());
        }
        self.blocks[count].pop().unwrap_or_else(|| {
            let first = self.passages.len();
            self.passages.resize(first + count, Passage::default());
            first as u32
        })
    }

    /// A flow has arrived or is leaving: the levels of its resources become doubtful.
    fn doubt_all(&mut self, slot: Slot) {
        let Flow { first, count, .. } = self.flows[slot as usize];
        for passage in first..first + count {
            let resource = self.passages[passage as usize].resource;
            if self.resources[resource as usize].level < f64::INFINITY {
                self.doubt(resource);
            }
        }
    }

    fn doubt(&mut self, resource: u32) {
        let Resource { level, doubtful, .. } = &mut self.resources[resource as usize];
        if !*doubtful {
            *doubtful = true;
            // The bit patterns of non-negative floats sort like the floats. A resource that was not full has no level
            // and goes first.
            let level = if *level < f64::INFINITY { level.to_bits() } else { 0 };
            self.doubtful.push(Reverse((level, resource)));
        }
    }

    fn set_rate(&mut self, slot: Slot, rate: f64) {
        let flow = &mut self.flows[slot as usize];
        let more = rate - flow.rate;
        flow.rate = rate;
        if !flow.touched {
            flow.touched = true;
            self.touched.push(slot);
        }
        let Flow { first, count, .. } = *flow;
        for passage in first..first + count {
            let Passage { resource, share, .. } = self.passages[passage as usize];
            let Resource { capacity, level, load, .. } = &mut self.resources[resource as usize];
            *load += more * share;
            if more > 0.0 && *level == f64::INFINITY && *load > *capacity * NEARLY {
                self.doubt(resource);
            }
        }
    }

    /// Recomputes a level and marks the levels that depend on it.
    fn level(&mut self, index: usize) {
        let new = self.water_level(index);
        let old = self.resources[index].level;
        if new == old || old < f64::INFINITY && (new - old).abs() <= ROUNDING * old {
            return;
        }
        self.resources[index].level = new;
        for member in 0..self.resources[index].members.len() {
            let slot = self.resources[index].members[member].slot;
            let Flow { limit, rate, first, count, .. } = self.flows[slot as usize];
            let low = self.lowest(slot, index);
            for passage in first..first + count {
                let resource = self.passages[passage as usize].resource;
                let level = self.resources[resource as usize].level;
                if resource as usize == index || level == f64::INFINITY {
                    continue;
                }
                // The lowest level other than this resource's and the member's own.
                let other = f64::min(limit, low.without(resource as usize));
                let (before, after) = (f64::min(other, old), f64::min(other, new));
                if before != after && f64::min(before, after) < level {
                    self.doubt(resource);
                }
            }
            self.flows[slot as usize].low = low.and(index, new);
            let now = f64::min(limit, f64::min(low.least, new));
            if now != rate {
                self.set_rate(slot, now);
            }
        }
    }

    /// The lowest levels of a flow's resources except for `but`.
    fn lowest(&self, slot: Slot, but: usize) -> Lowest {
        let others = self.passages_of(&self.flows[slot as usize]).iter().map(|passage| passage.resource as usize);
        let and = |low: Lowest, resource: usize| low.and(resource, self.resources[resource].level);
        others.filter(|&resource| resource != but).fold(Lowest::default(), and)
    }

    /// The water level of a resource when each of its flows is limited by its other resources.
    fn water_level(&mut self, index: usize) -> f64 {
        let Resource { capacity, members, .. } = &self.resources[index];
        let capacity = *capacity;
        let mut limits = std::mem::take(&mut self.limits);
        limits.clear();
        let mut all = 0.0;
        for member in members {
            let flow = &self.flows[member.slot as usize];
            let limit = f64::min(flow.limit, flow.low.without(index));
            let share = self.passages[member.passage as usize].share;
            limits.push((limit, share));
            all += limit * share;
        }
        let level = if all <= capacity * (1.0 + ROUNDING) { f64::INFINITY } else { fill(capacity, &mut limits) };
        self.limits = limits;
        level
    }
}

/// The level at which flows, each with a limit and a share, fill a capacity that is too small for all their limits.
fn fill(capacity: f64, limits: &mut Vec<(f64, f64)>) -> f64 {
    let mut left = capacity;
    loop {
        let open: f64 = limits.iter().map(|(_, share)| share).sum();
        let level = left / open;
        let before = limits.len();
        limits.retain(|&(limit, share)| {
            let beyond = limit > level;
            if !beyond {
                left -= limit * share;
            }
            beyond
        });
        // Flows with limits below the level leave more to the others, so the level only rises.
        if limits.len() == before || limits.is_empty() {
            return level;
        }
    }
}

#[cfg(test)]
mod tests;
