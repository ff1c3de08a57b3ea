//! What a DataPlane is made of, as bodies of server-side apply: each is a function of the DataPlane's name and uid,
//! one of its specs and one of its sides, so that what is made again is what it was.
//!
//! The bodies state what Interlock owns, and nothing else: what the API server defaults and what others add is
//! theirs. They have no finalizers: one would keep a deleted child from being made again.

mod certificate;
mod deployment;
mod invalid;
mod owner;
mod pod_base;
mod scaling;
mod service;
pub mod service_selector;
mod strategic_merge;
#[cfg(test)]
mod tests;

pub use certificate::certificate;
pub use deployment::{brings_certificate, certificate_of, deployment, mounted_certificate};
pub use invalid::{InvalidTemplate, TemplateProblem};
pub use owner::DataPlaneOwner;
pub use scaling::{autoscaler, disruption_budget};
pub use service::{admin_service, ingress_service, ingress_service_name};
