//! The live driver: the very same hosts and switches as in the simulator, on the real clock and over sockets.
//!
//! [`run`] works a scenario out as the simulator does, gives every node of its fabric a UDP socket on loopback, and
//! lets them live in one process and one thread: every packet is a datagram ([`mod@frame`]) with real content
//! ([`mod@content`]) that is checked where it arrives, every link is paced to its rate, and what is due when is decided
//! by the real clock (`network.rs` says how). The tables are those of the simulator, so that one stands beside the
//! other.
//!
//! This shows that protocols need nothing that only a simulator can give, and how far results in simulated time are
//! from those on a real clock. It is a model of slow networks: one thread moves some 100,000 frames a second, so links
//! have tens of Mbps and delays of hundreds of microseconds. `examples/live.toml` is a 100 Gbps rack slowed down 2,000
//! times.
//!
//! Absent on purpose: several machines, which need clocks that agree; failures of links, which are refused; samples of
//! queues over time. Datagrams are not authenticated beyond their sender's address: a process that can forge the
//! source port of another on this machine can take part in the run.

mod clock;
pub mod content;
mod datagrams;
pub mod frame;
mod network;
mod results;
mod run;
mod sockets;

pub use network::CREDIT;
pub use run::{RunInfo, RunResult, run, run_at};
