//! Runs over transports that ask receivers, or compute rates, give what whole runs give when what repeats is skipped.

use super::ahead::{apart, iterations, ring, share};
use crate::run_on;

/// Messages of this length, of traffic on a fabric.
fn messages(transport: &str, bytes: &str, fabric_and_pattern: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.interval = "0s"
        switch.buffer.shared = {{ bytes = "12MB" }}
        {fabric_and_pattern}
        sizes.constant = "{bytes}"
        arrivals = "all_at_once"
        "#
    )
}

/// Long flows into one link.
fn incast(transport: &str) -> String {
    let fabric = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 4 }";
    let traffic = "[[traffic]]\nsenders = \"1-3\"\nreceivers = \"0\"\npattern = \"dense\"\nflows = 3";
    messages(transport, "40MB", &format!("{fabric}\n{traffic}"))
}

/// A job's ring on a ring of switches: each path is the only shortest one.
fn neighbours(transport: &str) -> String {
    let more = "measure.interval = \"0s\"";
    let racks = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 4 }";
    ring(transport, more).replace(racks, "fabric.torus = { dims = [8] }")
}

fn skips(toml: &str, least: f64) {
    let share = share(toml);
    assert!(share > least, "{share}\n{toml}");
}

/// Its rates are computed at fixed times, and nothing is skipped past these.
#[test]
fn long_flows_over_r2c2_are_skipped() {
    skips(&apart("r2c2"), 0.9);
}

/// A route is drawn for each packet, though there is only one.
#[test]
fn draws_from_one_route_do_not_matter() {
    skips(&neighbours("r2c2"), 0.3);
}

#[test]
fn long_messages_over_homa_are_skipped() {
    skips(&apart("homa"), 0.9);
    skips(&incast("homa"), 0.9);
}

/// Its levels follow the lengths of messages, which are all alike.
#[test]
fn messages_over_homa_that_follow_each_other_are_skipped() {
    skips(&iterations("homa", 150, ""), 0.3);
}

/// Switches serve packets by what is left of their flows, which falls.
#[test]
fn messages_over_pfabric_are_skipped() {
    skips(&apart("pfabric"), 0.4);
    // Packets that tie take turns, and with them who has least left: what is skipped is next to nothing.
    skips(&incast("pfabric"), 0.0);
    skips(&neighbours("pfabric"), 0.4);
    skips(&iterations("pfabric", 150, ""), 0.8);
}

#[test]
fn messages_over_phost_are_skipped() {
    skips(&apart("phost"), 0.5);
    skips(&incast("phost"), 0.1);
    skips(&neighbours("phost"), 0.5);
    skips(&iterations("phost", 150, ""), 0.4);
}

/// Flows that take turns have another order, and unlike messages move levels.
#[test]
fn other_settings_are_the_whole_run_too() {
    let fair = "phost = { policy = \"flow_fairness\" }";
    for toml in [incast(fair), incast("homa_aeolus"), iterations("homa_aeolus", 40, "")] {
        share(&toml.replace(&format!("\"{fair}\""), &format!("{{ {fair} }}")));
    }
    let small = "[[traffic]]\nname = \"small\"\nsizes = \"websearch\"\narrivals.poisson = { load = 0.1 }\nflows = 40";
    for transport in ["homa", "pfabric", "phost"] {
        share(&format!("{}{small}", apart(transport)));
    }
}

/// Falcon over one path, where nothing is drawn but its label: no packet asks for an acknowledgement at once, and the
/// window is soon at its greatest. A packet and an acknowledgement take whole nanoseconds, as packets carry times.
fn falcon(toml: &str, more: &str) -> String {
    let settings = "ack_request_percent = 0.0, paths = 1, max_fcwnd = 64.0, plb = false";
    let toml = toml.replace("\"falcon\"", &format!("{{ falcon = {{ {settings}, {more} }} }}"));
    format!("host.header = \"50B\"\n{toml}")
}

#[test]
fn long_messages_over_falcon_are_skipped() {
    for (more, least) in [
        ("", 0.2),
        ("early_retransmission = \"ooo_distance\"", 0.2),
        ("ack_coalescing_packets = 1, initial_fcwnd = 60.0", 0.2),
        ("receive_buffer = { rate = \"50Gbps\", max_ncwnd = 64.0 }", 0.2),
    ] {
        skips(&falcon(&apart("falcon"), more), least);
    }
    share(&falcon(&incast("falcon"), "early_retransmission = \"ooo_distance\""));
}

