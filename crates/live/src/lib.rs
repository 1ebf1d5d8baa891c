//! The live driver: the same hosts and switches as in the simulator, in real time and over real links.
//!
//! [`run`] makes a plan of a scenario as the simulator does, and runs its nodes on a few threads, the workers
//! (`worker.rs`), which agree on how far each may go (`board.rs`). Events are processed when the machine's clock
//! reaches their time (`clock.rs`). Packets carry real content ([`mod@content`]), which is written once, at the source,
//! and checked at the destination; on the way only its owner changes (`pages.rs`). Links are memory, rings between
//! threads, rings between processes ([`mod@ring`], `processes.rs`), trunks between machines ([`machines`]), or
//! datagrams (`wires.rs`, [`mod@frame`]). Some hosts may be network devices of the machine ([`attach`]), and links may
//! be written to files (`capture.rs`). The tables are those of the simulator, so that the two can be compared.
//!
//! It corresponds to Maze, R2C2's emulator of a rack (section 4.1), but uses the simulator's nodes. It shows that
//! protocols need nothing that only a simulator can provide, and how far results in simulated time are from those in
//! real time.
//!
//! Absent on purpose: with `live.links = "datagrams"`, datagrams are not authenticated beyond their sender's address: a
//! process that can forge the source port of another on this machine can take part in the run.

pub mod attach;
pub mod bench;
mod board;
mod capture;
mod clock;
pub mod content;
mod datagrams;
pub mod frame;
pub mod machines;
mod mail;
pub mod maze;
mod network;
mod outside;
mod pages;
mod processes;
mod results;
pub mod ring;
mod run;
mod several;
mod shared;
mod sockets;
mod wires;
mod worker;

pub use clock::CREDIT;
pub use machines::{join, run_machines};
pub use processes::{run_processes, take_part};
pub use run::{RunInfo, RunResult, run, run_at};
