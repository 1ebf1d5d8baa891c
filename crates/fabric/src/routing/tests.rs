use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use units::{HostId, LinkId, PortId, Stream, SwitchId};

use super::{LinkWeight, Routing, RoutingTables};
use crate::{Fabric, FabricSpec, Failures, FatTree, Grid, Routes};

fn grid(dims: &[u32]) -> Grid {
    Grid { dims: dims.to_vec(), ..Grid::default() }
}

pub(super) fn torus(dims: &[u32]) -> Fabric {
    FabricSpec::Torus(grid(dims)).build().unwrap()
}

pub(super) fn mesh(dims: &[u32]) -> Fabric {
    FabricSpec::Mesh(grid(dims)).build().unwrap()
}

pub(super) fn tables(fabric: Fabric, failures: &Failures) -> RoutingTables {
    let routes = Routes::compute(&fabric, failures);
    RoutingTables::new(Arc::new(fabric), Arc::new(routes))
}

pub(super) fn intact(fabric: Fabric) -> RoutingTables {
    tables(fabric, &Failures::default())
}

/// The weights as (from switch, to switch, weight).
fn named(tables: &RoutingTables, routing: Routing, src: u32, dst: u32) -> Vec<(u32, u32, f32)> {
    let fabric = tables.fabric();
    let ends = |weight: &LinkWeight| {
        let link = fabric.link(weight.link);
        (fabric.as_switch(link.from).unwrap().0, fabric.as_switch(link.to).unwrap().0, weight.weight)
    };
    let mut named: Vec<_> = tables.weights(routing, HostId(src), HostId(dst)).iter().map(ends).collect();
    named.sort_by_key(|&(from, to, _)| (from, to));
    named
}

fn expected_hops(weights: &[LinkWeight]) -> f64 {
    weights.iter().map(|weight| f64::from(weight.weight)).sum()
}

/// The links between switches of a sampled path, which must begin at the source's switch and end at the destination.
fn links(fabric: &Fabric, src: HostId, dst: HostId, ports: &[PortId]) -> Vec<LinkId> {
    let mut at = fabric.switch_node(fabric.rack_of(src));
    let mut links = Vec::new();
    for &port in ports {
        let link = fabric.out_link(fabric.as_switch(at).unwrap(), port);
        links.push(link);
        at = fabric.link(link).to;
    }
    assert_eq!(at, fabric.host_node(dst));
    links.pop();
    links
}

#[test]
fn sprayed_packets_use_both_paths_of_a_square_equally() {
    // R2C2, Figure 3: a flow from 0 to 3 in a 2x2 mesh has half of its weight on each of four links.
    let tables = intact(mesh(&[2, 2]));
    let half = [(0, 1, 0.5), (0, 2, 0.5), (1, 3, 0.5), (2, 3, 0.5)];
    assert_eq!(named(&tables, Routing::RandomPacketSpraying, 0, 3), half);
}

#[test]
fn destination_tags_go_the_short_way_and_split_where_both_are_as_long() {
    let ring = intact(torus(&[5]));
    assert_eq!(named(&ring, Routing::DestinationTag, 0, 3), [(0, 4, 1.0), (4, 3, 1.0)]);
    let ring = intact(torus(&[4]));
    let halves = [(0, 1, 0.5), (0, 3, 0.5), (1, 2, 0.5), (3, 2, 0.5)];
    assert_eq!(named(&ring, Routing::DestinationTag, 0, 2), halves);
    let mesh = intact(mesh(&[3, 3]));
    assert_eq!(named(&mesh, Routing::DestinationTag, 0, 8), [(0, 1, 1.0), (1, 2, 1.0), (2, 5, 1.0), (5, 8, 1.0)]);
}

#[test]
fn weighted_packets_go_round_a_ring_by_its_lengths() {
    // (k - d) / k = 3/4 the short way of one hop, 1/4 the long way of three.
    let ring = intact(torus(&[4]));
    let expected = [(0, 1, 0.75), (0, 3, 0.25), (2, 1, 0.25), (3, 2, 0.25)];
    assert_eq!(named(&ring, Routing::Wlb, 0, 1), expected);
}

