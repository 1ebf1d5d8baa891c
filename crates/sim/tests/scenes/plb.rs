//! Protective load balancing: flows that collide find paths of their own, and Pyrrha follows them.

use clearway_sim::{RunResult, run};
use scenario::read;

use crate::{counter, of_flows, run_both, scenario};

/// Four hosts each send 25 MB to one of their own in another rack, over four uplinks of the hosts' rate.
fn four(transport: &str, more: &str, seed: u64) -> RunResult {
    run_both(&format!(
        r#"
        seed = {seed}
        transport = {{ dctcp = {{ {transport} }} }}
        {more}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4, spine_rate = "100Gbps" }}
        [[traffic]]
        sizes.constant = "25MB"
        arrivals = "all_at_once"
        pattern = "permutation"
        senders = "rack 0"
        receivers = "rack 1"
        flows = 4
        "#
    ))
}

/// How much longer than alone the last one takes.
fn longest(result: &RunResult) -> f64 {
    let (fct, ideal) = (of_flows(result, "fct_ps"), of_flows(result, "ideal_ps"));
    fct.iter().zip(ideal).map(|(&fct, &ideal)| fct as f64 / ideal as f64).fold(0.0, f64::max)
}

// A round in which a tenth was marked is enough: the default, Linux's twelve rounds of half, is for heavier congestion.
const EAGER: &str = "plb = { marked_share = 0.1, rounds = 1 }";

#[test]
fn flows_that_collide_find_paths_of_their_own() {
    // By one hash for all their life some of the four share a path in most draws, and have half of it each or less.
    let seeds = 1..=6;
    let hashed: Vec<f64> = seeds.clone().map(|seed| longest(&four("", "", seed))).collect();
    assert!(hashed.iter().filter(|longest| **longest > 1.8).count() >= 4, "{hashed:?}");
    for (seed, hashed) in seeds.zip(hashed) {
        let result = four(EAGER, "", seed);
        let (longest, changes) = (longest(&result), counter(&result, "path_changes"));
        if hashed > 1.8 {
            // While they search two may leave one path for the same other, again and again; then each has its own and
            // is never marked. Most of what the collision cost is gone.
            assert!(changes > 0 && longest - 1.0 < (hashed - 1.0) / 2.0, "seed {seed}: {longest} for {hashed}");
        } else {
            assert_eq!((changes, longest), (0, hashed), "seed {seed}");
        }
    }
}

#[test]
fn pyrrha_finds_the_paths_of_flows_that_change_them() {
    // Its audit, that whatever waits for a root meets it on its path, is part of every run. Beside the four there is an
    // incast.
    let incast = r#"
        [[traffic]]
        name = "incast"
        sizes.constant = "100KB"
        pattern.incast.degree = 4
        senders = "rack 0"
        receivers = "7"
        start = "20us"
        arrivals.periodic.every = "100us"
        flows = 40
    "#;
    let mut changes = 0;
    for (seed, settings) in
        [(1, ""), (2, "hosts = false"), (3, "departures = \"published\""), (4, "tiers = \"single\"")]
    {
        let result = run_both(&format!(
            r#"
            seed = {seed}
            transport = {{ dctcp = {{ {EAGER} }} }}
            flow_control = {{ pyrrha = {{ {settings} }} }}
            measure.interval = "20us"
            fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4, spine_rate = "100Gbps" }}
            [[traffic]]
            name = "all"
            sizes.constant = "2MB"
            arrivals = "all_at_once"
            pattern = "permutation"
            senders = "rack 0"
            receivers = "rack 1"
            flows = 4
            {incast}
            "#
        ));
        assert_eq!(result.info.flows_completed, 44);
        assert_eq!(counter(&result, "pyrrha_roots_left"), 0);
        changes += counter(&result, "path_changes");
    }
    assert!(changes > 0);
}

#[test]
fn what_cannot_have_an_effect_is_refused() {
    let refused = |text: &str| {
        let whole = format!("{text}\n[[traffic]]\nsizes.constant = '1KB'\narrivals = 'all_at_once'\nflows = 1");
        match read(&whole, "scene.toml", &[]) {
            Ok(scenario) => run(&scenario, 1, |_| false).map(|result| result.info).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    let marks = refused("transport = { cubic = { plb = {} } }");
    assert!(marks.contains("plb") && marks.contains("marked"), "{marks}");
    let paths = refused("transport = { dctcp = { plb = {} } }\nswitch.balancing = 'spray'");
    assert!(paths.contains("switch.balancing") && paths.contains("ECMP"), "{paths}");
    let rounds = refused("transport = { dctcp = { plb = { rounds = 0 } } }");
    assert!(rounds.contains("plb.rounds"), "{rounds}");
    // The default is Linux's, and sound.
    scenario(
        "transport = { dctcp = { plb = {} } }\n[[traffic]]\nsizes.constant = '1KB'\narrivals = 'all_at_once'\n\
         flows = 1",
    );
}
