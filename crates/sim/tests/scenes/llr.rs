//! Links that repeat what they have damaged: nobody above sees a loss, and the time that it takes is that of go-back-N.

use clearway_sim::RunResult;

use crate::{column, counter, names, of_flows, of_link, of_links, reserves, run_both, table};

/// One host sends so many full packets to another across two switches. All links 100 Gbps, 200 ns, 450 ns in a switch.
fn flow(settings: &str, packets: u64) -> String {
    format!(
        "measure = {{ interval = '0s', completion = 'delivered' }}\n{settings}\n\
         switch.buffer = {{ shared = {{ bytes = '2MB' }} }}\nfabric.dumbbell.hosts_per_side = 1\n\
         [[traffic]]\nsizes.constant = '{}B'\narrivals = 'all_at_once'\nsenders = '0'\nreceivers = '1'\nflows = 1",
        packets * 1_460
    )
}

fn fct(result: &RunResult) -> f64 {
    assert_eq!(names(table(result, "flows"), "status"), ["completed"]);
    column(table(result, "flows"), "fct_ps")[0] as f64
}

const PACKET_PS: f64 = 120_000.0;
/// Two switches and three links, behind the first bit of the last packet.
const LAST_PS: f64 = 3.0 * 120_000.0 + 2.0 * 650_000.0 + 200_000.0;

#[test]
fn a_link_that_repeats_costs_what_go_back_n_does() {
    let packets = 60_000u32;
    for bit_error_rate in [1e-7_f64, 1e-6, 2e-6, 5e-6] {
        let noise = format!(
            "transport = 'udp'\nlink.llr = {{}}\n\
             failure = [{{ at = '0s', link = ['host0', 'left'], bit_error_rate = {bit_error_rate:e}, one_way = true }}]"
        );
        let result = run_both(&flow(&noise, packets.into()));
        let hit = 1.0 - (1.0 - bit_error_rate).powi(12_000);
        // It arrives after 770 ns; 640 ps of the message and 200 ns later the host knows, and has begun the ninth
        // packet behind its first bit.
        let errors = f64::from(packets) * hit / (1.0 - hit);
        let due = f64::from(packets - 1) * PACKET_PS + errors * 9.0 * PACKET_PS + LAST_PS;
        // Four standard deviations of the errors.
        let slack = 4.0 * (errors / (1.0 - hit)).sqrt() * 9.0 * PACKET_PS / due;
        let time = fct(&result);
        assert!((time / due - 1.0).abs() < slack + 0.001, "{bit_error_rate}: {time} for {due} +- {slack}");
        assert!(slack < 0.03);
        assert_eq!(of_link(&result, "left", "right", "sent_packets"), u64::from(packets));
        assert_eq!(
            (counter(&result, "llr_timeouts"), counter(&result, "llr_replays")),
            (0, counter(&result, "llr_nacks"))
        );
    }
}

#[test]
fn where_nothing_is_damaged_nothing_takes_longer() {
    let [with, without] = ["link.llr = {}", ""].map(|llr| run_both(&flow(&format!("transport = 'udp'\n{llr}"), 2_000)));
    assert_eq!(fct(&with), fct(&without));
    assert_eq!(counter(&with, "llr_replayed_packets") + counter(&with, "llr_nacks"), 0);
    // One of 8 bytes each 2,048 at most, on the way back of three links.
    let acks = counter(&with, "llr_acks");
    assert!(acks > 1_000 && acks <= 3 * 2_000 * 1_500 / 2_048 + 9, "{acks}");
}

