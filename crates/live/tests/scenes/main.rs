//! Frames, and whole runs on the real clock.

mod frame;
mod run;
