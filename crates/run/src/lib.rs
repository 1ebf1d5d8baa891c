//! The plan of a run and the records of its flows: all that is the same in simulated time and in real time.
//!
//! A [`Scenario`](scenario::Scenario) becomes a [`Plan`] (fabric, routes, flows, what each transport requires; its
//! [`WorkloadPlan`] is the part that needs no packets). The plan makes [`Host`]s and switches, state machines that a
//! driver advances. The hosts' records of flows are gathered into [`Flows`] and become a [`Table`].
//!
//! Absent on purpose: time itself, links, results in files (the caller writes them).

pub mod alone;
pub mod audit;
mod before;
pub mod compatibility;
mod entities;
mod estimate;
mod flows;
mod groups;
mod host;
mod ideal;
mod jobs;
mod outcome;
mod plan;
mod progress;
mod recorded;
mod results;
mod table;
mod ways;
mod workload_plan;

pub use audit::Finding;
pub use before::MemoryLimit;
pub use entities::{AqScope, Asked, Entities};
pub use estimate::{Estimate, Memory, PROGRAM_BYTES};
pub use flows::{FlowInfo, FlowTable};
pub use groups::{Group, Groups};
pub use host::{Host, ReceiveOutcome, Starts};
pub use ideal::{Ideal, data_header_bytes};
pub use jobs::{HostJobs, Jobs, Noted, RankEvent, job_tables};
pub use outcome::{
    FlowColumns, FlowEvent, FlowRecord, Flows, Journey, Measured, Rest, Status, Unlisted, measure_table,
    standing_columns,
};
pub use plan::{HEAD_BYTES, Plan, Reserved};
pub use progress::{Progress, Stillness};
pub use recorded::{Followed, Recorded, WatchedPorts};
pub use results::{
    Counted, InFlight, counted, counter_table, host_names, link_columns, link_ends, link_table, utilisation,
};
pub use table::{Column, Data, Table};
pub use ways::{Way, Ways};
pub use workload_plan::{WorkloadPlan, note_of_sums};
