//! Interlock keeps changes to Kubernetes custom resources safe while they are carried out.
//!
//! What has an effect: the webhook's port ([`server`]), the watches and the writes ([`cluster`],
//! [`controllers`]), what is installed and what people run ([`install`], [`cli`]). What it does is decided in
//! `interlock-core`.
//!
//! `docs/architecture.md` tells where everything lives; imports run downwards only.

pub mod cli;
pub mod cluster;
pub mod controllers;
pub mod install;
pub mod run;
pub mod server;
pub mod telemetry;
