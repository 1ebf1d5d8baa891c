//! Pyrrha (Liu et al., NSDI 2025): flow control by congestion root, which isolates congested flows and holds no other.

pub mod paths;
