use std::net::SocketAddr;
use std::sync::Arc;

use driver::{Driver, Movement, Probe, Summary, Whole};
use run::{Finding, Flows, Plan, Progress, Table, Unlisted, alone};
use scenario::Scenario;
use serde::Serialize;
use units::{Duration, Problem, Time};

use crate::board::Ended;
use crate::clock::Clock;
use crate::maze::Exchange;
use crate::network::{self, Network, Outcome};
use crate::results::{self, Heard, Noted, Said};
use crate::wires::Wires;
use crate::worker::Worker;

/// When a run with attached hosts or programs ends that no one ends: after 106 days.
const ENDLESS: Time = Time::from_ps(u64::MAX / 2);

/// The results of a live run: those of the simulator, except for what only one of the two has.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The tables, in a fixed order: those of a simulation, then `lateness` and `refused`.
    pub tables: Vec<Table>,
    /// Its summary.
    pub info: RunInfo,
    /// The scenario as it was run, every default filled in.
    pub scenario_toml: String,
}

/// The summary of a live run. Times are the network's, which is the machine's divided by `dilation`.
#[derive(Clone, Debug, Serialize)]
pub struct RunInfo {
    /// Clearway's version.
    pub version: &'static str,
    /// The scenario's seed.
    pub seed: u64,
    /// Digest of the history of every node: the simulator's, if no frame was lost on a socket and both ran as long.
    /// None where hosts are attached or programs send: what comes from outside comes differently each time.
    pub digest: String,
    /// Packets that passed a link, data and control, each link once.
    pub packet_hops: u64,
    /// Events: arrivals, transmissions, deadlines.
    pub events: u64,
    /// Why it ended: "goal" (all flows ended), "horizon", "quiet" (nothing left to happen), "stuck" (nothing left that
    /// could end a flow, see [`driver::Stuck`]), "interrupted", "closed" (by the program that had started it).
    pub ended: &'static str,
    /// Time from beginning to end, in picoseconds.
    pub end_ps: u64,
    /// Between samples, in picoseconds: `measure.interval`, or more if the run was long; 0 without samples.
    pub sample_interval_ps: u64,
    /// How many times slower than the machine the network lived.
    pub dilation: u32,
    /// Threads that drove its nodes, in all processes.
    pub workers: usize,
    /// Processes that they were in, those that were lost not counted.
    pub processes: usize,
    /// Machines that they were on, those that were lost not counted.
    pub machines: usize,
    /// To within this, in microseconds, the clocks of all machines agreed when the run began.
    pub clock_error_us: f64,
    /// Numbers of the processes, or machines, that were lost, with all that their nodes had counted.
    pub lost_processes: Vec<usize>,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Flows in all.
    pub flows: u64,
    /// Flows that completed.
    pub flows_completed: u64,
    /// Longest unloaded round trip of a full data packet and a control packet, in picoseconds.
    pub data_rtt_ps: u64,
    /// Bandwidth-delay product of host 0, in bytes.
    pub bdp_bytes: u64,
    /// Content that arrived and was what had been sent, in bytes, repetitions counted.
    pub content_bytes: u64,
    /// Datagrams, and packets from other processes, that were none of this run and were dropped.
    pub refused_datagrams: u64,
    /// How late half of all events were at most, in microseconds.
    pub late_us_median: f64,
    /// How late 99% of them were at most.
    pub late_us_p99: f64,
    /// How late the latest was.
    pub late_us_max: f64,
    /// For how long the network stood still because the machine held something up for longer than
    /// [`CREDIT`](crate::CREDIT), in picoseconds.
    pub lost_ps: u64,
    /// How long it took by the machine's clock, in seconds.
    pub machine_s: f64,
    /// For how long, of that, a worker that polls had no core because the machine gave it to others: the mean of all
    /// workers, in seconds. 0 where workers sleep.
    pub away_s: f64,
    /// Settings that can hardly work, though the run went on: the key, and what would be right.
    pub warnings: Vec<String>,
    /// What the audit found.
    pub audit: Vec<Finding>,
}

