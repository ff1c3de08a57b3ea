//! The commands about packages and their plans.

pub(in crate::cli) mod follow;
pub(in crate::cli) mod generator;
pub(in crate::cli) mod instances;
pub mod package;
pub mod plan;
pub mod template;
pub(in crate::cli) mod trial;
