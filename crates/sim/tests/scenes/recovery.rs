//! What every transport that promises delivery must do in a network that loses: deliver all of it, on one thread as on
//! two.

use clearway_sim::RunResult;

use crate::{of_links, run_alone, run_on};

/// All of the catalogue but UDP, which promises nothing, and those that refuse what the network has no room for: they
/// say within their bounds that a message was rejected or has failed, and leave it to the application what then (see
/// the scenes of Harmony).
fn reliable() -> impl Iterator<Item = &'static str> {
    catalogue::Transport::NAMES.iter().copied().filter(|&name| name != "udp" && !crate::reserves(name))
}

/// Short and long flows all to all among 16 hosts under two spines, at a load of 0.5.
fn scene(transport: &str, settings: &str, traffic: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.interval = "0s"
        fabric.leaf_spine = {{ racks = 4, hosts_per_rack = 4, spines = 2, spine_rate = "200Gbps" }}
        {settings}

        [[traffic]]
        name = "mix"
        sizes = {{ uniform = {{ min = "1KB", max = "300KB" }} }}
        arrivals = {{ poisson = {{ load = 0.5 }} }}
        flows = 300
        {traffic}
        "#
    )
}

/// Runs it on one and on two threads; the audit that both pass has every flow end, and here all complete.
fn all_complete(toml: &str) -> RunResult {
    let (alone, together) = (run_alone(toml), run_on(2, toml));
    assert_eq!(alone.info.digest, together.info.digest);
    assert_eq!(alone.info.flows_completed, alone.info.flows, "{toml}");
    alone
}

#[test]
fn a_spine_that_fails_and_comes_back_loses_packets_and_no_flow() {
    for transport in reliable() {
        let failure = r#"
            reroute_delay = "20us"
            failure = [{ at = "30us", until = "150us", switch = "spine0" }]
        "#;
        let result = all_complete(&scene(transport, failure, ""));
        assert!(of_links(&result, "dead_packets") > 0, "{transport}: the failure met nothing");
    }
}

#[test]
fn a_host_that_is_cut_off_for_a_while_gets_all_that_is_for_it() {
    for transport in reliable() {
        let failure = r#"
            reroute_delay = "20us"
            failure = [{ at = "30us", until = "500us", link = ["host3", "leaf0"] }]
        "#;
        all_complete(&scene(transport, failure, ""));
    }
}

#[test]
fn an_incast_into_a_buffer_of_20_packets_loses_packets_and_no_flow() {
    let incast = r#"
        [[traffic]]
        name = "incast"
        sizes = { constant = "40KB" }
        pattern = { incast = { degree = 12 } }
        arrivals = { periodic = { every = "100us" } }
        duration = "400us"
    "#;
    for transport in reliable() {
        let buffer = r#"switch.buffer.per_port.bytes = "30KB""#;
        let result = all_complete(&scene(transport, buffer, incast));
        // Queues that a transport brings may cut packets off in place of losing them.
        let too_much = of_links(&result, "overflow_packets") + of_links(&result, "trimmed_packets");
        assert!(too_much > 0, "{transport}: nothing was too much");
    }
}
