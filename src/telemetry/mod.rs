//! What the process tells about itself: log lines, metrics, and what it was built from.

pub mod build;
mod fields;
mod json_lines;
pub mod line_budget;
pub mod log;
pub mod metrics;
pub mod panics;
pub mod readiness;
