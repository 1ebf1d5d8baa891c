//! The transports, one folder each.
//!
//! A transport is its `Config`: what a scenario may set, with the paper's defaults. From it come the endpoint of each
//! host and what the transport requires of switches. Nothing outside its folder names it but its line in the catalogue.

pub mod dcpim;
pub mod fastpass;
pub mod harmony;
pub mod homa;
pub mod ndp;
pub mod pfabric;
pub mod phost;
pub mod r2c2;
pub mod rdma;
pub mod tcp;
pub mod udp;

mod bits;
mod finished;
