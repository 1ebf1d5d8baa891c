//! Counts, connectivity and path diversity of each topology, against their formulas.

use clearway_fabric::{
    Builder, Clos, Dragonfly, DragonflyPlus, Dumbbell, Fabric, FabricSpec, Failures, FatTree, FileFormat, FileSpec,
    Grid, LeafSpine, MultiPlane, Rails, Routes, Star, Tier,
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
        FabricSpec::Rails(Rails { blocks: 1, spines: 0, ..Rails::default() }),
        FabricSpec::MultiPlane(MultiPlane { racks: 3, hosts_per_rack: 2, ..MultiPlane::default() }),
        FabricSpec::Clos(Clos { pods: 3, hosts_per_leaf: 2, ..Clos::default() }),
        FabricSpec::Dragonfly(Dragonfly::default()),
        FabricSpec::Dragonfly(Dragonfly { groups: Some(5), ..Dragonfly::default() }),
        FabricSpec::DragonflyPlus(DragonflyPlus { hosts_per_leaf: 1, ..DragonflyPlus::default() }),
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
    // 9 x 16 hosts, 9 + 4 switches, one cable per host, and one per leaf-spine pair.
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
fn rails_without_spines_are_islands_in_one_block() {
    let spec = |blocks| FabricSpec::Rails(Rails { blocks, spines: 0, ..Rails::default() });
    let (fabric, routes) = build(&spec(1));
    assert_eq!((fabric.hosts, fabric.switches, fabric.links.len()), (16, 8, 2 * 16 * 8));
    assert_eq!((routes.count_paths(&fabric, HostId(0), HostId(15)), routes.hops(HostId(0), HostId(15))), (8, Some(2)));
    let problem = spec(2).build().unwrap_err();
    assert!(problem.key == "rails.spines" && problem.message.contains("nothing joins the 2 blocks"), "{problem:?}");
}

#[test]
fn planes_meet_in_hosts_alone() {
    let (planes, racks, under, spines) = (3u32, 4u32, 5u32, 2u32);
    let spec = MultiPlane { planes, racks, hosts_per_rack: under, spines, ..MultiPlane::default() };
    let (fabric, routes) = build(&FabricSpec::MultiPlane(spec));
    assert_eq!((fabric.hosts, fabric.switches), (racks * under, planes * (racks + spines)));
    assert_eq!(fabric.links.len() as u32, 2 * planes * (racks * under + racks * spines));
    let plane = |node: NodeId| {
        let at = node.0 - fabric.hosts;
        if at < planes * racks { at / racks } else { (at - planes * racks) / spines }
    };
    for link in fabric.links.iter().filter(|link| fabric.as_host(link.from).is_none()) {
        assert!(fabric.as_host(link.to).is_some() || plane(link.from) == plane(link.to), "{link:?}");
    }
    // A path a spine of each plane; a path a plane within a rack.
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(under)), u64::from(planes * spines));
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(1)), u64::from(planes));
    assert_eq!((routes.hops(HostId(0), HostId(under)), routes.hops(HostId(0), HostId(1))), (Some(4), Some(2)));
    let uplinks: Vec<&str> =
        fabric.uplinks(HostId(5)).iter().map(|&link| &*fabric.names[fabric.link(link).to.index()]).collect();
    assert_eq!(uplinks, ["leaf1", "leaf5", "leaf9"]);
    // The leaves of a rack in all planes are one group, with its hosts.
    assert_eq!((fabric.groups, fabric.host_rate(HostId(0))), (racks, Rate::from_gbps(300)));
}

#[test]
fn a_clos_is_oversubscribed_at_each_tier() {
    let (leaf_oversubscription, agg_oversubscription) = (2.0, 4.0);
    let spec = Clos {
        pods: 3,
        leaves_per_pod: 6,
        hosts_per_leaf: 10,
        aggs_per_pod: 5,
        cores_per_agg: 2,
        leaf_oversubscription,
        agg_oversubscription,
        ..Clos::default()
    };
    let (fabric, routes) = build(&FabricSpec::Clos(spec));
    assert_eq!((fabric.hosts, fabric.switches), (3 * 6 * 10, 3 * (6 + 5) + 5 * 2));
    assert_eq!(fabric.links.len(), 2 * (180 + 3 * 6 * 5 + 3 * 5 * 2));
    assert_eq!([9, 59, 179].map(|dst| routes.hops(HostId(0), HostId(dst))), [Some(2), Some(4), Some(6)]);
    assert_eq!([59, 179].map(|dst| routes.count_paths(&fabric, HostId(0), HostId(dst))), [5, 5 * 2]);
    // The rate down from a switch over the rate up from it.
    for (kind, due) in [("leaf", leaf_oversubscription), ("agg", agg_oversubscription)] {
        for (node, ports) in fabric.ports.iter().enumerate().filter(|(node, _)| fabric.names[*node].starts_with(kind)) {
            let level = |node: NodeId| {
                ["host", "leaf", "agg", "core"].iter().position(|kind| fabric.names[node.index()].starts_with(kind))
            };
            let (up, down): (Vec<_>, Vec<_>) =
                ports.iter().map(|&link| fabric.link(link)).partition(|link| level(link.to) > level(link.from));
            let rate =
                |links: Vec<&clearway_fabric::Link>| links.iter().map(|link| link.rate.bps()).sum::<u64>() as f64;
            assert!((rate(down) / rate(up) - due).abs() < 1e-6, "{}", fabric.names[node]);
        }
    }
    assert_eq!(fabric.groups, 3);
}

