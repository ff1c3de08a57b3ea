//! The annotation `interlock.dev/last-applied-spec` of a DataPlane: the spec of its live pods.
//!
//! The envelope of [`interlock_core::api::stamp`], with the spec as it is written, and three more members.

use std::borrow::Cow;

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use interlock_core::api::stamp::SpecHash;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

/// Member of the envelope: value of the label that distinguishes live pods, Kong's
/// `status.selector`.
pub const SELECTOR: &str = "selector";
/// Member of the envelope: the router flavor of the live pods, where it was known.
pub const FLAVOR: &str = "flavor";
/// Member of the envelope: the part of a referenced spec that decides its router flavor. Admission
/// reads no ControllerRevisions.
pub const FLAVOR_SPEC: &str = "flavorSpec";

/// The envelope of a DataPlane's live spec.
#[derive(Clone, Debug, Deserialize)]
pub struct LiveStamp<'a> {
    v: u8,
    pub hash: SpecHash,
    /// The spec, without `deployment.rollout`; absent where it was too large.
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "flavorSpec")]
    flavor_spec: Option<&'a RawValue>,
    /// The last spec that the API server accepted in every child, while it has not accepted `spec`.
    #[serde(borrow, default)]
    pub previous: Option<PreviousSpec<'a>>,
    /// Uid of the DataPlane, where it was known.
    #[serde(borrow, default)]
    pub uid: Option<Cow<'a, str>>,
    /// Value of the label of the live pods.
    #[serde(borrow, default)]
    pub selector: Option<Cow<'a, str>>,
    /// The router flavor of the live pods.
    #[serde(borrow, default)]
    pub flavor: Option<Cow<'a, str>>,
}

/// The spec that was live before an edit in place.
#[derive(Clone, Debug, Deserialize)]
pub struct PreviousSpec<'a> {
    pub hash: SpecHash,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
}

impl<'a> PreviousSpec<'a> {
    /// The spec as canonical JSON, where the envelope holds it and its hash is that of it.
    pub fn spec(&self) -> Option<&'a str> {
        self.spec.map(RawValue::get).filter(|spec| SpecHash::of(spec) == self.hash)
    }
}

/// The selectors that the status of a DataPlane names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSelectors {
    /// `status.selector`: that of the live pods.
    pub live: Option<String>,
    /// `status.rollout.deployment.selector`: that of the preview.
    pub preview: Option<String>,
}

impl StatusSelectors {
    pub fn of(status: &Value) -> Self {
        let text = |pointer: &str| {
            let found = status.pointer(pointer).and_then(Value::as_str);
            found.filter(|selector| !selector.is_empty()).map(str::to_owned)
        };
        Self { live: text("/selector"), preview: text("/rollout/deployment/selector") }
    }
}

/// Why the live spec of a DataPlane is not known from its annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoStamp {
    /// There is no annotation.
    #[error("annotation interlock.dev/last-applied-spec is missing")]
    Missing,
    /// It is no envelope, or its hash is not that of its spec.
    #[error("annotation interlock.dev/last-applied-spec cannot be read")]
    Unreadable,
    /// Its uid is that of another object.
    #[error("annotation interlock.dev/last-applied-spec was copied from another object")]
    OfAnotherObject,
    /// Its selector is neither that of the live pods nor that of the preview.
    #[error("another operator has promoted since annotation interlock.dev/last-applied-spec was written")]
    Superseded,
}

impl<'a> LiveStamp<'a> {
    /// The annotation of an object, if it is valid for it.
    pub fn of_object(object: &'a Value) -> Result<Self, NoStamp> {
        let text = annotation(object, meta::LAST_APPLIED_SPEC).ok_or(NoStamp::Missing)?;
        let stamp = Self::parse(text).ok_or(NoStamp::Unreadable)?;
        let selectors = StatusSelectors::of(&object["status"]);
        match stamp.tells_of(meta_str(object, "uid"), &selectors) {
            true => Ok(stamp),
            false if stamp.is_own(meta_str(object, "uid")) => Err(NoStamp::Superseded),
            false => Err(NoStamp::OfAnotherObject),
        }
    }

    /// Reads the annotation's value; `None` where it is none, or its hash is not that of its spec.
    pub fn parse(text: &'a str) -> Option<Self> {
        let stamp: Self = serde_json::from_str(text).ok().filter(|stamp: &Self| stamp.v == 1)?;
        stamp.spec().is_none_or(|spec| SpecHash::of(spec) == stamp.hash).then_some(stamp)
    }

    /// Whether it describes the object with that uid, whose status names these selectors.
    ///
    /// A different uid shows that the stamp was copied from another object. A selector that is neither
    /// the live one nor the preview's shows that a promotion has made the stored spec live since: Kong's
    /// operator changes `status.selector` only with a promotion, and spec edits wait for its end. A
    /// promotion of Interlock's writes the stamp with the preview's selector first, and the status
    /// follows.
    pub fn tells_of(&self, uid: Option<&str>, selectors: &StatusSelectors) -> bool {
        let own = self.selector.as_deref();
        let named = |selector: &Option<String>| own.is_some() && own == selector.as_deref();
        self.is_own(uid) && (selectors.live.is_none() || named(&selectors.live) || named(&selectors.preview))
    }

    fn is_own(&self, uid: Option<&str>) -> bool {
        self.uid.is_none() || self.uid.as_deref() == uid
    }

