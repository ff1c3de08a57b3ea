//! Everything that an installation consists of, as typed data; `interlock render` prints it.
//!
//! A pure room: no client, no file system. The order of objects is fixed, so that what is
//! rendered twice is equal.

use std::fmt::Write as _;

use clap::ValueEnum;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use serde_json::{Value, json};

use crate::admission::Freeze;
use crate::api::meta;
use crate::api::object::NamespacedName;

pub mod crds;
pub mod kustomize;
pub mod policies;
pub mod rbac;
pub mod webhooks;
pub mod workload;

/// Where the API server finds the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Behind a Service in our namespace; the process fills in the CA bundle.
    Service {
        /// Name of the Service.
        name: String,
    },
    /// At an address of its own, for a process outside the cluster.
    Url {
        /// `https://HOST[:PORT]`, without a path.
        base: String,
        /// PEM of the CA that signed its certificate; empty where the process fills it in.
        ca_bundle: Vec<u8>,
    },
}

/// How the roles are spread over Deployments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// One Deployment that does everything.
    #[default]
    Together,
    /// The webhook apart, without any right to write or to read Secrets.
    Split,
}

/// Who makes the certificate of the webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Certificates {
    /// The process itself.
    #[default]
    #[value(name = "builtin")]
    BuiltIn,
    /// cert-manager, which also fills in the CA bundle.
    CertManager,
}

/// What can be chosen about an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Namespace of the process.
    pub namespace: String,
    /// Where the API server finds the webhook.
    pub endpoint: Endpoint,
    /// User of the process, the only one that admission skips; absent means its service account.
    pub controller_user: Option<String>,
    /// Service account that package effects are made as.
    pub packages: NamespacedName,
    /// How a locked Instance is guarded.
    pub freeze: Freeze,
    /// The only namespaces that are looked at; empty means all.
    pub watch_namespaces: Vec<String>,
    /// How the roles are spread.
    pub layout: Layout,
    /// Who makes the certificate.
    pub certificates: Certificates,
    /// Container image.
    pub image: String,
    /// Replicas of each Deployment that serves the webhook.
    pub replicas: i32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: meta::NAMESPACE.to_owned(),
            endpoint: Endpoint::Service { name: meta::install::SERVICE.to_owned() },
            controller_user: None,
            packages: NamespacedName::new(meta::NAMESPACE, meta::PACKAGES_SERVICE_ACCOUNT),
            freeze: Freeze::Strict,
            watch_namespaces: Vec::new(),
            layout: Layout::default(),
            certificates: Certificates::default(),
            image: concat!("interlock:", env!("CARGO_PKG_VERSION")).to_owned(),
            replicas: 2,
        }
    }
}

impl Options {
    /// User name of the process.
    pub fn controller_user(&self) -> String {
        self.controller_user
            .clone()
            .unwrap_or_else(|| format!("system:serviceaccount:{}:{}", self.namespace, meta::install::NAME))
    }

    /// Name of the Service; a process outside the cluster has none of its own.
    pub fn service(&self) -> &str {
        match &self.endpoint {
            Endpoint::Service { name } => name,
            Endpoint::Url { .. } => meta::install::SERVICE,
        }
    }

    fn ca_bundle(&self) -> Option<ByteString> {
        match &self.endpoint {
            Endpoint::Url { ca_bundle, .. } if !ca_bundle.is_empty() => Some(ByteString(ca_bundle.clone())),
            _ => None,
        }
    }

    /// The namespaces that admission concerns: those watched, by a label that only the API
    /// server writes, or all. No label lets a namespace escape.
    fn namespace_selector(&self) -> Option<LabelSelector> {
        if self.watch_namespaces.is_empty() {
            return None;
        }
        Some(LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "kubernetes.io/metadata.name".to_owned(),
                operator: "In".to_owned(),
                values: Some(self.watch_namespaces.clone()),
            }]),
            match_labels: None,
        })
    }
}

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
    /// All of these but `kong-crds`, in an order that can be applied.
    All,
}

/// The objects of a part, in a fixed order that can be applied.
pub fn objects(part: Part, options: &Options) -> Vec<Value> {
    match part {
        Part::Crds => crds::all().iter().map(|crd| json!(crd)).collect(),
        Part::KongCrds => crds::kong().iter().map(|crd| json!(crd)).collect(),
        Part::Webhooks => webhooks::all(options),
        Part::Policies => policies::all(options),
        Part::Rbac => rbac::all(options),
        Part::Workload => workload::all(options),
        Part::All => {
            let mut workload = workload::all(options);
            let mut all = vec![workload.remove(0)];
            for part in [Part::Crds, Part::Rbac] {
                all.extend(objects(part, options));
            }
            all.extend(workload);
            for part in [Part::Policies, Part::Webhooks] {
                all.extend(objects(part, options));
            }
            all
        }
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

fn strings<const N: usize>(list: [&str; N]) -> Vec<String> {
    list.into_iter().map(str::to_owned).collect()
}

/// Labels of everything that is installed.
fn labels() -> std::collections::BTreeMap<String, String> {
    [("app.kubernetes.io/name", "interlock"), ("app.kubernetes.io/part-of", "interlock")]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
}

fn cluster_wide(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels()), ..ObjectMeta::default() }
}

fn within(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.to_owned()), ..cluster_wide(name) }
}

fn namespaced(name: &str, options: &Options) -> ObjectMeta {
    within(&options.namespace, name)
}
