//! Interlock keeps changes to Kubernetes custom resources safe while plans apply them.
//!
//! Code with effects: the webhook's port ([`server`]), the watches and the writes ([`cluster`],
//! [`controllers`]), the installed objects and the commands ([`install`], [`cli`]). The decisions are in
//! the crates of the domains.
//!
//! `docs/architecture.md` describes the modules; imports point downwards only.

pub mod cli;
pub mod cluster;
pub mod controllers;
pub mod install;
pub mod kinds;
pub mod run;
pub mod runtime;
pub mod server;
pub mod telemetry;
