//! Pod templates and Deployments of core Kubernetes, with the fields that decisions read.
//!
//! Other fields are accepted and kept: the text of the object is stored and carried out, these
//! types only read it. `null` reads as absent, as in Go.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Metadata, with the fields that decisions read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PodMetadata {
    /// Labels.
    #[serde(default, deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

/// Spec of an `apps/v1` Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DeploymentSpec {
    /// Number of desired pods.
    #[serde(default)]
    pub replicas: Option<i32>,
    /// Template of the pods.
    #[serde(default, deserialize_with = "or_default")]
    pub template: PodTemplate,
}

/// Number of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ReplicaStatus {
    /// Pods, ready or not.
    #[serde(default)]
    pub replicas: Option<i32>,
}

/// A pod template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: PodMetadata,
    /// Their spec.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: PodSpec,
}

/// Spec of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Containers that run beside each other.
    #[serde(default, deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    /// Containers that run before them.
    #[serde(default, deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Image.
    #[serde(default)]
    pub image: Option<String>,
    /// Replaces the image's entrypoint.
    #[serde(default, deserialize_with = "or_default")]
    pub command: Vec<String>,
    /// Replaces the image's arguments.
    #[serde(default, deserialize_with = "or_default")]
    pub args: Vec<String>,
    /// Variables; a later entry of a name wins.
    #[serde(default, deserialize_with = "or_default")]
    pub env: Vec<EnvVar>,
    /// Objects whose entries are variables; [`Self::env`] wins.
    #[serde(default, deserialize_with = "or_default")]
    pub env_from: Vec<EnvFrom>,
    /// Ports that have a name.
    #[serde(default, deserialize_with = "or_default")]
    pub ports: Vec<ContainerPort>,
    /// Where volumes are mounted.
    #[serde(default, deserialize_with = "or_default")]
    pub volume_mounts: Vec<VolumeMount>,
}

/// A port of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPort {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Its number.
    #[serde(default, deserialize_with = "or_default")]
    pub container_port: i64,
}

/// A variable of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Value; `$(NAME)` expands to a variable before it.
    #[serde(default, deserialize_with = "or_default")]
    pub value: String,
    /// Source of the value, where it is empty.
    #[serde(default)]
    pub value_from: Option<ValueFrom>,
}

/// Source of the value of a variable; one of the members is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValueFrom {
    /// A key of a ConfigMap.
    #[serde(default)]
    pub config_map_key_ref: Option<KeyRef>,
    /// A key of a Secret.
    #[serde(default)]
    pub secret_key_ref: Option<KeyRef>,
    /// A field of the pod.
    #[serde(default)]
    pub field_ref: Option<FieldRef>,
}

/// A key of a ConfigMap or Secret of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KeyRef {
    /// Name of the object.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The key.
    #[serde(default, deserialize_with = "or_default")]
    pub key: String,
    /// Whether the pod starts without it.
    #[serde(default, deserialize_with = "or_default")]
    pub optional: bool,
}

/// A field of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// Such as `metadata.labels['x']`.
    #[serde(default, deserialize_with = "or_default")]
    pub field_path: String,
}

/// An object whose entries are variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvFrom {
    /// Prefix of each key.
    #[serde(default, deserialize_with = "or_default")]
    pub prefix: String,
    /// A ConfigMap.
    #[serde(default)]
    pub config_map_ref: Option<ObjectRef>,
    /// A Secret.
    #[serde(default)]
    pub secret_ref: Option<ObjectRef>,
}

/// A ConfigMap or Secret of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ObjectRef {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Whether the pod starts without it.
    #[serde(default, deserialize_with = "or_default")]
    pub optional: bool,
}

/// Where a volume is mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeMount {
    /// Path in the container.
    #[serde(default, deserialize_with = "or_default")]
    pub mount_path: String,
}

/// Reads `null` as absent.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
