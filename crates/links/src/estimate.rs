use run::{Finding, Flows, MemoryLimit, Progress, Status, Table, WorkloadPlan, alone, compatibility};
use scenario::Scenario;
use serde::Serialize;
use units::Problem;

use crate::combine::{Delay, Found, Run, Times, delay};
use crate::decompose::Decomposition;
use crate::lone::Lone;
use crate::piece::{Outcome, Workshop};
use crate::pool::{self, Task, TaskProgress};
use crate::results;
use crate::sample;

/// The result of an estimate.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The tables `flows` and `links`.
    pub tables: Vec<Table>,
    /// Its summary.
    pub info: EstimateInfo,
    /// The scenario with every default filled in.
    pub scenario_toml: String,
}

/// The summary of an estimate.
#[derive(Clone, Debug, Serialize)]
pub struct EstimateInfo {
    /// "links": each link was simulated alone.
    pub level: &'static str,
    /// Clearway's version.
    pub version: &'static str,
    /// The scenario's seed.
    pub seed: u64,
    /// Digest of all flows' times: equal on any machine and any number of threads. No other level has the same.
    pub digest: String,
    /// Packets that passed a link of a run, each link once.
    pub packet_hops: u64,
    /// Events of all runs.
    pub events: u64,
    /// Links, or bundles of links side by side, that were simulated.
    pub links_simulated: u64,
    /// Those for which others of their kind were simulated.
    pub links_alike: u64,
    /// Those that flows cross and nothing can wait at.
    pub links_idle: u64,
    /// Flows that were simulated alone.
    pub flows_alone: u64,
    /// Threads that ran it.
    pub threads: usize,
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
    /// Longest unloaded round trip of a full data packet and a control packet, in picoseconds.
    pub data_rtt_ps: u64,
    /// Bandwidth-delay product of host 0, in bytes.
    pub bdp_bytes: u64,
    /// Settings that have no effect: the key, and what would be right.
    pub warnings: Vec<String>,
    /// What the audit found.
    pub audit: Vec<Finding>,
}

/// So that no digest of this level is that of flow level by chance.
const DIGEST_KIND: u64 = 0x006c_696e_6b73;

/// Estimates a scenario's flows one link at a time, on up to `threads` threads. `watch` is called from time to time;
/// when it returns true the run stops and returns the results of what has been simulated so far: a flow is there if all
/// of its links are.
///
/// Settings by which one link acts on another, and what starts when something else has ended, are refused with their
/// key.
pub fn estimate(scenario: &Scenario, threads: usize, watch: impl FnMut(Progress) -> bool) -> Result<Estimate, Problem> {
    estimate_within(scenario, threads, None, watch)
}

/// Checks what [`estimate_within`] checks before it looks at single links: hosts and flows.
pub fn check(scenario: &Scenario, memory_bytes_max: Option<u64>) -> Result<(u32, usize), Problem> {
    let work = plan(scenario, memory_bytes_max)?;
    Ok((work.fabric.hosts, work.flows.len()))
}

fn plan(scenario: &Scenario, memory_bytes_max: Option<u64>) -> Result<WorkloadPlan, Problem> {
    compatibility::check_links(scenario)?;
    let work = WorkloadPlan::within(scenario, MemoryLimit::flows(memory_bytes_max))?;
    compatibility::check_links_network(&work)?;
    compatibility::check_links_flows(scenario, &work)?;
    Ok(work)
}

