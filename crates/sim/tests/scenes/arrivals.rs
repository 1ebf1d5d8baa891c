//! `measure.arrivals`: packets at the hosts that are asked about, and nothing else changed.

use scenario::read;

use crate::{column, run_alone, run_on, table};

/// Two senders at line rate to host0, on a star: their packets are 1,500 B each, 120 ns at 100 Gbps.
fn scene(arrivals: &str) -> String {
    format!(
        r#"
        transport = "udp"
        measure = {{ interval = "0s", arrivals = [{arrivals}] }}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 2, spine_rate = "100Gbps" }}
        traffic = [
    {{ name = "a", sizes = {{ constant = "2920B" }}, arrivals = "all_at_once", senders = "1", receivers = "0" }},
    {{ name = "b", sizes = {{ constant = "1000B" }}, arrivals = "all_at_once", senders = "2", receivers = "3" }},
        ]
        "#
    )
}

#[test]
fn packets_are_noted_where_they_are_asked_for() {
    let (asked, unasked) = (run_on(2, &scene(r#""host0""#)), run_alone(&scene("")));
    let arrivals = table(&asked, "arrivals");
    assert_eq!(column(arrivals, "bytes"), [1460, 1460]);
    let times = column(arrivals, "time_ps");
    assert_eq!(times[1] - times[0], 120_000);
    assert_eq!(times[1], column(table(&asked, "flows"), "delivered_ps")[0]);
    assert_eq!(asked.info.digest, unasked.info.digest);
    assert!(unasked.tables.iter().all(|table| table.name != "arrivals"));
}

#[test]
fn hosts_of_one_run_are_in_one_table_in_order_of_time() {
    let both = run_on(2, &scene(r#""host3", "host0""#));
    let times = column(table(&both, "arrivals"), "time_ps");
    assert_eq!(times.len(), 3);
    assert!(times.is_sorted());
}

#[test]
fn a_switch_and_a_name_that_is_none_are_refused() {
    for (name, said) in [("leaf0", "is a switch"), ("host9", "did you mean")] {
        let scenario = read(&scene(&format!("\"{name}\"")), "scene.toml", &[]).unwrap();
        let problem = clearway_sim::run(&scenario, 1, |_| false).expect_err("no such host").to_string();
        assert!(problem.contains("measure.arrivals[0]") && problem.contains(said), "{problem}");
    }
}
