//! Congestion trees: where arithmetic says that the root is, what it holds, and who is innocent.

use std::collections::BTreeSet;

use clearway_sim::RunResult;
use run::Data;

use crate::{column, names, run_alone, run_on, table};

/// Hosts 0, 1 and 3 of one rack and 5 and 6 of the other overload host 4: 500 Gbps for a port of 100. Every other port
/// has room for all that comes, so it is the only root. Host 2's packets to host 7 go by the same leaf and spine, and
/// not through it.
fn incast(settings: &str) -> String {
    format!(
        r#"
        transport = "udp"
        {settings}
        switch.buffer = {{ shared = {{ bytes = "600KB" }} }}
fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 1, host_rate = "100Gbps", spine_rate = "400Gbps" }}
        [[traffic]]
        name = "incast"
        sizes = {{ constant = "800KB" }}
        arrivals = "all_at_once"
        senders = "0,1,3,5,6"
        receivers = "4"
        "#
    )
}

const VICTIM: &str = r#"
        [[traffic]]
        name = "victim"
        sizes = { constant = "800KB" }
        arrivals = "all_at_once"
        senders = "2"
        receivers = "7"
        "#;

const PFC: &str = "flow_control = \"pfc\"\nmeasure.interval = \"2us\"";

struct Row<'a> {
    at_ps: u64,
    link: (&'a str, &'a str),
    role: &'a str,
    paused: bool,
    bytes: u64,
    innocent: u64,
}

fn rows(result: &RunResult) -> Vec<Row<'_>> {
    let (links, congestion) = (table(result, "links"), table(result, "congestion"));
    let ends: Vec<_> = names(links, "from_node").into_iter().zip(names(links, "to_node")).collect();
    let Data::U32(link) = &congestion.column("link").unwrap().data else { panic!("a number") };
    let Data::Bool(paused) = &congestion.column("paused").unwrap().data else { panic!("yes or no") };
    let roles = names(congestion, "role");
    let count = |name: &str| column(congestion, name);
    let row = |row: usize| Row {
        at_ps: count("time_ps")[row],
        link: ends[link[row] as usize],
        role: roles[row],
        paused: paused[row],
        bytes: count("bytes")[row],
        innocent: count("innocent_bytes")[row],
    };
    (0..congestion.len()).map(row).collect()
}

#[test]
fn an_incast_under_pfc_has_one_root_and_holds_what_does_not_meet_it() {
    let result = run_alone(&(incast(PFC) + VICTIM));
    let rows = rows(&result);
    let links = |of: &dyn Fn(&Row<'_>) -> bool| -> BTreeSet<_> {
        rows.iter().filter(|row| of(row)).map(|row| row.link).collect()
    };
    assert_eq!(links(&|row| row.role == "root"), BTreeSet::from([("leaf1", "host4")]));
    // All that leads to the root, and nothing else.
    let upstream = ["host0", "host1", "host2", "host3"].map(|host| (host, "leaf0"));
    let upstream = upstream.into_iter().chain(["host5", "host6"].map(|host| (host, "leaf1")));
    let upstream: BTreeSet<_> = upstream.chain([("leaf0", "spine0"), ("spine0", "leaf1")]).collect();
    assert_eq!(links(&|row| row.paused), upstream);
    let roots: BTreeSet<u64> = rows.iter().filter(|row| row.role == "root").map(|row| row.at_ps).collect();
    let mut held = 0;
    for row in &rows {
        assert!(roots.contains(&row.at_ps), "a pause outlives the root by less than a sample");
        if row.paused && row.bytes > 0 {
            // Four hosts send alike, so a quarter of what is held is the victim's, up to two packets of each.
            let off = (4 * row.innocent).abs_diff(row.bytes);
            assert!(off <= 4 * 2 * 1_500, "{} of {} at {}", row.innocent, row.bytes, row.at_ps);
            held += 1;
        } else {
            assert_eq!(row.innocent, 0);
        }
    }
    assert!(held > 20, "seen often");
}

#[test]
fn what_meets_the_root_is_not_innocent() {
    let result = run_alone(&incast(PFC));
    assert!(rows(&result).iter().any(|row| row.paused && row.bytes > 0));
    assert!(rows(&result).iter().all(|row| row.innocent == 0));
}

#[test]
fn the_table_is_one_on_any_number_of_threads() {
    let scene = incast(PFC) + VICTIM;
    let printed = |threads| format!("{:?}", table(&run_on(threads, &scene), "congestion"));
    assert_eq!(printed(1), printed(2));
}

