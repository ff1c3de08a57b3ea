//! The annotation `interlock.dev/last-applied-spec`: its envelope and the hash of a spec.
//!
//! The envelope describes the spec that is being, or has been, carried out. It is only text; the
//! baseline is `status.lastApplied` (see [`interlock_kudo::instance::change::baseline`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
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

/// Where a stamped spec is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptSpec<'a> {
    /// In the annotation itself.
    Inline {
        /// The spec.
        spec: Applied<'a>,
    },
    /// In ControllerRevisions, named `NAME-UID8-HASH12-N` (see [`super::revision`]); until the reconciler has
    /// written them the locked object itself is the source.
    Referenced,
}

impl KeptSpec<'_> {
    /// The spec, where the annotation itself holds it.
    pub fn inline(&self) -> Option<&Applied<'_>> {
        match self {
            Self::Inline { spec } => Some(spec),
            Self::Referenced => None,
        }
    }

    fn into_owned(self) -> KeptSpec<'static> {
        match self {
            Self::Inline { spec } => KeptSpec::Inline { spec: spec.into_owned() },
            Self::Referenced => KeptSpec::Referenced,
        }
    }
}

/// What of a spec has to be written otherwise to make another one of it.
///
/// The spec before an edit differs in a parameter or two; written out beside the new one, it doubles the
/// stamp, which the API server reads and writes again and again (see `benches/README.md`).
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecChanges<'a> {
    /// The OperatorVersion of the other spec, where it differs.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    operator_version: Option<VersionRef<'a>>,
    /// Parameters with another value there, or with none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, Option<String>>,
}

