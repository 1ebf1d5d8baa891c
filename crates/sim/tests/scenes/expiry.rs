//! Pauses that end by themselves and are refreshed (IEEE 802.1Qbb): what a lost pause or a lost resume costs.

use crate::{RunResult, column, counter, names, of_links, run_both, table};

/// 4 us both ways at 100 Gbps, two packets that have begun, and the frame.
const REACTION: u64 = 50_000 + 2 * 1_500 + 64;

/// Host 1 sends at 100 Gbps to host 0, whose queue is sent at 10. The group pauses after some 20 us at 200 kB, and goes
/// on with 60 kB less, some 84 us later. Frames that come to host 1 in `lost` are lost.
fn one_group(keys: &str, headroom: u64, lost: Option<(&str, &str)>) -> RunResult {
    let failure = lost.map_or(String::new(), |(at, until)| {
        format!(
            "failure = [{{ at = '{at}', until = '{until}', link = ['switch0', 'host1'], loss = 1.0, one_way = true }}]"
        )
    });
    run_both(&format!(
        "{failure}\nmeasure = {{ interval = '0s', end = '400us', packets = {{ links = ['host1-switch0'] }} }}\n\
         flow_control.mmu = {{ {keys}lossless = [3], pool = [\n\
         {{ name = 'in', side = 'ingress', bytes = '2MB' }}, {{ name = 'out', side = 'egress', bytes = '4MB' }} ],\n\
         group = [{{ groups = [0, 1, 2, 3, 4, 5, 6, 7], pool = 'in', threshold = '200KB', \
         headroom = '{headroom}B', xon_offset = '60KB' }}],\n\
         queue = [{{ queues = [0, 1, 2, 4, 5, 6, 7], pool = 'out' }}, \
         {{ queues = [3], pool = 'out', max_rate = '10Gbps', burst = '3000B' }}] }}\n\
         fabric.star = {{ hosts = 2, propagation = '2us', switch_delay = '0ns' }}\n\
         switch.buffer = {{ shared = {{ bytes = '8MB' }} }}\n\
         [[traffic]]\ntransport.udp.class = 3\nsizes.constant = '1GB'\narrivals = 'all_at_once'\n\
         senders = '1'\nreceivers = '0'\nflows = 1\n"
    ))
}

/// The host's silences, in microseconds: each begins with a pause.
fn silences(result: &RunResult) -> Vec<f64> {
    // In any order, and those that have not left without a time.
    let left = column(table(result, "packets"), "last_ps").iter().filter(|left| **left > 0);
    let mut left: Vec<u64> = left.copied().collect();
    left.sort_unstable();
    let of_packets = left.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6 - 0.12);
    of_packets.filter(|silence| *silence > 1.0).collect()
}

fn lost(result: &RunResult) -> u64 {
    counter(result, "lossless_losses")
}

/// 4,000 quanta at 100 Gbps.
const QUANTA_US: f64 = 20.48;

#[test]
fn a_lost_pause_overflows_without_refresh_and_is_repaired_with_it() {
    let window = Some(("15us", "25us"));
    // The next pause comes after 2,000 quanta, in which 128,000 bytes arrive and an eighth less leaves.
    let (enough, little) = (128_000 + REACTION, (128_000 + 50_000) * 9 / 10 - 4_000);
    let refreshed = one_group("quanta = 4000, ", enough, window);
    assert_eq!((lost(&refreshed), of_links(&refreshed, "overflow_packets")), (0, 0));
    assert!(counter(&refreshed, "lost_frames") == 1 && counter(&refreshed, "pfc_refreshes") > 3);
    assert!(lost(&one_group("quanta = 4000, ", little, window)) > 0);
    assert_eq!(lost(&one_group("quanta = 4000, ", little, None)), 0);
    // It is not sent again: all that 100 Gbps bring from 2.35 us on and that has not left at 10 finds no room.
    let alone = one_group("quanta = 4000, refresh = 0, ", enough, window);
    let expected = (90e9 / 8.0 * 397.65e-6 - 200_000.0 - enough as f64) / 1_500.0;
    assert!((lost(&alone) as f64 / expected - 1.0).abs() < 0.01, "{} for {expected}", lost(&alone));
}

#[test]
fn a_lost_resume_costs_no_more_than_the_rest_of_the_quanta() {
    let whole = silences(&one_group("quanta = 4000, ", REACTION, None))[0];
    let forever = silences(&one_group("", REACTION, None))[0];
    assert!(
        (whole - forever).abs() < 0.13,
        "refreshed in time, a pause lasts as one that is lifted: {whole}, {forever}"
    );
    // The resume comes some 84 us after the pause, at 22 us. The last frame before it that arrives is a refresh.
    let result = one_group("quanta = 4000, ", REACTION, Some(("102us", "115us")));
    let silence = silences(&result)[0];
    let refreshes = (silence - QUANTA_US) / (QUANTA_US / 2.0);
    assert!((refreshes - refreshes.round()).abs() < 0.02 && refreshes > 3.0, "{silence} us: {refreshes} refreshes");
    assert!(silence > whole && silence < whole + QUANTA_US, "{silence} us, and {whole} without the loss");
    assert!(counter(&result, "lost_frames") >= 1);
    assert_eq!(lost(&result), 0);
}