#[test]
fn who_looks_changes_nothing() {
    let digest = |interval: &str| {
        let settings = format!("flow_control = \"pfc\"\nmeasure.interval = \"{interval}\"");
        let result = run_alone(&(incast(&settings) + VICTIM));
        assert_eq!(result.tables.iter().any(|table| table.name == "congestion"), interval != "0s");
        result.info.digest
    };
    assert_eq!(digest("0s"), digest("700ns"));
}

#[test]
fn no_flow_control_no_table() {
    let result = run_alone(&incast("measure.interval = \"2us\""));
    assert!(result.tables.iter().all(|table| table.name != "congestion"));
}

#[test]
fn the_same_incast_under_pyrrha_holds_no_innocent() {
    let result = run_alone(&(incast("flow_control = \"pyrrha\"\nmeasure.interval = \"2us\"") + VICTIM));
    let rows = rows(&result);
    assert!(rows.iter().any(|row| row.paused && row.bytes > 100_000 && row.link == ("leaf0", "spine0")));
    assert!(rows.iter().filter(|row| row.role == "root").all(|row| row.link == ("leaf1", "host4")));
    assert!(rows.iter().all(|row| row.innocent == 0 && row.link != ("host2", "leaf0")));
    let promises = &result.info.audit[result.info.audit.len() - 2..];
    assert!(promises[0].detail.starts_with("0 of ") && !promises[0].detail.starts_with("0 of 0 "), "{promises:?}");
    assert_eq!(promises[1].detail, "at most 1 on a port; 0 were taken for a root that had one there already");
}

/// 24 hosts at a load that makes many roots, with shallow queues.
fn storm(settings: &str) -> String {
    format!(
        r#"
        transport = "udp"
        flow_control = {{ pyrrha = {{ {settings} }} }}
        measure = {{ interval = "1us", drain = "300us" }}
        fabric.leaf_spine = {{ racks = 6, hosts_per_rack = 4, spines = 2, spine_rate = "100Gbps" }}
        [[traffic]]
        sizes = {{ uniform = {{ min = "20KB", max = "200KB" }} }}
        arrivals = {{ poisson = {{ load = 0.9 }} }}
        flows = 300
        "#
    )
}

/// Packets held without reason, all that were held, and those held in queues that roots share for want of others, as
/// the audit counts them.
fn held(result: &RunResult) -> (u64, u64, u64) {
    let finding = result.info.audit.iter().find(|finding| finding.name.starts_with("flows are held only")).unwrap();
    let numbers: Vec<u64> = finding.detail.split(' ').filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [wrong, held] => (wrong, held, 0),
        [wrong, held, _, shared] => (wrong, held, shared),
        _ => panic!("{}", finding.detail),
    }
}

#[test]
fn theorem_3_1() {
    for settings in ["", "tiers = \"single\"", "queues = 1", "merging = false"] {
        let (wrong, held, shared) = held(&run_alone(&storm(settings)));
        assert!(wrong == 0 && held + shared > 1_000, "{wrong} of {held} and {shared}: {settings}");
        // One queue a port is shared, and the theorem leaves that out: what it holds by itself is still judged.
        assert_eq!(shared > 0, settings == "queues = 1", "{settings}");
        assert!(held > 500, "{held}: {settings}");
    }
}

#[test]
fn merging_takes_false_roots_away() {
    let innocent = |settings| rows(&run_alone(&storm(settings))).iter().map(|row| row.innocent).sum::<u64>();
    assert!(2 * innocent("") < innocent("merging = false"));
}

#[test]
fn no_root_outlives_its_tree() {
    // A torus has several ways to each root, so a switch may hold packets for it at several ports.
    let result = run_alone(
        r#"
        transport = "udp"
        flow_control = "pyrrha"
        measure = { interval = "5us", drain = "2ms" }
        switch.buffer = { shared = { bytes = "2MB" } }
        fabric.torus = { dims = [4, 4, 4] }
        [[traffic]]
        sizes = { uniform = { min = "10KB", max = "200KB" } }
        arrivals = { poisson = { load = 0.3 } }
        flows = 600
        [[traffic]]
        name = "incast"
        sizes = { constant = "30KB" }
        pattern = { incast = { degree = 40 } }
        arrivals = "all_at_once"
        receivers = "21"
        "#,
    );
    let counters = table(&result, "counters");
    let count = |name: &str| {
        let row = names(counters, "counter").iter().position(|counter| *counter == name).unwrap();
        column(counters, "value")[row]
    };
    let gone = count("pyrrha_secessions") + count("pyrrha_abdications");
    assert!(count("pyrrha_nominations") > 500);
    assert_eq!(count("pyrrha_nominations"), gone);
}
