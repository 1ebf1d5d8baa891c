use std::net::SocketAddr;

use run::{Finding, Flows, Plan, Progress, Table, compatibility};
use scenario::Scenario;
use serde::Serialize;
use units::Problem;

use crate::clock::{Clock, Punctual};
use crate::datagrams::Datagrams;
use crate::network::{Ended, Network};
use crate::results;
use crate::sockets::Sockets;

/// What a live run gives: as the simulator's, but for what only one of them has.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The tables, in a fixed order: `flows`, `links`, `counters`, `lateness`, `refused`.
    pub tables: Vec<Table>,
    /// Its summary.
    pub info: RunInfo,
    /// The scenario as it was run, every default filled in.
    pub scenario_toml: String,
}

/// The summary of a live run.
#[derive(Clone, Debug, Serialize)]
pub struct RunInfo {
    /// Clearway's version.
    pub version: &'static str,
    /// The scenario's seed.
    pub seed: u64,
    /// Packets that passed a link, data and control, each link once.
    pub packet_hops: u64,
    /// Events: arrivals, transmissions, deadlines.
    pub events: u64,
    /// Why it ended: "goal" (all flows ended), "horizon", "quiet" (nothing left to happen), "interrupted".
    pub ended: &'static str,
    /// Time from beginning to end by the real clock, in picoseconds.
    pub end_ps: u64,
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
    /// Datagrams that were no frame of this run and were dropped.
    pub refused_datagrams: u64,
    /// How late half of all events were at most, in microseconds.
    pub late_us_median: f64,
    /// How late 99% of them were at most.
    pub late_us_p99: f64,
    /// How late the latest was.
    pub late_us_max: f64,
    /// Time that was lost because the machine held something up for longer than [`CREDIT`](crate::CREDIT), in
    /// picoseconds.
    pub lost_ps: u64,
    /// What the audit found.
    pub audit: Vec<Finding>,
}

/// Runs a scenario on the real clock. `watch` is called about twenty times a second, and the time that it takes is
/// lateness; when it returns true the run stops there and the results so far are given.
pub fn run(scenario: &Scenario, watch: impl FnMut(Progress) -> bool) -> Result<RunResult, Problem> {
    run_at(scenario, watch, |_| {})
}

/// The same; `bound` is told, before anything is sent, at which addresses the nodes' sockets are: hosts, then switches.
pub fn run_at(
    scenario: &Scenario,
    mut watch: impl FnMut(Progress) -> bool,
    bound: impl FnOnce(&[SocketAddr]),
) -> Result<RunResult, Problem> {
    compatibility::check_live(scenario)?;
    let plan = Plan::new(scenario)?;
    let nodes = plan.fabric.nodes();
    let sockets = Sockets::bind(nodes).map_err(|error| {
        Problem::new(
            "fabric",
            format!("each of its {nodes} nodes needs a UDP socket on the loopback interface: {error}"),
        )
    })?;
    bound(sockets.addresses());
    let mut network = Network::new(&plan, sockets, Clock::start());
    let punctual = Punctual::new();
    let flows = plan.flows.len() as u64;
    let watch = |now, flows_done| watch(Progress::by_flows(now, plan.horizon, flows_done, flows));
    let (ended, end) = network.run(flows, plan.horizon, watch);
    drop(punctual);
    Datagrams::settle(&mut network.driver.links);

    let flows = Flows::gather(plan.flows.len(), network.driver.hosts.iter().map(|slot| &slot.host));
    let late = network.all_lateness();
    let carrier = &network.driver.links.carrier;
    let micros = |share| late.quantile(share).us_f64();
    let info = RunInfo {
        version: env!("CARGO_PKG_VERSION"),
        seed: plan.scenario.seed,
        packet_hops: network.driver.packet_hops,
        events: network.driver.events,
        ended: match ended {
            Ended::Goal => "goal",
            Ended::Horizon => "horizon",
            Ended::Quiet => "quiet",
            Ended::Interrupted => "interrupted",
        },
        end_ps: end.ps(),
        hosts: plan.fabric.hosts,
        flows: plan.flows.len() as u64,
        flows_completed: flows.completed(),
        data_rtt_ps: plan.sites[0].data_rtt.ps(),
        bdp_bytes: plan.sites[0].bdp_bytes(),
        content_bytes: carrier.inbox.right_bytes,
        refused_datagrams: carrier.refused.iter().sum(),
        late_us_median: micros(0.5),
        late_us_p99: micros(0.99),
        late_us_max: late.max().us_f64(),
        lost_ps: network.slips.1.ps(),
        audit: results::audit(&plan, &network, &flows, ended, end),
    };
    let tables = results::tables(&plan, &network, flows, end);
    Ok(RunResult { tables, info, scenario_toml: plan.scenario.to_toml() })
}
