//! Clearway for crates outside of its tree: it loads, changes and runs scenarios ([`experiment`]), and is the base of
//! transports of one's own.
//!
//! A crate with a transport depends on this one alone. It has the crates that the transports of the tree are written
//! with ([`contract`], [`node`], [`units`]) and tested with ([`testing`]), and the simulator, to which the crate's
//! program adds its transports:
//!
//! ```text
//! fn main() -> std::process::ExitCode {
//!     clearway::Engine::new().transport::<mine::Config>("mine").main()
//! }
//! ```
//!
//! `clearway run`, `compare` and all other commands start that program for a scenario that uses such a transport, in
//! place of the simulator that they have themselves: see [`engine`]. `clearway new transport mine` writes such a crate;
//! `docs/write-a-transport.md` explains it line by line.

pub mod engine;
pub mod experiment;
mod foresee;

pub use contract;
pub use engine::Engine;
pub use experiment::{Flow, Level, Run, Scenario, ScenarioError, Table};
pub use foresee::{Foreseen, foresee};
pub use node;
pub use testing;
pub use units;
