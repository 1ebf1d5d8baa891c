//! Parts of a network that share no flow are skipped apart.

use ::scenario::Scenario;

use crate::ahead::{both, estimate, message, same, share_of};
use crate::{NONE, RunResult, column, of_flows, run_alone, scenario, table};

/// Three racks: two jobs whose iterations have nothing in common, and messages that never repeat.
fn racks(transport: &str, interval: &str, more: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.interval = "{interval}"
        switch.buffer.shared = {{ bytes = "12MB" }}
        fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 4, spines = 2 }}
        {more}
        [[job]]
        name = "one"
        hosts = "0-3"
        iterations = 50
        steps = [{{ compute = "11us" }}, {{ all_reduce = {{ bytes = "200KB" }} }}]
        [[job]]
        name = "other"
        hosts = "8-11"
        start = "37us"
        iterations = 70
        steps = [{{ compute = "7us" }}, {{ all_to_all = {{ bytes = "90KB" }} }}]
        {}
        "#,
        beside("2ms")
    )
}

/// Messages that never repeat, in the second rack of four hosts, for so long.
fn beside(duration: &str) -> String {
    format!(
        r#"
        [[traffic]]
        name = "beside"
        senders = "4-7"
        receivers = "4-7"
        sizes = "websearch"
        arrivals.poisson.load = 0.4
        duration = "{duration}"
        "#
    )
}

/// Completion times of an estimate are those of the whole run, each but for a percent.
fn each_near(whole: &RunResult, ahead: &RunResult) {
    for (&one, &other) in of_flows(whole, "fct_ps").iter().zip(of_flows(ahead, "fct_ps")) {
        assert!((other as f64 / one as f64 - 1.0).abs() < 0.01, "{one} {other}");
    }
}

/// Together nothing would repeat.
#[test]
fn jobs_are_skipped_beside_others_that_do_not_repeat() {
    for (transport, more) in [("rdma", "flow_control = \"pfc\""), ("newreno", ""), ("swift", "")] {
        let (_, skipped) = both(&racks(transport, "0s", more));
        assert_eq!(skipped.islands, 3, "{transport}");
        assert!(skipped.skips >= 2 && skipped.packet_hops > 10_000, "{transport}: {skipped:?}");
    }
}

/// In approximate mode, too: long flows that share a link beside messages that never repeat.
#[test]
fn flows_are_moved_ahead_by_their_rates_beside_others_that_do_not_repeat() {
    let long = r#"
        transport = "timely"
        flow_control = "pfc"
        measure.interval = "1ms"
        switch.buffer.shared = { bytes = "12MB" }
        fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 1 }
        [[traffic]]
        name = "long"
        senders = "1-2"
        receivers = "0"
        pattern = "dense"
        sizes.constant = "60MB"
        arrivals = "all_at_once"
        flows = 2
    "#;
    let [whole, ahead] = estimate(&format!("{long}{}", beside("8ms")));
    let skipped = ahead.info.skipped.as_ref().expect("it was asked for");
    assert_eq!(skipped.islands, 2);
    assert!(2 * skipped.estimated_ps > whole.info.end_ps, "{skipped:?}");
    // What is beside is simulated whole, and times of the others are close, within what is asked for of the mean.
    each_near(&whole, &ahead);
    let differ = of_flows(&whole, "fct_ps").iter().zip(of_flows(&ahead, "fct_ps")).filter(|(one, other)| one != other);
    assert!(differ.count() <= 2);
}

/// In three racks, one after another, two flows share a link. When one island is moved ahead, the time of the engine
/// stays for the others: they are observed as well, and the run ends when it would.
#[test]
fn islands_are_moved_ahead_by_their_rates_each_at_its_own_time() {
    let rack = |rack: u32| {
        format!(
            "[[traffic]]\nname = \"rack {rack}\"\nsenders = \"{}-{}\"\nreceivers = \"{}\"\npattern = \"dense\"\n\
             sizes.constant = \"{}MB\"\nstart = \"{}ns\"\narrivals = \"all_at_once\"\nflows = 2\n",
            3 * rack + 1,
            3 * rack + 2,
            3 * rack,
            20 + 5 * rack,
            111_111 * rack,
        )
    };
    let racks: String = (0..3).map(rack).collect();
    let [whole, ahead] = estimate(&format!(
        "transport = \"timely\"\nflow_control = \"pfc\"\nmeasure.interval = \"0s\"\n\
         switch.buffer.shared = {{ bytes = \"12MB\" }}\n\
         fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 3, spines = 1 }}\n{racks}"
    ));
    let skipped = ahead.info.skipped.as_ref().expect("it was asked for");
    assert_eq!(skipped.islands, 3);
    // The time of all three counts.
    let share = skipped.estimated_ps as f64 / whole.info.end_ps as f64;
    assert!(share > 1.5, "{share} {skipped:?}");
    each_near(&whole, &ahead);
    let (one, other) = (whole.info.end_ps, ahead.info.end_ps);
    assert!((other as f64 / one as f64 - 1.0).abs() < 0.01, "{one} {other}");
}

