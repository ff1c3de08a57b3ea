//! Variables of a container, as the kubelet makes them
//! (`pkg/kubelet/kubelet_pods.go`, `makeEnvironmentVariables`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::expand::{ValuePiece, pieces};
use super::sources::{FlavorSource, KeyLookup, LONGEST, SourceKind, Sources};
use crate::api::object::NamespacedName;
use crate::api::pod::{Container, EnvFrom, EnvVar, PodMetadata, ValueFrom};

/// A key of a ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceKey {
    /// The object.
    pub source: FlavorSource,
    /// The key.
    pub key: String,
}

impl fmt::Display for SourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key \"{}\"", self.source, self.key)
    }
}

/// Why a value cannot be told from the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// A mandatory object is not there: the pod cannot start.
    NoObject(FlavorSource),
    /// A mandatory key is not there: the pod cannot start.
    NoKey(SourceKey),
    /// The object is not ours to read.
    Unseen(SourceKey),
    /// A field of the pod that is known only when the pod runs.
    PodField(String),
    /// A source that Interlock does not know.
    OtherSource,
    /// Longer than any flavor.
    Long,
    /// The content of a file in the container.
    File(String),
    /// A configuration file in the container.
    ConfFile(String),
    /// The command line names the variable.
    Command,
    /// A reference into a vault.
    Vault,
    /// The spec that the live pods are made from is kept in this ControllerRevision, which is not
    /// known here.
    Revision(NamespacedName),
    /// No container is called `proxy`.
    NoProxy,
    /// Several are.
    ManyProxies,
}

impl Unknown {
    /// Whether pods with this cannot start at all.
    pub fn keeps_pods_from_starting(&self) -> bool {
        matches!(self, Self::NoObject(_) | Self::NoKey(_))
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObject(source) => write!(f, "{source} not found"),
            Self::NoKey(key) => write!(f, "{key} not found"),
            Self::Unseen(key) => write!(f, "it comes from {key}, which cannot be read here"),
            Self::PodField(path) => write!(f, "it comes from fieldRef {path}"),
            Self::OtherSource => write!(f, "it comes from a valueFrom that is not known here"),
            Self::Long => write!(f, "its value is longer than {LONGEST} bytes"),
            Self::File(path) => write!(f, "it comes from the file {path}"),
            Self::ConfFile(path) => write!(f, "it may be set in the configuration file {path}"),
            Self::Command => write!(f, "the container's command line names it"),
            Self::Vault => write!(f, "it comes from a vault"),
            Self::Revision(name) => {
                write!(f, "the live spec is kept in ControllerRevision {name}, which is not seen here")
            }
            Self::NoProxy => write!(f, "no container is called \"proxy\""),
            Self::ManyProxies => write!(f, "several containers are called \"proxy\""),
        }
    }
}

/// What a variable comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvVariable {
    /// The container has none of that name.
    Unset,
    /// Its value.
    Set {
        /// The value.
        value: String,
        /// What it was made from beside the template itself; such values are shown to nobody.
        keys: Vec<SourceKey>,
    },
    /// It cannot be told.
    Unknown(Unknown),
}

impl EnvVariable {
    fn read(value: String, key: SourceKey) -> Self {
        Self::bounded(value, vec![key])
    }

    fn bounded(value: String, keys: Vec<SourceKey>) -> Self {
        if value.len() > LONGEST { Self::Unknown(Unknown::Long) } else { Self::Set { value, keys } }
    }

    /// The value, where it is known.
    pub fn value(&self) -> Option<&str> {
        match self {
            Self::Set { value, .. } => Some(value),
            Self::Unset | Self::Unknown(_) => None,
        }
    }
}

/// Where a container runs.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Namespace of the pod.
    pub namespace: &'a str,
    /// Metadata of the pod template.
    pub template: &'a PodMetadata,
    /// What it refers to.
    pub sources: &'a dyn Sources,
}

/// The variables of a container that are asked for.
///
/// Only what these rest on is looked at, and only such sources are asked.
pub fn variables<'c>(
    container: &'c Container,
    surroundings: Surroundings<'_>,
    wanted: &[&'c str],
) -> BTreeMap<&'c str, EnvVariable> {
    let needed = needed(container, wanted);
    let mut found: BTreeMap<&str, EnvVariable> = BTreeMap::new();
    for &name in &needed {
        found.insert(name, surroundings.imported(&container.env_from, name));
    }
    for entry in container.env.iter().filter(|entry| needed.contains(entry.name.as_str())) {
        if let Some(variable) = surroundings.declared(entry, &found) {
            found.insert(&entry.name, variable);
        }
    }
    found
}

