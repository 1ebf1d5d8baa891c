use std::sync::Arc;

use driver::{Capturing, Cut, Driver, Islands, Probe, Probes, Shape, Stuck, Tally, Wants, Whole, digest};
use engine::{Bounds, Ended, Outcome};
use run::audit::{EVERY_FLOW_ENDED, Ending};
use run::{Data, Finding, Flows, Plan, Progress, Rest, Stillness, Table, Unlisted, alone};
use scenario::{FastForward, Scenario};
use serde::Serialize;
use units::{Problem, Time};

use crate::ahead::{self, Breach, Skipped};
use crate::checkpoint::{self, Course};
use crate::part::{self, Memory, Part, ReceivedBytes};

/// What a run gives.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The tables, in a fixed order.
    pub tables: Vec<Table>,
    /// Its summary.
    pub info: RunInfo,
    /// The scenario as it was run, every default filled in.
    pub scenario_toml: String,
}

/// The summary of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunInfo {
    /// "packet": every packet was simulated.
    pub level: &'static str,
    /// Clearway's version.
    pub version: &'static str,
    /// The scenario's seed.
    pub seed: u64,
    /// Digest of the history of every node: equal on any machine and any number of threads.
    pub digest: String,
    /// Packets that passed a link, data and control, each link once.
    pub packet_hops: u64,
    /// Events of the engine: arrivals of packets, transmissions, deadlines. In approximate mode not those of groups of
    /// hosts that were skipped while others went on.
    pub events: u64,
    /// Why it ended: "goal" (all flows ended), "horizon", "quiet" (nothing left to happen), "stuck" (nothing left that
    /// could end a flow, see [`driver::Stuck`]), "interrupted".
    pub ended: &'static str,
    /// Simulated time at the end, in picoseconds.
    pub end_ps: u64,
    /// Time between samples, in picoseconds: `measure.interval`, or more if the run was long; 0 without samples.
    pub sample_interval_ps: u64,
    /// Threads that ran it.
    pub threads: usize,
    /// Parts that its network was cut into, which the threads shared.
    pub parts: usize,
    /// What each of them held.
    pub part_shapes: Vec<Shape>,
    /// Windows of the parallel engine.
    pub windows: u64,
    /// What was skipped because it repeated; only with `fast_forward`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Flows in all.
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
    /// Settings that can hardly work, though the run went on: the key, and what would be right.
    pub warnings: Vec<String>,
    /// What the audit found.
    pub audit: Vec<Finding>,
}

/// How a run uses the machine. Its results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Most threads; at least one is taken.
    pub threads: usize,
    /// Most parts that the network is cut into; `None` for as many as threads.
    pub parts: Option<usize>,
}

/// On this many threads.
impl From<usize> for Execution {
    fn from(threads: usize) -> Execution {
        Execution { threads, parts: None }
    }
}

/// Runs a scenario. `watch` is called after each window; when it returns true the run stops there and the results so
/// far are given. There are no more threads than parts, and no more parts than the fabric has racks.
pub fn run(
    scenario: &Scenario,
    execution: impl Into<Execution>,
    watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    Ok(run_plan(&Plan::new(scenario)?, execution, watch))
}

/// As [`run()`], for a plan that was made before.
pub fn run_plan(plan: &Plan, execution: impl Into<Execution>, watch: impl FnMut(Progress) -> bool) -> RunResult {
    run_captured(plan, execution, None, watch)
}

/// As [`run_plan`], and notes what some links carry.
pub fn run_captured(
    plan: &Plan,
    execution: impl Into<Execution>,
    links: Option<&Arc<Capturing>>,
    watch: impl FnMut(Progress) -> bool,
) -> RunResult {
    let result = run_on(plan, execution, links, Course::default(), watch);
    result.expect("a run that begins reads no checkpoint")
}

