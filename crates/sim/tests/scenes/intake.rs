//! Hosts that take packets in more slowly than their links bring them (Pyrrha, section 4.4: host congestion).

use crate::{column, names, of_flows, run_on, table};
use clearway_sim::RunResult;

/// Host 0 sends 2 MB to host 2 at line rate, and host 1 sends 30 Gbps to host 3 by the same links between switches.
/// Hosts take in 50 Gbps.
fn scene(flow_control: &str, buffer: &str) -> RunResult {
    let text = format!(
        r#"
        {flow_control}
        measure = {{ interval = "5us", end = "2ms" }}
        host = {{ intake_rate = "50Gbps", intake_buffer = "{buffer}" }}
        switch.buffer = {{ shared = {{ bytes = "200KB" }} }}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1, spine_rate = "100Gbps" }}
        [[traffic]]
        name = "slow receiver"
        transport = {{ rdma = {{ window = "unlimited", recovery = "irn" }} }}
        sizes = {{ constant = "2MB" }}
        arrivals = "all_at_once"
        pattern = {{ incast = {{ degree = 1 }} }}
        senders = "0"
        receivers = "2"
        [[traffic]]
        name = "victim"
        transport = {{ udp = {{ rate = "30Gbps", class = 3 }} }}
        sizes = {{ constant = "600KB" }}
        arrivals = "all_at_once"
        pattern = {{ incast = {{ degree = 1 }} }}
        senders = "1"
        receivers = "3"
        "#
    );
    let result = run_on(1, &text);
    assert_eq!(result.info.digest, run_on(2, &text).info.digest);
    result
}

fn lost(result: &RunResult) -> u64 {
    let counters = table(result, "counters");
    let values = column(counters, "value");
    names(counters, "counter")
        .iter()
        .zip(values)
        .filter(|(name, _)| **name == "intake_lost_packets")
        .map(|(_, v)| v)
        .sum()
}

/// Microseconds in which a host takes in so many bytes of payload, 1,460 to a packet of 1,500.
fn intake_us(bytes: f64) -> f64 {
    bytes * 1500.0 / 1460.0 * 8.0 / 50e3
}

#[test]
fn without_flow_control_a_slow_host_loses_what_it_has_no_room_for() {
    assert!(lost(&scene("", "20KB")) > 0);
}

#[test]
fn pfc_and_pyrrha_hold_back_what_a_host_cannot_take_in() {
    for control in ["pfc", "pyrrha"] {
        let result = scene(&format!("flow_control = \"{control}\""), "100KB");
        assert_eq!(lost(&result), 0, "{control}");
        // The host takes packets in one after the other, and the first came after the unloaded way.
        let fct = of_flows(&result, "fct_ps")[0] as f64 * 1e-6;
        let least = intake_us(2e6);
        assert!((least..1.05 * least + 10.0).contains(&fct), "{control}: {fct} us, and its host needs {least}");
    }
}

#[test]
fn a_slow_host_is_a_root_under_pyrrha_and_a_storm_under_pfc() {
    let (pfc, pyrrha) = (scene("flow_control = \"pfc\"", "100KB"), scene("flow_control = \"pyrrha\"", "100KB"));
    // 30 Gbps fit beside what the slow host takes in. With PFC the class is paused on the links that both flows share.
    let alone_us = 600e3 * 1500.0 / 1460.0 * 8.0 / 30e3;
    let [pfc, pyrrha] = [pfc, pyrrha].map(|result| of_flows(&result, "fct_ps")[1] as f64 * 1e-6 / alone_us);
    assert!(pyrrha < 1.05 && pfc > 1.2, "{pyrrha} and {pfc} times as long as alone");
}

/// A link that no packet of the flow passes fails, and routes change 50 us later, at any instant of the pauses.
#[test]
fn a_failure_elsewhere_changes_nothing_for_a_slow_host() {
    for at in (300..316).step_by(2) {
        let text = format!(
            r#"
            transport = {{ rdma = {{ window = "unlimited" }} }}
            flow_control = "pyrrha"
            reroute_delay = "50us"
            measure = {{ interval = "10us", drain = "20ms" }}
            host = {{ intake_rate = "40Gbps", intake_buffer = "200KB" }}
            fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 2 }}
            switch.buffer = {{ shared = {{ bytes = "16MB" }} }}
            [[failure]]
            link = ["leaf1", "spine1"]
            at = "{at}us"
            [[traffic]]
            name = "f"
            sizes = {{ constant = "4MB" }}
            senders = "1"
            receivers = "0"
            arrivals = "all_at_once"
            flows = 1
            "#
        );
        let result = run_on(1, &text);
        assert_eq!(lost(&result), 0, "{at}");
        let ends = of_flows(&result, "fct_ps")[0] as f64 * 1e-6;
        let right = intake_us(4e6) * 50.0 / 40.0;
        assert!((ends / right - 1.0).abs() < 0.01, "{at}: {ends} and {right}");
    }
}
