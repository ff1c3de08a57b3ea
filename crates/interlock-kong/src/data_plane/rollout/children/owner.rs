//! The DataPlane that children belong to, and the metadata that they have from it.

use std::collections::BTreeMap;

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use serde_json::{Map, Value, json};

use super::invalid::{FieldPlace, InvalidTemplate, TemplateProblem, at};
use crate::api::{API_VERSION, labels};
use crate::data_plane::rollout::children::service_selector;
use crate::data_plane::rollout::kept::KeptChildren;
use crate::data_plane::rollout::side::{
    Colour, DeploymentIdentity, SideState, admin_name, certificate_name, ingress_name,
};

/// The longest value of a label.
const LONGEST: usize = 63;

/// A DataPlane as the owner of its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPlaneOwner {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Selector of all its Services, where its annotation replaces the usual one.
    pub service_selector: Option<BTreeMap<String, String>>,
    /// Names that are not those that Interlock gives: those of one that was taken over.
    pub kept: Option<KeptChildren>,
}

impl DataPlaneOwner {
    /// Reads a DataPlane, of which `kept` was taken over.
    pub fn of(object: &Value, kept: Option<KeptChildren>) -> Result<Self, InvalidTemplate> {
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
            kept,
        };
        if owner.name.len() > LONGEST {
            return Err(metadata.field("name").has(TemplateProblem::TooLong));
        }
        Ok(owner)
    }

    /// Name and selector of the Deployment of a colour.
    pub fn identity(&self, colour: Colour) -> DeploymentIdentity {
        match &self.kept {
            Some(kept) => kept.identity(&self.name, &self.uid, colour),
            None => DeploymentIdentity::of(&self.name, &self.uid, colour),
        }
    }

    /// Value of the label that selects the pods of a colour.
    pub fn selector(&self, colour: Colour) -> String {
        self.identity(colour).selector
    }

    /// The colour with that selector; `None` for a selector that another operator made.
    pub fn colour_of(&self, selector: &str) -> Option<Colour> {
        [Colour::Blue, Colour::Green].into_iter().find(|colour| self.selector(*colour) == selector)
    }

    /// Name of the ingress Service, unless the spec fixes one.
    pub fn ingress_name(&self, state: SideState) -> String {
        let kept = self.kept.as_ref().and_then(|kept| match state {
            SideState::Live => Some(&kept.ingress),
            SideState::Preview => kept.preview_ingress.as_ref(),
        });
        kept.cloned().unwrap_or_else(|| ingress_name(&self.name, state))
    }

    /// Name of the admin Service.
    pub fn admin_name(&self, state: SideState) -> String {
        let kept = self.kept.as_ref().and_then(|kept| match state {
            SideState::Live => Some(&kept.admin),
            SideState::Preview => kept.preview_admin.as_ref(),
        });
        kept.cloned().unwrap_or_else(|| admin_name(&self.name, state))
    }

    /// Name of the Secret that the pods mount for the certificate of their Admin API.
    pub fn certificate_name(&self) -> String {
        let kept = self.kept.as_ref().and_then(|kept| kept.certificates.first());
        kept.cloned().unwrap_or_else(|| certificate_name(&self.name))
    }

    /// The pod template that is kept for a Deployment made from a spec.
    pub(super) fn kept_template(&self, deployment: &DeploymentIdentity, spec: &Value) -> Option<&Value> {
        self.kept.as_ref()?.template_of(deployment, spec)
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
