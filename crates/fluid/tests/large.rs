//! Networks that no packet-level run could wait for.

use clearway_fluid::{EstimateInfo, estimate};

fn run(fabric: &str, settings: &str, duration: &str) -> EstimateInfo {
    let text = format!(
        "transport = 'dcpim'\nfabric.{fabric}\n{settings}[[traffic]]\nsizes = 'websearch'\n\
         arrivals.poisson = {{ load = 0.5 }}\n\
         duration = '{duration}'\n"
    );
    let scenario = scenario::read(&text, "test", &[]).unwrap_or_else(|error| panic!("{error}"));
    let info = estimate(&scenario, |_| false).unwrap_or_else(|problem| panic!("{problem:?}")).info;
    assert!(info.audit.iter().all(|finding| finding.ok), "{:?}", info.audit);
    assert_eq!(info.flows_completed, info.flows);
    eprintln!("{fabric}: {info:?}");
    info
}

#[test]
fn ten_thousand_hosts() {
    let leaf_spine = "leaf_spine = { racks = 320, hosts_per_rack = 32, spines = 8 }";
    assert_eq!(run(leaf_spine, "", "200us").hosts, 10_240);
    assert_eq!(run("fat_tree = { k = 34 }", "", "200us").hosts, 9_826);
    assert_eq!(run("fat_tree = { k = 34 }", "switch.balancing = 'ecmp'\n", "200us").hosts, 9_826);
    assert_eq!(run("fat_tree = { k = 34, oversubscription = 2.0 }", "", "200us").hosts, 9_826);
}

#[test]
#[ignore = "half a minute"]
fn a_hundred_thousand_hosts() {
    let leaf_spine = "leaf_spine = { racks = 3200, hosts_per_rack = 32, spines = 8 }";
    assert_eq!(run(leaf_spine, "", "1ms").hosts, 102_400);
    assert_eq!(run("fat_tree = { k = 74 }", "", "1ms").hosts, 101_306);
    assert_eq!(run("fat_tree = { k = 74 }", "switch.balancing = 'ecmp'\n", "1ms").hosts, 101_306);
}

#[test]
fn a_torus_in_which_all_hangs_together() {
    let text = "transport = 'r2c2'\nfabric.torus = { dims = [4, 4, 4] }\nswitch.balancing = 'spray'\n[[traffic]]\n\
                sizes = 'imc10'\n\
                arrivals.poisson = { load = 0.3 }\nflows = 2000\n";
    let info = estimate(&scenario::read(text, "test", &[]).unwrap(), |_| false).unwrap().info;
    assert!(info.audit.iter().all(|finding| finding.ok), "{:?}", info.audit);
    assert_eq!(info.flows_completed, 2_000);
}
