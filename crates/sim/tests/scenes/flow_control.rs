//! Flow control between neighbours: nothing is lost, nothing stays paused, and who is held back is who should be.

use catalogue::LinkControl;
use clearway_sim::RunResult;

use crate::{column, names, of_flows, of_link, of_links, run_alone, run_both, table};

fn flow_controls() -> impl Iterator<Item = &'static str> {
    LinkControl::NAMES.iter().copied().filter(|name| *name != "none")
}

/// Every flow is complete and nothing was lost for want of memory.
fn assert_lossless(result: &RunResult) {
    assert_eq!(of_links(result, "overflow_packets"), 0, "{}", result.scenario_toml);
    let flows = table(result, "flows");
    let ends: Vec<_> = names(flows, "status").into_iter().zip(names(flows, "reason")).collect();
    assert!(ends.iter().all(|end| end.0 == "completed"), "{ends:?} {:?}\n{}", result.info.audit, result.scenario_toml);
}

/// Three racks of four hosts under two spines; everybody else sends to host 0 at once.
fn incast(transport: &str, flow_control: &str, buffer: &str, bytes: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        flow_control = "{flow_control}"
        measure.interval = "5us"
        switch.buffer = {{ shared = {{ bytes = "{buffer}" }} }}
        fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 4, spines = 2 }}
        [[traffic]]
        sizes = {{ constant = "{bytes}" }}
        arrivals = "all_at_once"
        senders = "1-11"
        receivers = "0"
        "#
    )
}

#[test]
fn an_incast_loses_nothing_under_any_flow_control() {
    for flow_control in flow_controls() {
        for (transport, buffer) in [("udp", "600KB"), ("udp", "2MB"), ("dctcp", "2MB"), ("dcpim", "600KB")] {
            // A queue for each of 11 flows takes two one-hop products, and one on the way, of up to 65 KB.
            let buffer = if flow_control == "per_flow_queues" { "2MB" } else { buffer };
            let result = run_both(&incast(transport, flow_control, buffer, "200KB"));
            assert_lossless(&result);
            // 2.2 MB at once are more than fits anywhere: hosts that do not slow down by themselves were told to.
            assert!(transport != "udp" || of_links(&result, "sent_frames") > 0, "{flow_control} {transport}");
            // What came out of order would have been sent again by dctcp.
            assert_eq!(of_flows(&result, "resent_packets").iter().sum::<u64>(), 0, "{flow_control} {transport}");
        }
        // Without it, the same is lost.
        let without = run_alone(&incast("udp", "none", "600KB", "200KB"));
        assert!(of_links(&without, "overflow_packets") > 0);
    }
}

/// Two racks of four hosts under one spine with links of 400 Gbps. Hosts 4, 5 and 6 send to host 0; host 7, later, to
/// host 1.
fn victim(flow_control: &str) -> RunResult {
    run_both(&format!(
        r#"
        transport = "udp"
        flow_control = {flow_control}
        switch.buffer = {{ shared = {{ bytes = "600KB" }} }}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 1, spine_rate = "400Gbps" }}
        [[traffic]]
        name = "incast"
        sizes = {{ constant = "5MB" }}
        arrivals = "all_at_once"
        senders = "4-6"
        receivers = "0"
        [[traffic]]
        name = "victim"
        sizes = {{ constant = "1MB" }}
        arrivals = "all_at_once"
        senders = "7"
        receivers = "1"
        start = "100us"
        "#
    ))
}

/// The last flow's completion time over what it takes alone.
fn last_slowdown(result: &RunResult) -> f64 {
    let last = |of| *of_flows(result, of).last().unwrap() as f64;
    last("fct_ps") / last("ideal_ps")
}

#[test]
fn a_pause_storm_holds_back_the_innocent() {
    let result = victim("\"pfc\"");
    assert_lossless(&result);
    // From the incast's switch to the spine, to the other leaf, to every host there.
    for (from, to) in [("spine0", "leaf0"), ("leaf1", "spine0"), ("host4", "leaf1"), ("host7", "leaf1")] {
        assert!(of_link(&result, from, to, "paused_ps") > 0, "{from}");
    }
    // Hosts that are paused and let go as one share alike: the victim has no more than the third of its link that each
    // of the others has of host 0's, and waits behind what the switches hold of theirs.
    let slowdown = last_slowdown(&result);
    assert!(slowdown > 3.0, "{slowdown}");
}

#[test]
fn what_holds_back_single_flows_spares_the_innocent() {
    for flow_control in [r#""bfc""#, r#"{ bfc = { queues = "ideal" } }"#, r#""per_flow_queues""#] {
        let result = victim(flow_control);
        assert_lossless(&result);
        assert!(of_link(&result, "host4", "leaf1", "paused_ps") > 0);
        assert_eq!(of_link(&result, "host7", "leaf1", "paused_ps"), 0);
        // No link on its way is full: three flows share host 0's 100 Gbps and leave it 300 of 400.
        let slowdown = last_slowdown(&result);
        assert!(slowdown < 1.03, "{flow_control}: {slowdown}");
    }
}

