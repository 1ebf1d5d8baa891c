//! Scenarios at flow level: no packets, and an answer for 100,000 hosts in seconds.
//!
//! A flow is a fluid. Active flows share the links max-min fairly (Bertsekas and Gallager, "Data Networks", section
//! 6.5.2), instantly and without loss. An ideal congestion control with instant knowledge would reach these rates, and
//! they are the usual idealisation of transports that share fairly (Massoulie and Roberts, "Bandwidth sharing:
//! objectives and algorithms", INFOCOM 1999). The only events are arrivals and departures, and [`estimate`] is a loop
//! over them.
//!
//! A flow of `b` message bytes has to transfer its bytes on the wire, headers included. The transfer takes the time
//! that follows from its max-min rates. Added is the time that a lone flow takes beyond its lone transfer
//! (`Ideal`: propagation, processing, store and forward). So a flow that meets no other flow has a
//! slowdown of exactly 1.
//!
//! Flows take the paths that the scenario's balancing gives their packets. If a hash decides, it is that of the
//! switches, so each flow has the very path that it has at packet level. Otherwise (spraying, round robin, DRILL) a
//! flow spreads evenly over all shortest paths. Then all links of a [`Bundle`](fabric::Bundle) carry the same load and
//! are one resource. Bundles that can't be a bottleneck before the links of hosts are left out ([`::run::Ways`]): in a
//! fat-tree of full bisection a flow shares two resources.
//!
//! An event updates only the rates that it can change (`shares`), exactly. The result depends on the scenario alone.
//! It uses only the four operations and comparisons, so it is the same on any machine.
//!
//! Deliberately absent: queues, buffers, loss, marks, pauses, control loops, priorities and everything else that
//! distinguishes transports. Of a transport only its balancing and its highest sending rate count. What would make an
//! estimate plainly wrong (failures, shares of entities) is refused: see [`estimate`]. `docs/flow-level.md` shows how
//! far the rest deviates.

mod agenda;
mod ranks;
mod results;
mod run;
mod shares;
mod usage;

pub use run::{Estimate, EstimateInfo, check, estimate, estimate_within};
