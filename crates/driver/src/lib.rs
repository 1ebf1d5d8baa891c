//! What happens when a packet arrives, a transmitter is free, or a host acts: written once, for every carrier of
//! packets.
//!
//! A [`Driver`] has some nodes of a network, the links between them, and an agenda of pending events. It processes one
//! event at a time, at an instant that its caller gives. So simulated time and the real clock drive the same code. A
//! [`Carrier`] brings a packet from one end of a link to the other: through the simulator's memory, or a live run's
//! datagrams. A [`Probe`] observes. Both are type parameters, chosen at compile time, so one that does nothing costs
//! nothing.
//!
//! Sources of events, in the order that breaks ties: the timeline (failures, samples), what comes out of links,
//! transmitters that become free, hosts, switches' own deadlines. Each group is in the order of ids over the whole
//! fabric, so two nodes that share a part today and not tomorrow see their own events in the same order both times.
//!
//! A hop costs one event: a packet that finds the transmitter idle leaves in the same event, and a link has one pending
//! event however many packets are in flight on it.
//!
//! The results of every run, tables and an audit, are made here too ([`tables`], [`findings`]), so that they are the
//! same for every carrier.
//!
//! Packets on links can be written to capture files ([`capture`]).
//!
//! Absent on purpose: where time comes from, threads, files.

mod audit;
mod build;
pub mod capture;
mod change;
mod cut;
mod deadlock;
mod driver;
mod first_rows;
mod first_time;
mod islands;
mod jitter;
mod links;
mod members;
mod nodes;
mod noise;
mod order;
mod probe;
mod probes;
mod progress;
mod pulse;
mod repeat;
mod results;
mod retry;
mod saved;
mod stuck;
mod summary;
mod tally;
#[cfg(test)]
mod testing;
mod ties;

pub use audit::findings;
pub use build::drivers;
pub use cut::{Cut, Shape};
pub use driver::{Driver, Due};
pub use islands::{Bond, Islands, Until};
pub use links::{Carrier, Departure, End, LinkRx, LinkTx, Links};
pub use members::{Members, links_between};
pub use nodes::{HostPort, HostSlot, SwitchSlot, digest};
pub use noise::Noise;
pub use probe::{Leaving, NodePort, Probe, Upcoming, View, Wants, Whole};
pub use probes::{Capturing, Content, Lost, Probes, TellsLosses};
pub use progress::{EVERY_CLASS_MOVES, Movement};
pub use pulse::{ReceivedPackets, Sent};
pub use repeat::{Arrival, Log, LogOfHost, Names, Stretch, header_walks};
pub use results::{notes, tables};
pub use retry::{Acceptor, Repeater};
pub use saved::Fork;
pub use stuck::Stuck;
pub use summary::{Summary, pack};
pub use tally::{Tally, sender_stats};