/// One host sends 1 MB at 100 Gbps through a link of 1 Gbps, from a switch with 300 KB.
fn one_paused_port(resume_offset: &str) -> RunResult {
    run_both(&format!(
        r#"
        transport = "udp"
        flow_control = {{ pfc = {{ resume_offset = "{resume_offset}" }} }}
        switch.buffer = {{ shared = {{ bytes = "300KB" }} }}
        fabric.dumbbell = {{ hosts_per_side = 1, bottleneck_rate = "1Gbps" }}
        [[traffic]]
        sizes = {{ constant = "1MB" }}
        arrivals = "all_at_once"
        senders = "0"
        receivers = "1"
        "#
    ))
}

#[test]
fn pfc_s_buffer_is_threshold_and_headroom_and_nearly_all_of_it_is_used() {
    let result = one_paused_port("3KB");
    assert_lossless(&result);
    // To the host and back it is 200 ns and 650 ns: 10,625 bytes; with two packets and a frame of 64 bytes, 13,689 are
    // headroom.
    let headroom = 10_625 + 2 * 1_500 + 64;
    // A count above twice what is free, all of it in this queue, pauses.
    let threshold = 2 * (300_000 - headroom) / 3;
    let most = of_link(&result, "left", "right", "queued_bytes_max");
    // It is passed by up to a packet; then comes in what is on its way both ways and at most a packet that was begun,
    // less the packet that went out.
    assert!(most <= threshold + 1_500 + headroom, "{most}");
    assert!(most >= threshold + 10_625 - 1_500, "{most}");
}

#[test]
fn pfc_s_hysteresis_spares_frames() {
    // The queue falls by what came in after the decision, some 11.4 KB, and by a third of the offset, since the
    // threshold rises by two bytes for one that leaves; and is filled again. So 10 times the offset is (11.4 + 1) /
    // (11.4 + 10) of the pauses.
    let pauses = |offset| of_link(&one_paused_port(offset), "host0", "left", "pauses") as f64;
    let ratio = pauses("30KB") / pauses("3KB");
    assert!((0.53..0.63).contains(&ratio), "{ratio}");
}

#[test]
fn nothing_stays_paused_after_a_failure() {
    for flow_control in flow_controls() {
        // Links of the incast's paths fail while they are paused, and one of a paused host.
        let result = run_both(&format!(
            r#"
            transport = {{ udp = {{ patience = "400us" }} }}
            flow_control = "{flow_control}"
            reroute_delay = "5us"
            switch.buffer = {{ shared = {{ bytes = "2MB" }} }}
            fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 4, spines = 2 }}
            failure = [
                {{ at = "40us", until = "90us", link = ["leaf1", "spine0"] }},
                {{ at = "45us", until = "80us", link = ["leaf0", "spine1"] }},
                {{ at = "50us", until = "70us", link = ["host5", "leaf1"] }},
            ]
            [[traffic]]
            name = "incast"
            sizes = {{ constant = "200KB" }}
            arrivals = "all_at_once"
            senders = "1-11"
            receivers = "0"
            [[traffic]]
            name = "after"
            sizes = {{ constant = "100KB" }}
            arrivals = {{ periodic = {{ every = "5us" }} }}
            start = "1ms"
            flows = 200
            "#
        ));
        let flows = table(&result, "flows");
        let after = names(flows, "class").into_iter().zip(names(flows, "status")).filter(|flow| flow.0 == "after");
        assert!(after.clone().count() == 200 && after.clone().all(|flow| flow.1 == "completed"), "{flow_control}");
        // The incast takes 200 us, and what came after it ends beyond a millisecond.
        assert!(result.info.end_ps > 1_000_000_000);
        for (link, &paused) in column(table(&result, "links"), "paused_ps").iter().enumerate() {
            assert!(paused < 500_000_000, "{flow_control}: link {link} was paused for {paused} ps");
        }
    }
}

/// Five switches in a ring, and from each host a flow to the second next: every link one way carries two, each of which
/// needs it whole.
pub(crate) fn ring(flow_control: &str) -> RunResult {
    let flow = |host: u32| {
        format!(
            r#"
            [[traffic]]
            name = "{host}"
            sizes = {{ constant = "2MB" }}
            arrivals = "all_at_once"
            senders = "{host}"
            receivers = "{}"
            "#,
            (host + 2) % 5
        )
    };
    let flows: String = (0..5).map(flow).collect();
    run_both(&format!(
        r#"
        transport = {{ udp = {{ patience = "2ms" }} }}
        flow_control = {flow_control}
        switch.buffer = {{ shared = {{ bytes = "200KB" }} }}
        fabric.torus = {{ dims = [5], rate = "100Gbps", host_rate = "100Gbps" }}
        {flows}
        "#
    ))
}

