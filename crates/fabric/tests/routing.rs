//! Routes on arbitrary graphs, around failures, and carried by packets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clearway_fabric::{
    Builder, Change, Epoch, Fabric, FabricSpec, FailureSpec, Failures, FatTree, Flap, Grid, LeafSpine, LinkNoise,
    Quotient, RerouteScope, Rerouting, Route, RouteError, Routes, epochs,
};
use proptest::prelude::*;
use units::{Duration, HostId, LinkId, NodeId, PortId, Problem, Rate, Stream, SwitchId, Time, interrupt};

/// A connected graph of switches (a random tree and more cables), with a host on each.
fn graphs() -> impl Strategy<Value = Fabric> {
    graphs_with(0)
}

/// The same with up to `homes` more links for each host, each to another switch.
fn graphs_with(homes: usize) -> impl Strategy<Value = Fabric> {
    (1usize..12)
        .prop_flat_map(move |switches| {
            let parents = prop::collection::vec(any::<prop::sample::Index>(), switches - 1);
            let more = prop::collection::vec((0..switches, 0..switches), 0..20);
            let homes = prop::collection::btree_set((0..switches.max(2), 0..switches), 0..=homes);
            (Just(switches as u32), parents, more, homes)
        })
        .prop_map(|(switches, parents, more, homes)| {
            let hosts = switches.max(2);
            let names = Builder::numbered("switch", switches).into_iter().map(|name| (name, Duration::from_ns(1)));
            let mut fabric = Builder::new(Builder::numbered("host", hosts), names.collect());
            let rate = Rate::from_gbps(10);
            for host in 0..hosts {
                fabric.cable(NodeId(host), fabric.switch(host % switches), rate, Duration::from_ns(1));
            }
            for (host, switch) in homes.into_iter().filter(|(host, switch)| host % switches as usize != *switch) {
                fabric.cable(NodeId(host as u32), fabric.switch(switch as u32), rate, Duration::from_ns(1));
            }
            for (child, parent) in parents.iter().enumerate() {
                let parent = parent.index(child + 1) as u32;
                fabric.cable(fabric.switch(child as u32 + 1), fabric.switch(parent), rate, Duration::from_ns(1));
            }
            for (a, b) in more.into_iter().filter(|(a, b)| a != b) {
                fabric.cable(fabric.switch(a as u32), fabric.switch(b as u32), rate, Duration::from_ns(1));
            }
            fabric.finish().unwrap()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_port_of_a_set_is_one_hop_nearer_and_no_other_is(fabric in graphs_with(12),
        dead in prop::collection::vec(any::<prop::sample::Index>(), 0..6), up in 0u64..1 << 12) {
        let links: BTreeSet<LinkId> = dead.iter().map(|index| LinkId::from(index.index(fabric.links.len()))).collect();
        let failures = Failures { links, ..Failures::default() };
        let routes = Routes::compute(&fabric, &failures);
        for dst in (0..fabric.hosts).map(HostId) {
            for switch in (0..fabric.switches).map(SwitchId) {
                let here = routes.distance(switch, dst);
                let leads_nearer = |&port: &PortId| {
                    let link = fabric.out_link(switch, port);
                    let there = match fabric.as_switch(fabric.link(link).to) {
                        Some(next) => routes.distance(next, dst),
                        None => (fabric.as_host(fabric.link(link).to) == Some(dst)).then_some(0),
                    };
                    !failures.kills(&fabric, link) && here.is_some() && there.map(|there| there + 1) == here
                };
                let ports = (0..fabric.ports[fabric.switch_node(switch).index()].len()).map(PortId::from);
                let expected: Vec<PortId> = ports.filter(leads_nearer).collect();
                prop_assert_eq!(routes.next(switch, dst), &expected[..]);
                prop_assert_eq!(here.is_none(), expected.is_empty());
            }
            // A host chooses its own links the same way, whichever of them are up.
            for src in (0..fabric.hosts).map(HostId).filter(|&src| src != dst) {
                let beyond = |port: usize| {
                    let uplink = *fabric.uplinks(src).get(port).filter(|_| up >> port & 1 == 1)?;
                    routes.distance(fabric.switch_at(uplink), dst)
                };
                let nearest = (0..16).filter_map(beyond).min();
                let expected = (0..16).filter(|&port| nearest.is_some() && beyond(port) == nearest);
                prop_assert_eq!(routes.first_ports(src, dst, up), expected.fold(0, |ports, port| ports | 1 << port));
            }
        }
    }

    #[test]
    fn a_sampled_route_ends_at_its_destination(fabric in graphs(), seed: u64) {
        let routes = Routes::compute(&fabric, &Failures::default());
        let mut stream = Stream::new(seed, 0, "route");
        let (src, dst) = (HostId(0), HostId(fabric.hosts - 1));
        let route = Route::sample(&fabric, &routes, src, dst, &mut stream).unwrap();
        let mut at = fabric.switch_node(fabric.rack_of(src));
        let mut hops = 0;
        while let Some(switch) = fabric.as_switch(at) {
            at = fabric.link(fabric.out_link(switch, route.port(hops, fabric.port_bits()))).to;
            hops += 1;
        }
        prop_assert_eq!(at, fabric.host_node(dst));
        prop_assert_eq!(Some(hops + 1), routes.hops(src, dst));
    }

    #[test]
    fn a_route_gives_back_its_ports(ports in prop::collection::vec(0u32..256, 0..=8)) {
        let ports: Vec<PortId> = ports.into_iter().map(PortId).collect();
        let route = Route::new(&ports, 8).unwrap();
        let back: Vec<PortId> = (0..ports.len() as u32).map(|hop| route.port(hop, 8)).collect();
        prop_assert_eq!(back, ports);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shared_hops_are_those_that_all_shortest_paths_end_with(fabric in graphs_with(12), dead in 0usize..60) {
        let dead = LinkId::from(dead % fabric.links.len());
        let routes = Routes::compute(&fabric, &Failures { links: [dead].into(), ..Failures::default() });
        for switch in (0..fabric.switches).map(SwitchId) {
            for dst in (0..fabric.hosts).map(HostId) {
                let paths = all_paths(&fabric, &routes, switch, dst);
                prop_assert_eq!(routes.shared_hops(switch, dst, beyond(&fabric)) as usize, common(&paths));
            }
        }
    }
}

#[test]
fn a_route_that_does_not_fit_is_refused() {
    assert_eq!(Route::new(&[PortId(0); 9], 8), Err(RouteError::TooLong { switches: 9, port_bits: 8 }));
    assert_eq!(Route::new(&[PortId(8)], 3), Err(RouteError::NoSuchPort { port: PortId(8), port_bits: 3 }));
    // R2C2's torus: 6 neighbours and a host take 3 bits.
    assert_eq!(FabricSpec::Torus(Grid::default()).build().unwrap().port_bits(), 3);
}

/// All shortest paths, each backwards from the host as (switch, port).
fn all_paths(fabric: &Fabric, routes: &Routes, switch: SwitchId, dst: HostId) -> Vec<Vec<(SwitchId, PortId)>> {
    let mut paths = Vec::new();
    for &port in routes.next(switch, dst) {
        let next = fabric.as_switch(fabric.link(fabric.out_link(switch, port)).to);
        let mut rest = next.map_or(vec![Vec::new()], |next| all_paths(fabric, routes, next, dst));
        rest.iter_mut().for_each(|path| path.push((switch, port)));
        paths.append(&mut rest);
    }
    paths
}

/// The switch at the other end of a port.
fn beyond(fabric: &Fabric) -> impl Fn(SwitchId, PortId) -> SwitchId + '_ {
    |switch, port| fabric.as_switch(fabric.link(fabric.out_link(switch, port)).to).unwrap()
}

/// Number of hops, counted from the host, that all paths share.
fn common(paths: &[Vec<(SwitchId, PortId)>]) -> usize {
    let Some(first) = paths.first() else { return 0 };
    (0..first.len()).take_while(|&hop| paths.iter().all(|path| path.get(hop) == first.get(hop))).count()
}

#[test]
fn what_shortest_paths_share_follows_from_the_tiers() {
    let fabric = FabricSpec::FatTree(FatTree { k: 4, ..FatTree::default() }).build().unwrap();
    let routes = Routes::compute(&fabric, &Failures::default());
    let shared = |name: &str| {
        routes.shared_hops(fabric.as_switch(fabric.find(name).unwrap()).unwrap(), HostId(15), beyond(&fabric))
    };
    // Any aggregation switch of the pod may be the last but one, seen from an edge; from an aggregation switch it is
    // the one at the same place; from a core on the path is unique.
    assert_eq!(["edge0", "edge6", "agg0", "core0", "agg6", "edge7"].map(shared), [1, 1, 2, 3, 2, 1]);
}

#[test]
fn sampling_uses_every_path() {
    let fabric = FabricSpec::FatTree(FatTree { k: 4, ..FatTree::default() }).build().unwrap();
    let routes = Routes::compute(&fabric, &Failures::default());
    let mut stream = Stream::new(1, 0, "route");
    let mut seen = BTreeSet::new();
    for _ in 0..200 {
        seen.insert(Route::sample(&fabric, &routes, HostId(0), HostId(15), &mut stream).unwrap().0);
    }
    assert_eq!(seen.len() as u64, routes.count_paths(&fabric, HostId(0), HostId(15)));
}

fn link_fails(a: &str, b: &str, at: u64, until: Option<u64>) -> FailureSpec {
    let link = Some([a.to_owned(), b.to_owned()]);
    FailureSpec { at: Time::from_us(at), until: until.map(Time::from_us), link, ..FailureSpec::default() }
}

/// The timeline with new routes 5 us after each change.
fn timeline(fabric: &Fabric, specs: &[FailureSpec]) -> Result<Vec<Epoch>, Problem> {
    epochs(
        fabric,
        specs,
        &Rerouting::at_once(Duration::from_us(5)),
        &Arc::new(Routes::compute(fabric, &Failures::default())),
    )
}

/// The two links of a cable, in order.
fn both_ways(fabric: &Fabric, a: &str, b: &str) -> Vec<LinkId> {
    let there = fabric.links_between(fabric.find(a).unwrap(), fabric.find(b).unwrap()).next().unwrap();
    let mut both = vec![there, Fabric::reverse(there)];
    both.sort_unstable();
    both
}

#[test]
fn failures_make_a_timeline_of_what_is_dead_and_then_routes_around_it() {
    let fabric = FabricSpec::default().build().unwrap();
    let spine = FailureSpec { at: Time::from_us(20), switch: Some("spine0".into()), ..FailureSpec::default() };
    let specs = [link_fails("spine2", "leaf0", 10, Some(30)), spine];
    let epochs = timeline(&fabric, &specs).unwrap();
    let times: Vec<u64> = epochs.iter().map(|epoch| epoch.at.ps() / 1_000_000).collect();
    assert_eq!(times, [10, 15, 20, 25, 30, 35]);
    let leaf0 = fabric.rack_of(HostId(0));
    let seen = |index: usize| match &epochs[index].change {
        Change::Dead(failures) => vec![failures.links.len(), failures.switches.len()],
        Change::Noisy(_) | Change::Slow(_) => unreachable!("nothing works badly"),
        Change::Reroute(routes, whom) => {
            assert_eq!(*whom, RerouteScope::All);
            routes.next(leaf0, HostId(143)).iter().map(|port| port.index()).collect()
        }
    };
    // Leaf 0's uplinks are ports 16 to 19, one a spine.
    assert_eq!(seen(0), [2, 0]);
    assert_eq!(seen(1), [16, 17, 19]);
    assert_eq!(seen(2), [2, 1]);
    assert_eq!(seen(3), [17, 19]);
    assert_eq!(seen(4), [0, 1]);
    assert_eq!(seen(5), [17, 18, 19]);
}

#[test]
fn what_is_cut_off_has_no_route() {
    let fabric = FabricSpec::LeafSpine(LeafSpine { spines: 1, ..LeafSpine::default() }).build().unwrap();
    let spine = fabric.as_switch(fabric.find("spine0").unwrap()).unwrap();
    let routes = Routes::compute(&fabric, &Failures { switches: [spine].into(), ..Failures::default() });
    assert_eq!(routes.hops(HostId(0), HostId(1)), Some(2));
    assert_eq!(routes.hops(HostId(0), HostId(16)), None);
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(16)), 0);
    assert_eq!(routes.path(&fabric, HostId(0), HostId(16)).count(), 0);
    assert!(routes.next(fabric.rack_of(HostId(0)), HostId(16)).is_empty());
    let down = Fabric::reverse(fabric.uplink(HostId(1)));
    let routes = Routes::compute(&fabric, &Failures { links: [down].into(), ..Failures::default() });
    assert_eq!((routes.hops(HostId(0), HostId(1)), routes.hops(HostId(1), HostId(0))), (None, Some(2)));
}

