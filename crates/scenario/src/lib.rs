//! What a run is, and what became of its flows: all that is the same under simulated time and the real clock.
//!
//! A [`Scenario`] is read and checked ([`read()`]), worked out into a [`Plan`] (fabric, routes, flows, what each transport
//! asks for; its [`Outline`] is what needs no packet), and from the plan come [`Host`]s and switches, state machines that a driver advances. What hosts note about
//! flows is gathered into [`Flows`] and becomes a [`Table`]. The simulator and the live driver differ only in
//! who calls, and when.
//!
//! Absent on purpose: time itself, links, results in files (the caller writes them).

pub mod audit;
mod entities;
mod entity;
mod flows;
mod hold;
mod homes;
mod host;
mod ideal;
mod intake;
mod nic;
mod outcome;
mod outline;
mod plan;
mod progress;
mod results;
mod spec;
mod table;

pub use audit::Finding;
pub use entities::{Asked, Entities, Part};
pub use entity::{Each, EntitySpec, RequestSpec};
pub use flows::{FlowInfo, FlowTable};
pub use host::Host;
pub use ideal::Ideal;
pub use outcome::{Fate, FlowColumns, FlowRecord, Flows, Journey, Measured, Status, measure_table, standing_columns};
pub use outline::Outline;
pub use plan::{HEAD_BYTES, Plan, Reserved};
pub use progress::Progress;
pub use results::{InFlight, counter_table, link_columns, link_table};
pub use spec::{Again, Carriers, Completion, HostSpec, Measure, Scenario, ScenarioError, Source, SwitchSpec, read};
pub use table::{Column, Data, Table};
