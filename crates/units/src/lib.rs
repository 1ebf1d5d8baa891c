//! The ground floor: quantities, names and randomness.
//!
//! Everything above speaks in these types, so that a unit is never guessed: [`Time`] and [`Duration`] in
//! picoseconds, [`Rate`] in bits per second, [`Bytes`], small typed ids, and [`Stream`], a random stream that is a
//! function of (seed, entity, purpose) alone and therefore does not depend on who draws first.
//!
//! Picoseconds are the unit because one byte takes 80 ps at 100 Gbps and 20 ps at 400 Gbps: transmission times are
//! exact integers, sums do not round, and a `u64` still holds 213 days.
//!
//! Absent on purpose: wall-clock time (only the live driver knows it) and floating-point time.

mod ids;
mod problem;
mod quantity;
mod random;
mod rate;
mod time;

pub use ids::{FlowId, HostId, LinkId, NodeId, PortId, SwitchId};
pub use problem::Problem;
pub use quantity::{Bytes, ParseQuantityError};
pub use random::{Stream, mix};
pub use rate::{PerByte, Rate};
pub use time::{Duration, Time};
