//! Switches that learn of a failure one by one: what meets old tables goes in circles, and that is counted and ends.

use crate::{column, counter, names, of_link, of_links, run_both, table};

/// Five switches in a ring with a host each, 770 ns a hop. The link 0 - 1 fails at 100 us, which its ends know at 120
/// us. Host 1 sends one packet to host 0 each 10 us.
fn ring(settings: &str) -> String {
    format!(
        r#"
        transport = "udp"
        measure.interval = "0s"
        fabric.torus.dims = [5]
        fabric.torus.rate = "100Gbps"
        fabric.torus.host_rate = "100Gbps"
        fabric.torus.propagation = "200ns"
        fabric.torus.host_propagation = "200ns"
        fabric.torus.switch_delay = "450ns"
        failure = [{{ at = "100us", link = ["switch0", "switch1"] }}]
        reroute_delay = "20us"
        {settings}
        [[traffic]]
        sizes.constant = "1460B"
        arrivals.periodic.every = "10us"
        senders = "1"
        receivers = "0"
        flows = 60
        "#
    )
}

#[test]
fn a_circle_arises_where_tables_differ_and_ends_when_they_agree() {
    let result = run_both(&ring("reroute_per_hop = '200us'"));
    // From 120 us on switch 1 goes the other way round, by switch 2, which hears of it at 320 us and until then sends
    // back to 1. A packet is at its n-th switch 770 ns x n after its start, and lost at the 64th, which is switch 2:
    // 49.28 us. So is what starts from 120 us (what comes before 120 us finds the link dead: that of 100 us and of 110
    // us) up to 270 us. That of 280 us is at switch 2 for the 26th time at 320.04 us, and goes on.
    assert_eq!(of_links(&result, "dead_packets"), 2);
    assert_eq!(of_link(&result, "switch2", "switch1", "expired_packets"), 16);
    assert_eq!(of_links(&result, "expired_packets"), 16);
    assert_eq!(of_links(&result, "unroutable_packets"), 0);
    let status = names(table(&result, "flows"), "status");
    let failed: Vec<usize> = (0..60).filter(|&flow| status[flow] == "failed").collect();
    assert_eq!(failed, (10..28).collect::<Vec<_>>());
    // Those of 280 to 310 us have been round: the first 52 switches in the circle, then 3, 4 and 0.
    let flight = |flow: usize| column(table(&result, "flows"), "propagation_ps")[flow];
    let (link, switch) = (200_000, 450_000);
    assert_eq!(flight(28), 56 * link + 55 * switch);
    assert_eq!(flight(40), 6 * link + 5 * switch, "by 1, 2, 3, 4 and 0");
}

#[test]
fn all_at_once_there_is_no_circle() {
    let result = run_both(&ring(""));
    assert_eq!((of_links(&result, "dead_packets"), of_links(&result, "expired_packets")), (2, 0));
    assert_eq!(names(table(&result, "flows"), "status").iter().filter(|status| **status == "failed").count(), 2);
    // Written out, it is the same.
    let zero = run_both(&ring("reroute_per_hop = '0s'\nreroute_compute_max = '0s'"));
    assert_eq!(zero.info.digest, result.info.digest);
}

#[test]
fn time_to_compute_alone_makes_circles_too() {
    // Switch 1 is ready before switch 2 with some seeds, and after it with others.
    let expired: Vec<u64> = (1..9)
        .map(|seed| {
            of_links(&run_both(&ring(&format!("reroute_compute_max = '400us'\nseed = {seed}"))), "expired_packets")
        })
        .collect();
    assert!(expired.contains(&0) && expired.iter().any(|count| *count > 0), "{expired:?}");
}

#[test]
fn what_is_cut_off_has_no_way_and_that_is_counted() {
    // A spine of one: when its link is known to be dead, the leaf knows no way.
    let result = run_both(
        r#"
        transport = "udp"
        measure.interval = "0s"
        fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 1 }
        failure = [{ at = "10us", link = ["leaf0", "spine0"] }]
        reroute_delay = "10us"
        [[traffic]]
        sizes.constant = "14600B"
        arrivals = "all_at_once"
        senders = "0"
        receivers = "2"
        start = "30us"
        flows = 1
        "#,
    );
    assert_eq!(of_link(&result, "host0", "leaf0", "unroutable_packets"), 10);
    assert_eq!(of_links(&result, "unroutable_packets"), 10);
}

#[test]
fn pyrrha_says_until_when_its_promise_was_looked_at() {
    let result = run_both(
        r#"
        transport = "rdma"
        flow_control = { pyrrha = { k_pause = 0.5, k_resume = 0.2 } }
        measure.interval = "2us"
        switch.buffer = { shared = { bytes = "400KB" } }
        fabric.leaf_spine = { racks = 3, hosts_per_rack = 3, spines = 2, spine_rate = "100Gbps" }
        failure = [{ at = "20us", until = "200us", link = ["leaf0", "spine0"] }]
        reroute_delay = "10us"
        reroute_per_hop = "30us"
        [[traffic]]
        name = "incast"
        sizes = { constant = "150KB" }
        arrivals = "all_at_once"
        pattern.incast.degree = 6
        receivers = "0"
        flows = 6
        [[traffic]]
        name = "mix"
        sizes = { uniform = { min = "1B", max = "60KB" } }
        arrivals.poisson.load = 0.5
        flows = 80
        "#,
    );
    let detail = &result.info.audit.iter().find(|finding| finding.name.contains("onward path")).unwrap().detail;
    assert!(detail.contains("checked until 30us, when the tables of switches began to differ"), "{detail}");
    assert!(counter(&result, "pauses") > 0 || of_links(&result, "pauses") > 0);
}
