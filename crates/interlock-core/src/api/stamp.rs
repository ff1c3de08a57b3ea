//! The annotation `interlock.dev/last-applied-spec`: its envelope and the hash of a spec.
//!
//! The envelope describes the spec that is being, or has been, carried out. It is only text; the
//! baseline is the condition `SpecStamped` (see [`crate::kinds::instance::change::baseline`]).

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::json::json_string;
use super::text::Text;
use super::values::Values;

/// SHA-256 of the canonical JSON of a spec, as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpecHash(String);

impl SpecHash {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash of a canonical text.
    pub fn of(canonical: &str) -> Self {
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        push_hex(&mut text, &Sha256::digest(canonical.as_bytes()));
        Self(text)
    }

    /// The first twelve hexadecimal digits, for names.
    pub fn short(&self) -> &str {
        let hex = self.0.strip_prefix("sha256:").unwrap_or(&self.0);
        hex.get(..12).unwrap_or(hex)
    }
}

impl fmt::Display for SpecHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The part of an Instance's spec that is carried out: the reference and the parameters, never
/// `planExecution`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Applied<'a> {
    /// The OperatorVersion, with its namespace filled in.
    #[serde(borrow)]
    pub operator_version: VersionRef<'a>,
    /// Parameters as given.
    #[serde(borrow, default)]
    pub parameters: Values<'a>,
}

/// Name and namespace of an OperatorVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VersionRef<'a> {
    /// Name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Namespace; defaulted to that of the Instance.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
}

impl VersionRef<'_> {
    /// The canonical JSON of a spec, from that of its parameters.
    pub fn canonical_with(&self, parameters: &str) -> String {
        let mut out = String::with_capacity(parameters.len() + self.name.len() + self.namespace.len() + 80);
        out.push_str("{\"operatorVersion\":{\"name\":");
        json_string(&mut out, &self.name);
        out.push_str(",\"namespace\":");
        json_string(&mut out, &self.namespace);
        out.push_str("},\"parameters\":");
        out.push_str(parameters);
        out.push('}');
        out
    }
}

impl Applied<'_> {
    /// Hash over the canonical JSON.
    pub fn hash(&self) -> SpecHash {
        SpecHash::of(&self.canonical())
    }

    /// The canonical JSON (RFC 8785): keys sorted, no white space.
    pub fn canonical(&self) -> String {
        let strings: usize = self.parameters.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
        let mut parameters = String::with_capacity(strings + 2);
        parameters.push('{');
        for (i, (key, value)) in self.parameters.iter().enumerate() {
            if i > 0 {
                parameters.push(',');
            }
            json_string(&mut parameters, key);
            parameters.push(':');
            json_string(&mut parameters, value);
        }
        parameters.push('}');
        self.operator_version.canonical_with(&parameters)
    }

    /// The same, owning its strings.
    pub fn into_owned(self) -> Applied<'static> {
        Applied {
            operator_version: VersionRef {
                name: Cow::Owned(self.operator_version.name.into_owned()),
                namespace: Cow::Owned(self.operator_version.namespace.into_owned()),
            },
            parameters: self.parameters.into_owned(),
        }
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    push_hex(&mut out, bytes);
    out
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// The kind of the objects that keep a spec which the annotation only refers to; the value of its
/// member `ref`. They are named `NAME-UID8-HASH12-N` (see [`crate::api::revision`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecReference {
    /// ControllerRevisions (`apps/v1`).
    #[default]
    ControllerRevision,
    /// Secrets of type [`crate::api::meta::SPEC_SECRET_TYPE`], as Interlock 0.1 wrote them.
    Secret,
}

impl SpecReference {
    /// The value of `ref`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ControllerRevision => "ControllerRevision",
            Self::Secret => "Secret",
        }
    }

    /// From the value of `ref`; an unknown one means the kind that is written now.
    pub fn named(text: &str) -> Self {
        if text == Self::Secret.as_str() { Self::Secret } else { Self::ControllerRevision }
    }
}

/// Where a stamped spec is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptSpec<'a> {
    /// In the annotation itself.
    Inline {
        /// The spec.
        spec: Applied<'a>,
    },
    /// In objects of this kind; until the reconciler has written them the locked object itself is
    /// the source.
    Referenced(SpecReference),
}

