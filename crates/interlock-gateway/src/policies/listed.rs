//! The graph of a list of objects, for decisions without a cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::ObjectKey;
use interlock_core::kinds::inventory::{Inventory as _, ReadKinds};
use interlock_core::kinds::listed::ListedObjects;
use serde_json::{Value, json};

use super::attachments::Attachments;

/// A graph, and the kinds of which the list has objects: those of others are unknown.
#[derive(Default)]
pub(crate) struct ListedAttachments {
    attachments: Attachments,
    kinds: BTreeSet<(String, String)>,
    /// By name, whether listed or taken as present.
    classes: BTreeSet<String>,
}

impl ListedAttachments {
    /// None.
    pub(crate) fn empty() -> Arc<dyn ListedObjects> {
        Arc::new(Self::default())
    }
}

impl ListedAttachments {
    /// Files seldom have the class of their Gateways, which an administrator installs; it is taken as present.
    fn assume_class(&mut self, object: &Value) {
        let (api_version, spec) = (&object["apiVersion"], &object["spec"]);
        let name = if object["kind"] == "GatewayClass" {
            &object["metadata"]["name"]
        } else {
            &spec["gatewayClassName"]
        };
        let Some(name) = name.as_str() else { return };
        if self.classes.insert(name.to_owned()) && object["kind"] == "Gateway" {
            self.attachments.take(&json!({
                "apiVersion": api_version, "kind": "GatewayClass", "metadata": {"name": name},
                "spec": {"controllerName": ""},
            }));
        }
    }
}

impl ListedObjects for ListedAttachments {
    fn add(&mut self, key: &ObjectKey, object: &Value, _: &str) -> Result<(), serde_json::Error> {
        // The API server has a time for what is there; what is reviewed beside it is younger.
        let mut object = object.clone();
        if object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z".into();
        }
        self.attachments.take(&object);
        self.assume_class(&object);
        self.kinds.insert((key.gvk.group.clone(), key.gvk.kind.clone()));
        Ok(())
    }

    fn listers(self: Arc<Self>, listers: KindListers) -> KindListers {
        self.attachments.listers(listers).with::<dyn ReadKinds>(self)
    }

    fn copied(&self) -> Arc<dyn ListedObjects> {
        Arc::new(Self {
            attachments: self.attachments.copied(),
            kinds: self.kinds.clone(),
            classes: self.classes.clone(),
        })
    }
}

impl ReadKinds for ListedAttachments {
    fn is_read(&self, group: &str, kind: &str, _: &str) -> bool {
        self.kinds.contains(&(group.to_owned(), kind.to_owned()))
    }
}
