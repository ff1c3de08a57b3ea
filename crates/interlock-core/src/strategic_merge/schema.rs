//! How the fields of built-in kinds are merged: `schema.json`, which `tests/e2e/merge_schema.rs` writes from what the
//! API server publishes (`/openapi/v2`: `x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key` and
//! `x-kubernetes-list-map-keys`).
//!
//! It leaves out `status`, which no apply writes, and the kinds that KUDO merges like custom ones:
//! CustomResourceDefinitions and APIServices.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::list_key::{ListKey, Member};
use crate::api::object::Gvk;

/// As it is written.
const TEXT: &str = include_str!("schema.json");

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::from(published()));

/// The file as it is committed. A test reads it; were it empty, every kind would be merged like a custom one.
pub fn published() -> SchemaFile<'static> {
    serde_json::from_str(TEXT).unwrap_or_default()
}

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaFile<'a> {
    /// The type of each kind, by `apiVersion`.
    #[serde(borrow)]
    pub kinds: BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>,
    /// The fields of each type that are merged by a rule, or lead to such a field.
    #[serde(borrow)]
    pub types: BTreeMap<&'a str, BTreeMap<&'a str, FieldEntry<'a>>>,
}

/// A field in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldEntry<'a> {
    /// The member of an element that tells it from others.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<&'a str>,
    /// The members that do so for the API server, where these are others.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<&'a str>,
    /// `merge`, `replace` or `retainKeys`, or two of them.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<&'a str>,
    /// The type of the object, or of the elements of the list.
    #[serde(borrow, rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub of: Option<&'a str>,
}

#[derive(Debug)]
struct Schema {
    kinds: BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>,
    types: BTreeMap<&'static str, TypeRules>,
}

impl From<SchemaFile<'static>> for Schema {
    fn from(file: SchemaFile<'static>) -> Self {
        let rules = |fields: BTreeMap<&'static str, FieldEntry<'static>>| {
            fields.into_iter().map(|(name, entry)| (name, FieldRules::from(entry))).collect()
        };
        let types = file.types.into_iter().map(|(name, fields)| (name, rules(fields))).collect();
        Self { kinds: file.kinds, types }
    }
}

type TypeRules = BTreeMap<&'static str, FieldRules>;

/// How a field is merged.
#[derive(Debug, Default)]
struct FieldRules {
    merges: bool,
    replaces: bool,
    retains_keys: bool,
    key: Vec<Member>,
    keys: Vec<Member>,
    of: Option<&'static str>,
}

impl From<FieldEntry<'static>> for FieldRules {
    fn from(entry: FieldEntry<'static>) -> Self {
        let has = |word| entry.strategy.is_some_and(|strategy| strategy.split(',').any(|part| part == word));
        Self {
            merges: has("merge"),
            replaces: has("replace"),
            retains_keys: has("retainKeys"),
            key: entry.key.map(ListKey::member).into_iter().collect(),
            keys: entry.keys.into_iter().map(ListKey::member).collect(),
            of: entry.of,
        }
    }
}

/// The type of an object: how its fields are merged.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectType(Option<&'static TypeRules>);

impl ObjectType {
    /// The type of a built-in kind; `None` for any other. A version that is not known is merged like another one of
    /// the kind.
    pub fn of_kind(gvk: &Gvk) -> Option<Self> {
        let of_version = |kinds: &BTreeMap<&str, &'static str>| kinds.get(gvk.kind.as_str()).copied();
        let name = SCHEMA.kinds.get(gvk.api_version().as_str()).and_then(of_version).or_else(|| {
            let same_group = |(version, _): &(&&'static str, _)| Gvk::new(version, "").group == gvk.group;
            SCHEMA.kinds.iter().filter(same_group).find_map(|(_, kinds)| of_version(kinds))
        })?;
        Some(Self(SCHEMA.types.get(name)))
    }

    /// How a field of it is merged.
    pub fn field(self, name: &str) -> FieldType {
        FieldType(self.0.and_then(|rules| rules.get(name)))
    }
}

/// How a field is merged; one that has no rule as an object member by member, as a list as a whole.
#[derive(Clone, Copy, Debug)]
pub struct FieldType(Option<&'static FieldRules>);

impl FieldType {
    /// Whether a list is merged element by element.
    pub fn merges(self) -> bool {
        self.0.is_some_and(|rules| rules.merges)
    }

    /// Whether an object is replaced as a whole.
    pub fn replaces(self) -> bool {
        self.0.is_some_and(|rules| rules.replaces)
    }

    /// Whether an object keeps no member that the desired one lacks.
    pub fn retains_keys(self) -> bool {
        self.0.is_some_and(|rules| rules.retains_keys)
    }

    /// The keys that identify an element, that of a merge first.
    pub fn keys(self) -> impl Iterator<Item = ListKey> {
        let keys = self.0.into_iter().flat_map(|rules| [&rules.key, &rules.keys]);
        keys.filter(|key| !key.is_empty()).map(|key| ListKey::new(key))
    }

    /// The type of the object, or of the elements of the list.
    pub fn of(self) -> ObjectType {
        ObjectType(self.0.and_then(|rules| rules.of).and_then(|name| SCHEMA.types.get(name)))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_file_names_only_types_that_it_has() {
        let file: SchemaFile<'_> = serde_json::from_str(TEXT).unwrap();
        let fields = file.types.values().flat_map(BTreeMap::values).filter_map(|field| field.of);
        for name in file.kinds.values().flat_map(BTreeMap::values).copied().chain(fields) {
            assert!(file.types.contains_key(name), "{name}");
        }
        assert_eq!(serde_json::to_string_pretty(&file).unwrap() + "\n", TEXT);
    }

    #[rstest]
    #[case::of_the_list("apps/v1", "Deployment", true)]
    #[case::another_version("apps/v1beta2", "Deployment", true)]
    #[case::without_a_list("v1", "ConfigMap", true)]
    #[case::of_another_group("example.com/v1", "Deployment", false)]
    #[case::a_definition("apiextensions.k8s.io/v1", "CustomResourceDefinition", false)]
    #[case::ours("kudo.dev/v1beta1", "Instance", false)]
    fn built_in_kinds(#[case] api_version: &str, #[case] kind: &str, #[case] built_in: bool) {
        assert_eq!(ObjectType::of_kind(&Gvk::new(api_version, kind)).is_some(), built_in);
    }

    #[test]
    fn a_field_deep_in_a_kind() {
        let deployment = ObjectType::of_kind(&Gvk::new("apps/v1", "Deployment")).unwrap();
        let container =
            deployment.field("spec").of().field("template").of().field("spec").of().field("containers");
        assert!(container.merges());
        assert_eq!(container.of().field("ports").keys().count(), 2);
        assert!(!container.of().field("args").merges());
        assert!(deployment.field("spec").of().field("strategy").retains_keys());
    }
}
