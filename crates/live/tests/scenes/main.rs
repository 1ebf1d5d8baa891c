//! Frames, and whole runs on the real clock.

mod attach;
#[cfg(target_os = "linux")]
mod between;
mod frame;
mod joined;
#[cfg(target_os = "linux")]
mod machines;
mod maze;
#[cfg(target_os = "linux")]
mod processes;
mod run;
