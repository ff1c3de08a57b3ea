//! Bytes in: AdmissionReview of `admission.k8s.io/v1` and of `v1beta1`, which KUDO's webhook
//! configuration asks for.
//!
//! One pass over the body; `spec` and `status` stay text until a rule reads them.

use thiserror::Error;

use super::endpoint::BadReview;
use super::kind::GuardedKind;
use super::review::{Annotations, Review, ReviewKind, ReviewMetadata, ReviewObject, UserInfo};
use super::string_map::StringMap;
use crate::api::json::{JsonError, Raw, Scanner, SeenMembers};
use crate::api::meta;
use crate::api::text::Text;

/// Why a body is no review; the server answers HTTP 400 with this text.
#[derive(Debug, Error)]
pub enum MalformedReview {
    /// Not UTF-8.
    #[error("the body is not UTF-8 (byte {0}): send an AdmissionReview as JSON")]
    Encoding(usize),
    /// Not JSON, or not of the shape of an AdmissionReview.
    #[error("the body is not an AdmissionReview: {0}")]
    Json(#[from] JsonError),
    /// Another kind or version.
    #[error(
        "apiVersion {api_version:?}, kind {kind:?} is not known here: send kind AdmissionReview of \
         admission.k8s.io/v1 or admission.k8s.io/v1beta1"
    )]
    Version {
        /// The value received.
        api_version: String,
        /// The value received.
        kind: String,
    },
    /// The review has no request.
    #[error("the AdmissionReview has no request: set request, with its uid")]
    NoRequest,
    /// Longer than the API server ever stores it: answers and log lines would repeat it.
    #[error("{field} has {bytes} bytes: at most {most} are accepted")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its bytes.
        bytes: usize,
        /// The most that it may have.
        most: usize,
    },
    /// The response could not be encoded.
    #[error("the answer could not be written as JSON: {0}")]
    Encode(#[source] serde_json::Error),
}

impl From<MalformedReview> for BadReview {
    fn from(malformed: MalformedReview) -> Self {
        Self(malformed.to_string())
    }
}

/// Version of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `admission.k8s.io/v1`
    V1,
    /// `admission.k8s.io/v1beta1`
    V1Beta1,
}

impl ReviewVersion {
    /// The `apiVersion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// Reads a body; of its annotations, those that rules of `kinds` read.
pub fn decode<'a>(
    body: &'a [u8],
    kinds: &[&'static GuardedKind],
) -> Result<(ReviewVersion, Review<'a>), MalformedReview> {
    let text = std::str::from_utf8(body).map_err(|e| MalformedReview::Encoding(e.valid_up_to()))?;
    let (mut api_version, mut kind) = (Text::default(), Text::default());
    let (mut review, mut requested) = (Review::default(), false);
    let mut scanner = Scanner::new(text);
    let mut seen = SeenMembers::default();
    scanner.members(|name, s| match name.as_str() {
        "apiVersion" => seen.once(0, s).and_then(|()| s.text()).map(|text| api_version = text),
        "kind" => seen.once(1, s).and_then(|()| s.text()).map(|text| kind = text),
        "request" => {
            seen.once(2, s).and_then(|()| read_request(s, &mut review, kinds)).map(|found| requested = found)
        }
        _ => s.value().map(drop),
    })?;
    scanner.end()?;
    let version = match (api_version.as_str(), kind.as_str()) {
        ("admission.k8s.io/v1", "AdmissionReview") => ReviewVersion::V1,
        ("admission.k8s.io/v1beta1", "AdmissionReview") => ReviewVersion::V1Beta1,
        (api_version, kind) => {
            return Err(MalformedReview::Version { api_version: shown(api_version), kind: shown(kind) });
        }
    };
    if !requested {
        return Err(MalformedReview::NoRequest);
    }
    bounded(&review)?;
    Ok((version, review))
}

/// Bounds what answers and log lines repeat of a request; a UID is 36 bytes, a DNS subdomain 253.
fn bounded(review: &Review<'_>) -> Result<(), MalformedReview> {
    let kind = &review.kind;
    let in_object = |object: &'_ Option<ReviewObject<'_>>| {
        object.as_ref().and_then(|object| object.metadata.name.as_ref()).map_or(0, |name| name.len())
    };
    let length = |text: &Option<Text<'_>>| text.as_ref().map_or(0, |text| text.len());
    let fields = [
        ("request.uid", review.uid.len(), 64),
        ("request.kind.group", kind.group.len(), 253),
        ("request.kind.version", kind.version.len(), 63),
        ("request.kind.kind", kind.kind.len(), 63),
        ("request.subResource", length(&review.sub_resource), 63),
        ("request.name", length(&review.name), 253),
        ("request.namespace", length(&review.namespace), 63),
        ("request.operation", review.operation.len(), 63),
        ("request.object.metadata.name", in_object(&review.object), 253),
        ("request.oldObject.metadata.name", in_object(&review.old_object), 253),
    ];
    match fields.into_iter().find(|(_, bytes, most)| bytes > most) {
        Some((field, bytes, most)) => Err(MalformedReview::TooLong { field, bytes, most }),
        None => Ok(()),
    }
}

/// The start of an untrusted string.
fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

type Scanned<T> = Result<T, JsonError>;

fn string<'a>(s: &mut Scanner<'a>) -> Scanned<Text<'a>> {
    s.optional_text().map(Option::unwrap_or_default)
}

