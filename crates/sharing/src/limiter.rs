//! Rate limiters at hosts: the rivals of Augmented Queue (its section 5.1).
//!
//! A hypervisor that limits what its virtual machine sends is neither a transport nor a switch: it stands between the
//! endpoints of a host and its NIC, as a [`Shaper`](node::Shaper). It runs under any transport.
//!
//! *PRL*, pre-determined rate limiter, is [`rate_limiter`]: one token bucket for all that the VM sends, at a rate
//! that is set once, as Linux HTB does it. *DRL*, dynamic rate limiter, is [`elastic_switch`]: ElasticSwitch (Popa et
//! al., SIGCOMM 2013), a bucket a destination, whose rates the hypervisors of both ends work out anew every 15 ms.
//! Both are built of [`token_bucket`].
//!
//! Absent on purpose: HTB's tree of classes and its lending of tokens between them (one VM a host is one leaf), and
//! policing, which drops what exceeds the rate without queueing it.

pub mod elastic_switch;
pub mod rate_limiter;
pub mod token_bucket;

pub use token_bucket::TokenBucket;
