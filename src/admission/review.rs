//! The wire: AdmissionReview in, AdmissionReview out.
//!
//! Decoding borrows from the body and makes one pass over it: `spec` and `status` stay raw text
//! until a rule reads them. Both `admission.k8s.io/v1` and `v1beta1` (what KUDO's webhook
//! configuration asks for) are read, and answered in kind.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use super::door::BadReview;
use super::verdict::{Outcome, Refusal, Rendered, Verdict};
use super::{patch, stamp};
use crate::api::meta;
use crate::api::text::{Text, json_string};

/// Why a body is no review; answered with HTTP 400 and this text.
#[derive(Debug, Error)]
pub enum Malformed {
    /// Not UTF-8.
    #[error("the body is not UTF-8 (byte {0}): send an AdmissionReview as JSON")]
    Encoding(usize),
    /// Not JSON, or not of the shape of an AdmissionReview.
    #[error("the body is not an AdmissionReview: {0}")]
    Json(#[from] serde_json::Error),
    /// Another kind or version.
    #[error(
        "apiVersion {api_version:?}, kind {kind:?} is not known here: send kind AdmissionReview of \
         admission.k8s.io/v1 or admission.k8s.io/v1beta1"
    )]
    Version {
        /// What came.
        api_version: String,
        /// What came.
        kind: String,
    },
    /// Nothing to decide on.
    #[error("the AdmissionReview has no request: set request, with its uid")]
    NoRequest,
    /// The answer could not be written.
    #[error("the answer could not be written as JSON: {0}")]
    Encode(#[source] serde_json::Error),
}

impl From<Malformed> for BadReview {
    fn from(malformed: Malformed) -> Self {
        Self(malformed.to_string())
    }
}

/// Version of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `admission.k8s.io/v1`
    V1,
    /// `admission.k8s.io/v1beta1`
    V1Beta1,
}

impl Version {
    fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default, deserialize_with = "optional")]
    request: Option<Review<'a>>,
}

/// Reads a JSON object or null, and nothing else: a derived struct would take a list as well.
fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    struct Members<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(Members(PhantomData))
}

fn object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    optional(deserializer).map(Option::unwrap_or_default)
}

/// `request` of a review, as far as rules read it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review<'a> {
    /// Identity of the request, repeated in the answer.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// Kind of the object, after conversion to what the webhook is registered for.
    #[serde(borrow, default)]
    pub kind: Kind<'a>,
    /// Subresource, absent for the object itself.
    #[serde(borrow, default)]
    pub sub_resource: Option<Text<'a>>,
    /// Name; absent in the mutating call of a CREATE with generateName, and in deletecollection.
    #[serde(borrow, default)]
    pub name: Option<Text<'a>>,
    /// Namespace.
    #[serde(borrow, default)]
    pub namespace: Option<Text<'a>>,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    #[serde(borrow, default)]
    pub operation: Text<'a>,
    /// Who asks.
    #[serde(borrow, default)]
    pub user_info: UserInfo<'a>,
    /// The object as it would be.
    #[serde(borrow, default, deserialize_with = "optional")]
    pub object: Option<Object<'a>>,
    /// The object as it is.
    #[serde(borrow, default, deserialize_with = "optional")]
    pub old_object: Option<Object<'a>>,
    /// Whether nothing will be stored.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// Bytes of `object` as JSON, or of the whole body where that is small.
    #[serde(skip)]
    pub object_size: usize,
}

/// Kind of the object of a review.
#[derive(Debug, Default, Deserialize)]
pub struct Kind<'a> {
    /// Group.
    #[serde(borrow, default)]
    pub group: Text<'a>,
    /// Version.
    #[serde(borrow, default)]
    pub version: Text<'a>,
    /// Kind.
    #[serde(borrow, default)]
    pub kind: Text<'a>,
}

/// User of a review.
#[derive(Debug, Default, Deserialize)]
pub struct UserInfo<'a> {
    /// Name of the user.
    #[serde(borrow, default)]
    pub username: Option<Text<'a>>,
}

