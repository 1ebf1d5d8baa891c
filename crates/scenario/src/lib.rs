//! The scenario: what a user writes to define a run. This crate holds its schema, its reader and its errors, and runs
//! nothing.
//!
//! [`read()`] reads and checks a [`Scenario`]. The crate `run` derives the plan of a run from it.

mod decomposition;
mod entity;
mod live;
mod spec;

pub use decomposition::DecompositionSpec;
pub use entity::{Each, EntitySpec, RequestSpec};
pub use live::{ContentCheck, LiveLinks, LiveSpec, Networks, SocketSpec, Wait};
pub use spec::{
    Carriers, Class, Completion, CrateSpec, Crates, EventKind, FastForward, FlowsSpec, HostSpec, LinkSpec, Measure,
    PacketsSpec, Programs, ResubmitPolicy, Scenario, ScenarioError, Source, SwitchSpec, Timing, outside, read,
};