impl KeptSpec<'_> {
    /// The spec, where the annotation itself holds it.
    pub fn inline(&self) -> Option<&Applied<'_>> {
        match self {
            Self::Inline { spec } => Some(spec),
            Self::Referenced(_) => None,
        }
    }

    /// The kind of the objects that keep the spec, where the annotation does not.
    pub fn reference(&self) -> Option<SpecReference> {
        match self {
            Self::Inline { .. } => None,
            Self::Referenced(reference) => Some(*reference),
        }
    }

    fn into_owned(self) -> KeptSpec<'static> {
        match self {
            Self::Inline { spec } => KeptSpec::Inline { spec: spec.into_owned() },
            Self::Referenced(reference) => KeptSpec::Referenced(reference),
        }
    }
}

/// The spec last carried out in full, while it differs from the stamped one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous<'a> {
    /// Its hash.
    pub hash: SpecHash,
    /// Where it is kept.
    pub kept: KeptSpec<'a>,
}

/// The annotation's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Hash of the spec.
    pub hash: SpecHash,
    /// Where the spec is kept.
    pub kept: KeptSpec<'a>,
    /// The spec that an abort can revert to.
    pub previous: Option<Previous<'a>>,
    /// Uid of the object; added by the reconciler, as a CREATE does not know it.
    pub uid: Option<Cow<'a, str>>,
    /// Generation at the reconciler's first write; informational.
    pub generation: Option<i64>,
}

/// Version of the envelope's format.
const FORMAT: u8 = 1;

#[derive(Deserialize)]
struct Wire<'a> {
    v: u8,
    hash: SpecHash,
    #[serde(borrow, default)]
    spec: Option<Applied<'a>>,
    #[serde(borrow, default, rename = "ref")]
    reference: Option<Text<'a>>,
    #[serde(borrow, default)]
    previous: Option<WirePrevious<'a>>,
    #[serde(borrow, default)]
    uid: Option<Text<'a>>,
    #[serde(default)]
    generation: Option<i64>,
}

#[derive(Deserialize)]
struct WirePrevious<'a> {
    hash: SpecHash,
    #[serde(borrow, default)]
    spec: Option<Applied<'a>>,
    #[serde(borrow, default, rename = "ref")]
    reference: Option<Text<'a>>,
}

fn kept<'a>(spec: Option<Applied<'a>>, reference: Option<&Text<'_>>) -> KeptSpec<'a> {
    let reference = || reference.map(|text| SpecReference::named(&text.0)).unwrap_or_default();
    spec.map_or_else(|| KeptSpec::Referenced(reference()), |spec| KeptSpec::Inline { spec })
}

/// The beginning of an envelope, read without the rest.
///
/// With envelopes read in full, the row "admission 9 KB, schedules and stamps" of `benches/admission.rs`
/// takes 18.2 us instead of 10.8: three times a parse of the uid alone, where its goal is 2.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning<'a> {
    /// Text of its hash.
    pub hash: &'a str,
    /// The kind of the objects that keep the spec; `None` where it is inline.
    pub reference: Option<SpecReference>,
}

impl<'a> Beginning<'a> {
    /// From the annotation's value in JSON, with its quotes and escapes; `None` where it is not
    /// written as [`Envelope::to_json`] writes it.
    pub fn of(json: &'a str) -> Option<Self> {
        let rest = json.strip_prefix(r#""{\"v\":1,\"hash\":\""#)?;
        let (hash, rest) = rest.split_at(rest.find('\\')?);
        let rest = rest.strip_prefix(r#"\",\""#)?;
        if rest.starts_with(r#"spec\":{"#) {
            return Some(Self { hash, reference: None });
        }
        let (kind, _) = rest.strip_prefix(r#"ref\":\""#)?.split_once('\\')?;
        Some(Self { hash, reference: Some(SpecReference::named(kind)) })
    }
}

impl<'a> Envelope<'a> {
    /// Reads the annotation's value; `None` where it is not an envelope of a format known here.
    pub fn parse(text: &'a str) -> Option<Self> {
        let wire: Wire<'a> = serde_json::from_str(text).ok().filter(|wire: &Wire<'a>| wire.v == FORMAT)?;
        Some(Self {
            hash: wire.hash,
            kept: kept(wire.spec, wire.reference.as_ref()),
            previous: wire
                .previous
                .map(|p| Previous { hash: p.hash, kept: kept(p.spec, p.reference.as_ref()) }),
            uid: wire.uid.map(|uid| uid.0),
            generation: wire.generation,
        })
    }

    /// The annotation's value.
    pub fn to_json(&self) -> String {
        // Strings, numbers and maps with string keys always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The same, owning its strings.
    pub fn into_owned(self) -> Envelope<'static> {
        Envelope {
            hash: self.hash,
            kept: self.kept.into_owned(),
            previous: self.previous.map(|p| Previous { hash: p.hash, kept: p.kept.into_owned() }),
            uid: self.uid.map(|uid| Cow::Owned(uid.into_owned())),
            generation: self.generation,
        }
    }
}

fn entries<M: SerializeMap>(map: &mut M, hash: &SpecHash, kept: &KeptSpec<'_>) -> Result<(), M::Error> {
    map.serialize_entry("hash", hash)?;
    match kept {
        KeptSpec::Inline { spec } => map.serialize_entry("spec", spec),
        KeptSpec::Referenced(reference) => map.serialize_entry("ref", reference.as_str()),
    }
}

impl Serialize for Previous<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        entries(&mut map, &self.hash, &self.kept)?;
        map.end()
    }
}

