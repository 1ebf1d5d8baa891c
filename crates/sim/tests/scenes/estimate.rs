//! What a run will take, estimated before it, beside what it took: on the scenarios of `make bench`, shortened.
//!
//! Each runs in a process of its own, so that the kernel's peak of its memory is that scenario's.

use std::process::Command;

use run::{Estimate, PROGRAM_BYTES, Plan};
use scenario::Scenario;

macro_rules! bench {
    ($name:literal) => {
        include_str!(concat!("../../examples/bench/scenarios/", $name, ".toml"))
    };
}

/// Name, transport, flow control, what is set over the scenario.
type Case = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Workloads that end, on networks that lose little: not the incast, of which dcPIM's senders send 15 times the bytes.
const CASES: &[Case] = &[
    ("leaf-spine", "dcpim", "none", FEW),
    ("leaf-spine", "dctcp", "none", FEW),
    ("leaf-spine", "ndp", "none", FEW),
    ("leaf-spine", "homa", "none", FEW),
    ("leaf-spine", "phost", "none", FEW),
    ("leaf-spine", "pfabric", "none", FEW),
    ("leaf-spine", "hpcc", "none", FEW),
    ("leaf-spine", "harmony", "none", FEW),
    ("leaf-spine", "r2c2", "none", FEW),
    ("leaf-spine", "udp", "none", FEW),
    ("rpcs", "harmony", "none", &[("traffic.0.flows", "1000")]),
    ("rpcs", "fastpass", "none", &[("traffic.0.flows", "1000")]),
    ("rack", "r2c2", "none", &[("traffic.0.flows", "300")]),
    ("storm", "rdma", "none", &[("traffic.1.flows", "1000")]),
    ("storm", "rdma", "pfc", &[("traffic.1.flows", "1000")]),
    ("storm", "rdma", "pyrrha", &[("traffic.1.flows", "1000")]),
    ("poisson-1024", "dcpim", "none", &[("traffic.0.flows", "200")]),
    ("permutation-1024", "ndp", "none", SHORT),
    ("permutation-1024", "dcpim", "none", SHORT),
    ("permutation-1024", "dctcp", "none", SHORT),
    ("ring-1024", "dctcp", "none", &[("traffic.0.flows", "4096")]),
    ("all-to-all-1024", "dctcp", "none", &[("traffic.0.flows", "8192")]),
    ("million", "dcpim", "none", &[("traffic.0.flows", "50000")]),
    ("one-flow", "dcpim", "none", &[]),
];

const FEW: &[(&str, &str)] = &[("traffic.0.flows", "150")];
const SHORT: &[(&str, &str)] = &[("traffic.0.sizes", "{ constant = \"200KB\" }")];
/// In the child's environment: the number of the case that it runs.
const CASE: &str = "CLEARWAY_ESTIMATED_CASE";

fn read((name, transport, flow_control, sets): Case) -> Scenario {
    let toml = match name {
        "leaf-spine" => bench!("leaf-spine"),
        "rpcs" => bench!("rpcs"),
        "rack" => bench!("rack"),
        "storm" => bench!("storm"),
        "poisson-1024" => bench!("poisson-1024"),
        "permutation-1024" => bench!("permutation-1024"),
        "ring-1024" => bench!("ring-1024"),
        "all-to-all-1024" => bench!("all-to-all-1024"),
        "incast-1024" => bench!("incast-1024"),
        "million" => bench!("million"),
        "one-flow" => bench!("one-flow"),
        _ => panic!("no scenario {name}"),
    };
    let text = format!("transport = \"{transport}\"\nflow_control = \"{flow_control}\"\n{toml}");
    let sets: Vec<_> = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    scenario::read(&text, name, &sets).expect("a sound scenario")
}

/// In the child: prints what a case was estimated to take, and what it took.
#[test]
#[ignore = "the other test runs it in processes of their own"]
fn one_case() {
    let Ok(number) = std::env::var(CASE) else { return };
    // What a run takes of this program's own pages, a debug build's, without a network worth the name.
    let nothing = "transport = 'dcpim'\nfabric.star.hosts = 2\n[[traffic]]\nsizes.constant = '1KB'\n\
                   arrivals = 'all_at_once'\nflows = 1";
    clearway_sim::run(&crate::scenario(nothing), 1, |_| false).expect("a sound scenario");
    let program = peak_bytes();
    let plan = Plan::new(&read(CASES[number.parse::<usize>().expect("a number")])).expect("a sound scenario");
    let Estimate { packet_hops, end, memory } = Estimate::of(&plan);
    let info = clearway_sim::run_plan(&plan, 1, |_| false).info;
    // This program is larger than the one whose memory the estimate has.
    let peak = peak_bytes() - program + PROGRAM_BYTES;
    println!("\nfound {packet_hops} {} {} {} {} {peak}", info.packet_hops, end.ps(), info.end_ps, memory.bytes());
}

