//! Rates: weighted max-min fairness over given routes (R2C2, sections 3.3.1 and 3.3.2).
//!
//! A flow's routing protocol says what share of its packets passes each link, its *link weights*, so its rate alone decides what
//! it takes of every link, however many paths it has. Water-filling then needs no linear program: the rates of all flows rise
//! in proportion to their allocation weights until a link is full; its flows are frozen; the others rise on. A flow is frozen at its
//! demand too (host-limited flows). Priorities are rounds: a lower one shares what the higher ones have left.
//!
//! The *level* of a round is the rate of a flow of weight 1 that is not frozen. A link is full at the level `left / load`: the capacity
//! that frozen flows leave, over the sum of (allocation weight x link weight) of its other flows. Freezing flows only ever raises the levels of
//! links, so links wait in a heap by levels that may be out of date, and only the first is brought up to date.
//!
//! Every node computes all rates for itself and must come to what all others come to, so the result is a function of the flows in
//! their order alone, by the four operations and comparisons.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fabric::LinkWeight;

/// What a node knows of a flow (section 3.3.2).
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// By its routing protocol, source and destination: the links that it passes, each once. A weight that is not
    /// above zero, or infinite, counts as none.
    pub links: &'a [LinkWeight],
    /// Allocation weight, relative to other flows of the same priority. A flow whose weight is not above zero gets nothing; what
    /// differs from 1 by a factor of more than 2^40 counts as if by that.
    pub weight: f64,
    /// Smaller goes first.
    pub priority: u8,
    /// What the flow can send at most, in bits per second; infinite if its host does not limit it. A flow whose demand is not
    /// above zero gets nothing.
    pub demand: f64,
}

/// The rate of each flow in bits per second, where link `i` has room for `capacity_bps[i]` (headroom is subtracted before).
///
/// A flow that passes no link gets its demand, infinite or not. One that passes a link without capacity (zero, negative, or not a
/// number) gets nothing, and an infinite capacity limits nothing.
///
/// # Panics
///
/// If a flow passes a link that has no capacity at all: links come from the same fabric.
pub fn allocate(capacity_bps: &[f64], flows: &[Flow<'_>]) -> Vec<f64> {
    Allocator::new(capacity_bps).allocate(flows).to_vec()
}

/// [`allocate`] with memory: for many flow sets on one network.
#[derive(Clone, Debug)]
pub struct Allocator {
    capacity_bps: Vec<f64>,
    links: Vec<Link>,
    /// Links that the flows of a round pass.
    used: Vec<u32>,
    /// The flows of each used link and what each adds to its load: `links[l].flows` are its range.
    members: Vec<(u32, f64)>,
    /// Used links by levels that are never above the true ones.
    fullest: BinaryHeap<Reverse<(Level, u32)>>,
    /// Flows in order of priority.
    order: Vec<u32>,
    /// The flows of a round that have a demand, by the level at which it is met.
    demands: Vec<(Level, u32)>,
    frozen: Vec<bool>,
    rates: Vec<f64>,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// Bits per second that frozen flows leave.
    left: f64,
    /// Flows that are not frozen.
    open: u32,
    /// Its flows' sum of allocation weight x link weight, those of frozen flows subtracted.
    load: f64,
    flows: std::ops::Range<u32>,
}

/// A rate of a flow of weight 1; never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level(f64);

impl Eq for Level {}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Level) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Level) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Allocator {
    /// For a network whose link `i` has room for `capacity_bps[i]`.
    pub fn new(capacity_bps: &[f64]) -> Allocator {
        let capacity_bps: Vec<f64> = capacity_bps.iter().map(|&bps| if bps > 0.0 { bps } else { 0.0 }).collect();
        Allocator {
            links: vec![Link::default(); capacity_bps.len()],
            capacity_bps,
            used: Vec::new(),
            members: Vec::new(),
            fullest: BinaryHeap::new(),
            order: Vec::new(),
            demands: Vec::new(),
            frozen: Vec::new(),
            rates: Vec::new(),
        }
    }

