//! The executor: carries out the effects that decisions want. Every write is conditional, none is retried
//! here.

use std::sync::Arc;

use futures::StreamExt;
use http::Method;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, meta_str};
use interlock_core::effect::{ApiFailure, Effect, FileRead, PodFile};
use interlock_core::reconcile::ObjectList;
use kube::Client;
use serde_json::{Value, json};

use crate::cluster::api_writer::{Bookkeeping, set_resource_version};
use crate::cluster::discovery::{KindDiscovery, KindLookup, is_built_in};
use crate::cluster::events::EventPublisher;
use crate::cluster::exec;
use crate::cluster::path;
use crate::cluster::read::{self, BoundedList};
use crate::cluster::request_limit::RequestLimit;
use crate::cluster::requests::{ApiRequests, Fence, JSON, MERGE_PATCH, failure, local};
use crate::telemetry::metrics::Metrics;

/// Concurrent writes of one decision.
const CONCURRENT: usize = 8;

/// Objects of a kind that are listed by a label.
const LABELLED: usize = 500;

/// A `resourceVersion` that no object has, as the first write to etcd makes revision 2. The API server takes an
/// apply with it for a missing object alone, and answers 409 where there is one.
const NEVER_A_VERSION: &str = "1";

/// Reads and writes objects of any kind, as the user of the process or as a service account.
#[derive(Clone)]
pub struct Executor<I = NamespacedName> {
    requests: ApiRequests,
    kinds: Arc<KindDiscovery>,
    events: EventPublisher,
    account: I,
}

/// The identity of the process itself.
#[derive(Clone, Copy, Debug)]
pub struct OfProcess;

/// The identity under which an executor reads and writes.
pub trait WriteIdentity {
    /// The user to impersonate; `None` for that of the process.
    fn user(&self) -> Option<String>;

    /// Whether the API server shall tell of fields that it drops, as others have written the objects.
    const WARNED: bool;
}

impl WriteIdentity for OfProcess {
    const WARNED: bool = false;

    fn user(&self) -> Option<String> {
        None
    }
}

impl WriteIdentity for NamespacedName {
    const WARNED: bool = true;

    fn user(&self) -> Option<String> {
        Some(format!("system:serviceaccount:{}:{}", self.namespace, self.name))
    }
}

impl Executor<OfProcess> {
    /// As the user of the process, within the limit of its writes.
    pub fn of_process(client: Client, kinds: Arc<KindDiscovery>, bookkeeping: &Bookkeeping) -> Self {
        let events = EventPublisher::new(client).within(bookkeeping);
        Self { requests: bookkeeping.requests().clone(), kinds, events, account: OfProcess }
    }

    /// Reads the objects of a list, each with its kind; none where the kind is not defined.
    pub async fn list(&self, list: &ObjectList) -> Result<BoundedList, ApiFailure> {
        let path = self.path_below(&list.gvk, Some(&list.namespace), &[]).await?;
        let Some(path) = path else { return Ok(BoundedList::Whole(Vec::new())) };
        let labels: Vec<String> = list.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut read = read::list_bounded(self.requests.client(), &path, &labels.join(",")).await?;
        if let BoundedList::Whole(objects) = &mut read {
            for object in objects {
                object["apiVersion"] = json!(list.gvk.api_version());
                object["kind"] = json!(list.gvk.kind);
            }
        }
        Ok(read)
    }
}

impl Executor {
    /// As this service account; the user of `client` must have the right to impersonate it.
    pub fn new(
        client: Client,
        kinds: Arc<KindDiscovery>,
        account: NamespacedName,
        metrics: Arc<Metrics>,
    ) -> Self {
        let events = EventPublisher::new(client.clone());
        let requests = ApiRequests::new(client, RequestLimit::of_packages(Some(metrics)));
        Self { requests, kinds, events, account }
    }

    /// The service account.
    pub fn account(&self) -> &NamespacedName {
        &self.account
    }

    /// The same as another service account.
    #[must_use]
    pub fn under(&self, account: NamespacedName) -> Self {
        let (requests, kinds) = (self.requests.clone(), self.kinds.clone());
        Self { requests, kinds, events: self.events.clone(), account }
    }
}

