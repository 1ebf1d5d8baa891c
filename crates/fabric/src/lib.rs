//! Topologies and routes as pure data.
//!
//! A [`FabricSpec`] is what a scenario says ("a leaf-spine of 9 racks"); [`FabricSpec::build`] turns it into a
//! [`Fabric`], flat vectors of nodes, ports and directed links, which everything above reads and nothing changes.
//! [`Routes`] holds every shortest path as sets of equal-cost ports, for the whole fabric or for what [`Failures`] leave
//! of it; [`Quotient`] folds a fabric along its symmetries; [`epochs`] works out beforehand what the fabric looks like after each failure, so that a simulator only has
//! to apply precomputed tables at precomputed times. Which port of a set a packet takes is a load balancer's business
//! and lives one floor up.
//!
//! What the papers of this house need sets the shape: dcPIM section 4 and Harmony section 5 (the 144-host leaf-spine
//! and the 1,024-host fat-tree), Pyrrha (fat-trees whose paths any switch can recompute), R2C2 (3D tori whose nodes are
//! host and switch in one, [`Route`]s carried by packets).
//!
//! A host may have several links, each to a switch: dual-homed servers, rails. Routes to it lead to the nearest of its switches, and
//! which of its links a packet leaves by is chosen as at a switch.
//!
//! Absent on purpose: links that differ between their two directions, non-minimal routing tables (a source route expresses those: see
//! [`routing`] for who draws them) and protocols that find routes (new tables appear everywhere at once after a set
//! delay).

mod fabric;
mod failure;
mod names;
mod quotient;
mod routes;
pub mod routing;
mod source_route;
mod spec;
mod unloaded;

pub use fabric::{Builder, Fabric, Lattice, Link, Tier};
pub use failure::{Change, Epoch, FailureSpec, Flap, LinkNoise, Rerouting, Whom, epochs};
pub use quotient::{Bundle, Quotient};
pub use routes::{Failures, Routes};
pub use routing::{LinkWeight, Routing, RoutingTables};
pub use source_route::{Route, RouteError};
pub use spec::{Dumbbell, FabricSpec, FatTree, FileFormat, FileSpec, Grid, LeafSpine, Rails, Star, read_file};