#[test]
fn a_ring_of_two_is_one_cable() {
    let tables = intact(torus(&[2, 2]));
    assert_eq!(named(&tables, Routing::DestinationTag, 0, 3), [(0, 1, 1.0), (1, 3, 1.0)]);
    assert_eq!(expected_hops(&tables.weights(Routing::Wlb, HostId(0), HostId(3))), 2.0);
}

#[test]
fn expected_hops_on_the_rack_of_512_are_arithmetic() {
    let tables = intact(torus(&[8, 8, 8]));
    // Hops apart along x, y and z: 1, 3 and 4.
    let (src, dst) = (HostId(0), HostId(1 + 8 * (3 + 8 * 4)));
    let hops = |routing| expected_hops(&tables.weights(routing, src, dst));
    assert!((hops(Routing::RandomPacketSpraying) - 8.0).abs() < 1e-5);
    assert!((hops(Routing::DestinationTag) - 8.0).abs() < 1e-5);
    // To a uniform waypoint it is 2 hops a dimension, whichever the two ends.
    assert!((hops(Routing::Vlb) - 12.0).abs() < 1e-4);
    // d hops with probability (k - d) / k and k - d otherwise: 2 d (k - d) / k = 1.75, 3.75 and 4.
    assert!((hops(Routing::Wlb) - 9.5).abs() < 1e-5);
}

#[test]
fn no_path_on_the_rack_of_512_is_longer_than_a_header_holds() {
    // R2C2, section 4.2: 42 hops. Minimal paths take at most 4 hops a dimension, WLB's 7, and VLB's two phases 23: both
    // can't be 12 hops long, as only one switch is that far from a waypoint. One more port leads to the host.
    let tables = intact(torus(&[8, 8, 8]));
    let longest = |routing, hops: usize| {
        let (mut stream, mut ports, mut most) = (Stream::new(1, 0, "test"), Vec::new(), 0);
        for dst in (1..512).map(HostId) {
            for _ in 0..20 {
                assert!(tables.sample(routing, HostId(0), dst, &mut stream, &mut ports));
                most = most.max(ports.len());
            }
        }
        assert!(most <= hops + 1 && most > hops - 6, "{routing:?} takes {most} ports");
    };
    longest(Routing::RandomPacketSpraying, 12);
    longest(Routing::DestinationTag, 12);
    longest(Routing::Vlb, 23);
    longest(Routing::Wlb, 21);
}

#[test]
fn paths_between_nodes_of_the_rack_of_216_are_fewer_than_the_paper_says() {
    // R2C2, section 2.2.2: "an average flow has 1,680 paths". That is 9! / (3! 3! 3!), the interleavings of 3 hops in
    // each dimension: the farthest pair's, and counting one of the two equally long ways round each of its rings.
    let tables = intact(torus(&[6, 6, 6]));
    let paths = |dst| tables.routes().count_paths(tables.fabric(), HostId(0), HostId(dst));
    assert_eq!(paths(3 + 6 * (3 + 6 * 3)), 1680 * 8);
    // Over the 215 others, by the multinomial of their hops and both ways round for each 3: 191.5 on average.
    assert_eq!((1..216).map(paths).sum::<u64>(), 41_178);
}

#[test]
fn a_box_has_the_same_loads_by_formula_as_by_enumeration() {
    let mut tables = intact(torus(&[6, 3, 4]));
    let by_formula: Vec<_> =
        (1..72).map(|dst| tables.switch_weights(Routing::Wlb, SwitchId(0), SwitchId(dst))).collect();
    tables.assume_failures();
    for (dst, by_formula) in (1..72).zip(by_formula) {
        let by_enumeration = tables.switch_weights(Routing::Wlb, SwitchId(0), SwitchId(dst));
        assert_eq!(by_formula.len(), by_enumeration.len());
        for (one, other) in by_formula.iter().zip(&by_enumeration) {
            assert!(one.link == other.link && (one.weight - other.weight).abs() < 1e-6, "{one:?}, {other:?}");
        }
    }
}

#[test]
fn what_a_shape_does_not_allow_is_refused_with_the_reason() {
    let message = |tables: &RoutingTables, routing| tables.check(routing).unwrap_err().message;
    let tree = intact(FabricSpec::FatTree(FatTree::default()).build().unwrap());
    assert!(tree.check(Routing::RandomPacketSpraying).is_ok() && tree.check(Routing::Vlb).is_ok());
    assert_eq!(
        message(&tree, Routing::DestinationTag),
        "routing \"destination_tag\" needs a torus or a mesh, because it follows dimensions"
    );
    assert!(message(&tree, Routing::Wlb).contains("a torus"));
    let mesh = intact(mesh(&[3, 3]));
    assert!(mesh.check(Routing::DestinationTag).is_ok());
    assert!(message(&mesh, Routing::Wlb).contains("a torus"));
}

