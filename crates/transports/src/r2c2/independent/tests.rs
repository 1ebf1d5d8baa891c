use std::collections::BTreeSet;

use fabric::{FabricSpec, Grid};
use proptest::prelude::*;

use super::*;

/// The links and the nodes between a node and the source.
fn path(parents: &[Option<usize>], source: usize, mut node: usize) -> (BTreeSet<(usize, usize)>, BTreeSet<usize>) {
    let (mut links, mut nodes) = (BTreeSet::new(), BTreeSet::new());
    while node != source {
        let up = parents[node].expect("every node is reached");
        assert!(links.insert((node.min(up), node.max(up))), "in a circle");
        if up != source {
            nodes.insert(up);
        }
        node = up;
    }
    (links, nodes)
}

fn neighbours(spec: FabricSpec) -> Vec<Vec<usize>> {
    let fabric = spec.build().unwrap();
    let between = |switch: u32| {
        let links = fabric.ports[fabric.switch_node(units::SwitchId(switch)).index()].iter();
        links.filter_map(|&link| fabric.as_switch(fabric.link(link).to)).map(units::SwitchId::index).collect()
    };
    (0..fabric.switches).map(between).collect()
}

fn torus(dims: &[u32]) -> Vec<Vec<usize>> {
    neighbours(FabricSpec::Torus(Grid { dims: dims.to_vec(), ..Grid::default() }))
}

fn check(of: &Neighbours, source: usize, depth_max: usize) {
    let [lower, higher] = [false, true].map(|higher| parents(of, source, higher));
    for node in (0..of.len()).filter(|&node| node != source) {
        let (one, other) = (path(&lower, source, node), path(&higher, source, node));
        assert!(one.0.is_disjoint(&other.0) && one.1.is_disjoint(&other.1), "{source} to {node}");
        let depth = one.0.len().max(other.0.len());
        assert!(depth <= depth_max, "{source} to {node} takes {depth}");
    }
}

#[test]
fn no_two_paths_share_a_link_or_a_node_on_any_rack() {
    // How deep the trees are depends on the source, since a search takes neighbours in their order.
    for (dims, depth_max) in [(&[4, 4][..], 6), (&[4, 4, 4], 9), (&[3, 3, 3], 6), (&[8, 8], 16), (&[8, 8, 8], 23)] {
        let of = torus(dims);
        (0..of.len()).step_by(of.len().div_ceil(32)).for_each(|source| check(&of, source, depth_max));
    }
    let of = neighbours(FabricSpec::Mesh(Grid { dims: vec![4, 4], ..Grid::default() }));
    (0..of.len()).for_each(|source| check(&of, source, 16));
}

#[test]
fn a_line_a_lone_node_and_a_part_that_is_cut_off_have_what_paths_there_are() {
    let line = [vec![1], vec![0, 2], vec![1], vec![]];
    for higher in [false, true] {
        assert_eq!(parents(&line, 1, higher), [Some(1), None, Some(1), None]);
        assert_eq!(parents(&line, 0, higher), [None, Some(0), Some(1), None]);
        assert_eq!(parents(&line, 3, higher), [None; 4]);
    }
}

proptest! {
    /// A ring with any chords has two paths to each node.
    #[test]
    fn no_two_paths_share_a_link_or_a_node_on_any_ring_with_chords(
        nodes in 3usize..20, chords in proptest::collection::vec((0usize..20, 0usize..20), 0..20), source in 0usize..20,
    ) {
        let mut of = vec![Vec::new(); nodes];
        let ring = (0..nodes).map(|node| (node, node + 1));
        for (one, other) in chords.into_iter().chain(ring).map(|(one, other)| (one % nodes, other % nodes)) {
            if one != other && !of[one].contains(&other) {
                of[one].push(other);
                of[other].push(one);
            }
        }
        check(&of, source % nodes, nodes);
    }

    /// Whatever the graph, a node has a parent in both trees if any path leads there, and the trees have no circles.
    #[test]
    fn every_node_is_reached_that_can_be(
        nodes in 1usize..12, links in proptest::collection::vec((0usize..12, 0usize..12), 0..16),
    ) {
        let mut of = vec![Vec::new(); nodes];
        for (one, other) in links.into_iter().map(|(one, other)| (one % nodes, other % nodes)) {
            if one != other && !of[one].contains(&other) {
                of[one].push(other);
                of[other].push(one);
            }
        }
        let reached = Search::from(&of, 0).visited;
        for higher in [false, true] {
            let parents = parents(&of, 0, higher);
            for node in 1..nodes {
                prop_assert_eq!(parents[node].is_some(), reached.contains(&node));
                if reached.contains(&node) {
                    path(&parents, 0, node);
                }
            }
        }
    }
}
