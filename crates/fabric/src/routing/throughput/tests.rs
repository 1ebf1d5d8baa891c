use super::*;
use crate::routing::tests::{intact, mesh, torus};
use units::HostId;

use crate::{FabricSpec, Failures, FatTree};

/// An 8-ary 2-cube.
fn cube() -> RoutingTables {
    intact(torus(&[8, 8]))
}

/// A column of Figure 2: the five patterns and the worst case.
fn column(tables: &RoutingTables, algorithm: Algorithm) -> [f64; 6] {
    let of = |pattern: Pattern| throughput(tables, algorithm, &pattern.traffic(tables).unwrap()).unwrap();
    let [a, b, c, d, e] = Pattern::ALL.map(of);
    [a, b, c, d, e, worst_case(tables, algorithm).unwrap().throughput]
}

/// Rounds to the digits that the paper prints.
fn printed(ours: [f64; 6]) -> [f64; 6] {
    ours.map(|cell| (cell * 100.0).round() / 100.0)
}

#[test]
fn figure_2() {
    let tables = cube();
    let column = |algorithm| printed(column(&tables, algorithm));
    // Paper: 4, 1, 0.4, 0.54, 0.33, 0.21. Transpose differs: see the module's documentation.
    assert_eq!(column(Algorithm::Romm), [4.0, 1.0, 0.4, 0.6, 0.33, 0.21]);
    // Paper: 4, 1, 0.5, 0.25, 0.33, 0.25.
    assert_eq!(column(Algorithm::FixedTies), [4.0, 1.0, 0.5, 0.25, 0.33, 0.25]);
    // Paper: 0.5 throughout.
    assert_eq!(column(Algorithm::Protocol(Routing::Vlb)), [0.5; 6]);
    // Paper: 2.33, 0.76, 0.42, 0.57, 0.53, 0.31. Nearest neighbour and transpose differ: see the module's
    // documentation.
    assert_eq!(column(Algorithm::Protocol(Routing::Wlb)), [2.29, 0.76, 0.42, 0.71, 0.53, 0.31]);

    // The protocols that the paper's first two columns are named after.
    assert_eq!(column(Algorithm::Protocol(Routing::RandomPacketSpraying)), [4.0, 1.0, 0.36, 0.61, 0.33, 0.18]);
    assert_eq!(column(Algorithm::Protocol(Routing::DestinationTag)), [4.0, 1.0, 0.5, 0.29, 0.33, 0.29]);
}

#[test]
fn cells_of_figure_2_that_are_fractions() {
    let tables = cube();
    let is = |algorithm, pattern: Pattern, expected: f64| {
        let ours = throughput(&tables, algorithm, &pattern.traffic(&tables).unwrap()).unwrap();
        assert!((ours - expected).abs() < 1e-9, "{algorithm:?} {pattern:?}: {ours}, not {expected}");
    };
    let wlb = Algorithm::Protocol(Routing::Wlb);
    // A quarter of the packets go in this link's direction and 7/8 of those take it; a quarter go in the opposite
    // direction and 1/8 of those cross 7 links of this direction.
    is(wlb, Pattern::NearestNeighbor, 1.0 / (0.25 * 7.0 / 8.0 + 0.25 * 7.0 / 8.0));
    // Mean hops a dimension: 2 d (8 - d) / 8 over d in 0..8, which is 21 / 8, on two links a node.
    is(wlb, Pattern::Uniform, 16.0 / 21.0);
    // 3 hops forward with 5/8, 5 hops backward with 3/8: 15/8 on either.
    is(wlb, Pattern::Tornado, 8.0 / 15.0);
    let minimal = [Algorithm::Romm, Algorithm::FixedTies, Algorithm::Protocol(Routing::DestinationTag)];
    for algorithm in minimal {
        is(algorithm, Pattern::Tornado, 1.0 / 3.0);
    }
    // The link into row y's node y carries 1 + 1 + 1 packets and half of the one from 4 away, or all of it.
    is(Algorithm::Protocol(Routing::DestinationTag), Pattern::Transpose, 1.0 / 3.5);
    is(Algorithm::FixedTies, Pattern::Transpose, 1.0 / 4.0);
}

