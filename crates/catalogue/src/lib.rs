//! The three lists: transports, link controls, and mechanisms of sharing.
//!
//! A line in a list is all that a new scheme needs outside its own folder. Everything above reads a scheme through the
//! entry of its list ([`Transport`], [`LinkControl`], [`Sharing`]) and names no scheme.
//!
//! A crate outside of Clearway adds transports without a line here: its program [`register`]s them before it reads a
//! scenario.

mod link;
mod list;
mod registered;
mod share;
mod transport;

pub use link::LinkControl;
pub use registered::{Registered, register, registered};
pub use share::Sharing;
pub use transport::Transport;
