//! Scenarios one link at a time: each direction of each link is simulated alone, packet by packet, with the flows that
//! cross it, and a flow's completion time is that of the flow alone plus its delay on the link of its way where that is
//! longest.
//!
//! The idea is Parsimon's (Zhao, Goyal, Alizadeh, Anderson: "Scalable tail latency estimation for data center
//! networks", NSDI 2023). It takes most flows to be held up at one link at a time. Then links need not be simulated
//! together, and runs of single links share nothing: each fits a cache, as many run at once as there are threads, and
//! some may stand for others of their kind.
//!
//! - **A piece** (`piece`) is the network of one link: the hosts whose flows cross it, each with the rate of its own
//!   link, the link itself, and receivers behind links that never queue. What was left out is made up for by
//!   propagation, so that a packet and its answer take as long as on the whole way. The simulator (`sim`) runs it, with
//!   the scenario's own transports and switches. Links that switches spread a flow's packets over evenly are one piece,
//!   all side by side ([`run::Ways`]).
//! - **Alone** (`lone`): how long a flow takes that meets no other. Parsimon takes the ideal, at line rate from the
//!   first bit on. Most transports are slower than that even if nothing is in their way (slow start, a target below the
//!   full rate, a grant to wait for), and taking that for delay would count it once a link. So it is simulated over the
//!   whole way, counts once, and a link's delay is what a flow takes there beyond that. A flow that meets no other has
//!   exactly the time of the packet level.
//! - **Answers** take their part of links against the data. As in the paper, links and the hosts' own links are as much
//!   slower in a piece as the answers to flows of the other direction take of them (`answers`).
//! - **Combined** (`combine`): Parsimon adds delays up that are drawn at random, since it asks for the distribution of
//!   flows that it may not have simulated. Here all flows are known, each has its own delay from the run of each of its
//!   links, and the longest counts: the others pass meanwhile.
//! - **Sampled** (`sample`): in a large network some links stand for all of their kind, and flows on others draw.
//!
//! The longest delay is too short for a flow that waits in several queues one after the other, as one packet does, and
//! too long where the same flows have met on an earlier link. `docs/links-measured.md` shows how far off that is.
//!
//! Deliberately absent: everything by which one link acts on another. That is refused, with the reason
//! ([`run::compatibility::check_links`]).

mod answers;
mod combine;
mod decompose;
mod estimate;
mod lone;
mod piece;
mod pool;
mod results;
mod sample;

pub use estimate::{Estimate, EstimateInfo, check, estimate, estimate_within};
