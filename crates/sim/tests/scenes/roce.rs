//! RoCE as it is deployed: headroom as switches are configured with it, adaptive routing, NICs that take packets in any
//! order.

use crate::{RunResult, column, counter, of_links, run_both, table};

/// Four hosts send to a fifth over wires of 2 km, under PFC that lets a port fill the whole buffer before it pauses.
fn incast(headroom: &str) -> RunResult {
    run_both(&format!(
        r#"
        transport = {{ rdma = {{ window = "unlimited" }} }}
        flow_control.pfc = {{ alpha = 64.0, {headroom} }}
        switch.buffer.shared = {{ bytes = "4MB" }}
        measure = {{ interval = "0s", end = "10ms" }}
        fabric.star = {{ hosts = 5, rate = "100Gbps", propagation = "10us", switch_delay = "0s" }}
        [[traffic]]
        sizes = {{ constant = "4MB" }}
        arrivals = "all_at_once"
        pattern = {{ incast = {{ degree = 4 }} }}
        receivers = "0"
        flows = 4
        "#
    ))
}

/// Each port takes in what its wire holds both ways after it has paused: 250 kB. A switch that has been told so keeps
/// it free; one that has been told of a metre of cable loses packets of a lossless class.
#[test]
fn headroom_for_the_cable_that_is_there_loses_nothing_and_for_a_shorter_one_does() {
    for enough in ["headroom = {}", "headroom = { cable_m = 1980.0 }"] {
        let result = incast(enough);
        assert_eq!(of_links(&result, "overflow_packets"), 0, "{enough}");
        assert!(of_links(&result, "pauses") > 0, "{enough}");
        assert_eq!(result.info.flows_completed, 4);
    }
    assert!(of_links(&incast("headroom = { cable_m = 1.0, response = \"0B\" }"), "overflow_packets") > 100);
}

/// Every host sends 2 MB to one in the other rack, over as many spines as there are hosts in a rack. Packets of 1,500 B
/// with 1,460 B of message.
fn permutation(recovery: &str, balancing: &str, more: &str) -> RunResult {
    run_both(&format!(
        r#"
        seed = 3
        transport = {{ rdma = {{ recovery = {recovery}, window = "unlimited" }} }}
        flow_control = "pfc"
        host.delay = "0s"
        switch = {{ balancing = {balancing}, buffer.shared = {{ bytes = "16MB" }} }}
        measure.interval = "0s"
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 8, spines = 8, spine_rate = "100Gbps" }}
        {more}
        [[traffic]]
        sizes = {{ constant = "2MB" }}
        arrivals = "all_at_once"
        pattern = {{ stride = {{ by = 8 }} }}
        "#
    ))
}

/// The longest completion time over that of the message's packets at line rate.
fn slowest(result: &RunResult) -> f64 {
    let packets = 2_000_000u64.div_ceil(1_460);
    let longest = column(table(result, "flows"), "fct_ps").iter().max().expect("there are flows");
    *longest as f64 / ((2_000_000 + packets * 40) * 80) as f64
}

const IN_ANY_ORDER: &str = "{ irn = { reordering_packets = 1000, rto_low = \"4ms\", rto_high = \"4ms\" } }";
const GO_BACK: &str = "\"go_back_n\"";

/// By packet, and a NIC that takes packets in any order: line rate for all, though packets overtake each other. Over
/// hashed paths two flows share a link, and the slower has half of it.
#[test]
fn adaptive_routing_with_nics_that_take_any_order_gives_all_line_rate() {
    let sprayed = permutation(IN_ANY_ORDER, "{ adaptive = {} }", "");
    assert!(counter(&sprayed, "out_of_order") > 0, "packets overtake each other");
    assert_eq!((counter(&sprayed, "retransmissions"), of_links(&sprayed, "overflow_packets")), (0, 0));
    assert!(slowest(&sprayed) < 1.05, "{}", slowest(&sprayed));
    let hashed = permutation(IN_ANY_ORDER, "\"ecmp\"", "");
    assert_eq!(counter(&hashed, "out_of_order"), 0);
    assert!(slowest(&hashed) > 1.9, "{}", slowest(&hashed));
}

/// A NIC that goes back takes what is overtaken for lost. Flowlets keep its packets in order.
#[test]
fn a_nic_that_goes_back_needs_flowlets() {
    let by_packet = permutation(GO_BACK, "{ adaptive = {} }", "");
    assert!(counter(&by_packet, "retransmissions") > 100);
    let by_flowlet = permutation(GO_BACK, "{ adaptive = { flowlet = \"100us\" } }", "");
    assert_eq!((counter(&by_flowlet, "retransmissions"), counter(&by_flowlet, "out_of_order")), (0, 0));
    assert_eq!(by_flowlet.info.flows_completed, 16);
}

/// What is lost arrives all the same. No more is sent again than was lost, but for what a timeout took for lost.
#[test]
fn losses_are_recovered_under_adaptive_routing() {
    let loss = "failure = [{ at = \"0s\", link = [\"leaf0\", \"spine0\"], loss = 0.01 }]";
    for recovery in ["{ irn = { reordering_packets = 64 } }", IN_ANY_ORDER] {
        let result = permutation(recovery, "{ adaptive = {} }", loss);
        assert_eq!(result.info.flows_completed, 16, "{recovery}");
        let (lost, again) = (of_links(&result, "lossy_packets"), counter(&result, "retransmissions"));
        assert!(again > 10 && again <= lost + counter(&result, "duplicates"), "{recovery}: {lost}, {again}");
    }
}