#[test]
fn what_works_badly_is_no_failure_and_errors_add_up() {
    let fabric = FabricSpec::LeafSpine(LeafSpine::default()).build().unwrap();
    let noisy = |at, until, rate, loss| FailureSpec {
        bit_error_rate: Some(rate),
        loss: Some(loss),
        ..link_fails("leaf0", "spine0", at, until)
    };
    let epochs = timeline(&fabric, &[noisy(10, Some(30), 1e-3, 0.5), noisy(20, None, 1e-2, 0.2)]).unwrap();
    let noise = |change: &Change| match change {
        Change::Noisy(links) => links.clone(),
        other => panic!("{other:?}"),
    };
    let both = both_ways(&fabric, "leaf0", "spine0");
    let due = [(10, 1e-3, 0.5), (20, 1.0 - 0.999 * 0.99, 0.6), (30, 1e-2, 0.2)];
    for (epoch, (at, bit_error_rate, loss)) in epochs.iter().zip(due) {
        assert_eq!(epoch.at, Time::from_us(at));
        let links = noise(&epoch.change);
        assert_eq!(links.iter().map(|of| of.0).collect::<Vec<_>>(), both, "both directions");
        let near =
            |of: &LinkNoise| (of.bit_error_rate - bit_error_rate).abs() < 1e-12 && (of.loss - loss).abs() < 1e-12;
        assert!(links.iter().all(|of| near(&of.1)), "{links:?}");
    }
    assert_eq!(epochs.len(), 3, "routes stay as they are");
}