/// As [`run_captured`], from a checkpoint on, and with checkpoints.
///
/// # Errors
/// If the run can't have checkpoints, or the one from which it goes on is not of this plan.
pub fn run_on(
    plan: &Plan,
    execution: impl Into<Execution>,
    links: Option<&Arc<Capturing>>,
    mut course: Course<'_>,
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    let mut execution = execution.into();
    if course.from.is_some() || course.keep.is_some() {
        let captured = || links.map(|_| Problem::new("pcap", "a run whose links are captured takes no checkpoints"));
        checkpoint::refusal(plan).or_else(captured).map_or(Ok(()), Err)?;
    }
    if let Some(from) = course.from {
        course.check(plan)?;
        execution.parts = Some(from.parts);
    }
    let mut result = run_once(plan, execution, links, &mut course, &mut watch)?;
    result.info.warnings.extend(course.failed.take());
    if plan.scenario.measure.alone {
        let ended = &mut result.info.ended;
        alone::fill_in(&mut result.tables, &plan.jobs, plan.flows.len(), |job| {
            // After Ctrl-C no further run of a job alone begins.
            let plan = Plan::of_job_alone(&plan.scenario, job).ok().filter(|_| *ended != "interrupted")?;
            let run = run_once(&plan, execution, None, &mut Course::default(), &mut watch).ok()?;
            if run.info.ended == "interrupted" {
                *ended = run.info.ended;
                return None;
            }
            Some(run.tables)
        });
    }
    Ok(result)
}

fn run_once(
    plan: &Plan,
    execution: Execution,
    links: Option<&Arc<Capturing>>,
    course: &mut Course<'_>,
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    let (flows, work) = (plan.goal(), plan.flows.bytes_taking_part());
    let board = ReceivedBytes::default();
    let mut stillness = Stillness::new(plan);
    let watch = |now, flows_done| {
        let work_done = board.delivered_bytes();
        let still = stillness.see(now, work_done);
        watch(Progress { now, horizon: plan.horizon, flows_done, flows, work_done, work, still })
    };
    let probes = || Probes::new(plan).capturing(links);
    let unwatched = probes().is_empty();
    let ways = match plan.scenario.skips() {
        FastForward::Off => 1,
        // Where something outside sees what the run does, it may not begin anew.
        _ if links.is_some() => 1,
        FastForward::Exact | FastForward::Approximate => WAYS.len(),
    };
    // Skipping needs a log of the arrivals at nodes, which a driver without probes does not keep.
    match unwatched && plan.scenario.skips() == FastForward::Off {
        true => run_watched(plan, execution, &board, &WAYS[..ways], || (), course, watch),
        false => run_watched(plan, execution, &board, &WAYS[..ways], probes, course, watch),
    }
}

/// How islands are found. The last one is tried first; when a packet leaves its island, the one before.
const WAYS: [fn(&Plan) -> Islands; 3] = [Islands::one, Islands::that_last, Islands::of_flows];

