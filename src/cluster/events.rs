//! Events on Instances; the only writes that are made freely. A lost Event changes nothing.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tracing::debug;

use crate::api::meta;
use crate::api::object::NamespacedName;
use crate::effect::{Note, Severity};

/// A note is at most 1 KiB.
const NOTE_LIMIT: usize = 1024;

/// Publishes notes.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// Reports as `instance-controller`, KUDO's component.
    pub fn new(client: Client) -> Self {
        let reporter = Reporter { controller: "instance-controller".to_owned(), instance: None };
        Self { recorder: Recorder::new(client, reporter) }
    }

    /// Publishes one note on an Instance.
    pub async fn publish(&self, instance: &NamespacedName, uid: &str, note: Note) {
        let reference = ObjectReference {
            api_version: Some(meta::KUDO_API_VERSION.to_owned()),
            kind: Some("Instance".to_owned()),
            namespace: Some(instance.namespace.clone()),
            name: Some(instance.name.clone()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        let mut text = note.message;
        if text.len() > NOTE_LIMIT {
            let end = (0..=NOTE_LIMIT - 3).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
            text.truncate(end);
            text.push_str("...");
        }
        let event = Event {
            type_: match note.severity {
                Severity::Normal => EventType::Normal,
                Severity::Warning => EventType::Warning,
            },
            reason: note.reason,
            note: Some(text),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &reference).await {
            debug!(%instance, %error, "an Event was not written");
        }
    }
}
