//! The webhook port on real sockets: what hurts it, and that it goes on.
//!
//! A scripted judge stands behind the doors, so every case says itself what a decision does.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod callers;
mod certificates;
mod crowd;
mod deadlines;
mod drain;
mod limits;
mod peer;
mod protocol;
mod waiting;
mod world;
