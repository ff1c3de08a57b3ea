//! The digest of a ConfigMap or Secret that pods use: what counts of it in `kudo.dev/dependencies-hash` (KUDO
//! `renderer/dependencies.go: sanitizeAndSerialize`).
//!
//! KUDO takes the MD5 of the object as yaml.v2 writes it, without what the API server and plans add. It reads
//! rendered objects into Go's structs before: fields that these do not have are gone, and empty ones too.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use go_template::yaml;
use md5::{Digest as _, Md5};
use serde_json::{Map, Value, json};

use crate::api::meta;
use crate::api::object::{Gvk, annotation, meta_str};

/// A field as Go's structs hold it; `None` where it is empty.
type ReadField = fn(&Value) -> Option<Value>;

/// The kinds that pods take their configuration from, in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigKind {
    /// ConfigMap.
    ConfigMap,
    /// Secret.
    Secret,
}

impl ConfigKind {
    /// The kind of an object, if it is one of these.
    pub fn of(gvk: &Gvk) -> Option<Self> {
        [Self::ConfigMap, Self::Secret].into_iter().find(|kind| kind.gvk() == *gvk)
    }

    /// Its group, version and name.
    pub fn gvk(self) -> Gvk {
        Gvk::new("v1", self.name())
    }

    fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// The fields that count, each with how Go reads it.
    fn fields(self) -> &'static [(&'static str, ReadField)] {
        match self {
            Self::ConfigMap => &[("data", texts), ("binaryData", bytes), ("immutable", any)],
            Self::Secret => &[("data", bytes), ("stringData", texts), ("type", text), ("immutable", any)],
        }
    }
}

/// What counts of a ConfigMap or Secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfigDigest {
    /// MD5 of its content; zeros where it does not exist or shall not count.
    pub md5: [u8; 16],
    /// Bytes of the content.
    pub bytes: usize,
}

impl ConfigDigest {
    /// Of an object that a task renders.
    pub fn of_rendered(kind: ConfigKind, object: &Value) -> Self {
        if annotation(object, meta::SKIP_HASH_CALCULATION).is_some() {
            return Self::default();
        }
        let text = yaml::write(&content(kind, object));
        Self { md5: Md5::digest(&text).into(), bytes: text.len() }
    }

    /// Of an object of the cluster: of what a task applied last, if one did, as the API server adds to it.
    pub fn of_live(kind: ConfigKind, object: &Value) -> Self {
        let applied = annotation(object, meta::LAST_APPLIED_CONFIGURATION);
        let applied = applied.and_then(|text| serde_json::from_str(text).ok()).filter(Value::is_object);
        Self::of_rendered(kind, applied.as_ref().unwrap_or(object))
    }
}

/// What is hashed; what is empty is what KUDO clears.
fn content(kind: ConfigKind, object: &Value) -> Value {
    let mut metadata = json!({
        "annotations": {},
        "deletionGracePeriodSeconds": 0,
        "finalizers": [],
        "managedFields": [],
        "ownerReferences": [],
        "remainingItemCount": 0,
    });
    for field in ["name", "deletionTimestamp"] {
        if let Some(text) = meta_str(object, field) {
            metadata[field] = text.into();
        }
    }
    if let Some(labels) = texts(&object["metadata"]["labels"]) {
        metadata["labels"] = labels;
    }
    let mut content = json!({"apiVersion": "", "kind": "", "metadata": metadata});
    for (field, read) in kind.fields() {
        if let Some(value) = read(&object[field]) {
            content[field] = value;
        }
    }
    json!({"object": content})
}

/// As Go reads `map[string]string`.
fn texts(value: &Value) -> Option<Value> {
    entries(value, |value| if value.is_null() { Value::from("") } else { value.clone() })
}

/// As Go reads `map[string][]byte`, and writes it: as canonical base64, without line breaks.
fn bytes(value: &Value) -> Option<Value> {
    entries(value, |value| value.as_str().map_or_else(|| value.clone(), |text| canonical(text).into()))
}

fn text(value: &Value) -> Option<Value> {
    any(value).filter(|value| value != "")
}

fn any(value: &Value) -> Option<Value> {
    (!value.is_null()).then(|| value.clone())
}

fn entries(value: &Value, read: impl Fn(&Value) -> Value) -> Option<Value> {
    let Some(map) = value.as_object() else { return any(value) };
    let read: Map<String, Value> = map.iter().map(|(key, value)| (key.clone(), read(value))).collect();
    (!read.is_empty()).then_some(Value::Object(read))
}

/// Go's `base64.StdEncoding`, which takes any last bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

