//! How fast the simulator is and how much memory it takes: `cargo run --release -p clearway-sim --example bench`.
//!
//! Each line is a scenario in a process of its own, so that peak memory is that scenario's and no other's. Speed is in
//! packet-hops, a packet (data or control) over one link, per second of CPU time (user and system, all threads) from
//! the scenario to its tables. Everything runs twice and the better time counts, since a machine may be shared.
//!
//! R2C2's rate computation comes last; with the argument `rates`, alone.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod rates;

use std::process::Command;
use std::time::Instant;

use catalogue::{LinkControl, Transport};
use nix::sys::resource::{UsageWho, getrusage};

/// dcPIM section 4.1's default: web search at load 0.6 on 144 hosts.
const LEAF_SPINE: &str = r#"
    fabric.leaf_spine = {}
    [[traffic]]
    sizes = "websearch"
    arrivals = { poisson = { load = 0.6 } }
    flows = 2000
"#;

/// The same on Harmony's 1,024 hosts.
const FAT_TREE: &str = r#"
    fabric.fat_tree = { k = 16 }
    [[traffic]]
    sizes = "websearch"
    arrivals = { poisson = { load = 0.6 } }
    flows = 2000
"#;

const ONE_FLOW: &str = r#"
    fabric.fat_tree = { k = 16 }
    [[traffic]]
    sizes = { constant = "1460B" }
    arrivals = "all_at_once"
    flows = 1
"#;

const MILLION: &str = r#"
    fabric.leaf_spine = {}
    [[traffic]]
    sizes = { constant = "1460B" }
    arrivals = { poisson = { load = 0.6 } }
    flows = 1000000
"#;

/// An incast among other traffic, for flow controls (Pyrrha section 6, shorter).
const STORM: &str = r#"
    fabric.leaf_spine = { racks = 10, hosts_per_rack = 16, spines = 4, propagation = "600ns", switch_delay = "0s" }
    switch.buffer = { shared = { bytes = "100MB" } }
    [[traffic]]
    name = "incast"
    sizes = { uniform = { min = "43800B", max = "58400B" } }
    arrivals = "all_at_once"
    pattern = { incast = { degree = 144, flows_per_sender = 5 } }
    receivers = "0"
    flows = 720
    [[traffic]]
    name = "other"
    sizes = "webserver"
    arrivals = { poisson = { load = 0.8 } }
    avoid = "0"
    flows = 10000
"#;

/// Harmony section 5's default, for transports that admit messages.
const RPCS: &str = r#"
    fabric.leaf_spine = {}
    switch.buffer = { shared = { bytes = "32MB" } }
    [[traffic]]
    sizes = { constant = "128KB" }
    arrivals = { poisson = { load = 0.5 } }
    admissible = "63us"
    flows = 15000
"#;

/// R2C2 section 5.2's default, on which every flow is broadcast twice to 512 nodes.
const RACK: &str = r#"
    fabric.torus = {}
    switch.buffer = { per_port = { bytes = "10MB" } }
    [[traffic]]
    sizes.pareto = { shape = 1.05, mean = "100KB" }
    arrivals.poisson.every = "1us"
    flows = 5000
"#;

const SCENARIOS: [(&str, &str); 7] = [
    ("rack", RACK),
    ("leaf-spine", LEAF_SPINE),
    ("fat-tree", FAT_TREE),
    ("one flow", ONE_FLOW),
    ("million", MILLION),
    ("storm", STORM),
    ("rpcs", RPCS),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [scenario, transport, flow_control, threads] => {
            measure(scenario, transport, flow_control, threads.parse().expect("a number of threads"));
        }
        [only] if only == "rates" => rates::bench(),
        _ => bench(),
    }
}

