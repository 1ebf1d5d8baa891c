//! Routing protocols: which path each packet takes, and what share of a flow that puts on each link.
//!
//! R2C2 (section 2.2.1) lets each flow choose its protocol, and its rate computation (section 3.3.1) rests on one
//! insight: the protocol alone dictates a flow's relative rate on each link. So a protocol here is pure data with two
//! faces that must agree: [`RoutingTables::sample`] draws a packet's path, [`RoutingTables::weights`] is the expected
//! number of times that such a packet passes each link, exactly, by arithmetic and not by sampling.
//!
//! - Random packet spraying (RPS): at each switch one of the equal-cost ports, all equally likely (Dixit et al., which
//!   section 2.2.1 cites). Where shares of ports and of paths differ, the paper's words fit both: in its Figure 3 they
//!   are equal. Ports it is, as that is what switches that spray do, so that R2C2 and its rivals spray alike.
//! - Destination tag: dimension order, lowest dimension first, the short way round each ring. The two ways round are
//!   equally likely where they are equally long.
//! - Valiant load balancing (VLB): a random waypoint among all switches with hosts, random packet spraying to it and on
//!   from it.
//! - Weighted load balancing (WLB) is "randomized local balance" of Singh, Dally, Towles and Gupta (SPAA 2002), R2C2's
//!   reference 44: round a ring of k, a packet that needs to go d hops forward does so with probability (k - d) / k,
//!   and k - d hops backward otherwise; then it takes a random waypoint within the box of these hops, and a random
//!   order of dimensions to the waypoint and again from it. R2C2 only says that it "biases the path selection in
//!   proportion to the path length"; that this is it, Figure 2 confirms.
//!
//! Where links are dead, RPS and VLB take what [`Routes`](crate::Routes) are left. The other two are defined by the
//! whole lattice: a phase (source to waypoint, waypoint to destination) whose path meets a dead link is sprayed over
//! the shortest paths that are left instead, and the weights say so too. So is a whole packet of WLB whose waypoint is
//! cut off; VLB draws only among waypoints that are not.
//!
//! Weights are between switches only: R2C2's nodes are host and switch in one, and a host's cable is its own.
//! [`throughput`] sums weights up to what a protocol can carry of a traffic pattern (Figure 2).
//!
//! Absent on purpose: adaptive protocols, which look at queues; the weights of one would not be a matter of the paths.

mod lattice;
mod spray;
mod tables;
#[cfg(test)]
mod tests;
pub mod throughput;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::LinkId;

pub use tables::RoutingTables;

/// A protocol that decides the path of each packet by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Routing {
    /// Random packet spraying over the shortest paths; on any fabric.
    #[default]
    #[serde(rename = "rps")]
    RandomPacketSpraying,
    /// Destination tag, which is dimension order; on a torus or mesh.
    #[serde(rename = "destination_tag")]
    DestinationTag,
    /// Valiant load balancing: over a random waypoint; on any fabric.
    #[serde(rename = "vlb")]
    Vlb,
    /// Weighted load balancing: the long way round a ring too, the less likely the longer it is; on a torus.
    #[serde(rename = "wlb")]
    Wlb,
}

impl Routing {
    /// All protocols, by [`Routing::code`].
    pub const ALL: [Routing; 4] = [Routing::RandomPacketSpraying, Routing::DestinationTag, Routing::Vlb, Routing::Wlb];
    /// Their names in scenarios, in the same order.
    pub const NAMES: [&str; 4] = ["rps", "destination_tag", "vlb", "wlb"];

    /// The number by which packets name the protocol (R2C2 section 4.2, the field "rp").
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The protocol with this number.
    pub fn from_code(code: u8) -> Option<Routing> {
        Routing::ALL.get(usize::from(code)).copied()
    }

    /// The protocol's name in scenarios.
    pub const fn name(self) -> &'static str {
        Routing::NAMES[self as usize]
    }

    /// The protocol with this name.
    pub fn named(name: &str) -> Option<Routing> {
        Routing::ALL.into_iter().find(|routing| routing.name() == name)
    }
}

/// What a packet of some protocol, source and destination puts on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkWeight {
    /// The link.
    pub link: LinkId,
    /// The expected number of times that the packet passes the link; more than 1 where VLB's phases both do.
    pub weight: f32,
}
