//! The object of a command: read, written, watched and waited for with the caller's rights.

use std::fmt::{self, Debug};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use http::StatusCode;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::suggest;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher;
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{CliError, api, of_watch};

/// Most objects whose names are compared with one that does not exist.
const COMPARED: u32 = 500;

/// A kind whose objects commands name, as messages call it.
pub(in crate::cli) struct ObjectKind {
    pub(in crate::cli) api_version: &'static str,
    pub(in crate::cli) kind: &'static str,
    /// The resource, as rights name it.
    pub(in crate::cli) resource: &'static str,
    /// What `interlock render` prints the definition with; empty for a built-in kind.
    pub(in crate::cli) definitions: &'static str,
}

/// An object of a cluster, which may not exist. As a text it is `KIND NAMESPACE/NAME`.
#[derive(Clone)]
pub(in crate::cli) struct ObjectRef<K> {
    pub(in crate::cli) client: Client,
    pub(in crate::cli) objects: Api<K>,
    pub(in crate::cli) kind: &'static ObjectKind,
    pub(in crate::cli) namespace: String,
    pub(in crate::cli) name: String,
}

/// The name of `NAME` or of `KIND/NAME`, which kubectl prints.
pub(in crate::cli) fn bare(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

impl<K> fmt::Display for ObjectRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.kind, self.namespace, self.name)
    }
}

impl<K> ObjectRef<K> {
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

    /// The error of a wait that was too short.
    pub(in crate::cli) fn not_done(&self, limit: Duration) -> CliError {
        CliError::unreached(format!("{self} is not done after {limit:?}"))
    }
}

impl<K: Resource + Clone + Debug + DeserializeOwned + Send + 'static> ObjectRef<K> {
    pub(in crate::cli) async fn read(&self) -> Result<K, CliError> {
        match self.find().await? {
            Some(object) => Ok(object),
            None => Err(self.missing().await),
        }
    }

    /// The object; `None` where it does not exist.
    pub(in crate::cli) async fn find(&self) -> Result<Option<K>, CliError> {
        self.objects.get_opt(&self.name).await.map_err(api(format!("{self} cannot be read")))
    }

    /// The error about an object that does not exist; it names those that do.
    pub(in crate::cli) async fn missing(&self) -> CliError {
        let names: Vec<String> =
            match self.objects.list_metadata(&ListParams::default().limit(COMPARED)).await {
                Ok(list) => {
                    list.iter().map(|object| object.metadata.name.clone().unwrap_or_default()).collect()
                }
                // A kind that is not served is answered as an object that does not exist is.
                Err(Error::Api(status)) if status.is_not_found() => return not_served(self.kind),
                // Who may not list them sees no names.
                Err(_) => Vec::new(),
            };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = format!("{}s of namespace {}", self.kind.kind, self.namespace);
        let remedy = suggest::remedy(&self.name, &all, &names);
        CliError::unreached(format!("{self} does not exist"))
            .next("choose another namespace with -n")
            .next_where(remedy)
    }

    /// Waits until a condition is met; `None` after a timeout.
    ///
    /// # Errors
    /// Those of [`Self::watched`], and where the object is deleted.
    pub(in crate::cli) async fn until<T>(
        &self,
        limit: Duration,
        mut look: impl FnMut(K) -> Option<Result<T, CliError>>,
    ) -> Result<Option<T>, CliError> {
        let seen = |seen: Option<K>| match seen {
            Some(object) => look(object),
            None => Some(Err(self.gone())),
        };
        self.watched(limit, seen).await?.transpose()
    }

    /// The error where the object is deleted while it is waited for.
    pub(in crate::cli) fn gone(&self) -> CliError {
        CliError::unreached(format!("{self} was deleted meanwhile"))
    }

    /// Watches the object until a condition is met, which may be its deletion; `None` after a timeout. A broken watch
    /// is restarted.
    ///
    /// # Errors
    /// Where the caller may not watch it, and where the watch was broken at the timeout: earlier events prove
    /// nothing then.
    pub(in crate::cli) async fn watched<T>(
        &self,
        limit: Duration,
        mut look: impl FnMut(Option<K>) -> Option<T>,
    ) -> Result<Option<T>, CliError> {
        let Self { kind, name, .. } = self;
        let mut unseen = None;
        let found = async {
            let mut events = pin!(watcher::watch_object(self.objects.clone(), name).default_backoff());
            while let Some(event) = events.next().await {
                match event {
                    Ok(seen) => {
                        unseen = None;
                        if let Some(found) = look(seen) {
                            return Ok(Some(found));
                        }
                    }
                    Err(error) if is_refusal(&error) => return Err(unwatchable(kind, name, &error)),
                    Err(error) => {
                        tracing::debug!(%error, "the watch starts again");
                        unseen = Some(error);
                    }
                }
            }
            Ok(None)
        };
        match (tokio::time::timeout(limit, found).await, unseen) {
            (Ok(ended), _) => ended,
            (Err(_), None) => Ok(None),
            (Err(_), Some(error)) => {
                Err(of_watch(&format!("{} {name} could not be watched within {limit:?}", kind.kind), &error))
            }
        }
    }
}

