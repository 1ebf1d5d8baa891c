//! A deterministic parallel event engine. It knows time, sources of events and partitions, and no network noun.
//!
//! **Order.** An [`Agenda`] holds one pending instant for each source of events (a link's next arrival, a port's
//! next opening, a host's next deadline), however many events wait behind it at the source. Events happen in the
//! order (time, source); a source gives its own events in its own order. No global counter takes part, so the order
//! of the events of one entity does not depend on what else shares its agenda.
//!
//! **Parallelism.** [`run`] advances [`Partition`]s side by side through windows. A window begins at the earliest
//! pending event of all and is as long as the least delay between partitions, so nothing that happens in it can reach
//! another partition before it ends; mail is exchanged at its end. Windows are a function of the events alone, never of
//! how the model was cut, so whatever is decided at a window's end (stop, because all work is done) is decided at
//! the same instant on one thread and on sixteen.
//!
//! Absent on purpose: speculation and roll-back, cancelling of events (a source that changed its mind stores another
//! instant), dynamic re-partitioning.

mod agenda;
mod barrier;
mod windows;

pub use agenda::Agenda;
pub use windows::{Ended, Outcome, Partition, run};