/// Runs a plan under some kind of probe, with islands that are found in one of these ways.
fn run_watched<P: Probe>(
    plan: &Plan,
    Execution { threads, parts }: Execution,
    board: &ReceivedBytes,
    ways: &[fn(&Plan) -> Islands],
    mut probe: impl FnMut() -> P,
    course: &mut Course<'_>,
    mut watch: impl FnMut(Time, u64) -> bool,
) -> Result<RunResult, Problem> {
    let most = parts.unwrap_or(threads.max(1));
    let bounds = Bounds::new(plan.lookahead, plan.horizon, plan.goal());
    let mut ways = ways.iter().rev();
    // Groups of hosts may sleep between samples, but nobody may ask for their packets.
    let wants = probe().wants();
    let mut groups = wants == Wants { samples: wants.samples, ..Wants::default() };
    let mut islands = ways.next().expect("the whole network is an island")(plan);
    let (cut, parts, threads, finish, skipped) = loop {
        let cut = Cut::of_islands(plan, most, &islands);
        let mut parts = part::parts(plan, &cut, board, &mut probe);
        let threads = threads.clamp(1, parts.len());
        if plan.scenario.skips() == FastForward::Off {
            let stuck = &mut Stuck::new(plan);
            let finish = Finish::on(plan, &mut parts, threads, bounds, stuck, course, &mut watch)?;
            break (cut, parts, threads, finish, None);
        }
        match ahead::run(plan, &mut parts, (&islands, &cut, groups), threads, bounds, &mut watch) {
            Ok((finish, skipped)) => break (cut, parts, threads, finish, Some(skipped)),
            Err(breach) => {
                // A late packet of what had ended, or one that no flow announces.
                if breach == Breach::OfGroups {
                    groups = false;
                } else {
                    let mut others = ways.by_ref().map(|of| of(plan));
                    islands = others.find(|of| *of != islands).expect("no packet leaves the whole network");
                }
                board.clear();
            }
        }
    };
    let mut drivers: Vec<_> = parts.into_iter().map(|Part(driver, _)| driver).collect();
    drivers.iter_mut().for_each(|driver| driver.settle(finish.outcome.end));
    drivers.iter_mut().for_each(Driver::end);
    let mut result = conclude(plan, &cut, &drivers, threads, &finish);
    // Packets of skipped time are in digests only where each of them is known to come as in the whole run.
    let estimates = plan.scenario.skips() == FastForward::Approximate;
    let skips = skipped.as_ref().is_some_and(|skipped| skipped.skips > 0);
    if estimates && skips {
        result.info.digest.insert(0, '~');
    }
    if skipped.as_ref().is_some_and(|skipped| skipped.estimated_ps > 0) {
        // Sent and received bytes were estimated separately, so their sums need not agree.
        for finding in result.info.audit.iter_mut().filter(|finding| finding.name == Tally::CONSERVED) {
            finding.ok = true;
            finding.detail = format!("not checked, since a part of the run is an estimate ({})", finding.detail);
        }
    }
    if estimates && skips {
        // Who sleeps is not watched.
        for finding in result.info.audit.iter_mut().filter(|finding| finding.name == driver::EVERY_CLASS_MOVES) {
            finding.ok = true;
            finding.detail = "not checked, since a part of the run is an estimate".to_owned();
        }
    }
    result.info.skipped = skipped;
    Ok(result)
}

/// How a run came to its end.
pub(crate) struct Finish {
    pub outcome: Outcome,
    /// Why it can't end by itself, if it was paused for good: see [`Stuck`].
    pub stuck: Option<String>,
}

impl Finish {
    /// Runs to the end, with a look now and then at whether there can be one.
    pub fn of<P: Probe>(
        plan: &Plan,
        parts: &mut [Part<P>],
        threads: usize,
        bounds: Bounds,
        stuck: &mut Stuck,
        watch: impl FnMut(Time, u64) -> bool,
    ) -> Finish {
        let finish = Finish::on(plan, parts, threads, bounds, stuck, &mut Course::default(), watch);
        finish.expect("a run that begins reads no checkpoint")
    }

    /// The same, from a checkpoint on, and with checkpoints.
    pub fn on<P: Probe>(
        plan: &Plan,
        parts: &mut [Part<P>],
        threads: usize,
        mut bounds: Bounds,
        stuck: &mut Stuck,
        course: &mut Course<'_>,
        mut watch: impl FnMut(Time, u64) -> bool,
    ) -> Result<Finish, Problem> {
        let (mut end, mut windows) = course.begin(plan, parts, stuck, &mut bounds)?;
        loop {
            let mark = course.next_at();
            bounds.pause = stuck.next_at().min(mark);
            let outcome = engine::run(parts, threads, bounds, &mut watch);
            windows += outcome.windows;
            bounds.open_until = outcome.open_until;
            // If no window began, the engine's end is zero, and not the time that the run had come to.
            end = end.max(outcome.end);
            let paused = outcome.ended == Ended::Paused;
            if paused && bounds.pause == mark {
                course.take(plan, parts, stuck, mark, Outcome { end, windows, ..outcome });
            }
            let looks = paused && bounds.pause == stuck.next_at();
            let why = looks.then(|| stuck.look(plan, parts.iter().map(|part| &part.0))).flatten();
            if !paused || why.is_some() {
                let end = if why.is_some() { bounds.pause } else { end };
                return Ok(Finish { outcome: Outcome { end, windows, ..outcome }, stuck: why });
            }
        }
    }
}