    /// The spec as canonical JSON, where the envelope holds it.
    pub fn spec(&self) -> Option<&'a str> {
        self.spec.map(RawValue::get)
    }

    /// The spec of the live pods, as far as the envelope holds it: the previous one while that stands.
    pub fn live_spec(&self) -> Option<&'a str> {
        match &self.previous {
            Some(previous) => previous.spec(),
            None => self.spec(),
        }
    }

    /// The part of a referenced spec that decides its router flavor, as JSON.
    pub fn flavor_spec(&self) -> Option<&'a str> {
        self.flavor_spec.map(RawValue::get)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::whole(json!({"v": 1, "hash": SpecHash::of("{\"a\":1}"), "spec": {"a": 1}, "selector": "s-1", "flavor": "expressions"}), true)]
    #[case::referenced(json!({"v": 1, "hash": "sha256:0", "ref": "ControllerRevision", "flavorSpec": {}}), true)]
    #[case::bare(json!({"v": 1, "hash": "sha256:0", "ref": "ControllerRevision"}), true)]
    #[case::another_hash(json!({"v": 1, "hash": "sha256:0", "spec": {"a": 1}}), false)]
    #[case::another_format(json!({"v": 2, "hash": SpecHash::of("{}"), "spec": {}}), false)]
    #[case::no_hash(json!({"v": 1}), false)]
    fn what_is_no_envelope_says_nothing(#[case] envelope: serde_json::Value, #[case] read: bool) {
        assert_eq!(LiveStamp::parse(&envelope.to_string()).is_some(), read);
    }

    const LIVE: &str = "11111111-blue";
    const PREVIEW: &str = "22222222-green";
    const NEXT: &str = "33333333-next";

    fn status(selector: Option<&str>, preview: Option<&str>) -> serde_json::Value {
        let mut status = json!({});
        if let Some(selector) = selector {
            status["selector"] = json!(selector);
        }
        if let Some(preview) = preview {
            status["rollout"] = json!({"deployment": {"selector": preview}});
        }
        status
    }

    /// Each row is the state between two writes of a promotion.
    #[rstest]
    #[case::no_status_yet(None, status(None, None), Ok(()))]
    #[case::no_selector_in_the_stamp(None, status(Some(LIVE), None), Err(NoStamp::Superseded))]
    #[case::no_selector_anywhere_but_in_the_preview(
        None,
        status(Some(LIVE), Some(PREVIEW)),
        Err(NoStamp::Superseded)
    )]
    #[case::idle(Some(LIVE), status(Some(LIVE), None), Ok(()))]
    #[case::staged(Some(LIVE), status(Some(LIVE), Some(PREVIEW)), Ok(()))]
    // Kong's operator: status.selector, then the labels and Services, then the preview's selector goes,
    // and the next reconcile makes another one.
    #[case::kong_has_begun(Some(LIVE), status(Some(PREVIEW), Some(PREVIEW)), Err(NoStamp::Superseded))]
    #[case::kong_is_done(Some(LIVE), status(Some(PREVIEW), None), Err(NoStamp::Superseded))]
    #[case::kong_is_idle(Some(LIVE), status(Some(PREVIEW), Some(NEXT)), Err(NoStamp::Superseded))]
    // Interlock: the stamp, then the status with the colours exchanged.
    #[case::ours_is_committed(Some(PREVIEW), status(Some(LIVE), Some(PREVIEW)), Ok(()))]
    #[case::ours_has_moved_the_selector(Some(PREVIEW), status(Some(PREVIEW), Some(PREVIEW)), Ok(()))]
    #[case::ours_is_idle(Some(PREVIEW), status(Some(PREVIEW), Some(LIVE)), Ok(()))]
    #[case::ours_without_a_preview(Some(PREVIEW), status(Some(PREVIEW), None), Ok(()))]
    #[case::unknown(Some(NEXT), status(Some(LIVE), Some(PREVIEW)), Err(NoStamp::Superseded))]
    fn a_stamp_holds_between_any_two_writes_of_a_promotion(
        #[case] selector: Option<&str>,
        #[case] status: serde_json::Value,
        #[case] expected: Result<(), NoStamp>,
    ) {
        let mut stamp = json!({"v": 1, "hash": SpecHash::of("{}"), "spec": {}, "uid": "u-1"});
        if let Some(selector) = selector {
            stamp["selector"] = json!(selector);
        }
        let annotations = json!({meta::LAST_APPLIED_SPEC: stamp.to_string()});
        let mut object = json!({"metadata": {"uid": "u-1", "annotations": annotations}, "status": status});
        assert_eq!(LiveStamp::of_object(&object).map(drop), expected);
        object["metadata"]["uid"] = json!("u-2");
        assert_eq!(LiveStamp::of_object(&object).map(drop), Err(NoStamp::OfAnotherObject));
    }

    #[rstest]
    #[case::missing(json!({}), NoStamp::Missing)]
    #[case::nonsense(json!({meta::LAST_APPLIED_SPEC: "{"}), NoStamp::Unreadable)]
    fn an_object_without_a_stamp_says_why(#[case] annotations: serde_json::Value, #[case] why: NoStamp) {
        let object = json!({"metadata": {"annotations": annotations}});
        assert_eq!(LiveStamp::of_object(&object).map(drop), Err(why));
    }
}
