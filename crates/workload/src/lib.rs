//! Traffic: from a description of who sends how much to whom, and how often, to a list of [`Flow`]s.
//!
//! A scenario holds one or more classes of [`Traffic`]. Each has [`Sizes`] (how large), [`Arrivals`] (when) and a
//! [`Pattern`] (between whom), or a [`TraceFile`] that another tool wrote. [`generate`] turns all classes into one
//! list, as a pure function of the classes, the [`FabricView`] and the seed. The list is the same on any machine and
//! exists before anything runs, so two schemes can be given the very same flows.
//!
//! Each class draws times, endpoints and sizes from separate random streams named after the class. So a class does not
//! change when another is added or removed. At twice the load a Poisson class sends the same messages between the same
//! hosts in half the time, so runs at different loads do not differ by random noise.
//!
//! A training [`Job`] is a list of computations and collectives. [`place`] puts its ranks on hosts, and makes a flow of
//! each message that leaves its host; such a flow starts when its rank reaches the step that sends it.
//!
//! Sources: all-to-all, bursty and dense traffic are dcPIM section 4.1's; Poisson arrivals by mean gap with Pareto
//! sizes are R2C2 section 5.2's; incast mixed into Poisson traffic that avoids its destination is Pyrrha section 6.2's;
//! the MoE all-to-all is Pyrrha section 2.2's, also with its authors' weights.
//!
//! Deliberately absent: transports (the scenario's crate says which `T` a class names), feedback other than "after that
//! flow has completed" ([`Flow::after`]), and file access (the caller passes a function that reads files, see
//! [`Traffic::load`]).

mod admissible;
mod generate;
mod hosts;
mod job;
mod pattern;
mod room;
mod sizes;
mod trace;
mod traffic;

pub use generate::{FLOWS_MAX, generate, generate_within, start_later};
pub use hosts::{Hosts, ParseHostsError};
pub use job::{
    Algorithm, Groups, Job, Library, Like, Loaded, Local, Nics, Operation, PlacedJob, Placement, Protocol, Step,
    Straggler, place,
};
pub use pattern::{HotSpots, Incast, Moe, Outcast, Pattern, RackShuffle, Stride};
pub use room::{Room, in_words};
pub use sizes::{Cdf, Named, Pareto, Probability, SizeUnit, Sizes, Table, TableFile, Uniform};
pub use trace::{CsvTrace, HpccTrace, HtsimTrace, ParquetTrace, StartUnit, Trace, TraceError, TraceFile, TraceFlow};
pub use traffic::{Arrivals, ClosedLoop, Counting, LoadOf, Periodic, Phases, Poisson, Resubmit, Traffic, Wire};

use units::{FlowId, HostId, Rate, Time};

/// A message from `src` to `dst`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The sender.
    pub src: HostId,
    /// The receiver; never `src`.
    pub dst: HostId,
    /// Payload in bytes; never zero.
    pub bytes: u64,
    /// When the message is handed to the transport. With [`Flow::after`]: delay after that flow's completion.
    /// [`Flow::BY_JOB`] for a message of a job.
    pub start: Time,
    /// Index of its class in the list given to [`generate`].
    pub class: u16,
    /// An earlier flow of the same source in the list. This flow starts when the sender learns of its completion.
    pub after: Option<FlowId>,
}

impl Flow {
    /// In place of the start of a flow that starts when its job comes to it.
    pub const BY_JOB: Time = Time::MAX;
}

/// The facts on the fabric that the generator needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FabricView {
    /// The rack of each host.
    pub rack_of: Vec<u32>,
    /// The rate of each host's link.
    pub host_rate: Vec<Rate>,
    /// Capacity, in one direction, of the narrowest cut into two equal halves of the hosts.
    pub bisection: Rate,
    /// The slowest link of the fabric.
    pub narrowest: Rate,
}

impl FabricView {
    /// How many hosts there are.
    pub fn hosts(&self) -> u32 {
        u32::try_from(self.rack_of.len()).expect("host ids fit in 32 bits")
    }
}

#[cfg(test)]
mod testing {
    use units::Rate;

    use crate::FabricView;

    /// Racks of equal hosts at 100 Gbps with full bisection.
    pub fn star_of_racks(racks: u32, hosts_a_rack: u32) -> FabricView {
        let hosts = racks * hosts_a_rack;
        FabricView {
            rack_of: (0..hosts).map(|host| host / hosts_a_rack).collect(),
            host_rate: vec![Rate::from_gbps(100); hosts as usize],
            bisection: Rate::from_gbps(u64::from(hosts) * 50),
            narrowest: Rate::from_gbps(100),
        }
    }
}
