//! The scenario: what a person writes to say what a run is. Its schema, its reader, its errors; nothing that runs.
//!
//! A [`Scenario`] is read and checked by [`read()`]. What follows from it is worked out above, in the crate `run`.

mod entity;
mod spec;

pub use entity::{Each, EntitySpec, RequestSpec};
pub use spec::{Again, Carriers, Completion, HostSpec, Measure, Scenario, ScenarioError, Source, SwitchSpec, read};