#[test]
fn of_two_rates_the_slower_holds_and_one_way_is_one_direction() {
    let fabric = FabricSpec::LeafSpine(LeafSpine::default()).build().unwrap();
    let slow = |at, until, gbps| FailureSpec {
        rate: Some(Rate::from_gbps(gbps)),
        one_way: true,
        ..link_fails("spine0", "leaf0", at, until)
    };
    let epochs = timeline(&fabric, &[slow(10, Some(40), 10), slow(20, Some(30), 5)]).unwrap();
    let rates: Vec<(u64, Vec<u64>)> = epochs
        .iter()
        .map(|epoch| match &epoch.change {
            Change::Slow(links) => {
                let [a, b] = ["spine0", "leaf0"].map(|name| fabric.find(name).unwrap());
                let there = fabric.links_between(a, b).next().unwrap();
                assert!(links.iter().all(|of| of.0 == there), "{links:?}");
                (epoch.at.ps() / 1_000_000, links.iter().map(|of| of.1.bps() / 1_000_000_000).collect())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rates, [(10, vec![10]), (20, vec![5]), (30, vec![10]), (40, vec![])]);
}

#[test]
fn a_link_that_flaps_has_two_tables_however_often() {
    let fabric = FabricSpec::LeafSpine(LeafSpine::default()).build().unwrap();
    let flap = Some(Flap { down: Duration::from_us(10), every: Duration::from_us(100) });
    // At 1, 101, ..., 901: the tenth is over by 911 and the eleventh would not be by 1,010.
    let spec = FailureSpec { flap, ..link_fails("leaf0", "spine0", 1, Some(1_010)) };
    let whole = Arc::new(Routes::compute(&fabric, &Failures::default()));
    let epochs = epochs(&fabric, &[spec], &Rerouting::at_once(Duration::from_us(7)), &whole).unwrap();
    let dead: Vec<(u64, usize)> = epochs
        .iter()
        .filter_map(|epoch| match &epoch.change {
            Change::Dead(failures) => Some((epoch.at.ps() / 1_000_000, failures.links.len())),
            _ => None,
        })
        .collect();
    let due: Vec<(u64, usize)> = (0..10).flat_map(|turn| [(1 + 100 * turn, 2), (11 + 100 * turn, 0)]).collect();
    assert_eq!(dead, due);
    let tables: Vec<(u64, &Arc<Routes>)> = epochs
        .iter()
        .filter_map(|epoch| match &epoch.change {
            Change::Reroute(routes, _) => Some((epoch.at.ps() / 1_000_000, routes)),
            _ => None,
        })
        .collect();
    assert_eq!(tables.iter().map(|of| of.0).collect::<Vec<_>>(), due.iter().map(|of| of.0 + 7).collect::<Vec<_>>());
    for (turn, (_, routes)) in tables.iter().enumerate() {
        let same = if turn % 2 == 0 { tables[0].1 } else { &whole };
        assert!(Arc::ptr_eq(routes, same), "turn {turn}");
    }
}

#[test]
fn each_switch_has_its_tables_when_it_has_heard_and_computed() {
    let fabric = FabricSpec::LeafSpine(LeafSpine::default()).build().unwrap();
    let whole = Arc::new(Routes::compute(&fabric, &Failures::default()));
    let per_hop = Duration::from_us(10);
    let told = Rerouting { per_hop, ..Rerouting::at_once(Duration::from_us(5)) };
    let tables = |rerouting: &Rerouting| -> Vec<(u64, Vec<u32>)> {
        epochs(&fabric, &[link_fails("leaf0", "spine0", 1, None)], rerouting, &whole)
            .unwrap()
            .into_iter()
            .filter_map(|epoch| match epoch.change {
                Change::Reroute(_, RerouteScope::Switches(switches)) => {
                    Some((epoch.at.ps() / 1_000_000, switches.iter().map(|switch| switch.0).collect()))
                }
                _ => None,
            })
            .collect()
    };
    // Leaves are switches 0 to 8, spines 9 to 12. First the ends of the link hear, then their neighbours, which are all
    // others.
    let others: Vec<u32> = (1..13).filter(|switch| *switch != 9).collect();
    assert_eq!(tables(&told), [(6, vec![0, 9]), (16, others)]);
    // With time for computing, each switch changes routes on its own and within that time.
    let computed = tables(&Rerouting { compute_max: Duration::from_us(50), seed: 3, ..told });
    let all: BTreeSet<u32> = computed.iter().flat_map(|of| of.1.clone()).collect();
    assert_eq!(all.len(), 13);
    assert!(computed.len() > 6 && computed.iter().all(|of| (6..66).contains(&of.0)), "{computed:?}");
    assert_ne!(tables(&Rerouting { compute_max: Duration::from_us(50), seed: 4, ..told }), computed);
}

#[test]
fn routing_does_not_learn_of_what_it_is_not_told() {
    let fabric = FabricSpec::LeafSpine(LeafSpine::default()).build().unwrap();
    let silent = FailureSpec { reroute: false, ..link_fails("leaf0", "spine0", 1, Some(90)) };
    let known = link_fails("leaf0", "spine1", 20, None);
    let epochs = timeline(&fabric, &[silent, known]).unwrap();
    let tables: Vec<&Epoch> = epochs.iter().filter(|epoch| matches!(epoch.change, Change::Reroute(..))).collect();
    assert_eq!(tables.iter().map(|epoch| epoch.at).collect::<Vec<_>>(), [Time::from_us(25)]);
    let Change::Reroute(routes, _) = &tables[0].change else { unreachable!() };
    let dead = Failures { links: both_ways(&fabric, "leaf0", "spine1").into_iter().collect(), ..Failures::default() };
    assert_eq!(**routes, Routes::compute(&fabric, &dead));
    let dead: Vec<usize> = epochs
        .iter()
        .filter_map(|epoch| match &epoch.change {
            Change::Dead(failures) => Some(failures.links.len()),
            _ => None,
        })
        .collect();
    assert_eq!(dead, [2, 4, 2]);
}

#[test]
fn a_failure_of_nothing_is_refused() {
    let fabric = FabricSpec::default().build().unwrap();
    let why = |spec: FailureSpec| timeline(&fabric, &[spec]).unwrap_err();
    assert_eq!(why(link_fails("leaf0", "spin1", 1, None)).key, "[0].link");
    assert!(why(link_fails("leaf0", "leaf1", 1, None)).message.contains("no link joins leaf0 and leaf1"));
    assert_eq!(why(link_fails("leaf0", "spine1", 2, Some(2))).key, "[0].until");
    let host = FailureSpec { switch: Some("host3".into()), ..FailureSpec::default() };
    assert!(why(host).message.contains("is a host"));
    assert_eq!(why(FailureSpec::default()).key, "[0]");
}

/// Two racks of dual-homed hosts under two spines, and a third pair of racks.
fn dual_homed() -> Fabric {
    let spec = LeafSpine { racks: 4, hosts_per_rack: 2, homes: 2, spines: 2, ..LeafSpine::default() };
    FabricSpec::LeafSpine(spec).build().unwrap()
}

fn switch(fabric: &Fabric, name: &str) -> SwitchId {
    fabric.as_switch(fabric.find(name).unwrap()).unwrap()
}

/// Failures by name: a switch, or the ends of a link.
fn failing(fabric: &Fabric, names: &[&str]) -> Failures {
    let node = |name: &str| fabric.find(name).unwrap();
    match *names {
        [name] => Failures { switches: [switch(fabric, name)].into(), ..Failures::default() },
        [a, b] => {
            let both = fabric.links_between(node(a), node(b)).flat_map(|link| [link, Fabric::reverse(link)]);
            Failures { links: both.collect(), ..Failures::default() }
        }
        _ => Failures::default(),
    }
}

#[test]
fn a_host_with_two_links_is_reached_by_both() {
    let fabric = dual_homed();
    let routes = Routes::compute(&fabric, &Failures::default());
    let ports = |from: &str, dst| routes.next(switch(&fabric, from), HostId(dst)).len();
    // Hosts 0 to 3 hang on leaf0 and leaf1, each by its own leaf first.
    assert_eq!(fabric.rack_of(HostId(3)), switch(&fabric, "leaf1"));
    assert_eq!(fabric.uplinks(HostId(3)).iter().map(|&up| fabric.switch_at(up).0).collect::<Vec<_>>(), [1, 0]);
    assert_eq!([ports("leaf0", 3), ports("leaf1", 3), ports("spine0", 3), ports("leaf2", 3)], [1, 1, 2, 2]);
    // Paths: two links up, two spines each, two leaves each, one link down.
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(7)), 8);
    assert_eq!(routes.count_paths(&fabric, HostId(0), HostId(3)), 2);
    assert_eq!([routes.hops(HostId(0), HostId(7)), routes.hops(HostId(0), HostId(3))], [Some(4), Some(2)]);
    assert_eq!(routes.first_ports(HostId(0), HostId(7), u64::MAX), 0b11);
    assert_eq!(routes.first_ports(HostId(0), HostId(7), 0b10), 0b10);
    assert_eq!(routes.first_ports(HostId(0), HostId(7), 0), 0);
    // A pair of leaves is a group with its hosts; what they can send is the sum of their links.
    assert_eq!((fabric.groups, fabric.group_of[0], fabric.group_of[7]), (2, 0, 1));
    assert_eq!(fabric.host_rate(HostId(0)), Rate::from_gbps(200));
}

