//! Harmony end to end: what its paper and arithmetic say.

use clearway_sim::RunResult;

use crate::{column, names, of_flows, run_alone, run_on, table};

/// Two racks of four under four spines, 100 Gbps everywhere: 200 ns a link, 450 ns a switch.
const SMALL: &str = r#"fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 4, spine_rate = "100Gbps" }"#;

/// A full packet over one link.
const PACKET_PS: u64 = 120_000;
/// From one packet of a slot to the next: 1500 bytes at 0.99 x 100 Gbps / 8, rounded up.
const PERIOD_PS: u64 = 969_697;

fn counter(result: &RunResult, name: &str) -> u64 {
    let counters = table(result, "counters");
    let values = names(counters, "counter").into_iter().zip(column(counters, "value"));
    values.filter(|counter| counter.0 == name).map(|counter| counter.1).sum()
}

/// No message's anything is left anywhere, and nothing was lost.
fn all_is_quiet(result: &RunResult) {
    assert_eq!(counter(result, "busy_at_end"), 0, "{}", result.scenario_toml);
    assert_eq!(counter(result, "switch_held_at_end"), 0, "{}", result.scenario_toml);
    assert_eq!(counter(result, "malformed") + counter(result, "switch_malformed"), 0);
    for cause in ["overflow_packets", "dead_packets"] {
        assert_eq!(column(table(result, "links"), cause).iter().sum::<u64>(), 0, "{cause}");
    }
    assert_eq!(
        counter(result, "failures_seen") + counter(result, "attempts_failed") + counter(result, "requests_again"),
        0
    );
    assert_eq!(counter(result, "switch_reclaimed") + counter(result, "completes_missed"), 0);
}

/// A message from host 0 in an idle network, so many links away: how long it takes to be delivered.
fn lone(packets: u64, to: u32) -> u64 {
    let result = run_alone(&format!(
        r#"
        transport = "harmony"
        {SMALL}
        [[traffic]]
        sizes = {{ constant = "{}B" }}
        arrivals = "all_at_once"
        senders = "0"
        receivers = "{to}"
        flows = 1
        "#,
        packets * 1460
    ));
    all_is_quiet(&result);
    of_flows(&result, "fct_ps")[0]
}

#[test]
fn a_lone_message_has_all_slots_after_one_round_trip() {
    for packets in 1..=24 {
        // Eight packets leave back to back, one a slot; each slot's next is due a period later.
        let last = (packets - 1) / 8 * PERIOD_PS + (packets - 1) % 8 * PACKET_PS;
        // To the neighbour over two links and a switch; to another rack over four and three.
        let flight = [2 * 200_000 + 450_000, 4 * 200_000 + 3 * 450_000];
        let expected = [2, 4].map(|links| links * (2 * 3_200 + PACKET_PS)).into_iter().zip(flight);
        let [near, far] =
            [0, 1].map(|way| expected.clone().nth(way).map(|(sent, flight)| sent + 3 * flight + last).unwrap());
        assert_eq!(lone(packets, 1), near, "{packets} packets");
        // On other ways completes of other slots may overtake the last packet: up to seven, 40 bytes each.
        let fct = lone(packets, 4);
        assert!((far..=far + 7 * 3_200).contains(&fct), "{packets} packets: {fct} for {far}");
    }
}

#[test]
fn the_paper_s_fabric_carries_half_its_load_of_128_kb_messages_without_a_loss() {
    let result = run_on(
        2,
        r#"
        transport = "harmony"
        [[traffic]]
        sizes = { constant = "128KB" }
        arrivals = { poisson = { load = 0.5 } }
        duration = "300us"
        "#,
    );
    all_is_quiet(&result);
    assert_eq!(result.info.flows_completed + counter(&result, "rejected"), result.info.flows);
}
