//! The DataPlane that children belong to, and the metadata that they have from it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::invalid::{FieldPlace, InvalidTemplate, TemplateProblem, at};
use crate::api::kong::{API_VERSION, labels};
use crate::api::meta;
use crate::api::object::{annotation, meta_str};
use crate::kinds::data_plane::rollout::service_selector;

/// The longest value of a label.
const LONGEST: usize = 63;

/// A DataPlane as the owner of its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPlaneOwner {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Selector of all its Services, where its annotation replaces the usual one.
    pub service_selector: Option<BTreeMap<String, String>>,
}

impl DataPlaneOwner {
    /// Reads a DataPlane.
    pub fn of(object: &Value) -> Result<Self, InvalidTemplate> {
        let metadata = FieldPlace::root("metadata");
        let text = |field: &str| {
            meta_str(object, field)
                .map(str::to_owned)
                .ok_or_else(|| metadata.field(field).has(TemplateProblem::Absent))
        };
        let owner = Self {
            namespace: text("namespace")?,
            name: text("name")?,
            uid: text("uid")?,
            service_selector: annotation(object, meta::SERVICE_SELECTOR_OVERRIDE)
                .map(service_selector)
                .transpose()?,
        };
        if owner.name.len() > LONGEST {
            return Err(metadata.field("name").has(TemplateProblem::TooLong));
        }
        Ok(owner)
    }

    /// Selector of a Service in front of the pods with this value of the label.
    pub(super) fn selector_of_services(&self, selector: &str) -> Value {
        match &self.service_selector {
            Some(replaced) => json!(replaced),
            None => self.pod_labels(selector),
        }
    }

    /// Labels by which the pods with this value of the label are found.
    pub(super) fn pod_labels(&self, selector: &str) -> Value {
        json!({labels::APP: self.name, labels::SELECTOR: selector})
    }

    /// Metadata of a child; the labels given here are set over the user's.
    pub(super) fn metadata(&self, name: &str, own: &[(&str, &str)], users: ChildMetadata) -> Value {
        let mut all = users.labels;
        let common = [(labels::APP, self.name.as_str()), (labels::MANAGED_BY, labels::MANAGED_BY_DATA_PLANE)];
        for (label, value) in common.iter().chain(own) {
            all.insert((*label).to_owned(), Value::from(*value));
        }
        let mut metadata = json!({
            "name": name,
            "namespace": self.namespace,
            "labels": all,
            "ownerReferences": [{
                "apiVersion": API_VERSION,
                "kind": "DataPlane",
                "name": self.name,
                "uid": self.uid,
                "controller": true,
            }],
        });
        if !users.annotations.is_empty() {
            metadata["annotations"] = Value::Object(users.annotations);
        }
        metadata
    }
}

/// Labels and annotations that a spec asks for on a child, without the reserved ones.
#[derive(Clone, Debug, Default)]
pub(super) struct ChildMetadata {
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
}

impl ChildMetadata {
    /// Those of the part of a spec at a path.
    pub fn of(spec: &Value, path: &'static [&'static str]) -> Result<Self, InvalidTemplate> {
        let place = format!("spec.{}", path.join("."));
        let place = FieldPlace::root(&place);
        let part = at(spec, path);
        let read = |field: &str| match part.and_then(|part| at(part, &[field])) {
            Some(value) => allowed(value, &place.field(field)),
            None => Ok(Map::new()),
        };
        Ok(Self { labels: read("labels")?, annotations: read("annotations")? })
    }
}

fn allowed(value: &Value, place: &FieldPlace<'_>) -> Result<Map<String, Value>, InvalidTemplate> {
    let all = place.object(value)?.iter().filter(|(_, value)| !value.is_null());
    let allowed = all.filter(|(name, _)| !labels::is_reserved(name));
    allowed
        .map(|(name, value)| {
            place.element(name).string(value)?;
            Ok((name.clone(), value.clone()))
        })
        .collect()
}

/// Reads the annotation that replaces the selector of Services.
fn service_selector(text: &str) -> Result<BTreeMap<String, String>, InvalidTemplate> {
    let annotations = FieldPlace::root("metadata.annotations");
    service_selector::parse(text)
        .ok_or_else(|| annotations.element(meta::SERVICE_SELECTOR_OVERRIDE).has(TemplateProblem::Selector))
}
