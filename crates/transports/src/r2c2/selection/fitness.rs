use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use fabric::LinkWeight;

/// The rates that the water-filling of section 3.3.1 gives under one assignment after the other, for flows of one
/// priority whose hosts limit nothing.
///
/// They are those of [`allocate`](crate::r2c2::rates::allocate), but for the rounding of link weights to 32 bits, at a
/// small part of its cost: a search asks for tens of thousands of assignments, each of which differs from the last in
/// some flows. Rounded weights are integers, so that the loads of links stay exact however often flows change: only
/// what changed flows put on links is taken off and put on. And where many flows are frozen at once, as those of VLB
/// are, the loads of those that are left are summed up, rather than those of many subtracted.
#[derive(Clone, Debug)]
pub struct Fitness {
    choices: Choices,
    /// Of each flow, the choice that it has.
    chosen: Vec<u32>,
    /// By link, under what is chosen.
    loads: Vec<u64>,
    filling: Filling,
}

/// What does not depend on the assignment. A choice is a flow and one of its protocols: flow * protocols + protocol.
#[derive(Clone, Debug)]
struct Choices {
    capacity_bps: Vec<f64>,
    protocols: usize,
    /// By flow: its allocation weight.
    weights: Vec<f64>,
    /// By choice: its part of `passed`.
    ranges: Vec<Range<u32>>,
    passed: Vec<Passed>,
    /// By link: its part of `passing`.
    passing_of: Vec<Range<u32>>,
    passing: Vec<u32>,
    /// Allocation weight x link weight of a load of 1.
    unit: f64,
}

#[derive(Clone, Copy, Debug)]
struct Passed {
    link: u32,
    load: u32,
}

/// One water-filling.
#[derive(Clone, Debug, Default)]
struct Filling {
    rates: Vec<f64>,
    /// By flow: whether its rate still rises.
    open: Vec<bool>,
    /// By link: of the flows whose rates rise.
    loads: Vec<u64>,
    /// By link: what the other flows leave.
    left_bps: Vec<f64>,
    /// Links by the level at which they are full, or were when they were put here: levels only ever rise. Bits of
    /// numbers that are not negative are in their order.
    fullest: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Fitness {
    /// For links with room for `capacity_bps`, and flows that are each an allocation weight and, by protocol, the links
    /// that it passes.
    ///
    /// # Panics
    /// If flows have not all as many protocols, or pass a link that has no capacity: links come from the same fabric.
    pub fn new<L: AsRef<[LinkWeight]>>(capacity_bps: &[f64], flows: &[(f64, Vec<L>)]) -> Fitness {
        let choices = Choices::new(capacity_bps, flows);
        let chosen: Vec<u32> = (0..flows.len()).map(|flow| choices.choice(flow, 0)).collect();
        let mut loads = vec![0; capacity_bps.len()];
        for passed in chosen.iter().flat_map(|&choice| choices.passed_by(choice)) {
            loads[passed.link as usize] += u64::from(passed.load);
        }
        Fitness { choices, chosen, loads, filling: Filling::default() }
    }

    /// The rate of each flow in bits per second where the i-th takes its `assignment[i]`-th protocol; 0 of one that
    /// passes no link, as nothing limits it under any assignment.
    ///
    /// # Panics
    /// If the assignment is not one of a protocol that there is to each flow.
    pub fn rates(&mut self, assignment: &[u8]) -> &[f64] {
        let Fitness { choices, chosen, loads, filling } = self;
        assert_eq!(assignment.len(), chosen.len(), "each flow has a protocol");
        for (flow, (now, &protocol)) in chosen.iter_mut().zip(assignment).enumerate() {
            let before = std::mem::replace(now, choices.choice(flow, usize::from(protocol)));
            if before != *now {
                for passed in choices.passed_by(before) {
                    loads[passed.link as usize] -= u64::from(passed.load);
                }
                for passed in choices.passed_by(*now) {
                    loads[passed.link as usize] += u64::from(passed.load);
                }
            }
        }
        filling.loads.clone_from(loads);
        filling.fill(choices, chosen);
        &filling.rates
    }
}

impl Choices {
    fn new<L: AsRef<[LinkWeight]>>(capacity_bps: &[f64], flows: &[(f64, Vec<L>)]) -> Choices {
        let protocols = flows.first().map_or(0, |(_, options)| options.len());
        let most_of = |(weight, options): &(f64, Vec<L>)| {
            let shares = options.iter().flat_map(|links| links.as_ref()).map(|passed| f64::from(passed.weight));
            shares.fold(0.0, f64::max) * weight
        };
        let most = flows.iter().map(most_of).fold(0.0, f64::max);
        let unit = if most > 0.0 { most / f64::from(u32::MAX) } else { 1.0 };
        let (mut ranges, mut passed) = (Vec::new(), Vec::new());
        let mut passing_of = vec![0..0; capacity_bps.len()];
        for (weight, options) in flows {
            assert_eq!(options.len(), protocols, "each flow has as many protocols");
            for links in options {
                let start = passed.len();
                for &LinkWeight { link, weight: share } in links.as_ref() {
                    let load = (weight * f64::from(share) / unit + 0.5) as u32;
                    if load > 0 {
                        passed.push(Passed { link: link.0, load });
                        passing_of[link.index()].end += 1;
                    }
                }
                ranges.push(start as u32..passed.len() as u32);
            }
        }
        let mut end = 0;
        for of_link in &mut passing_of {
            let count = of_link.end;
            *of_link = end..end;
            end += count;
        }
        let mut passing = vec![0; passed.len()];
        for (choice, range) in ranges.iter().enumerate() {
            for passed in part(&passed, range) {
                let end = &mut passing_of[passed.link as usize].end;
                passing[*end as usize] = choice as u32;
                *end += 1;
            }
        }
        let weights = flows.iter().map(|(weight, _)| *weight).collect();
        let capacity_bps = capacity_bps.iter().map(|&bps| if bps > 0.0 { bps } else { 0.0 }).collect();
        Choices { capacity_bps, protocols, weights, ranges, passed, passing_of, passing, unit }
    }