/// Runs a scenario on the machine's clock. `watch` is called about twenty times a second; when it returns true the run
/// stops there and the results so far are given.
pub fn run(scenario: &Scenario, watch: impl FnMut(Progress) -> bool) -> Result<RunResult, Problem> {
    run_at(scenario, watch, |_| {})
}

/// The same; where links are datagrams, `bound` is told, before anything is sent, at which addresses the nodes' sockets
/// are: hosts, then switches.
pub fn run_at(
    scenario: &Scenario,
    mut watch: impl FnMut(Progress) -> bool,
    bound: impl FnOnce(&[SocketAddr]),
) -> Result<RunResult, Problem> {
    let (plan, mut network) = prepare(scenario, false)?;
    bound(network.addresses());
    let probes = network.probes(&plan);
    let mut result = match probes().is_empty() {
        true => run_watched(&plan, &mut network, None, || (), &mut watch),
        false => run_watched(&plan, &mut network, None, probes, &mut watch),
    };
    drop(network);
    run_alone(&plan, &mut result, watch);
    Ok(result)
}

/// Runs each job alone, if the scenario asks for that: live too, on this process's workers, after the run itself. Then
/// nothing comes from outside: no host is attached, no program sends and no link is captured.
pub(crate) fn run_alone(plan: &Plan, result: &mut RunResult, mut watch: impl FnMut(Progress) -> bool) {
    if !plan.scenario.measure.alone {
        return;
    }
    let ended = &mut result.info.ended;
    // What comes from attached hosts is other traffic, too.
    let flows = plan.flows.len() + usize::from(plan.outside.is_some());
    alone::fill_in(&mut result.tables, &plan.jobs, flows, |job| {
        // Ctrl-C ends what is left, too.
        if *ended == "interrupted" {
            return None;
        }
        let mut plan = Plan::of_job_alone(&plan.scenario, job).ok()?;
        plan.attached.clear();
        plan.scenario.live.capture.clear();
        let live = &plan.scenario.live;
        let clock = Clock::new(live.dilation, plan.lookahead);
        let mut network = Network::new(&plan, clock, live.links, live.workers as usize).ok()?;
        let run = run_goal(&plan, &mut network, None, plan.goal(), || (), &mut watch);
        if run.info.ended == "interrupted" {
            *ended = run.info.ended;
            return None;
        }
        Some(run.tables)
    });
}

/// Runs a scenario in which programs send messages, until they close it or `watch` returns true. `opened` is told when
/// they can.
pub(crate) fn run_open(
    scenario: &Scenario,
    opened: impl FnOnce(&Arc<Exchange>) -> Result<(), Problem>,
    mut watch: impl FnMut(&Exchange, Progress) -> bool,
) -> Result<RunResult, Problem> {
    let (plan, mut network) = prepare(scenario, true)?;
    let exchange = network.exchange(&plan, "process");
    opened(&exchange)?;
    let _end = End(&exchange);
    let probes = network.probes(&plan);
    let mut watch = |progress| watch(&exchange, progress);
    let mut result = match probes().is_empty() {
        true => run_watched(&plan, &mut network, Some(&exchange), || (), &mut watch),
        false => run_watched(&plan, &mut network, Some(&exchange), probes, &mut watch),
    };
    drop(network);
    let closed = exchange.is_closing();
    run_alone(&plan, &mut result, |progress| if closed { exchange.is_abandoned() } else { watch(progress) });
    Ok(result)
}

/// Whoever waits for something is told that the run is over, however it ends.
pub(crate) struct End<'a>(pub &'a Exchange);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end(self.0.why_over());
        self.0.finish();
    }
}

