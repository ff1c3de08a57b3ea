//! The commands about router flavors and rollouts of DataPlanes.

pub mod flavor;
pub mod rollout;
