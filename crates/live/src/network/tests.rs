//! One scene through all carriers: in the simulator's memory, and live by a clock that jumps to what is due next: in
//! the memory of one worker, over the rings of two, and in datagrams. Nothing is late then, so that the history of
//! every node is the same to the last packet, and the tables are the same to the last number.

use catalogue::{LinkControl, Transport};
use driver::Probes;
use run::{Plan, Table};
use units::Time;

use super::*;
use crate::run::conclude;

/// What a run gave, in words that can be compared.
#[derive(Debug, PartialEq)]
struct Outcome {
    digest: String,
    packet_hops: u64,
    completed: u64,
    /// All that both have, as they are printed: a slowdown that there is not equals no other.
    tables: Vec<String>,
}

/// Columns that a simulation has not.
const OWN: [&str; 4] = ["late_ps", "late_mean_ps", "late_max_ps", "behind_ps"];

fn print(tables: &[Table]) -> Vec<String> {
    let table = |name: &str| tables.iter().find(|table| table.name == name).expect(name);
    let columns = |name: &str| {
        let columns = table(name).columns.iter().filter(|column| !OWN.contains(&column.name));
        columns.map(|column| format!("{name}.{}: {:?}", column.name, column.data)).collect::<Vec<_>>()
    };
    let alike = tables.iter().map(|table| table.name).filter(|name| !["lateness", "refused"].contains(name));
    alike.flat_map(columns).collect()
}

/// The run in memory, and when it ended.
fn simulated(plan: &Plan) -> (Outcome, Time) {
    let result = sim::run(&plan.scenario, 1, |_| false).expect("it can be simulated");
    for finding in &result.info.audit {
        assert!(finding.ok, "{}: {}\n{}", finding.name, finding.detail, result.scenario_toml);
    }
    let info = result.info;
    let (digest, packet_hops, completed) = (info.digest, info.packet_hops, info.flows_completed);
    (Outcome { digest, packet_hops, completed, tables: print(&result.tables) }, Time::from_ps(info.end_ps))
}

/// The live run, up to when the other ended.
fn lived(plan: &Plan, end: Time, links: LiveLinks, workers: usize) -> Outcome {
    let mut plan = plan_of(&plan.scenario);
    plan.horizon = end;
    let mut network = Network::new(&plan, Clock::jumping(), links, workers).expect("sockets");
    let mut workers = network.workers(&plan, u64::MAX, || Probes::new(&plan));
    let (clock, board) = workers[0].shared();
    let outcome = live(&mut workers, clock, board, |_, _| false);
    let result = conclude(&plan, clock, workers, Vec::new(), outcome);
    for finding in &result.info.audit {
        assert!(finding.ok || finding.name == "every flow ended", "{}: {}", finding.name, finding.detail);
    }
    let info = result.info;
    assert_eq!((info.refused_datagrams, info.lost_ps), (0, 0));
    let (digest, packet_hops, completed) = (info.digest, info.packet_hops, info.flows_completed);
    Outcome { digest, packet_hops, completed, tables: print(&result.tables) }
}

fn plan_of(scenario: &scenario::Scenario) -> Plan {
    Plan::new(scenario).expect("it has been planned")
}

fn plan(text: &str) -> Result<Plan, units::Problem> {
    Plan::new(&scenario::read(text, "test", &[]).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// Runs a scene in all ways. How many flows completed, and how many packets crossed a link; none if it can't be
/// planned.
fn compare(text: &str) -> Option<(u64, u64)> {
    let plan = plan(text).ok()?;
    let (there, end) = simulated(&plan);
    let racks = if text.contains("racks = 2") { 2 } else { 1 };
    assert_eq!(Cut::new(&plan, 2).parts(), racks, "the second worker has something to do where it can");
    for (links, workers) in [(LiveLinks::Memory, 1), (LiveLinks::Memory, 2), (LiveLinks::Datagrams, 1)] {
        let here = lived(&plan, end, links, workers);
        for (here, there) in here.tables.iter().zip(&there.tables) {
            assert_eq!(here, there, "{links:?}, {workers} workers\n{text}");
        }
        assert_eq!(here, there, "{links:?}, {workers} workers\n{text}");
    }
    Some((there.completed, there.packet_hops))
}

/// Two racks of three hosts: an incast that fills a switch, and others across the racks.
fn scene(transport: &str, flow_control: &str, more: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        flow_control = "{flow_control}"
        {more}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 3, spines = 2 }}
        [[traffic]]
        name = "incast"
        sizes.constant = "40KB"
        arrivals = "all_at_once"
        senders = "1-5"
        receivers = "0"
        flows = 5
        [[traffic]]
        name = "others"
        sizes.uniform = {{ min = "1B", max = "20KB" }}
        arrivals.poisson.load = 0.5
        flows = 12
        "#
    )
}

#[test]
fn every_transport_under_every_link_control_is_the_same_over_every_carrier() {
    let mut planned = vec![0; LinkControl::NAMES.len()];
    for transport in Transport::NAMES {
        for (count, flow_control) in planned.iter_mut().zip(LinkControl::NAMES) {
            // What guarantees something, or brings queues of its own, is refused beside a link control.
            let more = "switch.buffer.shared.bytes = '1MB'\nmeasure.drain = '2ms'";
            let Some((completed, packet_hops)) = compare(&scene(transport, flow_control, more)) else {
                assert_ne!(*flow_control, "none", "{transport} is refused alone");
                continue;
            };
            *count += 1;
            assert!(packet_hops > 500, "{transport} over {flow_control}: {packet_hops} hops");
            assert!(completed >= 10, "{transport} over {flow_control}: {completed} flows");
        }
    }
    assert_eq!(planned[0], Transport::NAMES.len());
    assert!(planned[1..].iter().all(|&count| count * 2 > Transport::NAMES.len()), "{planned:?}");
}

#[test]
fn hosts_with_several_links_and_heads_that_go_ahead_are_the_same_too() {
    for (transport, flow_control) in [("dctcp", "none"), ("rdma", "pfc"), ("homa", "none"), ("dcpim", "pyrrha")] {
        let more = "switch = { cut_through = true, buffer = { shared = { bytes = '1MB' } } }\nmeasure.drain = '2ms'";
        let homes = scene(transport, flow_control, more).replace("spines = 2", "spines = 2, homes = 2");
        assert!(compare(&homes).is_some(), "{transport} over {flow_control}");
    }
}

/// The example's beginning: what a live run's completion times are when the machine is never late.
#[test]
fn but_for_lateness_completion_times_are_the_simulators() {
    let text = include_str!("../../../../examples/live.toml").replace("drain = \"2500us\"", "end = \"125us\"");
    for name in Transport::NAMES {
        let (completed, _) = compare(&text.replace("\"dcpim\"", &format!("\"{name}\""))).expect("it can be planned");
        assert!(completed > 20, "{name}: {completed}");
    }
}

/// Losses, and what limits and marks: whatever a scenario sets that the machine's own links can have.
#[test]
fn what_is_lost_here_is_lost_there() {
    for transport in ["udp", "dctcp", "ndp", "pfabric", "homa"] {
        let more = "switch.buffer.per_port.bytes = '20KB'\nmeasure.drain = '2ms'";
        let text = scene(transport, "none", more);
        assert!(compare(&text).is_some(), "{text}");
    }
}