/// A sample is taken everywhere at once, whoever sleeps.
#[test]
fn samples_are_taken_while_islands_sleep() {
    let long = r#"
        transport = "rdma"
        flow_control = "pfc"
        measure.interval = "200us"
        fabric.leaf_spine = { racks = 2, hosts_per_rack = 3, spines = 1 }
        [[traffic]]
        name = "one"
        senders = "0"
        receivers = "1"
        sizes.constant = "20MB"
        arrivals = "all_at_once"
        flows = 1
        [[traffic]]
        name = "three into one"
        pattern.incast.degree = 2
        senders = "3-4"
        receivers = "5"
        sizes.constant = "11MB"
        arrivals = "all_at_once"
        flows = 2
    "#;
    let (whole, skipped) = both(long);
    assert_eq!(skipped.islands, 2);
    let share = share_of(&whole, &skipped);
    assert!(skipped.skips > 10 && share > 0.5, "{share} {skipped:?}");
}

/// What is skipped within a step of a ring echoes in the engine's windows as often as the step is repeated.
#[test]
fn long_messages_are_skipped_within_steps_of_each_island() {
    let ring = |name: &str, hosts: &str, bytes: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\nhosts = \"{hosts}\"\nlibrary = {{ all_reduce = \"ring\" }}\n\
             steps = [{{ all_reduce = {{ bytes = \"{bytes}\" }} }}]\n"
        )
    };
    let toml = format!(
        "transport = \"dctcp\"\nmeasure.interval = \"0s\"\n\
         fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 8, spines = 1 }}\n{}{}",
        ring("one", "0-7", "64MB"),
        ring("other", "8-15", "83MB")
    );
    let (whole, skipped) = both(&toml);
    assert_eq!(skipped.islands, 2);
    let share = share_of(&whole, &skipped);
    assert!(share > 0.96, "{share}");
}

/// One island goes around another, so that its nodes do not follow each other.
#[test]
fn islands_may_lie_around_others() {
    let around = racks("rdma", "0s", "flow_control = \"pfc\"").replace("\"8-11\"", "\"2,3,8,9\"");
    let around = around
        .replace("\"0-3\"", "\"4-7\"")
        .replace("\"4-7\"\n        receivers = \"4-7\"", "\"0-1\"\n receivers = \"0-1\"");
    let (_, skipped) = both(&around);
    assert_eq!(skipped.islands, 2);
    assert!(skipped.skips > 0, "{skipped:?}");
}

/// Whatever a scheme sends beyond an island: announcements to all hosts, requests to an arbiter, frames to neighbours.
#[test]
fn over_each_scheme_the_run_is_the_whole_run() {
    let transports = catalogue::Transport::NAMES.iter().map(|name| (*name, String::new()));
    let controls = catalogue::LinkControl::NAMES.iter().map(|name| ("rdma", format!("flow_control = \"{name}\"")));
    let (mut apart, mut together) = (0, 0);
    for (transport, more) in transports.chain(controls) {
        let toml = racks(transport, "0s", &more);
        if run::Plan::new(&scenario(&toml)).is_err() {
            continue;
        }
        let (whole, ahead) = (run_alone(&toml), run_alone(&format!("fast_forward = \"exact\"\n{toml}")));
        same(&whole, &ahead);
        match ahead.info.skipped.expect("it was asked for").islands {
            1 => together += 1,
            _ => apart += 1,
        }
    }
    assert!(apart > 20 && together > 1, "{apart} apart, {together} together");
}

/// The arbiter's rack is skipped before anybody else asks the arbiter. Then the run begins anew, as one.
#[test]
fn what_comes_to_an_island_late_is_not_missed() {
    let (one, other) = (message("one", (0, 1), "0s", "20MB"), message("other", (3, 4), "800us", "20MB"));
    let toml = format!(
        "transport = \"fastpass\"\nmeasure.interval = \"0s\"\n\
         fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 3, spines = 1 }}\n{one}{other}"
    );
    let (_, skipped) = both(&toml);
    assert_eq!(skipped.islands, 1);
    assert!(skipped.skips > 0, "{skipped:?}");
}

/// Nothing that is told lies after the end, though some islands have been moved far ahead.
#[test]
fn a_run_that_is_stopped_tells_what_it_knows() {
    let scenario = scenario(&format!("fast_forward = \"exact\"\n{}", racks("rdma", "0s", "flow_control = \"pfc\"")));
    for windows in [100, 1_000, 2_000] {
        stopped_after(windows, &scenario);
    }
}

/// A run that is stopped after so many windows. Its audit holds, and nothing has ended after its end.
pub(super) fn stopped_after(windows: u64, scenario: &Scenario) -> RunResult {
    let mut left = windows;
    let stop = |_| {
        left -= 1;
        left == 0
    };
    let result = clearway_sim::run(scenario, 1, stop).unwrap();
    assert_eq!(result.info.ended, "interrupted");
    assert!(result.info.audit.iter().all(|finding| finding.ok), "{:?}", result.info.audit);
    let ended = column(table(&result, "flows"), "completed_ps");
    let last = ended.iter().filter(|&&at| at != NONE).max().copied().unwrap_or(0);
    assert!(last <= result.info.end_ps, "{windows}: {last} after {}", result.info.end_ps);
    result
}

