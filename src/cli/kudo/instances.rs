//! Instances by name.

use interlock_kudo::api::Instance;
use kube::Api;

use crate::cli::common::error::CliError;
use crate::cli::common::object_kind::ObjectKind;
use crate::cli::common::object_ref;

/// Instances.
pub(in crate::cli) const INSTANCE: ObjectKind =
    ObjectKind { kind: "Instance", resource: "instances.kudo.dev", definitions: "crds" };

/// The error about an Instance that does not exist; it names those that do.
pub(in crate::cli) async fn missing(instances: &Api<Instance>, namespace: &str, name: &str) -> CliError {
    object_ref::missing(instances, &INSTANCE, namespace, name).await
}
