//! What happens when a packet arrives, a transmitter is free, a host acts: once, over whatever carries packets.
//!
//! A [`Driver`] has some nodes of a network, the links between them and an agenda of what is due when. It does one
//! thing at a time, as of an instant that it is handed: so simulated time and the real clock drive the same lines. What
//! brings a packet from one end of a link to the other is a [`Carrier`]: the simulator's memory, a live run's
//! datagrams. What is observed is a [`Probe`]. Both are types, chosen when a program is compiled, and cost nothing
//! where they do nothing.
//!
//! Sources of events, in the order that breaks ties: the timeline (failures, samples), what comes out of links,
//! transmitters that become free, hosts, switches' own deadlines. Each group is in the order of ids over the whole
//! fabric, so two nodes that share a part today and not tomorrow see their own events in the same order both times.
//!
//! One event a hop: a packet that meets an idle transmitter goes on in the same event, and a link has one pending event
//! however many packets are in flight on it.
//!
//! What every run gives, tables and an audit, is made here too ([`tables`], [`findings`]): so one with another carrier
//! has what all have.
//!
//! What links carry can be noted as others read it ([`capture`]).
//!
//! Absent on purpose: where time comes from, threads, files.

mod audit;
mod build;
pub mod capture;
mod change;
mod cut;
mod deadlock;
mod driver;
mod links;
mod nodes;
mod noise;
mod probe;
mod probes;
mod results;
mod retry;
mod summary;
mod tally;
#[cfg(test)]
mod testing;

pub use audit::findings;
pub use build::drivers;
pub use cut::{Cut, Shape};
pub use driver::{Driver, Due};
pub use links::{Carrier, Departure, End, Links, Outlet, Pipe};
pub use nodes::{HostPort, HostSlot, SwitchSlot, digest};
pub use noise::Noise;
pub use probe::{Leaving, Place, Probe, Upcoming, View, Wants, Whole};
pub use probes::{Capturing, Content, Lost, Probes, TellsLosses};
pub use results::{notes, tables};
pub use retry::{Acceptor, Repeater};
pub use summary::{Summary, pack};
pub use tally::{Tally, sender_stats};
