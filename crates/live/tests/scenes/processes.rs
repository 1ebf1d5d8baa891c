//! Runs in several processes: each of the others is this very program, told to run the test `part` alone.

use std::os::fd::AsFd;
use std::process::Command;

use clearway_live::{RunResult, run_processes, take_part};

use crate::run::{INCAST, NOISY, finding, read, sound};

const PART: &str = "CLEARWAY_TEST_PART";

pub(crate) fn command() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this is a program"));
    command.args(["--exact", "processes::part", "--ignored"]).env(PART, "1");
    command
}

#[test]
#[ignore = "what the other processes of tests run"]
fn part() {
    if std::env::var_os(PART).is_some() {
        let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("it was given one");
        take_part(socket).expect("the first process is there");
    }
}

/// Without the tables that say how late the machine was.
pub(crate) fn alike(result: &RunResult, simulated: &sim::RunResult) {
    assert_eq!(result.info.digest, simulated.info.digest, "{:#?}", result.info);
    assert_eq!(result.info.packet_hops, simulated.info.packet_hops);
    for there in &simulated.tables {
        let here = result.tables.iter().find(|table| table.name == there.name);
        match here {
            Some(here) if !["flows", "links"].contains(&there.name) => {
                assert_eq!(format!("{here:?}"), format!("{there:?}"));
            }
            Some(here) => {
                let sent = |tables: &run::Table| format!("{:?}", tables.column("sent_packets"));
                assert_eq!(sent(here), sent(there));
            }
            None => panic!("{} is missing", there.name),
        }
    }
}

#[test]
fn the_history_is_the_simulators_in_any_number_of_processes() {
    for (processes, workers, wait) in [(1, "1", "sleep"), (2, "1", "poll"), (3, "1", "sleep"), (2, "2", "sleep")] {
        let more = [("live.wait", wait), ("live.workers", workers), ("measure.end", "20ms")];
        let scenario = read(INCAST, &more);
        let result = run_processes(&scenario, processes, command, |_| false).expect("it can be run");
        sound(&result);
        assert_eq!((result.info.processes, result.info.lost_processes.len()), (processes, 0));
        assert_eq!(result.info.ended, "horizon");
        alike(&result, &sim::run(&scenario, 1, |_| false).expect("it can be simulated"));
    }
}

/// Packets that links send again go between processes with their numbers.
#[test]
fn links_repeat_between_processes() {
    let scenario = read(NOISY, &[("live.wait", "sleep")]);
    let result = run_processes(&scenario, 2, command, |_| false).expect("it can be run");
    sound(&result);
    alike(&result, &sim::run(&scenario, 1, |_| false).expect("it can be simulated"));
}