/// Works a scenario out. Where hosts are attached, or programs send, it lasts until somebody ends it, unless it says
/// for how long.
pub(crate) fn plan_of(scenario: &Scenario, programs: bool) -> Result<Plan, Problem> {
    if scenario.host.cpu.is_some() {
        let message = "a live run takes the time of this machine's own cores; delete it, or simulate the scenario";
        return Err(Problem::new("host.cpu", message));
    }
    let mut plan = Plan::new(scenario)?;
    if let Some(sums) = run::note_of_sums(&plan.flows, &plan.jobs) {
        let message = format!("a live run notes each message and step. {}", sums.message);
        return Err(Problem::new(sums.key, message));
    }
    if (plan.outside.is_some() || programs) && plan.scenario.measure.end.is_none() {
        plan.horizon = ENDLESS;
    }
    Ok(plan)
}

/// After how many flows a run is over. Where hosts are attached, or programs send, no flow is the last.
pub(crate) fn goal_of(plan: &Plan, programs: bool) -> u64 {
    if plan.outside.is_some() || programs { u64::MAX } else { plan.goal() }
}

/// Works a scenario out, and builds its network.
fn prepare(scenario: &Scenario, programs: bool) -> Result<(Plan, Network), Problem> {
    let plan = plan_of(scenario, programs)?;
    let live = &plan.scenario.live;
    let clock = Clock::new(live.dilation, plan.lookahead);
    let network = Network::new(&plan, clock, live.links, live.workers as usize)?;
    Ok((plan, network))
}

/// Runs a network under some kind of probe.
fn run_watched<P: Probe>(
    plan: &Plan,
    network: &mut Network,
    exchange: Option<&Arc<Exchange>>,
    probe: impl FnMut() -> P,
    watch: impl FnMut(Progress) -> bool,
) -> RunResult {
    run_goal(plan, network, exchange, goal_of(plan, exchange.is_some()), probe, watch)
}

/// The same, until so many flows have ended.
fn run_goal<P: Probe>(
    plan: &Plan,
    network: &mut Network,
    exchange: Option<&Arc<Exchange>>,
    goal: u64,
    probe: impl FnMut() -> P,
    mut watch: impl FnMut(Progress) -> bool,
) -> RunResult {
    let flows = plan.goal();
    let mut workers = network.workers(plan, goal, probe);
    network::open(&mut workers, exchange);
    let (clock, board) = workers[0].shared();
    let watch = |now, done| watch(Progress::by_flows(now, plan.horizon, done, flows));
    let mut outcome = network::live(&mut workers, clock, board, watch);
    if outcome.ended == Ended::Interrupted && exchange.is_some_and(|exchange| exchange.is_closing()) {
        outcome.ended = Ended::Closed;
    }
    // From here on no message is sent: tables are made of all flows that there are.
    exchange.into_iter().for_each(|exchange| exchange.end(exchange.why_over()));
    conclude(plan, clock, workers, Vec::new(), outcome)
}

/// What another process said when the run was over.
pub(crate) struct Other<P> {
    pub summary: Summary<P>,
    pub workers: Vec<(Noted, Said)>,
    /// For how long its network stood still.
    pub stood: Duration,
}

