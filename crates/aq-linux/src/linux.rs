//! The parts that touch the kernel: devices, the program and its maps, attachments, and counters.

pub mod attach;
pub mod cni;
pub mod container;
pub mod cost;
pub mod daemon;
pub mod detach;
pub mod device;
pub mod divide;
pub mod hook;
pub mod keep;
pub mod kernel;
pub mod netlink;
pub mod netns;
pub mod oci;
pub mod place;
pub mod rtt;
pub mod serve;
pub mod show;