#[test]
fn pfc_deadlocks_where_buffers_depend_on_each_other_in_a_circle_and_the_audit_names_it() {
    let result = ring("\"pfc\"");
    let finding = result.info.audit.iter().find(|finding| finding.name == "no deadlock").unwrap();
    assert!(finding.ok, "PFC does not promise that there are none");
    let ended = result.info.audit.iter().find(|finding| finding.name == "every flow ended").unwrap();
    assert!(!ended.ok, "and flows in it never end: {}", ended.detail);
    for link in
        ["switch0 to switch1", "switch1 to switch2", "switch2 to switch3", "switch3 to switch4", "switch4 to switch0"]
    {
        assert!(finding.detail.contains(link), "{}", finding.detail);
    }
    assert!(names(table(&result, "flows"), "status").iter().any(|status| *status != "completed"));
    assert_eq!(of_links(&result, "overflow_packets"), 0);
}

#[test]
fn queues_by_flow_do_not_deadlock() {
    for flow_control in [r#""bfc""#, r#"{ bfc = { queues = "ideal" } }"#, r#""per_flow_queues""#] {
        let result = ring(flow_control);
        assert_lossless(&result);
        let finding = result.info.audit.iter().find(|finding| finding.name == "no deadlock").unwrap();
        assert_eq!(finding.detail, "no paused port waits for itself", "{flow_control}");
        assert!(of_links(&result, "pauses") > 0);
        // Each link is shared by two flows: 2 MB of messages in 1,500-byte packets at 50 Gbps.
        let alone = 2e6 * 1_500.0 / 1_460.0 * 8.0 / 100.0 * 1e3;
        for &fct in of_flows(&result, "fct_ps") {
            assert!((1.9..2.1).contains(&(fct as f64 / alone)), "{flow_control}: {fct}");
        }
    }
}

/// A 4 x 4 torus under ideal sharing (R2C2, section 5.2): per-flow queues, packets sprayed over all shortest paths,
/// hosts that send as fast as they may.
fn sprayed(traffic: &str) -> RunResult {
    run_both(&format!(
        r#"
        transport = {{ udp = {{ patience = "1s" }} }}
        flow_control = {{ per_flow_queues = {{ margin = "60KB" }} }}
        switch.balancing = "spray"
        switch.buffer = {{ shared = {{ bytes = "1GB" }} }}
        fabric.torus = {{ dims = [4, 4] }}
        {traffic}
        "#
    ))
}

/// A class of one message of 20 MB.
fn message(name: &str, src: u32, dst: u32) -> String {
    format!(
        r#"
        [[traffic]]
        name = "{name}"
        sizes = {{ constant = "20MB" }}
        arrivals = "all_at_once"
        senders = "{src}"
        receivers = "{dst}"
        "#
    )
}

/// Payload of each message over its completion time, as a share of what a link of 10 Gbps carries in packets of 1,500
/// B.
fn links_filled(result: &RunResult) -> Vec<f64> {
    let link = 10e9 * 1460.0 / 1500.0;
    of_flows(result, "fct_ps").iter().map(|&fct| 20e6 * 8.0 / (fct as f64 / 1e12) / link).collect()
}

#[test]
fn a_lone_flow_under_per_flow_queues_fills_all_its_shortest_paths() {
    // Two steps along each dimension of four, either way round: four links leave the source and four lead to the
    // destination, and by symmetry each has a quarter of what chance sends over all shortest paths.
    let result = sprayed(&message("diagonal", 0, 10));
    assert_lossless(&result);
    let filled = links_filled(&result)[0];
    // Chance gives the busiest of four more than its quarter of 13,699 packets: three standard deviations are 152 of
    // 3,425.
    assert!(filled > (1.0 - 152.0 / 3_425.0) * 4.0 && filled < 4.0, "{filled}");
    // A neighbour that goes on sending because its flow's other queue is short would fill this one without end. Each of
    // the four neighbours and the host may add a packet, and what comes until it hears of it: a product of 250 B, two
    // packets, a frame.
    let most = column(table(&result, "links"), "queued_bytes_max").iter().copied().max().unwrap();
    assert!(most <= 2 * 250 + 60_000 + 5 * (1_500 + 250 + 2 * 1_500 + 64), "{most}");
}

#[test]
fn flows_under_per_flow_queues_share_a_link_evenly_and_a_far_one_what_chance_gives_it() {
    // One step: there is one shortest path.
    let pair = links_filled(&sprayed(&(message("one", 0, 1) + &message("other", 0, 1))));
    assert!(pair.iter().all(|filled| (filled - 0.5).abs() < 0.01), "{pair:?}");
    // From 3 to 1 it is two steps, half of the packets by way of 0 and its link to 1, half by way of 2. Half of that
    // link is the near flow's, and the far one, which can't have more there and sends as much the other way, gets twice
    // that. When it is done, half of the near one is still to come, alone.
    let [near, far] = links_filled(&sprayed(&(message("near", 0, 1) + &message("far", 3, 1))))[..] else { panic!() };
    assert!((near - 2.0 / 3.0).abs() < 0.02 && (far - 1.0).abs() < 0.03, "{near} {far}");
}
