//! Counts, connectivity and path diversity of each topology, against their formulas.

use clearway_fabric::{
    Builder, Dumbbell, Fabric, FabricSpec, Failures, FatTree, FileFormat, FileSpec, Grid, LeafSpine, Rails, Routes,
    Star, Tier,
};
use units::{Duration, HostId, LinkId, NodeId, Rate};

fn build(spec: &FabricSpec) -> (Fabric, Routes) {
    let fabric = spec.build().unwrap();
    let routes = Routes::compute(&fabric, &Failures::default());
    (fabric, routes)
}

fn fat_tree(k: u32) -> FabricSpec {
    FabricSpec::FatTree(FatTree { k, ..FatTree::default() })
}

fn torus(dims: &[u32]) -> FabricSpec {
    FabricSpec::Torus(Grid { dims: dims.to_vec(), ..Grid::default() })
}

fn some_of_each() -> Vec<FabricSpec> {
    vec![
        FabricSpec::default(),
        FabricSpec::LeafSpine(LeafSpine { racks: 4, hosts_per_rack: 3, homes: 2, ..LeafSpine::default() }),
        FabricSpec::Rails(Rails { servers_per_block: 3, ..Rails::default() }),
        fat_tree(2),
        fat_tree(4),
        fat_tree(6),
        FabricSpec::Dumbbell(Dumbbell::default()),
        FabricSpec::Star(Star::default()),
        torus(&[4, 4, 4]),
        torus(&[2, 5]),
        FabricSpec::Mesh(Grid { dims: vec![3, 4], hosts_per_node: 2, ..Grid::default() }),
    ]
}

#[test]
fn every_fabric_is_symmetric_and_reaches_every_pair() {
    for spec in some_of_each() {
        let (fabric, routes) = build(&spec);
        for (id, link) in fabric.links.iter().enumerate() {
            let back = fabric.link(Fabric::reverse(LinkId::from(id)));
            assert_eq!(
                (link.from, link.from_port, link.to, link.to_port),
                (back.to, back.to_port, back.from, back.from_port)
            );
            assert_eq!((link.rate, link.propagation), (back.rate, back.propagation));
            assert_eq!(fabric.ports[link.from.index()][link.from_port.index()], LinkId::from(id));
        }
        for src in (0..fabric.hosts).map(HostId) {
            for dst in (0..fabric.hosts).map(HostId).filter(|&dst| dst != src) {
                let path: Vec<LinkId> = routes.path(&fabric, src, dst).collect();
                assert_eq!(path.len() as u32, routes.hops(src, dst).unwrap(), "{spec:?} {src} {dst}");
                assert_eq!(fabric.link(path[0]).from, fabric.host_node(src));
                assert_eq!(fabric.link(path[path.len() - 1]).to, fabric.host_node(dst));
                assert!(path.windows(2).all(|pair| fabric.link(pair[0]).to == fabric.link(pair[1]).from));
            }
        }
    }
}

#[test]
fn a_leaf_spine_has_its_counts_and_a_path_a_spine() {
    let (fabric, routes) = build(&FabricSpec::default());
    // 9 x 16 hosts, 9 + 4 switches, and a cable a host and a leaf-spine pair.
    assert_eq!((fabric.hosts, fabric.switches, fabric.links.len()), (144, 13, 2 * (144 + 9 * 4)));
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(143)), 4);
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(15)), 1);
    assert_eq!(routes.hops(HostId(0), HostId(15)), Some(2));
    assert_eq!(routes.hops(HostId(0), HostId(16)), Some(4));
    // A leaf's ports are its hosts, then the spines.
    let up: Vec<u32> = routes.next(fabric.rack_of(HostId(0)), HostId(16)).iter().map(|port| port.0).collect();
    assert_eq!(up, [16, 17, 18, 19]);
    // Racks are the groups; spine j is dealt to group j.
    assert_eq!(fabric.groups, 9);
    assert_eq!(fabric.group_of[fabric.find("host17").unwrap().index()], 1);
    assert_eq!(fabric.group_of[fabric.find("spine2").unwrap().index()], 2);
    // A packet leaves its group over 200 ns of fibre and meets 450 ns of the next switch.
    assert_eq!(fabric.lookahead(), Some(Duration::from_ns(650)));
    let of_tier = |tier| fabric.links.iter().filter(|link| link.tier == tier).count();
    assert_eq!([Tier::FromHost, Tier::Up, Tier::Down, Tier::ToHost].map(of_tier), [144, 36, 36, 144]);
}

