//! Frames, and whole runs on the real clock.

mod attach;
mod frame;
#[cfg(target_os = "linux")]
mod machines;
#[cfg(target_os = "linux")]
mod processes;
mod run;
