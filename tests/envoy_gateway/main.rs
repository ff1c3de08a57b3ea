//! Suites with Envoy Gateway and real Envoys, which carry out what is rendered for them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test binary uses a part of the harness")]
mod support;

mod auth;
mod carrier;
mod events;
mod ground;
mod http3;
mod limits;
mod merged;
mod site;
