//! The parts of Go's standard library whose output users see in templates and YAML.

pub mod float;
pub mod number;
pub mod pattern;
pub mod quote;
pub mod utf8;
