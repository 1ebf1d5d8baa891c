//! Paths of the folded fabric agree with those of the fabric.

use std::collections::BTreeMap;

use clearway_fabric::{
    Clos, Dragonfly, DragonflyPlus, Fabric, FabricSpec, Failures, FatTree, FileFormat, FileSpec, Grid, LeafSpine,
    Quotient, Routes,
};
use proptest::prelude::*;
use units::{Duration, HostId, LinkId, NodeId, SwitchId};

fn file(text: &str) -> Fabric {
    let spec = FileSpec { path: "net.txt".into(), format: FileFormat::Graph, switch_delay: Duration::ZERO };
    spec.parse(text).unwrap_or_else(|problem| panic!("{problem:?}\n{text}"))
}

#[test]
fn regular_fabrics_fold_to_their_tiers() {
    let folded = |spec: FabricSpec| {
        let quotient = Quotient::new(&spec.build().unwrap());
        (quotient.racks(), quotient.classes(), quotient.bundles().len())
    };
    // Nine leaves and one class of spines; one bundle up and one down for each leaf.
    assert_eq!(folded(FabricSpec::default()), (9, 10, 18));
    // 16 pods of 8 edge switches, one class of aggregation switches for each pod, one class of cores.
    assert_eq!(folded(FabricSpec::FatTree(FatTree::default())), (128, 128 + 16 + 1, 2 * (128 + 16)));
    // Every switch of a torus has a host.
    assert_eq!(folded(FabricSpec::Torus(Grid { dims: vec![3, 4], ..Grid::default() })), (12, 12, 12 * 4));
}

#[test]
fn widths_are_the_links_side_by_side() {
    // Every leaf to 4 spines and back down; a fat-tree of 16 ports fans out to 8 aggregation switches, 64 cores, and
    // in.
    let widths = |spec: FabricSpec, from, to| Quotient::new(&spec.build().unwrap()).widths(&[from], &[to]).0;
    assert_eq!(widths(FabricSpec::default(), 0, 8), [4, 4]);
    assert!(widths(FabricSpec::default(), 3, 3).is_empty());
    assert_eq!(widths(FabricSpec::FatTree(FatTree::default()), 0, 127), [8, 64, 64, 8]);
    // From corner to corner of a 3 x 3 mesh: two ways, then four links over three nodes, four, two.
    assert_eq!(widths(FabricSpec::Mesh(Grid { dims: vec![3, 3], ..Grid::default() }), 0, 8), [2, 4, 4, 2]);
}

/// Shares of the traffic between two hosts by link, from the routes of the whole fabric.
fn sprayed(fabric: &Fabric, routes: &Routes, src: HostId, dst: HostId) -> BTreeMap<LinkId, f64> {
    let mut shares = BTreeMap::new();
    let mut level = BTreeMap::from([(fabric.rack_of(src), 1.0)]);
    while !level.is_empty() {
        let mut next = BTreeMap::new();
        for (switch, mass) in level.into_iter().filter(|&(switch, _)| switch != fabric.rack_of(dst)) {
            let ports = routes.next(switch, dst);
            for &port in ports {
                let link = fabric.out_link(switch, port);
                *shares.entry(link).or_insert(0.0) += mass / ports.len() as f64;
                let to = fabric.as_switch(fabric.link(link).to).unwrap();
                *next.entry(to).or_insert(0.0) += mass / ports.len() as f64;
            }
        }
        level = next;
    }
    shares
}

