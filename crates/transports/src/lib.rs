//! The transports, one module each.
//!
//! A transport is its `Config`: the settings of a scenario, with the paper's defaults. It makes the endpoint of each
//! host and states what the transport requires of switches. Outside its module, only its line in the catalogue names
//! it.

pub mod dcpim;
pub mod falcon;
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
pub mod uet;

mod bits;
mod finished;
mod srpt;
mod target_delay;
mod trimming;