/// Reads a request; whether there was one instead of null.
fn read_request<'a>(
    s: &mut Scanner<'a>,
    review: &mut Review<'a>,
    kinds: &[&'static GuardedKind],
) -> Scanned<bool> {
    let mut seen = SeenMembers::default();
    let there = s.optional_members(|name, s| {
        let number = match name.as_str() {
            "uid" => 0,
            "kind" => 1,
            "subResource" => 2,
            "name" => 3,
            "namespace" => 4,
            "operation" => 5,
            "userInfo" => 6,
            "object" => 7,
            "oldObject" => 8,
            "dryRun" => 9,
            _ => return s.value().map(drop),
        };
        seen.once(number, s)?;
        match number {
            0 => review.uid = s.text()?,
            1 => review.kind = read_kind(s)?,
            2 => review.sub_resource = s.optional_text()?,
            3 => review.name = s.optional_text()?,
            4 => review.namespace = s.optional_text()?,
            5 => review.operation = string(s)?,
            6 => review.user_info = read_user(s)?,
            7 => {
                let before = s.position();
                read_object(s, &mut review.object, None, kinds)?;
                review.object_size = s.position() - before;
            }
            8 => read_object(s, &mut review.old_object, review.object.as_ref(), kinds)?,
            _ => review.dry_run = s.optional_bool()?,
        }
        Ok(())
    })?;
    if there && review.uid.is_empty() { s.error("missing field `uid`") } else { Ok(there) }
}

fn read_kind<'a>(s: &mut Scanner<'a>) -> Scanned<ReviewKind<'a>> {
    let mut kind = ReviewKind::default();
    let mut seen = SeenMembers::default();
    s.optional_members(|name, s| match name.as_str() {
        "group" => seen.once(0, s).and_then(|()| string(s)).map(|text| kind.group = text),
        "version" => seen.once(1, s).and_then(|()| string(s)).map(|text| kind.version = text),
        "kind" => seen.once(2, s).and_then(|()| string(s)).map(|text| kind.kind = text),
        _ => s.value().map(drop),
    })?;
    Ok(kind)
}

fn read_user<'a>(s: &mut Scanner<'a>) -> Scanned<UserInfo<'a>> {
    let mut user = UserInfo::default();
    let mut seen = SeenMembers::default();
    s.optional_members(|name, s| match name.as_str() {
        "username" => seen.once(0, s).and_then(|()| s.optional_text()).map(|text| user.username = text),
        _ => s.value().map(drop),
    })?;
    Ok(user)
}

/// Reads an object into its place, as it is large; it probably resembles `like`.
fn read_object<'a>(
    s: &mut Scanner<'a>,
    place: &mut Option<ReviewObject<'a>>,
    like: Option<&ReviewObject<'a>>,
    kinds: &[&'static GuardedKind],
) -> Scanned<()> {
    if s.null()? {
        return Ok(());
    }
    let object = place.insert(ReviewObject::default());
    let mut seen = SeenMembers::default();
    s.members(|name, s| match name.as_str() {
        "metadata" => {
            seen.once(0, s)?;
            read_metadata(s, &mut object.metadata, like.map(|like| &like.metadata), kinds)
        }
        "spec" => seen.once(1, s).and_then(|()| read_spec(s, object, like)),
        "status" => {
            seen.once(2, s)?;
            object.status = s.likely_value(like.and_then(|like| like.status))?;
            Ok(())
        }
        "data" => {
            seen.once(3, s)?;
            object.data = s.likely_value(like.and_then(|like| like.data))?;
            Ok(())
        }
        _ => s.value().map(drop),
    })
}