    fn choice(&self, flow: usize, protocol: usize) -> u32 {
        assert!(protocol < self.protocols, "flow {flow} has no protocol {protocol}");
        (flow * self.protocols + protocol) as u32
    }

    fn passed_by(&self, choice: u32) -> &[Passed] {
        part(&self.passed, &self.ranges[choice as usize])
    }

    fn passing(&self, link: u32) -> &[u32] {
        part(&self.passing, &self.passing_of[link as usize])
    }
}

impl Filling {
    /// Fills links, with `loads` set to those of all flows.
    fn fill(&mut self, choices: &Choices, chosen: &[u32]) {
        self.rates.clear();
        self.rates.resize(chosen.len(), 0.0);
        self.open.clear();
        self.open.resize(chosen.len(), true);
        self.left_bps.clone_from(&choices.capacity_bps);
        self.enter(choices, 0.0);
        let lengths = |some: &[u32]| some.iter().map(|&choice| choices.passed_by(choice).len()).sum::<usize>();
        let (mut level, mut open_lengths, mut frozen) = (0.0, lengths(chosen), Vec::new());
        while let Some((at, link)) = self.next_full(choices, level) {
            level = at;
            let flow = |choice: u32| choice as usize / choices.protocols;
            let is_open = |&choice: &u32| chosen[flow(choice)] == choice && self.open[flow(choice)];
            frozen.clear();
            frozen.extend(choices.passing(link).iter().copied().filter(is_open));
            for &choice in &frozen {
                self.open[flow(choice)] = false;
                self.rates[flow(choice)] = level * choices.weights[flow(choice)];
            }
            let frozen_lengths = lengths(&frozen);
            open_lengths -= frozen_lengths;
            if frozen_lengths <= open_lengths {
                for passed in frozen.iter().flat_map(|&choice| choices.passed_by(choice)) {
                    self.take(passed.link as usize, u64::from(passed.load), level * choices.unit);
                }
            } else {
                let mut of_frozen = self.loads.clone();
                for (_, &choice) in self.open.iter().zip(chosen).filter(|(open, _)| **open) {
                    for passed in choices.passed_by(choice) {
                        of_frozen[passed.link as usize] -= u64::from(passed.load);
                    }
                }
                for (link, load) in of_frozen.into_iter().enumerate() {
                    self.take(link, load, level * choices.unit);
                }
                self.enter(choices, level);
            }
        }
    }

    /// Freezes this much of a link's load.
    fn take(&mut self, link: usize, load: u64, bps_per_load: f64) {
        self.loads[link] -= load;
        self.left_bps[link] = f64::max(0.0, self.left_bps[link] - load as f64 * bps_per_load);
    }

    /// Puts every link that has a load where it belongs, now that the level has risen to `level`.
    fn enter(&mut self, choices: &Choices, level: f64) {
        let mut fullest = std::mem::take(&mut self.fullest).into_vec();
        fullest.clear();
        let links = (0..self.loads.len() as u32).filter(|&link| self.loads[link as usize] > 0);
        fullest.extend(links.map(|link| Reverse((self.full_at(link, choices, level).to_bits(), link))));
        self.fullest = fullest.into();
    }

    /// The level at which a link is full.
    fn full_at(&self, link: u32, choices: &Choices, level: f64) -> f64 {
        let load = self.loads[link as usize] as f64 * choices.unit;
        f64::max(level, self.left_bps[link as usize] / load)
    }

    /// The link that is full first as the level rises from `level`, and the level then.
    fn next_full(&mut self, choices: &Choices, level: f64) -> Option<(f64, u32)> {
        while let Some(&Reverse((then, link))) = self.fullest.peek() {
            let now = self.full_at(link, choices, level);
            if self.loads[link as usize] == 0 {
                self.fullest.pop();
            } else if now.to_bits() == then {
                return Some((now, link));
            } else if let Some(mut first) = self.fullest.peek_mut() {
                *first = Reverse((now.to_bits(), link));
            }
        }
        None
    }
}

fn part<'a, T>(of: &'a [T], range: &Range<u32>) -> &'a [T] {
    &of[range.start as usize..range.end as usize]
}
