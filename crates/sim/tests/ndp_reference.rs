//! NDP against the program that its authors published, on the same flows.
//!
//! `papers/ndp/reference/` holds that program's results and says how they came about.

use std::path::{Path, PathBuf};

use clearway_sim as sim;
use scenario::{Data, Source};

/// A full packet of that program carries so many bytes.
const PAYLOAD: u64 = 1_500;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/ndp")
}

/// Packets of each message, and its completion time in us by that program.
fn reference() -> Vec<(u64, f64)> {
    let text = std::fs::read_to_string(folder().join("reference/imc10_0.6.csv")).unwrap();
    let fields = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    fields.map(|of| (of[2].parse::<u64>().unwrap() / PAYLOAD, of[4].parse().unwrap())).collect()
}

/// Our completion times of the same flows, and what each takes alone, in us; with packets in turn where `turns`.
fn ours(turns: bool) -> Vec<(f64, f64)> {
    let mut source = Source::open(&folder().join("reference.toml")).unwrap();
    if turns {
        let departures = r#"["payload_only", "pulls_to_the_end"]"#;
        source.sets.push(("transport.ndp.departures".to_owned(), departures.to_owned()));
    }
    let scenario = source.read().unwrap();
    let result = sim::run(&scenario, 2, |_| false).unwrap();
    assert!(result.info.audit.iter().all(|finding| finding.ok), "{:?}", result.info.audit);
    let flows = &result.tables[0];
    let (Data::OptU64(fct), Data::U64(alone)) =
        (&flows.column("fct_ps").unwrap().data, &flows.column("ideal_ps").unwrap().data)
    else {
        panic!("columns of times")
    };
    fct.iter().zip(alone).map(|(&fct, &alone)| (fct as f64 / 1e6, alone as f64 / 1e6)).collect()
}

fn mean_and_tail(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values.iter().sum::<f64>() / values.len() as f64, values[values.len() * 99 / 100])
}

/// Messages of up to 1 BDP, up to 8, and longer: the buckets of dcPIM's figures 3c to 3e, in three.
const BUCKETS: [(&str, std::ops::RangeInclusive<u64>); 3] =
    [("up to 1 BDP", 1..=49), ("up to 8 BDP", 50..=392), ("longer", 393..=u64::MAX)];

/// A bucket, and mean and 99th percentile of theirs and of ours.
type Bucket = (&'static str, (f64, f64), (f64, f64));

/// Slowdown by size, mean and 99th percentile: theirs and ours.
fn by_size(ours: &[(f64, f64)]) -> Vec<Bucket> {
    let reference = reference();
    assert_eq!((reference.len(), ours.len()), (5_000, 5_000));
    let chosen = |packets: std::ops::RangeInclusive<u64>| {
        reference.iter().zip(ours).filter(move |(theirs, _)| packets.contains(&theirs.0))
    };
    BUCKETS
        .into_iter()
        .map(|(name, packets)| {
            let theirs = mean_and_tail(chosen(packets.clone()).map(|(theirs, ours)| theirs.1 / ours.1).collect());
            let ours = mean_and_tail(chosen(packets).map(|(_, ours)| ours.0 / ours.1).collect());
            println!("{name}: {ours:.3?} for {theirs:.3?}");
            (name, theirs, ours)
        })
        .collect()
}

#[test]
fn as_published_it_is_what_the_authors_program_makes_of_the_same_flows() {
    for (name, theirs, ours) in by_size(&ours(false)) {
        assert!((ours.0 / theirs.0 - 1.0).abs() < 0.05, "{name}: mean {} for {}", ours.0, theirs.0);
        assert!((ours.1 / theirs.1 - 1.0).abs() < 0.10, "{name}: tail {} for {}", ours.1, theirs.1);
    }
}

#[test]
fn what_short_messages_cost_there_is_the_order_in_which_a_host_sends() {
    // With messages in turn a short one has not to wait for the windows of others of its host; long ones gain a little.
    let [(_, theirs, short), _, (_, long_theirs, long)] = by_size(&ours(true))[..] else { panic!("three buckets") };
    assert!(short.0 < 0.65 * theirs.0 && short.1 < 0.45 * theirs.1, "{short:?} for {theirs:?}");
    assert!((long.0 / long_theirs.0 - 1.0).abs() < 0.10, "{long:?} for {long_theirs:?}");
}

#[test]
fn departures_are_a_name_or_a_list_and_others_are_refused_by_name() {
    let read = |value: &str| {
        let mut source = Source::open(&folder().join("reference.toml")).unwrap();
        source.sets.push(("transport.ndp.departures".to_owned(), value.to_owned()));
        source.read().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(read("published"), Ok(()));
    assert_eq!(read(r#"["in_order", "pulls_to_the_end"]"#), Ok(()));
    for wrong in ["authors", r#"["in_turn"]"#] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains("departures") || error.contains("in_order") || error.contains("published"), "{error}");
    }
}
