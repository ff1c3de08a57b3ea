//! The corners of Go's standard library that templates and YAML show to users.

pub mod float;
pub mod number;
pub mod quote;
pub mod utf8;