#[test]
fn names_and_codes_lead_back() {
    for routing in Routing::ALL {
        assert_eq!(Routing::from_code(routing.code()), Some(routing));
        assert_eq!(Routing::named(routing.name()), Some(routing));
        let scenario = format!("routing = \"{}\"", routing.name());
        let read: toml::Table = toml::from_str(&scenario).unwrap();
        assert_eq!(read["routing"].clone().try_into::<Routing>().unwrap(), routing);
    }
    assert_eq!(Routing::from_code(4), None);
}

/// Compares how often sampled packets cross each link with the weights, to within five standard errors. If a packet
/// crosses a set of links at most n times, the variance is at most n times their weight: n = 2 for one link. Links with
/// few packets are taken together, with n = 42, since rare events are not normally distributed.
fn check_samples(tables: &RoutingTables, routing: Routing, src: HostId, dst: HostId) {
    const PACKETS: u32 = 4000;
    let (mut stream, mut ports) = (Stream::new(3, u64::from(dst.0), "test"), Vec::new());
    let mut passed = vec![0u32; tables.fabric().links.len()];
    for _ in 0..PACKETS {
        assert!(tables.sample(routing, src, dst, &mut stream, &mut ports));
        for link in links(tables.fabric(), src, dst, &ports) {
            passed[link.index()] += 1;
        }
    }
    let check = |weight: f64, passed: u32, most: f64| {
        let (error, seen) = ((most * weight / f64::from(PACKETS)).sqrt(), f64::from(passed) / f64::from(PACKETS));
        assert!((seen - weight).abs() <= 5.0 * error, "{routing:?} {src} {dst}: {seen} of {weight}");
    };
    let mut rare = (0.0, 0);
    for &LinkWeight { link, weight } in tables.weights(routing, src, dst).iter() {
        let (weight, passed) = (f64::from(weight), std::mem::take(&mut passed[link.index()]));
        if weight * f64::from(PACKETS) < 10.0 {
            rare = (rare.0 + weight, rare.1 + passed);
        } else {
            check(weight, passed, 2.0);
        }
    }
    check(rare.0, rare.1, 42.0);
    assert!(passed.iter().all(|&passed| passed == 0), "a packet passed a link without weight");
}