/// Jobs in two racks, then one over both of them while one of the others goes on, and at the end a message.
fn jobs_that_come_and_go(transport: &str, more: &str) -> String {
    let job = |name: &str, hosts: &str, start: &str, compute: &str, iterations: u32, bytes: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\nhosts = \"{hosts}\"\nstart = \"{start}\"\niterations = {iterations}\n\
             steps = [{{ compute = \"{compute}\" }}, {{ all_reduce = {{ bytes = \"{bytes}\" }} }}]\n"
        )
    };
    format!(
        "transport = \"{transport}\"\nmeasure.interval = \"0s\"\nswitch.buffer.shared = {{ bytes = \"12MB\" }}\n\
         fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 4, spines = 1 }}\n{more}\n{}{}{}\
         [[traffic]]\nname = \"last\"\nsenders = \"3\"\nreceivers = \"8\"\nstart = \"7ms\"\n\
         sizes.constant = \"9MB\"\narrivals = \"all_at_once\"\nflows = 1\n",
        job("one", "0-3", "0s", "11us", 30, "200KB"),
        job("other", "4-7", "37us", "7us", 90, "90KB"),
        job("both", "2-5", "2ms", "13us", 40, "130KB"),
    )
}

/// While both jobs last that are in one rack each, neither repeats together with the other.
#[test]
fn islands_change_as_jobs_come_and_go() {
    for (transport, more) in [("rdma", "flow_control = \"pfc\""), ("newreno", "")] {
        let (whole, skipped) = both(&jobs_that_come_and_go(transport, more));
        let share = share_of(&whole, &skipped);
        assert!(share > 0.5, "{transport}: {share}");
        assert_eq!(skipped.islands, 2, "{transport}");
    }
}

/// A short message connects islands that would have been moved beyond its start, and no longer does when one has been
/// moved beyond its end.
#[test]
fn messages_connect_islands_while_they_last() {
    for (transport, more) in [("rdma", "flow_control = \"pfc\""), ("newreno", ""), ("swift", "")] {
        let toml = format!(
            "transport = \"{transport}\"\nmeasure.interval = \"0s\"\nswitch.buffer.shared = {{ bytes = \"12MB\" }}\n\
             fabric.leaf_spine = {{ racks = 4, hosts_per_rack = 4, spines = 1 }}\n{more}\n{}{}{}{}{}{}",
            message("long", (0, 1), "0s", "30MB"),
            message("longer", (4, 5), "10us", "45MB"),
            message("from outside", (8, 2), "300us", "20KB"),
            message("to the other", (6, 13), "1500us", "20KB"),
            message("between them", (2, 5), "2100us", "20KB"),
            message("outside", (9, 13), "1800us", "20KB"),
        );
        let (whole, skipped) = both(&toml);
        let share = share_of(&whole, &skipped);
        assert!(skipped.islands >= 2 && skipped.skips > 6, "{transport}: {skipped:?}");
        assert!(share > 0.5, "{transport}: {share}");
    }
}

/// Flows that share switches, but no port of theirs: all pass the same spine, and some the same rack. Together they
/// would never be steady for long, since one of them always has just begun or ended. Groups sleep apart.
#[test]
fn flows_that_share_no_port_sleep_apart() {
    // Racks 0 and 1, racks 2 and 3, and within racks 0 and 2.
    let pairs = [(0, 4), (8, 12), (1, 2), (9, 10)];
    let of = |place: usize| {
        let (start, bytes) = (format!("{}us", place * 171), format!("{}MB", 3 + place % 5));
        message(&format!("message{place}"), pairs[place % 4], &start, &bytes)
    };
    let messages: String = (0..24).map(of).collect();
    let fabric = "measure.interval = \"0s\"\nfabric.leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 1 }";
    for transport in ["dctcp", "swift", "cubic", "timely"] {
        for buffer in ["", "switch.buffer.shared.bytes = \"12MB\"\n"] {
            let [whole, ahead] = estimate(&format!("{buffer}transport = \"{transport}\"\n{fabric}\n{messages}"));
            let skipped = ahead.info.skipped.as_ref().expect("it was asked for");
            let share = share_of(&whole, skipped);
            assert!(skipped.islands >= 2 && share > 0.4, "{transport}: {share} {skipped:?}");
            each_near(&whole, &ahead);
        }
    }
}

/// An arbiter is asked by packets that no flow announces. They leave their islands: the run begins anew.
#[test]
fn packets_that_no_flow_announces_are_not_missed() {
    let (one, other) = (message("one", (1, 2), "0s", "3MB"), message("other", (3, 4), "100us", "5MB"));
    let fabric = "measure.interval = \"0s\"\nfabric.star = { hosts = 6 }";
    let [whole, ahead] = estimate(&format!("transport = \"fastpass\"\n{fabric}\n{one}{other}"));
    assert!(format!("{:?}", whole.tables) == format!("{:?}", ahead.tables));
    assert_eq!(ahead.info.skipped.map(|skipped| skipped.islands), Some(1));
}
