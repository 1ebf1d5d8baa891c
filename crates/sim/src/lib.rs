//! The simulator: nodes on the engine.
//!
//! [`run`] works a scenario out, cuts its network into parts, lets the engine advance the driver of each, and gives
//! tables, a summary and an audit. Results are a function of the scenario alone: not of the machine, the number of
//! threads, or who watches.
//!
//! Absent on purpose: files (the caller reads and writes them), and anything that a scheme could do for itself.

mod part;
mod run;
mod steps;

pub use ::run::{Finding, Progress};
pub use driver::Capturing;
pub use driver::capture;
pub use run::{Execution, RunInfo, RunResult, run, run_captured, run_plan};
pub use steps::Steps;
