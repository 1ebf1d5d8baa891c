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

mod warn;

use std::num::NonZeroU32;

pub use control::{Controller, Decline, LinkSpec, Order, Place, Position, Request, Share};
pub use derive::Path;
pub use gap::{Gap, Policy, Verdict};
pub use rate::AqRate;
pub use share::{Limit, WorkConserving};
pub use switch::{Config, Step, SwitchError, SwitchPart};
pub use table::Table;

/// The id of an AQ, unique in a network and never reused. In a packet, 0 stands for "no AQ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AqId(pub NonZeroU32);

impl AqId {
    /// The id that a packet carries; `None` for the default value 0 (section 4.1).
    pub const fn from_tag(tag: u32) -> Option<AqId> {
        match NonZeroU32::new(tag) {
            Some(id) => Some(AqId(id)),
            None => None,
        }
    }

    /// As the packet carries it.
    pub const fn tag(self) -> u32 {
        self.0.get()
    }
}

/// The AQ ids of a network. Each is given out once (section 4.1), so that a late packet of a released AQ belongs to no
/// other AQ.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    given: u32,
}

impl Ids {
    /// A new id; `None` after 2^32 - 1 ids.
    pub fn next_id(&mut self) -> Option<AqId> {
        self.given = self.given.checked_add(1)?;
        AqId::from_tag(self.given)
    }
}
