//! Frames, and whole runs on the real clock.

mod attach;
mod frame;
mod run;
