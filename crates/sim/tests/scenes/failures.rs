//! Links and switches that fail: what was on them is lost and counted, what comes later goes around once routes have
//! changed, and a repaired link is used again.

use clearway_sim::RunResult;

use crate::{NONE, column, names, of_flows, of_link, run_both, table};

/// Two racks of two hosts under two spines, every link 100 Gbps. Packets take turns at the spines.
fn scene(failures: &str, traffic: &str) -> String {
    format!(
        r#"
        transport = "udp"
        measure.interval = "0s"
        reroute_delay = "10us"
        switch.balancing = "round_robin"
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 2, spine_rate = "100Gbps" }}
        failure = [{failures}]
        {traffic}
        "#
    )
}

/// One flow at line rate.
fn flow(src: u32, dst: u32, start: &str, bytes: &str) -> String {
    format!(
        r#"
        [[traffic]]
        name = "{src} to {dst} at {start}"
        sizes = {{ constant = "{bytes}" }}
        arrivals = "all_at_once"
        senders = "{src}"
        receivers = "{dst}"
        start = "{start}"
        "#
    )
}

fn lost(result: &RunResult) -> u64 {
    column(table(result, "links"), "dead_packets").iter().sum()
}

fn status(result: &RunResult) -> Vec<(&str, &str)> {
    let flows = table(result, "flows");
    names(flows, "status").into_iter().zip(names(flows, "reason")).collect()
}

#[test]
fn a_dead_link_loses_half_until_routes_change() {
    // 1,000 packets, one each 120 ns from 0 on; every other one goes by spine0.
    let failure = r#"{ at = "50us", link = ["leaf0", "spine0"] }"#;
    let result = run_both(&scene(failure, &flow(0, 2, "0s", "1460KB")));
    // At the leaf from 770 ns on (120 ns, 200 ns of cable, 450 ns of switch). For the 10 us until routes change, one
    // each 240 ns finds the link dead: 41 or 42. On the link and in the spine's pipeline, 120 + 200 + 450 ns long,
    // there are 770 / 240: 3 or 4.
    let (at_leaf, in_flight) = (41..=42, 3..=4);
    let lost_here = of_link(&result, "leaf0", "spine0", "dead_packets");
    assert_eq!(lost(&result), lost_here);
    let sent = |spine| of_link(&result, "leaf0", spine, "sent_packets");
    let lost_in_flight = sent("spine0") + sent("spine1") + lost_here - 1_000;
    assert!(in_flight.contains(&lost_in_flight), "{lost_in_flight}");
    assert!(at_leaf.contains(&(lost_here - lost_in_flight)), "{lost_here}");
    assert_eq!(status(&result), [("failed", "no answer: packets were lost")]);
}

#[test]
fn flows_after_the_change_of_routes_go_around() {
    let failure = r#"{ at = "1us", link = ["leaf0", "spine0"] }"#;
    let result = run_both(&scene(failure, &flow(0, 2, "11us", "146KB")));
    assert_eq!(lost(&result), 0);
    assert_eq!(of_link(&result, "leaf0", "spine0", "sent_packets"), 0);
    assert_eq!(of_link(&result, "leaf0", "spine1", "sent_packets"), 100);
    // The way back avoids the other direction of the same cable.
    assert_eq!(of_link(&result, "spine0", "leaf0", "sent_packets"), 0);
    assert_eq!(status(&result), [("completed", "")]);
}

#[test]
fn a_flow_before_the_change_of_routes_meets_the_dead_link() {
    let failure = r#"{ at = "1us", link = ["leaf0", "spine0"] }"#;
    let result = run_both(&scene(failure, &flow(0, 2, "2us", "14600B")));
    assert_eq!((lost(&result), of_link(&result, "leaf0", "spine1", "sent_packets")), (5, 5));
    assert_eq!(status(&result)[0].0, "failed");
}

#[test]
fn a_repaired_link_is_used_again() {
    let failure = r#"{ at = "1us", until = "100us", link = ["leaf0", "spine0"] }"#;
    let flows = flow(0, 2, "50us", "146KB") + &flow(0, 2, "109us", "14600B") + &flow(0, 2, "120us", "146KB");
    let result = run_both(&scene(failure, &flows));
    assert_eq!(lost(&result), 0);
    assert_eq!(status(&result), [("completed", ""); 3]);
    // The second flow's ten packets, 770 ns and more after 109 us, are at the leaf before and after 110 us, when routes
    // include the link again: the first two before. From then on half go by it.
    let by_repaired = of_link(&result, "leaf0", "spine0", "sent_packets");
    assert_eq!(by_repaired, 4 + 50);
}

