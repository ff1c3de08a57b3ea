//! All objects of an installation, as typed data; `interlock render` prints them.
//!
//! Pure: no client, no file system. The order of objects is fixed, so that two renderings are equal.

use std::fmt::Write as _;

use clap::ValueEnum;
use serde_json::{Value, json};

pub mod account_rights;
pub mod crds;
pub mod dashboard;
pub mod helm;
pub mod installed;
mod kind_rights;
pub mod kustomize;
mod metadata;
pub mod monitoring;
mod mounted;
pub mod network;
pub mod opt_in_rights;
mod options;
pub mod policies;
pub mod rbac;
mod rbac_objects;
pub mod removal;
mod role;
pub mod webhooks;
pub mod workload;

pub use options::{CertificateIssuer, ClientCa, Endpoint, InstallOptions, Layout};

/// What `interlock render` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// CustomResourceDefinitions of kudo.dev.
    Crds,
    /// CustomResourceDefinition of DataPlanes, for clusters that have none of Kong's.
    KongCrds,
    /// Webhook configurations.
    Webhooks,
    /// ValidatingAdmissionPolicies and their bindings.
    Policies,
    /// Service accounts, roles and bindings.
    Rbac,
    /// Namespace, Service, Deployments and what belongs to them.
    Workload,
    /// All of these but `kong-crds` and `webhooks`: what is applied first, so that the kinds can be written
    /// until a replica answers.
    Install,
    /// What monitors the process: ServiceMonitor, PrometheusRule and dashboard.
    Monitoring,
    /// All of these but `kong-crds` and `monitoring`, in an order that can be applied.
    All,
}

/// The objects of a part, in a fixed order that can be applied.
pub fn objects(part: Part, options: &InstallOptions) -> Vec<Value> {
    match part {
        Part::Crds => crds::all().iter().map(|crd| json!(crd)).collect(),
        Part::KongCrds => crds::kong().iter().map(|crd| json!(crd)).collect(),
        Part::Webhooks => webhooks::all(options),
        Part::Policies => policies::all(options),
        Part::Rbac => rbac::all(options),
        Part::Workload => workload::all(options),
        Part::Monitoring => monitoring::all(options),
        Part::Install => {
            let mut workload = workload::all(options);
            let mut all = vec![workload.remove(0)];
            for part in [Part::Crds, Part::Rbac] {
                all.extend(objects(part, options));
            }
            all.extend(workload);
            all.extend(objects(Part::Policies, options));
            all
        }
        Part::All => [Part::Install, Part::Webhooks].map(|part| objects(part, options)).concat(),
    }
}

/// Multi-document YAML.
pub fn yaml(objects: &[Value]) -> Result<String, serde_saphyr::ser::Error> {
    let mut out = String::new();
    for (i, object) in objects.iter().enumerate() {
        let separator = if i > 0 { "---\n" } else { "" };
        let text = serde_saphyr::to_string(object)?;
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{separator}{}", text.trim_end());
    }
    Ok(out)
}