impl<I: Clone> Executor<I> {
    /// The same, whose writes are sent within a stretch of leading.
    #[must_use]
    pub fn within(&self, fence: Fence) -> Self {
        Self { requests: self.requests.within(fence), ..self.clone() }
    }
}

impl<I: WriteIdentity> Executor<I> {
    /// Reads an object; `Ok(None)` when it does not exist or its kind is not defined. A 404 for the path
    /// itself says nothing about the object: see [`ApiFailure::is_of_kind`].
    pub async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Value>>, ApiFailure> {
        let Some(path) = self.path(key).await? else { return Ok(None) };
        match self.send(Method::GET, &path, "", None).await {
            Ok(value) => Ok(Some(Arc::new(value))),
            Err(failure) if reports_gone(key, &failure) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Names of the cluster-scoped objects of a kind with a label, [`LABELLED`] at most; none where the kind is not
    /// defined.
    pub async fn labelled(&self, gvk: &Gvk, (label, value): (&str, &str)) -> Result<Vec<String>, ApiFailure> {
        let Some(path) = self.path_below(gvk, None, &[]).await? else { return Ok(Vec::new()) };
        let label = label.replace('/', "%2F");
        let path = format!("{path}?labelSelector={label}%3D{value}&limit={LABELLED}");
        let list = self.send(Method::GET, &path, "", None).await?;
        let items = list["items"].as_array().into_iter().flatten();
        Ok(items.filter_map(|object| meta_str(object, "name")).map(str::to_owned).collect())
    }

    /// Reads a file of a running container.
    pub async fn read_file(&self, file: &PodFile) -> FileRead {
        exec::read_file(self.requests.client(), self.account.user().as_deref(), file).await
    }

    /// Sends the writes of one decision: batches concurrently, inside a batch one after the other until one
    /// fails. Returns each object as the API server answered it, or the failure.
    pub async fn run(&self, batches: Vec<Vec<Effect>>) -> Vec<(ObjectKey, Result<Written, ApiFailure>)> {
        let answers: Vec<Vec<_>> = futures::stream::iter(batches)
            .map(|batch| self.batch(batch))
            .buffered(CONCURRENT)
            .collect()
            .await;
        answers.into_iter().flatten().collect()
    }

    async fn batch(&self, writes: Vec<Effect>) -> Vec<(ObjectKey, Result<Written, ApiFailure>)> {
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            let Some(key) = write.key() else { continue };
            let answer = self.write(write).await;
            let failed = answer.is_err();
            answers.push((key, answer));
            if failed {
                break;
            }
        }
        answers
    }

    /// Sends one write.
    pub async fn write(&self, effect: Effect) -> Result<Written, ApiFailure> {
        if !effect.is_conditional() {
            return Err(local("the write names no version that it was decided on".to_owned()));
        }
        match effect {
            Effect::Create { object } => self.create(&object).await,
            Effect::Patch { key, resource_version, mut patch } => {
                let path = self.must_path(&key).await?;
                set_resource_version(&mut patch, &resource_version);
                self.put(Method::PATCH, &path, MERGE_PATCH, &patch).await
            }
            Effect::Apply { object, force } => self.apply(object, force).await,
            Effect::Status { key, resource_version, status } => {
                let path = self.must_path(&key).await? + "/status";
                let mut patch = json!({ "status": status });
                set_resource_version(&mut patch, &resource_version);
                let value = self.send(Method::PATCH, &path, MERGE_PATCH, Some(&patch)).await?;
                Ok(Written::Now(Arc::new(value), Vec::new()))
            }
            Effect::Event { key, uid, note } => {
                self.events.publish_on(&key, &uid, note).await;
                Ok(Written::Published)
            }
            // Who runs the reconciler counts.
            Effect::Healed { .. } => Ok(Written::Published),
            Effect::Delete { key, uid, resource_version, propagation } => {
                let path = self.must_path(&key).await?;
                let options = json!({
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "propagationPolicy": propagation.as_str(),
                    "preconditions": { "uid": uid, "resourceVersion": resource_version },
                });
                match self.send(Method::DELETE, &path, JSON, Some(&options)).await {
                    // The object itself while it waits for its dependents, else a Status.
                    Ok(value) if value.get("kind").and_then(Value::as_str) == Some("Status") => {
                        Ok(Written::Gone)
                    }
                    Ok(value) => Ok(Written::Now(Arc::new(value), Vec::new())),
                    Err(failure) if reports_gone(&key, &failure) => Ok(Written::Gone),
                    Err(failure) => Err(failure),
                }
            }
        }
    }

    async fn create(&self, object: &Value) -> Result<Written, ApiFailure> {
        let key = key_of(object)?;
        let path = self.must_path(&key).await?;
        let collection = path.rsplit_once('/').map_or(path.as_str(), |(collection, _)| collection);
        self.put(Method::POST, collection, JSON, object).await
    }

    /// Writes an object.
    async fn put(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Written, ApiFailure> {
        if !I::WARNED {
            let value = self.send(method, path, content_type, Some(body)).await?;
            return Ok(Written::Now(Arc::new(value), Vec::new()));
        }
        let user = self.account.user();
        let answer = self.requests.send_warned(user.as_deref(), method, path, content_type, body).await?;
        Ok(Written::Now(Arc::new(answer.value), answer.warnings))
    }

    /// Applies an object, on the condition that it names the present version, or that there is none yet.
    async fn apply(&self, mut object: Value, force: bool) -> Result<Written, ApiFailure> {
        let path = self.must_path(&key_of(&object)?).await?;
        if meta_str(&object, "resourceVersion").is_none_or(str::is_empty) {
            set_resource_version(&mut object, NEVER_A_VERSION);
        }
        let user = self.account.user();
        let value = self.requests.apply(user.as_deref(), &path, &object, force).await?;
        Ok(Written::Now(Arc::new(value), Vec::new()))
    }

    async fn must_path(&self, key: &ObjectKey) -> Result<String, ApiFailure> {
        self.path(key).await?.ok_or_else(|| ApiFailure {
            code: 404,
            reason: "NotFound".to_owned(),
            message: format!("the server does not serve {}", key.gvk),
            namespace_terminating: false,
        })
    }

    async fn path(&self, key: &ObjectKey) -> Result<Option<String>, ApiFailure> {
        self.path_below(&key.gvk, key.namespace.as_deref(), &[&key.name]).await
    }

    /// The path of a collection, or of what is `below` it; `None` where the kind is not defined.
    async fn path_below(
        &self,
        gvk: &Gvk,
        namespace: Option<&str>,
        below: &[&str],
    ) -> Result<Option<String>, ApiFailure> {
        match self.kinds.get(self.requests.client(), gvk).await.map_err(|error| failure(&error))? {
            KindLookup::Served(kind) => {
                path::of(&gvk.api_version(), namespace, &kind.plural, below).map(Some)
            }
            KindLookup::Undefined | KindLookup::NeverServed => Ok(None),
            KindLookup::NotServed(why) => Err(ApiFailure {
                code: 404,
                reason: String::new(),
                message: format!("the CustomResourceDefinition of {gvk} {why}"),
                namespace_terminating: false,
            }),
            KindLookup::Unknown => Err(local(format!("it is not known yet whether {gvk} is served"))),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiFailure> {
        self.requests.send(self.account.user().as_deref(), method, path, content_type, body).await
    }
}

/// Whether an object does not exist, as opposed to a kind that is not served now.
fn reports_gone(key: &ObjectKey, failure: &ApiFailure) -> bool {
    failure.code == 404 && (is_built_in(&key.gvk.group) || !failure.is_of_kind())
}

/// The result of a successful write.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// The object as answered, and the warnings of the API server about what a package wrote.
    Now(Arc<Value>, Vec<String>),
    Gone,
    /// An Event was published, or lost; or there was nothing to write.
    Published,
}

fn key_of(object: &Value) -> Result<ObjectKey, ApiFailure> {
    ObjectKey::of(object).ok_or_else(|| local("the object names no kind or no name".to_owned()))
}
