//! Suites behind a real Service: several replicas, addresses of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each test binary uses a part of the harness")]
mod support;

mod back_to_back;
mod crowd;
mod flavors;
mod ground;
mod mutual_tls;
mod real_kong;
mod replicas;
mod rollout_certificates;
mod rollouts;
mod rotation;
mod versions;
