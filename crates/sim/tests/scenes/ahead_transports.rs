//! Runs over transports that ask receivers, or compute rates, give what whole runs give when what repeats is skipped.

use super::ahead::{ring, skipped};
use crate::run_alone;

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

/// Long flows, each alone on its links.
fn apart(transport: &str) -> String {
    messages(transport, "20MB", "fabric.star = { hosts = 4 }\n[[traffic]]\npattern.stride.by = 1")
}

/// A job's ring on a ring of switches: each path is the only shortest one.
fn neighbours(transport: &str) -> String {
    let more = "measure.interval = \"0s\"";
    let racks = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 4 }";
    ring(transport, more).replace(racks, "fabric.torus = { dims = [8] }")
}

/// The share of all packets that is skipped.
fn share(toml: &str) -> f64 {
    let hops = run_alone(toml).info.packet_hops;
    let skipped = skipped(toml);
    let share = skipped.packet_hops as f64 / hops as f64;
    eprintln!("{share:.3} of {hops} in {} skips, {:?}", skipped.skips, skipped.reason);
    share
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
