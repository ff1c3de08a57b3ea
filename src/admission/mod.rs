//! Admission as a pure room: bytes -> request -> rules -> verdict and patch -> bytes.

pub mod view;
