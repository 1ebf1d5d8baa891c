//! Fabrics for training and for large machines: what a permutation takes on each, by arithmetic.

use clearway_sim::RunResult;

use crate::{column, names, of_link, of_links, run_alone, run_both, table};

/// Every host sends so many bytes to the host `by` farther on, all at once, on a fabric that loses nothing.
fn shift(fabric: &str, balancing: &str, by: u32, bytes: u64) -> RunResult {
    let result = run_both(&format!(
        "transport = 'udp'\nflow_control = 'per_flow_queues'\n\
         measure = {{ interval = '0s', completion = 'delivered' }}\n\
         switch = {{ balancing = '{balancing}', buffer = {{ shared = {{ bytes = '50MB' }} }} }}\nfabric.{fabric}\n\
         [[traffic]]\nsizes.constant = '{bytes}B'\npattern = {{ stride = {{ by = {by} }} }}\narrivals = 'all_at_once'"
    ));
    assert!(names(table(&result, "flows"), "status").iter().all(|status| *status == "completed"));
    assert_eq!(of_links(&result, "overflow_packets"), 0);
    result
}

/// The rate of the slowest flow, headers counted, in Gbps.
fn slowest_gbps(result: &RunResult, bytes: u64) -> f64 {
    let longest = *column(table(result, "flows"), "fct_ps").iter().max().unwrap() as f64;
    (bytes as f64 / 1_460.0 * 1_500.0) * 8e3 / longest
}

#[test]
fn the_worst_permutation_of_a_dragonfly_has_one_link_for_a_group() {
    // Eight hosts of a group share a link to the next group, of 100 Gbps.
    let result = shift("dragonfly = { groups = 9 }", "ecmp", 8, 1_460_000);
    let rate = slowest_gbps(&result, 1_460_000);
    assert!((rate / 12.5 - 1.0).abs() < 0.02, "{rate}");
    // Two groups of a half each: four links join every two of three groups, two hosts a link.
    let fewer = shift("dragonfly = { groups = 3 }", "spray", 8, 1_460_000);
    let rate = slowest_gbps(&fewer, 1_460_000);
    assert!(rate > 30.0 && rate <= 50.0, "{rate}");
}

#[test]
fn the_worst_permutation_of_a_dragonfly_plus_has_one_link_for_a_group() {
    let fabric = "dragonfly_plus = { leaves_per_group = 2, spines_per_group = 2, hosts_per_leaf = 2 }";
    // Five groups of four hosts; a link of 200 Gbps between every two.
    let rate = slowest_gbps(&shift(fabric, "ecmp", 4, 1_460_000), 1_460_000);
    assert!((rate / 50.0 - 1.0).abs() < 0.02, "{rate}");
}

#[test]
fn a_clos_carries_what_its_tiers_let_through() {
    // From pod to pod: 2:1 at the leaves and 2:1 above make a quarter of the hosts' rate.
    let fabric = "clos = { pods = 2, leaves_per_pod = 2, hosts_per_leaf = 4, aggs_per_pod = 2, cores_per_agg = 2, \
                  leaf_oversubscription = 2.0, agg_oversubscription = 2.0 }";
    let rate = slowest_gbps(&shift(fabric, "round_robin", 8, 1_460_000), 1_460_000);
    assert!((rate / 25.0 - 1.0).abs() < 0.03, "{rate}");
    // Within a pod only the first counts.
    let rate = slowest_gbps(&shift(fabric, "round_robin", 4, 1_460_000), 1_460_000);
    assert!((rate / 25.0 - 1.0).abs() < 0.03 || (rate / 50.0 - 1.0).abs() < 0.03, "{rate}");
}

#[test]
fn planes_carry_a_share_each_and_one_that_dies_takes_its_share() {
    let scene = |failure: &str| {
        run_alone(&format!(
            "transport = 'udp'\nmeasure = {{ interval = '0s', completion = 'delivered' }}\nswitch.balancing = 'spray'\n\
             {failure}\nfabric.multi_plane = {{ planes = 4, racks = 2, hosts_per_rack = 1, spines = 1 }}\n\
             [[traffic]]\nsizes.constant = '1460KB'\narrivals = 'all_at_once'\n\
             senders = '0'\nreceivers = '1'\nflows = 1"
        ))
    };
    let whole = scene("");
    for plane in 0..4 {
        assert_eq!(of_link(&whole, "host0", &format!("leaf{}", 2 * plane), "sent_packets"), 250);
    }
    // 1,000 packets, handed in at the rate of all links; then two hops at 400 Gbps and the last.
    let fct = |result: &RunResult| column(table(result, "flows"), "fct_ps")[0];
    let hops = 3 * 650_000 + 200_000 + 30_000 * 2 + 120_000;
    assert_eq!(fct(&whole), 999 * 30_000 + 120_000 + hops);
    let without = scene("failure = [{ at = '0s', switch = 'spine1' }]\nreroute_delay = '0s'");
    assert_eq!(of_link(&without, "host0", "leaf2", "sent_packets"), 0);
    // A third by each link that is left, but for what a port has more of than another: a ring of 16 packets at most.
    assert!(fct(&without).abs_diff(334 * 120_000 + hops) <= 16 * 120_000, "{}", fct(&without));
}

#[test]
fn rails_that_nothing_joins_keep_a_packet_on_its_rail() {
    let result = run_alone(
        "transport = 'udp'\nmeasure = { interval = '0s', completion = 'delivered' }\nswitch.balancing = 'ecmp'\n\
         fabric.rails = { blocks = 1, servers_per_block = 4, rails = 4, spines = 0 }\n\
         [[traffic]]\nsizes.constant = '14600B'\npattern = 'permutation'\narrivals = 'all_at_once'",
    );
    for rail in 0..4 {
        let rail = format!("rail{rail}");
        let [up, down] = [0, 1].map(|way| {
            (0..4)
                .map(|host| format!("host{host}"))
                .map(|host| {
                    let (from, to) = if way == 0 { (&host, &rail) } else { (&rail, &host) };
                    of_link(&result, from, to, "sent_packets")
                })
                .sum::<u64>()
        });
        assert_eq!(up, down);
    }
}