/// Global links of a fabric that its packets from `src` to `dst` cross at most.
fn globals(fabric: &Fabric, routes: &Routes, src: HostId, dst: HostId) -> u32 {
    let mut most = std::collections::BTreeMap::from([(fabric.rack_of(src), 0)]);
    for _ in 2..routes.hops(src, dst).unwrap() {
        let mut next = std::collections::BTreeMap::new();
        for (switch, crossed) in most {
            for &port in routes.next(switch, dst) {
                let link = fabric.link(fabric.out_link(switch, port));
                let known = next.entry(fabric.as_switch(link.to).unwrap()).or_insert(0);
                *known = (*known).max(crossed + u32::from(link.global));
            }
        }
        most = next;
    }
    most[&fabric.rack_of(dst)]
}

#[test]
fn a_dragonfly_joins_every_two_groups_and_crosses_one_link_between_groups() {
    for (routers, under, links, groups) in
        [(4u32, 2u32, 2u32, None), (4, 1, 3, Some(5)), (3, 2, 2, Some(2)), (1, 1, 4, None)]
    {
        let spec = Dragonfly {
            groups,
            routers_per_group: routers,
            hosts_per_router: under,
            global_links_per_router: links,
            ..Dragonfly::default()
        };
        let (fabric, routes) = build(&FabricSpec::Dragonfly(spec));
        let groups = groups.unwrap_or(routers * links + 1);
        assert_eq!((fabric.hosts, fabric.switches), (groups * routers * under, groups * routers));
        let cables = fabric.hosts + groups * routers * (routers - 1) / 2 + groups * routers * links / 2;
        assert_eq!(fabric.links.len() as u32, 2 * cables);
        assert_eq!(fabric.groups, groups);
        let group = |node: NodeId| fabric.group_of[node.index()];
        for (one, other) in (0..groups).flat_map(|one| (0..groups).map(move |other| (one, other))) {
            let joins =
                |link: &&clearway_fabric::Link| link.global && (group(link.from), group(link.to)) == (one, other);
            let due = if one == other { 0 } else { routers * links / (groups - 1) };
            assert_eq!(fabric.links.iter().filter(joins).count() as u32, due, "{one} {other}");
        }
        for router in (0..fabric.switches).map(|switch| NodeId(fabric.hosts + switch)) {
            let out = fabric.ports[router.index()].iter().filter(|&&link| fabric.link(link).global);
            assert_eq!(out.count() as u32, links);
        }
        // Local, global, local between two host links; and no packet of another group's passes through.
        for (src, dst) in (0..fabric.hosts).flat_map(|src| (0..fabric.hosts).map(move |dst| (HostId(src), HostId(dst))))
        {
            if fabric.rack_of(src) == fabric.rack_of(dst) {
                continue;
            }
            let apart = group(fabric.host_node(src)) != group(fabric.host_node(dst));
            assert!(routes.hops(src, dst).unwrap() <= if apart { 5 } else { 3 });
            assert_eq!(globals(&fabric, &routes, src, dst), u32::from(apart));
        }
    }
}

#[test]
fn a_dragonfly_plus_goes_up_across_and_down() {
    let spec = DragonflyPlus { leaves_per_group: 3, hosts_per_leaf: 2, ..DragonflyPlus::default() };
    let (fabric, routes) = build(&FabricSpec::DragonflyPlus(spec));
    let groups = 4 * 2 + 1;
    assert_eq!((fabric.hosts, fabric.switches), (groups * 3 * 2, groups * (3 + 4)));
    assert_eq!(fabric.links.len() as u32, 2 * (fabric.hosts + groups * 3 * 4 + groups * 4 * 2 / 2));
    for dst in 1..fabric.hosts {
        let (dst, leaf, group) = (HostId(dst), dst / 2, dst / 6);
        let due = if leaf == 0 { 2 } else { 4 + u32::from(group > 0) };
        assert_eq!(routes.hops(HostId(0), dst), Some(due));
        assert_eq!(globals(&fabric, &routes, HostId(0), dst), u32::from(group > 0));
        // By any spine within the group; by the one that has the link to another.
        let paths = routes.count_paths(&fabric, HostId(0), dst);
        assert_eq!(paths, if leaf == 0 || group > 0 { 1 } else { 4 });
    }
}