#[test]
fn rails_join_each_server_to_a_switch_of_its_block_a_rail() {
    let spec = Rails { blocks: 2, servers_per_block: 4, rails: 8, spines: 2, ..Rails::default() };
    let (fabric, routes) = build(&FabricSpec::Rails(spec));
    assert_eq!((fabric.hosts, fabric.switches, fabric.links.len()), (8, 18, 2 * (8 * 8 + 16 * 2)));
    let name = |link: &LinkId| fabric.names[fabric.link(*link).to.index()].as_str();
    assert_eq!(fabric.uplinks(HostId(5)).iter().map(name).collect::<Vec<_>>()[..3], ["rail8", "rail9", "rail10"]);
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(3)), 8);
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(4)), 8 * 2 * 8);
    assert_eq!((fabric.groups, fabric.host_rate(HostId(0))), (2, Rate::from_gbps(800)));
}

#[test]
fn homes_must_fit_the_racks() {
    let spec = |racks, homes| FabricSpec::LeafSpine(LeafSpine { racks, homes, ..LeafSpine::default() }).build();
    let problem = spec(9, 2).unwrap_err();
    assert!(problem.key == "leaf_spine.homes" && problem.message.contains("write a divisor of 9"), "{problem:?}");
    assert_eq!(spec(9, 0).unwrap_err().key, "leaf_spine.homes");
    assert!(spec(65, 65).unwrap_err().message.contains("host0 has 65 links; a host has 1 to 64"));
}

#[test]
fn a_fat_tree_has_its_counts_and_k_squared_over_4_paths() {
    for k in [2u32, 4, 6, 8, 16] {
        let (fabric, routes) = build(&fat_tree(k));
        assert_eq!(fabric.hosts, k.pow(3) / 4);
        assert_eq!(fabric.switches, 5 * k * k / 4);
        assert_eq!(fabric.links.len() as u32, 2 * 3 * k.pow(3) / 4);
        let last = HostId(fabric.hosts - 1);
        assert_eq!(routes.count_paths(&fabric, HostId(0), last), u64::from(k * k / 4));
        assert_eq!(routes.hops(HostId(0), last), Some(6));
        if k > 2 {
            // In the pod, under another edge switch: one path an aggregation switch.
            assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(k / 2)), u64::from(k / 2));
            assert_eq!(routes.hops(HostId(0), HostId(k / 2)), Some(4));
        }
        assert_eq!(fabric.groups, k);
    }
}

#[test]
fn torus_distances_are_manhattan_with_wrap() {
    let dims = [4u32, 3, 5];
    let (fabric, routes) = build(&torus(&dims));
    assert_eq!(fabric.links.len() as u32, 2 * (60 * 3 + 60));
    let at = |node: u32| [node % 4, node / 4 % 3, node / 12];
    for src in 0..60 {
        for dst in (0..60).filter(|&dst| dst != src) {
            let around = |axis: usize| {
                let apart = at(src)[axis].abs_diff(at(dst)[axis]);
                apart.min(dims[axis] - apart)
            };
            let expected = (0..3).map(around).sum::<u32>() + 2;
            assert_eq!(routes.hops(HostId(src), HostId(dst)), Some(expected));
        }
    }
    assert_eq!(fabric.groups, 5);
}

#[test]
fn oversubscription_divides_the_rates_between_switches() {
    let spec = FabricSpec::LeafSpine(LeafSpine { oversubscription: 2.0, ..LeafSpine::default() });
    let fabric = spec.build().unwrap();
    let rate = |tier| fabric.links.iter().find(|link| link.tier == tier).unwrap().rate;
    // dcPIM section 4.1: "from 400 Gbps to 200 Gbps to create an oversubscription ratio of 2:1".
    assert_eq!(rate(Tier::Up), Rate::from_gbps(200));
    assert_eq!(rate(Tier::FromHost), Rate::from_gbps(100));
    assert_eq!(fabric.narrowest_rate(), Rate::from_gbps(100));
}

#[test]
fn groups_of_the_small_fabrics() {
    let star = FabricSpec::Star(Star::default()).build().unwrap();
    assert_eq!((star.groups, star.lookahead()), (1, None));
    let dumbbell = FabricSpec::Dumbbell(Dumbbell::default()).build().unwrap();
    assert_eq!((dumbbell.groups, dumbbell.lookahead()), (2, Some(Duration::from_ns(650))));
}

