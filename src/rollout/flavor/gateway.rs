//! What is guarded: a DataPlane, or a Deployment that runs Kong, as far as flavors go.

use serde::Deserialize as _;
use serde_json::Value;
use thiserror::Error;

use super::environment::Surroundings;
use super::reading::Reading;
use super::sources::Sources;
use super::subject::{Override, Spec, Subject, SubjectKind};
use crate::api::kong::{self, DataPlane};
use crate::api::meta;
use crate::api::object::NamespacedName;
use crate::api::pod::{Deployment, Metadata, PodTemplate, ReplicaStatus};

/// An object that is of a known kind and cannot be read.
#[derive(Debug, Error)]
#[error("{kind} {name} cannot be read: {source}; correct the field that it names")]
pub struct Unreadable {
    kind: &'static str,
    name: String,
    #[source]
    source: serde_json::Error,
}

/// A gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Which one.
    pub subject: Subject,
    /// Its spec.
    pub spec: Spec,
    /// Whether it is scaled to zero, and no pod is left.
    pub stopped: bool,
    /// Permission for one change of its flavor.
    pub permitted: Option<Override>,
}

impl Gateway {
    /// Of an object; `None` where it is of another kind. `namespace` stands for one that is absent.
    pub fn read(object: &Value, namespace: &str, sources: &dyn Sources) -> Result<Option<Self>, Unreadable> {
        let Some(kind) = kind_of(object) else { return Ok(None) };
        let unreadable = |source| Unreadable {
            kind: match kind {
                SubjectKind::DataPlane => "DataPlane",
                SubjectKind::Deployment => "Deployment",
            },
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            source,
        };
        Ok(Some(match kind {
            SubjectKind::DataPlane => {
                let plane = DataPlane::deserialize(object).map_err(unreadable)?;
                let deployment = &plane.spec.deployment;
                Self::make(
                    kind,
                    namespace,
                    sources,
                    Parts {
                        metadata: &plane.metadata,
                        template: &deployment.pod_template_spec,
                        staged: plane.spec.is_staged(),
                        replicas: deployment.replicas,
                        status: &plane.status,
                    },
                )
            }
            SubjectKind::Deployment => {
                let deployment = Deployment::deserialize(object).map_err(unreadable)?;
                Self::make(
                    kind,
                    namespace,
                    sources,
                    Parts {
                        metadata: &deployment.metadata,
                        template: &deployment.spec.template,
                        staged: false,
                        replicas: deployment.spec.replicas,
                        status: &deployment.status,
                    },
                )
            }
        }))
    }

    /// Whether the rules are asked about an object: every DataPlane, and labelled Deployments.
    pub fn is_guarded(object: &Value) -> bool {
        match kind_of(object) {
            Some(SubjectKind::DataPlane) => true,
            Some(SubjectKind::Deployment) => object["metadata"]["labels"][meta::GUARD] == meta::GUARD_FLAVOR,
            None => false,
        }
    }

    fn make(kind: SubjectKind, namespace: &str, sources: &dyn Sources, parts: Parts<'_>) -> Self {
        let namespace =
            parts.metadata.namespace.as_deref().filter(|own| !own.is_empty()).unwrap_or(namespace);
        let template = &parts.template.metadata;
        let reading = Reading::of(parts.template, Surroundings { namespace, template, sources });
        let annotations = &parts.metadata.annotations;
        Self {
            subject: Subject {
                kind,
                name: NamespacedName::new(namespace, parts.metadata.name.clone().unwrap_or_default()),
            },
            spec: Spec { reading, staged: parts.staged },
            stopped: parts.replicas == Some(0) && parts.status.replicas.unwrap_or_default() == 0,
            permitted: annotations.get(meta::ALLOW_FLAVOR_CHANGE).and_then(|text| Override::parse(text)),
        }
    }
}

/// What both kinds have, each in a place of its own.
struct Parts<'a> {
    metadata: &'a Metadata,
    template: &'a PodTemplate,
    staged: bool,
    replicas: Option<i32>,
    status: &'a ReplicaStatus,
}

fn kind_of(object: &Value) -> Option<SubjectKind> {
    match (object["apiVersion"].as_str()?, object["kind"].as_str()?) {
        (kong::API_VERSION, "DataPlane") => Some(SubjectKind::DataPlane),
        ("apps/v1", "Deployment") => Some(SubjectKind::Deployment),
        _ => None,
    }
}
