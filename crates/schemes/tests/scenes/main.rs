//! Scenes of schemes without a network of their own: on the virtual wire, or in a few switches. One program, since each is linked with all schemes.

mod flow_control;
mod pyrrha;
mod rdma;
mod tcp;