fn check(fabric: &Fabric) {
    let (routes, quotient) = (Routes::compute(fabric, &Failures::default()), Quotient::new(fabric));
    let node = |link: LinkId, end: fn(&clearway_fabric::Link) -> NodeId| end(fabric.link(link));
    for (src, dst) in (0..fabric.hosts).flat_map(|a| (0..fabric.hosts).map(move |b| (HostId(a), HostId(b)))) {
        let (from, to) = (quotient.rack_of(fabric, src), quotient.rack_of(fabric, dst));
        if from == to {
            continue;
        }
        assert_eq!(quotient.distance(from, to) + 2, routes.hops(src, dst).unwrap());
        let mut by_link = BTreeMap::new();
        for (bundle, share) in quotient.shares(from, to) {
            let links = &quotient.bundles()[bundle].links;
            by_link.extend(links.iter().map(|&link| (link, share / links.len() as f64)));
        }
        let expected = sprayed(fabric, &routes, src, dst);
        assert_eq!(by_link.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        assert!(by_link.iter().all(|(link, share)| (share - expected[link]).abs() < 1e-12), "{by_link:?} {expected:?}");
        let mut onward = Vec::new();
        for switch in (0..fabric.switches).map(SwitchId).filter(|&switch| quotient.class_of(switch) != to) {
            quotient.leading_on(fabric, switch, to, &mut onward);
            let ports: Vec<_> = onward.iter().map(|&link| fabric.link(link).from_port).collect();
            assert_eq!(ports, routes.next(switch, dst));
        }
        // The links of one hop are as many as the fabric has there.
        let mut hops = vec![0; routes.hops(src, dst).unwrap() as usize - 2];
        for &link in expected.keys() {
            let switch = fabric.as_switch(node(link, |link| link.from)).unwrap();
            hops[quotient.distance(from, to) as usize + 1 - routes.distance(switch, dst).unwrap() as usize] += 1;
        }
        assert_eq!(quotient.widths(&[from], &[to]).0, hops);
        // The fastest path takes as long, hop by hop.
        let time = |link: LinkId| fabric.link(link).rate.transmit(1500) + fabric.link(link).propagation;
        let folded: Duration = quotient.path(from, to).map(|bundle| time(quotient.bundles()[bundle].links[0])).sum();
        let ends = time(fabric.uplink(src)) + time(Fabric::reverse(fabric.uplink(dst)));
        assert_eq!(folded + ends, routes.path(fabric, src, dst).map(time).sum());
    }
}

#[test]
fn paths_of_regular_fabrics() {
    let leaf_spine = LeafSpine { racks: 3, hosts_per_rack: 2, spines: 3, ..LeafSpine::default() };
    check(&FabricSpec::LeafSpine(leaf_spine).build().unwrap());
    check(&FabricSpec::FatTree(FatTree { k: 4, ..FatTree::default() }).build().unwrap());
    check(&FabricSpec::Torus(Grid { dims: vec![3, 4], ..Grid::default() }).build().unwrap());
    check(&FabricSpec::Mesh(Grid { dims: vec![2, 3, 2], ..Grid::default() }).build().unwrap());
    check(&FabricSpec::Clos(Clos { pods: 3, hosts_per_leaf: 1, ..Clos::default() }).build().unwrap());
    for groups in [None, Some(3), Some(5)] {
        check(&FabricSpec::Dragonfly(Dragonfly { groups, ..Dragonfly::default() }).build().unwrap());
        let spec = DragonflyPlus { groups, hosts_per_leaf: 1, ..DragonflyPlus::default() };
        check(&FabricSpec::DragonflyPlus(spec).build().unwrap());
    }
}

#[test]
fn unlike_spines_are_not_one() {
    // Two spines alike, one with a slower link: two classes, and three bundles of equal shares up from a.
    let fabric = file(
        "host h0 h1\nswitch a\nswitch b\nswitch s0\nswitch s1\nswitch s2\nlink h0 a 100Gbps 1ns\n\
         link h1 b 100Gbps 1ns\n\
         link a s0 40Gbps 1ns\nlink a s1 40Gbps 1ns\nlink a s2 40Gbps 1ns\n\
         link b s0 40Gbps 1ns\nlink b s1 40Gbps 1ns\nlink b s2 10Gbps 1ns\n",
    );
    assert_eq!(Quotient::new(&fabric).classes(), 4);
    check(&fabric);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn paths_of_any_graph(
        hosts in prop::collection::vec(0usize..7, 2..6),
        switches in 7usize..10,
        cables in prop::collection::vec((0usize..10, 0usize..10, 0usize..2), 0..20),
    ) {
        let mut text = String::new();
        for index in 0..hosts.len() {
            text += &format!("host h{index}\n");
        }
        for index in 0..switches {
            text += &format!("switch s{index}\n");
        }
        for (index, home) in hosts.iter().enumerate() {
            text += &format!("link h{index} s{home} 100Gbps 1ns\n");
        }
        // A chain, so that all is connected, and any others, parallel ones among them.
        for index in 1..switches {
            text += &format!("link s{} s{index} 100Gbps 1ns\n", index - 1);
        }
        for (a, b, rate) in cables {
            let (a, b) = (a % switches, b % switches);
            if a != b {
                text += &format!("link s{a} s{b} {} 1ns\n", ["100Gbps", "25Gbps"][rate]);
            }
        }
        check(&file(&text));
    }
}