#[test]
fn equal_shares_of_paths_are_not_figure_2_either() {
    // The other reading of "random packet spraying", equal shares of shortest paths, does not give bit complement 0.4,
    // transpose 0.54 and worst case 0.21 either.
    let tables = cube();
    let (fabric, routes) = (tables.fabric(), tables.routes());
    let hops = |from: SwitchId, to: SwitchId| routes.distance(from, HostId(to.0)).unwrap() - 1;
    let paths = |from: SwitchId, to: SwitchId| match from == to {
        true => 1.0,
        false => routes.count_paths(fabric, HostId(from.0), HostId(to.0)) as f64,
    };
    let of = |pattern: Pattern| {
        let mut loads = vec![0.0; fabric.links.len()];
        for (from, sends) in switches(&tables).zip(pattern.traffic(&tables).unwrap()) {
            let to = sends[0].0;
            for (link, load) in fabric.links.iter().zip(&mut loads) {
                let (Some(a), Some(b)) = (fabric.as_switch(link.from), fabric.as_switch(link.to)) else { continue };
                if hops(from, a) + 1 + hops(b, to) == hops(from, to) {
                    *load += paths(from, a) * paths(b, to) / paths(from, to);
                }
            }
        }
        (100.0 / most(&loads)).round() / 100.0
    };
    assert_eq!([of(Pattern::BitComplement), of(Pattern::Transpose), of(Pattern::Tornado)], [0.32, 0.61, 0.33]);
}

#[test]
fn the_worst_case_is_the_worst_of_all_permutations() {
    fn permutations(items: &mut Vec<SwitchId>, fixed: usize, visit: &mut impl FnMut(&[SwitchId])) {
        if fixed == items.len() {
            return visit(items);
        }
        for next in fixed..items.len() {
            items.swap(fixed, next);
            permutations(items, fixed + 1, visit);
            items.swap(fixed, next);
        }
    }
    for fabric in [torus(&[5]), torus(&[3, 2]), mesh(&[3, 2])] {
        let tables = intact(fabric);
        for algorithm in Algorithm::ALL.into_iter().filter(|&algorithm| check(&tables, algorithm).is_ok()) {
            let of = |destinations: &[SwitchId]| {
                let traffic = destinations.iter().map(|&to| vec![(to, 1.0)]).collect();
                throughput(&tables, algorithm, &traffic).unwrap()
            };
            let mut worst = f64::INFINITY;
            permutations(&mut switches(&tables).collect(), 0, &mut |destinations| worst = worst.min(of(destinations)));
            let found = worst_case(&tables, algorithm).unwrap();
            assert!((found.throughput - worst).abs() < 1e-9, "{algorithm:?}: {found:?}, not {worst}");
            assert!((of(&found.destinations) - worst).abs() < 1e-9);
        }
    }
}

#[test]
fn what_has_no_capacity_is_refused() {
    let tree = intact(FabricSpec::FatTree(FatTree::default()).build().unwrap());
    assert_eq!(Pattern::Uniform.traffic(&tree).unwrap_err().key, "fabric");
    let failures = Failures { switches: [SwitchId(3)].into(), ..Failures::default() };
    let broken = crate::routing::tests::tables(torus(&[4, 4]), &failures);
    assert_eq!(worst_case(&broken, Algorithm::Romm).unwrap_err().key, "fabric");
    let oblong = intact(torus(&[4, 6]));
    assert_eq!(Pattern::Transpose.traffic(&oblong).unwrap_err().key, "pattern");
    let mesh = intact(mesh(&[4, 4]));
    assert!(worst_case(&mesh, Algorithm::Protocol(Routing::Wlb)).unwrap_err().message.contains("torus"));
    for algorithm in Algorithm::ALL {
        assert_eq!(Algorithm::named(algorithm.name()), Some(algorithm));
    }
    for pattern in Pattern::ALL {
        assert_eq!(Pattern::named(pattern.name()), Some(pattern));
    }
}
