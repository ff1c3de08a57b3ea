//! A CustomResourceDefinition, as far as a validation reads it.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::schema::{SharedPatterns, StructuralSchema};

/// A definition that cannot be read.
#[derive(Debug, Error)]
pub enum DefinitionError {
    /// It is of another kind or version.
    #[error(
        "the object is no CustomResourceDefinition of apiextensions.k8s.io/v1; convert it to that version"
    )]
    NotADefinition,
    /// A field has another type.
    #[error("the CustomResourceDefinition {name} cannot be read: {source}; correct the field that it names")]
    Unreadable {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// The names, versions and schemas of a custom kind.
#[derive(Debug)]
pub struct Definition {
    /// The name of the definition, `dataplanes.gateway-operator.konghq.com`.
    pub name: String,
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Whether objects have a namespace.
    pub namespaced: bool,
    /// The versions that are served.
    pub versions: Vec<DefinitionVersion>,
}

/// A version of a custom kind.
#[derive(Debug)]
pub struct DefinitionVersion {
    /// Its name, `v1beta1`.
    pub name: String,
    /// Whether the status is written by a request of its own, and ignored in others.
    pub(crate) has_status_subresource: bool,
    /// The number that `kubectl scale` sets.
    pub(crate) replicas: Option<Vec<String>>,
    pub(crate) schema: StructuralSchema,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
    scope: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Names {
    kind: String,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    served: bool,
    #[serde(default)]
    schema: VersionSchema,
    #[serde(default)]
    subresources: Option<Subresources>,
}

#[derive(Default, Deserialize)]
struct VersionSchema {
    #[serde(rename = "openAPIV3Schema", default)]
    open_api: StructuralSchema,
}

#[derive(Default, Deserialize)]
struct Subresources {
    status: Option<Value>,
    scale: Option<Scale>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scale {
    spec_replicas_path: String,
}

impl Scale {
    /// The keys of `.spec.replicas`.
    fn keys(&self) -> Vec<String> {
        self.spec_replicas_path.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect()
    }
}

impl Definition {
    /// Whether an object is a CustomResourceDefinition.
    pub fn is(object: &Value) -> bool {
        object["kind"] == "CustomResourceDefinition"
            && object["apiVersion"]
                .as_str()
                .is_some_and(|version| version.starts_with("apiextensions.k8s.io/"))
    }

    /// Reads a CustomResourceDefinition.
    pub fn read(object: &Value) -> Result<Self, DefinitionError> {
        if !Self::is(object) || object["apiVersion"] != "apiextensions.k8s.io/v1" {
            return Err(DefinitionError::NotADefinition);
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let spec = match Spec::deserialize(&object["spec"]) {
            Ok(spec) => spec,
            Err(source) => return Err(DefinitionError::Unreadable { name, source }),
        };
        let served = spec.versions.into_iter().filter(|version| version.served);
        let mut patterns = SharedPatterns::new();
        let versions = served.map(|mut version| {
            version.schema.open_api.share_patterns(&mut patterns);
            let subresources = version.subresources.unwrap_or_default();
            DefinitionVersion {
                name: version.name,
                has_status_subresource: subresources.status.is_some(),
                replicas: subresources.scale.as_ref().map(Scale::keys),
                schema: version.schema.open_api,
            }
        });
        Ok(Self {
            name,
            group: spec.group,
            kind: spec.names.kind,
            namespaced: spec.scope == "Namespaced",
            versions: versions.collect(),
        })
    }

    /// The version of an object's `apiVersion`.
    pub fn version_of(&self, object: &Value) -> Option<&DefinitionVersion> {
        let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
        let known = self.versions.iter().find(|known| known.name == version)?;
        (group == self.group && object["kind"] == self.kind).then_some(known)
    }
}
