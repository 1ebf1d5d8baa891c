//! How entities share a network, apart from the transports that they use: Augmented Queue in switches, and the rate
//! limiters at hosts that it is measured against.

pub mod aq;
pub mod limiter;
