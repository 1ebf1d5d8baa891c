use proptest::prelude::*;
use units::{HostId, Rate};

use super::*;
use crate::{Failures, Routes};

fn parse(format: FileFormat, text: &str) -> Result<Fabric, String> {
    let spec = FileSpec { path: "net.txt".into(), format, switch_delay: Duration::from_ns(450) };
    spec.parse(text).map_err(|problem| problem.to_string())
}

const GRAPH: &str = "
# two racks and a spine
host a b
host c
switch left
switch right 100ns
switch top
link a left 100Gbps 200ns
link b left 25Gbps 200ns
link c right 100Gbps 200ns
link left top 400Gbps 1us   # long way
link right top 400Gbps 1us
";

#[test]
fn a_graph_keeps_names_rates_and_delays() {
    let fabric = parse(FileFormat::Graph, GRAPH).unwrap();
    assert_eq!((fabric.hosts, fabric.switches, fabric.links.len()), (3, 3, 10));
    assert_eq!(fabric.names, ["a", "b", "c", "left", "right", "top"]);
    assert_eq!(fabric.host_rate(HostId(1)), Rate::from_gbps(25));
    assert_eq!(fabric.switch_delay, [450, 100, 450].map(Duration::from_ns));
    assert_eq!(fabric.groups, 2);
}

#[test]
fn a_host_may_have_several_links_in_a_graph() {
    // Two parallel cables to one switch and one to another.
    let fabric =
        parse(FileFormat::Graph, &format!("{GRAPH}link c right 50Gbps 200ns\nlink c left 50Gbps 200ns")).unwrap();
    let (left, right) = (fabric.rack_of(HostId(0)), fabric.rack_of(HostId(2)));
    assert_eq!((fabric.host_rate(HostId(2)), fabric.uplinks(HostId(2)).len()), (Rate::from_gbps(200), 3));
    let routes = Routes::compute(&fabric, &Failures::default());
    assert_eq!([left, right].map(|switch| routes.next(switch, HostId(2)).len()), [1, 2]);
    // From a on left nothing is nearer than left's own link to c, and from c to a the third of its links.
    assert_eq!(routes.hops(HostId(0), HostId(2)), Some(2));
    assert_eq!(routes.first_ports(HostId(2), HostId(0), u64::MAX), 0b100);
    // Both switches share a host, so they form one group.
    assert_eq!(fabric.groups, 1);
}

#[test]
fn a_malformed_graph_is_named_by_line_and_field() {
    let wrong = |line: &str| parse(FileFormat::Graph, &format!("{GRAPH}{line}")).unwrap_err();
    let after = GRAPH.lines().count() + 1;
    let says = |line: &str, what: &str| {
        let error = wrong(line);
        assert!(error.contains(&format!("net.txt:{after}: ")) && error.contains(what), "{error}");
    };
    says("link a tops 1Gbps 1us", "did you mean \"top\"");
    says("link left right 1Gbs 1us", "\"1Gbs\"");
    says("link left right 1Gbps", "its propagation is missing");
    says("link left right 1Gbps 1us 0", "should end before \"0\"");
    says("host c", "already a node \"c\"");
    says("swich x", "did you mean \"switch\"");
    assert!(wrong("switch alone").contains("no path from a to alone"));
}

#[test]
fn an_hpcc_file_keeps_its_numbers() {
    let text = "4 1 3\n1\n0 1 100Gbps 0.001ms 0\n2 1 100Gbps 0.001ms 0.000000\n3 1 25Gbps 1us 0\n";
    let fabric = parse(FileFormat::Hpcc, text).unwrap();
    assert_eq!(fabric.names, ["host0", "host2", "host3", "switch1"]);
    let simai = parse(FileFormat::Hpcc, "5 2 1 1 6 H100\n2 3 4\n0 2 1440Gbps 0.000025ms 0\n").err().unwrap();
    assert!(simai.contains("net.txt:1: ") && simai.contains("SimAI's topology"), "{simai}");
    assert_eq!(fabric.link(fabric.uplink(HostId(0))).propagation, Duration::from_us(1));
    assert_eq!(fabric.switch_delay, [Duration::from_ns(450)]);

    // HPCC's own file explains its format after the announced links, where HPCC reads nothing.
    let explained =
        format!("{text}First line: total node #, switch node #, link #\nsrc0 dst0 rate delay error_rate\n...\n");
    assert_eq!(parse(FileFormat::Hpcc, &explained).unwrap().names, fabric.names);

    let wrong = |from: &str, to: &str| parse(FileFormat::Hpcc, &text.replace(from, to)).unwrap_err();
    assert!(wrong("3 1 25", "4 1 25").contains("net.txt:5: the link's first node is \"4\""));
    assert!(wrong("25Gbps", "25G").contains("net.txt:5: the link's rate \"25G\""));
    assert!(wrong("0.000000", "0.01").contains("net.txt:4: the link's error rate is 0.01"));
    assert!(wrong("4 1 3", "4 1 4").contains("the file ends before all 4 links"));
}

