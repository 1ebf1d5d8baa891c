use std::collections::BTreeMap;

use fabric::{FabricSpec, FatTree, Grid, LeafSpine, Tier};
use units::LinkId;

use super::*;

/// By tier, and whether the link's switch has hosts: the most links that can precede one on a path.
fn depths(fabric: &Fabric) -> BTreeMap<(Tier, bool), BTreeSet<u64>> {
    let one = |_, _| Duration::from_ps(1);
    let late = Precedence::new(fabric).expect("it has no cycles").lateness(one);
    let mut depths: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for link in (0..fabric.links.len()).map(LinkId::from) {
        let of = fabric.link(link);
        let rack = fabric
            .as_switch(of.from)
            .is_some_and(|from| (0..fabric.hosts).any(|host| fabric.rack_of(units::HostId(host)) == from));
        depths.entry((of.tier, rack)).or_default().insert(late[link.index()].ps());
    }
    depths
}

#[test]
fn a_link_s_depth_is_how_far_up_and_down_it_lies() {
    let leaf_spine = FabricSpec::LeafSpine(LeafSpine { racks: 3, hosts_per_rack: 2, spines: 2, ..Default::default() });
    let of = |depth: u64| BTreeSet::from([depth]);
    let expected = BTreeMap::from([
        ((Tier::FromHost, false), of(0)),
        ((Tier::Up, true), of(0)),
        ((Tier::Down, false), of(1)),
        ((Tier::ToHost, true), of(2)),
    ]);
    assert_eq!(depths(&leaf_spine.build().unwrap()), expected);
    let fat_tree = FabricSpec::FatTree(FatTree { k: 4, ..Default::default() });
    let expected = BTreeMap::from([
        ((Tier::FromHost, false), of(0)),
        ((Tier::Up, true), of(0)),
        ((Tier::Up, false), of(1)),
        // From the core, and from within the pod: the longer way counts.
        ((Tier::Down, false), BTreeSet::from([2, 3])),
        ((Tier::ToHost, true), of(4)),
    ]);
    assert_eq!(depths(&fat_tree.build().unwrap()), expected);
}

#[test]
fn tori_and_meshes_have_cycles() {
    let grid = |dims: &[u32]| Grid { dims: dims.to_vec(), ..Default::default() };
    for spec in [FabricSpec::Torus(grid(&[4, 3])), FabricSpec::Mesh(grid(&[2, 2])), FabricSpec::Torus(grid(&[5]))] {
        assert!(Precedence::new(&spec.build().unwrap()).is_none(), "{spec:?}");
    }
    // A row has none.
    assert!(Precedence::new(&FabricSpec::Mesh(grid(&[4])).build().unwrap()).is_some());
}
