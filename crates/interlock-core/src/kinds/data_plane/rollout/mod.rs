//! Rollouts of DataPlanes: the children of the live side from the last-applied spec, those of the preview from the
//! spec, and the promotion between them.

pub mod children;
pub mod drift;
mod list_keys;
pub mod side;
pub mod watched;
pub mod changes;
pub mod follow;
pub mod promotion;
pub mod report;
pub mod service_selector;
pub mod side;
pub mod staged;
pub mod summary;
pub mod verbs;

pub use promotion::staged_hash;
