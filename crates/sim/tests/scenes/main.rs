//! Scenes: a scenario as a person writes it, run as a person runs it, and what a paper or arithmetic says must come
//! out.

mod adversary;
mod ahead;
mod ahead_transports;
mod aq;
mod aq_beyond;
mod aq_precision;
mod arrivals;
mod bit_errors;
mod cbfc;
mod congestion;
mod convergence;
mod cpu;
mod cuts;
mod degraded;
mod digest;
mod estimate;
mod events;
mod expiry;
mod fabrics;
mod failures;
mod falcon;
mod fastpass;
mod faults;
mod flaps;
mod flow_control;
mod groups;
mod guarantee;
mod harmony;
mod homa;
mod homes;
mod ideal;
mod intake;
mod interrupt;
mod islands;
mod jobs;
mod limiters;
mod llr;
mod losses;
mod lossless;
mod mmu;
mod models;
mod ndp;
mod packets;
mod paths;
mod pfabric;
mod phost;
mod plb;
mod progress;
mod pyrrha;
mod r2c2;
mod rdma;
mod recovery;
mod reference;
mod resubmit;
mod roce;
mod samples;
mod slow_links;
mod spraying;
mod states;
mod stuck;
mod tcp;
mod turns;
mod uet;

use clearway_sim::{Execution, RunResult, run};
use run::{Data, Table};
use scenario::{Scenario, read};

/// Reads a scenario that must be right. Times are exact where it says nothing else.
fn scenario(toml: &str) -> Scenario {
    let timing = if toml.contains("timing =") { "" } else { "timing = 'ideal'\n" };
    read(&format!("{timing}{toml}"), "scene.toml", &[]).unwrap_or_else(|error| panic!("{error}\n{toml}"))
}

/// Runs a scenario on so many threads or parts, and checks what holds after every run.
fn run_on(execution: impl Into<Execution>, toml: &str) -> RunResult {
    let result = run(&scenario(toml), execution, |_| false).unwrap_or_else(|problem| panic!("{problem}\n{toml}"));
    check(&result);
    result
}

fn run_alone(toml: &str) -> RunResult {
    run_on(1, toml)
}

/// The same on one thread and on two, as a whole and cut into as many parts as it may be.
fn run_both(toml: &str) -> RunResult {
    let cut = |threads, parts| Execution { threads, parts: Some(parts) };
    let (alone, together) = (run_on(cut(1, 1), toml), run_on(cut(2, usize::MAX), toml));
    assert_eq!(alone.info.digest, together.info.digest, "{toml}");
    assert!(format!("{:?}", alone.tables) == format!("{:?}", together.tables), "{toml}");
    alone
}

/// What the transports of a run have counted by this name, together.
fn counter(result: &RunResult, name: &str) -> u64 {
    let counters = table(result, "counters");
    let rows = names(counters, "counter").into_iter().zip(column(counters, "value"));
    rows.filter(|row| row.0 == name).map(|row| *row.1).sum()
}

/// The sum of a column of the table `links`.
fn of_links(result: &RunResult, what: &str) -> u64 {
    column(table(result, "links"), what).iter().sum()
}

/// A message over a transport, worked out.
fn plan_of(transport: &str) -> run::Plan {
    let plan = run::Plan::new(&scenario(&format!(
        "transport = '{transport}'\n[[traffic]]\nsizes.constant = '1KB'\narrivals = 'all_at_once'\nflows = 1"
    )));
    plan.expect("it can be planned")
}

/// Whether a transport has the first classes for itself and guarantees what goes there, which rules out settings that
/// others take.
fn reserves(transport: &str) -> bool {
    plan_of(transport).reserved.is_some()
}

/// Whether a transport brings queues of its own to switches, which rules out settings of theirs that others take.
fn brings_queues(transport: &str) -> bool {
    plan_of(transport).queueing.is_some()
}

/// Whether it chooses paths by flow labels, which only a hash reads.
fn labels_paths(transport: &str) -> bool {
    plan_of(transport).requirements[0].flow_labels
}

/// The audit is clean, but that flows in a deadlock never end; no flow is faster than alone, and where its time went is
/// its whole time.
fn check(result: &RunResult) {
    let circle = |finding: &&run::Finding| finding.name == "no deadlock" && finding.detail.contains(" to switch");
    let deadlocked = result.info.audit.iter().any(|finding| circle(&finding));
    for finding in &result.info.audit {
        let ok = finding.ok || deadlocked && finding.name == "every flow ended";
        assert!(ok, "{}: {}\n{}", finding.name, finding.detail, result.scenario_toml);
    }
    let flows = table(result, "flows");
    let parts =
        ["wait_ps", "queued_up_ps", "queued_down_ps", "queued_last_ps", "serialised_ps", "propagation_ps", "return_ps"];
    let parts = parts.map(|part| column(flows, part));
    let Data::F64(slowdown) = &flows.column("slowdown").unwrap().data else { panic!("a ratio") };
    for (flow, (&fct, slowdown)) in column(flows, "fct_ps").iter().zip(slowdown).enumerate() {
        if fct == NONE {
            assert!(slowdown.is_nan());
            continue;
        }
        assert_eq!(parts.iter().map(|part| part[flow]).sum::<u64>(), fct, "flow {flow}");
        // In a grid, the ways around a failure may be wider together than the shortest ones were; R2C2 takes others by
        // itself.
        let detours = ["[[failure]]", "\"vlb\"", "\"wlb\""].iter().any(|cause| result.scenario_toml.contains(cause));
        // Where rounds that are only alike meet, a message may end a little early.
        let estimated = result.info.digest.starts_with('~');
        assert!(
            detours || estimated || *slowdown >= 1.0,
            "flow {flow} has slowdown {slowdown}\n{}",
            result.scenario_toml
        );
    }
}

/// In place of a number that there is not.
const NONE: u64 = u64::MAX;

fn table<'a>(result: &'a RunResult, name: &str) -> &'a Table {
    result.tables.iter().find(|table| table.name == name).unwrap_or_else(|| panic!("no table {name}"))
}

/// A column of counts or times.
fn column<'a>(table: &'a Table, name: &str) -> &'a [u64] {
    match &table.column(name).unwrap_or_else(|| panic!("no column {name}")).data {
        Data::U64(values) | Data::OptU64(values) => values,
        _ => panic!("{name} is no count"),
    }
}

/// A column of names.
fn names<'a>(table: &'a Table, name: &str) -> Vec<&'a str> {
    match &table.column(name).unwrap_or_else(|| panic!("no column {name}")).data {
        Data::Names { index, names } => index.iter().map(|&index| names[index as usize].as_str()).collect(),
        _ => panic!("{name} has no names"),
    }
}

/// A column of `flows`.
fn of_flows<'a>(result: &'a RunResult, name: &str) -> &'a [u64] {
    column(table(result, "flows"), name)
}

/// The value of one link, by the names of its ends.
fn of_link(result: &RunResult, from: &str, to: &str, name: &str) -> u64 {
    let links = table(result, "links");
    let row = names(links, "from_node").iter().zip(names(links, "to_node")).position(|ends| ends == (&from, to));
    column(links, name)[row.unwrap_or_else(|| panic!("no link from {from} to {to}"))]
}