#[test]
fn a_dead_switch_takes_its_links_and_what_it_holds() {
    let failure = r#"{ at = "20us", until = "60us", switch = "spine1" }"#;
    // Both hosts of a rack at line rate over two spines: half of it by spine1, which sends to the other rack at line
    // rate.
    let flows = flow(0, 2, "0s", "1460KB") + &flow(1, 3, "0s", "1460KB") + &flow(0, 2, "200us", "14600B");
    // Room for both flows on one way.
    let result = run_both(&format!("switch.buffer.per_port.bytes = \"2MB\"{}", scene(failure, &flows)));
    let (into, out_of) =
        (of_link(&result, "leaf0", "spine1", "dead_packets"), of_link(&result, "spine1", "leaf1", "dead_packets"));
    assert_eq!(lost(&result), into + out_of);
    // One packet each 120 ns for 10 us is 83, and 770 ns of link hold 6 or 7 more; one on each way out of the switch,
    // and what waits there.
    assert!((83 + 6..=84 + 7).contains(&into), "{into}");
    assert!((6..=8).contains(&out_of), "{out_of}");
    let status = status(&result);
    // Packets take turns, so that each flow has a spine to itself, and the first has the one that died.
    assert_eq!([status[0].0, status[1].0, status[2].0], ["failed", "completed", "completed"]);
}

#[test]
fn a_host_that_is_cut_off_loses_what_it_sends_and_what_comes_for_it() {
    let failure = r#"{ at = "5us", link = ["host2", "leaf1"] }"#;
    let flows = flow(0, 2, "0s", "146KB")
        + &flow(2, 1, "0s", "146KB")
        + &flow(2, 3, "30us", "1460B")
        + &flow(0, 2, "30us", "1460B")
        + &flow(0, 3, "30us", "1460B");
    let result = run_both(&scene(failure, &flows));
    let status = status(&result);
    assert_eq!(status[..4], [("failed", "no answer: packets were lost"); 4]);
    assert_eq!(of_flows(&result, "fct_ps")[..4], [NONE; 4]);
    assert_eq!(status[4], ("completed", ""));
    // host2 has 101 packets to send. Of those began each 120 ns from 0 on, the ones came through that were at the leaf,
    // 120 + 200 + 450 ns later, within 5 us.
    assert_eq!(of_link(&result, "host2", "leaf1", "dead_packets"), 101 - ((5_000 - 770) / 120 + 1));
    // What it sends once the link is down does not get onto it: the next begins at 42 x 120 = 5,040 ns.
    assert_eq!(of_link(&result, "host2", "leaf1", "sent_packets"), 42);
}

#[test]
fn a_dead_leaf_leaves_its_hosts_alone() {
    let failure = r#"{ at = "1us", switch = "leaf0" }"#;
    let flows = flow(0, 1, "20us", "1460B")
        + &flow(0, 2, "20us", "1460B")
        + &flow(2, 0, "20us", "1460B")
        + &flow(2, 3, "20us", "1460B");
    let result = run_both(&scene(failure, &flows));
    let status = status(&result);
    assert_eq!([status[0].0, status[1].0, status[2].0, status[3].0], ["failed", "failed", "failed", "completed"]);
    // Cut short, the same flows have not failed yet, and it says how far they came.
    let short =
        scene(failure, &flows).replace("measure.interval = \"0s\"", "measure = { interval = \"0s\", end = \"100us\" }");
    let result = run_both(&short);
    assert_eq!(result.info.ended, "horizon");
    assert_eq!(self::status(&result)[..3], [("unfinished", "not delivered"); 3]);
}

#[test]
fn a_failure_after_all_messages_have_ended_does_not_happen_and_the_result_says_so() {
    let of = |at: &str| {
        let failure = format!(r#"{{ link = ["leaf0", "spine0"], at = "{at}" }}"#);
        run_both(&scene(&failure, &flow(0, 2, "0s", "10KB"))).info
    };
    let (late, never) = (of("900us"), run_both(&scene("", &flow(0, 2, "0s", "10KB"))).info);
    assert_eq!((&late.digest, late.ended), (&never.digest, "goal"));
    assert!(late.warnings[0].starts_with("failure[0]: did not happen at 900us: the run had ended at "), "{late:?}");
    assert_eq!(of("1us").warnings, Vec::<String>::new());
}
