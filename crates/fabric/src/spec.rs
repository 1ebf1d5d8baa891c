//! Topologies as scenarios state them, and how they become graphs.
//!
//! Defaults come from the papers that use the topologies: dcPIM section 4 for leaf-spine and fat-tree, R2C2 section 5.2
//! for torus and mesh.

mod clos;
mod direct;
mod dragonfly;
mod file;
mod planes;
mod size;
mod small;
mod tiers;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate};

use crate::Fabric;
pub use clos::{FatTree, LeafSpine, Rails};
pub use direct::Grid;
pub use dragonfly::{Dragonfly, DragonflyPlus};
#[cfg(target_family = "wasm")]
pub use file::hand_over;
pub use file::{FileFormat, FileSpec, read_file};
pub use planes::MultiPlane;
pub use size::Size;
pub use small::{Dumbbell, Star};
pub use tiers::Clos;

/// A topology and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FabricSpec {
    /// Two-tier leaf-spine: racks of hosts, every leaf switch joined to every spine.
    LeafSpine(LeafSpine),
    /// Servers with several links, each to a different rail switch of their block, under spines.
    Rails(Rails),
    /// Servers with a link into each of several equal leaf-spine networks, which share only the servers.
    MultiPlane(MultiPlane),
    /// Three-tier fat-tree of k-port switches.
    FatTree(FatTree),
    /// Three tiers with any numbers of switches, each with an oversubscription of its own.
    Clos(Clos),
    /// Groups of routers that are all joined to each other, with links between all groups.
    Dragonfly(Dragonfly),
    /// Groups that are leaf-spine networks, with links between the spines of all groups.
    DragonflyPlus(DragonflyPlus),
    /// Two switches with one link between them.
    Dumbbell(Dumbbell),
    /// One switch with hosts.
    Star(Star),
    /// A grid of switches with hosts whose every dimension is closed to a ring.
    Torus(Grid),
    /// A grid of switches with hosts that is open at its borders.
    Mesh(Grid),
    /// Any graph, read from a file.
    File(FileSpec),
}

impl Default for FabricSpec {
    fn default() -> FabricSpec {
        FabricSpec::LeafSpine(LeafSpine::default())
    }
}

impl FabricSpec {
    /// The same topology, with a file's relative path taken from `folder`, the scenario's.
    pub fn relative_to(mut self, folder: &Path) -> FabricSpec {
        if let FabricSpec::File(spec) = &mut self {
            spec.path = folder.join(&spec.path);
        }
        self
    }

    /// Builds the fabric. The error names the wrong key and the reason.
    pub fn build(&self) -> Result<Fabric, Problem> {
        match self {
            FabricSpec::LeafSpine(spec) => spec.build().map_err(|problem| problem.under("leaf_spine")),
            FabricSpec::Rails(spec) => spec.build().map_err(|problem| problem.under("rails")),
            FabricSpec::MultiPlane(spec) => spec.build().map_err(|problem| problem.under("multi_plane")),
            FabricSpec::FatTree(spec) => spec.build().map_err(|problem| problem.under("fat_tree")),
            FabricSpec::Clos(spec) => spec.build().map_err(|problem| problem.under("clos")),
            FabricSpec::Dragonfly(spec) => spec.build().map_err(|problem| problem.under("dragonfly")),
            FabricSpec::DragonflyPlus(spec) => spec.build().map_err(|problem| problem.under("dragonfly_plus")),
            FabricSpec::Dumbbell(spec) => spec.build().map_err(|problem| problem.under("dumbbell")),
            FabricSpec::Star(spec) => spec.build().map_err(|problem| problem.under("star")),
            FabricSpec::Torus(spec) => spec.build(true).map_err(|problem| problem.under("torus")),
            FabricSpec::Mesh(spec) => spec.build(false).map_err(|problem| problem.under("mesh")),
            FabricSpec::File(spec) => spec.build().map_err(|problem| problem.under("file")),
        }
    }
}

/// Checks that a count is at least `least`.
fn at_least(key: &str, value: u32, least: u32) -> Result<(), Problem> {
    if value < least {
        return Err(Problem::new(key, format!("is {value}; it must be at least {least}")));
    }
    Ok(())
}

/// Checks that a rate is not zero.
fn positive(key: &str, rate: Rate) -> Result<(), Problem> {
    if rate == Rate::ZERO {
        return Err(Problem::new(key, "is 0bps; a link needs a rate, such as \"100Gbps\""));
    }
    Ok(())
}

/// `rate` divided by an oversubscription factor.
fn oversubscribed(key: &str, rate: Rate, factor: f64) -> Result<Rate, Problem> {
    if !(1.0..=1e6).contains(&factor) {
        return Err(Problem::new(key, format!("is {factor}; it must be at least 1, which means none")));
    }
    let left = rate.mul_f64(1.0 / factor);
    positive(key, left)?;
    Ok(left)
}

/// `count` switches of one kind.
fn switches(kind: &str, count: u32, delay: Duration) -> impl Iterator<Item = (String, Duration)> {
    crate::Builder::numbered(kind, count).into_iter().map(move |name| (name, delay))
}
