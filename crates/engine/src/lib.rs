//! A deterministic parallel event engine. It knows time, sources of events and partitions, but nothing of networks.
//!
//! **Order.** An [`Agenda`] holds one pending time for each source of events (a link's next arrival, the next time that
//! a port can send, a host's next deadline), however many events wait at the source. Events happen in the order (time,
//! source) within each group of sources; a source orders its own events. There is no global counter, so the order of
//! the events of one entity does not depend on what else shares its agenda.
//!
//! **Parallelism.** [`run`] advances [`Partition`]s in parallel through windows. A window begins at the earliest
//! pending event of all partitions and is as long as the least delay between them. So nothing that happens in it can
//! reach another partition before it ends, and mail is exchanged at its end. Windows depend only on the events and not
//! on the partitioning. So a decision at the end of a window (such as to stop because all work is done) falls at the
//! same simulated time on one thread and on sixteen.
//!
//! **Locality.** An [`Agenda`] serves one group of sources after another within a span of time, so that what a group's
//! events touch stays in the nearest cache. Partitions with nothing to do in a window are passed over. A thread has
//! partitions that it takes first, and then takes those that other threads have not begun.
//!
//! Deliberately absent: speculation and roll-back, cancelling of events (a source stores another time instead), and
//! dynamic re-partitioning.

mod agenda;
mod barrier;
mod windows;

pub use agenda::Agenda;
pub use windows::{Bounds, Ended, Outbox, Outcome, Partition, run};