#[test]
fn a_host_is_reached_by_the_link_that_is_left() {
    let fabric = dual_homed();
    let routes = Routes::compute(&fabric, &failing(&fabric, &["host3", "leaf1"]));
    let to = |from: &str, dst| -> Vec<&str> {
        let from = switch(&fabric, from);
        let next = |&port: &PortId| fabric.names[fabric.link(fabric.out_link(from, port)).to.index()].as_str();
        routes.next(from, HostId(dst)).iter().map(next).collect()
    };
    assert_eq!([to("spine0", 3), to("spine0", 2)], [vec!["leaf0"], vec!["leaf0", "leaf1"]]);
    assert_eq!((to("leaf0", 3), to("leaf1", 3)), (vec!["host3"], vec!["spine0", "spine1"]));
    // Its neighbours use the leaf that it is still attached to.
    assert_eq!([0, 1].map(|src| routes.first_ports(HostId(src), HostId(3), 0b11)), [0b01, 0b01]);
    assert_eq!(routes.first_ports(HostId(2), HostId(3), 0b11), 0b10);
    // With a leaf, all of its hosts lose a link and none is lost.
    let routes = Routes::compute(&fabric, &failing(&fabric, &["leaf1"]));
    for dst in 0..4 {
        assert_eq!(routes.next(switch(&fabric, "leaf3"), HostId(dst)).len(), 2);
        assert_eq!(routes.hops(HostId(6), HostId(dst)), Some(4));
    }
    // Without any link it is out of reach.
    let both =
        failing(&fabric, &["host3", "leaf1"]).links.into_iter().chain(failing(&fabric, &["host3", "leaf0"]).links);
    let all = Failures { links: (0..fabric.links.len()).map(LinkId::from).collect(), ..Failures::default() };
    assert_eq!(Routes::compute(&fabric, &all).hops(HostId(0), HostId(3)), None);
    let routes = Routes::compute(&fabric, &Failures { links: both.collect(), ..Failures::default() });
    assert_eq!(routes.hops(HostId(0), HostId(3)), None);
    assert!(routes.next(switch(&fabric, "leaf0"), HostId(3)).is_empty());
    assert_eq!(
        [routes.first_ports(HostId(3), HostId(0), 0b11), routes.first_ports(HostId(0), HostId(3), 0b11)],
        [0b11, 0]
    );
}

