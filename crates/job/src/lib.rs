//! Training jobs: what ranks compute and send, and which of it must wait for what.
//!
//! A [`Graph`] has the steps of all ranks: a computation, the sending of a message, the receiving of one. A step waits
//! for other steps of its own rank; ranks wait for each other through messages alone, as in GOAL and in Chakra's
//! execution traces. [`collective`] adds the messages of an all-reduce, an all-to-all, ... to a graph, and [`model`]
//! the iterations of a model in training. [`read`] makes graphs of other tools' traces, [`write`](mod@write) traces of
//! graphs.
//!
//! [`Progress`] says what the ranks of a host do next. It reads no clock and sends nothing: a driver tells it the time
//! and which messages have come, and starts the messages that it names. Packet level, flow level and live runs use the
//! same.
//!
//! [`Timeline`] says afterwards when each step began and ended, and which of them made the job as long as it was.
//!
//! Deliberately absent: flows (the crate `workload` places ranks on hosts and makes a flow of each message), and
//! memory: a message that comes before its rank has posted the receive is kept (eager sending).

pub mod collective;
mod count;
mod crossing;
mod graph;
pub mod model;
mod progress;
pub mod read;
mod summed;
#[cfg(test)]
mod testing;
mod timeline;
pub mod write;

pub use count::Count;
pub use crossing::Crossing;
pub use graph::{
    Builder, Collective, CollectiveId, Graph, GraphError, Message, MessageId, Rank, STEPS_MAX, Step, StepId, Work,
};
pub use progress::{Done, Placement, Progress};
pub use summed::{Share, Summed};
pub use timeline::{Carried, PathPart, Segment, Timeline};
