//! The parts of a switch with shared memory as operators configure it (its memory management unit): pools, priority
//! groups and queues ([`Memory`]), and the order of service of a port's queues ([`Schedule`]).
//!
//! Both are arithmetic without packets. A flow control that uses them keeps the packets and sends the pauses.

mod memory;
mod schedule;

pub use memory::{Memory, Pool, PortProfile, Profile, Room, Shortage, Threshold};
pub use schedule::{Level, Rates, Schedule, Unit};

pub use crate::switch::marks;
