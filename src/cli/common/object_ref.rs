//! The object of a command.

use std::fmt::Debug;
use std::time::Duration;

use interlock_core::api::object::NamespacedName;
use interlock_core::api::suggest;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{CliError, api};
use super::object_kind::ObjectKind;
use super::watch;

/// Most objects whose names are compared with one that does not exist.
const COMPARED: u32 = 500;

/// An object of a cluster, which may not exist.
pub(in crate::cli) struct ObjectRef<K> {
    pub(in crate::cli) client: Client,
    pub(in crate::cli) objects: Api<K>,
    pub(in crate::cli) kind: &'static ObjectKind,
    pub(in crate::cli) namespace: String,
    pub(in crate::cli) name: String,
}

impl<K> ObjectRef<K> {
    pub(in crate::cli) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::cli) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(in crate::cli) fn namespaced_name(&self) -> NamespacedName {
        NamespacedName::new(self.namespace.as_str(), self.name.as_str())
    }

    /// `NAMESPACE/NAME`.
    pub(in crate::cli) fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// `NAME -n NAMESPACE`, as further commands name it.
    pub(in crate::cli) fn arguments(&self) -> String {
        format!("{} -n {}", self.name, self.namespace)
    }
}

impl<K: Resource + Clone + Debug + DeserializeOwned + Send + 'static> ObjectRef<K> {
    pub(in crate::cli) async fn read(&self) -> Result<K, CliError> {
        let found = self.objects.get_opt(&self.name).await;
        match found.map_err(api(format!("{} {} cannot be read", self.kind.kind, self.key())))? {
            Some(object) => Ok(object),
            None => Err(missing(&self.objects, self.kind, &self.namespace, &self.name).await),
        }
    }

    /// Patches the object; `None` where it was changed since it was read. A dry run stores nothing.
    pub(in crate::cli) async fn patched(
        &self,
        patch: &Patch<Value>,
        dry_run: bool,
    ) -> Result<Option<K>, CliError> {
        let parameters = PatchParams { dry_run, ..PatchParams::default() };
        match self.objects.patch(&self.name, &parameters, patch).await {
            Ok(object) => Ok(Some(object)),
            Err(Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(api(format!("{} {} is not changed", self.kind.kind, self.key()))(error)),
        }
    }

    /// Watches until a condition is met; `None` after a timeout.
    pub(in crate::cli) async fn watched<T>(
        &self,
        limit: Duration,
        look: impl FnMut(Option<K>) -> Option<T>,
    ) -> Result<Option<T>, CliError> {
        watch::until(self.objects.clone(), self.kind, &self.name, limit, look).await
    }
}

/// The error about an object that does not exist; it names those that do.
pub(in crate::cli) async fn missing<K: Clone + Debug + DeserializeOwned>(
    objects: &Api<K>,
    kind: &ObjectKind,
    namespace: &str,
    name: &str,
) -> CliError {
    let names: Vec<String> = match objects.list_metadata(&ListParams::default().limit(COMPARED)).await {
        Ok(list) => list.iter().map(|object| object.metadata.name.clone().unwrap_or_default()).collect(),
        // A kind that is not served is answered as an object that does not exist is.
        Err(Error::Api(status)) if status.is_not_found() => return not_served(kind),
        // Who may not list them sees no names.
        Err(_) => Vec::new(),
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let remedy = suggest::remedy(name, &format!("{}s of namespace {namespace}", kind.kind), &names);
    CliError::unreached(format!("{} {namespace}/{name} does not exist", kind.kind))
        .next(remedy.unwrap_or_else(|| "choose another namespace with -n".to_owned()))
}

fn not_served(kind: &ObjectKind) -> CliError {
    CliError::unreached(format!("the API server serves no kind {}", kind.resource)).next(format!(
        "install its definition with `interlock render {} | kubectl apply --server-side -f -`, or choose another \
         cluster with --context",
        kind.definitions
    ))
}