/// By default a packet in ten, drawn at random, asks for an acknowledgement at once; and a message draws its labels.
#[test]
fn what_falcon_draws_does_not_repeat() {
    for toml in [apart("falcon"), incast("falcon"), falcon(&iterations("falcon", 40, ""), "")] {
        assert_eq!(share(&toml), 0.0);
    }
}

/// HPCC where what switches tell is not rounded: packets and acknowledgements are whole units of 128 bytes, each of
/// which takes 10 ns. At a target of all of a link, a flow alone stays at its rate.
fn hpcc(toml: &str, control: &str) -> String {
    let transport = format!("{{ hpcc = {{ ack_bytes = \"192B\", control = {{ {control} }} }} }}");
    let toml = toml.replace("\"hpcc\"", &transport).replace("hosts = 4", "hosts = 4, rate = \"102.4Gbps\"");
    let rates = "spines = 1, host_rate = \"102.4Gbps\", spine_rate = \"102.4Gbps\"";
    // 64 packets in each message.
    format!("host.mtu = \"1600B\"\n{}", toml.replace("spines = 1", rates).replace("120KB", "388608B"))
}

#[test]
fn messages_over_hpcc_are_skipped_where_telemetry_repeats() {
    for control in ["target = 1.0", "target = 1.0, multi_rate = false, fast_react = false"] {
        skips(&hpcc(&apart("hpcc"), control), 0.9);
        skips(&hpcc(&iterations("hpcc", 40, ""), control), 0.5);
        share(&hpcc(&incast("hpcc"), control));
    }
}

/// Telemetry is rounded to nanoseconds and 128 bytes, and rates follow it: they never stand still.
#[test]
fn over_hpcc_what_is_rounded_does_not_repeat() {
    for toml in [apart("hpcc"), iterations("hpcc", 40, ""), iterations("hpcc", 40, "").replace("20us", "20001ps")] {
        assert_eq!(share(&toml), 0.0);
    }
}

/// With one path to each host nothing is drawn but which packet is trimmed.
#[test]
fn long_messages_over_ndp_are_skipped() {
    let with = |toml: String, more: &str| toml.replace("\"ndp\"", &format!("{{ ndp = {{ {more} }} }}"));
    for (more, least) in [
        ("", [0.3, 0.2]),
        ("initial_window = \"15KB\"", [0.9, 0.9]),
        ("initial_window = \"15KB\", headers_per_packet = 2", [0.1, 0.7]),
        ("queue_packets = 200, pulls = \"by_class\"", [0.9, 0.8]),
        ("paths = \"switches\", departures = \"published\"", [0.3, 0.0]),
    ] {
        let star = apart("ndp");
        let three = "senders = \"1-3\"\nreceivers = \"0\"\npattern = \"dense\"\nflows = 3";
        let incast = star.replace("pattern.stride.by = 1", three);
        for (toml, least) in [star, incast].into_iter().zip(least) {
            let toml = with(toml, more);
            let share = share(&toml);
            assert!(share >= least, "{share}\n{toml}");
        }
    }
    for more in ["", "initial_window = \"15KB\""] {
        share(&with(iterations("ndp", 20, ""), more));
    }
    // How late a pull was matters to the next ones, when more come.
    let later = "[[traffic]]\nname = \"later\"\nsenders = \"3\"\nreceivers = \"1\"\nsizes.constant = \"100KB\"";
    let later = format!("{later}\nstart = \"1111111ns\"\narrivals = \"all_at_once\"\nflows = 1");
    skips(&format!("{}{later}", apart("ndp")), 0.2);
}

/// Slots of long messages send in turn. Which virtual link of a port is reserved is drawn, though it makes no
/// difference; among several ports it does.
#[test]
fn long_messages_over_harmony_are_skipped() {
    let long = apart("harmony").replace("20MB", "100MB");
    skips(&long, 0.3);
    let three = "senders = \"1-3\"\nreceivers = \"0\"\npattern = \"dense\"\nflows = 3";
    skips(&apart("harmony").replace("pattern.stride.by = 1", three), 0.05);
    // Others come while slots are in use, and find fewer.
    let later = "[[traffic]]\nname = \"later\"\nsenders = \"3\"\nreceivers = \"1\"\nsizes.constant = \"300KB\"";
    let later = format!("{later}\nstart = \"5111111ns\"\narrivals = \"all_at_once\"\nflows = 3");
    skips(&format!("{long}{later}"), 0.1);
    share(&incast("harmony"));
    share(&incast("harmony").replace("\"harmony\"", "{ harmony = { slots = 4, additional = \"0B\" } }"));
}