impl Serialize for Envelope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("v", &FORMAT)?;
        entries(&mut map, &self.hash, &self.kept)?;
        if let Some(previous) = &self.previous {
            map.serialize_entry("previous", previous)?;
        }
        if let Some(uid) = &self.uid {
            map.serialize_entry("uid", uid)?;
        }
        if let Some(generation) = self.generation {
            map.serialize_entry("generation", &generation)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn applied<'a>(pairs: &[(&'a str, &'a str)]) -> Applied<'a> {
        Applied {
            operator_version: VersionRef { name: "kafka-1".into(), namespace: "team".into() },
            parameters: pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        }
    }

    #[test]
    fn the_hash_is_that_of_the_canonical_json() {
        let spec = applied(&[("B", "q\"b\\s\n\u{1}\u{e9}\u{1f600}"), ("A", "")]);
        let text = r#"{"operatorVersion":{"name":"kafka-1","namespace":"team"},"parameters":{"A":"","B":"q\"b\\s\n\u0001é😀"}}"#;
        assert_eq!(spec.hash().as_str(), format!("sha256:{}", hex(&Sha256::digest(text.as_bytes()))));
    }

    #[rstest]
    #[case::inline(Envelope {
        hash: applied(&[("A", "1")]).hash(),
        kept: KeptSpec::Inline { spec: applied(&[("A", "1")]) },
        previous: Some(Previous { hash: applied(&[]).hash(), kept: KeptSpec::Inline { spec: applied(&[]) } }),
        uid: Some("u-1".into()),
        generation: Some(3),
    })]
    #[case::referenced(Envelope {
        hash: applied(&[]).hash(),
        kept: KeptSpec::Referenced(SpecReference::ControllerRevision),
        previous: Some(Previous {
            hash: applied(&[("A", "1")]).hash(),
            kept: KeptSpec::Referenced(SpecReference::Secret),
        }),
        uid: None,
        generation: None,
    })]
    fn an_envelope_is_read_as_it_was_written(#[case] envelope: Envelope<'_>) {
        let text = envelope.to_json();
        assert_eq!(Envelope::parse(&text), Some(envelope.clone()));
        let json = serde_json::to_string(&text).unwrap();
        let beginning = Beginning::of(&json).unwrap();
        assert_eq!(
            (beginning.hash, beginning.reference),
            (envelope.hash.as_str(), envelope.kept.reference())
        );
    }

    #[rstest]
    #[case::other_format(r#"{"v":2,"hash":"sha256:0"}"#)]
    #[case::no_json("{")]
    #[case::no_hash(r#"{"v":1}"#)]
    fn what_is_no_envelope_is_none(#[case] text: &str) {
        assert_eq!(Envelope::parse(text), None);
    }

    #[test]
    fn strings_without_escapes_are_borrowed() {
        let text = applied(&[("A", "1"), ("B", "x\"y")]);
        let json = serde_json::to_string(&text).unwrap();
        let read: Applied<'_> = serde_json::from_str(&json).unwrap();
        assert!(matches!(read.parameters.get("A"), Some(Cow::Borrowed(_))));
        assert!(matches!(read.parameters.get("B"), Some(Cow::Owned(_))));
        assert_eq!(read, text);
    }
}
