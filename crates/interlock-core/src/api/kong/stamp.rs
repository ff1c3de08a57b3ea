//! The annotation `interlock.dev/last-applied-spec` of a DataPlane: the spec of its live pods.
//!
//! The envelope of [`crate::api::stamp`], with the spec as it is written, and three more members.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::stamp::SpecHash;

/// Member of the envelope: value of the label that distinguishes live pods, Kong's
/// `status.selector`.
pub const SELECTOR: &str = "selector";
/// Member of the envelope: the router flavor of the live pods, where it was known.
pub const FLAVOR: &str = "flavor";
/// Member of the envelope: the part of a referenced spec that decides its router flavor. Admission
/// reads neither ControllerRevisions nor Secrets.
pub const FLAVOR_SPEC: &str = "flavorSpec";

/// The envelope of a DataPlane's live spec.
#[derive(Clone, Debug, Deserialize)]
pub struct LiveStamp<'a> {
    v: u8,
    /// Hash of the spec.
    pub hash: SpecHash,
    /// The spec, without `deployment.rollout`; absent where it was too large.
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "flavorSpec")]
    flavor_spec: Option<&'a RawValue>,
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

impl<'a> LiveStamp<'a> {
    /// Reads the annotation's value; `None` where it is none, or its hash is not that of its spec.
    pub fn parse(text: &'a str) -> Option<Self> {
        let stamp: Self = serde_json::from_str(text).ok().filter(|stamp: &Self| stamp.v == 1)?;
        stamp.spec().is_none_or(|spec| SpecHash::of(spec) == stamp.hash).then_some(stamp)
    }

    /// Whether it describes the object with that uid, whose live pods have that selector.
    ///
    /// A different uid shows that the stamp was copied from another object. A different selector
    /// shows that a promotion has made the stored spec live since: Kong's operator changes
    /// `status.selector` only with a promotion, and spec edits wait for its end.
    pub fn tells_of(&self, uid: Option<&str>, selector: Option<&str>) -> bool {
        let own = self.uid.is_none() || self.uid.as_deref() == uid;
        own && (selector.is_none() || self.selector.as_deref() == selector)
    }

    /// The spec as canonical JSON, where the envelope holds it.
    pub fn spec(&self) -> Option<&'a str> {
        self.spec.map(RawValue::get)
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
    #[case::of_0_1(json!({"v": 1, "hash": "sha256:0", "ref": "Secret"}), true)]
    #[case::another_hash(json!({"v": 1, "hash": "sha256:0", "spec": {"a": 1}}), false)]
    #[case::another_format(json!({"v": 2, "hash": SpecHash::of("{}"), "spec": {}}), false)]
    #[case::no_hash(json!({"v": 1}), false)]
    fn what_is_no_envelope_says_nothing(#[case] envelope: serde_json::Value, #[case] read: bool) {
        assert_eq!(LiveStamp::parse(&envelope.to_string()).is_some(), read);
    }
}
