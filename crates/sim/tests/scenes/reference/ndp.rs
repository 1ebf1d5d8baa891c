//! NDP against the program of 2017 that its authors published.

use std::ops::RangeInclusive;

use super::{Pair, Sets, assert_near, by_size, listed, ours, read};

const KEY: &str = "transport.ndp.departures";

/// Messages of up to 1 BDP, up to 8, and longer: the buckets of dcPIM's figures 3c to 3e, in three.
const SIZES: [(&str, RangeInclusive<u64>); 3] =
    [("up to 1 BDP", 1..=49), ("up to 8 BDP", 50..=392), ("longer", 393..=u64::MAX)];

/// The flows of the list; a full packet of that program carries 1,500 B.
fn flows(sets: Sets<'_>) -> Vec<Pair> {
    let theirs = listed("ndp/reference/imc10_0.6.csv", ["size_bytes", "fct_us"]);
    let ours = ours("ndp/reference.toml", sets);
    assert_eq!((theirs.len(), ours.len()), (5_000, 5_000));
    let flows = theirs.into_iter().zip(ours);
    flows.map(|([size, fct], (ours, alone))| (size as u64 / 1_500, fct / alone, ours / alone)).collect()
}

#[test]
fn as_published_it_is_what_the_authors_program_makes_of_the_same_flows() {
    assert_near(&SIZES, &flows(&[]), 0.05, 0.10);
}

#[test]
fn what_short_messages_cost_there_is_the_order_in_which_a_host_sends() {
    // With messages in turn a short one has not to wait for the windows of others of its host; long ones gain a little.
    let flows = flows(&[(KEY, r#"["payload_only", "pulls_to_the_end"]"#)]);
    let [(_, theirs, short), _, (_, long_theirs, long)] = by_size(&SIZES, &flows)[..] else { panic!("three sizes") };
    assert!(short.0 < 0.65 * theirs.0 && short.1 < 0.45 * theirs.1, "{short:?} for {theirs:?}");
    assert!((long.0 / long_theirs.0 - 1.0).abs() < 0.10, "{long:?} for {long_theirs:?}");
}

#[test]
fn departures_are_a_name_or_a_list_and_others_are_refused_by_name() {
    let read = |value| read("ndp/reference.toml", &[(KEY, value)]).map(|_| ());
    assert_eq!(read("published"), Ok(()));
    assert_eq!(read(r#"["in_order", "pulls_to_the_end"]"#), Ok(()));
    for wrong in ["authors", r#"["in_turn"]"#] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains("departures") || error.contains("in_order") || error.contains("published"), "{error}");
    }
}