    /// The rate of each flow in bits per second: see [`allocate`].
    pub fn allocate(&mut self, flows: &[Flow<'_>]) -> &[f64] {
        self.rates.clear();
        self.rates.resize(flows.len(), 0.0);
        self.frozen.clear();
        self.frozen.resize(flows.len(), false);
        for (link, &bps) in self.links.iter_mut().zip(&self.capacity_bps) {
            link.left = bps;
        }
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend((0..flows.len() as u32).filter(|&i| takes_part(&flows[i as usize])));
        order.sort_by_key(|&i| flows[i as usize].priority);
        for round in order.chunk_by(|&a, &b| flows[a as usize].priority == flows[b as usize].priority) {
            self.fill(flows, round);
        }
        self.order = order;
        &self.rates
    }

    /// One round: water-filling among `round`, flows of one priority.
    fn fill(&mut self, flows: &[Flow<'_>], round: &[u32]) {
        self.enter(flows, round);
        let (mut level, mut waiting, mut next_demand) = (0.0, round.len(), 0);
        while waiting > 0 {
            while self.demands.get(next_demand).is_some_and(|&(_, flow)| self.frozen[flow as usize]) {
                next_demand += 1;
            }
            let demand = self.demands.get(next_demand).copied();
            let fullest = self.next_full(level);
            match (fullest, demand) {
                (Some((at, _)), Some((met, flow))) if met.0 <= at => {
                    level = f64::max(level, met.0);
                    self.freeze(flows, flow, flows[flow as usize].demand);
                    waiting -= 1;
                }
                (None, Some((_, flow))) => {
                    self.freeze(flows, flow, flows[flow as usize].demand);
                    waiting -= 1;
                }
                (Some((at, link)), _) => {
                    level = at;
                    for member in self.links[link as usize].flows.clone() {
                        let (flow, _) = self.members[member as usize];
                        if !self.frozen[flow as usize] {
                            self.freeze(flows, flow, level * weight(&flows[flow as usize]));
                            waiting -= 1;
                        }
                    }
                }
                (None, None) => {
                    for &flow in round.iter().filter(|&&flow| !self.frozen[flow as usize]) {
                        self.rates[flow as usize] = f64::INFINITY;
                    }
                    return;
                }
            }
        }
    }

    /// Enters the flows of a round into their links, and the links into the heap.
    fn enter(&mut self, flows: &[Flow<'_>], round: &[u32]) {
        for link in self.used.drain(..) {
            let link = &mut self.links[link as usize];
            *link = Link { left: link.left, ..Link::default() };
        }
        self.demands.clear();
        for &i in round {
            let flow = &flows[i as usize];
            if flow.demand < f64::INFINITY {
                self.demands.push((Level(flow.demand / weight(flow)), i));
            }
            for passed in passed(flow) {
                let link = &mut self.links[passed.link.index()];
                if link.open == 0 {
                    self.used.push(passed.link.0);
                }
                link.open += 1;
                link.load += weight(flow) * f64::from(passed.weight);
            }
        }
        self.demands.sort();

        let mut end = 0;
        for &link in &self.used {
            let link = &mut self.links[link as usize];
            link.flows = end..end;
            end += link.open;
        }
        self.members.clear();
        self.members.resize(end as usize, (0, 0.0));
        for &i in round {
            let flow = &flows[i as usize];
            for passed in passed(flow) {
                let range = &mut self.links[passed.link.index()].flows;
                self.members[range.end as usize] = (i, weight(flow) * f64::from(passed.weight));
                range.end += 1;
            }
        }

        let mut fullest = std::mem::take(&mut self.fullest).into_vec();
        fullest.clear();
        fullest.extend(self.used.iter().filter_map(|&link| {
            let Link { left, load, .. } = self.links[link as usize];
            (left < f64::INFINITY).then_some(Reverse((Level(left / load), link)))
        }));
        self.fullest = fullest.into();
    }

    /// The link that is full first as the level rises from `level`, and the level then.
    fn next_full(&mut self, level: f64) -> Option<(f64, u32)> {
        while let Some(mut first) = self.fullest.peek_mut() {
            let Reverse((Level(then), index)) = *first;
            let link = &self.links[index as usize];
            if link.open == 0 {
                std::collections::binary_heap::PeekMut::pop(first);
                continue;
            }
            // Differences gather rounding errors, which may be all that is left of a small flow's load: sums don't.
            let members = &self.members[link.flows.start as usize..link.flows.end as usize];
            let load: f64 =
                members.iter().filter(|(flow, _)| !self.frozen[*flow as usize]).map(|&(_, load)| load).sum();
            let now = f64::max(level, link.left / load);
            if now <= then {
                return Some((then, index));
            }
            *first = Reverse((Level(now), index));
        }
        None
    }

    fn freeze(&mut self, flows: &[Flow<'_>], index: u32, rate: f64) {
        let flow = &flows[index as usize];
        self.rates[index as usize] = rate;
        self.frozen[index as usize] = true;
        for passed in passed(flow) {
            let link = &mut self.links[passed.link.index()];
            link.left = f64::max(0.0, link.left - rate * f64::from(passed.weight));
            link.open -= 1;
        }
    }
}

fn takes_part(flow: &Flow<'_>) -> bool {
    flow.weight > 0.0 && flow.demand > 0.0
}

fn weight(flow: &Flow<'_>) -> f64 {
    const MOST: f64 = (1u64 << 40) as f64;
    flow.weight.clamp(1.0 / MOST, MOST)
}

fn passed<'a>(flow: &Flow<'a>) -> impl Iterator<Item = &'a LinkWeight> + use<'a> {
    flow.links.iter().filter(|passed| passed.weight > 0.0 && passed.weight < f32::INFINITY)
}
