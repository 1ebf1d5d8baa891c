//! Links that go down and come up again and again.

use crate::{names, of_flows, of_link, of_links, run_both, table};

/// Two racks and as many spines, every link 100 Gbps; one message of so many full packets from host 0 to host 2.
fn scene(spines: u32, packets: u64, failure: &str, settings: &str) -> String {
    format!(
        r#"
        transport = "udp"
        measure.interval = "0s"
        {settings}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = {spines}, spine_rate = "100Gbps" }}
        failure = [{failure}]
        [[traffic]]
        sizes.constant = "{}B"
        arrivals = "all_at_once"
        senders = "0"
        receivers = "2"
        flows = 1
        "#,
        packets * 1_460
    )
}

/// When a packet begins at the leaf: 120 ns a packet, and from the host a cable of 200 ns and a pipeline of 450 ns.
fn begins_at(packet: u64) -> u64 {
    770 + 120 * packet
}

#[test]
fn what_is_lost_is_what_was_on_the_wire_and_what_met_it_down() {
    let failure = "{ at = '5us', until = '105us', link = ['leaf0', 'spine0'], \
                   flap = { down = '1us', every = '10us' }, reroute = false }";
    let result = run_both(&scene(1, 1_000, failure, ""));
    // Down at 5, 15, ..., 95 us for 1 us each. A packet is on the wire or in the spine's pipeline for 770 ns.
    let outages: Vec<u64> = (0..10).map(|turn| 5_000 + 10_000 * turn).collect();
    let hit = |begin: u64| outages.iter().any(|down| (down - 770..down + 1_000).contains(&begin));
    let due = (0..1_000).filter(|packet| hit(begins_at(*packet))).count() as u64;
    assert_eq!(of_link(&result, "leaf0", "spine0", "dead_packets"), due);
    assert_eq!(of_links(&result, "dead_packets"), due);
    assert_eq!(of_link(&result, "spine0", "leaf1", "sent_packets"), 1_000 - due);
    assert_eq!(names(table(&result, "flows"), "status"), ["failed"]);
}

#[test]
fn each_change_is_news_to_routing_unless_it_is_not_told() {
    let failure = "{ at = '5us', until = '105us', link = ['leaf0', 'spine0'], \
                   flap = { down = '5us', every = '10us' } }";
    let settings = "switch.balancing = 'round_robin'\nreroute_delay = '1us'";
    let result = run_both(&scene(2, 1_000, failure, settings));
    let sent = |spine| of_link(&result, "leaf0", spine, "sent_packets");
    // Down for half of the time, and avoided from 1 us after each failure until 1 us after each repair: a quarter of
    // 1,000 packets is due, less what finds it dead in that first microsecond, each time four or five of the eight that
    // the leaf sends.
    let lost = of_links(&result, "dead_packets");
    let found_dead = 1_000 - sent("spine0") - sent("spine1");
    assert!((40..=50).contains(&found_dead), "{found_dead} found it dead");
    // On the wire and in the pipeline, each time three or four.
    assert!((30..=40).contains(&(lost - found_dead)), "{} were on it", lost - found_dead);
    let silent = failure.replace(" } }", " }, reroute = false }");
    let silent = run_both(&scene(2, 1_000, &silent, "switch.balancing = 'round_robin'"));
    // Half of what the leaf sends in 50 us meets it down: 208 or so.
    let met = 1_000
        - of_link(&silent, "leaf0", "spine0", "sent_packets")
        - of_link(&silent, "leaf0", "spine1", "sent_packets");
    assert!((200..=215).contains(&met), "{met}");
}

#[test]
fn a_link_may_be_slow_again_and_again() {
    // Slow at 1.0 to 1.5 us and at 3.0 to 3.5 us. One packet begins in each: at 1,010, until 2,210; then 120 ns each,
    // at 2,930 the last before 3,000, and at 3,050 the next slow one.
    let failure = "{ at = '1us', until = '4us', link = ['leaf0', 'spine0'], \
                   rate = '10Gbps', flap = { down = '500ns', every = '2us' } }";
    let result = run_both(&scene(1, 50, failure, ""));
    let gone = 770 + (48 + 2 * 10) * 120;
    assert_eq!(of_flows(&result, "fct_ps"), [(gone + 650 + 120 + 650 + 120 + 200) * 1_000]);
}
