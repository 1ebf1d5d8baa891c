use std::cmp::Reverse;
use std::collections::BinaryHeap;

use run::{Finding, Ideal, MemoryLimit, Progress, Rest, Table, Way, Ways, WorkloadPlan, alone, compatibility};
use scenario::Scenario;
use serde::Serialize;
use units::{FlowId, Problem, Time};

use crate::agenda::Agenda;
use crate::ranks::Ranks;
use crate::results;
use crate::shares::{Shares, Slot};
use crate::usage::{Usage, tier_index};

/// The result of an estimate.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The tables `flows`, `utilisation` and `links`.
    pub tables: Vec<Table>,
    /// Its summary.
    pub info: EstimateInfo,
    /// The scenario with every default filled in.
    pub scenario_toml: String,
}

/// The summary of an estimate.
#[derive(Clone, Debug, Serialize)]
pub struct EstimateInfo {
    /// "flow": no packets.
    pub level: &'static str,
    /// Clearway's version.
    pub version: &'static str,
    /// The scenario's seed.
    pub seed: u64,
    /// Digest of all flows' times: equal on any machine.
    pub digest: String,
    /// Number of arrivals and departures of flows.
    pub events: u64,
    /// Number of computations of a resource's level.
    pub levels: u64,
    /// Number of changes of a flow's rate.
    pub rate_changes: u64,
    /// Most flows active at one time.
    pub flows_at_once: u64,
    /// Why it ended: "goal" (all flows ended), "horizon", "interrupted".
    pub ended: &'static str,
    /// Simulated time at the end, in picoseconds.
    pub end_ps: u64,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Number of flows.
    pub flows: u64,
    /// Flows that completed.
    pub flows_completed: u64,
    /// The share in the totals of flows without a row of their own; only if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<Rest>,
    /// Longest unloaded round trip of a full data packet and a control packet, in picoseconds.
    pub data_rtt_ps: u64,
    /// Bandwidth-delay product of host 0, in bytes.
    pub bdp_bytes: u64,
    /// Settings that have no effect, and rows that the results lack: the key, and what would be right.
    pub warnings: Vec<String>,
    /// What the audit found.
    pub audit: Vec<Finding>,
}

/// Estimates a scenario's flows at flow level. `watch` is called from time to time; when it returns true the run stops
/// and returns the results so far.
///
/// Settings that concern packets in queues have no effect. Settings that would change paths or shares, and are not
/// modelled here, are refused with their key: failures, sharing among entities, and arrivals of single packets.
pub fn estimate(scenario: &Scenario, watch: impl FnMut(Progress) -> bool) -> Result<Estimate, Problem> {
    estimate_within(scenario, None, watch)
}

