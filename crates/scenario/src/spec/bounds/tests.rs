use std::collections::BTreeSet;

use super::*;
use crate::read;

/// Keys of times that may be 0 although others like them may not: delays, spans and beginnings, which no timer waits
/// for again and again.
const FROM_ZERO: [&str; 71] = [
    "ack_delta",
    "admissible",
    "after",
    "at",
    "avoid_for",
    "base",
    "base_delay_target",
    "base_target",
    "clock_granularity",
    "clock_offset_max",
    "compute",
    "delay",
    "delay_max",
    "delay_min",
    "down",
    "drain",
    "duration",
    "end",
    "every",
    "flowlet",
    "from",
    "fs_range",
    "global_propagation",
    "hand_over",
    "hop_target",
    "host_propagation",
    "interrupt",
    "interrupt_moderation",
    "interval",
    "jitter",
    "latency",
    "launch",
    "max_flow_scaling",
    "max_rtt_thresh",
    "min_rtt",
    "min_rtt_thresh",
    "off",
    "older_than",
    "on",
    "optimizer",
    "origin",
    "pcie_latency",
    "per_batch_receive",
    "per_message_receive",
    "per_message_send",
    "per_packet_receive",
    "per_packet_send",
    "polling",
    "probe_rtt_duration",
    "processing",
    "propagation",
    "quiet_after_timeout",
    "reroute_compute_max",
    "reroute_delay",
    "reroute_per_hop",
    "rto_variance_min",
    "send_recv",
    "simple",
    "slack",
    "start",
    "start_jitter",
    "switch_delay",
    "t_high",
    "t_low",
    "target_delay",
    "think",
    "topology_scaling_per_hop",
    "transmission_step",
    "unit",
    "until",
    "wake_up",
];

fn scenario(more: &str) -> String {
    let base = "[fabric.star]\nhosts = 4\n[[traffic]]\nsizes = { constant = \"20KB\" }\narrivals = \"all_at_once\"\n";
    format!("{more}\n{base}")
}

fn refused(more: &str) -> String {
    read(&scenario(more), "s.toml", &[]).expect_err(more).to_string()
}

#[test]
fn a_timer_below_its_least_time_is_refused_with_what_would_be_right() {
    for key in ["refresh", "recompute"] {
        let said = refused(&format!("transport = {{ r2c2 = {{ {key} = \"1ps\" }} }}"));
        let right = if key == "refresh" { "a time from 1us" } else { "0, or a time from 1us" };
        assert!(said.starts_with(&format!("s.toml:1: transport.r2c2.{key}: 1ps is out of its bounds")), "{said}");
        assert!(said.contains(right), "{said}");
    }
    read(&scenario("transport = { r2c2 = { recompute = \"0s\" } }"), "s.toml", &[]).expect("at once");
    let said = refused("transport = { dctcp = { rto_min = \"99ns\" } }");
    assert!(said.contains("transport.dctcp.rto_min: 99ns is out of its bounds; write a time from 100ns"), "{said}");
}

#[test]
fn no_samples_are_no_choice() {
    let said = refused("transport = \"dctcp\"\nswitch = { balancing = { drill = { samples = 0, memory = 1 } } }");
    assert_eq!(said, "s.toml:2: switch.balancing.drill.samples: 0 is out of its bounds; write a number from 1 to 255");
}

#[test]
fn no_time_is_so_long_that_its_double_wraps() {
    let said = refused("transport = \"udp\"\nhost = { delay = \"18446744s\" }");
    assert!(said.contains("host.delay: 18446744s is out of its bounds"), "{said}");
}

/// Every place of a time in the schema.
fn times(schema: &Value, key: &str, bounded: bool, found: &mut BTreeSet<(String, bool)>) {
    let Some(schema) = schema.as_object() else { return };
    let bounded = bounded || schema.contains_key("x-least");
    match schema.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next()) {
        Some("Duration" | "Time") => _ = found.insert((key.to_owned(), bounded)),
        _ => {
            let parts = ["oneOf", "anyOf", "allOf"].iter().filter_map(|name| schema.get(*name)?.as_array()).flatten();
            parts.for_each(|part| times(part, key, bounded, found));
            let properties = schema.get("properties").and_then(Value::as_object);
            properties.into_iter().flatten().for_each(|(name, inner)| times(inner, name, false, found));
            schema.get("items").into_iter().for_each(|items| times(items, key, bounded, found));
        }
    }
}

/// A new key of a time either says what its least value is, or is in the list of those that may be 0.
#[test]
fn every_time_of_the_schema_has_a_least_value() {
    let schema = serde_json::to_value(schema_for!(Scenario)).expect("a schema is JSON");
    let types = schema["$defs"].as_object().expect("types");
    let mut found = BTreeSet::new();
    times(&schema, "", false, &mut found);
    types.values().for_each(|of| times(of, "", false, &mut found));
    let without: BTreeSet<&str> = found.iter().filter(|of| !of.1).map(|of| of.0.as_str()).collect();
    let known: BTreeSet<&str> = FROM_ZERO.into();
    let new: Vec<_> = without.difference(&known).collect();
    assert!(new.is_empty(), "{new:?}: add #[schemars(extend(\"x-least\" = ...))], or to the list if 0 is harmless");
    assert!(found.iter().filter(|of| of.1).count() > 15, "timers have bounds");
}
