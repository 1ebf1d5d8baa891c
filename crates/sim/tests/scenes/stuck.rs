//! A run that can't end by itself ends early, and says why; one that can still recover does not.

use clearway_sim::{Execution, RunResult, Steps, run};
use units::{Duration, Time};

use crate::scenario;

/// On one thread and on two, cut and not, in steps, and with what repeats skipped: all alike.
fn run_anyhow(toml: &str) -> RunResult {
    let on = |toml: &str, threads, parts| {
        let execution = Execution { threads, parts: Some(parts) };
        run(&scenario(toml), execution, |_| false).unwrap_or_else(|problem| panic!("{problem}\n{toml}"))
    };
    let alone = on(toml, 1, 1);
    let mut steps = Steps::new(::run::Plan::new(&scenario(toml)).expect("a scenario that can be run"));
    let mut turn = 0;
    while !steps.advance(|_| {
        turn += 1;
        turn % 7 == 0
    }) {}
    let others = [
        ("cut", on(toml, 2, usize::MAX)),
        ("exact", on(&format!("fast_forward = 'exact'\n{toml}"), 1, 4)),
        ("steps", steps.conclude()),
    ];
    for (way, other) in others {
        assert_eq!((alone.info.ended, alone.info.end_ps), (other.info.ended, other.info.end_ps), "{way}");
        assert_eq!(alone.info.digest, other.info.digest, "{way}");
        assert_eq!(alone.info.audit, other.info.audit, "{way}");
    }
    alone
}

/// Why it is stuck, by its audit, after so many seconds at most.
fn why_after(result: &RunResult, seconds: u64) -> &str {
    assert_eq!(result.info.ended, "stuck", "{:?}", result.info.audit);
    assert!(result.info.end_ps < Time::from_us(seconds * 1_000_000).ps(), "{}", result.info.end_ps);
    let finding = result.info.audit.iter().find(|finding| finding.name == "every flow ended").expect("each run has it");
    assert!(!finding.ok);
    &finding.detail
}

/// The same of one that is certain.
fn why(result: &RunResult) -> &str {
    why_after(result, 20)
}

fn job(more: &str) -> String {
    format!(
        r#"
        {more}
        measure.interval = "0s"
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1, host_rate = "10Gbps", spine_rate = "10Gbps" }}
        [[job]]
        name = "train"
        hosts = "0,2"
        steps = [{{ all_reduce = {{ bytes = "100KB" }} }}]
        "#
    )
}

const CUT_OFF: &str = r#"failure = [{ link = ["host2", "leaf1"], at = "20us" }]"#;

#[test]
fn a_host_that_is_cut_off_for_good_ends_the_run_and_is_named() {
    for transport in ["dctcp", "rdma", "homa", "ndp", "uet", "falcon", "dcpim"] {
        let result = run_anyhow(&job(&format!("transport = '{transport}'\n{CUT_OFF}")));
        let why = why(&result);
        assert!(why.contains("nothing that was still to come would have finished them"), "{transport}: {why}");
        assert!(why.contains(" of train from host"), "{transport}: {why}");
        let cause = "no path is left: the link from host2 to leaf1 failed at 20us, and nothing repairs it";
        assert!(why.ends_with(cause), "{transport}: {why}");
    }
}

#[test]
fn a_partition_is_named_by_what_has_failed() {
    let failure = r#"failure = [{ switch = "spine0", at = "20us" }]"#;
    let result = run_anyhow(&job(&format!("transport = 'dctcp'\n{failure}")));
    let cause = "no path is left: the switch spine0 failed, and nothing repairs what has";
    assert!(why(&result).ends_with(cause), "{}", why(&result));
}