/// What each process has seen of packets, ports, flows, entities, AQs, congestion and guarantees becomes one table.
#[test]
fn no_table_is_missing_in_several_processes() {
    let records = [
        ("measure.packets", "{}"),
        ("measure.flows", "{}"),
        ("measure.ports", "[\"leaf0:0\", \"host0-leaf0\"]"),
        ("measure.events", "[\"drops\", \"link_control\", \"marks\", \"matching\", \"control\"]"),
    ];
    let aq = "sharing.aq = {}\nentity = [\
              { name = 'a', each = 'host', hosts = '0-7', request = [{ share.weight = 1, position = 'ingress' }] }, \
              { name = 'b', each = 'host', hosts = '8-15', request = [{ share.weight = 3, position = 'egress' }] }]\n";
    let both = |more: &[(&'static str, &'static str)]| [more, &records].concat();
    let harmony = [("flow_control", "none"), ("transport", "harmony"), ("switch.buffer.shared.bytes", "64MB")];
    let scenes = [
        (INCAST.to_owned(), both(&[("flow_control", "pyrrha"), ("transport", "udp")])),
        (INCAST.to_owned(), both(&[("flow_control", "none"), ("transport", "dcpim")])),
        (format!("{aq}{INCAST}"), Vec::new()),
        (INCAST.to_owned(), harmony.to_vec()),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for (text, mut sets) in scenes {
        sets.extend([("live.wait", "sleep"), ("measure.end", "1ms"), ("traffic.1.start", "900us")]);
        let scenario = read(&text, &sets);
        let result = run_processes(&scenario, 2, command, |_| false).expect("it can be run");
        assert_eq!(result.info.processes, 2);
        sound(&result);
        let simulated = sim::run(&scenario, 1, |_| false).expect("it can be simulated");
        alike(&result, &simulated);
        seen.extend(result.tables.iter().filter(|table| !table.is_empty()).map(|table| table.name));
        // Findings that probes make, which are of all processes together.
        let told = |audit: &[run::Finding]| {
            let of_probes = ["held only", "isolation queues", "guaranteed", "guarantee was lost"];
            let kept = audit.iter().filter(|of| of_probes.iter().any(|words| of.name.contains(words)));
            kept.map(|of| (of.name, of.ok, of.detail.clone())).collect::<Vec<_>>()
        };
        assert_eq!(told(&result.info.audit), told(&simulated.info.audit));
    }
    let tables = "packets events ports states entities waits aqs congestion guarantees guaranteed_waits";
    for table in tables.split(' ') {
        assert!(seen.contains(table), "{table} is empty");
    }
}

/// What ranks computed in another process comes back from there, and the job's tables are the simulator's.
#[test]
fn a_training_job_has_the_simulators_history() {
    let scenario = read(JOB, &[]);
    let result = run_processes(&scenario, 2, command, |_| false).expect("it can be run");
    sound(&result);
    assert_eq!(result.info.ended, "horizon");
    alike(&result, &sim::run(&scenario, 1, |_| false).expect("it can be simulated"));
    for name in ["jobs", "collectives", "ranks", "critical"] {
        let table = result.tables.iter().find(|table| table.name == name).expect(name);
        assert!(!table.is_empty(), "{name}");
    }
}

/// Two ranks a host, so that some messages stay there; the last flow is there until the end.
const JOB: &str = r#"
transport = "cubic"
[live]
dilation = 20
wait = "sleep"
[fabric.leaf_spine]
racks = 2
hosts_per_rack = 2
spines = 1
[measure]
end = "5ms"
[[traffic]]
sizes = { constant = "100MB" }
arrivals = "all_at_once"
name = "last"
start = "4900us"
flows = 1
[[job]]
ranks_per_host = 2
iterations = 2
steps = [{ compute = "50us" }, { all_reduce = { bytes = "80KB" } }, { compute = "30us" }]
"#;

#[test]
fn it_ends_with_the_last_flow_and_when_told() {
    let scenario = read(INCAST, &[("live.wait", "sleep"), ("traffic.1.start", "1ms"), ("measure.end", "1s")]);
    let result = run_processes(&scenario, 2, command, |_| false).expect("it can be run");
    sound(&result);
    assert_eq!((result.info.ended, result.info.flows_completed), ("goal", 16));
    let slow = read(INCAST, &[("live.wait", "sleep"), ("live.dilation", "1000")]);
    let result = run_processes(&slow, 2, command, |_| true).expect("it can be run");
    sound(&result);
    assert_eq!((result.info.ended, result.info.processes), ("interrupted", 2));
}

/// One that starts but never takes part, and one that can't be started.
#[test]
fn a_process_that_does_not_take_part_is_said() {
    let scenario = read(INCAST, &[]);
    for (program, said) in [("true", "ended before the run began"), ("/nowhere/at/all", "No such file")] {
        let problem = run_processes(&scenario, 2, || Command::new(program), |_| false).expect_err(program);
        assert!(problem.to_string().contains(said), "{problem}");
    }
}

/// The one that is killed is found by its parent, which is this process, and by what it was told to run.
#[test]
fn a_process_that_is_killed_is_a_failure_of_its_nodes() {
    let killed = "exec sh -c '(sleep 2.5; kill -9 $$) & exec \"$0\" \"$@\"' \"$0\" \"$@\"";
    let mut started = 0;
    let command = || {
        started += 1;
        let program = std::env::current_exe().expect("this is a program");
        let mut victim = Command::new("sh");
        // It is the second of the two that ends.
        let script = if started == 2 { killed } else { "exec \"$0\" \"$@\"" };
        victim.args(["-c", script]).arg(program).args(["--exact", "processes::part", "--ignored"]).env(PART, "1");
        victim
    };
    // 5 s by the machine's clock.
    let more = [("live.wait", "sleep"), ("live.dilation", "800"), ("measure.end", "6ms"), ("traffic.1.start", "5ms")];
    let scenario = read(INCAST, &more);
    let result = run_processes(&scenario, 3, command, |_| false).expect("it can be run");
    assert!(finding(&result, "content right"), "{:#?}", result.info.audit);
    assert_eq!((result.info.lost_processes.as_slice(), result.info.processes), (&[2][..], 2));
    let lost = result.info.audit.iter().find(|finding| finding.name == "all processes lived").expect("it was lost");
    assert!(!lost.ok && lost.detail.contains("process 2 with"), "{}", lost.detail);
    // The others lived on until the end.
    assert_eq!((result.info.ended, result.info.end_ps), ("horizon", 6_000_000_000));
}
