//! Augmented Queue (Wu, Wang, Wang, Ng, SIGCOMM 2023) in a Linux kernel: bandwidth for tenants on a network device,
//! whatever their congestion control.
//!
//! The A-Gap of each tenant is computed by an eBPF program at the device (`bpf/aq.bpf.c`; the recurrence itself is in
//! `bpf/a_gap.h`, and in Rust in [`word`]). The simulator's own controller decides what each tenant gets ([`grants`]),
//! from a file with a scenario's keys ([`tenants`]). So the same file can be simulated before it is deployed
//! ([`simulate`]), and a scenario's entities can be attached ([`from_scenario`]).
//!
//! Where the program is attached decides whether it works (`device`). If the kernel reports a drop to a local TCP
//! sender, TCP assumes that the device's queue is full and sends again at once, so shares collapse. Attached programs
//! and maps are pinned in a BPF file system and described in a file (`place`). No process has to keep running, except
//! for work conservation (`divide`).
//!
//! Decided where the paper is silent: a packet of several segments is one arrival, since that is how the kernel hands
//! it over; packets that are neither IPv4 nor IPv6 pass; drops at a sender's own egress are not reported to it.
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
pub use linux::{
    attach, cni, container, cost, daemon, detach, device, divide, hook, keep, kernel, netlink, netns, oci, place, rtt,
    serve, show,
};
pub use tenants::Tenants;
