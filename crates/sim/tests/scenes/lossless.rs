//! Classes that flow control keeps from losses lose nothing, with the memory that a switch has by default and beside
//! traffic that may be lost.

use clearway_sim::RunResult;

use crate::{column, counter, names, of_flows, of_links, run_both, table};

fn sum(result: &RunResult, table_name: &str, what: &str) -> u64 {
    column(table(result, table_name), what).iter().sum()
}

fn assert_all_complete(result: &RunResult) {
    let flows = table(result, "flows");
    assert!(names(flows, "status").iter().all(|status| *status == "completed"), "{}", result.scenario_toml);
}

/// RDMA over PFC without a key for memory, on every fabric at its defaults: 500 KB a port, in one pool.
#[test]
fn rdma_over_pfc_runs_on_every_default_fabric() {
    for fabric in [
        "star = {}",
        "leaf_spine = {}",
        "leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 2, host_rate = \"400Gbps\", spine_rate = \"800Gbps\" }",
        "fat_tree = { k = 4 }",
        "torus = { dims = [4, 4] }",
        "dragonfly = {}",
        "dragonfly_plus = {}",
        "dumbbell = {}",
        "mesh = { dims = [4, 4] }",
        "clos = {}",
        "rails = {}",
        "multi_plane = {}",
    ] {
        let alone = ["dragonfly_plus", "dumbbell", "mesh", "clos", "rails", "multi_plane"];
        let few = alone.iter().any(|name| fabric.starts_with(name));
        let controls: &[&str] = if few { &["pfc", "mmu"] } else { &["pfc", "mmu", "congestion_isolation", "cbfc"] };
        for control in controls {
            let result = run_both(&format!(
                "transport = \"rdma\"\nflow_control = \"{control}\"\nfabric.{fabric}\nmeasure.drain = \"20ms\"\n\
                 [[traffic]]\nsizes.constant = \"100KB\"\narrivals.poisson.load = 0.5\nflows = 150\n\
                 [[traffic]]\nname = \"incast\"\nsizes.constant = \"300KB\"\narrivals = \"all_at_once\"\n\
                 pattern.incast.degree = 7\nreceivers = \"0\"\nflows = 7\n"
            ));
            assert_eq!(of_links(&result, "overflow_packets"), 0, "{fabric} {control}");
            assert_all_complete(&result);
        }
    }
}

fn two_incasts(buffer: &str, more: &str) -> RunResult {
    let incast = |name: &str, senders: &str, receiver: u32| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nsizes.constant = \"2MB\"\nsenders = \"{senders}\"\n\
             receivers = \"{receiver}\"\npattern.incast.degree = 8\narrivals = \"all_at_once\"\nflows = 8\n"
        )
    };
    run_both(&format!(
        "transport.rdma.window = \"unlimited\"\nflow_control = \"pfc\"\nmeasure.drain = \"30ms\"\n\
         fabric.star = {{ hosts = 24 }}\nswitch.buffer = {buffer}\n{more}{}{}",
        incast("a", "2-9", 0),
        incast("b", "10-17", 1)
    ))
}

/// 24 ports of 2 MB are 48 MB, for whichever ports need them: two incasts of 14 MB each fit.
#[test]
fn memory_by_port_is_one_pool_for_what_must_not_be_lost() {
    let [ports, pool] = ["{ per_port = { bytes = \"2MB\" } }", "{ shared = { bytes = \"48MB\" } }"]
        .map(|buffer| two_incasts(buffer, ""));
    for result in [&ports, &pool] {
        assert_eq!((counter(result, "pfc_pauses"), of_links(result, "overflow_packets")), (0, 0));
        assert_all_complete(result);
    }
    assert_eq!(of_flows(&ports, "fct_ps"), of_flows(&pool, "fct_ps"));
    // A third of that is less than both hold, so they are paused, and lose nothing.
    let small = two_incasts("{ per_port = { bytes = \"500KB\" } }", "");
    assert!(counter(&small, "pfc_pauses") > 0);
    assert_eq!(of_links(&small, "overflow_packets"), 0);
}

