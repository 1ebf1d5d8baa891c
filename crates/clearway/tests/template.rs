//! The crate that `clearway new transport` writes: its code and its tests, compiled and run with the tree's.

#[path = "../../../python/clearway/programs/crates/transport/src/lib.rs"]
mod mine;