const LEAF_SPINE: &str = "
Nodes 32
Tiers 2
Podsize 32
Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 0
Oversubscribed 4
Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 500
";

#[test]
fn an_htsim_leaf_spine() {
    let fabric = parse(FileFormat::Htsim, LEAF_SPINE).unwrap();
    // 32 hosts under 4 leaves of 8, each with an uplink to 2 spines.
    assert_eq!((fabric.hosts, fabric.switches, fabric.links.len()), (32, 6, 2 * (32 + 4 * 2)));
    assert_eq!(fabric.names[32], "leaf0");
    // The file gives the leaves' delay, the specification the spines'.
    assert_eq!(fabric.switch_delay[0], Duration::ZERO);
    assert_eq!(fabric.switch_delay[5], Duration::from_ns(450));
    let wrong = |from: &str, to: &str| parse(FileFormat::Htsim, &LEAF_SPINE.replace(from, to)).unwrap_err();
    assert!(wrong("Oversubscribed 4", "Oversubscribed 2").contains("Oversubscribed 2"));
    assert!(wrong("Radix_Down 4", "Radix_Down 3").contains("Radix_Down 3"));
    assert!(wrong("Radix_Up 2", "Radix_Upp 2").contains("net.txt:8: there is no key \"radix_upp\""));
    assert!(wrong("Tier 1\n", "Queue_Up 8\nTier 1\n").contains("switch settings"));
    assert!(wrong("Podsize 32", "Podsize 0").contains("net.txt:4: Podsize is \"0\""));
}

#[test]
fn an_htsim_fat_tree_with_bundles() {
    // Two pods of 2 + 2 switches and 4 cores, pairs of half-rate cables to each core.
    let text = "Nodes 8\nTiers 3\nPodsize 4\n\
        Tier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\n\
        Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nDownlink_Latency_ns 1000\nBundle 1\n\
        Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\nBundle 2\n";
    let fabric = parse(FileFormat::Htsim, text).unwrap();
    assert_eq!((fabric.hosts, fabric.switches, fabric.groups), (8, 4 + 4 + 4, 2));
    assert_eq!(fabric.links.len(), 2 * (8 + 8 + 4 * 4));
    let routes = Routes::compute(&fabric, &Failures::default());
    // 2 aggregation switches x 2 cores each x 2 cables up x 2 cables down.
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(7)), 16);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_text_never_panics(text: String, words in prop::collection::vec(
        prop::sample::select(vec!["host", "switch", "link", "a", "b", "0", "1", "2", "4294967295", "1Gbps", "1us", "-1",
            "\n", "Tier", "Nodes", "Tiers", "Podsize", "Radix_Up", "Radix_Down", "Bundle", "Downlink_speed_gbps"]),
                0..60),
    ) {
        for format in [FileFormat::Graph, FileFormat::Hpcc, FileFormat::Htsim] {
            let _ = parse(format, &text);
            let _ = parse(format, &words.join(" "));
        }
    }

    #[test]
    fn a_damaged_file_never_panics(line in 0usize..15, number: u32) {
        let damage = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let line = line % lines.len();
            let key = lines[line].split(' ').next().unwrap_or("").to_owned();
            lines[line] = format!("{key} {number}");
            lines.join("\n")
        };
        let _ = parse(FileFormat::Htsim, &damage(LEAF_SPINE));
        let _ = parse(FileFormat::Graph, &damage(GRAPH));
    }
}

#[test]
fn an_error_says_nothing_of_a_file_that_is_no_topology() {
    for format in [FileFormat::Graph, FileFormat::Hpcc, FileFormat::Htsim] {
        let error = parse(format, "# a comment\nroot:*:19722:0:99999\ndaemon:*:19722\n").unwrap_err();
        assert!(!error.contains("root") && error.contains("net.txt:2"), "{error}");
    }
}

#[test]
fn what_never_ends_is_not_read() {
    for path in ["/dev/zero", "/", "/dev/urandom"] {
        let error = read_file(Path::new(path), 10).unwrap_err().to_string();
        assert!(error.contains("not a file"), "{error}");
    }
    assert!(read_file(Path::new("Cargo.toml"), 10).unwrap_err().to_string().contains("more than 10 bytes"));
    assert!(!read_file(Path::new("Cargo.toml"), 1 << 20).unwrap().is_empty());
}
