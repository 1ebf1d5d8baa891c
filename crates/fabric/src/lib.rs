//! Topologies and routes as pure data.
//!
//! A [`FabricSpec`] is a topology as a scenario states it ("a leaf-spine of 9 racks"). [`FabricSpec::build`] turns it
//! into a [`Fabric`]: flat vectors of nodes, ports and directed links that nothing changes afterwards. [`Routes`] holds
//! every shortest path as sets of equal-cost ports, for the whole fabric or for what [`Failures`] leave of it.
//! [`Quotient`] folds a fabric along its symmetries. [`epochs`] computes the fabric after each failure in advance, so
//! that a simulator only applies precomputed tables at precomputed times. Which port of a set a packet takes is decided
//! by a load balancer in the crate `node`.
//!
//! The papers that the project reproduces define the topologies: dcPIM section 4 and Harmony section 5 (the 144-host
//! leaf-spine and the 1,024-host fat-tree), Pyrrha (fat-trees whose paths any switch can recompute), R2C2 (3D tori
//! whose nodes are host and switch in one, with [`Route`]s carried by packets).
//!
//! A host may have several links, each to a switch: dual-homed servers, rails. Routes to it lead to the nearest of its
//! switches. It chooses the link by which a packet leaves as a switch would.
//!
//! In a dragonfly, routes are minimal in its sense: they cross one link between groups, though a path over two may have
//! fewer links ([`Link::global`]).
//!
//! Deliberately absent: links that differ between their two directions, non-minimal routing tables (use source routes;
//! [`routing`] computes them), and the messages of routing protocols.

mod fabric;
mod failure;
mod frontier;
mod names;
mod quotient;
mod routes;
pub mod routing;
mod source_route;
mod spec;
mod unloaded;

pub use fabric::{Builder, Fabric, Lattice, Link, Tier};
pub use failure::{Change, Epoch, FailureSpec, Flap, LinkNoise, RerouteScope, Rerouting, epochs};
pub use quotient::{Bundle, Quotient};
pub use routes::{Failures, Routes};
pub use routing::{LinkWeight, Routing, RoutingTables};
pub use source_route::{Route, RouteError};
#[cfg(target_family = "wasm")]
pub use spec::hand_over;
pub use spec::{
    Clos, Dragonfly, DragonflyPlus, Dumbbell, FabricSpec, FatTree, FileFormat, FileSpec, Grid, LeafSpine, MultiPlane,
    Rails, Size, Star, read_file,
};
