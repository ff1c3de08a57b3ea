//! All objects of an installation, which `interlock render` prints.
//!
//! Definitions, policies and webhook entries follow from the kinds. All else is the Helm chart, rendered with
//! the options. Pure: no client, no file system. The order of objects is fixed, so that two renderings are equal.

use clap::ValueEnum;
use serde_json::{Value, json};

pub mod account_rights;
mod chart;
pub mod crds;
pub mod helm;
pub mod installed;
pub mod kustomize;
mod metadata;
mod options;
pub mod policies;
pub mod removal;
mod rules;
#[cfg(test)]
mod tests;
pub mod webhooks;

pub use chart::{ChartError, yaml};
pub use options::{CertificateIssuer, ClientCa, Endpoint, InstallOptions, Layout};

/// What `interlock render` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// CustomResourceDefinitions of kudo.dev.
    Crds,
    /// CustomResourceDefinition of DataPlanes, for clusters that have none of Kong's.
    KongCrds,
    /// CustomResourceDefinition of RateLimitPolicies, for clusters that have none of Kuadrant's.
    KuadrantCrds,
    /// Webhook configurations.
    Webhooks,
    /// ValidatingAdmissionPolicies and their bindings.
    Policies,
    /// Service accounts, roles and bindings.
    Rbac,
    /// Namespace, Service, Deployments and what belongs to them.
    Workload,
    /// All of these but `kong-crds`, `kuadrant-crds` and `webhooks`: what is applied first, so that the kinds can be written
    /// until a replica answers.
    Install,
    /// What monitors the process: ServiceMonitor, PrometheusRule and dashboard.
    Monitoring,
    /// All of these but `kong-crds`, `kuadrant-crds` and `monitoring`, in an order that can be applied.
    All,
}

/// The objects of a part, in a fixed order that can be applied.
pub fn objects(part: Part, options: &InstallOptions) -> Result<Vec<Value>, ChartError> {
    Ok(match part {
        Part::Crds => crds::all().iter().map(|crd| json!(crd)).collect(),
        Part::KongCrds => crds::kong().iter().map(|crd| json!(crd)).collect(),
        Part::KuadrantCrds => crds::kuadrant(),
        Part::Webhooks => webhooks::all(options),
        Part::Policies => policies::all(options),
        Part::Rbac => chart::objects("templates/rbac.yaml", options)?,
        Part::Workload => chart::objects("templates/workload.yaml", options)?,
        Part::Monitoring => chart::objects("templates/monitoring.yaml", options)?,
        Part::Install => {
            let workload = objects(Part::Workload, options)?;
            let (namespaces, workload): (Vec<_>, Vec<_>) =
                workload.into_iter().partition(|object| object["kind"] == "Namespace");
            let (definitions, roles) = (objects(Part::Crds, options)?, objects(Part::Rbac, options)?);
            [namespaces, definitions, roles, workload, policies::all(options)].concat()
        }
        Part::All => [objects(Part::Install, options)?, webhooks::all(options)].concat(),
    })
}
