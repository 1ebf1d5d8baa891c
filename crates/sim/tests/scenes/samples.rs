//! Samples of long runs: as many as are kept, at intervals that double, and sums stay sums.

use crate::{RunResult, column, run_alone, run_both, table};

/// Four messages at the beginning and four at 20 ms; three switches, so a sample has three rows.
fn idle_between(rows_max: u64) -> RunResult {
    run_both(&format!(
        r#"
        transport = "dcpim"
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1 }}
        measure = {{ interval = "10us", rows_max = {rows_max} }}
        entity = [{{ name = "a", hosts = "0-3" }}]
        [[traffic]]
        name = "now"
        sizes.constant = "300KB"
        arrivals = "all_at_once"
        flows = 4
        [[traffic]]
        name = "later"
        sizes.constant = "300KB"
        arrivals = "all_at_once"
        start = "20ms"
        flows = 4
        "#
    ))
}

#[test]
fn a_run_that_lasts_takes_no_more_samples_at_longer_intervals() {
    let (all, few) = (idle_between(1 << 21), idle_between(6 * 100));
    assert_eq!(all.info.sample_interval_ps, 10_000_000);
    // 2,000 samples and some of 3 switches and 3 tiers, of which 100 at most are kept: every 10 us, 20, ..., 320 us.
    assert_eq!(few.info.sample_interval_ps, 320_000_000);
    let times = |result: &RunResult| column(table(result, "queues"), "time_ps").to_vec();
    assert!(times(&all).len() > 3 * 2_000);
    assert!((3 * 50..3 * 100).contains(&times(&few).len()), "{}", times(&few).len());
    assert!(times(&few).iter().all(|at| at % few.info.sample_interval_ps == 0));
    // What is summed over intervals is the same in all.
    let bytes = |result: &RunResult| -> u64 { column(table(result, "entities"), "delivered_bytes").iter().sum() };
    assert!(bytes(&all) >= 8 * 300_000);
    assert_eq!(bytes(&few), bytes(&all));
}

#[test]
fn traffic_in_the_distant_future_costs_little() {
    let result = run_alone(
        r#"
        transport = "dcpim"
        fabric.star.hosts = 2
        measure.rows_max = 4000
        [[traffic]]
        sizes.constant = "300KB"
        arrivals = "all_at_once"
        start = "4000000s"
        flows = 1
        "#,
    );
    // 4e11 intervals of 10 us, of which a thousand are kept at most: 2^29 times the interval.
    assert_eq!(result.info.sample_interval_ps, 10_000_000 << 29);
    assert_eq!((result.info.ended, result.info.flows_completed), ("goal", 1));
}

/// A job waits for a message that was given up, for ever: that is no reason to take samples for a day.
#[test]
fn a_run_in_which_nothing_is_left_to_happen_ends_whether_or_not_samples_are_taken() {
    // The audit says that it never ends.
    let of = |interval: &str| {
        let toml = format!(
            r#"
            transport = "udp"
            fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 1, spines = 1 }}
            measure.interval = "{interval}"
            [[job]]
            name = "train"
            iterations = 2
            steps = [{{ all_gather = {{ bytes = "1MB" }} }}]
            [[failure]]
            link = ["leaf0", "host0"]
            at = "20us"
            reroute = false
            "#
        );
        clearway_sim::run(&crate::scenario(&toml), 2, |_| false).expect("it can be run")
    };
    let (seen, unseen) = (of("10us"), of("0s"));
    let of = |result: &RunResult| (result.info.ended, result.info.digest.clone(), result.info.events);
    assert_eq!(of(&seen), of(&unseen));
    assert_eq!(seen.info.ended, "quiet");
    assert!(column(table(&seen, "queues"), "time_ps").len() > 3);
    assert!(seen.info.end_ps <= unseen.info.end_ps + seen.info.sample_interval_ps, "{}", seen.info.end_ps);
}