/// As [`estimate`], but a scenario that needs more memory than `memory_bytes_max` is refused before anything is built.
pub fn estimate_within(
    scenario: &Scenario,
    memory_bytes_max: Option<u64>,
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<Estimate, Problem> {
    let workload_plan = plan(scenario, memory_bytes_max)?;
    let network = Ways::new(&workload_plan, scenario.path_seed());
    let mut run = Run::new(scenario, &workload_plan, &network);
    let ended = run.go(&mut watch)?;
    let mut estimate = run.conclude(ended);
    if scenario.measure.alone {
        let (jobs, ended) = (&workload_plan.jobs, &mut estimate.info.ended);
        alone::fill_in(&mut estimate.tables, jobs, workload_plan.flows.len(), |job| {
            let run = (*ended != "interrupted").then(|| estimate_alone(scenario, job, &mut watch).ok())??;
            *ended = if run.info.ended == "interrupted" { "interrupted" } else { *ended };
            (*ended != "interrupted").then_some(run.tables)
        });
    }
    Ok(estimate)
}

/// Checks all that [`estimate_within`] checks before it begins: hosts and flows.
pub fn check(scenario: &Scenario, memory_bytes_max: Option<u64>) -> Result<(u32, usize), Problem> {
    let workload_plan = plan(scenario, memory_bytes_max)?;
    Ok((workload_plan.fabric.hosts, workload_plan.flows.len()))
}

fn plan(scenario: &Scenario, memory_bytes_max: Option<u64>) -> Result<WorkloadPlan, Problem> {
    compatibility::check_flow_level(scenario)?;
    let workload_plan = WorkloadPlan::within(scenario, MemoryLimit::flows(memory_bytes_max))?;
    compatibility::check_flow_level_network(scenario, &workload_plan.fabric)?;
    Ok(workload_plan)
}

/// One of a scenario's jobs alone.
fn estimate_alone(scenario: &Scenario, job: usize, watch: impl FnMut(Progress) -> bool) -> Result<Estimate, Problem> {
    let scenario = alone::without_records(scenario);
    let workload_plan = WorkloadPlan::new(&scenario)?.with_job_alone(job);
    let network = Ways::new(&workload_plan, scenario.path_seed());
    let mut run = Run::new(&scenario, &workload_plan, &network);
    let ended = run.go(watch)?;
    Ok(run.conclude(ended))
}

/// Number of event times between two calls of `watch`.
const WATCH_EVERY: u64 = 16;
/// Rates that differ by less are the same.
const ROUNDING: f64 = 1e-9;
/// All shares are audited at the end, and at event counts that are powers of this.
const AUDIT_EVERY: u64 = 4;

pub(crate) struct Run<'a> {
    pub scenario: &'a Scenario,
    pub workload_plan: &'a WorkloadPlan,
    pub network: &'a Ways<'a>,
    /// By transport.
    ideals: Vec<Ideal<'a>>,
    shares: Shares,
    /// When flows' last bits will leave at present rates.
    agenda: Agenda,
    /// By slot: active flows.
    under_way: Vec<UnderWay>,
    /// Flows that wait for a time and not for another flow, in order, and how many of them have started.
    timed: Vec<FlowId>,
    timed_started: usize,
    /// Flows whose predecessor has ended, by start.
    due: BinaryHeap<Reverse<(u64, FlowId)>>,
    /// Flows that wait for others, sorted by the flow that they wait for.
    waiting: Vec<(FlowId, FlowId)>,
    /// The ranks of training jobs.
    pub ranks: Ranks<'a>,
    pub usage: Usage,
    /// By resource: bytes on the wire of all flows that have started.
    pub brought: Vec<f64>,
    pub started: Vec<u64>,
    pub delivered: Vec<u64>,
    pub completed: Vec<u64>,
    way: Way,
    changed: Vec<Slot>,
    now: u64,
    done: u64,
    flows_under_way: u64,
    flows_at_once: u64,
    events: u64,
    levels: u64,
    rate_changes: u64,
    audit: Audit,
}

/// A flow in transfer.
#[derive(Clone, Copy, Default)]
struct UnderWay {
    flow: FlowId,
    start: u64,
    /// Bytes on the wire that were left at `since`, and its rate since then.
    left: f64,
    since: u64,
    rate: f64,
    /// The part of `delivery_ps` that is transfer.
    ideal_ps: u64,
    /// Time from start to delivery without other flows.
    delivery_ps: u64,
    /// Number of links of each tier on its path.
    hops: [f64; 3],
}

#[derive(Default)]
struct Audit {
    times: u64,
    overload: f64,
    lack: f64,
    off_bytes: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Goal,
    Horizon,
    Interrupted,
}

