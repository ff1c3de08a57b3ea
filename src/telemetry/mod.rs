//! Telemetry: log lines, metrics, and version information.

pub mod build;
mod fields;
mod json_lines;
pub mod line_budget;
pub mod log;
pub mod metrics;
pub mod panics;
pub mod readyz;
