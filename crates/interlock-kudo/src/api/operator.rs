//! Operator: the data that all versions of a package share.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Person or group that maintains an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Maintainer {
    /// Name of the maintainer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Email address of the maintainer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// Identity of a package, shared by its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "kudo.dev",
    version = "v1beta1",
    kind = "Operator",
    plural = "operators",
    singular = "operator",
    shortname = "op",
    category = "kudo",
    doc = "Identity of a package, shared by its versions.",
    namespaced,
    schema = "derived",
    printcolumn = r#"{"name": "URL", "type": "string", "description": "Where to read more.", "jsonPath": ".spec.url", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct OperatorSpec {
    /// What the operator does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Lowest version of KUDO that the package was written for; informational.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kudo_version: Option<String>,
    /// Lowest version of Kubernetes that the package needs; checked by clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Who maintains the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintainers: Option<Vec<Maintainer>>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Template that clients render when they make the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_manifest: Option<String>,
}
