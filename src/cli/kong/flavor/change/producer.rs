//! The Deployment of a configuration producer, with the caller's rights, and what a change of dialect asks people to do
//! with it: one for the preview, and new pods of the live one.

use std::str::FromStr;
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, annotation};
use interlock_kong::data_plane::rollout::flavor_change::next_move::FlavorHop;
use interlock_kong::data_plane::rollout::flavor_change::preview_producer::{command, copy_name, described};
use interlock_kong::data_plane::rollout::flavor_change::producer::{restart, start, stop};
use jiff::Timestamp;
use kube::Client;
use kube::api::{DynamicObject, Patch};
use serde_json::Value;

use crate::cli::common::error::{CliError, plain};
use crate::cli::common::object_ref::{ObjectKind, ObjectRef};
use crate::cli::common::output;

const DEPLOYMENT: ObjectKind =
    ObjectKind { api_version: "apps/v1", kind: "Deployment", resource: "deployments.apps", definitions: "" };

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
pub(super) struct ProducerRef(ObjectRef<DynamicObject>);

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
        Self(ObjectRef::untyped(client, &DEPLOYMENT, name))
    }

    pub(super) fn name(&self) -> NamespacedName {
        self.0.namespaced_name()
    }

    /// The name of its copy that serves a preview.
    fn copy_name(&self) -> String {
        copy_name(&self.name())
    }

    /// Its copy that serves a preview.
    fn copy(&self) -> Self {
        let name = NamespacedName::new(self.0.namespace.as_str(), self.copy_name());
        Self::at(self.0.client.clone(), name)
    }

    pub(super) async fn get(&self) -> Result<Value, CliError> {
        match self.0.find().await? {
            Some(deployment) => self.0.value(deployment),
            None => Err(CliError::unreached(format!("{} does not exist", self.0)).next(
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
        if self.0.patch(&Patch::Merge(stop(deployment, data_plane)), false).await?.is_none() {
            return Ok(false);
        }
        output::line(&format!(
            "deployment {}: scaled to 0 until that is over; where this command is interrupted, call it again",
            self.0.key()
        ))?;
        Ok(true)
    }

    /// Scales it back, with new pods; `false` where it was changed since it was read.
    pub(super) async fn start(&self, deployment: &Value) -> Result<bool, CliError> {
        let patch = start(deployment, &Timestamp::now().to_string());
        self.started(patch, "scaled back to").await
    }

    /// Replaces its pods; `false` where it was changed since it was read.
    pub(super) async fn restart(&self, deployment: &Value) -> Result<bool, CliError> {
        let patch = restart(deployment, &Timestamp::now().to_string());
        self.started(patch, "restarted with").await
    }

    async fn started(&self, patch: Value, done: &str) -> Result<bool, CliError> {
        let Some(started) = self.0.patch(&Patch::Merge(patch), false).await? else { return Ok(false) };
        let replicas = started["spec"]["replicas"].as_i64().unwrap_or(1);
        output::line(&format!("deployment {}: {done} {replicas} replicas", self.0.key()))?;
        Ok(true)
    }

    /// Waits until a condition is met.
    pub(super) async fn until(
        &self,
        limit: Duration,
        mut holds: impl FnMut(&Value) -> bool,
    ) -> Result<(), CliError> {
        let ended = self.0.until_value(limit, |deployment| holds(&deployment).then_some(Ok(()))).await?;
        ended.ok_or_else(|| {
            let NamespacedName { namespace, name } = self.name();
            CliError::unreached(format!("{} is not rolled out after {limit:?}", self.0)).next(format!(
                "look at it (`kubectl rollout status deployment/{name} -n {namespace}`), and call this again: it goes on \
                 where it was"
            ))
        })
    }
}

/// Says that the preview needs a producer, and by which command it gets one. A copy that was made for an earlier hop
/// keeps to the dialect of that.
pub(super) async fn say_needed(
    data_plane: &NamespacedName,
    hop: FlavorHop,
    known: Option<&ProducerRef>,
) -> Result<(), CliError> {
    let command = match known {
        None => None,
        Some(producer) => match (producer.copy().find().await, producer.find().await) {
            (Some(_), _) if !hop.crosses_dialects() => return Ok(()),
            (Some(_), _) => {
                let (name, namespace) = (producer.copy_name(), &producer.0.namespace);
                Some(format!("kubectl rollout restart deployment/{name} -n {namespace}"))
            }
            (None, Some(deployment)) => Some(command(&deployment, &producer.name(), data_plane)),
            (None, None) => None,
        },
    };
    let takes_up = if hop.crosses_dialects() { format!("takes up {} and ", hop.to) } else { String::new() };
    output::line(&format!(
        "dataplane {data_plane}: the preview needs a configuration producer that {takes_up}sees no live pod; unless there is \
         one, run"
    ))?;
    output::line(&plain(&format!("  {}", command.unwrap_or_else(|| untold(data_plane)))))
}

/// What to run where no Deployment is known.
fn untold(data_plane: &NamespacedName) -> String {
    format!(
        "{}; with --wait --producer deploy/NAMESPACE/NAME the command for a copy of that Deployment is printed",
        described(data_plane)
    )
}

/// Says what is left to do after a change of dialect.
pub(super) fn say_left(hop: FlavorHop, known: Option<&ProducerRef>, restarted: bool) -> Result<(), CliError> {
    let Some(producer) = known else {
        return output::line(&format!(
            "next: restart the configuration producer of the live pods, so that it takes up {}, and stop that of the preview",
            hop.to
        ));
    };
    let NamespacedName { namespace, name } = producer.name();
    let delete = format!("`kubectl delete deployment {} -n {namespace}`", producer.copy_name());
    match restarted {
        true => output::line(&format!(
            "next: stop the configuration producer of the preview, such as with {delete}"
        )),
        false => output::line(&format!(
            "next: `kubectl rollout restart deployment/{name} -n {namespace}`, so that it takes up {}, and stop that of the \
             preview, such as with {delete}",
            hop.to
        )),
    }
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
