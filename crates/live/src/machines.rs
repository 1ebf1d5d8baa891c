//! A run on several machines.
//!
//! 1. The first machine ([`run_machines`]) makes a plan of the scenario and listens; the others ([`join`]) connect to
//!    it by TCP (`control.rs`). Each side proves that it has the same token before anything else is sent (`token.rs`).
//! 2. They agree before any work: on the same build, the same scenario (if a machine brings one of its own, it must be
//!    the same), and, by a digest, the same fabric and flows computed from it. Otherwise both sides say what differs.
//! 3. Every machine then has the same plan and the same parts, and drives its own workers, as each of several processes
//!    does. Workers see a board and rings, as there, but in memory of their own machine. A thread, the courier
//!    (`courier.rs`), keeps them in step with the other machines. It has a trunk over UDP to each (`trunk.rs`), which
//!    carries the frames of all links between the two, and the changes of the board (`board/mirror.rs`).
//! 4. A trunk delivers everything in order, as memory does, so that the history stays the simulator's. Lost datagrams
//!    are sent again. Each datagram carries the run's session and an authentication tag, which is also its checksum.
//!    Datagrams of strangers, and truncated or changed ones, are counted and dropped; duplicates have no effect.
//! 5. The first machine measures how the others' clocks differ from its own by many round trips on the control
//!    connection, and uses the shortest: half of it is the remaining error (`clocks.rs`). All machines begin at the
//!    same instant. The error affects lateness, never the history. No machine goes further than the others' promises
//!    allow, so the slowest clock determines network time. How far clocks drifted apart is measured at the end.
//! 6. A machine whose control connection ends, or that says nothing for 10 s, is a failure of its nodes, as a process
//!    that ends is. If two can't hear each other, the later of them counts as lost.
//! 7. Where programs send messages, notes of these go over the control connection while the run lasts
//!    (`mail.rs`), as between processes.
//! 8. When the run is over, each machine sends the packets that are still on their way, and then its nodes' results.
//!    The first machine makes tables of them. The others write nothing.
//!
//! Absent on purpose: encryption; congestion control, since the network between the machines should carry nothing else;
//! machines that join later. A malicious machine that has the token can delay the others, or make them treat another
//! one as lost.

mod agreement;
mod clocks;
mod control;
mod courier;
mod ends;
mod first;
mod other;
mod token;
mod trunk;

pub use agreement::agree_on_any;
pub use courier::read_any;
pub use first::run_machines;
pub(crate) use first::run_open;
pub use other::{Joined, join};
pub use token::Token;

use std::net::SocketAddr;

/// What a machine has to show to others.
#[derive(Clone, Debug)]
pub struct Membership<'a> {
    /// What all machines of the run share.
    pub token: &'a Token,
    /// Of which build it is: all have to be of the same.
    pub build: &'a str,
}

/// Events while machines join, before the run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The first machine waits there for this many others.
    Listening(SocketAddr, usize),
    /// Nobody listens there yet.
    Waiting(String),
    /// A machine has joined, from there; this many are missing.
    Joined(SocketAddr, usize),
    /// Somebody there was not let in, and why.
    Denied(SocketAddr, String),
    /// A machine that had joined has left again.
    Left(SocketAddr),
    /// This is that machine, of this many, with this many nodes.
    Part(usize, usize, usize),
}

impl std::fmt::Display for News {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            News::Listening(at, missing) => {
                write!(to, "listening at {at} for {missing} more (--join HOST:{})", at.port())
            }
            News::Waiting(at) => write!(to, "nobody listens at {at} yet"),
            News::Joined(from, 0) => write!(to, "{from} has joined: all are there"),
            News::Joined(from, missing) => write!(to, "{from} has joined: {missing} more are needed"),
            News::Denied(from, why) => write!(to, "{from} was not let in: {why}"),
            News::Left(from) => write!(to, "{from} has left again"),
            News::Part(machine, machines, nodes) => {
                write!(to, "this is machine {machine} of 0 to {}, with {nodes} nodes", machines - 1)
            }
        }
    }
}
