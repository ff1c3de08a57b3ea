//! What a pod's environment refers to, asked key by key.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::api::object::{NamespacedName, meta_str};

/// Longest value that is followed. References can double a value with every entry; a flavor has
/// at most 22 characters.
pub(super) const LONGEST: usize = 256;

/// What a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// A ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlavorSource {
    /// Which of the two.
    pub kind: SourceKind,
    /// Its name.
    pub name: NamespacedName,
}

impl fmt::Display for FlavorSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SourceKind::ConfigMap => "ConfigMap",
            SourceKind::Secret => "Secret",
        };
        write!(f, "{kind} {}", self.name)
    }
}

/// What is known of a key of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyLookup {
    /// Its value.
    Value(String),
    /// The object has no such key.
    NoKey,
    /// There is no such object.
    NoObject,
    /// The object is not ours to read, or was not given.
    Unseen,
}

/// ConfigMaps and Secrets, as far as they can be read.
pub trait Sources {
    /// The value of a key.
    fn ask(&self, source: &FlavorSource, key: &str) -> KeyLookup;
}

/// Nothing can be read.
pub struct Nothing;

impl Sources for Nothing {
    fn ask(&self, _: &FlavorSource, _: &str) -> KeyLookup {
        KeyLookup::Unseen
    }
}

/// The ConfigMaps and Secrets among some objects; others may exist.
#[derive(Clone, Debug, Default)]
pub struct GivenSources(BTreeMap<FlavorSource, BTreeMap<String, String>>);

impl GivenSources {
    /// Adds an object; kinds that are no source are left out. `namespace` stands for one that is
    /// absent.
    pub fn add(&mut self, object: &Value, namespace: &str) {
        self.0.extend(given(object, namespace));
    }

    /// Whether it is among them.
    pub fn holds(&self, source: &FlavorSource) -> bool {
        self.0.contains_key(source)
    }

    /// Takes a source out: it may exist or not.
    pub fn remove(&mut self, source: &FlavorSource) {
        self.0.remove(source);
    }

    /// Those of a namespace, to which alone its pods can refer.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Self {
        let here = self.0.iter().filter(|(source, _)| source.name.namespace == namespace);
        Self(here.map(|(source, data)| (source.clone(), data.clone())).collect())
    }

    /// Of objects of any kind; `namespace` stands for one that is absent.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>, namespace: &str) -> Self {
        Self(objects.into_iter().filter_map(|object| given(object, namespace)).collect())
    }
}

impl Sources for GivenSources {
    fn ask(&self, source: &FlavorSource, key: &str) -> KeyLookup {
        match self.0.get(source) {
            None => KeyLookup::Unseen,
            Some(data) => data.get(key).cloned().map_or(KeyLookup::NoKey, KeyLookup::Value),
        }
    }
}

fn given(object: &Value, namespace: &str) -> Option<(FlavorSource, BTreeMap<String, String>)> {
    let kind = match (object["apiVersion"].as_str()?, object["kind"].as_str()?) {
        ("v1", "ConfigMap") => SourceKind::ConfigMap,
        ("v1", "Secret") => SourceKind::Secret,
        _ => return None,
    };
    let own = meta_str(object, "namespace").filter(|own| !own.is_empty()).unwrap_or(namespace);
    let name = NamespacedName::new(own, meta_str(object, "name")?);
    let entries = |field: &str| object[field].as_object().into_iter().flatten();
    let text = |value: &Value| shortened(value.as_str().unwrap_or_default());
    let decoded = |value: &Value| {
        let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
        shortened(&String::from_utf8_lossy(&bytes))
    };
    let mut data: BTreeMap<String, String> = match kind {
        SourceKind::ConfigMap => entries("data").map(|(key, value)| (key.clone(), text(value))).collect(),
        SourceKind::Secret => entries("data").map(|(key, value)| (key.clone(), decoded(value))).collect(),
    };
    if kind == SourceKind::Secret {
        data.extend(entries("stringData").map(|(key, value)| (key.clone(), text(value))));
    }
    Some((FlavorSource { kind, name }, data))
}

/// A value as far as it matters: one that is longer than any that is followed stays so.
fn shortened(value: &str) -> String {
    value[..value.floor_char_boundary(LONGEST + 4)].to_owned()
}
