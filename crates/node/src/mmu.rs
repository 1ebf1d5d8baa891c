//! The parts of a switch with shared memory as operators configure it (its memory management unit): pools, priority
//! groups and queues ([`Memory`]), the order of service of a port's queues ([`Schedule`]), and early marks and losses
//! by colour ([`Wred`]).
//!
//! All are arithmetic without packets. A flow control that uses them keeps the packets and sends the pauses.

mod memory;
mod schedule;
mod wred;

pub use memory::{Memory, Pool, PortProfile, Profile, Room, Shortage, Threshold};
pub use schedule::{Level, Rates, Schedule, Unit};
pub use wred::{Average, Buckets, Colour, Curve, Meter, Wred};
