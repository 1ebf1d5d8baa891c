//! Links that work badly and are not routed around: they lose packets, or transmit more slowly than they should.

use clearway_sim::RunResult;

use crate::{column, names, of_flows, of_link, of_links, run_both, table};

/// A leaf-spine of two racks and one spine, every link 100 Gbps.
fn scene(transport: &str, failures: &str, traffic: &str) -> String {
    format!(
        r#"
        transport = {transport}
        measure.interval = "0s"
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1, spine_rate = "100Gbps" }}
        failure = [{failures}]
        {traffic}
        "#
    )
}

/// One message from host 0 to host 2.
fn flow(packets: u64) -> String {
    format!(
        "[[traffic]]\nsizes.constant = '{}B'\narrivals = 'all_at_once'\nsenders = '0'\nreceivers = '2'\nflows = 1",
        packets * 1_460
    )
}

/// Of a link and the pipeline of the switch behind it: 200 + 450 ns.
const HOP_PS: u64 = 650_000;
const FULL_PS: u64 = 120_000;

#[test]
fn a_lossy_link_loses_its_share_of_packets_of_any_length() {
    for (loss, packets) in [(1e-3, 40_000u64), (0.2, 5_000)] {
        let failure = format!("{{ at = '0s', link = ['host0', 'leaf0'], loss = {loss:e} }}");
        let result = run_both(&scene("'udp'", &failure, &flow(packets)));
        let lost = of_link(&result, "host0", "leaf0", "lossy_packets");
        let mean = packets as f64 * loss;
        // Four standard deviations of a binomial distribution.
        assert!((lost as f64 - mean).abs() <= 4.0 * (mean * (1.0 - loss)).sqrt(), "{loss}: {lost} for {mean}");
        assert_eq!(of_link(&result, "leaf0", "spine0", "sent_packets"), packets - lost);
        assert_eq!(of_links(&result, "lossy_packets"), lost);
        assert_eq!(of_links(&result, "corrupted_packets") + of_links(&result, "dead_packets"), 0);
        assert_eq!(names(table(&result, "flows"), "status"), ["failed"]);
    }
}

#[test]
fn a_link_that_loses_all_is_a_black_hole_in_one_direction() {
    let failure = "{ at = '0s', link = ['leaf0', 'spine0'], loss = 1.0, one_way = true }";
    let back = flow(10).replace("senders = '0'", "senders = '2'").replace("receivers = '2'", "receivers = '0'");
    let result = run_both(&scene(
        "'udp'",
        failure,
        &(flow(10) + "\n" + &back.replace("[[traffic]]", "[[traffic]]\nname = 'b'")),
    ));
    assert_eq!(
        of_link(&result, "leaf0", "spine0", "lossy_packets"),
        of_link(&result, "leaf0", "spine0", "sent_packets")
    );
    assert_eq!(of_link(&result, "spine0", "leaf0", "lossy_packets"), 0);
    // All ten packets of each message, and the answer to the second's, which is lost.
    assert_eq!(of_link(&result, "spine0", "leaf0", "sent_packets"), 10);
    assert_eq!(of_link(&result, "leaf0", "spine0", "sent_packets"), 11);
}

#[test]
fn a_slow_link_sends_each_packet_in_its_time() {
    let failure = "{ at = '0s', link = ['spine0', 'leaf0'], rate = '10Gbps' }";
    let result = run_both(&scene("'udp'", failure, &flow(100)));
    let due = FULL_PS + HOP_PS + 100 * 10 * FULL_PS + HOP_PS + FULL_PS + HOP_PS + FULL_PS + 200_000;
    assert_eq!(of_flows(&result, "fct_ps"), [due]);
    // Nobody is told: alone in the network, it would take as long as ever.
    let whole = run_both(&scene("'udp'", "", &flow(100)).replace("failure = []", ""));
    assert_eq!(of_flows(&result, "ideal_ps"), of_flows(&whole, "ideal_ps"));
    assert_eq!(column(table(&result, "links"), "rate_bps"), column(table(&whole, "links"), "rate_bps"));
}

