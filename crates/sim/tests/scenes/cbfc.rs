//! Credits between neighbours: a link carries what its credits let it, and what is lost takes none of them along.

use clearway_sim::RunResult;

use crate::{column, counter, names, of_link, of_links, run_both, table};

/// One host sends so many full packets to another across two switches. All links 100 Gbps, 200 ns, 450 ns in a switch.
fn flow(settings: &str, packets: u64) -> String {
    format!(
        "transport = 'udp'\nmeasure = {{ interval = '0s', completion = 'delivered' }}\n{settings}\n\
         switch.buffer = {{ shared = {{ bytes = '2MB' }} }}\nfabric.dumbbell.hosts_per_side = 1\n\
         [[traffic]]\nsizes.constant = '{}B'\narrivals = 'all_at_once'\nsenders = '0'\nreceivers = '1'\nflows = 1",
        packets * 1_460
    )
}

fn fct(result: &RunResult) -> f64 {
    assert_eq!(names(table(result, "flows"), "status"), ["completed"]);
    assert_eq!(of_links(result, "overflow_packets"), 0);
    column(table(result, "flows"), "fct_ps")[0] as f64
}

/// 120 ns of the packet, 650 ns there, 640 ps of the 8 bytes that say it has left, 650 ns back.
const LOOP_PS: f64 = 120_000.0 + 650_000.0 + 640.0 + 650_000.0;
const PACKET_PS: f64 = 120_000.0;

#[test]
fn a_link_carries_its_credits_each_round_trip_and_its_rate_at_most() {
    let packets = 3_000;
    for window in [1, 2, 4, 8, 11, 12, 20] {
        let credits = format!("flow_control.cbfc.credits = '{}B'", window * 24 * 64);
        let time = fct(&run_both(&flow(&credits, packets)));
        // And once the way of the last: two switches and three links.
        let due = packets as f64 * (LOOP_PS / f64::from(window)).max(PACKET_PS) + 2.0 * 770_000.0 + 200_000.0;
        assert!((time / due - 1.0).abs() < 0.01, "{window}: {time} for {due}");
    }
    // The default is enough, and costs nothing.
    let [with, without] =
        ["'cbfc'", "'none'"].map(|control| fct(&run_both(&flow(&format!("flow_control = {control}"), packets))));
    assert_eq!(with, without);
}

#[test]
fn updates_that_wait_need_as_many_more_credits() {
    // Four packets are freed before it is told: the last of them goes round with the first three waiting for it.
    let settings = "flow_control.cbfc = { credits = '24576B', update = '6KB' }";
    let time = fct(&run_both(&flow(settings, 3_000)));
    // Of sixteen packets twelve are on their way while four wait, which is more than a round trip takes.
    assert!((time / (3_000.0 * PACKET_PS) - 1.0).abs() < 0.01, "{time}");
    let few = fct(&run_both(&flow(&settings.replace("24576B", "9216B"), 3_000)));
    // Six packets, of which those that wait are sent on as one: at most as many a round trip, and two fewer at least.
    assert!((3_000.0 * LOOP_PS / 6.0..3_000.0 * LOOP_PS / 4.0 * 1.1).contains(&few), "{few}");
}

#[test]
fn two_channels_have_credits_apart() {
    // Three flows of class 1 fill its channel towards a host; one of class 3, which is less urgent, passes them.
    let scene = |vcs: &str| {
        format!(
            "measure = {{ interval = '0s', completion = 'delivered' }}\nflow_control.cbfc.vcs = {vcs}\n\
             switch.buffer = {{ shared = {{ bytes = '2MB' }} }}\n\
             fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 1, spine_rate = '400Gbps' }}\n\
             [[traffic]]\nname = 'incast'\ntransport.udp.class = 1\nsizes.constant = '2MB'\narrivals = 'all_at_once'\n\
             senders = '4-6'\nreceivers = '0'\n\
             [[traffic]]\nname = 'victim'\ntransport.udp.class = 3\nsizes.constant = '1MB'\narrivals = 'all_at_once'\n\
             senders = '7'\nreceivers = '1'\nstart = '100us'"
        )
    };
    let slowdown = |vcs: &str| {
        let result = run_both(&scene(vcs));
        assert_eq!(of_links(&result, "overflow_packets"), 0);
        let last = |of| *column(table(&result, "flows"), of).last().unwrap() as f64;
        last("fct_ps") / last("ideal_ps")
    };
    let (apart, together) = (slowdown("[[1], [3]]"), slowdown("[[1, 3]]"));
    assert!(apart < 1.05 && together > 1.5, "{apart} {together}");
}

