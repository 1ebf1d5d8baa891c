//! How entities share a network, independently of their transports: Augmented Queue in switches, and the rate limiters
//! at hosts that it is compared with.

pub mod aq;
pub mod limiter;
