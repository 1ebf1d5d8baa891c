//! How large a topology is before it is built.

use super::FabricSpec;

/// The size of a topology, by its parameters; a number that does not fit is `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Hosts.
    pub hosts: u64,
    /// Switches.
    pub switches: u64,
    /// Switches with hosts.
    pub racks: u64,
    /// Cables, each a link in both directions.
    pub cables: u64,
}

impl FabricSpec {
    /// Its size; none for one from a file, which is no larger than the file. Parameters that [`FabricSpec::build`]
    /// refuses give some size.
    pub fn size(&self) -> Option<Size> {
        let size = |hosts: u128, switches: u128, racks: u128, cables: u128| {
            let [hosts, switches, racks, cables] =
                [hosts, switches, racks, cables].map(|count| u64::try_from(count).unwrap_or(u64::MAX));
            Some(Size { hosts, switches, racks, cables })
        };
        match self {
            FabricSpec::LeafSpine(spec) => {
                let [racks, hosts, homes, spines] =
                    [spec.racks, spec.hosts_per_rack, spec.homes, spec.spines].map(u128::from);
                size(racks * hosts, racks + spines, racks, racks * (hosts * homes.max(1)).saturating_add(spines))
            }
            FabricSpec::Rails(spec) => {
                let [blocks, servers, rails, spines] =
                    [spec.blocks, spec.servers_per_block, spec.rails, spec.spines].map(u128::from);
                let below = blocks * rails;
                size(blocks * servers, below + spines, below, below.saturating_mul(servers + spines))
            }
            FabricSpec::MultiPlane(spec) => {
                let [racks, hosts, planes, spines] =
                    [spec.racks, spec.hosts_per_rack, spec.planes, spec.spines].map(u128::from);
                let leaves = planes * racks;
                size(racks * hosts, leaves + planes * spines, leaves, leaves.saturating_mul(hosts + spines))
            }
            FabricSpec::FatTree(spec) => {
                let k = u128::from(spec.k);
                size(k.pow(3) / 4, k * k + k * k / 4, k * k / 2, k.pow(3) / 4 * 3)
            }
            FabricSpec::Clos(spec) => {
                let [pods, leaves, hosts, aggs, cores] =
                    [spec.pods, spec.leaves_per_pod, spec.hosts_per_leaf, spec.aggs_per_pod, spec.cores_per_agg]
                        .map(u128::from);
                let (all_leaves, all_aggs) = (pods * leaves, pods * aggs);
                let cables = all_leaves.saturating_mul(hosts + aggs).saturating_add(all_aggs.saturating_mul(cores));
                size(all_leaves.saturating_mul(hosts), all_leaves + all_aggs + aggs * cores, all_leaves, cables)
            }
            FabricSpec::Dragonfly(spec) => {
                let [routers, hosts, global] =
                    [spec.routers_per_group, spec.hosts_per_router, spec.global_links_per_router].map(u128::from);
                let ends = routers * global;
                let groups = spec.groups.map_or(ends + 1, u128::from);
                let all = groups.saturating_mul(routers);
                let local = groups.saturating_mul(routers * routers.saturating_sub(1) / 2);
                let cables =
                    all.saturating_mul(hosts).saturating_add(local).saturating_add(groups.saturating_mul(ends) / 2);
                size(all.saturating_mul(hosts), all, all, cables)
            }
            FabricSpec::DragonflyPlus(spec) => {
                let [leaves, spines, hosts, global] =
                    [spec.leaves_per_group, spec.spines_per_group, spec.hosts_per_leaf, spec.global_links_per_spine]
                        .map(u128::from);
                let ends = spines * global;
                let groups = spec.groups.map_or(ends + 1, u128::from);
                let all = groups.saturating_mul(leaves);
                let cables = all.saturating_mul(hosts + spines).saturating_add(groups.saturating_mul(ends) / 2);
                size(all.saturating_mul(hosts), all.saturating_add(groups.saturating_mul(spines)), all, cables)
            }
            FabricSpec::Star(spec) => size(spec.hosts.into(), 1, 1, spec.hosts.into()),
            FabricSpec::Dumbbell(spec) => {
                let hosts = 2 * u128::from(spec.hosts_per_side);
                size(hosts, 2, 2, hosts + 1)
            }
            FabricSpec::Torus(spec) | FabricSpec::Mesh(spec) => {
                let wraps = matches!(self, FabricSpec::Torus(_));
                let nodes = spec.dims.iter().fold(1u128, |product, &length| product.saturating_mul(length.into()));
                let hosts = nodes.saturating_mul(spec.hosts_per_node.into());
                // A line of n nodes has n - 1 cables, a ring n, unless it has two nodes.
                let of = |&length: &u32| {
                    let length = u128::from(length.max(1));
                    nodes / length * if wraps && length > 2 { length } else { length - 1 }
                };
                let between = spec.dims.iter().map(of).fold(0u128, u128::saturating_add);
                size(hosts, nodes, nodes, hosts.saturating_add(between))
            }
            FabricSpec::File(_) => None,
        }
    }