/// A ring of 16 switches with a host each; every link takes 1.1 us with the switch, but for some.
fn ring(fast: &[(usize, &str)]) -> Fabric {
    let mut lines: Vec<String> = (0..16).map(|at| format!("switch s{at} 100ns\nhost h{at}")).collect();
    lines.extend((0..16).map(|at| {
        let propagation = fast.iter().find(|of| of.0 == at).map_or("1us", |of| of.1);
        format!("link s{at} s{} 100Gbps {propagation}\nlink h{at} s{at} 100Gbps 10ns", (at + 1) % 16)
    }));
    let file = FileSpec { path: "ring".into(), format: FileFormat::Graph, switch_delay: Duration::ZERO };
    file.parse(&lines.join("\n")).unwrap()
}

#[test]
fn a_few_short_links_do_not_make_all_windows_short() {
    let lookahead = |fast: &[(usize, &str)]| ring(fast).lookahead().unwrap();
    let us = |ns| Duration::from_ns(ns);
    assert_eq!(lookahead(&[]), us(1_100));
    assert_eq!(lookahead(&[(3, "5ns")]), us(1_100));
    assert_eq!(lookahead(&[(3, "5ns"), (7, "6ns"), (12, "7ns")]), us(1_100));
    // Two of sixteen switches are an eighth of the network. Three are too many to stay together for one link more.
    assert_eq!(lookahead(&[(3, "5ns"), (4, "6ns")]), us(106));
    assert_eq!(lookahead(&[(4, "6ns"), (3, "5ns"), (9, "200ns")]), us(106));
    // Where all are short, windows are.
    let all: Vec<(usize, &str)> = (0..16).map(|at| (at, "5ns")).collect();
    assert_eq!(lookahead(&all), us(105));
}

#[test]
fn impossible_specifications_name_their_key() {
    let key = |spec: FabricSpec| spec.build().unwrap_err().key;
    assert_eq!(key(FabricSpec::LeafSpine(LeafSpine { racks: 0, ..LeafSpine::default() })), "leaf_spine.racks");
    assert_eq!(key(fat_tree(5)), "fat_tree.k");
    assert_eq!(key(fat_tree(u32::MAX - 1)), "fat_tree");
    assert_eq!(key(torus(&[8, 1])), "torus.dims[1]");
    assert_eq!(key(torus(&[u32::MAX; 6])), "torus");
    assert_eq!(key(FabricSpec::Star(Star { rate: Rate::ZERO, ..Star::default() })), "star.rate");
    let slow = Star { propagation: Duration::MAX, ..Star::default() };
    assert!(FabricSpec::Star(slow).build().unwrap_err().message.contains("host0"));
    let steep = LeafSpine { oversubscription: 0.5, ..LeafSpine::default() };
    assert_eq!(key(FabricSpec::LeafSpine(steep)), "leaf_spine.oversubscription");
}

#[test]
fn a_fabric_that_is_no_network_says_why() {
    let builder = || Builder::new(Builder::numbered("host", 2), vec![("switch0".into(), Duration::ZERO)]);
    let why = |builder: Builder| builder.finish().unwrap_err().message;
    assert!(why(builder()).contains("host0 has 0 links"));
    let mut joined = builder();
    joined.cable(NodeId(0), NodeId(1), Rate::from_gbps(1), Duration::ZERO);
    assert!(why(joined).contains("another host"));
    assert!(why(Builder::new(Vec::new(), Vec::new())).contains("are too few"));
}

#[test]
fn an_unknown_name_gets_the_nearest() {
    let fabric = FabricSpec::default().build().unwrap();
    let problem = fabric.find("spin2").unwrap_err();
    assert!(problem.message.contains("did you mean \"spine2\"?"), "{problem}");
}

#[test]
fn specifications_are_read_from_toml_with_defaults() {
    #[derive(serde::Deserialize)]
    struct Scenario {
        fabric: FabricSpec,
    }
    let read = |text: &str| toml::from_str::<Scenario>(text).map(|scenario| scenario.fabric);
    assert_eq!(read("[fabric.leaf_spine]").unwrap(), FabricSpec::default());
    assert_eq!(read("fabric = { fat_tree = { k = 4 } }").unwrap(), fat_tree(4));
    assert!(read("[fabric.leaf_spine]\nrakcs = 9").unwrap_err().message().contains("rakcs"));
}