/// As [`estimate`], but a scenario that needs more memory than `memory_bytes_max` is refused before anything is built.
pub fn estimate_within(
    scenario: &Scenario,
    threads: usize,
    memory_bytes_max: Option<u64>,
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<Estimate, Problem> {
    let work = plan(scenario, memory_bytes_max)?;
    let links = Decomposition::new(scenario, &work)?;
    let mut lone = Lone::new(scenario, &work, &links)?;
    let (runs, kinds) = sample::choose(scenario, &work, &links);
    // Entities share nothing at this level, and their hosts are not in a piece.
    let mut bare = Scenario { entity: Vec::new(), ..alone::without_records(scenario) };
    bare.link.llr = None;
    let shop = Workshop { scenario: &bare, work: &work };

    let tasks: Vec<Task> = lone.sizes.iter().map(|&(_, bytes)| Task { bytes, flows: 1 }).collect();
    let of_links = (0..runs.len()).filter(|&resource| runs[resource] == Run::Own).map(|at| task(&work, &links, at));
    let board = TaskProgress::of(tasks.iter().copied().chain(of_links));
    let make = |task: usize| {
        let (class, bytes) = lone.sizes[task];
        let (flow, way) = lone.example(class);
        shop.alone(flow, bytes, way)
    };
    let of_lone = pool::run(&board, &tasks, threads, work.horizon, make, &mut watch)?;
    lone.note(&of_lone);
    let alone: Vec<_> = (0..work.flows.len()).map(|flow| lone.late(&work, flow.into())).collect();

    let own: Vec<usize> = (0..runs.len()).filter(|&resource| runs[resource] == Run::Own).collect();
    let tasks: Vec<Task> = own.iter().map(|&resource| task(&work, &links, resource)).collect();
    let make = |task: usize| links.crossings(own[task], |flows| shop.of_link(links.target(own[task]), flows));
    let ran = pool::run(&board, &tasks, threads, work.horizon, make, &mut watch)?;
    let (mut outcomes, mut delays) = (vec![None; runs.len()], vec![None; runs.len()]);
    for (&resource, outcome) in own.iter().zip(ran) {
        delays[resource] = outcome.as_ref().map(|outcome| {
            let flows = links.crossing[resource].iter().zip(&outcome.late);
            flows.map(|(&flow, &late)| delay(late, alone[flow.index()])).collect::<Vec<Delay>>()
        });
        outcomes[resource] = outcome;
    }
    let missing = |resource: usize| runs[resource] == Run::Own && outcomes[resource].is_none();
    let interrupted = of_lone.iter().any(Option::is_none) || (0..runs.len()).any(missing);
    let counts = Counts::new(outcomes.iter().chain(&of_lone).flatten());
    let found = Found {
        scenario,
        work: &work,
        links: &links,
        lone: &lone,
        runs: &runs,
        kinds: &kinds,
        outcomes: &outcomes,
        delays: &delays,
        alone: &alone,
    };
    let times = found.times();
    let info = info(&found, &times, &counts, interrupted, threads.max(1));
    let tables = results::tables(scenario, &work, &links, &runs, times, info.end_ps);
    Ok(Estimate { tables, info, scenario_toml: scenario.to_toml() })
}

fn task(work: &WorkloadPlan, links: &Decomposition<'_>, resource: usize) -> Task {
    let flows = &links.crossing[resource];
    Task { bytes: flows.iter().map(|&flow| work.flows.get(flow).bytes).sum(), flows: flows.len() as u64 }
}

fn info(found: &Found<'_>, times: &Times, counts: &Counts, interrupted: bool, threads: usize) -> EstimateInfo {
    let (work, runs) = (found.work, found.runs);
    let standing = |of: Status| times.status.iter().filter(|&&status| status == of).count() as u64;
    let open = standing(Status::Unfinished) + standing(Status::Delivered);
    let last = times.delivered.iter().chain(&times.completed).copied().filter(|&at| at != Flows::NONE).max();
    let digest = times.delivered.iter().zip(0u64..).map(|(&at, flow)| units::mix(units::mix(flow, at), DIGEST_KIND));
    let dealt = |which: fn(&Run) -> bool| runs.iter().filter(|run| which(run)).count() as u64;
    let idle = (0..runs.len()).filter(|&at| runs[at] == Run::Idle && !found.links.crossing[at].is_empty()).count();
    let site = &work.sites[0];
    let mut advice = found.scenario.advice();
    advice.extend(compatibility::links_advice(found.scenario));
    EstimateInfo {
        level: "links",
        version: env!("CARGO_PKG_VERSION"),
        seed: found.scenario.seed,
        digest: format!("{:016x}", digest.fold(0, u64::wrapping_add)),
        packet_hops: counts.packet_hops,
        events: counts.events,
        links_simulated: dealt(|run| *run == Run::Own),
        links_alike: dealt(|run| matches!(run, Run::Like(_))),
        links_idle: idle as u64,
        flows_alone: found.lone.sizes.len() as u64,
        threads,
        ended: match (interrupted, open) {
            (true, _) => "interrupted",
            (false, 0) => "goal",
            (false, _) => "horizon",
        },
        end_ps: if open > 0 && !interrupted { work.horizon.ps() } else { last.unwrap_or(0) },
        hosts: work.fabric.hosts,
        flows: work.flows.len() as u64,
        flows_completed: standing(Status::Completed),
        data_rtt_ps: site.data_rtt.ps(),
        bdp_bytes: site.bdp_bytes(),
        warnings: advice.iter().map(ToString::to_string).collect(),
        audit: vec![counts.finding()],
    }
}

/// Sums over all runs.
struct Counts {
    runs: usize,
    packet_hops: u64,
    events: u64,
    faults: Vec<String>,
}

impl Counts {
    fn new<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Counts {
        let mut counts = Counts { runs: 0, packet_hops: 0, events: 0, faults: Vec::new() };
        for outcome in outcomes {
            counts.runs += 1;
            counts.packet_hops += outcome.packet_hops;
            counts.events += outcome.events;
            counts.faults.extend(outcome.fault.clone());
        }
        counts
    }

    fn finding(&self) -> Finding {
        let detail = match self.faults.first() {
            None => format!("none of {} runs of a link or of a flow alone has a fault in its own audit", self.runs),
            Some(first) => {
                format!("{} of {} runs have a fault in their own audit; {first}", self.faults.len(), self.runs)
            }
        };
        Finding { name: "each run is sound", ok: self.faults.is_empty(), detail }
    }
}
