//! Interlock keeps changes to Kubernetes custom resources safe while they are carried out.
//!
//! Two flows over one ground. Admission: bytes -> typed [`admission::request`] -> rules ->
//! verdict and patch -> bytes. Reconcile: event -> affected root -> observed facts -> pure
//! decision ([`plan`], effects as data) -> [`cluster`]. Both ask the same pure rooms.
//!
//! `docs/architecture.md` tells where everything lives; imports run downwards only.

pub mod admission;
pub mod api;
pub mod cli;
pub mod cluster;
pub mod controllers;
pub mod effect;
pub mod install;
pub mod plan;
pub mod rollout;
pub mod run;
pub mod server;
pub mod telemetry;
pub mod topology;
