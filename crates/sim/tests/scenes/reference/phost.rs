//! pHost and pFabric against the simulator of pHost's authors.

use super::{Pair, assert_near, listed, ours};

/// The flows of the list with a transport of ours and that program's column: slowdown is within 5% in the mean and 10%
/// at the tail for short flows (up to 8 packets), longer ones, and all. Our mean of all.
fn compare(file: &str, fct: &str) -> f64 {
    let theirs = listed("phost/reference/imc10_0.6.csv", ["size_bytes", fct]);
    let ours = ours(file, &[]);
    assert_eq!((theirs.len(), ours.len()), (5_000, 5_000));
    let flows = theirs.into_iter().zip(ours);
    let flows: Vec<Pair> =
        flows.map(|([size, fct], (ours, alone))| (size as u64 / 1460, fct / alone, ours / alone)).collect();
    assert_near(&[("short", 1..=8), ("long", 9..=u64::MAX), ("all", 1..=u64::MAX)], &flows, 0.05, 0.10);
    flows.iter().map(|flow| flow.2).sum::<f64>() / flows.len() as f64
}

#[test]
fn both_are_what_they_are_in_the_authors_simulator_and_phost_is_within_4_percent_of_pfabric() {
    let phost = compare("phost/reference-phost.toml", "phost_us");
    let pfabric = compare("phost/reference-pfabric.toml", "pfabric_us");
    // The abstract: "performance on par with pFabric (within 4% for typical conditions)".
    assert!(phost / pfabric < 1.04, "{phost} and {pfabric}");
}