#[test]
fn what_lies_behind_several_links_is_as_far_and_as_wide_as_arithmetic_says() {
    let fabric = dual_homed();
    let quotient = Quotient::new(&fabric);
    // 4 hosts of 200 Gbps in each half, and 2 x 2 links of 400 Gbps to the spines.
    assert_eq!(fabric.bisection(&quotient), Rate::from_gbps(800));
    let (widths, ends) = quotient.widths(&[0, 1], &[2, 3]);
    assert_eq!((widths, ends), (vec![4, 4], [vec![0, 1], vec![2, 3]]));
    assert_eq!(quotient.widths(&[0, 1], &[0, 1]), (vec![], [vec![0, 1], vec![0, 1]]));
    // By 1 switch between hosts of a pair of racks, 3 otherwise; never more, though leaf0 and leaf1 are two racks.
    let one_way = |switches: u64, bytes: u64| {
        let links = 2 * bytes * 80 + (switches - 1) * bytes * 20; // 80 ps and 20 ps a byte
        Duration::from_ps(links) + (Duration::from_ns(200) * (switches + 1)) + Duration::from_ns(450) * switches
    };
    let both = |switches| (switches as u32, one_way(switches, 1500) + one_way(switches, 40));
    assert_eq!(fabric.max_rtts(&quotient, 1500, 40).into_iter().collect::<Vec<_>>(), [both(1), both(3)]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another thread says when to stop, as for a signal")]
fn routes_of_a_large_fabric_stop_when_they_are_told_to() {
    let fabric = FabricSpec::FatTree(FatTree { k: 32, ..FatTree::default() }).build().expect("a fat-tree");
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let teller = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        told.store(true, Ordering::Relaxed);
    });
    // It may be done before that once, but not again and again.
    let stopped = interrupt::stopped_by(stop, || {
        (0..1_000).find_map(|_| Routes::compute_or_stop(&fabric, &Failures::default()).err())
    });
    teller.join().expect("it ends");
    assert_eq!(stopped.expect("it was stopped").message, "interrupted");
    assert!(Routes::compute_or_stop(&fabric, &Failures::default()).is_ok());
}
