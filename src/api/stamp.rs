//! The annotation `interlock.dev/last-applied-spec`: its envelope and the hash of a spec.
//!
//! The envelope means: the spec that is being, or has been, carried out. It is text only; the
//! durable basis is the condition `SpecStamped` (see [`crate::plan::basis`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// SHA-256 of the canonical JSON of a spec, as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpecHash(String);

impl SpecHash {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
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

/// Values of parameters, borrowed where they can be.
pub type Values<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

/// What of an Instance's spec is carried out: the reference and the parameters, never
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

impl Applied<'_> {
    /// Hash over the canonical JSON: keys sorted, no white space.
    pub fn hash(&self) -> SpecHash {
        let mut sha = Sha256::new();
        let mut out = Canonical(&mut sha);
        out.raw("{\"operatorVersion\":{\"name\":");
        out.string(&self.operator_version.name);
        out.raw(",\"namespace\":");
        out.string(&self.operator_version.namespace);
        out.raw("},\"parameters\":{");
        for (i, (key, value)) in self.parameters.iter().enumerate() {
            if i > 0 {
                out.raw(",");
            }
            out.string(key);
            out.raw(":");
            out.string(value);
        }
        out.raw("}}");
        SpecHash(format!("sha256:{}", hex(&sha.finalize())))
    }

    /// The same, owning its strings.
    pub fn into_owned(self) -> Applied<'static> {
        Applied {
            operator_version: VersionRef {
                name: Cow::Owned(self.operator_version.name.into_owned()),
                namespace: Cow::Owned(self.operator_version.namespace.into_owned()),
            },
            parameters: self
                .parameters
                .into_iter()
                .map(|(k, v)| (Cow::Owned(k.into_owned()), Cow::Owned(v.into_owned())))
                .collect(),
        }
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]])
        .map(char::from)
        .collect()
}

struct Canonical<'a>(&'a mut Sha256);

impl Canonical<'_> {
    fn raw(&mut self, text: &str) {
        self.0.update(text.as_bytes());
    }

    /// RFC 8785 string: only `"`, `\` and control characters are escaped.
    fn string(&mut self, text: &str) {
        self.raw("\"");
        let mut start = 0;
        for (i, b) in text.bytes().enumerate() {
            if b >= 0x20 && b != b'"' && b != b'\\' {
                continue;
            }
            self.0.update(&text.as_bytes()[start..i]);
            start = i + 1;
            match b {
                b'"' => self.raw("\\\""),
                b'\\' => self.raw("\\\\"),
                b'\n' => self.raw("\\n"),
                b'\r' => self.raw("\\r"),
                b'\t' => self.raw("\\t"),
                0x08 => self.raw("\\b"),
                0x0c => self.raw("\\f"),
                other => self.raw(&format!("\\u{other:04x}")),
            }
        }
        self.0.update(&text.as_bytes()[start..]);
        self.raw("\"");
    }
}

/// Where a stamped spec is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, bound(deserialize = "'de: 'a"))]
pub enum Kept<'a> {
    /// In the annotation itself.
    Inline {
        /// The spec.
        spec: Applied<'a>,
    },
    /// In Secrets of type [`crate::api::meta::SPEC_SECRET_TYPE`] named `NAME-UID8-HASH12-N`;
    /// until the reconciler has written them the locked object itself is the source.
    Elsewhere {
        /// Always `Secret`.
        #[serde(rename = "ref")]
        reference: Cow<'a, str>,
    },
}

/// What last was carried out in full, while it differs from the stamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct Previous<'a> {
    /// Its hash.
    pub hash: SpecHash,
    /// Where it is.
    #[serde(flatten)]
    pub kept: Kept<'a>,
}

/// The annotation's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct Envelope<'a> {
    /// Version of this format: 1.
    pub v: u8,
    /// Hash of the spec.
    pub hash: SpecHash,
    /// Where the spec is.
    #[serde(flatten)]
    pub kept: Kept<'a>,
    /// What `interlock plan abort --revert` goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous<'a>>,
    /// Uid of the object; added by the reconciler, as a CREATE does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Cow<'a, str>>,
    /// Generation at the reconciler's first write; informs and never decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
}

impl Kept<'_> {
    /// The same, owning its strings.
    pub fn into_owned(self) -> Kept<'static> {
        match self {
            Self::Inline { spec } => Kept::Inline { spec: spec.into_owned() },
            Self::Elsewhere { reference } => Kept::Elsewhere { reference: reference.into_owned().into() },
        }
    }
}

impl<'a> Envelope<'a> {
    /// Reads the annotation; `None` where the text is not an envelope of this version.
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str::<Self>(text).ok().filter(|envelope| envelope.v == 1)
    }

    /// The annotation's text.
    pub fn to_json(&self) -> String {
        // A struct of strings and maps with string keys always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The same, owning its strings.
    pub fn into_owned(self) -> Envelope<'static> {
        Envelope {
            v: self.v,
            hash: self.hash,
            kept: self.kept.into_owned(),
            previous: self.previous.map(|p| Previous { hash: p.hash, kept: p.kept.into_owned() }),
            uid: self.uid.map(|uid| uid.into_owned().into()),
            generation: self.generation,
        }
    }
}
