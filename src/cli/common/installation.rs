//! The objects of an installation, and the options that they show.

use interlock_core::admission::Freeze;
use interlock_core::api::meta;
use interlock_core::api::meta::install;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::Kinds;
use kube::Client;
use serde_json::Value;

use super::discovery::ServedKinds;
use super::error::CliError;
use super::reader;
use super::reader::{ReadOutcome, Selection};
use crate::install::installed::InstalledObjects;
use crate::install::{InstallOptions, removal};

/// Group of webhook configurations and policies.
const ADMISSION: &str = "admissionregistration.k8s.io";

/// An installation, as far as it could be read.
pub(in crate::cli) struct Installation {
    /// With the caller's rights.
    pub(in crate::cli) client: Client,
    /// What the API server serves.
    pub(in crate::cli) served: ServedKinds,
    /// Its options, as far as its objects show them.
    pub(in crate::cli) options: InstallOptions,
    /// The freeze that the process runs with, where its flags are shown.
    pub(in crate::cli) freeze: Option<Freeze>,
    /// The MutatingWebhookConfiguration.
    pub(in crate::cli) mutating: ReadOutcome,
    /// The ValidatingWebhookConfiguration.
    pub(in crate::cli) validating: ReadOutcome,
    /// The Deployments of its namespace, or why they could not be read.
    pub(in crate::cli) deployments: Result<Vec<Value>, String>,
}

impl Installation {
    /// Reads it; an error where the cluster is not reached.
    pub(in crate::cli) async fn read(
        client: &Client,
        namespace: Option<&str>,
        kinds: Kinds,
    ) -> Result<Self, CliError> {
        let served = ServedKinds::discover(client).await?;
        let name = install::WEBHOOK_CONFIGURATION;
        let mutating = get(client, &served, (ADMISSION, "MutatingWebhookConfiguration"), "", name).await;
        let validating = get(client, &served, (ADMISSION, "ValidatingWebhookConfiguration"), "", name).await;
        let (first, second) = (there(&mutating), there(&validating));
        let mut found = InstalledObjects { mutating: first, validating: second, deployments: &[] };
        let namespace = namespace.map(str::to_owned).or_else(|| found.namespace());
        let namespace = namespace.unwrap_or_else(|| meta::NAMESPACE.to_owned());
        let deployments = list_deployments(client, &served, &namespace).await;
        found.deployments = deployments.as_deref().unwrap_or_default();
        let defaults = InstallOptions {
            kinds,
            packages: NamespacedName::new(&*namespace, meta::PACKAGES_SERVICE_ACCOUNT),
            namespace,
            ..InstallOptions::default()
        };
        Ok(Self {
            options: found.options(defaults),
            freeze: found.freeze(),
            client: client.clone(),
            served,
            mutating,
            validating,
            deployments,
        })
    }

    /// One object of a kind; missing where the kind is not served.
    pub(in crate::cli) async fn get(
        &self,
        group: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> ReadOutcome {
        get(&self.client, &self.served, (group, kind), namespace, name).await
    }
}

/// The object, where it is there.
pub(in crate::cli) fn there(read: &ReadOutcome) -> Option<&Value> {
    match read {
        ReadOutcome::There(object) => Some(object),
        ReadOutcome::Missing | ReadOutcome::Unknown(_) => None,
    }
}

async fn get(
    client: &Client,
    served: &ServedKinds,
    (group, kind): (&str, &str),
    namespace: &str,
    name: &str,
) -> ReadOutcome {
    match served.of(group, kind) {
        Some(resource) => reader::get(client, resource, namespace, name).await,
        None => ReadOutcome::Missing,
    }
}

async fn list_deployments(
    client: &Client,
    served: &ServedKinds,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let Some(resource) = served.of("apps", "Deployment") else { return Ok(Vec::new()) };
    let selection =
        Selection { namespace: Some(namespace), labels: Some(removal::SELECTOR), ..Selection::default() };
    reader::list(client, resource, &selection).await.map_err(|error| reader::api_message(&error))
}
