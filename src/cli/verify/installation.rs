//! What the checks are about: the objects of an installation, and the options that they show.

use interlock_core::admission::Freeze;
use interlock_core::api::meta;
use interlock_core::api::meta::install;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::Kinds;
use kube::Client;
use serde_json::Value;

use crate::cli::common::discovery::ServedKinds;
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, Selection};
use crate::install::InstallOptions;
use crate::install::installed::InstalledObjects;

/// Group of webhook configurations and policies.
const ADMISSION: &str = "admissionregistration.k8s.io";

/// An installation, as far as it could be read.
pub(super) struct Installation {
    /// With the caller's rights.
    pub(super) client: Client,
    /// What the API server serves.
    pub(super) served: ServedKinds,
    /// The version of the API server.
    pub(super) server: String,
    /// Its options, as far as its objects show them.
    pub(super) options: InstallOptions,
    /// The freeze that the process runs with, where its flags are shown.
    pub(super) freeze: Option<Freeze>,
    /// The MutatingWebhookConfiguration.
    pub(super) mutating: ReadOutcome,
    /// The ValidatingWebhookConfiguration.
    pub(super) validating: ReadOutcome,
    /// The Deployments of its namespace, or why they could not be read.
    pub(super) deployments: Result<Vec<Value>, String>,
}

impl Installation {
    /// Reads it; an error where the cluster is not reached.
    pub(super) async fn read(client: &Client, namespace: Option<&str>, kinds: Kinds) -> anyhow::Result<Self> {
        let served = ServedKinds::discover(client).await?;
        let server = client.apiserver_version().await?.git_version;
        let name = install::WEBHOOK_CONFIGURATION;
        let mutating = get_one(client, &served, (ADMISSION, "MutatingWebhookConfiguration"), name).await;
        let validating = get_one(client, &served, (ADMISSION, "ValidatingWebhookConfiguration"), name).await;
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
            server,
            mutating,
            validating,
            deployments,
        })
    }

    /// One object of a kind; missing where the kind is not served.
    pub(super) async fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> ReadOutcome {
        match self.served.of(group, kind) {
            Some(resource) => reader::get(&self.client, resource, namespace, name).await,
            None => ReadOutcome::Missing,
        }
    }
}

/// The object, where it is there.
pub(super) fn there(read: &ReadOutcome) -> Option<&Value> {
    match read {
        ReadOutcome::There(object) => Some(object),
        ReadOutcome::Missing | ReadOutcome::Unknown(_) => None,
    }
}

async fn get_one(
    client: &Client,
    served: &ServedKinds,
    (group, kind): (&str, &str),
    name: &str,
) -> ReadOutcome {
    match served.of(group, kind) {
        Some(resource) => reader::get(client, resource, "", name).await,
        None => ReadOutcome::Missing,
    }
}

async fn list_deployments(
    client: &Client,
    served: &ServedKinds,
    namespace: &str,
) -> Result<Vec<Value>, String> {
    let Some(resource) = served.of("apps", "Deployment") else { return Ok(Vec::new()) };
    let selection = Selection {
        namespace: Some(namespace),
        labels: Some("app.kubernetes.io/part-of=interlock"),
        ..Selection::default()
    };
    reader::list(client, resource, &selection).await.map_err(|error| reader::api_message(&error))
}
