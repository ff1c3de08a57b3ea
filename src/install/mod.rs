//! Everything that an installation consists of, as typed data; `interlock render` prints it.
//!
//! A pure room: no client, no file system.

pub mod crds;