/// An object of a review; `spec` and `status` are text until somebody reads them.
#[derive(Debug, Default, Deserialize)]
pub struct Object<'a> {
    /// Metadata, as far as rules read it.
    #[serde(borrow, default, deserialize_with = "object")]
    pub metadata: Metadata<'a>,
    /// The spec.
    #[serde(borrow, default)]
    pub spec: Option<&'a RawValue>,
    /// The status.
    #[serde(borrow, default)]
    pub status: Option<&'a RawValue>,
}

/// Metadata, as far as rules read it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata<'a> {
    /// Name; absent in the mutating call of a CREATE with generateName.
    #[serde(borrow, default)]
    pub name: Option<Text<'a>>,
    /// Prefix that the server makes a name from.
    #[serde(borrow, default)]
    pub generate_name: Option<Text<'a>>,
    /// Namespace.
    #[serde(borrow, default)]
    pub namespace: Option<Text<'a>>,
    /// Identity; on UPDATE only that of `oldObject` counts, as a PUT may leave it out.
    #[serde(borrow, default)]
    pub uid: Option<Text<'a>>,
    /// Version in etcd.
    #[serde(borrow, default)]
    pub resource_version: Option<Text<'a>>,
    /// Set when the object is being deleted.
    #[serde(borrow, default)]
    pub deletion_timestamp: Option<Text<'a>>,
    /// Finalizers.
    #[serde(borrow, default)]
    pub finalizers: Option<Vec<Text<'a>>>,
    /// Annotations.
    #[serde(borrow, default)]
    pub annotations: Annotations<'a>,
}

/// Annotations: ours as text, of the others only the size.
#[derive(Debug, Default)]
pub struct Annotations<'a> {
    /// Whether the object has the map at all.
    pub present: bool,
    /// Whether the map has the key of the stamp, with whatever value.
    pub has_stamp: bool,
    /// `interlock.dev/last-applied-spec`, as it stands in the review.
    pub stamp: Option<&'a RawValue>,
    /// Bytes of `plan.interlock.dev/history` with its key, counted as `others` are; 0 without it.
    pub history: usize,
    /// Bytes of the keys and of the JSON of the values of all others: no less than what the API
    /// server counts.
    pub others: usize,
}

impl<'a> Annotations<'a> {
    /// The JSON of the stamp: equal where the stamps are, as one writer wrote both.
    pub fn stamp_json(&self) -> Option<&'a str> {
        self.stamp.map(RawValue::get)
    }

    /// Whether all annotations together fit in any case: JSON is never shorter than what it says.
    pub fn surely_fit(&self) -> bool {
        stamp::holds(self.others, self.stamp_json(), self.history)
    }

    /// The stamp.
    pub fn stamp_text(&self) -> Option<Cow<'a, str>> {
        serde_json::from_str::<Text<'a>>(self.stamp?.get()).ok().map(|text| text.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Annotations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen;

        impl<'de> Visitor<'de> for Seen {
            type Value = Annotations<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of annotations")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Annotations::default())
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut annotations = Annotations { present: true, ..Annotations::default() };
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    if key.as_str() == meta::LAST_APPLIED_SPEC {
                        annotations.has_stamp = true;
                        annotations.stamp = map.next_value::<Option<&RawValue>>()?;
                    } else {
                        let value: &RawValue = map.next_value()?;
                        let size = key.len() + decoded_length(value);
                        match key.as_str() {
                            meta::HISTORY => annotations.history += size,
                            _ => annotations.others += size,
                        }
                    }
                }
                Ok(annotations)
            }
        }

        deserializer.deserialize_any(Seen)
    }
}

/// A body up to this size holds no object that is near a limit.
const OBJECT_SMALL: usize = 512 * 1024;

/// From here on the length of a string is counted without its escapes: a large annotation is
/// often JSON itself, with an escape at each quote.
const COUNTED_EXACTLY: usize = 16 * 1024;

/// Length of a string of a document: never less than what it decodes to, and exact where it
/// matters.
fn decoded_length(value: &RawValue) -> usize {
    let raw = value.get();
    if raw.len() < COUNTED_EXACTLY {
        return raw.len();
    }
    serde_json::from_str::<Text<'_>>(raw).map_or(raw.len(), |text| text.len())
}