/// UDP of a class that PFC does not pause fills the memory from two hosts; then two hosts send what must not be lost to
/// another port. Rates and lengths of the four cables are unequal.
fn beside_lossy(buffer: &str, classes: &str, between: &str, more: &str) -> RunResult {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lossy-{}.graph", between.len()));
    let hosts: String = (0..6).map(|host| format!("host h{host}\n")).collect();
    let cable = |host: u32| if host == 3 { between } else { "100Gbps 300ns" };
    let cables: String = (0..6).map(|host| format!("link h{host} s {}\n", cable(host))).collect();
    std::fs::write(&file, format!("{hosts}switch s\n{cables}")).unwrap();
    run_both(&format!(
        "flow_control.pfc.classes = {classes}\nmeasure.drain = \"30ms\"\nfabric.file.path = \"{}\"\n\
         switch.buffer = {buffer}\n{more}\
         [[traffic]]\nname = \"lossy\"\ntransport = \"udp\"\nsizes.constant = \"20MB\"\nsenders = \"0-1\"\n\
         receivers = \"4\"\npattern.incast.degree = 2\narrivals = \"all_at_once\"\nflows = 2\n\
         [[traffic]]\nname = \"roce\"\ntransport.rdma.window = \"unlimited\"\nsizes.constant = \"2MB\"\n\
         senders = \"2-3\"\nreceivers = \"5\"\npattern.incast.degree = 2\narrivals = \"all_at_once\"\n\
         start = \"500us\"\nflows = 2\n",
        file.display()
    ))
}

#[test]
fn lossy_traffic_takes_neither_headroom_nor_the_limit_of_its_queues_from_lossless_traffic() {
    for between in ["100Gbps 300ns", "400Gbps 5us", "25Gbps 1us"] {
        for buffer in [
            "{ shared = { bytes = \"2MB\" } }",
            "{ shared = { bytes = \"2MB\", alpha = 1.0 } }",
            "{ shared = { bytes = \"2MB\", alpha = 0.0625 } }",
            "{ per_port = { bytes = \"340KB\" } }",
        ] {
            for classes in ["[3]", "[3, 4]", "[2, 3, 4, 5, 6, 7]"] {
                let result = beside_lossy(buffer, classes, between, "");
                let what = format!("{between} {buffer} {classes}");
                // What was lost left by the port to host 4.
                let flows = table(&result, "flows");
                let lossless = names(flows, "class").into_iter().zip(column(flows, "resent_packets"));
                let resent: u64 = lossless.filter(|of| of.0 == "roce").map(|of| *of.1).sum();
                assert_eq!(resent, 0, "{what}");
                assert!(sum(&result, "links", "overflow_packets") > 0, "{what}: nothing overloads");
                let times = of_flows(&result, "fct_ps").to_vec();
                let classes = names(flows, "class");
                let roce = classes.iter().zip(times).filter(|of| *of.0 == "roce").map(|of| of.1).max().unwrap();
                // 4 MB over 100 Gbps, or 2 MB over the slower cable.
                let least = if between.starts_with("25") { 2e6 * 320.0 } else { 4e6 * 80.0 } * 1_500.0 / 1_460.0;
                assert!((1.0..1.2).contains(&(roce as f64 / least)), "{what}: {}", roce as f64 / least);
            }
        }
    }
}

/// The lossless hosts' port fails and comes back while senders are paused: no account is left behind.
#[test]
fn headroom_is_whole_again_after_a_failure() {
    let failure = "[[failure]]\nlink = [\"s\", \"h5\"]\nat = \"700us\"\nuntil = \"900us\"\n";
    let result = beside_lossy("{ shared = { bytes = \"2MB\" } }", "[3]", "400Gbps 5us", failure);
    let flows = table(&result, "flows");
    let ends: Vec<_> = names(flows, "class").into_iter().zip(names(flows, "status")).collect();
    assert!(ends.iter().all(|end| end.0 != "roce" || end.1 == "completed"), "{ends:?}");
}
