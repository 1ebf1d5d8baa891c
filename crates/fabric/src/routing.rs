//! Routing protocols: which path each packet takes, and what share of a flow that puts on each link.
//!
//! R2C2 (section 2.2.1) lets each flow choose its protocol, and its rate computation (section 3.3.1) rests on one
//! insight: the protocol alone dictates a flow's relative rate on each link. So a protocol here is pure data with two
//! functions that must agree: [`RoutingTables::sample`] draws a packet's path, and [`RoutingTables::weights`] computes
//! exactly the expected number of times that such a packet crosses each link.
//!
//! - Random packet spraying (RPS): at each switch one of the equal-cost ports, all equally likely (Dixit et al., which
//!   section 2.2.1 cites). The paper's words also fit equal shares of paths, and its Figure 3 shows a case where both
//!   are the same. Equal shares of ports are chosen because switches that spray do that, so R2C2 and the other schemes
//!   spray alike.
//! - Destination tag: dimension order, lowest dimension first, the short way round each ring. The two ways round are
//!   equally likely where they are equally long.
//! - Valiant load balancing (VLB): a random waypoint among all switches with hosts, random packet spraying to it and on
//!   from it.
//! - Weighted load balancing (WLB) is "randomized local balance" of Singh, Dally, Towles and Gupta (SPAA 2002), R2C2's
//!   reference 44: round a ring of k, a packet that needs to go d hops forward does so with probability (k - d) / k,
//!   and k - d hops backward otherwise; then it takes a random waypoint within the box of these hops, and a random
//!   order of dimensions to the waypoint and again from it. R2C2 only says that it "biases the path selection in
//!   proportion to the path length"; Figure 2 confirms this reading.
//!
//! Where links are dead, RPS and VLB use the remaining [`Routes`](crate::Routes). The other two are defined on the
//! whole lattice: if the path of a phase (source to waypoint, waypoint to destination) meets a dead link, the phase is
//! sprayed over the remaining shortest paths, and the weights include that. The same holds for a whole WLB packet whose
//! waypoint is unreachable. VLB draws only reachable waypoints.
//!
//! Weights are between switches only: R2C2's nodes are host and switch in one. [`throughput`] derives from the weights
//! how much of a traffic pattern a protocol can carry (Figure 2).
//!
//! Deliberately absent: adaptive protocols, whose weights would depend on queues and not on paths alone.

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

/// A routing protocol: it decides the path of each packet.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, state::Saved,
)]
pub enum Routing {
    /// Random packet spraying over the shortest paths. On any fabric.
    #[default]
    #[serde(rename = "rps")]
    RandomPacketSpraying,
    /// Destination tag, that is dimension-order routing. On a torus or mesh.
    #[serde(rename = "destination_tag")]
    DestinationTag,
    /// Valiant load balancing: over a random waypoint. On any fabric.
    #[serde(rename = "vlb")]
    Vlb,
    /// Weighted load balancing: each way round a ring, with a probability that falls with its length. On a torus.
    #[serde(rename = "wlb")]
    Wlb,
}

impl Routing {
    /// All protocols, by [`Routing::code`].
    pub const ALL: [Routing; 4] = [Routing::RandomPacketSpraying, Routing::DestinationTag, Routing::Vlb, Routing::Wlb];
    /// Names in scenarios, in the order of [`Routing::ALL`].
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

/// Expected crossings of a link by a packet of a given protocol, source and destination.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkWeight {
    /// The link.
    pub link: LinkId,
    /// The expected number of times that the packet crosses the link. It exceeds 1 where both phases of VLB may cross
    /// it.
    pub weight: f32,
}
