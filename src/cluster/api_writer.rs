//! Writes of the process itself, by what they are about. Every write is conditional, none is retried here.

use std::sync::Arc;

use http::Method;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::path::segment;
use interlock_core::api::{meta, revision};
use interlock_core::effect::ApiFailure;
use interlock_kong::api as kong;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::path;
use crate::cluster::request_limit::RequestLimit;
use crate::cluster::requests::{ApiRequests, FIELD_MANAGER, Fence, JSON, MERGE_PATCH, failure, local};
use crate::telemetry::metrics::Metrics;

/// Writes of the API user of the process: Instances, their status, ControllerRevisions of large specs, and
/// records about the installation.
#[derive(Clone)]
pub struct Bookkeeping {
    requests: ApiRequests,
}

impl Bookkeeping {
    /// As the user of the process.
    pub fn new(client: Client) -> Self {
        Self { requests: ApiRequests::new(client, RequestLimit::of_books(None)) }
    }

    /// The same; counts the requests that wait.
    pub fn counted(client: Client, metrics: Arc<Metrics>) -> Self {
        Self { requests: ApiRequests::new(client, RequestLimit::of_books(Some(metrics))) }
    }

    /// The same, whose writes are sent within a stretch of leading.
    #[must_use]
    pub fn within(&self, fence: Fence) -> Self {
        Self { requests: self.requests.within(fence) }
    }

    /// What sends its requests.
    pub fn requests(&self) -> &ApiRequests {
        &self.requests
    }