/// In the child: runs one scenario and prints a line of [`Figures`].
fn measure(scenario: &str, transport: &str, flow_control: &str, threads: usize) {
    let (_, traffic) = SCENARIOS.iter().find(|(name, _)| *name == scenario).expect("a scenario of this file");
    let text = format!("transport = \"{transport}\"\nflow_control = \"{flow_control}\"\n{traffic}");
    let scenario = scenario::read(&text, "bench", &[]).expect("a sound scenario");
    let (cpu_before, began) = (cpu_seconds(), Instant::now());
    let result = clearway_sim::run(&scenario, threads, |_| false).expect("a sound scenario");
    let (wall, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu_before);
    let sound = result.info.audit.iter().all(|finding| finding.ok);
    // Linux counts the peak in KiB.
    let peak_bytes = getrusage(UsageWho::RUSAGE_SELF).expect("every process has its usage").max_rss() * 1024;
    let info = result.info;
    println!("{} {} {cpu} {wall} {peak_bytes} {} {sound}", info.packet_hops, info.events, info.flows_completed);
}

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("every process has its usage");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// What a child found out.
#[derive(Clone, Copy)]
struct Figures {
    hops: f64,
    events: f64,
    cpu: f64,
    wall: f64,
    peak_bytes: f64,
}

/// Runs a scenario in a child process, `times` times, and gives the best.
fn child(scenario: &str, transport: &str, flow_control: &str, threads: usize, times: usize) -> Figures {
    let once = |_| {
        let this = std::env::current_exe().expect("a program knows where it is");
        let output = Command::new(this)
            .args([scenario, transport, flow_control, &threads.to_string()])
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = line.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse::<f64>().ok()).expect("a number");
        let (hops, events, cpu, wall, peak_bytes, _) = (number(), number(), number(), number(), number(), number());
        assert_eq!(words.next(), Some("true"), "the audit of {scenario} with {transport}");
        Figures { hops, events, cpu, wall, peak_bytes }
    };
    (0..times).map(once).min_by(|a, b| a.wall.total_cmp(&b.wall)).expect("at least once")
}

fn bench() {
    println!(
        "{:<40} {:>7} {:>10} {:>8} {:>8} {:>9} {:>9} {:>8}",
        "", "threads", "hops", "cpu", "wall", "hops/", "events/", "peak"
    );
    println!("{:<40} {:>7} {:>10} {:>8} {:>8} {:>9} {:>9} {:>8}", "", "", "", "s", "s", "cpu s", "hop", "MB");
    for transport in Transport::NAMES {
        line(&format!("144 hosts, web search 0.6, {transport}"), 1, child("leaf-spine", transport, "none", 1, 2));
    }
    for transport in ["harmony", "fastpass", "dcpim"] {
        line(&format!("144 hosts, 128 KB RPCs 0.5, {transport}"), 1, child("rpcs", transport, "none", 1, 2));
    }
    for transport in ["r2c2", "newreno"] {
        line(&format!("512 nodes of a rack, flows each us, {transport}"), 1, child("rack", transport, "none", 1, 2));
    }
    for flow_control in LinkControl::NAMES {
        line(
            &format!("160 hosts, an incast among others, {flow_control}"),
            1,
            child("storm", "rdma", flow_control, 1, 2),
        );
    }
    let default = if Transport::NAMES.contains(&"dcpim") { "dcpim" } else { Transport::NAMES[0] };
    let [one, two] = [1, 2].map(|threads| {
        let figures = child("fat-tree", default, "none", threads, 2);
        line(&format!("1,024 hosts, web search 0.6, {default}"), threads, figures);
        figures
    });
    let million = child("million", default, "none", 1, 1);
    line(&format!("144 hosts, a million small flows, {default}"), 1, million);
    let idle = child("one flow", default, "none", 1, 1);
    line(&format!("1,024 hosts, one flow, {default}"), 1, idle);
    println!();
    println!("Two threads on 1,024 hosts: {:.2} times as fast by the wall clock.", one.wall / two.wall);
    println!(
        "Memory: {:.0} KB a host of an idle fat-tree with its switches, {:.0} B a flow.",
        idle.peak_bytes / 1024.0 / 1e3,
        (million.peak_bytes - idle.peak_bytes).max(0.0) / 1e6
    );
    println!();
    rates::bench();
}

fn line(name: &str, threads: usize, figures: Figures) {
    let Figures { hops, events, cpu, wall, peak_bytes } = figures;
    let (million, per_cpu) = (hops / 1e6, hops / cpu / 1e6);
    println!(
        "{name:<40} {threads:>7} {million:>9.1}M {cpu:>8.2} {wall:>8.2} {per_cpu:>8.2}M {:>9.2} {:>8.0}",
        events / hops,
        peak_bytes / 1e6
    );
}
