//! Augmented Queue (Wu, Wang, Wang, Ng, SIGCOMM 2023) in a Linux kernel: bandwidth for tenants on a network device,
//! whatever their congestion control.
//!
//! The A-Gap of each tenant is computed by an eBPF program at the device (`bpf/aq.bpf.c`; the recurrence itself is in
//! `bpf/a_gap.h`, and in Rust in [`word`]). What a tenant may have is decided by the simulator's own controller
//! ([`grants`]) from a file in a scenario's words ([`tenants`]), so the same file can be simulated before it is
//! deployed ([`simulate`]), and a scenario's entities can be attached ([`from_scenario`]).
//!
//! Where the program stands decides whether it works (`device`): a local TCP sender that is told of a drop takes it
//! for a full device queue and sends again at once, so shares collapse. What is attached is pinned in a BPF file system
//! and described in a file (`place`); no process stays, except for work conservation (`divide`).
//!
//! Decided where the paper is silent: a packet of several segments is one arrival, since that is what a kernel hands
//! over; what is neither IPv4 nor IPv6 passes; drops at a sender's own egress are silent.
//!
//! Deliberately absent: virtual queueing delay in packets, since no congestion control of a kernel reads it; marking by
//! a ramp; bypass of AQs while the device's queue is empty, which a program can't see.

pub mod from_scenario;
pub mod grants;
pub mod matching;
pub mod simulate;
pub mod tenants;
pub mod word;

#[cfg(target_os = "linux")]
mod linux;

mod cli;

pub use cli::main;
pub use grants::{Grants, Row};
#[cfg(target_os = "linux")]
pub use linux::{attach, cost, device, divide, keep, kernel, netns, place, rtt, show};
pub use tenants::Tenants;