#[test]
fn a_link_that_loses_all_cuts_off_too_one_way_or_both() {
    for more in ["loss = 1.0", "loss = 1.0, one_way = true"] {
        let failure = format!(r#"failure = [{{ link = ["host2", "leaf1"], at = "20us", {more} }}]"#);
        let result = run_anyhow(&job(&format!("transport = 'dctcp'\n{failure}")));
        assert!(
            why(&result).contains("no path is left: the link from host2 to leaf1 failed at 20us"),
            "{}",
            why(&result)
        );
    }
}

/// There is a path, and no packet comes by it.
#[test]
fn what_asks_ten_thousand_times_in_vain_would_do_so_for_ever() {
    let failure = r#"failure = [{ link = ["host2", "leaf1"], at = "20us", loss = 0.999999 }]"#;
    for transport in ["rdma", "dcqcn"] {
        let result = run_anyhow(&job(&format!("transport = '{transport}'\n{failure}")));
        // 10,000 timeouts of 16 ms in the time since the last look, which is half of all.
        let why = why_after(&result, 4 * 160);
        assert!(
            why.contains("hosts have sent ") && why.contains(" and no payload has come; flow "),
            "{transport}: {why}"
        );
    }
}

/// There are other paths, and no packet of the flow takes one; or all its answers take one that is dead.
#[test]
fn who_keeps_to_a_path_that_loses_all_asks_in_vain_though_others_work() {
    let failures = ["loss = 1.0", "loss = 1.0, one_way = true", "reroute = false", "reroute = false, one_way = true"];
    let transports = ["{ bbr = { rto_max = '100ms' } }", "{ dctcp = { rto_max = '100ms' } }", "'rdma'"];
    for transport in transports {
        for failure in failures {
            let result = run_anyhow(
                &job(&format!(
                    "transport = {transport}\nfailure = [{{ link = ['leaf0', 'spine0'], at = '0us', {failure} }}]"
                ))
                .replace("spines = 1", "spines = 2")
                .replace("hosts = \"0,2\"\n        steps = [{ all_reduce", "steps = [{ all_to_all"),
            );
            // 256 timeouts of 100 ms, and then the next look; with RDMA's of 16 ms until all has come a hundred times.
            let why = why_after(&result, 60);
            assert!(
                why.contains(" and no answer has come: they take paths that lose all packets"),
                "{transport}: {why}"
            );
        }
    }
}

/// Nine of ten packets are lost on a path, and timers have backed off to a minute: it ends all the same.
#[test]
fn who_is_answered_at_last_is_waited_for() {
    let failure = "failure = [{ link = ['host2', 'leaf1'], at = '20us', loss = 0.9 }]";
    let result = run_anyhow(&job(&format!("transport = 'dctcp'\n{failure}")).replace("100KB", "20KB"));
    assert_eq!(result.info.ended, "goal", "{:?}", result.info.audit);
}

#[test]
fn who_watches_sees_for_how_long_no_payload_has_come() {
    let plan = ::run::Plan::new(&scenario(&job(&format!("transport = 'dctcp'\n{CUT_OFF}")))).expect("it can be run");
    let mut still = Vec::new();
    clearway_sim::run_plan(&plan, 1, |at| {
        still.push(at.still);
        false
    });
    let longest = still.iter().max().expect("there are windows");
    assert!(*longest > plan.patience() * 30, "{longest}");
    assert!(still.iter().all(|&still| still == Duration::ZERO || still >= plan.patience()));
}

#[test]
fn what_comes_back_or_begins_later_is_waited_for() {
    // Long after the first looks.
    let back = r#"failure = [{ link = ["host2", "leaf1"], at = "20us", until = "5s" }]"#;
    let result = run_anyhow(&job(&format!("transport = 'rdma'\n{back}")));
    assert_eq!(result.info.ended, "goal", "{:?}", result.info.audit);
    assert!(result.info.end_ps > Time::from_us(5_000_000).ps());
    // A flow of others that begins when nothing else moves any more: it ends, and then the run.
    let later = format!(
        r#"{}
        [[traffic]]
        sizes.constant = "3KB"
        arrivals = "all_at_once"
        senders = "1"
        receivers = "3"
        flows = 1
        start = "5s"
        "#,
        job(&format!("transport = 'rdma'\n{CUT_OFF}"))
    );
    let result = run_anyhow(&later);
    assert_eq!((result.info.ended, result.info.flows_completed > 0), ("stuck", true));
    assert!(result.info.end_ps > Time::from_us(5_000_000).ps());
}

#[test]
fn an_end_that_is_said_is_kept() {
    let result = run_anyhow(
        &job(&format!("transport = 'rdma'\nmeasure.end = '3s'\n{CUT_OFF}")).replace("measure.interval = \"0s\"", ""),
    );
    assert_eq!(result.info.ended, "horizon");
}
