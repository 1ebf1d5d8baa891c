//! Frames, and whole runs on the real clock.

mod attach;
mod frame;
#[cfg(target_os = "linux")]
mod machines;
mod maze;
#[cfg(target_os = "linux")]
mod processes;
mod run;
