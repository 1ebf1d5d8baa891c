//! Links that damage bits: packets are lost as often as arithmetic says, each loss has its cause, and transports mend
//! it.

use clearway_sim::RunResult;

use crate::{names, of_link, of_links, run_both, table};

/// A leaf-spine of two racks; the link of host 0, and another, damage bits.
fn scene(transport: &str, noise: &str, traffic: &str) -> String {
    format!(
        r#"
        transport = {transport}
        measure.interval = "0s"
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1, spine_rate = "100Gbps" }}
        failure = [{noise}]
        {traffic}
        "#
    )
}

fn flow(bytes: &str) -> String {
    format!(
        "[[traffic]]\nname = 'one'\nsizes.constant = '{bytes}'\narrivals = 'all_at_once'\nsenders = '0'\n\
         receivers = '2'\nflows = 1"
    )
}

/// How many of `packets` of `bytes` are lost at this rate, and four standard deviations.
fn due(packets: u64, bytes: i32, bit_error_rate: f64) -> (f64, f64) {
    let hit = 1.0 - (1.0 - bit_error_rate).powi(8 * bytes);
    (packets as f64 * hit, 4.0 * (packets as f64 * hit * (1.0 - hit)).sqrt())
}

fn corrupted(result: &RunResult, from: &str, to: &str) -> u64 {
    of_link(result, from, to, "corrupted_packets")
}

#[test]
fn packets_are_lost_as_often_as_one_of_their_bits_is_wrong() {
    for (bit_error_rate, packets) in [(1e-5, 20_000u64), (1e-6, 40_000)] {
        let noise = format!("{{ at = '0s', link = ['host0', 'leaf0'], bit_error_rate = {bit_error_rate:e} }}");
        let result = run_both(&scene("'udp'", &noise, &flow(&format!("{}B", packets * 1460))));
        let lost = corrupted(&result, "host0", "leaf0");
        let (mean, slack) = due(packets, 1_500, bit_error_rate);
        assert!((lost as f64 - mean).abs() <= slack, "{bit_error_rate}: {lost} for {mean} +- {slack}");
        // What the leaf got is the rest; nothing else is lost anywhere, and nothing is lost for another reason.
        assert_eq!(of_link(&result, "leaf0", "spine0", "sent_packets"), packets - lost);
        assert_eq!(of_links(&result, "corrupted_packets"), lost);
        assert_eq!(of_links(&result, "dead_packets") + of_links(&result, "overflow_packets"), 0);
        assert_eq!(names(table(&result, "flows"), "status"), ["failed"]);
    }
}

#[test]
fn bits_are_damaged_from_then_until_then_in_both_directions() {
    // A packet each 120 ns: 10,000 until 1.2 ms. Half of them while the link is noisy.
    let noise = "{ at = '300us', until = '900us', link = ['spine0', 'leaf0'], bit_error_rate = 1e-4 }";
    let result = run_both(&scene("'newreno'", noise, &flow("14600KB")));
    let [there, back] = [("leaf0", "spine0"), ("spine0", "leaf0")].map(|(from, to)| corrupted(&result, from, to));
    assert!(there > 0 && back > 0, "{there} and {back}");
    assert_eq!(of_links(&result, "corrupted_packets"), there + back);
    assert_eq!(names(table(&result, "flows"), "status"), ["completed"]);
    // Outside of the 0.6 ms nothing is lost: in that time the link carries 5,000 packets at most.
    assert!(there <= 5_000, "{there}");
    let quiet = run_both(&scene("'newreno'", "", &flow("14600KB")).replace("failure = []", ""));
    assert_eq!(of_links(&quiet, "corrupted_packets"), 0);
}

#[test]
fn errors_of_two_causes_add_up_and_those_of_different_links_are_apart() {
    let one = "{ at = '0s', link = ['host0', 'leaf0'], bit_error_rate = 5e-6 }";
    let result = run_both(&scene("'udp'", &format!("{one}, {one}"), &flow("29200KB")));
    let (mean, slack) = due(20_000, 1_500, 1e-5);
    let lost = corrupted(&result, "host0", "leaf0") as f64;
    assert!((lost - mean).abs() <= slack, "{lost} for {mean} +- {slack}");
}

/// Every transport that repeats what is lost, and every kind of flow control, over a link that loses one data packet in
/// a hundred.
#[test]
fn every_transport_lives_with_bit_errors_on_any_number_of_threads() {
    let traffic = r#"
        [[traffic]]
        name = "some"
        sizes = { uniform = { min = "1B", max = "100KB" } }
        arrivals.poisson.every = "5us"
        flows = 60
    "#;
    let noise = "{ at = '0s', link = ['host0', 'leaf0'], bit_error_rate = 1e-6 }, \
                 { at = '0s', link = ['leaf1', 'spine0'], bit_error_rate = 1e-6 }";
    for transport in catalogue::Transport::NAMES {
        let toml = scene(&format!("'{transport}'"), noise, traffic);
        let result = run_both(&toml);
        assert!(of_links(&result, "corrupted_packets") > 0, "{transport}");
        assert_eq!(of_links(&result, "dead_packets"), 0, "{transport}");
        let statuses = names(table(&result, "flows"), "status");
        assert!(statuses.iter().all(|status| *status != "unfinished"), "{transport}: {statuses:?}");
        // UDP repeats nothing; Harmony, and RSVP as its paper has it, reject what they can't reserve for in time.
        if !["udp", "harmony", "rsvp"].contains(transport) {
            assert!(statuses.iter().all(|status| *status == "completed"), "{transport}: {statuses:?}");
        }
    }
    for control in ["pfc", "bfc", "cbfc", "pyrrha", "per_flow_queues"] {
        let result = run_both(&format!("flow_control = '{control}'\n{}", scene("'newreno'", noise, traffic)));
        assert!(of_links(&result, "corrupted_packets") > 0, "{control}");
        assert!(names(table(&result, "flows"), "status").iter().all(|status| *status == "completed"), "{control}");
    }
}