/// The names that some variables may rest on. References point backwards, so one pass from the
/// last entry to the first finds them all.
fn needed<'c>(container: &'c Container, wanted: &[&'c str]) -> BTreeSet<&'c str> {
    let mut needed: BTreeSet<&str> = wanted.iter().copied().collect();
    for entry in container.env.iter().rev() {
        if needed.contains(entry.name.as_str()) && entry.value.contains('$') {
            needed.extend(pieces(&entry.value).into_iter().filter_map(|piece| match piece {
                ValuePiece::Reference(name) => Some(name),
                ValuePiece::Text(_) => None,
            }));
        }
    }
    needed
}

impl Surroundings<'_> {
    fn key(&self, kind: SourceKind, name: &str, key: &str) -> SourceKey {
        SourceKey {
            source: FlavorSource { kind, name: NamespacedName::new(self.namespace, name) },
            key: key.to_owned(),
        }
    }

    /// What `envFrom` gives a name; a later source wins.
    fn imported(&self, env_from: &[EnvFrom], name: &str) -> EnvVariable {
        for from in env_from.iter().rev() {
            let Some(key) = name.strip_prefix(from.prefix.as_str()).filter(|key| !key.is_empty()) else {
                continue;
            };
            let (kind, reference) = match (&from.config_map_ref, &from.secret_ref) {
                (Some(reference), _) => (SourceKind::ConfigMap, reference),
                (None, Some(reference)) => (SourceKind::Secret, reference),
                (None, None) => continue,
            };
            let key = self.key(kind, &reference.name, key);
            match self.sources.ask(&key.source, &key.key) {
                KeyLookup::Value(value) => return EnvVariable::read(value, key),
                KeyLookup::NoObject if !reference.optional => {
                    return EnvVariable::Unknown(Unknown::NoObject(key.source));
                }
                KeyLookup::NoKey | KeyLookup::NoObject => {}
                KeyLookup::Unseen => return EnvVariable::Unknown(Unknown::Unseen(key)),
            }
        }
        EnvVariable::Unset
    }

    /// What an entry of `env` gives its name; `None` where it leaves what is there.
    fn declared(&self, entry: &EnvVar, before: &BTreeMap<&str, EnvVariable>) -> Option<EnvVariable> {
        if !entry.value.is_empty() {
            return Some(expanded(&entry.value, before));
        }
        let Some(from) = &entry.value_from else {
            return Some(EnvVariable::Set { value: String::new(), keys: Vec::new() });
        };
        self.referred(from)
    }

    fn referred(&self, from: &ValueFrom) -> Option<EnvVariable> {
        let (kind, reference) = match (&from.config_map_key_ref, &from.secret_key_ref, &from.field_ref) {
            (Some(reference), _, _) => (SourceKind::ConfigMap, reference),
            (None, Some(reference), _) => (SourceKind::Secret, reference),
            (None, None, Some(field)) => return Some(self.field(&field.field_path)),
            (None, None, None) => return Some(EnvVariable::Unknown(Unknown::OtherSource)),
        };
        let key = self.key(kind, &reference.name, &reference.key);
        match self.sources.ask(&key.source, &key.key) {
            KeyLookup::Value(value) => Some(EnvVariable::read(value, key)),
            KeyLookup::NoKey | KeyLookup::NoObject if reference.optional => None,
            KeyLookup::NoKey => Some(EnvVariable::Unknown(Unknown::NoKey(key))),
            KeyLookup::NoObject => Some(EnvVariable::Unknown(Unknown::NoObject(key.source))),
            KeyLookup::Unseen => Some(EnvVariable::Unknown(Unknown::Unseen(key))),
        }
    }

    /// A label or annotation that the template sets is there in its pods; another may come from
    /// whoever makes them.
    fn field(&self, path: &str) -> EnvVariable {
        let of = |map: &BTreeMap<String, String>, what: &str| {
            let key = path.strip_prefix(what)?.strip_prefix("['")?.strip_suffix("']")?;
            map.get(key).cloned()
        };
        let found = of(&self.template.labels, "metadata.labels")
            .or_else(|| of(&self.template.annotations, "metadata.annotations"));
        match found {
            Some(value) => EnvVariable::bounded(value, Vec::new()),
            None => EnvVariable::Unknown(Unknown::PodField(path.to_owned())),
        }
    }
}

fn expanded(value: &str, before: &BTreeMap<&str, EnvVariable>) -> EnvVariable {
    let mut out = String::new();
    let mut keys: Vec<SourceKey> = Vec::new();
    for piece in pieces(value) {
        match piece {
            ValuePiece::Text(text) => out.push_str(text),
            ValuePiece::Reference(name) => match before.get(name) {
                Some(EnvVariable::Set { value, keys: more }) => {
                    out.push_str(value);
                    keys.extend(more.iter().cloned());
                }
                Some(EnvVariable::Unknown(why)) => return EnvVariable::Unknown(why.clone()),
                Some(EnvVariable::Unset) | None => {
                    out.push_str("$(");
                    out.push_str(name);
                    out.push(')');
                }
            },
        }
        if out.len() > LONGEST {
            return EnvVariable::Unknown(Unknown::Long);
        }
    }
    keys.sort();
    keys.dedup();
    EnvVariable::bounded(out, keys)
}
