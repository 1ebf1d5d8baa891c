//! Flow control between neighbours, one folder a mechanism: any transport runs over any of them.
//!
//! Each has a part in switches ([`node::QueueDiscipline`]), and one in NICs ([`node::NicControl`]) where hosts answer. Nothing
//! outside its folder names it but its line in the catalogue.

pub mod bfc;
pub mod congestion_isolation;
pub mod per_flow_queues;
pub mod pfc;
pub mod pyrrha;

mod by_flow;
mod queue_frame;
