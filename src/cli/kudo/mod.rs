//! The commands about packages and their plans.

pub(in crate::cli) mod instance;
pub mod package;
pub mod plan;
pub(in crate::cli) mod rendering;
pub mod template;
mod wait;
