//! Admission as a pure room: bytes -> request -> rules -> verdict and patch -> bytes.

pub mod door;
pub mod view;

pub use door::{Answer, BadReview, Config, Door, Freeze, Patience, Record, Reply, VerdictKind};
