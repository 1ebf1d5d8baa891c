//! Rates: weighted max-min fairness over given routes (R2C2, sections 3.3.1 and 3.3.2).
//!
//! A flow's routing protocol says what share of its packets passes each link, its *link weights*, so its rate alone
//! determines its load on every link, however many paths it has. Water-filling then needs no linear program: the rates
//! of all flows rise in proportion to their allocation weights until a link is full; its flows are frozen; the others
//! rise on. A flow is frozen at its demand too (host-limited flows). Priorities are rounds: a lower one shares what the
//! higher ones have left.
//!
//! Most links can't be full. A flow gets at most what it would get alone, and a link that could carry all its flows
//! even at these rates limits none of them. So the first pass finds the *contended* links, one percent of those in use
//! at the paper's load. Water-filling considers only those, and each flow rises at most to its rate alone (which
//! includes its demand).
//!
//! The *level* of a round is the rate of a flow of weight 1 that is not frozen. A link is full at the level `left /
//! load`: the capacity that frozen flows leave, over the sum of (allocation weight x link weight) of its other flows.
//! Freezing flows only raises the levels of links. So links are ordered by levels that may be out of date, and only the
//! first is updated: a heap holds the near ones and a list the rest, most of which lose all their flows before their
//! turn.
//!
//! Every node computes all rates and must get the same result as all others. So the result depends only on the flows in
//! their order, and uses only the four operations and comparisons.
//!
//! Deliberately absent: computing only what has changed since the last interval. All of it takes half a percent of the
//! paper's interval (`make bench`), and sums kept through changes would differ in their last bits between nodes that
//! heard of them in different orders.
//!
//! [`replay`] is the paper's benchmark of this (section 5.1).

pub mod replay;

#[cfg(test)]
mod tests;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use fabric::LinkWeight;

/// A flow's input to the rate computation (section 3.3.2).
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// By its routing protocol, source and destination: the links that it passes, with finite weights. Zero is as good
    /// as not passing; what is below makes rates meaningless.
    pub links: &'a [LinkWeight],
    /// Allocation weight, relative to other flows of the same priority. A flow whose weight is not above zero gets
    /// nothing; what differs from 1 by a factor of more than 2^40 counts as if by that.
    pub weight: f64,
    /// Smaller goes first.
    pub priority: u8,
    /// What the flow can send at most, in bits per second; infinite if its host does not limit it. A flow whose demand
    /// is not above zero gets nothing.
    pub demand: f64,
}

/// The rate of each flow in bits per second, where link `i` has room for `capacity_bps[i]` (headroom is subtracted
/// before).
///
/// A flow that uses no link gets its demand, infinite or not. A flow that uses a link without capacity (zero, negative,
/// or NaN) gets nothing, and an infinite capacity limits nothing.
///
/// # Panics
///
/// If a flow passes a link that has no capacity at all: links come from the same fabric.
pub fn allocate(capacity_bps: &[f64], flows: &[Flow<'_>]) -> Vec<f64> {
    Allocator::new(capacity_bps).allocate(flows).to_vec()
}

/// [`allocate`] with memory: for many flow sets on one network.
#[derive(Clone, Debug, Default)]
pub struct Allocator {
    /// By link: capacity to share, which earlier rounds reduce.
    left: Vec<f64>,
    /// By link, the inverse of `left`.
    inverse: Vec<f64>,
    /// By link: what would be left if all flows of the round had their rates alone; negative if it is contended.
    spare: Vec<f64>,
    /// By link: its index in `contended`.
    place: Vec<u32>,
    /// The links that can't carry these rates. No other link can give a flow less than its rate alone.
    contended: Vec<Contended>,
    /// Which contended links each flow passes, flow by flow.
    passages: Vec<Passage>,
    /// By flow, its range of `passages`.
    passages_of: Vec<Range<usize>>,
    /// The flows on each contended link.
    members: Vec<Member>,
    /// Events up to the horizon, by levels that never exceed the true ones.
    agenda: BinaryHeap<Reverse<(Level, What)>>,
    horizon: f64,
    /// Events beyond it. Most never happen: the flows are frozen before.
    later: Vec<(f64, What)>,
    /// Flows in order of priority.
    order: Vec<u32>,
    capacity_bps: Vec<f64>,
    /// By flow: its rate if it were alone.
    alone: Vec<f64>,
    /// By flow: its allocation weight; zero when it is frozen.
    open: Vec<f64>,
    rates: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Contended {
    /// Capacity that frozen flows leave, in bits per second.
    left: f64,
    /// The sum of (allocation weight x link weight) of all its flows.
    load: f64,
    /// Its range of `members`.
    members: Range<u32>,
}

/// A flow on a contended link, as seen by the flow: the link's index.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    link: u32,
    weight: f32,
}

/// The same as seen by the link.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    flow: u32,
    weight: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A flow has reached its rate alone.
    Met(u32),
    /// A contended link is full.
    Full(u32),
}

/// The rate of a flow of weight 1; never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level(f64);