/// Reads a spec, and with it its parameters if they map names to strings, as those of an Instance do:
/// they are most of its text.
fn read_spec<'a>(
    s: &mut Scanner<'a>,
    object: &mut ReviewObject<'a>,
    like: Option<&ReviewObject<'a>>,
) -> Scanned<()> {
    let from = s.here();
    if like.and_then(|like| like.spec).is_some_and(|known| s.known(known)) {
        object.spec = Some(s.since(from));
        return Ok(());
    }
    if !s.at_object() {
        object.spec = s.optional_value()?;
        return Ok(());
    }
    let like = like.and_then(|like| like.parameters.as_ref());
    s.members(|name, s| {
        // Later readers of the spec reject duplicates.
        if name.as_str() == "parameters" && object.parameters.is_none() {
            object.parameters = s.attempt(|s| StringMap::read(s, like));
            if object.parameters.is_some() {
                return Ok(());
            }
        }
        s.value().map(drop)
    })?;
    object.spec = Some(s.since(from));
    Ok(())
}

fn read_metadata<'a>(
    s: &mut Scanner<'a>,
    metadata: &mut ReviewMetadata<'a>,
    like: Option<&ReviewMetadata<'a>>,
    kinds: &[&'static GuardedKind],
) -> Scanned<()> {
    let mut seen = SeenMembers::default();
    s.optional_members(|name, s| {
        let (number, place) = match name.as_str() {
            "name" => (0, &mut metadata.name),
            "generateName" => (1, &mut metadata.generate_name),
            "namespace" => (2, &mut metadata.namespace),
            "uid" => (3, &mut metadata.uid),
            "resourceVersion" => (4, &mut metadata.resource_version),
            "creationTimestamp" => (11, &mut metadata.creation_timestamp),
            "deletionTimestamp" => (5, &mut metadata.deletion_timestamp),
            "finalizers" => {
                seen.once(6, s)?;
                metadata.finalizers = read_finalizers(s)?;
                return Ok(());
            }
            "annotations" => {
                seen.once(7, s)?;
                let stamp = like.and_then(|like| like.annotations.stamp);
                return read_annotations(s, &mut metadata.annotations, stamp, kinds);
            }
            "managedFields" => {
                seen.once(8, s)?;
                metadata.managed_fields = s.likely_value(like.and_then(|like| like.managed_fields))?;
                return Ok(());
            }
            "labels" => {
                seen.once(10, s)?;
                metadata.labels = s.optional_value()?;
                return Ok(());
            }
            "generation" => {
                seen.once(9, s)?;
                metadata.generation = Some(s.value()?);
                return Ok(());
            }
            _ => return s.value().map(drop),
        };
        seen.once(number, s)?;
        *place = s.optional_text()?;
        Ok(())
    })
    .map(drop)
}

fn read_finalizers<'a>(s: &mut Scanner<'a>) -> Scanned<Option<Vec<Text<'a>>>> {
    if s.null()? {
        return Ok(None);
    }
    let mut finalizers = Vec::new();
    s.elements(|s| {
        finalizers.push(s.text()?);
        Ok(())
    })?;
    Ok(Some(finalizers))
}

fn read_annotations<'a>(
    s: &mut Scanner<'a>,
    annotations: &mut Annotations<'a>,
    like: Option<Raw<'a>>,
    kinds: &[&'static GuardedKind],
) -> Scanned<()> {
    let mut seen = SeenMembers::default();
    annotations.present = s.optional_members(|name, s| {
        if name.as_str() == meta::LAST_APPLIED_SPEC {
            seen.once(0, s)?;
            annotations.has_stamp = true;
            annotations.stamp = s.likely_value(like)?;
            return Ok(());
        }
        let value = s.value()?;
        let size = name.len() + decoded_length(value);
        match name.as_str() {
            meta::HISTORY => annotations.history += size,
            _ => annotations.others += size,
        }
        if let Some(key) = read_by_rules(kinds, name.as_str()) {
            annotations.keep(key, value);
        }
        Ok(())
    })?;
    Ok(())
}

/// The annotation of that name, where a rule reads it. A review may carry many thousands of others, of which
/// only the size counts.
fn read_by_rules(kinds: &[&'static GuardedKind], name: &str) -> Option<&'static str> {
    kinds.iter().flat_map(|kind| kind.annotations).copied().find(|key| *key == name)
}

/// From this length on, the length of a string is counted without its escapes: a large annotation is
/// often JSON itself, with an escape at each quote.
const COUNTED_EXACTLY: usize = 16 * 1024;

/// Length of a string of a document: at least its decoded length, and exact where it matters.
fn decoded_length(value: Raw<'_>) -> usize {
    let raw = value.get();
    if raw.len() < COUNTED_EXACTLY {
        return raw.len();
    }
    value.text().map_or(raw.len(), |text| text.len())
}