#[test]
fn credits_of_lost_packets_come_back() {
    // One packet in eight is lost on the way to the switch, 2,500 of 20,000, and ten packets have credits.
    let noise =
        "failure = [{ at = '0s', link = ['left', 'right'], loss = 0.125 }]\nflow_control.cbfc.credits = '15360B'";
    let result = run_both(&flow(noise, 20_000));
    let lost = of_link(&result, "left", "right", "lossy_packets");
    assert!((2_000..3_000).contains(&lost), "{lost}");
    assert_eq!(of_link(&result, "right", "host1", "sent_packets"), 20_000 - lost);
    let back = counter(&result, "cbfc_lost_credits");
    // But for the last, which nothing has missed yet.
    assert!(back <= lost * 24 && back > lost * 24 - 240, "{back} of {}", lost * 24);
}

#[test]
fn after_a_failure_the_link_has_its_credits_again() {
    let failure = "reroute_delay = '1us'\nfailure = [{ at = '30us', until = '60us', link = ['left', 'right'] }]\n\
                   flow_control.cbfc.credits = '6144B'";
    for transport in ["dctcp", "rdma"] {
        let text = flow(failure, 2_000).replace("'udp'", &format!("'{transport}'"));
        let result = run_both(&text);
        let time = fct(&result);
        assert!(of_links(&result, "dead_packets") > 0, "{transport}");
        // Four packets a loop, but for the outage and what the transport takes to notice.
        let due = 2_000.0 * LOOP_PS / 4.0;
        assert!(time > due && time < due + 20e9, "{transport}: {time} for {due}");
    }
}

#[test]
fn a_slow_host_holds_back_its_switch() {
    let slow = "host = { intake_rate = '25Gbps', intake_buffer = '40KB' }\nflow_control = 'cbfc'";
    let result = run_both(&flow(slow, 3_000));
    let time = fct(&result);
    assert!((time / (3_000.0 * PACKET_PS * 4.0) - 1.0).abs() < 0.01, "{time}");
}

#[test]
fn an_incast_over_a_mesh_ends_since_no_credit_is_lost() {
    // Seven hosts send to a corner of 4 x 4, which two links of 10 Gbps lead to, over all shortest paths by turns.
    let of = |transport: &str| {
        run_both(&format!(
            "transport = {transport}\nflow_control = 'cbfc'\nswitch.balancing = 'spray'\nmeasure.interval = '0s'\n\
             fabric.mesh.dims = [4, 4]\n[[traffic]]\nsizes.constant = '400KB'\narrivals = 'all_at_once'\n\
             pattern.incast.degree = 7\nsenders = '1-7'\nreceivers = '0'\nflows = 7"
        ))
    };
    let patient = "{ rdma.recovery.irn = { reordering_packets = 100000 } }";
    for transport in [patient, "'dctcp'"] {
        let result = of(transport);
        assert_eq!(names(table(&result, "flows"), "status"), ["completed"; 7], "{transport}");
        assert_eq!(of_links(&result, "overflow_packets"), 0, "{transport}");
        let least = 7.0 * 400e3 * 8.0 / 20e9 * 1e12;
        let last = *column(table(&result, "flows"), "delivered_ps").iter().max().unwrap() as f64;
        assert!((least..2.0 * least).contains(&last), "{transport}: {last} for {least}");
    }
}
