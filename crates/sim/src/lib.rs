//! The simulator: nodes on the engine.
//!
//! [`run`] makes a plan of a scenario, cuts its network into parts, lets the engine advance the driver of each, and
//! returns tables, a summary and an audit. Results depend on the scenario alone, and not on the machine, the number of
//! threads, or the progress display.
//!
//! Absent on purpose: files (the caller reads and writes them), and anything that a scheme could do for itself.

mod ahead;
mod bisect;
mod checkpoint;
mod fork;
mod part;
mod run;
mod steps;

pub use ::run::{Finding, Progress};
pub use ahead::Skipped;
pub use bisect::{Apart, Bisected, Side, bisect};
pub use checkpoint::{Checkpoint, Course, Keep, Moments, refusal};
pub use driver::Capturing;
pub use driver::capture;
pub use fork::{KEYS, Key, Says, fork};
pub use run::{Execution, RunInfo, RunResult, run, run_captured, run_on, run_plan};
pub use steps::Steps;

/// Digest of the code that decides results: of the simulator and all crates that it is made of, of the other levels, of
/// live runs, and of the versions of other people's crates. Two programs with the same give the same results.
pub const SOURCE: &str = env!("CLEARWAY_SOURCE");
