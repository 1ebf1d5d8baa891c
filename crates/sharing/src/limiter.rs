//! Rate limiters at hosts, which Augmented Queue is compared with (its section 5.1).
//!
//! A hypervisor that limits what its virtual machine sends is neither a transport nor a switch: it sits between the
//! endpoints of a host and its NIC, as a [`Shaper`](node::Shaper). It runs under any transport.
//!
//! *PRL*, a pre-determined rate limiter, is [`rate_limiter`]: one token bucket for all that the VM sends, at a fixed
//! rate, like Linux HTB. *DRL*, a dynamic rate limiter, is [`elastic_switch`]: ElasticSwitch (Popa et al., SIGCOMM
//! 2013), one bucket for each destination, whose rates the hypervisors of both ends recompute every 15 ms. Both use
//! [`token_bucket`].
//!
//! Deliberately absent: HTB's tree of classes and its lending of tokens between them (one VM for each host is one
//! leaf), and policing, which drops what exceeds the rate without queueing it.

pub mod elastic_switch;
pub mod rate_limiter;
pub mod token_bucket;

pub use token_bucket::TokenBucket;
