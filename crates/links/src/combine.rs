//! From the delays on links to completion times.
//!
//! **The longest counts.** A flow that one link holds up comes to the next links more slowly, and waits there for less
//! than it would if it came at full speed: while it waits for its slowest link, what the others would have cost passes
//! too. So its completion time is its time alone and the longest of the delays that its links add. Parsimon adds them
//! all up, which counts the same time once for each link as soon as several are busy: over the twenty scenarios of
//! `docs/links-measured.md` the sum is 38% too high in the median of the 99th percentiles.

use std::collections::BTreeMap;

use run::{Flows, Status, WorkloadPlan};
use scenario::Scenario;
use units::{FlowId, Stream};

use crate::decompose::Decomposition;
use crate::lone::Lone;
use crate::piece::Outcome;

/// A flow's delay on a link in picoseconds, until its message is there and until its sender knows; none if that never
/// happened.
pub(crate) type Delay = [Option<u64>; 2];

/// How a resource is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Nothing can wait there.
    Idle,
    /// It is simulated.
    Own,
    /// Others of this kind are simulated ([`crate::sample`]).
    Like(u32),
}

/// When each flow started, was delivered and was completed, and how it ended, as in [`Flows`].
pub(crate) struct Times {
    pub started: Vec<u64>,
    pub delivered: Vec<u64>,
    pub completed: Vec<u64>,
    pub status: Vec<Status>,
    pub reason: Vec<u32>,
    pub reasons: Vec<String>,
    /// By resource: the mean delay of flows there, in picoseconds; NaN if no flow was delivered.
    pub delay_ps: Vec<f64>,
}

/// Everything from which the times of flows are combined.
pub(crate) struct Found<'a> {
    pub scenario: &'a Scenario,
    pub work: &'a WorkloadPlan,
    pub links: &'a Decomposition<'a>,
    pub lone: &'a Lone,
    pub runs: &'a [Run],
    /// By kind, the resources that are simulated for others.
    pub kinds: &'a [Vec<usize>],
    /// By resource, what its run gave.
    pub outcomes: &'a [Option<Outcome>],
    /// By resource, the delays of the flows that cross it, if it was simulated.
    pub delays: &'a [Option<Vec<Delay>>],
    /// By flow, how late it is alone.
    pub alone: &'a [Late],
}

/// How much longer than at line rate something takes, as [`Delay`].
pub(crate) type Late = [Option<i64>; 2];

/// A flow's time over a link beyond its time alone.
pub(crate) fn delay(late: Late, alone: Late) -> Delay {
    // Other flows don't make a flow faster. A negative difference comes from an inexact time alone, and counts as zero.
    [0, 1].map(|which| Some(late[which]?.saturating_sub(alone[which]?).max(0) as u64))
}