fn canonical(text: &str) -> Cow<'_, str> {
    let is_break = |c: char| matches!(c, '\r' | '\n');
    let joined: Cow<'_, str> = match text.contains(is_break) {
        true => text.chars().filter(|c| !is_break(*c)).collect::<String>().into(),
        false => text.into(),
    };
    // The API server refuses what is no base64.
    BASE64.decode(joined.as_ref()).map_or(Cow::Borrowed(text), |bytes| BASE64.encode(bytes).into())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::ConfigKind::{ConfigMap, Secret};
    use super::*;

    fn object(rest: Value) -> Value {
        let mut object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"a": "b"}}});
        json_patch::merge(&mut object, &rest);
        object
    }

    const KUDO: &str = "object:\n  apiVersion: \"\"\n  data:\n    k: v\n  kind: \"\"\n  metadata:\n    annotations: {}\n    \
                        deletionGracePeriodSeconds: 0\n    finalizers: []\n    labels:\n      a: b\n    managedFields: []\n    \
                        name: x\n    ownerReferences: []\n    remainingItemCount: 0\n";

    #[test]
    fn the_text_is_that_of_kudo() {
        assert_eq!(yaml::write(&content(ConfigMap, &object(json!({"data": {"k": "v"}})))), KUDO);
    }

    /// What the API server, plans and people add.
    #[rstest]
    #[case::by_the_server(json!({"metadata": {
        "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "x"}], "selfLink": "/x", "generateName": "x-"}}))]
    #[case::by_a_plan(json!({"metadata": {
        "annotations": {"kudo.dev/plan": "deploy"}, "ownerReferences": [{"uid": "u"}], "finalizers": ["x/y"]}}))]
    #[case::as_a_struct(json!({"metadata": {"creationTimestamp": null}, "binaryData": {}}))]
    #[case::without_a_kind(json!({"apiVersion": null, "kind": null}))]
    #[case::a_field_that_there_is_not(json!({"stringData": {"a": "b"}, "spec": 1, "metadata": {"x": "y"}}))]
    fn what_does_not_count(#[case] added: Value) {
        let plain = object(json!({"data": {"k": "v"}}));
        let mut other = plain.clone();
        // Not a merge, which would drop null.
        for (field, value) in added.as_object().unwrap() {
            match (field.as_str(), value) {
                ("metadata", Value::Object(more)) => {
                    other["metadata"].as_object_mut().unwrap().extend(more.clone());
                }
                _ => other[field] = value.clone(),
            }
        }
        assert_eq!(
            ConfigDigest::of_rendered(ConfigMap, &other),
            ConfigDigest::of_rendered(ConfigMap, &plain)
        );
    }

    #[rstest]
    #[case::data(json!({"data": {"k": "w"}}))]
    #[case::a_label(json!({"metadata": {"labels": {"a": "c"}}}))]
    #[case::name(json!({"metadata": {"name": "y"}}))]
    #[case::immutable(json!({"immutable": false}))]
    #[case::being_deleted(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))]
    fn what_counts(#[case] change: Value) {
        let (plain, other) = (object(json!({})), object(change));
        assert_ne!(
            ConfigDigest::of_rendered(ConfigMap, &other).md5,
            ConfigDigest::of_rendered(ConfigMap, &plain).md5
        );
    }

    /// As Go's structs hold them.
    #[rstest]
    #[case::lines(json!({"data": {"a": "aGVs\nbG8=\n"}}), json!({"data": {"a": "aGVsbG8="}}))]
    #[case::last_bits(json!({"data": {"a": "aGVsbG9="}}), json!({"data": {"a": "aGVsbG8="}}))]
    #[case::no_type(json!({"type": ""}), json!({}))]
    #[case::empty(json!({"data": {}, "stringData": {}}), json!({}))]
    fn secrets_are_read_as_by_go(#[case] rendered: Value, #[case] same: Value) {
        assert_eq!(content(Secret, &object(rendered)), content(Secret, &object(same)));
    }

    #[test]
    fn what_was_applied_counts_before_what_is_there() {
        let applied = object(json!({"data": {"k": "v"}}));
        let mut live = object(json!({"data": {"k": "changed"}}));
        assert_eq!(ConfigDigest::of_live(ConfigMap, &live), ConfigDigest::of_rendered(ConfigMap, &live));
        for text in [applied.to_string(), format!("{applied}\n")] {
            live["metadata"]["annotations"] = json!({"kudo.dev/last-applied-configuration": text});
            assert_eq!(
                ConfigDigest::of_live(ConfigMap, &live),
                ConfigDigest::of_rendered(ConfigMap, &applied)
            );
        }
        live["metadata"]["annotations"] = json!({"kudo.dev/last-applied-configuration": "{"});
        assert_eq!(ConfigDigest::of_live(ConfigMap, &live), ConfigDigest::of_rendered(ConfigMap, &live));
    }

    /// KUDO looks at the annotations of what it hashes: beside a last applied configuration, at those in it.
    #[test]
    fn what_shall_not_count_is_zeros() {
        let skip = json!({"kudo.dev/skip-hash-calculation": ""});
        let mut object = object(json!({"data": {"k": "v"}}));
        let applied = object.to_string();
        object["metadata"]["annotations"] = skip;
        assert_eq!(ConfigDigest::of_live(Secret, &object), ConfigDigest::default());
        object["metadata"]["annotations"]["kudo.dev/last-applied-configuration"] = applied.into();
        assert_ne!(ConfigDigest::of_live(Secret, &object), ConfigDigest::default());
    }
}
