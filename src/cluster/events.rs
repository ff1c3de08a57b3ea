//! Events on Instances, gateways, definitions, settings and policy objects; the only unconditional writes.
//! A lost Event changes nothing.
//!
//! Each transition is an Event of its own: kube's recorder folds Events of one reason into a
//! series and keeps the first text, so "plan cleanup finished" would read "plan deploy finished".

use http::Method;
use interlock_core::api::display::one_line;
use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, ObjectKey};
use interlock_core::effect::{ApiFailure, Note, Severity};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::ObjectMeta;
use serde_json::Value;
use tracing::warn;

use super::api_writer::Bookkeeping;
use super::path;
use super::requests::{ApiRequests, JSON, local};

const API_VERSION: &str = "events.k8s.io/v1";
/// A note is at most 1 KiB.
const NOTE_LIMIT: usize = 1024;
/// KUDO's component.
const CONTROLLER: &str = "instance-controller";

/// Reporting controller of Events on gateways.
const GATEWAYS: &str = "interlock-gateways";
/// Reporting controller of Events on capabilities.
const SUPERVISOR: &str = "interlock-supervisor";

/// Events on cluster-scoped objects live in this namespace.
const CLUSTER: &str = "default";

/// Publishes Events.
#[derive(Clone)]
pub struct EventPublisher {
    requests: ApiRequests,
    /// This process, among all that report as the same controller.
    instance: String,
}

impl EventPublisher {
    /// Reports as KUDO's `instance-controller`.
    pub fn new(client: Client) -> Self {
        let requests = Bookkeeping::new(client).requests().clone();
        Self { requests, instance: format!("interlock-{}", std::process::id()) }
    }

    /// The same, within the limit of these writes.
    #[must_use]
    pub fn within(self, bookkeeping: &Bookkeeping) -> Self {
        Self { requests: bookkeeping.requests().clone(), ..self }
    }

    pub async fn publish(&self, instance: &NamespacedName, uid: &str, note: Note) {
        let NamespacedName { namespace, name } = instance;
        let regarding = regarding(meta::KUDO_API_VERSION, "Instance", Some(namespace), name, Some(uid));
        self.create(CONTROLLER, regarding, note).await;
    }

    /// Publishes one Event on an object of any kind.
    pub async fn publish_on(&self, key: &ObjectKey, uid: &str, note: Note) {
        let ObjectKey { gvk, namespace, name } = key;
        let regarding = regarding(&gvk.api_version(), &gvk.kind, namespace.as_deref(), name, Some(uid));
        self.create(SUPERVISOR, regarding, note).await;
    }

    pub async fn publish_on_gateway(&self, gateway: &Value, note: Note) {
        let metadata = &gateway["metadata"];
        let [api_version, kind, name] = [&gateway["apiVersion"], &gateway["kind"], &metadata["name"]]
            .map(|text| text.as_str().unwrap_or_default());
        let (namespace, uid) = (metadata["namespace"].as_str(), metadata["uid"].as_str());
        self.create(GATEWAYS, regarding(api_version, kind, namespace, name, uid), note).await;
    }

    /// Publishes one Event on a CustomResourceDefinition, which need not exist.
    pub async fn publish_on_definition(&self, name: &str, note: Note) {
        let regarding = regarding("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name, None);
        self.create(SUPERVISOR, regarding, note).await;
    }

    /// Publishes one Event on an Interlock object, which need not exist.
    pub async fn publish_on_interlock(&self, name: &str, uid: Option<&str>, note: Note) {
        let regarding = regarding(meta::INTERLOCK_API_VERSION, "Interlock", None, name, uid);
        self.create(SUPERVISOR, regarding, note).await;
    }

    /// Publishes one Event on a webhook configuration, a policy or a binding, which need not exist.
    pub async fn publish_on_guard(&self, kind: &str, name: &str, uid: Option<&str>, note: Note) {
        let regarding = regarding("admissionregistration.k8s.io/v1", kind, None, name, uid);
        self.create(SUPERVISOR, regarding, note).await;
    }

    async fn create(&self, controller: &str, regarding: ObjectReference, note: Note) {
        let name = regarding.name.clone().unwrap_or_default();
        let namespace = regarding.namespace.clone().unwrap_or_else(|| CLUSTER.to_owned());
        let event = self.event(controller, &namespace, regarding, note);
        if let Err(failure) = self.send(&namespace, event).await {
            warn!(namespace, name, message = %failure.message, "an Event could not be written");
        }
    }

    async fn send(&self, namespace: &str, event: Event) -> Result<(), ApiFailure> {
        let path = path::of(API_VERSION, Some(namespace), "events", &[])?;
        let event = serde_json::to_value(event).map_err(|error| local(error.to_string()))?;
        self.requests.send(None, Method::POST, &path, JSON, Some(&event)).await.map(drop)
    }

    fn event(&self, controller: &str, namespace: &str, regarding: ObjectReference, note: Note) -> Event {
        let name = regarding.name.as_deref().unwrap_or_default();
        let name = name.get(..200).unwrap_or(name);
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{}", uuid::Uuid::new_v4().simple())),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            action: Some("Reconcile".to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            note: Some(printed(&note.message)),
            reason: Some(note.reason),
            regarding: Some(regarding),
            reporting_controller: Some(controller.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if note.severity == Severity::Normal { "Normal" } else { "Warning" }.to_owned()),
            ..Event::default()
        }
    }
}

fn regarding(
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    uid: Option<&str>,
) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: namespace.map(str::to_owned),
        name: Some(name.to_owned()),
        uid: uid.map(str::to_owned),
        ..ObjectReference::default()
    }
}

/// A note as kubectl may print it.
fn printed(message: &str) -> String {
    let mut text = one_line(message).into_owned();
    if text.len() > NOTE_LIMIT {
        text.truncate(text.floor_char_boundary(NOTE_LIMIT - 3));
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_note_steers_the_terminal() {
        assert_eq!(printed("step \u{1b}[2J\n\u{202e}x"), "step \\u001b[2J \\u202ex");
        assert_eq!(printed(&"\u{202e}".repeat(NOTE_LIMIT)).len(), NOTE_LIMIT);
    }
}