impl Found<'_> {
    pub fn times(&self) -> Times {
        let (work, horizon) = (self.work, self.work.horizon.ps());
        let count = work.flows.len();
        let ideal = self.lone.at_line_rate(self.scenario, work);
        let samples: Vec<Samples> = self.kinds.iter().map(|kind| self.samples(kind)).collect();
        let none = || vec![Flows::NONE; count];
        let mut times = Times {
            started: none(),
            delivered: none(),
            completed: none(),
            status: Vec::with_capacity(count),
            reason: Vec::with_capacity(count),
            reasons: self.reasons(),
            delay_ps: Vec::new(),
        };
        let mut sums = vec![(0.0, 0u64); self.runs.len()];
        for (index, info) in work.flows.iter().enumerate() {
            let flow = FlowId::from(index);
            let start = info.start.ps();
            if start <= horizon {
                times.started[index] = start;
            }
            let mut longest = [Some(0); 2];
            let mut random = Stream::new(self.scenario.seed, u64::from(flow.0), "delays");
            for &resource in self.links.way(flow) {
                let delay = self.delay(flow, resource as usize, &samples, &mut random);
                if let Some(delay) = delay[0] {
                    let sum = &mut sums[resource as usize];
                    *sum = (sum.0 + delay as f64, sum.1 + 1);
                }
                longest = [0, 1].map(|which| Some(longest[which]?.max(delay[which]?)));
            }
            let at = |which: usize| {
                let took = i128::from(ideal[index][which]) + i128::from(self.alone[index][which]?);
                let at = i128::from(start) + took.max(0) + i128::from(longest[which]?);
                u64::try_from(at).ok().filter(|&at| at <= horizon)
            };
            let delivered = at(0);
            times.delivered[index] = delivered.unwrap_or(Flows::NONE);
            // The sender can't know sooner, whatever was drawn or rounded.
            times.completed[index] = delivered.and(at(1)).map_or(Flows::NONE, |at| at.max(delivered.unwrap_or(0)));
            let (status, reason) = self.standing(flow, &times, index);
            times.status.push(status);
            times.reason.push(reason);
        }
        times.delay_ps = sums.iter().map(|&(sum, count)| sum / count as f64).collect();
        times
    }

    fn standing(&self, flow: FlowId, times: &Times, index: usize) -> (Status, u32) {
        match self.ended(flow) {
            Some((status, reason)) => {
                let place = times.reasons.iter().position(|known| known == reason);
                (*status, place.expect("all have been gathered") as u32)
            }
            None => Status::of(times.started[index], times.delivered[index], times.completed[index]),
        }
    }

    /// Why a flow was refused or given up, on the first link where it was.
    fn ended(&self, flow: FlowId) -> Option<&(Status, String)> {
        let on = |&resource: &u32| {
            let resource = resource as usize;
            let outcome = self.outcomes[resource].as_ref().filter(|outcome| !outcome.ended.is_empty())?;
            outcome.ended.get(&self.place(flow, resource)?)
        };
        self.links.way(flow).iter().find_map(on)
    }

    fn reasons(&self) -> Vec<String> {
        let said = self.outcomes.iter().flatten().flat_map(|outcome| outcome.ended.values().map(|of| of.1.clone()));
        let mut said: Vec<String> = said.filter(|reason| !Flows::REASONS.contains(&reason.as_str())).collect();
        said.sort_unstable();
        said.dedup();
        Flows::REASONS.map(str::to_owned).into_iter().chain(said).collect()
    }

    fn place(&self, flow: FlowId, resource: usize) -> Option<usize> {
        self.links.crossing[resource].binary_search(&flow).ok()
    }

    fn delay(&self, flow: FlowId, resource: usize, samples: &[Samples], random: &mut Stream) -> Delay {
        match self.runs[resource] {
            Run::Idle => [Some(0); 2],
            Run::Own => self.own(flow, resource),
            Run::Like(kind) => samples[kind as usize].draw(self.work, self.lone, flow, random),
        }
    }

    /// The time of a flow's run over a link beyond its time alone.
    fn own(&self, flow: FlowId, resource: usize) -> Delay {
        let place = self.place(flow, resource).expect("it crosses it");
        self.delays[resource].as_ref().map_or([None; 2], |delays| delays[place])
    }

    /// The delays of all flows on the simulated links of a kind.
    fn samples(&self, kind: &[usize]) -> Samples {
        let mut of: BTreeMap<u8, Vec<Sample>> = BTreeMap::new();
        for &resource in kind {
            for &flow in &self.links.crossing[resource] {
                let (info, delay) = (self.work.flows.get(flow), self.own(flow, resource));
                let packets = self.lone.packets(self.work, flow) as f64;
                if delay[0].is_some() {
                    let each = delay.map(|delay| Some(delay? as f64 / packets));
                    of.entry(info.transport).or_default().push((info.bytes, each));
                }
            }
        }
        Samples(of.into_iter().map(|(transport, samples)| (transport, buckets(samples))).collect())
    }
}

/// A flow's bytes, and its delays a packet.
type Sample = (u64, [Option<f64>; 2]);

/// Delays a packet, of flows of about one size.
struct Bucket {
    bytes_max: u64,
    each: Vec<[Option<f64>; 2]>,
}

/// By transport, buckets of sizes.
#[derive(Default)]
struct Samples(BTreeMap<u8, Vec<Bucket>>);

/// A bucket has at least so many flows.
const FLOWS_MIN: usize = 100;
/// Its largest flow is at least so many times as large as its smallest. Both numbers are Parsimon's.
const RANGE_MIN: u64 = 2;

fn buckets(mut samples: Vec<Sample>) -> Vec<Bucket> {
    samples.sort_by_key(|of| of.0);
    let mut buckets: Vec<Bucket> = Vec::new();
    let (mut each, mut least) = (Vec::new(), 0);
    for (place, &(bytes, delay)) in samples.iter().enumerate() {
        if each.is_empty() {
            least = bytes;
        }
        each.push(delay);
        let next = samples.get(place + 1).map(|of| of.0);
        let full = each.len() >= FLOWS_MIN && bytes >= least.saturating_mul(RANGE_MIN) && next != Some(bytes);
        if full || next.is_none() {
            // Beyond the largest that there was, the last bucket counts.
            let bytes_max = if next.is_none() { u64::MAX } else { bytes };
            buckets.push(Bucket { bytes_max, each: std::mem::take(&mut each) });
        }
    }
    buckets
}

impl Samples {
    /// The delay of a random flow of about this one's size, for as many packets as this one has.
    fn draw(&self, work: &WorkloadPlan, lone: &Lone, flow: FlowId, random: &mut Stream) -> Delay {
        let info = work.flows.get(flow);
        let Some(buckets) = self.0.get(&info.transport) else { return [None; 2] };
        let bucket = &buckets[buckets.partition_point(|bucket| bucket.bytes_max < info.bytes)];
        let each = bucket.each[random.below(bucket.each.len() as u64) as usize];
        let packets = lone.packets(work, flow) as f64;
        each.map(|each| Some((each? * packets + 0.5) as u64))
    }
}

#[cfg(test)]
mod tests;