impl<'a> SpecChanges<'a> {
    /// Those that make `to` of `from`.
    pub fn between(from: &Applied<'_>, to: &Applied<'a>) -> Self {
        let version = (from.operator_version != to.operator_version).then(|| to.operator_version.clone());
        let mut changes = Self { operator_version: version, ..Self::default() };
        let mut note = |name: &str, value: Option<&Cow<'_, str>>| {
            changes.parameters.insert(name.to_owned(), value.map(|value| value.clone().into_owned()));
        };
        let mut others = to.parameters.iter().peekable();
        for (name, value) in &from.parameters {
            while let Some((name, value)) = others.next_if(|(other, _)| *other < name) {
                note(name, Some(value));
            }
            match others.next_if(|(other, _)| *other == name) {
                Some((_, other)) if other == value => {}
                other => note(name, other.map(|(_, value)| value)),
            }
        }
        others.for_each(|(name, value)| note(name, Some(value)));
        changes
    }

    /// The other spec.
    fn applied_to(self, from: &Applied<'a>) -> Applied<'a> {
        let mut spec = from.clone();
        if let Some(version) = self.operator_version {
            spec.operator_version = version;
        }
        spec.parameters.retain(|name| !self.parameters.contains_key(name));
        let written =
            self.parameters.into_iter().filter_map(|(name, value)| Some((name.into(), value?.into())));
        spec.parameters.extend(written);
        spec
    }

    /// Its JSON.
    pub fn to_json(&self) -> String {
        // Strings and maps with string keys always serialise.
        serde_json::to_string(self).unwrap_or_default()
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
    changes: Option<SpecChanges<'a>>,
    #[serde(borrow, default)]
    spec: Option<Applied<'a>>,
}

/// Without a spec, the annotation refers to it.
fn kept(spec: Option<Applied<'_>>) -> KeptSpec<'_> {
    spec.map_or(KeptSpec::Referenced, |spec| KeptSpec::Inline { spec })
}

/// The beginning of an envelope, read without the rest.
///
/// With envelopes read in full, the row "admission 9 KB, schedules and stamps" of `benches/admission.rs`
/// takes 18.2 us instead of 10.8: three times a parse of the uid alone, where its goal is 2.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning<'a> {
    /// Text of its hash.
    pub hash: &'a str,
    /// Whether it holds the spec; else it refers to it.
    pub inline: bool,
}

impl<'a> Beginning<'a> {
    /// From the annotation's value in JSON, with its quotes and escapes; `None` where it is not
    /// written as [`Envelope::to_json`] writes it.
    pub fn of(json: &'a str) -> Option<Self> {
        let rest = json.strip_prefix(r#""{\"v\":1,\"hash\":\""#)?;
        let (hash, rest) = rest.split_at(rest.find('\\')?);
        let rest = rest.strip_prefix(r#"\",\""#)?;
        if rest.starts_with(r#"spec\":{"#) {
            return Some(Self { hash, inline: true });
        }
        rest.starts_with(r#"ref\":\""#).then_some(Self { hash, inline: false })
    }
}

impl<'a> Envelope<'a> {
    /// Reads the annotation's value; `None` where it is not an envelope of a format known here.
    pub fn parse(text: &'a str) -> Option<Self> {
        let wire: Wire<'a> = serde_json::from_str(text).ok().filter(|wire: &Wire<'a>| wire.v == FORMAT)?;
        let previous = wire.previous.map(|previous| {
            let WirePrevious { hash, changes, spec } = previous;
            let changed = || Some(changes?.applied_to(wire.spec.as_ref()?));
            Previous { hash, kept: kept(spec.or_else(changed)) }
        });
        Some(Self {
            hash: wire.hash,
            kept: kept(wire.spec),
            previous,
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

/// The kind of object that keeps a referenced spec.
pub const REFERENCE: &str = "ControllerRevision";

fn entries<M: SerializeMap>(map: &mut M, hash: &SpecHash, kept: &KeptSpec<'_>) -> Result<(), M::Error> {
    map.serialize_entry("hash", hash)?;
    match kept {
        KeptSpec::Inline { spec } => map.serialize_entry("spec", spec),
        KeptSpec::Referenced => map.serialize_entry("ref", REFERENCE),
    }
}

struct Changed<'a>(&'a SpecHash, SpecChanges<'a>);

impl Serialize for Changed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("hash", self.0)?;
        map.serialize_entry("changes", &self.1)?;
        map.end()
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
            match (self.kept.inline(), previous.kept.inline()) {
                (Some(spec), Some(before)) => {
                    let changes = SpecChanges::between(spec, before);
                    map.serialize_entry("previous", &Changed(&previous.hash, changes))?;
                }
                _ => map.serialize_entry("previous", previous)?,
            }
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

    /// And it is read as the spec that it was.
    #[rstest]
    #[case::value(&[("A", "2"), ("B", "b")], r#"{"parameters":{"A":"2"}}"#)]
    #[case::taken_away(&[("A", "1")], r#"{"parameters":{"B":null}}"#)]
    #[case::added(&[("", "0"), ("A", "1"), ("AB", "n"), ("B", "b"), ("C", "")], r#"{"parameters":{"":"0","AB":"n","C":""}}"#)]
    #[case::nothing_left(&[], r#"{"parameters":{"A":null,"B":null}}"#)]
    fn the_previous_spec_is_written_as_changes(#[case] before: &[(&str, &str)], #[case] changes: &str) {
        let (spec, before) = (applied(&[("A", "1"), ("B", "b")]), applied(before));
        let previous = before.hash();
        let envelope = Envelope {
            hash: spec.hash(),
            kept: KeptSpec::Inline { spec },
            previous: Some(Previous { hash: previous.clone(), kept: KeptSpec::Inline { spec: before } }),
            uid: None,
            generation: None,
        };
        let written = envelope.to_json();
        let end = format!(r#""previous":{{"hash":"{previous}","changes":{changes}}}}}"#);
        assert!(written.ends_with(&end), "{written}");
        assert_eq!(Envelope::parse(&written), Some(envelope));
    }

    #[test]
    fn another_operator_version_is_a_change() {
        let (spec, mut before) = (applied(&[]), applied(&[]));
        before.operator_version.name = "kafka-0".into();
        let changes = SpecChanges::between(&spec, &before);
        assert_eq!(changes.to_json(), r#"{"operatorVersion":{"name":"kafka-0","namespace":"team"}}"#);
        assert_eq!(changes.applied_to(&spec), before);
    }

    /// Changes of a spec that the annotation does not hold.
    #[test]
    fn changes_without_their_spec_are_a_reference() {
        let text = r#"{"v":1,"hash":"sha256:0","ref":"ControllerRevision","previous":{"hash":"sha256:1","changes":{}}}"#;
        let previous = Envelope::parse(text).unwrap().previous.unwrap();
        assert_eq!(previous.kept, KeptSpec::Referenced);
    }

    #[rstest]
    #[case::inline(Envelope {
        hash: applied(&[("A", "1")]).hash(),
        kept: KeptSpec::Inline { spec: applied(&[("A", "1")]) },
        previous: Some(Previous { hash: applied(&[]).hash(), kept: KeptSpec::Inline { spec: applied(&[]) } }),
        uid: Some("u-1".into()),
        generation: Some(3),
    })]
    #[case::previous_beside_a_reference(Envelope {
        hash: applied(&[]).hash(),
        kept: KeptSpec::Referenced,
        previous: Some(Previous {
            hash: applied(&[("A", "1")]).hash(),
            kept: KeptSpec::Inline { spec: applied(&[("A", "1")]) },
        }),
        uid: Some("u-1".into()),
        generation: None,
    })]
    #[case::referenced(Envelope {
        hash: applied(&[]).hash(),
        kept: KeptSpec::Referenced,
        previous: Some(Previous { hash: applied(&[("A", "1")]).hash(), kept: KeptSpec::Referenced }),
        uid: None,
        generation: None,
    })]
    fn an_envelope_is_read_as_it_was_written(#[case] envelope: Envelope<'_>) {
        let text = envelope.to_json();
        assert_eq!(Envelope::parse(&text), Some(envelope.clone()));
        let json = serde_json::to_string(&text).unwrap();
        let beginning = Beginning::of(&json).unwrap();
        let inline = envelope.kept.inline().is_some();
        assert_eq!((beginning.hash, beginning.inline), (envelope.hash.as_str(), inline));
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