#[test]
fn a_pause_that_is_not_refreshed_lasts_its_quanta() {
    let result = one_group("quanta = 4000, refresh = 0, ", REACTION, None);
    let silence = silences(&result)[0];
    assert!((silence - QUANTA_US).abs() < 0.13, "{silence} us");
    assert!(lost(&result) > 0, "the queue was not short again");
}

/// A NIC's own pauses, of a host that takes packets in too slowly.
#[test]
fn a_nic_refreshes_its_own_pauses() {
    let run = |keys: &str| {
        let result = run_both(&format!(
            "flow_control.pfc = {{ {keys} }}\nmeasure = {{ interval = '0s', end = '2ms' }}\n\
             fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1, spine_rate = '100Gbps' }}\n\
             host = {{ intake_rate = '5Gbps', intake_buffer = '100KB' }}\n\
             switch.buffer = {{ shared = {{ bytes = '16MB' }} }}\n\
             [[traffic]]\ntransport.rdma.window = 'unlimited'\nsizes.constant = '1MB'\n\
             arrivals = 'all_at_once'\nsenders = '0'\nreceivers = '2'\nflows = 1\n"
        ));
        let status = names(table(&result, "flows"), "status")[0].to_string();
        (counter(&result, "intake_lost_packets"), counter(&result, "pfc_expired"), status)
    };
    for keys in ["", "quanta = 1000"] {
        assert_eq!(run(keys), (0, 0, "completed".into()), "{keys}");
    }
    let (lost, expired, _) = run("quanta = 1000, refresh = 0");
    assert!(lost > 0 && expired > 0);
}

/// A host with two links, of which one loses a fifth of what comes from its switch, resumes among them.
#[test]
fn a_host_with_two_links_goes_on_after_lost_resumes() {
    let result = run_both(
        "transport = { rdma = { window = 'unlimited', recovery = 'irn' } }\n\
         flow_control.pfc = { quanta = 1000, alpha = 0.0625, headroom_bdps = 20.0 }\n\
         fabric.multi_plane = { planes = 2, racks = 2, hosts_per_rack = 4, spines = 1 }\n\
         switch.buffer.shared.bytes = '24MB'\nmeasure.interval = '0s'\n\
         failure = [{ at = '0s', link = ['leaf0', 'host0'], loss = 0.2, one_way = true }]\n\
         [[traffic]]\nsizes.constant = '1MB'\narrivals = 'all_at_once'\nreceivers = '3'\nsenders = '0-2'\n\
         pattern.incast.degree = 3\nflows = 30\n",
    );
    assert!(counter(&result, "lost_frames") > 0 && counter(&result, "pfc_pauses") > 20);
    assert_eq!(result.info.flows_completed, 30);
}

/// Links that lose every hundredth frame and packet, in both directions, under a fabric full of pauses: with refreshes
/// every flow ends, and of the lossless class only links lose packets.
#[test]
fn lossy_links_under_pauses_that_are_refreshed_stop_nothing() {
    let result = run_both(
        "transport = { rdma = { window = 'unlimited', recovery = 'irn' } }\n\
         flow_control.pfc = { quanta = 2000, alpha = 0.125, headroom_bdps = 20.0 }\n\
         fabric.leaf_spine = { racks = 3, hosts_per_rack = 3, spines = 2, spine_rate = '100Gbps' }\n\
         switch.buffer.shared.bytes = '24MB'\nmeasure.interval = '0s'\n\
         failure = [{ at = '0s', link = ['leaf0', 'spine0'], loss = 0.01 }, \
         { at = '0s', link = ['leaf0', 'host0'], loss = 0.01 }, \
         { at = '0s', link = ['leaf1', 'spine1'], loss = 0.02 }]\n\
         [[traffic]]\nsizes.constant = '1MB'\narrivals = 'all_at_once'\nreceivers = '0-2'\nsenders = '3-8'\n\
         pattern.incast.degree = 6\nflows = 60\n",
    );
    assert!(counter(&result, "lost_frames") > 0 && counter(&result, "pfc_pauses") > 50);
    assert_eq!(of_links(&result, "overflow_packets"), 0);
    assert_eq!(result.info.flows_completed, 60);
}

#[test]
fn quanta_that_make_no_sense_are_refused_with_their_key() {
    let problem = |toml: &str| {
        let tiny = "[[traffic]]\nsizes.constant = '1KB'\narrivals = 'all_at_once'\nflows = 1";
        scenario::read(&format!("{toml}\n{tiny}"), "scene.toml", &[]).unwrap_err().to_string()
    };
    for control in ["pfc", "mmu"] {
        assert!(problem(&format!("flow_control.{control}.refresh = 5")).contains("refresh"));
        assert!(problem(&format!("flow_control.{control}.quanta = 0")).contains("write 1 to 65535"));
        assert!(problem(&format!("flow_control.{control}.quanta = 65536")).contains("quanta"));
    }
    assert!(problem("flow_control.congestion_isolation.pfc.quanta = 5").contains("hold until they are lifted"));
}
