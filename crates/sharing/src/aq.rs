//! Augmented Queue (Wu, Wang, Wang, Ng, SIGCOMM 2023): precise bandwidth for an entity inside a shared queue.
//!
//! An entity is whatever was granted an AQ: an application, a congestion control, a VM. Its A-Gap is the length that a
//! queue of its own would have if it were drained at the allocated rate R ([`gap`], section 3.3.1). The switch drops,
//! marks or reports delay by the A-Gap of the packet's entity and never by the shared queue. So an entity is affected
//! only by its own traffic, whatever congestion control it and others use (Algorithm 2).
//!
//! A switch keeps 15 bytes for each AQ ([`state`], sections 4.2 and 5.5), with R as a 24-bit float ([`rate`]), in a
//! hash table by AQ id ([`table`]). [`switch`] has both pipelines of a switch and its part of the controller's work.
//! The controller ([`control`], section 4.1) grants or declines requests, divides links by weight and orders what to
//! deploy where. [`share`] has the arithmetic of division, limits and work conservation (section 6).
//!
//! Decided where the paper is silent: how the eight bytes that it leaves open are spent, and the clock's granularity
//! and wrap-around ([`state`], [`gap`]); limit and CC fields are held once for all AQs that agree in them ([`table`]);
//! an id is never given twice; what an idle entity may send when it wakes ([`control`]); limits, thresholds and idle
//! periods where none are set ([`mod@derive`]).
//!
//! Deliberately absent: where in a network to put an AQ (the paper leaves it to tenants), and queues: an AQ holds no
//! packets.

pub mod control;
pub mod derive;
pub mod gap;
pub mod rate;
pub mod share;
pub mod state;
pub mod switch;
pub mod table;

mod scheme;
mod warn;

pub use contract::sharing::{AqId, Ids, Place, Position, Request, Share, Step, SwitchError};
pub use control::{Controller, Decline, LinkSpec, Order};
pub use derive::Path;
pub use gap::{Gap, Policy, Verdict};
pub use rate::AqRate;
pub use share::{Limit, WorkConserving};
pub use switch::{Config, SwitchPart};
pub use table::Table;
