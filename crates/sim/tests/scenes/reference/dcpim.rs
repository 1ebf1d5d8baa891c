//! dcPIM, with the departures of its authors' program, and as the paper says.

use super::{Sets, assert_near, listed, ours};

#[test]
fn each_lone_flow_is_within_1_percent() {
    assert_lone_flows_are_near("fct_ae2022_us", &[]);
}

#[test]
fn each_lone_flow_of_their_later_program_is_within_1_percent() {
    assert_lone_flows_are_near("fct_head_us", &[("transport.dcpim.departures", "authors_2023")]);
}

fn assert_lone_flows_are_near(column: &str, sets: Sets<'_>) {
    let theirs = listed("dcpim/reference/reference_single_flow.csv", ["size_bytes", column]);
    let ours = ours("dcpim/reference-single-flow.toml", sets);
    assert_eq!((theirs.len(), ours.len()), (144, 144));
    for ([size, theirs], (ours, _)) in theirs.into_iter().zip(ours) {
        assert!((ours / theirs - 1.0).abs() < 0.01, "{size} B: {ours} us, theirs {theirs} us");
    }
}

#[test]
fn web_search_slowdown_is_within_2_percent_in_the_mean_and_6_at_the_tail() {
    // That program's own spread when ties fall in another order: 0.6% and 6%.
    assert_web_search_is_near(&[], 0.02, 0.06);
}

#[test]
#[ignore = "88 million packet hops, a minute; the same flows with the departures are above"]
fn the_papers_protocol_is_within_5_percent_of_its_authors_program_in_the_mean_and_10_at_the_tail() {
    // The departures move single classes by up to 9% and cancel in part; one of the large ones alone is outside.
    assert_web_search_is_near(&[("transport", "dcpim")], 0.05, 0.10);
}

fn assert_web_search_is_near(sets: Sets<'_>, mean_within: f64, tail_within: f64) {
    let columns = ["size_bytes", "fct_us", "oracle_fct_us"];
    let theirs = listed("dcpim/reference/reference_websearch_0.6_ae2022.csv", columns);
    let ours = ours("dcpim/reference-websearch.toml", sets);
    assert_eq!((theirs.len(), ours.len()), (10_000, 10_000));
    // Both over that program's oracle.
    let flows = theirs.into_iter().zip(ours);
    let flows = flows.map(|([size, fct, oracle], ours)| (size as u64 / 1460, fct / oracle, ours.0 / oracle));
    // Up to one bandwidth-delay product, up to eight, longer; and all.
    let sizes = [("short", 1..=49), ("medium", 50..=392), ("long", 393..=u64::MAX), ("all", 1..=u64::MAX)];
    assert_near(&sizes, &flows.collect::<Vec<_>>(), mean_within, tail_within);
}
