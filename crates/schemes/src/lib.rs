//! The systems, one folder each, and the catalogue that lists them.
//!
//! A scheme is its `Config`: what a scenario may set, with the paper's defaults. From it come the endpoint of each
//! host and what the scheme asks of switches. Nothing outside a scheme's folder names it but its catalogue line.

pub mod aq;
pub mod bfc;
pub mod catalogue;
pub mod congestion_isolation;
pub mod dcpim;
pub mod flow_control;
mod flow_queues;
pub mod harmony;
pub mod limiter;
pub mod link_scheme;
pub mod per_flow_queues;
pub mod pfc;
pub mod pyrrha;
pub mod rdma;
pub mod sharing;
pub mod tcp;
pub mod udp;

mod finished;

use node::{Balancing, Endpoint, Marking, Overflow, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Problem;

pub use catalogue::Transport;
pub use flow_control::FlowControl;
pub use sharing::Sharing;

/// What each scheme's `Config` can do.
pub trait Scheme {
    /// What the system is and where it is described, for `clearway schemes`.
    const ABOUT: About;

    /// What its packets carry.
    type Header: node::Header;

    /// What the types of the configuration can't forbid. Keys are relative to the scheme's table.
    fn check(&self) -> Result<(), Problem>;

    /// The scheme's part of the host at `site`.
    fn endpoint(&self, site: &Site) -> Box<dyn Endpoint>;

    /// What it asks of switches, where the scenario leaves it open.
    fn asks(&self, site: &Site) -> Asks;
}

/// One line for a person who looks for a scheme.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name in full.
    pub title: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// What hosts and switches must be able to do.
    pub needs: &'static str,
}

/// What a scheme asks of the switches on the way of its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asks {
    /// How to choose among shortest paths.
    pub balancing: Balancing,
    /// How to tell it that the network is congested.
    pub feedback: Feedback,
    /// What shall happen to a packet that finds no room, if it is not all the same.
    pub overflow: Option<Overflow>,
}

/// What a congestion control listens to: the CC fields of an AQ request (Augmented Queue, section 4.1, Algorithm 2). Loss
/// is common to all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Feedback {
    /// Loss alone (NewReno, CUBIC, Illinois).
    Drop,
    /// Marks, set like this (DCTCP, DCQCN). A packet that is not ECN-capable passes unmarked.
    Ecn(Marking),
    /// Delay (Swift): its round trips show a real queue's, packets gather the virtual queueing delay of AQs.
    Delay,
}

impl Feedback {
    /// When to mark, if it listens to marks.
    pub fn marking(self) -> Option<Marking> {
        match self {
            Feedback::Ecn(marking) => Some(marking),
            Feedback::Drop | Feedback::Delay => None,
        }
    }
}