#[test]
fn a_packet_that_is_being_sent_keeps_its_time_in_both_directions_of_change() {
    // At the leaf a packet begins each 120 ns from 770 ns on. The second, at 890, is under way at 1,000 ns and keeps
    // its 120 ns. Those that begin at 1,010, 2,210, 3,410 and 4,610 take 1,200 ns, the last of them beyond 5,000 ns;
    // from 5,810 ns on the link is whole.
    let failure = "{ at = '1us', until = '5us', link = ['leaf0', 'spine0'], rate = '10Gbps' }";
    let result = run_both(&scene("'udp'", failure, &flow(50)));
    let gone = FULL_PS + HOP_PS + (2 + 4 * 10 + 44) * FULL_PS;
    assert_eq!(of_flows(&result, "fct_ps"), [gone + HOP_PS + FULL_PS + HOP_PS + FULL_PS + 200_000]);
    // The other direction of the cable was slow as well, but nothing came by it then.
    let one_way = failure.replace(" }", ", one_way = true }");
    let again = run_both(&scene("'udp'", &one_way, &flow(50)));
    assert_eq!(of_flows(&again, "fct_ps"), of_flows(&result, "fct_ps"));
    let other = run_both(&scene("'udp'", &one_way.replace("'leaf0', 'spine0'", "'spine0', 'leaf0'"), &flow(50)));
    assert!(of_flows(&other, "fct_ps") < of_flows(&result, "fct_ps"));
}

#[test]
fn a_slow_host_link_holds_its_host_back() {
    let failure = "{ at = '0s', link = ['host0', 'leaf0'], rate = '25Gbps' }";
    let result = run_both(&scene("'udp'", failure, &flow(20)));
    let due = 20 * 4 * FULL_PS + HOP_PS + FULL_PS + HOP_PS + FULL_PS + HOP_PS + FULL_PS + 200_000;
    assert_eq!(of_flows(&result, "fct_ps"), [due]);
    assert_eq!(of_link(&result, "host0", "leaf0", "dead_packets"), 0);
}

#[test]
fn a_switch_that_cuts_through_sees_a_slow_link_s_head_later_and_waits_for_its_tail() {
    let failure = "{ at = '0s', link = ['leaf0', 'spine0'], rate = '10Gbps' }";
    let result = run_both(&format!("switch.cut_through = true\n{}", scene("'udp'", failure, &flow(1))));
    // The first 64 bytes are at the leaf after 5.12 ns and a hop. From when it begins to send, the last bit is 1,200 ns
    // and three hops away from the host, the last one without a switch behind it.
    let due = 5_120 + HOP_PS + 10 * FULL_PS + HOP_PS + HOP_PS + 200_000;
    assert_eq!(of_flows(&result, "fct_ps"), [due]);
}

/// The audit's finding on queues.
fn queues(result: &RunResult) -> &str {
    let finding = result.info.audit.iter().find(|finding| finding.name == "queues are within what is guaranteed");
    &finding.expect("Harmony guarantees them").detail
}

#[test]
fn the_audit_says_from_when_on_nothing_is_guaranteed() {
    let traffic = r#"
        [[traffic]]
        sizes.constant = "64KB"
        arrivals.poisson.load = 0.6
        flows = 200
    "#;
    let failure = "{ at = '20us', until = '60us', link = ['leaf0', 'spine0'], rate = '10Gbps' }";
    for transport in ["'harmony'", "'fastpass'"] {
        // `run_both` finds the audit clean.
        let result = run_both(&scene(transport, failure, traffic));
        let detail = queues(&result);
        assert!(detail.contains("the guarantee ended at 20us, when a link slowed down"), "{detail}");
        let since: u64 = detail.rsplit(' ').nth(2).unwrap().parse().unwrap();
        assert!(since > 0, "a tenth of the rate breaks the bound: {detail}");
        let whole = run_both(&scene(transport, "", traffic).replace("failure = []", ""));
        assert!(!queues(&whole).contains("the guarantee ended"), "{}", queues(&whole));
    }
}