pub(crate) fn conclude<P: Probe>(
    plan: &Plan,
    clock: &Clock,
    workers: Vec<Worker<'_, P>>,
    others: Vec<Other<P>>,
    outcome: Outcome,
) -> RunResult {
    let (mut parts, mut noted): (Vec<Driver<Wires<'_>, P>>, Vec<_>) =
        workers.into_iter().map(Worker::take_apart).unzip();
    let mut said: Vec<Said> = parts.iter_mut().map(|part| Said::of(plan, part)).collect();
    let stood = others.iter().map(|other| other.stood).fold(clock.stood(), Duration::max);
    let processes = 1 + others.len();
    let (others, words): (Vec<_>, Vec<_>) = others.into_iter().map(|other| (other.summary, other.workers)).unzip();
    for (of_noted, of_said) in words.into_iter().flatten() {
        noted.push(of_noted);
        said.push(of_said);
    }
    let late = network::all_lateness(&noted);
    let hosts = parts.iter().flat_map(|part| &part.hosts);
    let records = hosts.flat_map(|slot| &slot.host.records).chain(others.iter().flat_map(|other| &other.records));
    let mut flows = Flows::gather(&plan.flows, Unlisted::default(), records);
    if plan.knows_lost_flows() && results::sockets(&parts).is_none_or(|finding| finding.ok) {
        let of_others = others.iter().flat_map(|other| other.lost_flows.iter().copied());
        flows.explain(parts.iter().flat_map(Driver::lost_flows).chain(of_others));
    }
    let whole = whole(plan, &parts, outcome.end);
    let micros = |share| late.quantile(share).us_f64();
    let sum = |of: fn(&Driver<Wires<'_>, P>) -> u64| parts.iter().map(of).sum::<u64>();
    let switches = parts.iter().flat_map(|part| &part.switches);
    let digest = driver::digest(switches, parts.iter().flat_map(|part| &part.hosts));
    let heard = Heard { parts: &parts, others: &others, said: &said, noted: &noted };
    let cut_off = said.iter().flat_map(|of| &of.cut_off).cloned();
    let notes = driver::notes(&whole, &parts, &others).into_iter().chain(cut_off);
    let movement = Movement::of(&whole, &parts, &others, &flows, results::ending(plan, outcome));
    let audit = results::audit(&whole, &heard, &flows, outcome, stood, &movement);
    let notes = notes.chain(movement.warnings);
    let info = RunInfo {
        version: env!("CARGO_PKG_VERSION"),
        seed: plan.scenario.seed,
        digest: match plan.outside {
            None if plan.flows.len() > plan.flows.planned() => "none: programs have sent messages".to_owned(),
            None => format!("{:016x}", others.iter().map(|other| other.digest).fold(digest, u64::wrapping_add)),
            Some(_) => "none: hosts are attached".to_owned(),
        },
        packet_hops: sum(|part| part.packet_hops) + others.iter().map(|other| other.packet_hops).sum::<u64>(),
        events: sum(|part| part.events) + others.iter().map(|other| other.events).sum::<u64>(),
        ended: outcome.ended.name(),
        end_ps: outcome.end.ps(),
        sample_interval_ps: whole.sample_interval.ps(),
        dilation: plan.scenario.live.dilation,
        workers: noted.len(),
        processes,
        machines: 1,
        clock_error_us: 0.0,
        lost_processes: Vec::new(),
        hosts: plan.fabric.hosts,
        flows: plan.flows.len() as u64,
        flows_completed: flows.completed(),
        data_rtt_ps: plan.sites[0].data_rtt.ps(),
        bdp_bytes: plan.sites[0].bdp_bytes(),
        content_bytes: said.iter().map(|of| of.inbox[0]).sum(),
        refused_datagrams: said.iter().flat_map(|of| of.refused).sum(),
        late_us_median: micros(0.5),
        late_us_p99: micros(0.99),
        late_us_max: late.max().us_f64(),
        lost_ps: stood.ps(),
        machine_s: outcome.machine.as_secs_f64(),
        away_s: noted.iter().map(|of| of.away.ps() as f64 * 1e-12).sum::<f64>() / noted.len() as f64,
        warnings: plan.warnings().iter().map(ToString::to_string).chain(notes).collect(),
        audit,
    };
    let tables = results::tables(&whole, &heard, flows);
    RunResult { tables, info, scenario_toml: plan.scenario.to_toml() }
}

/// All workers of a run that is over.
fn whole<'a, P: Probe>(plan: &'a Plan, parts: &'a [Driver<Wires<'_>, P>], end: Time) -> Whole<'a> {
    Whole {
        plan,
        end,
        sample_interval: parts[0].sample_interval(),
        switches: parts.iter().flat_map(|part| &part.switches).collect(),
        hosts: parts.iter().flat_map(|part| &part.hosts).collect(),
    }
}
