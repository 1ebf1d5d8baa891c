//! Scenarios one link at a time: each direction of each link is simulated alone, packet by packet, with the flows that
//! cross it, and a flow's completion time is that of the flow alone plus its delay on each link of its way.
//!
//! The idea is Parsimon's (Zhao, Goyal, Alizadeh, Anderson: "Scalable tail latency estimation for data center
//! networks", NSDI 2023). It takes most flows to be held up at one link at a time. Then links need not be simulated
//! together, and runs of single links share nothing: each fits a cache, as many run at once as there are threads, and
//! one may stand for others like it (`cluster`).
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
//! - **Combined** (`combine`): by default each flow's own delays are added up, each from the run of its link. Parsimon
//!   draws them, since it asks for the distribution of flows that it may not have simulated. Here all flows are known,
//!   and the sum is without chance, needs no buckets of sizes, and keeps that a flow in a burst is late on all links of
//!   its way. `decomposition.combine = "drawn"` does as the paper does.
//!
//! The sum is too high for flows that share several links: in the network they meet on the first of these, and come to
//! the next one after the other, and here they meet on each. It is too low where queues of several links act on each
//! other. `docs/links.md` shows how far it is off.
//!
//! Deliberately absent: everything by which one link acts on another. That is refused, with the reason
//! ([`run::compatibility::check_links`]).

mod answers;
mod cluster;
mod combine;
mod decompose;
mod estimate;
mod lone;
mod piece;
mod pool;
mod results;

pub use estimate::{Estimate, EstimateInfo, check, estimate, estimate_within};
