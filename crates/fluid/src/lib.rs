//! Scenarios at flow level: no packets, and an answer for 100,000 hosts in seconds.
//!
//! A flow is a fluid. Those under way share the links max-min fairly (Bertsekas and Gallager, "Data Networks", section 6.5.2), at
//! once and without loss: what an ideal congestion control would come to if it knew everything immediately, and the usual
//! idealisation of transports that share fairly (Massoulie and Roberts, "Bandwidth sharing: objectives and algorithms", INFOCOM
//! 1999). Nothing happens but arrivals and departures, so [`estimate`] is a loop over those.
//!
//! A flow of `b` message bytes has its bytes on the wire, headers counted, to transfer. It takes the time that max-min shares give
//! it, and besides what it would take alone on top of its lone transfer ([`Ideal`](run::Ideal): propagation, processing, store
//! and forward). So a flow that meets no other has a slowdown of exactly 1.
//!
//! Flows take the paths that the scenario's balancing gives their packets. Where a hash decides, it is that of the switches, so each
//! flow has the very path that it has at packet level. Otherwise (spraying, round robin, DRILL) a flow spreads evenly over all
//! shortest paths. Then all links of a [`Bundle`](fabric::Bundle) carry the same and are one resource, and those bundles that can't
//! be a bottleneck before the links of hosts are ([`network`]) are none at all: in a fat-tree of full bisection a flow shares
//! two resources.
//!
//! Rates are brought up to date by what an event can change and no more ([`shares`]), exactly. The result is a function of the
//! scenario alone, by the four operations and comparisons, on any machine.
//!
//! Absent on purpose: queues, buffers, loss, marks, pauses, control loops, priorities and whatever else makes one transport differ
//! from another. Of a transport only its balancing counts, and the rate that it sends at most. What would make an estimate plainly
//! wrong (failures, entities' shares) is refused: see [`estimate`]. `docs/flow-level.md` shows how far off the rest is.

mod agenda;
mod network;
mod results;
mod run;
mod shares;
mod usage;

pub use run::{Estimate, EstimateInfo, estimate};
