//! The commands about the Gateway API.

pub mod policies;
