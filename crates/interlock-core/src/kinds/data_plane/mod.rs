//! `DataPlane`, and Deployments that run Kong: router flavors, rollouts, the spec of the live pods.

pub mod flavor;
pub mod links;
pub mod live_spec;
pub mod rules;
pub mod validation;
