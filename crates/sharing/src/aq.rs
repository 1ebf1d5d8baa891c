//! Augmented Queue (Wu, Wang, Wang, Ng, SIGCOMM 2023): precise bandwidth for an entity inside a shared queue.
//!
//! An entity is whatever was granted an AQ: an application, a congestion control, a VM. Its A-Gap is the length that a
//! queue of its own, drained at its allocated rate R, would have ([`gap`], section 3.3.1). The switch drops, marks or
//! reports delay by the A-Gap of the packet's own entity and never by the queue that all share, so an entity answers
//! for its own traffic alone, whatever congestion control it and the others use (Algorithm 2).
//!
//! What a switch keeps is 15 bytes an AQ ([`state`], sections 4.2 and 5.5), with R as a 24-bit float ([`rate`]), in a
//! hash table by AQ id ([`table`]); both pipelines of a switch, and its share of the controller's work, are [`switch`].
//! The controller ([`control`], section 4.1) grants or declines requests, divides links by weight and says what to
//! deploy where; the arithmetic of division and of section 6's limits and work conservation is [`share`].
//!
//! Decided where the paper is silent: how the eight bytes that it leaves open are spent, and the clock's granularity and
//! wrap-around ([`state`], [`gap`]); limit and CC fields are held once for all AQs that agree in them ([`table`]); an
//! id is never given twice; what an idle entity may send when it wakes ([`control`]); limits, thresholds and idle periods where none are set ([`derive`]).
//!
//! Absent on purpose: where in a network to put an AQ (the paper leaves it to tenants), and any queue: an AQ holds no
//! packet.

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