/// Fastpass, with these settings.
fn fastpass(toml: &str, settings: &str) -> String {
    toml.replace("\"fastpass\"", &format!("{{ fastpass = {{ {settings} }} }}"))
}

/// A message has slots for all of its packets from the beginning. A job's messages go on in other slots.
#[test]
fn long_messages_over_fastpass_are_skipped() {
    skips(&apart("fastpass"), 0.9);
    skips(&incast("fastpass"), 0.9);
    skips(&fastpass(&incast("fastpass"), "delta_admission = \"50ms\""), 0.9);
    skips(&neighbours("fastpass"), 0.5);
    share(&iterations("fastpass", 40, ""));
}

/// Each packet gets a slot of its own from the arbiter, whose own host leaves one of several to control.
#[test]
fn packets_over_fastpass_are_skipped() {
    let packets = "granularity = \"packet\"";
    skips(&fastpass(&incast("fastpass"), packets), 0.2);
    skips(&fastpass(&incast("fastpass"), &format!("{packets}, arbiter = 3, control_slots = 5")), 0.4);
}

/// UET with other settings.
fn uet(toml: &str, more: &str) -> String {
    toml.replace("\"uet\"", &format!("{{ uet = {{ {more} }} }}"))
}

/// The same where receivers give credit: a pull is for 3,840 bytes of packets of 1,024, so that four pulls are for
/// fifteen packets.
fn uet_credit(toml: &str, control: &str) -> String {
    let toml = uet(toml, &format!("entropies = 1, congestion_control = \"{control}\""));
    format!("host.mtu = \"1024B\"\nhost.header = \"64B\"\n{toml}")
}

/// UET over one path: nothing is drawn but which packet is trimmed. The mean queueing delay comes near its value for
/// thousands of acknowledgements, so long messages recur late, and short ones that follow each other do at once.
#[test]
fn messages_over_uet_are_skipped_where_there_is_one_path() {
    let (long, jobs) = (apart("uet").replace("20MB", "100MB"), iterations("uet", 60, ""));
    for (toml, least) in [
        (uet(&long, "entropies = 1"), 0.5),
        (uet(&long, "spraying = \"switches\""), 0.5),
        (uet(&jobs, "entropies = 1, initial_window = \"15KB\""), 0.8),
        (uet(&jobs, "entropies = 1, ack_bytes = \"1B\""), 0.7),
        (uet(&jobs, "spraying = \"switches\", quick_adapt = false"), 0.2),
        (uet(&jobs, "entropies = 1, trimming = false"), 0.2),
    ] {
        skips(&toml, least);
    }
}

#[test]
fn messages_over_uet_with_credit_are_skipped() {
    let three = "senders = \"1-3\"\nreceivers = \"0\"\npattern = \"dense\"\nflows = 3";
    let star = apart("uet").replace("pattern.stride.by = 1", three);
    skips(&uet_credit(&star, "rccc"), 0.5);
    skips(&uet_credit(&incast("uet"), "rccc"), 0.7);
    skips(&uet_credit(&iterations("uet", 60, ""), "rccc"), 0.7);
    skips(&uet_credit(&iterations("uet", 60, ""), "both"), 0.7);
}

/// Packets are lost, sent again, trimmed and asked for, and messages come between.
#[test]
fn what_goes_wrong_over_uet_is_the_whole_run_too() {
    let later = "[[traffic]]\nname = \"later\"\nsenders = \"4\"\nreceivers = \"0\"\nsizes.constant = \"300KB\"";
    let later = format!("{later}\nstart = \"1111111ns\"\narrivals = \"all_at_once\"\nflows = 1");
    for more in ["entropies = 1, trimming = false", "entropies = 1, queue = \"15KB\"", "spraying = \"switches\""] {
        share(&uet(&incast("uet"), more));
        share(&format!("{}{later}", uet(&incast("uet"), more)));
    }
    for control in ["rccc", "both"] {
        share(&format!("{}{later}", uet_credit(&incast("uet"), control)));
    }
}

/// Iterations over Harmony differ at several links at once. Which of them is gone over first depends on the number of
/// threads, and which is named does not.
#[test]
fn the_reason_is_the_same_on_any_number_of_threads() {
    let toml = iterations("harmony", 150, "");
    let of = |threads| run_on(threads, &format!("fast_forward = \"exact\"\n{toml}")).info.skipped;
    let one = of(1).expect("it was asked for");
    assert!(one.reason.as_ref().is_some_and(|reason| reason.starts_with("link ")), "{:?}", one.reason);
    for threads in 2..=4 {
        assert_eq!(of(threads).as_ref(), Some(&one), "{threads}");
    }
}