#[test]
fn samples_pass_links_as_often_as_weights_say() {
    let dead = |fabric: &Fabric, links: &[u32], switches: &[u32]| Failures {
        links: links.iter().flat_map(|&link| [LinkId(link), Fabric::reverse(LinkId(link))]).collect(),
        switches: switches.iter().map(|&switch| SwitchId(switch)).filter(|switch| switch.0 < fabric.switches).collect(),
    };
    let rack = torus(&[8, 8, 8]);
    let small = torus(&[5, 4]);
    let open = mesh(&[4, 3]);
    let failures = [dead(&rack, &[1030, 1100], &[9]), dead(&small, &[42, 50], &[7]), dead(&open, &[26], &[])];
    for (fabric, failures) in [rack, small, open].into_iter().zip(failures) {
        let last = fabric.hosts - 1;
        for failures in [Failures::default(), failures] {
            let tables = tables(fabric.clone(), &failures);
            for routing in Routing::ALL.into_iter().filter(|&routing| tables.check(routing).is_ok()) {
                for (src, dst) in [(0, 1), (0, last), (3, last / 2), (last, 2)] {
                    check_samples(&tables, routing, HostId(src), HostId(dst));
                }
            }
        }
    }
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let dims = prop::collection::vec(2u32..6, 1..4);
    prop_oneof![
        3 => dims.clone().prop_map(|dims| torus(&dims)),
        1 => dims.prop_map(|dims| mesh(&dims)),
        1 => Just(FabricSpec::FatTree(FatTree { k: 4, ..FatTree::default() }).build().unwrap()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Traffic that enters a switch leaves it, except at source and destination; no traffic crosses dead links; every
    /// reachable host is reached.
    #[test]
    fn weights_are_flows_around_failures(
        fabric in fabrics(),
        dead_links in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        dead_switches in prop::collection::vec(any::<prop::sample::Index>(), 0..2),
        pairs in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 4),
        seed: u64,
    ) {
        let cut: BTreeSet<LinkId> = dead_links.iter().map(|index| index.index(fabric.links.len()).into()).collect();
        let switches = dead_switches.iter().map(|index| index.index(fabric.switches as usize).into()).collect();
        let failures = Failures { links: cut, switches };
        let tables = tables(fabric.clone(), &failures);
        let mut stream = Stream::new(seed, 0, "test");
        let mut ports = Vec::new();
        for routing in Routing::ALL.into_iter().filter(|&routing| tables.check(routing).is_ok()) {
            for (src, dst) in &pairs {
                let host = |index: &prop::sample::Index| HostId::from(index.index(fabric.hosts as usize));
                let (src, dst) = (host(src), host(dst));
                let weights = tables.weights(routing, src, dst);
                let reached = src != dst && tables.routes().hops(src, dst).is_some();
                prop_assert_eq!(tables.sample(routing, src, dst, &mut stream, &mut ports), reached);
                let (from, to) = (fabric.rack_of(src), fabric.rack_of(dst));
                prop_assert_eq!(!weights.is_empty(), reached && from != to);
                prop_assert!(weights.is_sorted_by(|a, b| a.link < b.link));
                if !reached {
                    prop_assert!(ports.is_empty());
                    continue;
                }
                for link in links(&fabric, src, dst, &ports) {
                    prop_assert!(!failures.kills(&fabric, link));
                    prop_assert!(weights.binary_search_by_key(&link, |weight| weight.link).is_ok());
                }
                let mut surplus = vec![0.0; fabric.nodes() as usize];
                for weight in weights.iter() {
                    prop_assert!(!failures.kills(&fabric, weight.link) && weight.weight > 0.0);
                    surplus[fabric.link(weight.link).from.index()] += f64::from(weight.weight);
                    surplus[fabric.link(weight.link).to.index()] -= f64::from(weight.weight);
                }
                if from != to {
                    surplus[fabric.switch_node(from).index()] -= 1.0;
                    surplus[fabric.switch_node(to).index()] += 1.0;
                }
                prop_assert!(surplus.iter().all(|surplus| surplus.abs() < 1e-5), "{routing:?} {src} {dst}");
                if routing == Routing::RandomPacketSpraying && from != to {
                    let hops = f64::from(tables.routes().hops(src, dst).unwrap() - 2);
                    prop_assert!((expected_hops(&weights) - hops).abs() < 1e-5);
                }
            }
        }
    }

    /// The weights add up to the expected number of hops. Round a ring of k with d and k - d hops apart, that is the
    /// smaller of the two for minimal protocols, 2 d (k - d) / k for WLB, and twice the mean distance for VLB.
    #[test]
    fn weights_add_up_to_the_expected_hops(
        dims in prop::collection::vec(2u32..9, 1..4),
        src in any::<prop::sample::Index>(),
        dst in any::<prop::sample::Index>(),
    ) {
        let tables = intact(torus(&dims));
        let host = |index: prop::sample::Index| HostId::from(index.index(tables.fabric().hosts as usize));
        let (src, dst) = (host(src), host(dst));
        prop_assume!(src != dst);
        let (mut minimal, mut weighted, mut valiant, mut stride) = (0.0, 0.0, 0.0, 1);
        for &length in &dims {
            let k = f64::from(length);
            let d = f64::from((src.0 / stride % length).abs_diff(dst.0 / stride % length));
            minimal += d.min(k - d);
            // A ring of two has only one direction.
            weighted += if length == 2 { d } else { 2.0 * d * (k - d) / k };
            valiant += 2.0 * (0..length).map(|hops| f64::from(hops.min(length - hops))).sum::<f64>() / k;
            stride *= length;
        }
        for (routing, hops) in Routing::ALL.into_iter().zip([minimal, minimal, valiant, weighted]) {
            let weights = expected_hops(&tables.weights(routing, src, dst));
            prop_assert!((weights - hops).abs() < 1e-4, "{routing:?} {src} {dst}: {weights}, not {hops}");
        }
    }
}
