//! Variables of a container, as the kubelet makes them
//! (`pkg/kubelet/kubelet_pods.go`, `makeEnvironmentVariables`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::expand::{Piece, pieces};
use super::sources::{Asked, LONGEST, Source, SourceKind, Sources};
use crate::api::object::NamespacedName;
use crate::api::pod::{Container, EnvFrom, EnvVar, Metadata, ValueFrom};

/// A key of a ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The object.
    pub source: Source,
    /// The key.
    pub key: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key \"{}\"", self.source, self.key)
    }
}

/// Why a value cannot be told from the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// A mandatory object is not there: the pod cannot start.
    NoObject(Source),
    /// A mandatory key is not there: the pod cannot start.
    NoKey(Key),
    /// The object is not ours to read.
    Unseen(Key),
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
pub enum Variable {
    /// The container has none of that name.
    Unset,
    /// Its value.
    Set {
        /// The value.
        value: String,
        /// What it was made from beside the template itself; such values are shown to nobody.
        keys: Vec<Key>,
    },
    /// It cannot be told.
    Unknown(Unknown),
}

impl Variable {
    fn read(value: String, key: Key) -> Self {
        Self::bounded(value, vec![key])
    }

    fn bounded(value: String, keys: Vec<Key>) -> Self {
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
    pub template: &'a Metadata,
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
) -> BTreeMap<&'c str, Variable> {
    let needed = needed(container, wanted);
    let mut found: BTreeMap<&str, Variable> = BTreeMap::new();
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
                Piece::Reference(name) => Some(name),
                Piece::Text(_) => None,
            }));
        }
    }
    needed
}

impl Surroundings<'_> {
    fn key(&self, kind: SourceKind, name: &str, key: &str) -> Key {
        Key { source: Source { kind, name: NamespacedName::new(self.namespace, name) }, key: key.to_owned() }
    }

    /// What `envFrom` gives a name; a later source wins.
    fn imported(&self, env_from: &[EnvFrom], name: &str) -> Variable {
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
                Asked::Value(value) => return Variable::read(value, key),
                Asked::NoObject if !reference.optional => {
                    return Variable::Unknown(Unknown::NoObject(key.source));
                }
                Asked::NoKey | Asked::NoObject => {}
                Asked::Unseen => return Variable::Unknown(Unknown::Unseen(key)),
            }
        }
        Variable::Unset
    }

    /// What an entry of `env` gives its name; `None` where it leaves what is there.
    fn declared(&self, entry: &EnvVar, before: &BTreeMap<&str, Variable>) -> Option<Variable> {
        if !entry.value.is_empty() {
            return Some(expanded(&entry.value, before));
        }
        let Some(from) = &entry.value_from else {
            return Some(Variable::Set { value: String::new(), keys: Vec::new() });
        };
        self.referred(from)
    }

    fn referred(&self, from: &ValueFrom) -> Option<Variable> {
        let (kind, reference) = match (&from.config_map_key_ref, &from.secret_key_ref, &from.field_ref) {
            (Some(reference), _, _) => (SourceKind::ConfigMap, reference),
            (None, Some(reference), _) => (SourceKind::Secret, reference),
            (None, None, Some(field)) => return Some(self.field(&field.field_path)),
            (None, None, None) => return Some(Variable::Unknown(Unknown::OtherSource)),
        };
        let key = self.key(kind, &reference.name, &reference.key);
        match self.sources.ask(&key.source, &key.key) {
            Asked::Value(value) => Some(Variable::read(value, key)),
            Asked::NoKey | Asked::NoObject if reference.optional => None,
            Asked::NoKey => Some(Variable::Unknown(Unknown::NoKey(key))),
            Asked::NoObject => Some(Variable::Unknown(Unknown::NoObject(key.source))),
            Asked::Unseen => Some(Variable::Unknown(Unknown::Unseen(key))),
        }
    }

    /// A label or annotation that the template sets is there in its pods; another may come from
    /// whoever makes them.
    fn field(&self, path: &str) -> Variable {
        let of = |map: &BTreeMap<String, String>, what: &str| {
            let key = path.strip_prefix(what)?.strip_prefix("['")?.strip_suffix("']")?;
            map.get(key).cloned()
        };
        let found = of(&self.template.labels, "metadata.labels")
            .or_else(|| of(&self.template.annotations, "metadata.annotations"));
        match found {
            Some(value) => Variable::bounded(value, Vec::new()),
            None => Variable::Unknown(Unknown::PodField(path.to_owned())),
        }
    }
}

fn expanded(value: &str, before: &BTreeMap<&str, Variable>) -> Variable {
    let mut out = String::new();
    let mut keys: Vec<Key> = Vec::new();
    for piece in pieces(value) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Reference(name) => match before.get(name) {
                Some(Variable::Set { value, keys: more }) => {
                    out.push_str(value);
                    keys.extend(more.iter().cloned());
                }
                Some(Variable::Unknown(why)) => return Variable::Unknown(why.clone()),
                Some(Variable::Unset) | None => {
                    out.push_str("$(");
                    out.push_str(name);
                    out.push(')');
                }
            },
        }
        if out.len() > LONGEST {
            return Variable::Unknown(Unknown::Long);
        }
    }
    keys.sort();
    keys.dedup();
    Variable::bounded(out, keys)
}