/// Objects of a kind that has no type here.
impl ObjectRef<DynamicObject> {
    pub(in crate::cli) fn untyped(
        client: Client,
        kind: &'static ObjectKind,
        NamespacedName { namespace, name }: NamespacedName,
    ) -> Self {
        let (group, version) = kind.api_version.split_once('/').unwrap_or(("", kind.api_version));
        let plural = kind.resource.split('.').next().unwrap_or_default();
        let named = GroupVersionKind::gvk(group, version, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&named, plural);
        let objects = Api::namespaced_with(client.clone(), &namespace, &resource);
        Self { client, objects, kind, namespace, name }
    }

    pub(in crate::cli) async fn get(&self) -> Result<Value, CliError> {
        self.value(self.read().await?)
    }

    /// Patches the object; `None` where it was changed since it was read. A dry run stores nothing.
    pub(in crate::cli) async fn patch(
        &self,
        patch: &Patch<Value>,
        dry_run: bool,
    ) -> Result<Option<Value>, CliError> {
        let parameters = PatchParams { dry_run, ..PatchParams::default() };
        match self.objects.patch(&self.name, &parameters, patch).await {
            Ok(object) => self.value(object).map(Some),
            Err(Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(api(format!("{self} is not changed"))(error)),
        }
    }

    /// As [`Self::until`].
    pub(in crate::cli) async fn until_value<T>(
        &self,
        limit: Duration,
        mut look: impl FnMut(Value) -> Option<Result<T, CliError>>,
    ) -> Result<Option<T>, CliError> {
        let seen = |object| self.value(object).map_or_else(|error| Some(Err(error)), &mut look);
        self.until(limit, seen).await
    }

    pub(in crate::cli) fn value(&self, object: DynamicObject) -> Result<Value, CliError> {
        let mut value = serde_json::to_value(object)
            .map_err(|error| CliError::refused("the answer cannot be read").why(error.to_string()))?;
        // Items of lists carry no kind.
        value["apiVersion"] = self.kind.api_version.into();
        value["kind"] = self.kind.kind.into();
        Ok(value)
    }
}

fn not_served(kind: &ObjectKind) -> CliError {
    CliError::unreached(format!("the API server serves no kind {}", kind.resource)).next(format!(
        "install its definition with `interlock render {} | kubectl apply --server-side -f -`, or choose another \
         cluster with --context",
        kind.definitions
    ))
}

/// The error of who may not watch an object.
pub(in crate::cli) fn unwatchable(kind: &ObjectKind, name: &str, error: &watcher::Error) -> CliError {
    of_watch(&format!("{} {name} cannot be waited for", kind.kind), error).next(format!(
        "ask an administrator for the verbs list and watch on {}; what was asked for goes on all the same",
        kind.resource
    ))
}

/// Whether a retry would not help.
pub(in crate::cli) fn is_refusal(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(Error::Api(status))
        | watcher::Error::WatchStartFailed(Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => return false,
    };
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].iter().any(|refusal| refusal.as_u16() == code)
}
