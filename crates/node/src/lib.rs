//! The parts of nodes, and the contracts between schemes and drivers.
//!
//! A host is an [`Endpoint`]. A switch is a [`Switch`] whose stages its scheme fills in. Both are state machines that
//! do no I/O and read no clock. The simulator drives them in simulated time and the live driver with real packets, with
//! the same code.

extern crate self as node;

pub mod balance;
pub mod cpu;
pub mod flow_queues;
pub mod layout;
pub mod link;
pub mod mmu;
pub mod nic;
pub mod onward_path;
pub mod packet;
pub mod pool;
pub mod retry;
pub mod telemetry;
pub mod walk;
pub mod wire;

mod discipline;
mod endpoint;
mod flow_map;
mod flow_state;
mod lost_flows;
mod port;
mod prefetch;
mod shaper;
mod switch;
mod switch_agent;
mod timers;

pub use discipline::{Balancing, EarlyDrop, MarkAt, Marking};
pub use endpoint::{Clock, Cx, Endpoint, EndpointParams, Event, Gate, Input, Message, PollAt};
pub use flow_map::{FlowMap, Slots};
pub use flow_state::FlowState;
pub use link::{NicControl, QueueDiscipline};
pub use lost_flows::LostFlows;
pub use packet::{Agreement, Header, Packet};
pub use port::{Port, PortStats};
pub use prefetch::prefetch;
pub use shaper::Shaper;
pub use state::{Saved, State};
pub use switch::{Buffer, Loss, Lost, Overflow, Received, ReservedBuffer, Settings, Stages, Switch, TagStats};
pub use switch_agent::{AgentCx, SwitchAgent};
pub use telemetry::Telemetry;
pub use timers::Timers;
pub use units::{Saved, save_behind, saved};
pub use walk::{State, Walk};
pub use wire::Malformed;