    /// The Instance as the API server has it now; `None` when it is gone.
    pub async fn instance(&self, key: &NamespacedName) -> Result<Option<Arc<Value>>, ApiFailure> {
        match self.requests.send(None, Method::GET, &instance_path(key, &[])?, "", None).await {
            Ok(value) => Ok(Some(Arc::new(value))),
            Err(failure) if failure.code == 404 => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads an OperatorVersion.
    pub async fn operator_version(&self, key: &NamespacedName) -> Result<Option<Arc<Value>>, ApiFailure> {
        // A reference of an Instance may be any text; no OperatorVersion has such a name.
        let api = meta::KUDO_API_VERSION;
        let Ok(path) = path::of(api, Some(&key.namespace), "operatorversions", &[&key.name]) else {
            return Ok(None);
        };
        match self.requests.send(None, Method::GET, &path, "", None).await {
            Ok(value) => Ok(Some(Arc::new(value))),
            Err(failure) if failure.code == 404 => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Replaces the status at exactly the object's resourceVersion and changes nothing else. A patch costs
    /// the API server more: it encodes and decodes the stored object again.
    pub async fn replace_status(
        &self,
        key: &NamespacedName,
        object: &Value,
    ) -> Result<Arc<Value>, ApiFailure> {
        let path = instance_path(key, &["status"])?;
        self.requests.send(None, Method::PUT, &path, JSON, Some(object)).await.map(Arc::new)
    }

    /// Merge patch of spec and metadata, on exactly this version.
    pub async fn patch_instance(
        &self,
        key: &NamespacedName,
        resource_version: &str,
        mut patch: Value,
    ) -> Result<Arc<Value>, ApiFailure> {
        set_resource_version(&mut patch, resource_version);
        self.requests
            .send(None, Method::PATCH, &instance_path(key, &[])?, MERGE_PATCH, Some(&patch))
            .await
            .map(Arc::new)
    }

    /// JSON patch of the Instance; its `test` operations are its condition.
    pub async fn json_patch_instance(
        &self,
        key: &NamespacedName,
        patch: &json_patch::Patch,
    ) -> Result<Arc<Value>, ApiFailure> {
        let body = serde_json::to_value(patch).map_err(|error| local(error.to_string()))?;
        let path = instance_path(key, &[])?;
        self.requests.send(None, Method::PATCH, &path, JSON_PATCH, Some(&body)).await.map(Arc::new)
    }

    /// Creates an Interlock whose spec is empty, which sets nothing; succeeds if it exists.
    pub async fn create_interlock(&self, name: &str) -> Result<(), ApiFailure> {
        let object = json!({
            "apiVersion": meta::INTERLOCK_API_VERSION, "kind": "Interlock",
            "metadata": { "name": name }, "spec": {},
        });
        let path = path::of(meta::INTERLOCK_API_VERSION, None, "interlocks", &[])?;
        match self.requests.send(None, Method::POST, &path, JSON, Some(&object)).await {
            Err(failure) if failure.reason != "AlreadyExists" => Err(failure),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Merge patch of the status of an Interlock, on exactly this version.
    pub async fn patch_interlock_status(
        &self,
        name: &str,
        resource_version: &str,
        status: Value,
    ) -> Result<(), ApiFailure> {
        let mut patch = json!({ "status": status });
        set_resource_version(&mut patch, resource_version);
        let path = path::of(meta::INTERLOCK_API_VERSION, None, "interlocks", &[name, "status"])?;
        self.requests.send(None, Method::PATCH, &path, MERGE_PATCH, Some(&patch)).await.map(drop)
    }

    /// Merge patch of the status of a DataPlane, on exactly this version.
    pub async fn patch_data_plane_status(
        &self,
        key: &NamespacedName,
        resource_version: &str,
        status: Value,
    ) -> Result<(), ApiFailure> {
        let mut patch = json!({ "status": status });
        set_resource_version(&mut patch, resource_version);
        let below = [key.name.as_str(), "status"];
        let path = path::of(kong::API_VERSION, Some(&key.namespace), "dataplanes", &below)?;
        self.requests.send(None, Method::PATCH, &path, MERGE_PATCH, Some(&patch)).await.map(drop)
    }

    /// Merge patch of a policy binding, which names the version that it was decided on.
    pub async fn patch_binding(&self, name: &str, patch: &Value) -> Result<(), ApiFailure> {
        let (api, plural) = ("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings");
        let path = path::of(api, None, plural, &[name])?;
        self.requests.send(None, Method::PATCH, &path, MERGE_PATCH, Some(patch)).await.map(drop)
    }

    /// The recorded revision of the request policy that is in force; `None` without a record.
    pub async fn enforced_revision(&self, namespace: &str) -> Result<Option<String>, ApiFailure> {
        let path = path::of("v1", Some(namespace), "configmaps", &[meta::install::ENFORCED])?;
        match self.requests.send(None, Method::GET, &path, "", None).await {
            Ok(found) => Ok(found["data"][REVISION].as_str().map(str::to_owned)),
            Err(failure) if failure.code == 404 => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Records that a revision of the request policy is in force; every process records the same revision.
    pub async fn record_enforced(&self, namespace: &str, revision: &str) -> Result<(), ApiFailure> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": meta::install::ENFORCED },
            "data": { REVISION: revision },
        });
        let path = path::of("v1", Some(namespace), "configmaps", &[])?;
        match self.requests.send(None, Method::POST, &path, JSON, Some(&object)).await {
            Ok(_) => return Ok(()),
            Err(failure) if failure.reason != "AlreadyExists" => return Err(failure),
            Err(_) => {}
        }
        let path = path::of("v1", Some(namespace), "configmaps", &[meta::install::ENFORCED])?;
        let patch = json!({ "data": { REVISION: revision } });
        self.requests.send(None, Method::PATCH, &path, MERGE_PATCH, Some(&patch)).await.map(drop)
    }

    /// Creates a ControllerRevision; returns it as it is stored, `None` where there is one of that name.
    pub async fn create_revision(
        &self,
        namespace: &str,
        revision: &Value,
    ) -> Result<Option<Value>, ApiFailure> {
        let path = path::of(revision::API_VERSION, Some(namespace), REVISIONS, &[])?;
        match self.requests.send(None, Method::POST, &path, JSON, Some(revision)).await {
            Ok(stored) => Ok(Some(stored)),
            Err(failure) if failure.reason == "AlreadyExists" => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads a ControllerRevision by name.
    pub async fn revision(&self, key: &NamespacedName) -> Result<Option<Value>, ApiFailure> {
        found(self.requests.send(None, Method::GET, &revision_path(key)?, "", None).await)
    }

    /// The metadata of the ControllerRevisions of a namespace with a label.
    pub async fn revisions(
        &self,
        namespace: &str,
        (label, value): (&str, &str),
    ) -> Result<Vec<ObjectMeta>, ApiFailure> {
        let resource = ApiResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            api_version: revision::API_VERSION.to_owned(),
            kind: revision::KIND.to_owned(),
            plural: REVISIONS.to_owned(),
        };
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.requests.client().clone(), namespace, &resource);
        let wanted = ListParams::default().labels(&format!("{label}={value}"));
        let list = api.list_metadata(&wanted).await.map_err(|error| failure(&error))?;
        Ok(list.items.into_iter().map(|item| item.metadata).collect())
    }

    /// Deletes an unreferenced ControllerRevision; succeeds if it is already gone.
    pub async fn delete_revision(&self, key: &NamespacedName, uid: &str) -> Result<(), ApiFailure> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid },
        });
        let path = revision_path(key)?;
        found(self.requests.send(None, Method::DELETE, &path, JSON, Some(&options)).await).map(drop)
    }

    /// Adds our label to an object of the core API, or removes it, at the version that was read; reads and
    /// patches only metadata. A label with a value other than `ours` is left alone. Returns whether the
    /// object exists.
    pub async fn mark(
        &self,
        (kind, plural): (&str, &str),
        key: &NamespacedName,
        (label, ours): (&str, &str),
        wanted: bool,
    ) -> Result<bool, ApiFailure> {
        // A reference of a pod may be any text; no object has such a name.
        if segment(&key.namespace).and(segment(&key.name)).is_err() {
            return Ok(false);
        }
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.requests.client().clone(), &key.namespace, &resource);
        let found = match api.get_metadata(&key.name).await {
            Ok(found) => found.metadata,
            Err(error) if failure(&error).code == 404 => return Ok(false),
            Err(error) => return Err(failure(&error)),
        };
        let now = found.labels.as_ref().and_then(|labels| labels.get(label));
        let due = if wanted { now.is_none() } else { now.is_some_and(|now| now == ours) };
        if due {
            let value = if wanted { json!(ours) } else { Value::Null };
            let mut patch = json!({"metadata": {"uid": found.uid, "labels": {label: value}}});
            set_resource_version(&mut patch, &found.resource_version.unwrap_or_default());
            let parameters = PatchParams::apply(FIELD_MANAGER);
            let sent = api.patch_metadata(&key.name, &parameters, &Patch::Merge(&patch)).await;
            sent.map_err(|error| failure(&error))?;
        }
        Ok(true)
    }
}

/// The object of an answer; `None` for 404.
fn found(answer: Result<Value, ApiFailure>) -> Result<Option<Value>, ApiFailure> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(failure) if failure.code == 404 => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Plural of ControllerRevisions.
const REVISIONS: &str = "controllerrevisions";

fn revision_path(key: &NamespacedName) -> Result<String, ApiFailure> {
    path::of(revision::API_VERSION, Some(&key.namespace), REVISIONS, &[&key.name])
}

const JSON_PATCH: &str = "application/json-patch+json";

/// Key of the recorded state of a policy.
const REVISION: &str = "revision";

fn instance_path(key: &NamespacedName, subresource: &[&str]) -> Result<String, ApiFailure> {
    let below = [&[key.name.as_str()], subresource].concat();
    path::of(meta::KUDO_API_VERSION, Some(&key.namespace), "instances", &below)
}

/// Makes a merge patch conditional on a version.
pub fn set_resource_version(patch: &mut Value, resource_version: &str) {
    let Value::Object(patch) = patch else { return };
    let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        metadata.insert("resourceVersion".to_owned(), Value::from(resource_version));
    }
}
