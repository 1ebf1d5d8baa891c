//! Scenes of link controls in a few switches. One program, since each is linked with all of them.

mod flow_control;
mod pyrrha;