    /// The key and the value of a parameter that alone makes it fit if it is half as large, or a quarter, and so on.
    pub fn smaller(&self, fits: impl Fn(&Size) -> bool) -> Option<(&'static str, u32)> {
        let keys: &[&'static str] = match self {
            FabricSpec::LeafSpine(_) => &["leaf_spine.racks", "leaf_spine.hosts_per_rack", "leaf_spine.spines"],
            FabricSpec::Rails(_) => &["rails.blocks", "rails.servers_per_block", "rails.spines"],
            FabricSpec::MultiPlane(_) => &["multi_plane.racks", "multi_plane.hosts_per_rack", "multi_plane.spines"],
            FabricSpec::FatTree(_) => &["fat_tree.k"],
            FabricSpec::Clos(_) => &["clos.pods", "clos.hosts_per_leaf", "clos.leaves_per_pod", "clos.cores_per_agg"],
            FabricSpec::Dragonfly(_) => &["dragonfly.routers_per_group", "dragonfly.hosts_per_router"],
            FabricSpec::DragonflyPlus(_) => &["dragonfly_plus.spines_per_group", "dragonfly_plus.hosts_per_leaf"],
            FabricSpec::Star(_) => &["star.hosts"],
            FabricSpec::Dumbbell(_) => &["dumbbell.hosts_per_side"],
            FabricSpec::Torus(_) => &["torus.hosts_per_node"],
            FabricSpec::Mesh(_) => &["mesh.hosts_per_node"],
            FabricSpec::File(_) => &[],
        };
        keys.iter().find_map(|key| {
            let mut smaller = self.clone();
            while let Some(value) = smaller.parameter(key).filter(|value| **value > 1) {
                *value /= 2;
                if *key == "fat_tree.k" {
                    *value &= !1;
                }
                let value = *value;
                if value > 0 && smaller.size().is_some_and(|size| fits(&size)) {
                    return Some((*key, value));
                }
            }
            None
        })
    }

    fn parameter(&mut self, key: &str) -> Option<&mut u32> {
        let name = key.split_once('.')?.1;
        Some(match (self, name) {
            (FabricSpec::LeafSpine(spec), "racks") => &mut spec.racks,
            (FabricSpec::LeafSpine(spec), "hosts_per_rack") => &mut spec.hosts_per_rack,
            (FabricSpec::LeafSpine(spec), "spines") => &mut spec.spines,
            (FabricSpec::Rails(spec), "blocks") => &mut spec.blocks,
            (FabricSpec::Rails(spec), "servers_per_block") => &mut spec.servers_per_block,
            (FabricSpec::Rails(spec), "spines") => &mut spec.spines,
            (FabricSpec::MultiPlane(spec), "racks") => &mut spec.racks,
            (FabricSpec::MultiPlane(spec), "hosts_per_rack") => &mut spec.hosts_per_rack,
            (FabricSpec::MultiPlane(spec), "spines") => &mut spec.spines,
            (FabricSpec::FatTree(spec), "k") => &mut spec.k,
            (FabricSpec::Clos(spec), "pods") => &mut spec.pods,
            (FabricSpec::Clos(spec), "hosts_per_leaf") => &mut spec.hosts_per_leaf,
            (FabricSpec::Clos(spec), "leaves_per_pod") => &mut spec.leaves_per_pod,
            (FabricSpec::Clos(spec), "cores_per_agg") => &mut spec.cores_per_agg,
            (FabricSpec::Dragonfly(spec), "routers_per_group") => &mut spec.routers_per_group,
            (FabricSpec::Dragonfly(spec), "hosts_per_router") => &mut spec.hosts_per_router,
            (FabricSpec::DragonflyPlus(spec), "spines_per_group") => &mut spec.spines_per_group,
            (FabricSpec::DragonflyPlus(spec), "hosts_per_leaf") => &mut spec.hosts_per_leaf,
            (FabricSpec::Star(spec), "hosts") => &mut spec.hosts,
            (FabricSpec::Dumbbell(spec), "hosts_per_side") => &mut spec.hosts_per_side,
            (FabricSpec::Torus(spec) | FabricSpec::Mesh(spec), "hosts_per_node") => &mut spec.hosts_per_node,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
