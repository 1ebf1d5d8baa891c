//! Rounds of a job that are alike but not the same, in approximate mode.

use crate::ahead::{estimate, iterations};
use crate::{RunResult, column, of_flows, table};

/// Chosen before the first run, and narrower than what is asked for of flows with long messages: 1% of the mean and 3%
/// of the 99th percentile. Packets were to be within half a percent, too, but some schemes draw at random how many they
/// send, and one round says that to a percent.
const TIME_WITHIN: f64 = 0.002;
const MEAN_WITHIN: f64 = 0.005;
const P99_WITHIN: f64 = 0.02;
const PACKETS_WITHIN: f64 = 0.01;

/// How much of the run's time is skipped. Times are those of the whole run, but for
/// little.
fn skipped_of(name: &str, toml: &str) -> f64 {
    let [whole, ahead] = estimate(toml);
    let skipped = ahead.info.skipped.as_ref().expect("it was asked for");
    let off = |of: &dyn Fn(&RunResult) -> f64| of(&ahead) / of(&whole) - 1.0;
    let sorted = |result: &RunResult| {
        let mut times = of_flows(result, "fct_ps").to_vec();
        times.sort_unstable();
        times
    };
    let mean = |result: &RunResult| of_flows(result, "fct_ps").iter().sum::<u64>() as f64;
    let p99 = |result: &RunResult| sorted(result)[sorted(result).len() * 99 / 100] as f64;
    let time = |result: &RunResult| column(table(result, "jobs"), "time_ps").iter().sum::<u64>() as f64;
    let hops = |result: &RunResult| result.info.packet_hops as f64;
    for (what, off, within) in [
        ("time", off(&time), TIME_WITHIN),
        ("mean", off(&mean), MEAN_WITHIN),
        ("99th percentile", off(&p99), P99_WITHIN),
        ("packets", off(&hops), PACKETS_WITHIN),
    ] {
        assert!(off.abs() <= within, "{name}: {what} {:+.3}%, {skipped:?}", 100.0 * off);
    }
    assert_eq!(whole.info.flows_completed, ahead.info.flows_completed, "{name}");
    // Which of several ranks that are nearly alike holds up the others is a matter of little.
    for of in whole.tables.iter().filter(|of| of.name != "critical") {
        let other = table(&ahead, of.name);
        assert_eq!(of.len(), other.len(), "{name}: {}", of.name);
    }
    skipped.time_ps as f64 / ahead.info.end_ps as f64
}

/// Most schemes keep ranks in step. Where one does not, nothing is skipped.
#[test]
fn over_each_transport_rounds_are_skipped() {
    let mut much = Vec::new();
    for transport in catalogue::Transport::NAMES {
        // With an odd computation, little repeats to the picosecond.
        let toml = iterations(transport, 80, "").replace("20us", "40001ns");
        if run::Plan::new(&crate::scenario(&toml)).is_ok() && skipped_of(transport, &toml) > 0.5 {
            much.push(*transport);
        }
    }
    assert!(much.len() > 10, "{much:?}");
}

/// What a flow control knows of flows is of those with new names.
#[test]
fn over_each_flow_control_rounds_are_skipped() {
    for control in catalogue::LinkControl::NAMES {
        let toml = iterations("dctcp", 60, &format!("flow_control = \"{control}\"")).replace("20us", "40001ns");
        skipped_of(control, &toml);
        let all = toml.replace("all_reduce = { bytes = \"120KB\" }", "all_to_all = { bytes = \"200KB\" }");
        skipped_of(control, &all);
    }
}

/// A straggler, ranks that share hosts, many paths, two jobs, other traffic, a failure in the middle.
#[test]
fn jobs_of_every_kind_end_as_they_would_but_for_little() {
    let late = "[[job]]\nname = \"late\"\nstart = \"1ms\"\niterations = 30\nhosts = \"0-3\"\n\
                steps = [{ compute = \"7us\" }, { all_to_all = { bytes = \"80KB\" } }]";
    let other = "[[traffic]]\nsizes.constant = \"3MB\"\narrivals = \"all_at_once\"\nstart = \"4ms\"\nflows = 2";
    let fails = "[[failure]]\nlink = [\"leaf0\", \"host1\"]\nat = \"2ms\"\nuntil = \"2050us\"";
    for (of_job, after) in [
        ("stragglers = [{ rank = 2, factor = 1.5 }]", ""),
        ("ranks_per_host = 2", ""),
        ("", late),
        ("", other),
        ("", fails),
    ] {
        let toml = iterations("swift", 80, "");
        skipped_of(&format!("{of_job}{after}"), &format!("{toml}\n{of_job}\n{after}"));
    }
}

/// A job on racks of four hosts, with half as much room between racks.
fn narrow(transport: &str, racks: u32, iterations: u32, algorithm: &str, steps: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.interval = "0s"
        switch.buffer.shared = {{ bytes = "16MB" }}
        fabric.leaf_spine = {{ racks = {racks}, hosts_per_rack = 4, spines = 2 }}
        [[job]]
        name = "train"
        iterations = {iterations}
        library = {{ all_reduce = "{algorithm}" }}
        steps = [{steps}]
        "#
    )
}

/// For a dozen rounds ranks are in step, and small differences grow. Then they fall apart, and each round takes half as
/// long again. Who skips what only looks steady is off by a third.
#[test]
fn ranks_that_fall_apart_are_simulated_until_they_have() {
    let steps = r#"{ compute = "100us" }, { all_reduce = { bytes = "1MB" } }"#;
    let share = skipped_of("rdma", &narrow("rdma", 4, 120, "halving_doubling", steps));
    // Messages of a step tie at ports, and take turns: rounds are seldom alike.
    assert!(share > 0.02, "{share}");
}

/// Each step of a ring is a round. But its messages are long, so that most of each is skipped by average rates.
#[test]
fn long_messages_are_skipped_and_not_only_rounds() {
    let steps = r#"{ all_reduce = { bytes = "200MB" } }"#;
    let share = skipped_of("dctcp", &narrow("dctcp", 2, 1, "ring", steps));
    assert!(share > 0.6, "{share}");
    // Iterations of long messages: what is skipped within them leaves rounds as they are.
    let steps = r#"{ compute = "300us" }, { all_reduce = { bytes = "16MB" } }"#;
    for (transport, least) in [("timely", 0.3), ("cubic", 0.6)] {
        let share = skipped_of(transport, &narrow(transport, 2, 24, "ring", steps));
        assert!(share > least, "{transport}: {share}");
    }
}

/// In a ring without computation, each message begins when another ends: as many are under way at any time. How long
/// they take together is what they have in common, and not the difference of their beginnings and ends, which is next
/// to nothing.
#[test]
fn steps_in_which_messages_follow_each_other_at_once_are_rounds() {
    for transport in ["ndp", "homa"] {
        let steps = r#"{ all_reduce = { bytes = "30MB" } }"#;
        let share = skipped_of(transport, &narrow(transport, 4, 1, "ring", steps));
        assert!(share > 0.4, "{transport}: {share}");
    }
}
