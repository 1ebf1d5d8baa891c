//! Harmony (Agarwal et al., NSDI 2024): congestion-free delivery by reserving virtual links.

pub mod allocation;
pub mod theory;