/// Stands for a missing time.
pub(crate) const NONE: u64 = run::Flows::NONE;

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, workload_plan: &'a WorkloadPlan, network: &'a Ways<'a>) -> Run<'a> {
        let count = workload_plan.flows.row_count();
        // Those of jobs begin when ranks come to them.
        let ids = || (0..workload_plan.flows.of_traffic().len()).map(FlowId::from);
        let mut timed: Vec<FlowId> = ids().filter(|&flow| workload_plan.flows.get(flow).begins().is_some()).collect();
        timed.sort_by_key(|&flow| workload_plan.flows.get(flow).start);
        let mut waiting: Vec<(FlowId, FlowId)> =
            ids().filter_map(|flow| Some((workload_plan.flows.get(flow).after?, flow))).collect();
        waiting.sort_unstable();
        let capacity = |resource| network.capacity_bps(resource, scenario.host.intake_rate);
        Run {
            scenario,
            workload_plan,
            network,
            ideals: Ideal::by_transport(
                &workload_plan.fabric,
                &workload_plan.quotient,
                scenario,
                &workload_plan.transports,
            ),
            shares: Shares::new((0..network.resources()).map(capacity)),
            agenda: Agenda::default(),
            under_way: Vec::new(),
            timed,
            timed_started: 0,
            due: BinaryHeap::new(),
            waiting,
            ranks: Ranks::new(&workload_plan.jobs, &workload_plan.flows),
            usage: Usage::new(scenario.measure.interval, scenario.measure.rows_max),
            brought: vec![0.0; network.resources()],
            started: vec![NONE; count],
            delivered: vec![NONE; count],
            completed: vec![NONE; count],
            way: Way::default(),
            changed: Vec::new(),
            now: 0,
            done: 0,
            flows_under_way: 0,
            flows_at_once: 0,
            events: 0,
            levels: 0,
            rate_changes: 0,
            audit: Audit::default(),
        }
    }

    fn go(&mut self, mut watch: impl FnMut(Progress) -> bool) -> Result<Ended, Problem> {
        let horizon = self.workload_plan.horizon.ps();
        let (mut instants, mut next_audit) = (0u64, 1);
        while let Some(now) = self.next() {
            if now > horizon {
                return Ok(Ended::Horizon);
            }
            self.now = now;
            while self.agenda.first().is_some_and(|first| first.0 == now) {
                let (_, slot) = self.agenda.pop().expect("it was seen");
                self.depart(slot);
            }
            let due = &mut self.due;
            self.ranks.advance(now, |flow| due.push(Reverse((now, flow))));
            while let Some(flow) = self.start_due(now) {
                self.arrive(flow);
            }
            self.settle();
            instants += 1;
            if instants == next_audit {
                self.look_at_shares();
                next_audit *= AUDIT_EVERY;
            }
            let plan = self.workload_plan;
            let progress = || Progress::by_flows(Time::from_ps(now), plan.horizon, self.done, plan.flows.len() as u64);
            if instants.is_multiple_of(WATCH_EVERY) && watch(progress()) {
                return Ok(Ended::Interrupted);
            }
        }
        // Bytes that have left the sender may still be in flight.
        let last = self.delivered.iter().chain(&self.completed).copied().filter(|&at| at != NONE).max().unwrap_or(0);
        // So may ranks compute.
        let last = self.ranks.done(u64::MAX).map(|(_, done)| done.end.ps()).fold(last, u64::max);
        let last = last.max(self.ranks.last());
        self.now = last.min(horizon);
        Ok(if last > horizon { Ended::Horizon } else { Ended::Goal })
    }

    /// Time of the next event.
    fn next(&self) -> Option<u64> {
        let timed = self.timed.get(self.timed_started).map(|&flow| self.workload_plan.flows.get(flow).start.ps());
        let due = self.due.peek().map(|Reverse((at, _))| *at);
        [timed, due, self.ranks.next(), self.agenda.first().map(|first| first.0)].into_iter().flatten().min()
    }

    /// Starts a flow that is due.
    fn start_due(&mut self, now: u64) -> Option<FlowId> {
        if let Some(&Reverse((at, flow))) = self.due.peek()
            && at == now
        {
            self.due.pop();
            return Some(flow);
        }
        let &flow = self.timed.get(self.timed_started)?;
        let starts = self.workload_plan.flows.get(flow).start.ps() == now;
        self.timed_started += usize::from(starts);
        starts.then_some(flow)
    }

    fn arrive(&mut self, id: FlowId) {
        let flow = self.workload_plan.flows.get(id);
        let mut way = std::mem::take(&mut self.way);
        self.network.find_way(id, &flow, &mut way);
        let wire = self.workload_plan.wire_bytes(self.scenario, &flow) as f64;
        let ideal = &mut self.ideals[usize::from(flow.transport)];
        let (mut alone, mut hops) = (f64::INFINITY, [0.0; 3]);
        for &(resource, share) in &way.passes {
            alone = f64::min(alone, self.network.capacity_bps(resource as usize, None) / share);
            self.brought[resource as usize] += wire * share;
            let tier = self.workload_plan.fabric.link(self.network.link(resource as usize).0).tier;
            tier_index(tier).into_iter().for_each(|tier| hops[tier] += share);
        }
        let (delivery, ideal) = match way.path.is_empty() {
            true => (ideal.delivery(flow.src, flow.dst, flow.bytes), ideal.narrowest_bps(flow.src, flow.dst)),
            false => (ideal.delivery_over(&way.path, flow.bytes), alone),
        };
        // In a grid, packets that are spread at each switch fill some links before others that lie side by side.
        let unhindered = if ideal > alone * (1.0 + ROUNDING) { ideal } else { alone };
        let own = self.workload_plan.transports[usize::from(flow.transport)].as_scheme().rate_max();
        let limit = own.map_or(alone, |own| f64::min(alone, own.bps() as f64));
        way.passes.retain(|&(resource, _)| self.network.counts(resource));
        let slot = self.shares.insert(limit, way.passes.iter().copied());
        if self.under_way.len() <= slot as usize {
            self.under_way.resize(slot as usize + 1, UnderWay::default());
        }
        self.under_way[slot as usize] = UnderWay {
            flow: id,
            start: self.now,
            left: wire,
            since: self.now,
            rate: 0.0,
            ideal_ps: transfer_ps(wire, unhindered),
            delivery_ps: delivery.ps(),
            hops,
        };
        match self.workload_plan.flows.row(id) {
            Some(row) => self.started[row] = self.now,
            None => self.ranks.unlisted.rest.start(Time::from_ps(self.now)),
        }
        self.events += 1;
        self.flows_under_way += 1;
        self.flows_at_once = self.flows_at_once.max(self.flows_under_way);
        self.way = way;
    }

    /// A flow's last bit has left.
    fn depart(&mut self, slot: Slot) {
        let left = self.credit(slot);
        self.audit.off_bytes = f64::max(self.audit.off_bytes, left.abs());
        self.shares.remove(slot);
        let UnderWay { flow: id, start, ideal_ps, delivery_ps, .. } = self.under_way[slot as usize];
        let flow = self.workload_plan.flows.get(id);
        // Rounding to picoseconds may make a transfer seem one picosecond shorter than it can be.
        let late = (self.now - start).saturating_sub(ideal_ps);
        let delivered = start.saturating_add(delivery_ps).saturating_add(late);
        let completed =
            delivered.saturating_add(self.ideals[usize::from(flow.transport)].answer(flow.src, flow.dst).ps());
        if let Some(row) = self.workload_plan.flows.row(id) {
            (self.delivered[row], self.completed[row]) = (delivered, completed);
        }
        let (now, due) = (self.now, &mut self.due);
        self.ranks.departed(id, [now, delivered, completed], |flow| due.push(Reverse((now, flow))));
        let first = self.waiting.partition_point(|(before, _)| *before < id);
        for &(_, next) in self.waiting[first..].iter().take_while(|(before, _)| *before == id) {
            let pause = self.workload_plan.flows.get(next).start.ps();
            self.due.push(Reverse((completed.saturating_add(pause), next)));
        }
        self.events += 1;
        self.done += 1;
        self.flows_under_way -= 1;
    }

    fn settle(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        self.levels += self.shares.settle(&mut changed);
        self.rate_changes += changed.len() as u64;
        for &slot in &changed {
            let left = self.credit(slot);
            let rate = self.shares.rate(slot);
            let flow = &mut self.under_way[slot as usize];
            (flow.left, flow.since, flow.rate) = (f64::max(0.0, left), self.now, rate);
            self.agenda.set(slot, self.now.saturating_add(transfer_ps(flow.left, rate)));
        }
        self.changed = changed;
    }

    /// Counts what a flow has sent at its present rate, and returns what is left.
    fn credit(&mut self, slot: Slot) -> f64 {
        let UnderWay { left, since, rate, hops, .. } = self.under_way[slot as usize];
        self.usage.add(since, self.now, rate, hops);
        left - rate * (self.now - since) as f64 / BIT_PS_A_BYTE
    }

    fn look_at_shares(&mut self) {
        let (loaded, lack) = self.shares.distance_from_fair();
        self.audit.times += 1;
        self.audit.overload = f64::max(self.audit.overload, loaded - 1.0);
        self.audit.lack = f64::max(self.audit.lack, lack);
    }

    fn conclude(mut self, ended: Ended) -> Estimate {
        self.look_at_shares();
        let horizon = self.workload_plan.horizon.ps();
        let end = if ended == Ended::Horizon { horizon } else { self.now };
        self.now = end;
        self.cut_off(end);
        let standing = results::Standing::new(&self);
        let Audit { times, overload, lack, off_bytes } = self.audit;
        let mut audit = vec![
            Finding {
                name: "shares are max-min fair",
                ok: overload < 1e-9 && lack < 1e-9,
                detail: format!(
                    "checked {times} times: no resource is loaded more than {overload:.0e} above its capacity, no \
                     flow is more than {lack:.0e} below its share"
                ),
            },
            Finding {
                name: "bytes conserved",
                // A picosecond is an eighth of a byte at 1 Tbps; the rest is rounding of products of large numbers.
                ok: off_bytes < 1.0,
                detail: format!(
                    "the bytes that a flow was served and its bytes on the wire differ by at most {off_bytes:.1e} bytes"
                ),
            },
        ];
        if ended == Ended::Horizon && self.scenario.measure.end.is_none() && !self.workload_plan.jobs.is_empty() {
            audit.push(Finding {
                name: "every flow ended",
                ok: false,
                detail: "a job has not ended within a day, the longest that a run takes without measure.end".to_owned(),
            });
        }
        let site = &self.workload_plan.sites[0];
        let listed = self.delivered.iter().zip(0u64..).map(|(&at, flow)| units::mix(flow, at));
        let digest = listed.fold(self.ranks.unlisted.digest(), u64::wrapping_add);
        let info = EstimateInfo {
            level: "flow",
            version: env!("CARGO_PKG_VERSION"),
            seed: self.scenario.seed,
            digest: format!("{digest:016x}"),
            events: self.events,
            levels: self.levels,
            rate_changes: self.rate_changes,
            flows_at_once: self.flows_at_once,
            ended: match ended {
                Ended::Goal => "goal",
                Ended::Horizon => "horizon",
                Ended::Interrupted => "interrupted",
            },
            end_ps: end,
            hosts: self.workload_plan.fabric.hosts,
            flows: self.workload_plan.flows.len() as u64,
            flows_completed: standing.completed() + self.ranks.unlisted.completed,
            rest: self.ranks.unlisted.rest.if_any(),
            data_rtt_ps: site.data_rtt.ps(),
            bdp_bytes: site.bdp_bytes(),
            warnings: self.warnings(),
            audit,
        };
        let tables = results::tables(&mut self, standing, end);
        Estimate { tables, info, scenario_toml: self.scenario.to_toml() }
    }

    /// Warnings about settings without effect at this level, and about rows that the results lack.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.scenario.advice();
        warnings.extend(compatibility::flow_level_advice(self.scenario));
        warnings.extend(run::note_of_sums(&self.workload_plan.flows, &self.workload_plan.jobs));
        warnings.iter().map(ToString::to_string).collect()
    }

    /// Removes what would have happened after the end.
    fn cut_off(&mut self, end: u64) {
        while let Some((_, slot)) = self.agenda.pop() {
            let left = self.credit(slot);
            let id = self.under_way[slot as usize].flow;
            let mut way = std::mem::take(&mut self.way);
            self.network.find_way(id, &self.workload_plan.flows.get(id), &mut way);
            for &(resource, share) in &way.passes {
                self.brought[resource as usize] -= left * share;
            }
            self.way = way;
        }
        for at in self.delivered.iter_mut().chain(&mut self.completed).filter(|at| **at > end) {
            *at = NONE;
        }
    }
}

/// Picoseconds for a byte at one bit per second.
const BIT_PS_A_BYTE: f64 = 8e12;

/// Time to transfer bytes at a rate, to the nearest picosecond.
fn transfer_ps(bytes: f64, rate_bps: f64) -> u64 {
    (bytes * BIT_PS_A_BYTE / rate_bps + 0.5) as u64
}
