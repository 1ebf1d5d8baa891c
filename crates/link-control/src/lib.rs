//! Hop-by-hop flow controls, one module for each mechanism. Any transport runs over any of them.
//!
//! Each has a part in switches ([`node::QueueDiscipline`]), and one in NICs ([`node::NicControl`]) if hosts take part.
//! Outside its module, only its line in the catalogue names it.

pub mod bfc;
pub mod cbfc;
pub mod congestion_isolation;
pub mod mmu;
pub mod per_flow_queues;
pub mod pfc;
pub mod pyrrha;

mod by_flow;
mod queue_frame;