#[test]
fn where_a_link_between_groups_is_dead_two_others_are_crossed() {
    let (fabric, routes) = build(&FabricSpec::Dragonfly(Dragonfly::default()));
    let (src, dst) = (HostId(0), HostId(fabric.hosts - 1));
    let dead = routes.path(&fabric, src, dst).find(|&link| fabric.link(link).global).unwrap();
    let failures = Failures { links: [dead, Fabric::reverse(dead)].into(), ..Failures::default() };
    let around = Routes::compute(&fabric, &failures);
    assert_eq!(globals(&fabric, &around, src, dst), 2);
    let path: Vec<LinkId> = around.path(&fabric, src, dst).collect();
    assert!(!path.contains(&dead) && path.len() as u32 == around.hops(src, dst).unwrap());
}

#[test]
fn groups_of_a_dragonfly_must_share_its_links() {
    let groups = |groups| FabricSpec::Dragonfly(Dragonfly { groups: Some(groups), ..Dragonfly::default() }).build();
    let problem = groups(7).unwrap_err();
    assert_eq!(problem.key, "dragonfly.groups");
    assert!(problem.message.contains("the 8 links of a group to others (4 routers with 2 each)"), "{problem:?}");
    assert!(problem.message.ends_with("write 5 or 9"), "{problem:?}");
    assert!(groups(10).unwrap_err().message.ends_with("write 9"));
    assert_eq!(groups(1).unwrap_err().key, "dragonfly.groups");
    let wide = |routers_per_group, global_links_per_router| {
        let spec = Dragonfly { routers_per_group, global_links_per_router, ..Dragonfly::default() };
        FabricSpec::Dragonfly(spec).build().unwrap_err().key
    };
    assert_eq!(
        [wide(u32::MAX, u32::MAX), wide(1 << 16, 1 << 15), wide(0, 1)],
        ["dragonfly", "dragonfly", "dragonfly.routers_per_group"]
    );
    let none = DragonflyPlus { hosts_per_leaf: 0, ..DragonflyPlus::default() };
    assert_eq!(FabricSpec::DragonflyPlus(none).build().unwrap_err().key, "dragonfly_plus.hosts_per_leaf");
}

/// The load of the busiest link between switches if every host sends one packet per unit of time to the host at the
/// given distance.
fn busiest(fabric: Fabric, routing: clearway_fabric::Routing, by: u32) -> f64 {
    let fabric = std::sync::Arc::new(fabric);
    let routes = std::sync::Arc::new(Routes::compute(&fabric, &Failures::default()));
    let tables = clearway_fabric::RoutingTables::new(fabric.clone(), routes);
    let mut loads = vec![0.0; fabric.links.len()];
    for src in 0..fabric.hosts {
        for weight in tables.weights(routing, HostId(src), HostId((src + by) % fabric.hosts)).iter() {
            loads[weight.link.index()] += f64::from(weight.weight);
        }
    }
    loads.into_iter().fold(0.0, f64::max)
}

/// The traffic of a whole group to the next shares one link on minimal routes; by random waypoints it is spread over
/// all that lead out of it, twice.
#[test]
fn the_worst_permutation_of_a_dragonfly_fills_one_link_unless_waypoints_spread_it() {
    use clearway_fabric::Routing;
    let build = || FabricSpec::Dragonfly(Dragonfly::default()).build().unwrap();
    let in_group = 4.0 * 2.0;
    assert_eq!(busiest(build(), Routing::RandomPacketSpraying, 8), in_group);
    // Each half of a Valiant path loads each link between groups with 8 hosts over 8 links, apart from waypoints in the
    // group itself.
    let valiant = busiest(build(), Routing::Vlb, 8);
    assert!((1.5..2.6).contains(&valiant), "{valiant}");
    // A Dragonfly+ has the same bottleneck: all 16 hosts of a group on one link.
    let plus = FabricSpec::DragonflyPlus(DragonflyPlus::default()).build().unwrap();
    assert_eq!(busiest(plus, Routing::RandomPacketSpraying, 16), 16.0);
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
