//! The objects that a pod's environment refers to, looked up key by key.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::api::object::{NamespacedName, meta_str};
use serde_json::Value;

/// Longest value that is expanded. References can double a value with every entry; a flavor has at most
/// 22 characters.
pub(super) const LONGEST: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// A ConfigMap.
    ConfigMap,
    Secret,
}

/// A ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlavorSource {
    /// ConfigMap or Secret.
    pub kind: SourceKind,
    pub name: NamespacedName,
}

impl FlavorSource {
    /// Its kind and the name of that as a resource.
    pub fn kind(&self) -> (&'static str, &'static str) {
        match self.kind {
            SourceKind::ConfigMap => ("ConfigMap", "configmaps"),
            SourceKind::Secret => ("Secret", "secrets"),
        }
    }

    /// The command, in quotes, that prints its labels.
    pub fn show(&self) -> String {
        let kind = match self.kind {
            SourceKind::ConfigMap => "configmap",
            SourceKind::Secret => "secret",
        };
        format!("`kubectl get {kind} {} -n {} --show-labels`", self.name.name, self.name.namespace)
    }
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

/// Result of looking up a key of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyLookup {
    Value(String),
    /// The object has no such key.
    NoKey,
    /// The object does not exist.
    NoObject,
    /// Interlock may not read the object, or does not have it.
    Unseen,
}

/// Readable ConfigMaps and Secrets.
pub trait Sources {
    /// Looks up a key.
    fn ask(&self, source: &FlavorSource, key: &str) -> KeyLookup;
}

/// No readable source.
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
    /// Adds an object; ignores kinds that are no source. `namespace` is the default for an absent one.
    pub fn add(&mut self, object: &Value, namespace: &str) {
        self.0.extend(given(object, namespace));
    }

    pub fn holds(&self, source: &FlavorSource) -> bool {
        self.0.contains_key(source)
    }

    /// Removes a source, which may exist or not.
    pub fn remove(&mut self, source: &FlavorSource) {
        self.0.remove(source);
    }

    /// The sources of a namespace; pods can refer to no others.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Self {
        let here = self.0.iter().filter(|(source, _)| source.name.namespace == namespace);
        Self(here.map(|(source, data)| (source.clone(), data.clone())).collect())
    }

    /// The sources among objects of any kind; `namespace` is the default for an absent one.
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

/// A value cut to the length that matters; one that is too long to expand stays so.
fn shortened(value: &str) -> String {
    value[..value.floor_char_boundary(LONGEST + 4)].to_owned()
}