/// The most memory that this process has had. The kernel's own `getrusage` counts what the process was before it became
/// this program, too: a copy of its parent.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says it here");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of it");
    1024 * peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn estimates_are_near_what_runs_take() {
    let mut wrong = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let child = Command::new(std::env::current_exe().expect("a program knows where it is"))
            .args(["--exact", "estimate::one_case", "--ignored", "--nocapture"])
            .env(CASE, number.to_string())
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        let line = said.lines().find_map(|line| line.strip_prefix("found "));
        let line = line.unwrap_or_else(|| panic!("{case:?}: {said}{}", String::from_utf8_lossy(&child.stderr)));
        let numbers: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [hops, end, memory] = [0, 2, 4].map(|at| numbers[at] / numbers[at + 1]);
        let said = format!(
            "{:<17} {:<9} {:<7} hops x{hops:.3}, end x{end:.2}, memory x{memory:.2} of {:.0} MB",
            case.0,
            case.1,
            case.2,
            numbers[5] / 1e6
        );
        println!("{said}");
        if !(0.75..=1.25).contains(&hops) || !(0.5..=2.0).contains(&memory) {
            wrong.push(said);
        }
    }
    assert!(wrong.is_empty(), "off by more than 25% in hops or a factor of 2 in memory:\n{}", wrong.join("\n"));
}

#[test]
fn no_host_carries_more_than_its_links_until_the_end() {
    let case: Case = ("incast-1024", "dctcp", "none", &[("measure.end", "1ms")]);
    let plan = Plan::new(&read(case)).expect("a sound scenario");
    let estimate = Estimate::of(&plan);
    assert_eq!(estimate.end, units::Time::from_us(1000));
    // 1 ms at 100 Gbps into host 0, over six links at most, and as many ACKs.
    let most = 12_500_000.0 / 1460.0 * 6.0 * 2.0;
    let hops = estimate.packet_hops as f64;
    assert!((0.8 * most..=most * 1.01).contains(&hops), "{hops} of {most}");
}

#[test]
fn what_does_not_fit_is_refused_with_a_setting_that_does() {
    // Samples of 50 ms of simulated time are most of it.
    let case: Case = ("incast-1024", "ndp", "none", &[]);
    let plan = Plan::new(&read(case)).expect("a sound scenario");
    let estimate = Estimate::of(&plan);
    assert!(estimate.check_memory(&plan, estimate.memory.bytes()).is_ok());
    let most = estimate.memory.bytes() - estimate.memory.samples / 2;
    let refused = estimate.check_memory(&plan, most).expect_err("it does not fit");
    assert_eq!(refused.key, "measure.rows_max");
    let advised = refused.message.split("rows_max = ").nth(1).and_then(|rest| rest.split(' ').next());
    let mut scenario = read(case);
    scenario.measure.rows_max = advised.expect("a number of rows").parse().expect("a number");
    let plan = Plan::new(&scenario).expect("a sound scenario");
    assert!(Estimate::of(&plan).check_memory(&plan, most).is_ok(), "{}", refused.message);
}

#[test]
fn samples_of_a_run_that_waits_take_no_more_than_rows_max() {
    let case: Case = ("one-flow", "dcpim", "none", &[("traffic.0.start", "\"1000s\"")]);
    let plan = Plan::new(&read(case)).expect("a sound scenario");
    let samples = Estimate::of(&plan).memory.samples;
    assert!((200_000_000..400_000_000).contains(&samples), "{samples} for 2^21 rows");
}

#[test]
fn flows_without_an_end_are_as_many_as_they_are() {
    let text = "transport = 'dctcp'\nfabric.star.hosts = 3\nmeasure.end = '1ms'\n[[traffic]]\n\
                sizes.constant = '1000TB'\narrivals = 'all_at_once'\nflows = 2";
    let plan = Plan::new(&crate::scenario(text)).expect("a sound scenario");
    let flows = Estimate::of(&plan).memory.flows;
    assert!(flows < 10_000, "{flows} bytes for two flows");
}
