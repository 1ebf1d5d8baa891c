//! Homa, and Aeolus on it, in whole networks: what arithmetic and their papers say.

use clearway_sim::RunResult;

use crate::{column, counter, of_flows, of_link, run_both, table};

const BOTH: [&str; 2] = ["homa", "homa_aeolus"];

fn lost(result: &RunResult) -> u64 {
    column(table(result, "links"), "overflow_packets").iter().sum()
}

fn incast(transport: &str, senders: u32, size: &str) -> String {
    format!(
        r#"
        transport = {transport}
        measure.interval = "0s"
        fabric.star.hosts = {}
        [[traffic]]
        sizes.constant = "{size}"
        arrivals = "all_at_once"
        pattern.incast.degree = {senders}
        receivers = "0"
        flows = {senders}
        "#,
        senders + 1
    )
}

#[test]
fn a_lone_message_has_its_links_to_itself() {
    for transport in BOTH {
        let result = run_both(&format!(
            r#"
            transport = "{transport}"
            fabric.leaf_spine = {{}}
            [[traffic]]
            sizes.constant = "1460KB"
            arrivals = "all_at_once"
            senders = "5"
            receivers = "143"
            flows = 1
            "#
        ));
        // A thousand packets one behind the other, and the last one's way; Aeolus has a probe of 40 B among them.
        let way = 2 * 30_000 + 120_000 + 4 * 200_000 + 3 * 450_000;
        let probe = if transport == "homa" { 0 } else { 3_200 };
        let delivered = of_flows(&result, "delivered_ps")[0];
        let ideal = 1_000 * 120_000 + way;
        assert!((ideal..=ideal + probe).contains(&delivered), "{transport}: {delivered} {ideal}");
        assert_eq!((of_flows(&result, "resent_packets")[0], lost(&result)), (0, 0));
    }
}

#[test]
fn an_incast_of_fifty_costs_homa_a_timeout_and_aeolus_nothing() {
    // RTTbytes of a star: 1.89 us or 16 packets. 50 senders have 1.2 MB of them, for a queue of 500 KB.
    let busy = 50 * 88 * 120_000;
    let last = |result: &RunResult| *of_flows(result, "delivered_ps").iter().max().unwrap();
    let homa = run_both(&incast("\"homa\"", 50, "128480B"));
    assert!(lost(&homa) > 400 && counter(&homa, "resends") > 0);
    assert!(last(&homa) > 2_000_000_000, "what was lost last is asked for after 2 ms");
    for queue in ["port", "class", "one"] {
        let transport = format!("{{ homa_aeolus.queue = \"{queue}\" }}");
        let aeolus = run_both(&incast(&transport, 50, "128480B"));
        // Only unscheduled packets are lost, each is granted again, and the link never waits but for the first round
        // trips.
        assert_eq!(counter(&aeolus, "known_lost"), lost(&aeolus));
        assert_eq!((counter(&aeolus, "resent"), counter(&aeolus, "resends")), (lost(&aeolus), 0));
        assert!(lost(&aeolus) > 400, "{}", lost(&aeolus));
        let end = last(&aeolus);
        assert!(busy < end && end < busy + 10_000_000, "{queue}: {end}");
    }
}

#[test]
fn aeolus_keeps_unscheduled_packets_out_of_the_way() {
    // 40 senders of 10 packets each, all unscheduled, and a queue that takes four of 400; then what is granted to two
    // at a time, 16 packets each, and forty probes.
    let result = run_both(&incast("{ homa_aeolus.homa.overcommitment = 2 }", 40, "14600B"));
    let longest = of_link(&result, "switch0", "host0", "queued_bytes_max");
    assert!((6_000..=6_000 + 2 * 16 * 1_500 + 40 * 40).contains(&longest), "{longest}");
    assert_eq!(counter(&result, "resends"), 0);
    // Homa's takes all that there is room for.
    let homa = run_both(&incast("\"homa\"", 40, "14600B"));
    let longest = of_link(&homa, "switch0", "host0", "queued_bytes_max");
    assert!(longest > 498_000, "{longest}");
}

#[test]
fn short_messages_pass_long_ones() {
    // A long message to the same host, and one of one packet in its middle: it waits for no more than the packet being
    // sent.
    let result = run_both(
        r#"
        transport = { homa = { cutoffs = ["1460B"] } }
        fabric.star.hosts = 3
        [[traffic]]
        name = "long"
        sizes.constant = "2MB"
        arrivals = "all_at_once"
        senders = "1"
        receivers = "0"
        flows = 1
        [[traffic]]
        name = "short"
        sizes.constant = "1460B"
        arrivals = { periodic = { every = "20us" } }
        senders = "2"
        receivers = "0"
        flows = 6
        "#,
    );
    let sizes = of_flows(&result, "bytes");
    let fct = of_flows(&result, "fct_ps");
    let alone = 2 * (120_000 + 200_000) + 450_000;
    for (size, fct) in sizes.iter().zip(fct).filter(|flow| *flow.0 == 1_460) {
        assert!((alone..=alone + 120_000).contains(fct), "{size} B took {fct}");
    }
}

#[test]
fn more_than_the_network_carries_is_carried_all_the_same() {
    for transport in BOTH {
        let result = run_both(&format!(
            r#"
            transport = "{transport}"
            fabric.leaf_spine = {{ racks = 4, hosts_per_rack = 4, spines = 2, spine_rate = "200Gbps" }}
            [[traffic]]
            sizes = "google_rpc"
            arrivals.poisson.load = 1.4
            flows = 20000
            "#
        ));
        assert_eq!(result.info.flows_completed, 20_000, "{transport}");
    }
}

#[test]
fn a_host_cut_off_gets_everything_once() {
    // For longer than a dozen timeouts; that everything is reported once, the audit sees.
    for transport in BOTH {
        let result = run_both(&format!(
            r#"
            transport = "{transport}"
            fabric.star.hosts = 4
            reroute_delay = "5us"
            failure = [{{ at = "20us", until = "30ms", link = ["host0", "switch0"] }}]
            [[traffic]]
            sizes = {{ uniform = {{ min = "1B", max = "200KB" }} }}
            arrivals.poisson.load = 0.8
            flows = 60
            "#
        ));
        assert_eq!(result.info.flows_completed, 60, "{transport}");
    }
}
