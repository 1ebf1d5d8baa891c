//! Quantities, ids and random numbers, which all other crates use.
//!
//! Types fix the units: [`Time`] and [`Duration`] are in picoseconds, [`Rate`] is in bits per second, then [`Bytes`],
//! small typed ids, and [`Stream`], a random stream that depends on (seed, entity, purpose) alone and therefore not on
//! the order of draws elsewhere.
//!
//! The unit of time is the picosecond because one byte takes 80 ps at 100 Gbps and 20 ps at 400 Gbps: transmission
//! times are exact integers, sums do not round, and a `u64` still holds 213 days.
//!
//! Deliberately absent: wall-clock time (only the live driver knows it) and floating-point time.

mod ids;
pub mod interrupt;
mod power;
mod problem;
mod quantity;
mod random;
mod rate;
pub mod saved;
mod time;

pub use ids::{FlowId, HostId, LinkId, NodeId, PortId, SwitchId};
pub use power::power;
pub use problem::Problem;
pub use quantity::{Bytes, ParseQuantityError};
pub use random::{Stream, mix};
pub use rate::{PerByte, Rate, Tolerance};
pub use saved::Saved;
pub use time::{Duration, Time};