impl Eq for Level {}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Level) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Level) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Allocator {
    /// For a network whose link `i` has room for `capacity_bps[i]`.
    pub fn new(capacity_bps: &[f64]) -> Allocator {
        let capacity_bps: Vec<f64> = capacity_bps.iter().map(|&bps| if bps > 0.0 { bps } else { 0.0 }).collect();
        let mut allocator = Allocator {
            left: capacity_bps.clone(),
            inverse: vec![0.0; capacity_bps.len()],
            spare: vec![0.0; capacity_bps.len()],
            place: vec![0; capacity_bps.len()],
            capacity_bps,
            ..Allocator::default()
        };
        allocator.invert();
        allocator
    }

    /// The rate of each flow in bits per second: see [`allocate`].
    pub fn allocate(&mut self, flows: &[Flow<'_>]) -> &[f64] {
        self.rates.clear();
        self.rates.resize(flows.len(), 0.0);
        self.open.clear();
        self.open.extend(flows.iter().map(weight));
        self.alone.resize(flows.len(), 0.0);
        self.passages_of.resize(flows.len(), 0..0);
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend((0..flows.len() as u32).filter(|&i| takes_part(&flows[i as usize])));
        order.sort_by_key(|&i| flows[i as usize].priority);
        let mut rest = &order[..];
        let mut touched = false;
        while let Some(&first) = rest.first() {
            let is_peer = |&i: &u32| flows[i as usize].priority == flows[first as usize].priority;
            let (round, later) = rest.split_at(rest.partition_point(is_peer));
            self.find_contended(flows, round);
            self.fill(flows, round);
            if !later.is_empty() {
                self.subtract(flows, round);
                touched = true;
            }
            rest = later;
        }
        if touched {
            self.left.copy_from_slice(&self.capacity_bps);
            self.invert();
        }
        self.order = order;
        &self.rates
    }

    /// Computes each flow's rate alone, and which links are too narrow for these rates.
    fn find_contended(&mut self, flows: &[Flow<'_>], round: &[u32]) {
        for (spare, left) in self.spare.iter_mut().zip(&self.left) {
            *spare = left * (1.0 + ROUNDING);
        }
        self.contended.clear();
        for &i in round {
            let flow = &flows[i as usize];
            let share = |passed: &LinkWeight| self.inverse[passed.link.index()] * f64::from(passed.weight);
            let larger = |a: f64, b: f64| if b > a { b } else { a };
            // Two at a time, since each waits for the previous one.
            let pairs = flow.links.chunks_exact(2);
            let rest = pairs.remainder().iter().map(share).fold(0.0, larger);
            let (even, odd) = pairs
                .fold((0.0, rest), |(even, odd), pair| (larger(even, share(&pair[0])), larger(odd, share(&pair[1]))));
            let alone = f64::min(flow.demand, 1.0 / larger(even, odd));
            self.alone[i as usize] = alone;
            if alone == f64::INFINITY {
                continue;
            }
            for passed in flow.links {
                let link = passed.link.index();
                let before = self.spare[link];
                let after = before - alone * f64::from(passed.weight);
                self.spare[link] = after;
                // Not `&&`: both hold rarely, and each alone is unpredictable for branches.
                if (after < 0.0) & (before >= 0.0) {
                    self.place[link] = self.contended.len() as u32;
                    self.contended.push(Contended { left: self.left[link], load: 0.0, members: 0..0 });
                }
            }
        }
    }

    /// Water-filling among the flows on contended links; all others get their rates alone.
    fn fill(&mut self, flows: &[Flow<'_>], round: &[u32]) {
        let mut waiting = self.enter(flows, round);
        let mut level = 0.0;
        while waiting > 0 {
            let (now, what) = self.next(level).expect("a flow that waits has its own entry");
            level = now;
            match what {
                What::Met(flow) => {
                    self.freeze(flow, self.alone[flow as usize]);
                    waiting -= 1;
                }
                What::Full(link) => {
                    let Range { start, end } = self.contended[link as usize].members;
                    for member in start..end {
                        let flow = self.members[member as usize].flow;
                        let open = self.open[flow as usize];
                        if open > 0.0 {
                            self.freeze(flow, f64::min(level * open, self.alone[flow as usize]));
                            waiting -= 1;
                        }
                    }
                }
            }
        }
    }

    /// The next event as the level rises from `level`, and its level.
    fn next(&mut self, level: f64) -> Option<(f64, What)> {
        loop {
            let Some(&Reverse((Level(then), what))) = self.agenda.peek() else {
                self.look_ahead(level)?;
                continue;
            };
            let now = self.due(what, level);
            let first = self.agenda.peek_mut()?;
            match now {
                Some(now) if now <= then => {
                    PeekMut::pop(first);
                    return Some((now, what));
                }
                Some(now) if now <= self.horizon => *{ first } = Reverse((Level(now), what)),
                Some(now) => {
                    PeekMut::pop(first);
                    self.later.push((now, what));
                }
                None => {
                    PeekMut::pop(first);
                }
            }
        }
    }

    /// The level of an event as things stand; `None` if it no longer happens.
    fn due(&mut self, what: What, level: f64) -> Option<f64> {
        match what {
            What::Met(flow) => {
                let open = self.open[flow as usize];
                (open > 0.0).then(|| f64::max(level, self.alone[flow as usize] / open))
            }
            What::Full(link) => {
                // Sums what is left anew: differences would accumulate rounding errors.
                let link = &mut self.contended[link as usize];
                let (mut load, mut end) = (0.0, link.members.start);
                for member in link.members.clone() {
                    // Branch-free, since the branch would be unpredictable.
                    let member = self.members[member as usize];
                    let open = self.open[member.flow as usize];
                    self.members[end as usize] = member;
                    end += u32::from(open > 0.0);
                    load += open * f64::from(member.weight);
                }
                link.members.end = end;
                (load > 0.0).then(|| f64::max(level, link.left / load))
            }
        }
    }

    /// Moves the next events, up to a quarter above the first, into the empty agenda. `None` if none is left.
    fn look_ahead(&mut self, level: f64) -> Option<()> {
        let next = self.later.iter().map(|&(due, _)| due).min_by(f64::total_cmp)?;
        self.horizon = 1.25 * f64::max(level, next);
        let mut agenda = std::mem::take(&mut self.agenda).into_vec();
        let mut later = std::mem::take(&mut self.later);
        later.retain_mut(|(then, what)| {
            if *then > self.horizon {
                return true;
            }
            let Some(due) = self.due(*what, level) else { return false };
            if due <= self.horizon {
                agenda.push(Reverse((Level(due), *what)));
            }
            *then = due;
            due > self.horizon
        });
        (self.agenda, self.later) = (agenda.into(), later);
        Some(())
    }

    /// Enters the flows of the round into their contended links, and both into the agenda. Returns the number of flows
    /// on any.
    fn enter(&mut self, flows: &[Flow<'_>], round: &[u32]) -> usize {
        self.agenda.clear();
        self.later.clear();
        let most = round.iter().map(|&i| flows[i as usize].links.len()).sum();
        if self.passages.len() < most {
            self.passages.resize(most, Passage::default());
        }
        let mut end = 0;
        for &i in round {
            let flow = &flows[i as usize];
            let (begin, weight) = (end, self.open[i as usize]);
            for &LinkWeight { link, weight } in flow.links {
                // Branch-free, since the branch would be unpredictable.
                self.passages[end] = Passage { link: link.0, weight };
                end += usize::from((self.spare[link.index()] < 0.0) & (weight > 0.0));
            }
            for passage in &mut self.passages[begin..end] {
                passage.link = self.place[passage.link as usize];
                let link = &mut self.contended[passage.link as usize];
                link.members.end += 1;
                link.load += weight * f64::from(passage.weight);
            }
            self.passages_of[i as usize] = begin..end;
            if begin == end {
                self.rates[i as usize] = self.alone[i as usize];
            } else {
                self.later.push((self.alone[i as usize] / weight, What::Met(i)));
            }
        }

        let tied = self.later.len();
        let mut end = 0;
        for link in &mut self.contended {
            let count = link.members.end;
            link.members = end..end;
            end += count;
        }
        if self.members.len() < end as usize {
            self.members.resize(end as usize, Member::default());
        }
        for &i in round {
            for passage in &self.passages[self.passages_of[i as usize].clone()] {
                let range = &mut self.contended[passage.link as usize].members;
                self.members[range.end as usize] = Member { flow: i, weight: passage.weight };
                range.end += 1;
            }
        }
        for (place, link) in self.contended.iter().enumerate() {
            self.later.push((link.left / link.load, What::Full(place as u32)));
        }
        tied
    }

    fn freeze(&mut self, flow: u32, rate: f64) {
        self.rates[flow as usize] = rate;
        self.open[flow as usize] = 0.0;
        for passage in &self.passages[self.passages_of[flow as usize].clone()] {
            let left = &mut self.contended[passage.link as usize].left;
            *left = f64::max(0.0, *left - rate * f64::from(passage.weight));
        }
    }

    /// Passes on to later rounds what this one has left.
    fn subtract(&mut self, flows: &[Flow<'_>], round: &[u32]) {
        for &i in round.iter().filter(|&&i| self.rates[i as usize] < f64::INFINITY) {
            for passed in flows[i as usize].links {
                let link = passed.link.index();
                self.left[link] = f64::max(0.0, self.left[link] - self.rates[i as usize] * f64::from(passed.weight));
            }
        }
        self.invert();
    }

    fn invert(&mut self) {
        for (inverse, left) in self.inverse.iter_mut().zip(&self.left) {
            *inverse = 1.0 / left;
        }
    }
}

/// An overload of less than this share of the capacity is rounding of sums of many rates.
const ROUNDING: f64 = 1e-12;

fn takes_part(flow: &Flow<'_>) -> bool {
    flow.weight > 0.0 && flow.demand > 0.0
}

fn weight(flow: &Flow<'_>) -> f64 {
    const MOST: f64 = (1u64 << 40) as f64;
    flow.weight.clamp(1.0 / MOST, MOST)
}
