//! Variables of a container, as the kubelet makes them
//! (`pkg/kubelet/kubelet_pods.go`, `makeEnvironmentVariables`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::pod::{Container, EnvFrom, EnvVar, PodMetadata, ValueFrom};

use super::sources::{FlavorSource, KeyLookup, LONGEST, SourceKind, Sources};

/// The variable that sets the flavor.
pub const VARIABLE: &str = "KONG_ROUTER_FLAVOR";
/// The variable that names a file with the flavor; the image's entrypoint reads it.
pub const FILE_VARIABLE: &str = "KONG_ROUTER_FLAVOR_FILE";

/// A key of a ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceKey {
    /// The object.
    pub source: FlavorSource,
    pub key: String,
}

impl fmt::Display for SourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key \"{}\"", self.source, self.key)
    }
}

/// Why the objects do not determine a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// A mandatory object does not exist: the pod cannot start.
    NoObject(FlavorSource),
    /// A mandatory key does not exist: the pod cannot start.
    NoKey(SourceKey),
    /// Interlock may not read the object.
    Unseen(SourceKey),
    /// A field of the pod that is unknown before the pod runs.
    PodField(String),
    /// A source that Interlock does not support.
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
    /// This ControllerRevision, which is unknown here, holds the spec of the live pods.
    Revision(NamespacedName),
    /// No container is called `proxy`.
    NoProxy,
    /// Several containers are called `proxy`.
    ManyProxies,
    /// No container of a Deployment is known to run Kong.
    NoKong,
    /// Several containers of a Deployment may run Kong: some of them, each with the flavor that it says, so that another
    /// one is a change.
    ManyKongs(Vec<(String, String)>),
    /// The annotation that names the container of Kong names none of the template.
    NoContainer(String),
}

impl Unknown {
    /// Whether pods with this environment cannot start at all.
    pub fn blocks_pod_start(&self) -> bool {
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
            Self::NoKong => write!(
                f,
                "no container is called \"proxy\" or has an image of Kong (name it in the annotation {} of the pods)",
                meta::KONG_CONTAINER
            ),
            Self::ManyKongs(some) => {
                let names: Vec<&str> = some.iter().map(|(name, _)| name.as_str()).collect();
                write!(
                    f,
                    "several containers may run Kong: {} (name the one in the annotation {} of the pods)",
                    names.join(", "),
                    meta::KONG_CONTAINER
                )
            }
            Self::NoContainer(name) => {
                write!(
                    f,
                    "no container is called \"{}\", which the annotation {} names",
                    name.escape_debug(),
                    meta::KONG_CONTAINER
                )
            }
        }
    }
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvVariable {
    /// The container has none of that name.
    Unset,
    /// Its value.
    Set {
        value: String,
        /// The keys that it was computed from beside the template; such values are never shown.
        keys: Vec<SourceKey>,
    },
    /// The value is unknown.
    Unknown(Unknown),
}

impl EnvVariable {
    fn read(value: String, key: SourceKey) -> Self {
        Self::bounded(value, vec![key])
    }

    fn bounded(value: String, keys: Vec<SourceKey>) -> Self {
        if value.len() > LONGEST { Self::Unknown(Unknown::Long) } else { Self::Set { value, keys } }
    }

    /// The value, if it is known.
    pub fn value(&self) -> Option<&str> {
        match self {
            Self::Set { value, .. } => Some(value),
            Self::Unset | Self::Unknown(_) => None,
        }
    }
}

/// The context of a container.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Namespace of the pod.
    pub namespace: &'a str,
    pub template: &'a PodMetadata,
    /// The objects that it refers to.
    pub sources: &'a dyn Sources,
}

/// The requested variables of a container.
///
/// Reads only the entries and sources that these depend on.
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

/// The names that some variables may depend on. References point backwards, so one pass from the last
/// entry to the first finds them all.
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

    /// The value that `envFrom` sets for a name; a later source wins.
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

    /// The value that an entry of `env` sets; `None` if it leaves the previous one.
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

    /// A label or annotation that the template sets exists in its pods; their creator may add others.
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

/// A part of the value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePiece<'a> {
    Text(&'a str),
    /// A reference; the name between the brackets.
    Reference(&'a str),
}

/// The parts of a value, as the kubelet expands them (`third_party/forked/golang/expansion`): `$$` is a dollar sign, and
/// text that is no valid reference stays as it is.
pub fn pieces(value: &str) -> Vec<ValuePiece<'_>> {
    let mut found = Vec::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        if !before.is_empty() {
            found.push(ValuePiece::Text(before));
        }
        let (piece, left) = match after.as_bytes().first() {
            Some(b'$') => (ValuePiece::Text("$"), &after[1..]),
            Some(b'(') => match after.find(')') {
                Some(end) => (ValuePiece::Reference(&after[1..end]), &after[end + 1..]),
                None => (ValuePiece::Text("$("), &after[1..]),
            },
            _ => (ValuePiece::Text("$"), after),
        };
        found.push(piece);
        rest = left;
    }
    if !rest.is_empty() {
        found.push(ValuePiece::Text(rest));
    }
    found
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn expand(value: &str) -> String {
        let text = |piece| match piece {
            ValuePiece::Text(text) => text.to_owned(),
            ValuePiece::Reference("A") => "a".to_owned(),
            ValuePiece::Reference(other) => format!("$({other})"),
        };
        pieces(value).into_iter().map(text).collect()
    }

    /// Rows of the kubelet's own table (`expand_test.go`).
    #[rstest]
    #[case("$(A)", "a")]
    #[case("___$(A)___", "___a___")]
    #[case("$(B)", "$(B)")]
    #[case("$$(A)", "$(A)")]
    #[case("$$$(A)", "$a")]
    #[case("$$$$(A)", "$$(A)")]
    #[case("$(A", "$(A")]
    #[case("$", "$")]
    #[case("$$", "$")]
    #[case("$A", "$A")]
    #[case("foo$", "foo$")]
    #[case("$($(A)", "$($(A)")]
    #[case("$()", "$()")]
    #[case("\u{e9}$\u{e9}$(A)", "\u{e9}$\u{e9}a")]
    fn as_the_kubelet(#[case] value: &str, #[case] expanded: &str) {
        assert_eq!(expand(value), expanded);
    }
}
