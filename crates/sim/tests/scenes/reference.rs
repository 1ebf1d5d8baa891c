//! Schemes against their authors' own programs, on the same flows. `python/clearway/papers/NAME/reference/` holds what
//! those programs gave and says how it came about.

mod dcpim;
mod ndp;
mod phost;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clearway_sim::run;
use scenario::Source;

use crate::of_flows;

/// A file of a paper's folder.
fn paper(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/clearway/papers").join(path)
}

/// Columns of a list of flows, by name, a row a flow.
fn listed<const N: usize>(path: &str, names: [&str; N]) -> Vec<[f64; N]> {
    let text = std::fs::read_to_string(paper(path)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let places = names.map(|name| header.iter().position(|title| *title == name).unwrap());
    lines.map(|fields| places.map(|place| fields[place].parse().unwrap())).collect()
}

/// What is set in a scenario in place of what it says: keys and values.
type Sets<'a> = &'a [(&'a str, &'a str)];

/// A paper's scenario, with keys set; or why it is refused.
fn read(path: &str, sets: Sets<'_>) -> Result<scenario::Scenario, String> {
    let mut source = Source::open(&paper(path)).unwrap();
    source.sets.extend(sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    source.read().map_err(|error| error.to_string())
}

/// Our completion time of each flow of a scenario, and what it takes alone, in us.
fn ours(path: &str, sets: Sets<'_>) -> Vec<(f64, f64)> {
    let result = run(&read(path, sets).unwrap(), 2, |_| false).unwrap();
    assert!(result.info.audit.iter().all(|finding| finding.ok), "{:?}", result.info.audit);
    let times = of_flows(&result, "fct_ps").iter().zip(of_flows(&result, "ideal_ps"));
    times.map(|(&fct, &alone)| (fct as f64 / 1e6, alone as f64 / 1e6)).collect()
}

/// A flow's size in packets, and its slowdown: theirs and ours.
type Pair = (u64, f64, f64);

/// Mean and 99th percentile.
type Slowdown = (f64, f64);

/// Names of sizes, and the packets that they stand for.
type Sizes<'a> = [(&'a str, RangeInclusive<u64>)];

/// Slowdown of the flows of each size: its name, theirs, and ours.
fn by_size<'a>(sizes: &Sizes<'a>, flows: &[Pair]) -> Vec<(&'a str, Slowdown, Slowdown)> {
    let of = |(name, packets): &(&'a str, RangeInclusive<u64>)| {
        let chosen = || flows.iter().filter(|flow| packets.contains(&flow.0));
        let theirs = mean_and_tail(chosen().map(|flow| flow.1).collect());
        let ours = mean_and_tail(chosen().map(|flow| flow.2).collect());
        println!("{name}: {ours:.4?} for {theirs:.4?}");
        (*name, theirs, ours)
    };
    sizes.iter().map(of).collect()
}

/// Ours is within these shares of theirs, in the mean and at the 99th percentile, for each size.
fn assert_near(sizes: &Sizes<'_>, flows: &[Pair], mean_within: f64, tail_within: f64) {
    for (name, theirs, ours) in by_size(sizes, flows) {
        assert!((ours.0 / theirs.0 - 1.0).abs() < mean_within, "{name}: mean {} for {}", ours.0, theirs.0);
        assert!((ours.1 / theirs.1 - 1.0).abs() < tail_within, "{name}: tail {} for {}", ours.1, theirs.1);
    }
}

fn mean_and_tail(mut values: Vec<f64>) -> Slowdown {
    values.sort_by(f64::total_cmp);
    (values.iter().sum::<f64>() / values.len() as f64, values[values.len() * 99 / 100])
}