#[derive(Deserialize)]
struct Sizes<'a> {
    #[serde(borrow)]
    request: SizesOf<'a>,
}

#[derive(Deserialize)]
struct SizesOf<'a> {
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

/// Bytes of the object as JSON, or of the whole body where that is small anyway.
fn object_size(text: &str, small: usize) -> usize {
    if text.len() <= small {
        return text.len();
    }
    let sizes: Result<Sizes<'_>, _> = serde_json::from_str(text);
    sizes.ok().and_then(|sizes| sizes.request.object).map_or(text.len(), |raw| raw.get().len())
}

/// Reads a body.
pub fn decode(body: &[u8]) -> Result<(Version, Review<'_>), Malformed> {
    let text = std::str::from_utf8(body).map_err(|e| Malformed::Encoding(e.valid_up_to()))?;
    let envelope: Envelope<'_> = serde_json::from_str(text)?;
    let version = match (envelope.api_version.as_str(), envelope.kind.as_str()) {
        ("admission.k8s.io/v1", "AdmissionReview") => Version::V1,
        ("admission.k8s.io/v1beta1", "AdmissionReview") => Version::V1Beta1,
        (api_version, kind) => {
            return Err(Malformed::Version { api_version: shown(api_version), kind: shown(kind) });
        }
    };
    let mut review = envelope.request.ok_or(Malformed::NoRequest)?;
    review.object_size = object_size(text, OBJECT_SMALL);
    Ok((version, review))
}

/// The start of a string that anybody may have sent.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

#[derive(Serialize)]
struct AuditAnnotations<'a> {
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'static str,
    message: &'a str,
    reason: &'static str,
    code: u16,
    details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    name: &'a str,
    group: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "<[Cause]>::is_empty")]
    causes: &'a [Cause],
}

/// A cause of a refusal, as kubectl prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Reason, one of metav1's.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

/// Writes the answer to a review.
///
/// Put together by hand, member by member, as the patch is base64 and needs no second look.
pub fn encode(version: Version, review: &Review<'_>, verdict: &Verdict) -> Result<Vec<u8>, BadReview> {
    let refusal = verdict.refusal().map(Refusal::render);
    let mut out = String::with_capacity(1024);
    out.push_str("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"");
    out.push_str(version.as_str());
    out.push_str("\",\"response\":{\"uid\":");
    json_string(&mut out, &review.uid);
    out.push_str(if refusal.is_none() { ",\"allowed\":true" } else { ",\"allowed\":false" });
    if let Outcome::Allow { patch } = &verdict.outcome
        && !patch.0.is_empty()
    {
        out.push_str(",\"patchType\":\"JSONPatch\",\"patch\":\"");
        STANDARD.encode_string(patch::to_json(patch).map_err(Malformed::Encode)?, &mut out);
        out.push('"');
    }
    if let Some(refusal) = &refusal {
        member(&mut out, "status", &status(review, refusal))?;
    }
    let rules: Vec<&str> = verdict.rules().collect();
    let audit = AuditAnnotations {
        verdict: verdict.kind().as_str(),
        rule: (!rules.is_empty()).then(|| rules.join(",")),
        plan: verdict.plan.as_deref(),
    };
    member(&mut out, "auditAnnotations", &audit)?;
    if !verdict.warnings.is_empty() {
        member(&mut out, "warnings", &verdict.warnings)?;
    }
    out.push_str("}}");
    Ok(out.into_bytes())
}

fn member<T: Serialize>(out: &mut String, name: &str, value: &T) -> Result<(), BadReview> {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
    out.push_str(&serde_json::to_string(value).map_err(Malformed::Encode)?);
    Ok(())
}

fn status<'a>(review: &'a Review<'_>, refusal: &'a Rendered) -> Status<'a> {
    let name = review.name.as_deref().or(review.old_object.as_ref().and_then(|o| o.metadata.name.as_deref()));
    Status {
        status: "Failure",
        message: &refusal.message,
        reason: refusal.code.reason(),
        code: refusal.code.number(),
        details: Details {
            name: name.unwrap_or_default(),
            group: &review.kind.group,
            kind: &review.kind.kind,
            causes: &refusal.causes,
        },
    }
}
