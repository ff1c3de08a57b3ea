//! The Deployment of a configuration producer, with the caller's rights.

use std::str::FromStr;
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, annotation};
use interlock_kong::data_plane::rollout::flavor_change::preview_producer::copy_name;
use interlock_kong::data_plane::rollout::flavor_change::producer::{restart, start, stop};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::Value;

use crate::cli::common::error::{CliError, api};
use crate::cli::common::object_kind::ObjectKind;
use crate::cli::common::output;
use crate::cli::common::watch;

const DEPLOYMENT: ObjectKind =
    ObjectKind { kind: "Deployment", resource: "deployments.apps", definitions: "" };

/// A producer as the flag names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProducerName {
    namespace: Option<String>,
    name: String,
}

impl FromStr for ProducerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "write it as deploy/NAMESPACE/NAME, or deploy/NAME in the DataPlane's namespace".to_owned();
        let (kind, rest) = text.split_once('/').ok_or_else(wrong)?;
        if !matches!(kind, "deploy" | "deployment" | "deployments" | "deployment.apps" | "deployments.apps") {
            return Err(wrong());
        }
        let (namespace, name) = match rest.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, rest),
        };
        if name.is_empty() || name.contains('/') || namespace.as_ref().is_some_and(String::is_empty) {
            return Err(wrong());
        }
        Ok(Self { namespace, name: name.to_owned() })
    }
}

/// A producer of a cluster.
#[derive(Clone)]
pub(super) struct ProducerRef {
    client: Client,
    deployments: Api<Deployment>,
    pub(super) name: NamespacedName,
}

impl ProducerRef {
    /// The one that the flag names.
    pub(super) fn named(client: Client, name: &ProducerName, here: &str) -> Self {
        let namespace = name.namespace.as_deref().unwrap_or(here);
        Self::at(client, NamespacedName::new(namespace, name.name.as_str()))
    }

    /// The one that an annotation of the DataPlane names.
    pub(super) fn annotated(client: Client, data_plane: &Value, here: &str) -> Option<Self> {
        let named = annotation(data_plane, meta::CONFIG_PRODUCER)?;
        let (namespace, name) = named.split_once('/').unwrap_or((here, named));
        Some(Self::at(client, NamespacedName::new(namespace, name)))
    }

    fn at(client: Client, name: NamespacedName) -> Self {
        Self { deployments: Api::namespaced(client.clone(), &name.namespace), client, name }
    }

    /// Its copy that serves a preview.
    pub(super) fn copy(&self) -> Self {
        let name = NamespacedName::new(self.name.namespace.as_str(), copy_name(&self.name));
        Self::at(self.client.clone(), name)
    }

    pub(super) async fn get(&self) -> Result<Value, CliError> {
        let found = self.deployments.get_opt(&self.name.name).await;
        match found.map_err(api(format!("Deployment {} cannot be read", self.name)))? {
            Some(deployment) => value(deployment),
            None => Err(CliError::unreached(format!("Deployment {} does not exist", self.name)).next(
                "name the Deployment of the configuration producer with --producer deploy/NAMESPACE/NAME",
            )),
        }
    }

    /// The Deployment, where there is one that may be read.
    pub(super) async fn find(&self) -> Option<Value> {
        self.get().await.ok()
    }

    /// Scales it to 0 for the promotion of a DataPlane; `false` where it was changed since it was read.
    pub(super) async fn stop(&self, deployment: &Value, data_plane: &str) -> Result<bool, CliError> {
        if self.patch(&stop(deployment, data_plane)).await?.is_none() {
            return Ok(false);
        }
        output::line(&format!(
            "deployment {}: scaled to 0 until that is over; where this command is interrupted, call it again",
            self.name
        ))?;
        Ok(true)
    }

    /// Scales it back, with new pods; `false` where it was changed since it was read.
    pub(super) async fn start(&self, deployment: &Value) -> Result<bool, CliError> {
        let patch = start(deployment, &Timestamp::now().to_string());
        self.started(&patch, "scaled back to").await
    }

    /// Replaces its pods; `false` where it was changed since it was read.
    pub(super) async fn restart(&self, deployment: &Value) -> Result<bool, CliError> {
        let patch = restart(deployment, &Timestamp::now().to_string());
        self.started(&patch, "restarted with").await
    }

    async fn started(&self, patch: &Value, done: &str) -> Result<bool, CliError> {
        let Some(started) = self.patch(patch).await? else { return Ok(false) };
        let replicas = started["spec"]["replicas"].as_i64().unwrap_or(1);
        output::line(&format!("deployment {}: {done} {replicas} replicas", self.name))?;
        Ok(true)
    }

    async fn patch(&self, patch: &Value) -> Result<Option<Value>, CliError> {
        let patched =
            self.deployments.patch(&self.name.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        match patched {
            Ok(deployment) => value(deployment).map(Some),
            Err(Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(api(format!("Deployment {} is not changed", self.name))(error)),
        }
    }

    /// Watches until a condition is met.
    pub(super) async fn until(
        &self,
        limit: Duration,
        mut holds: impl FnMut(&Value) -> bool,
    ) -> Result<(), CliError> {
        let gone = || CliError::unreached(format!("Deployment {} was deleted meanwhile", self.name));
        let look = |seen: Option<Deployment>| match seen.map(value) {
            None => Some(Err(gone())),
            Some(Ok(deployment)) => holds(&deployment).then_some(Ok(())),
            Some(Err(error)) => Some(Err(error)),
        };
        let ended = watch::until(self.deployments.clone(), &DEPLOYMENT, &self.name.name, limit, look).await?;
        ended.unwrap_or_else(|| {
            let NamespacedName { namespace, name } = &self.name;
            Err(CliError::unreached(format!("Deployment {} is not rolled out after {limit:?}", self.name)).next(format!(
                "look at it (`kubectl rollout status deployment/{name} -n {namespace}`), and call this again: it goes on \
                 where it was"
            )))
        })
    }
}

fn value(deployment: Deployment) -> Result<Value, CliError> {
    let read = serde_json::to_value(deployment);
    read.map_err(|error| CliError::refused("the answer cannot be read").why(error.to_string()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::short("deploy/kic", Some((None, "kic")))]
    #[case::whole("deployment.apps/kong/kic", Some((Some("kong"), "kic")))]
    #[case::kind("statefulset/kong/kic", None)]
    #[case::bare("kic", None)]
    #[case::empty("deploy/", None)]
    #[case::no_namespace("deploy//kic", None)]
    #[case::more("deploy/a/b/c", None)]
    fn names_of_producers(#[case] text: &str, #[case] wanted: Option<(Option<&str>, &str)>) {
        let wanted = wanted.map(|(namespace, name)| ProducerName {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        });
        assert_eq!(text.parse().ok(), wanted);
    }
}
