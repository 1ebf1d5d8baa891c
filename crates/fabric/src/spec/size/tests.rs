use std::collections::BTreeSet;

use super::*;
use crate::{Clos, Dragonfly, DragonflyPlus, Dumbbell, FatTree, Grid, LeafSpine, MultiPlane, Rails, Star};

/// All topologies with parameters of which no two are alike.
fn all() -> Vec<FabricSpec> {
    let grid = |dims: &[u32]| Grid { dims: dims.to_vec(), hosts_per_node: 3, ..Grid::default() };
    vec![
        FabricSpec::LeafSpine(LeafSpine { racks: 6, hosts_per_rack: 5, spines: 3, ..LeafSpine::default() }),
        FabricSpec::LeafSpine(LeafSpine { racks: 6, hosts_per_rack: 5, spines: 3, homes: 2, ..LeafSpine::default() }),
        FabricSpec::Rails(Rails { blocks: 3, servers_per_block: 5, rails: 2, spines: 7, ..Rails::default() }),
        FabricSpec::MultiPlane(MultiPlane {
            racks: 3,
            hosts_per_rack: 5,
            planes: 2,
            spines: 7,
            ..MultiPlane::default()
        }),
        FabricSpec::FatTree(FatTree { k: 6, ..FatTree::default() }),
        FabricSpec::Clos(Clos {
            pods: 2,
            leaves_per_pod: 3,
            hosts_per_leaf: 7,
            aggs_per_pod: 4,
            cores_per_agg: 5,
            ..Clos::default()
        }),
        FabricSpec::Dragonfly(Dragonfly::default()),
        FabricSpec::Dragonfly(Dragonfly { groups: Some(5), hosts_per_router: 3, ..Dragonfly::default() }),
        FabricSpec::DragonflyPlus(DragonflyPlus { leaves_per_group: 3, hosts_per_leaf: 5, ..DragonflyPlus::default() }),
        FabricSpec::Star(Star { hosts: 9, ..Star::default() }),
        FabricSpec::Dumbbell(Dumbbell { hosts_per_side: 5, ..Dumbbell::default() }),
        FabricSpec::Torus(grid(&[2, 3, 5])),
        FabricSpec::Mesh(grid(&[2, 3, 5])),
    ]
}

#[test]
fn a_topology_is_as_large_as_counted() {
    for spec in all() {
        let size = spec.size().expect("not a file");
        let fabric = spec.build().unwrap_or_else(|problem| panic!("{spec:?}: {problem}"));
        let racks: BTreeSet<_> =
            fabric.links.iter().filter(|link| link.from.0 < fabric.hosts).map(|link| link.to).collect();
        let built = Size {
            hosts: fabric.hosts.into(),
            switches: fabric.switches.into(),
            racks: racks.len() as u64,
            cables: fabric.links.len() as u64 / 2,
        };
        assert_eq!(size, built, "{spec:?}");
    }
}

#[test]
fn every_topology_can_be_smaller_and_no_number_wraps() {
    for spec in all() {
        let whole = spec.size().expect("not a file");
        let (key, value) = spec.smaller(|size| size.cables < whole.cables).unwrap_or_else(|| panic!("{spec:?}"));
        assert!(value > 0 && key.contains('.'), "{key}");
    }
    let huge = FabricSpec::FatTree(FatTree { k: u32::MAX - 1, ..FatTree::default() });
    assert_eq!(huge.size().map(|size| size.hosts), Some(u64::MAX));
    let grid = Grid { dims: vec![u32::MAX; 6], hosts_per_node: u32::MAX, ..Grid::default() };
    assert_eq!(FabricSpec::Torus(grid).size().map(|size| size.cables), Some(u64::MAX));
}
