//! A DataPlane as its rollout reads it.

use interlock_core::api::condition::Condition;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, ObjectKey, annotation, meta_str};
use interlock_core::effect::{Effect, Note, Severity};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize as _;
use serde_json::Value;

use crate::api::DataPlaneSpec;
use crate::api::stamp::LiveStamp;
use crate::data_plane::flavor::environment::Surroundings;
use crate::data_plane::flavor::reading::FlavorReading;
use crate::data_plane::flavor::sources::Sources;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::promotion;
use crate::data_plane::rollout::report::ROLLED_OUT;

/// How long the former side is kept after a promotion, unless the annotation
/// [`meta::PROMOTION_GRACE_PERIOD`] says otherwise.
const GRACE_PERIOD: SignedDuration = SignedDuration::from_secs(30);

/// A DataPlane.
#[derive(Clone, Debug)]
pub struct DataPlaneView<'a> {
    pub object: &'a Value,
    pub key: ObjectKey,
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.resourceVersion`.
    pub resource_version: &'a str,
}

impl<'a> DataPlaneView<'a> {
    /// Reads one; `None` for what the API server did not store.
    pub fn of(object: &'a Value) -> Option<Self> {
        Some(Self {
            object,
            key: ObjectKey::of(object)?,
            namespace: meta_str(object, "namespace")?,
            name: meta_str(object, "name")?,
            uid: meta_str(object, "uid")?,
            generation: object["metadata"]["generation"].as_i64()?,
            resource_version: meta_str(object, "resourceVersion")?,
        })
    }

    /// The key of another object of its namespace.
    pub fn key_of(&self, api_version: &str, kind: &str, name: impl Into<String>) -> ObjectKey {
        let namespace = Some(self.namespace.to_owned());
        ObjectKey { gvk: Gvk::new(api_version, kind), namespace, name: name.into() }
    }

    /// A patch of it, on the version that was read.
    pub fn patch(&self, patch: Value) -> Effect {
        let resource_version = self.resource_version.to_owned();
        Effect::Patch { key: self.key.clone(), resource_version, patch }
    }

    /// A write of its status, on the version that was read.
    pub fn write_status(&self, status: Value) -> Effect {
        let resource_version = self.resource_version.to_owned();
        Effect::Status { key: self.key.clone(), resource_version, status }
    }

    /// An Event about it.
    pub fn event(&self, severity: Severity, reason: &str, message: String) -> Effect {
        let note = Note { severity, reason: reason.to_owned(), message };
        Effect::Event { key: self.key.clone(), uid: self.uid.to_owned(), note }
    }

    pub fn spec(&self) -> &'a Value {
        &self.object["spec"]
    }

    /// Whether changes are staged.
    pub fn is_blue_green(&self) -> bool {
        live_spec::is_staged(self.spec())
    }

    /// Whether a promotion needs no request: Kong's `AutomaticPromotion`.
    pub fn promotes_automatically(&self) -> bool {
        promotion::is_automatic(self.spec())
    }

    /// The spec as it would be live: all of it but the description of the rollout.
    pub fn wanted_spec(&self) -> Value {
        live_spec::after(None, self.spec())
    }

    /// The router flavor of a spec of it; `None` where the spec cannot be read.
    pub fn flavor(&self, spec: &Value, sources: &dyn Sources) -> Option<FlavorReading> {
        flavor_of(spec, self.namespace, sources)
    }

    /// The last-applied annotation, if it is of this object.
    pub fn stamp(&self) -> Option<LiveStamp<'a>> {
        LiveStamp::of_object(self.object).ok()
    }

    /// `status.selector`: the live side as it was last reported.
    pub fn reported_selector(&self) -> Option<&'a str> {
        self.object["status"]["selector"].as_str().filter(|selector| !selector.is_empty())
    }

    /// `status.conditions`.
    pub fn conditions(&self) -> Vec<Condition> {
        conditions(&self.object["status"])
    }

    /// The condition `RolledOut`.
    pub fn rolled_out(&self) -> Option<Condition> {
        self.rollout_condition(ROLLED_OUT)
    }

    /// A condition of its rollout.
    pub fn rollout_condition(&self, type_: &str) -> Option<Condition> {
        let rollout = conditions(&self.object["status"]["rollout"]);
        rollout.into_iter().find(|condition| condition.type_ == type_)
    }

    /// How long the former side is kept after a promotion. What is no duration counts as absent.
    pub fn grace_period(&self) -> SignedDuration {
        let written = annotation(self.object, meta::PROMOTION_GRACE_PERIOD);
        written.and_then(parse_grace_period).unwrap_or(GRACE_PERIOD)
    }

    /// The kind of its owner, if that is one which Kong's operator reconciles it for: a controller, or a Gateway or a
    /// ControlPlane in any case.
    pub fn other_owner(&self) -> Option<&'a str> {
        const OF_KONG: [&str; 2] = ["Gateway", "ControlPlane"];
        let references = self.object["metadata"]["ownerReferences"].as_array()?;
        let kind = |reference: &'a Value| reference["kind"].as_str().unwrap_or_default();
        let owns = |reference: &&Value| {
            reference["controller"] == true
                || reference["kind"].as_str().is_some_and(|kind| OF_KONG.contains(&kind))
        };
        references.iter().find(owns).map(kind)
    }
}

/// The router flavor of a spec; `None` where it cannot be read.
pub fn flavor_of(spec: &Value, namespace: &str, sources: &dyn Sources) -> Option<FlavorReading> {
    let template = DataPlaneSpec::deserialize(spec).ok()?.deployment.pod_template_spec;
    let surroundings = Surroundings { namespace, template: &template.metadata, sources };
    Some(FlavorReading::of(&template, surroundings))
}

/// The value of [`meta::PROMOTION_GRACE_PERIOD`], if it is a time.
pub fn parse_grace_period(text: &str) -> Option<SignedDuration> {
    text.trim().parse().ok().filter(|period: &SignedDuration| !period.is_negative())
}

fn conditions(status: &Value) -> Vec<Condition> {
    let listed = status["conditions"].as_array().into_iter().flatten();
    listed.filter_map(|condition| serde_json::from_value(condition.clone()).ok()).collect()
}

/// Since when a condition has its status; since when the condition of a rollout has its reason.
pub fn since(condition: &Condition) -> Timestamp {
    condition.last_transition_time.0
}