/// Every transport and every flow control over links that damage one packet in eight and lose some.
#[test]
fn no_transport_sees_a_loss() {
    let noise = "failure = [\
                 { at = '0s', link = ['host0', 'leaf0'], bit_error_rate = 1e-5 }, \
                 { at = '0s', link = ['leaf1', 'spine0'], bit_error_rate = 1e-6, loss = 0.01 }]";
    let scene = |settings: &str| {
        format!(
            "measure.interval = '0s'\nlink.llr = {{}}\n{settings}\n{noise}\n\
             switch.buffer = {{ shared = {{ bytes = '4MB' }} }}\n\
             fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1, spine_rate = '100Gbps' }}\n\
             [[traffic]]\nsizes = {{ uniform = {{ min = '1B', max = '100KB' }} }}\narrivals.poisson.every = '5us'\n\
             flows = 60"
        )
    };
    let check = |settings: &str| {
        let result = run_both(&scene(settings));
        let statuses = names(table(&result, "flows"), "status");
        assert!(statuses.iter().all(|status| *status == "completed"), "{settings}: {statuses:?}");
        assert!(counter(&result, "llr_replayed_packets") > 0 && counter(&result, "llr_damaged_packets") > 0);
        let lost = ["corrupted_packets", "lossy_packets"].map(|of| of_links(&result, of));
        assert_eq!(lost, [0; 2], "{settings}");
        result
    };
    for transport in catalogue::Transport::NAMES.iter().filter(|transport| !reserves(transport)) {
        let result = check(&format!("transport = '{transport}'"));
        // What waits for a link may outlast a timer that knows nothing of it; TCP's do not, and UDP has none.
        if ["udp", "dctcp", "newreno", "cubic"].contains(transport) {
            assert_eq!(of_flows(&result, "resent_packets").iter().sum::<u64>(), 0, "{transport}");
        }
    }
    for control in catalogue::LinkControl::NAMES {
        let result = check(&format!("transport = 'dctcp'\nflow_control = '{control}'"));
        assert_eq!(of_links(&result, "overflow_packets"), 0, "{control}");
    }
}

#[test]
fn credits_and_retry_work_together() {
    let noise = "transport = 'udp'\nflow_control = 'cbfc'\nlink.llr = {}\n\
                 failure = [{ at = '0s', link = ['left', 'right'], bit_error_rate = 2e-6 }]";
    let result = run_both(&flow(noise, 10_000));
    assert!(fct(&result) > 10_000.0 * PACKET_PS);
    assert_eq!((counter(&result, "cbfc_lost_credits"), of_links(&result, "overflow_packets")), (0, 0));
    assert_eq!(of_link(&result, "right", "host1", "sent_packets"), 10_000);
}

#[test]
fn what_is_kept_limits_what_a_link_carries() {
    // Four packets until they are acknowledged: 770 ns to the other switch, at most 164 ns until the next message may
    // go, 640 ps of it and 650 ns back.
    let result = run_both(&flow("transport = 'udp'\nlink.llr.outstanding_packets = 4", 2_000));
    let time = fct(&result) - LAST_PS;
    let (least, most) = (1_420_640.0, 1_420_640.0 + 163_840.0);
    assert!((2_000.0 / 4.0 * least * 0.99..2_000.0 / 4.0 * most * 1.01).contains(&time), "{time}");
}

#[test]
fn a_link_that_dies_takes_along_what_it_had_not_delivered_and_begins_anew() {
    let failure = "reroute_delay = '1us'\nlink.llr = {}\nfailure = [\
                   { at = '0s', link = ['left', 'right'], bit_error_rate = 1e-6 }, \
                   { at = '30us', until = '60us', link = ['left', 'right'] }]";
    for transport in ["dctcp", "rdma"] {
        let result = run_both(&flow(&format!("transport = '{transport}'\n{failure}"), 2_000));
        assert!(fct(&result) > 2_000.0 * PACKET_PS, "{transport}");
        // 770 ns of packets at least were on the link, or what a window of them was.
        let dead = of_links(&result, "dead_packets");
        assert!((1..300).contains(&dead), "{transport}: {dead}");
    }
}

#[test]
fn hosts_with_several_links_repeat_on_each() {
    let text = "transport = 'udp'\nlink.llr = {}\nswitch.balancing = 'spray'\n\
                measure = { interval = '0s', completion = 'delivered' }\n\
                failure = [{ at = '0s', link = ['host0', 'leaf0'], bit_error_rate = 2e-6 }, \
                { at = '0s', link = ['host0', 'leaf2'], bit_error_rate = 2e-6 }]\n\
                fabric.multi_plane = { planes = 2, racks = 2, hosts_per_rack = 1, spines = 1 }\n\
                [[traffic]]\nsizes.constant = '14600KB'\narrivals = 'all_at_once'\n\
                senders = '0'\nreceivers = '1'\nflows = 1";
    let result = run_both(text);
    let time = fct(&result);
    assert!(counter(&result, "llr_replays") > 100 && time > 10_000.0 * PACKET_PS / 2.0, "{time}");
    assert_eq!(
        of_link(&result, "host0", "leaf0", "sent_packets") + of_link(&result, "host0", "leaf2", "sent_packets"),
        10_000
    );
}