pub(crate) fn conclude<P: Probe>(
    plan: &Plan,
    cut: &Cut,
    parts: &[Driver<Memory, P>],
    threads: usize,
    Finish { outcome, stuck }: &Finish,
) -> RunResult {
    let hosts = || parts.iter().flat_map(|part| &part.hosts);
    let switches = || parts.iter().flat_map(|part| &part.switches);
    let whole = Whole {
        plan,
        end: outcome.end,
        sample_interval: parts[0].sample_interval(),
        switches: switches().collect(),
        hosts: hosts().collect(),
    };
    let unlisted = hosts().map(|slot| slot.host.unlisted).fold(Unlisted::default(), Unlisted::and);
    let mut flows = Flows::gather(&plan.flows, unlisted, hosts().flat_map(|slot| &slot.host.records));
    if plan.knows_lost_flows() {
        flows.explain(parts.iter().flat_map(Driver::lost_flows));
    }
    let completed = flows.completed();
    let ending = match outcome.ended {
        Ended::Goal | Ended::Quiet => Ending::Itself,
        Ended::Horizon => Ending::TimeUp { said: plan.scenario.measure.end.is_some() },
        Ended::Paused if stuck.is_some() => Ending::Stuck,
        Ended::Interrupted | Ended::Paused => Ending::Stopped,
    };
    let movement = driver::Movement::of(&whole, parts, &[], &flows, ending);
    let mut info = RunInfo {
        level: "packet",
        version: env!("CARGO_PKG_VERSION"),
        seed: plan.scenario.seed,
        digest: format!("{:016x}", digest(switches(), hosts())),
        packet_hops: parts.iter().map(|part| part.packet_hops).sum(),
        events: parts.iter().map(|part| part.events).sum(),
        ended: match outcome.ended {
            Ended::Goal => "goal",
            Ended::Horizon => "horizon",
            Ended::Quiet => "quiet",
            Ended::Paused if stuck.is_some() => "stuck",
            Ended::Interrupted | Ended::Paused => "interrupted",
        },
        end_ps: outcome.end.ps(),
        sample_interval_ps: whole.sample_interval.ps(),
        threads,
        parts: parts.len(),
        part_shapes: cut.shapes(&plan.fabric),
        windows: outcome.windows,
        skipped: None,
        hosts: plan.fabric.hosts,
        flows: plan.flows.len() as u64,
        flows_completed: completed,
        rest: flows.unlisted.rest.if_any(),
        data_rtt_ps: plan.sites[0].data_rtt.ps(),
        bdp_bytes: plan.sites[0].bdp_bytes(),
        audit: driver::findings(&whole, parts, &[], &flows, ending, &movement),
        warnings: plan
            .warnings()
            .iter()
            .map(ToString::to_string)
            .chain(driver::notes(&whole, parts, &[]))
            .chain(movement.warnings)
            .collect(),
    };
    for finding in info.audit.iter_mut().filter(|finding| finding.name == EVERY_FLOW_ENDED) {
        finding.detail.extend(stuck.iter().flat_map(|why| [": ", why]));
    }
    let packets = flows.all_packets();
    let tables = driver::tables(&whole, parts, &[], flows);
    let by_itself = (outcome.ended == Ended::Goal).then_some(outcome.end);
    let doubts = plan.doubts_of_outcome(packets, lost_packets(&tables), by_itself);
    info.warnings.extend(doubts.iter().map(ToString::to_string));
    RunResult { tables, info, scenario_toml: plan.scenario.to_toml() }
}

/// Packets that links and hosts have lost, by the tables of a run.
fn lost_packets(tables: &[Table]) -> u64 {
    let causes = ["overflow", "dead", "unroutable", "expired", "lossy", "corrupted"].map(|of| format!("{of}_packets"));
    let links = tables.iter().filter(|table| table.name == "links").flat_map(|table| &table.columns);
    let columns = links.filter(|column| causes.iter().any(|cause| cause == column.name));
    columns.map(|column| if let Data::U64(values) = &column.data { values.iter().sum() } else { 0 }).sum()
}
