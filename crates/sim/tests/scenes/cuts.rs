//! The same network cut into parts in other ways, on other numbers of threads: the same history.

use clearway_sim::{Execution, RunResult, run};
use proptest::prelude::*;
use proptest::sample::select;

use crate::{run_on, scenario};

fn run_cut(toml: &str, threads: usize, parts: usize) -> RunResult {
    run(&scenario(toml), Execution { threads, parts: Some(parts) }, |_| false).unwrap()
}

/// A fabric in a file: switches in a chain with further links at random, hosts at random switches.
fn fabric(delays: &[u64], chords: &[(usize, usize, u64)], homes: &[usize]) -> String {
    let switches = delays.len() + 1;
    let mut lines: Vec<String> = (0..switches).map(|switch| format!("switch s{switch} 100ns")).collect();
    lines.extend((0..homes.len()).map(|host| format!("host h{host}")));
    let cable = |a: usize, b: usize, ns: u64| format!("link s{a} s{b} 40Gbps {ns}ns");
    lines.extend(delays.iter().enumerate().map(|(at, &ns)| cable(at, at + 1, ns)));
    let distinct = chords.iter().map(|&(a, b, ns)| (a % switches, b % switches, ns)).filter(|&(a, b, _)| a != b);
    lines.extend(distinct.map(|(a, b, ns)| cable(a, b, ns)));
    let host = |(host, home): (usize, &usize)| format!("link h{host} s{} 10Gbps 50ns", home % switches);
    lines.extend(homes.iter().enumerate().map(host));
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// Links of all delays: some so short that they keep their ends in one part.
    #[test]
    fn no_cut_and_no_number_of_threads_changes_the_history(
        delays in proptest::collection::vec(0u64..900, 2..9),
        chords in proptest::collection::vec((0usize..9, 0usize..9, 0u64..900), 0..6),
        homes in proptest::collection::vec(0usize..9, 4..14),
        transport in select(vec!["dcpim", "dctcp", "ndp", "uet", "falcon", "r2c2", "rdma", "homa"]),
        parts in 2usize..16,
        threads in 1usize..6,
        seed in 1u64..1000,
    ) {
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut.graph");
        std::fs::write(&file, fabric(&delays, &chords, &homes)).unwrap();
        let toml = format!(
            "seed = {seed}\ntransport = \"{transport}\"\nfabric.file.path = \"{}\"\nmeasure.drain = \"3ms\"\n\
             [[traffic]]\nsizes = {{ uniform = {{ min = \"1B\", max = \"40KB\" }} }}\n\
             arrivals = {{ poisson = {{ load = 0.7 }} }}\nflows = 60",
            file.display()
        );
        let (whole, cut) = (run_cut(&toml, 1, 1), run_cut(&toml, threads, parts));
        prop_assert_eq!(whole.info.parts, 1);
        prop_assert!(whole.info.packet_hops > 100);
        prop_assert_eq!(&whole.info.digest, &cut.info.digest);
        prop_assert!(format!("{:?}", whole.tables) == format!("{:?}", cut.tables), "tables differ");
    }
}

#[test]
fn a_fabric_is_cut_for_its_threads() {
    let parts = |fabric: &str, threads: usize| {
        let traffic = "[[traffic]]\nsizes.constant = \"1KB\"\narrivals = \"all_at_once\"\nflows = 1";
        run_on(threads, &format!("fabric.{fabric}\n{traffic}")).info.parts
    };
    assert_eq!(parts("fat_tree = { k = 32 }", 1), 1);
    assert_eq!(parts("leaf_spine = {}", 2), 2);
    // A rack stays together.
    assert_eq!(parts("star = {}", 4), 1);
}

#[test]
fn a_result_says_what_each_part_held() {
    let traffic = "[[traffic]]\nsizes.constant = \"1KB\"\narrivals = \"all_at_once\"\nflows = 1";
    let info = run_on(16, &format!("fabric.fat_tree = {{ k = 16 }}\n{traffic}")).info;
    // A pod and a sixteenth of the 64 core switches each, so that every part has links to all others.
    assert_eq!(info.part_shapes.len(), info.parts);
    for shape in info.part_shapes {
        assert_eq!((shape.hosts, shape.switches, shape.neighbours), (64, 16 + 4, 15));
    }
}

/// Sixteen switches in a ring: the link that takes 5 ns joins two of them in one part, and windows are as long as
/// without it.
#[test]
fn one_short_link_does_not_make_all_windows_short() {
    let windows = |of_one: u64| {
        let mut delays = [900; 15];
        delays[7] = of_one;
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ring-{of_one}.graph"));
        std::fs::write(&file, fabric(&delays, &[(15, 0, 900)], &std::array::from_fn::<_, 16, _>(|at| at))).unwrap();
        let toml = format!(
            "fabric.file.path = \"{}\"\n[[traffic]]\nsizes.constant = \"300KB\"\narrivals.poisson.load = 0.5\n\
             flows = 200",
            file.display()
        );
        let (whole, cut) = (run_cut(&toml, 1, 1), run_cut(&toml, 2, 8));
        assert!(cut.info.parts > 4 && whole.info.digest == cut.info.digest);
        cut.info.windows
    };
    let [without, with] = [900, 5].map(windows);
    assert!(with * 10 < without * 11, "{with} windows with a short link, {without} without");
}

/// Two pods whose own links take 200 ns, and 1 us from pod to pod: windows are of 1 us, so a pod can't be cut.
#[test]
fn what_is_nearer_than_the_lookahead_stays_in_one_part() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pods.topo");
    let tiers = "Nodes 8\nTiers 3\nPodsize 4\n\
        Tier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 200\n\
        Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 200\n\
        Tier 2\nDownlink_speed_Gbps 200\nRadix_Down 2\nDownlink_Latency_ns 1000\n";
    std::fs::write(&file, tiers).unwrap();
    let toml = format!(
        "fabric.file = {{ path = \"{}\", format = \"htsim\" }}\n[[traffic]]\nsizes.constant = \"30KB\"\n\
         arrivals.poisson.load = 0.6\nflows = 200",
        file.display()
    );
    let (whole, cut) = (run_cut(&toml, 1, 1), run_cut(&toml, 2, usize::MAX));
    assert_eq!(cut.info.parts, 2);
    assert_eq!(whole.info.digest, cut.info.digest);
}
