//! How the fields of built-in kinds are merged is what the API server publishes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use interlock_core::strategic_merge::schema::{FieldEntry, SchemaFile};
use serde_json::Value;

use crate::support::Cluster;

const FILE: &str = "crates/interlock-core/src/strategic_merge/schema.json";
/// The API types of Kubernetes itself. Definitions and APIServices are in other packages: they are merged as custom
/// kinds are.
const BUILT_IN: &str = "io.k8s.api.";
const META: &str = "io.k8s.apimachinery.pkg.apis.";
/// What most kinds are: metadata, and nothing else that is merged by a rule.
const OBJECT: &str = "Object";

type Fields<'a> = BTreeMap<&'a str, FieldEntry<'a>>;

/// The definitions of the document, by their names.
struct Published<'a>(BTreeMap<&'a str, &'a Value>);

impl<'a> Published<'a> {
    fn of(document: &'a Value) -> Self {
        let definitions = document["definitions"].as_object().expect("definitions");
        let types =
            definitions.iter().filter(|(name, _)| name.starts_with(BUILT_IN) || name.starts_with(META));
        Self(types.map(|(name, definition)| (short(name), definition)).collect())
    }

    /// The fields of each type that are merged by a rule, or lead to a type with one.
    fn types(&self) -> BTreeMap<&'a str, Fields<'a>> {
        let mut found: BTreeMap<&str, Fields<'_>> = BTreeMap::new();
        loop {
            let fields = self.0.iter().map(|(name, definition)| (*name, fields(definition, &found)));
            let next: BTreeMap<_, _> = fields.filter(|(_, fields)| !fields.is_empty()).collect();
            if next == found {
                return found;
            }
            found = next;
        }
    }

    fn kinds(&self, types: &BTreeMap<&'a str, Fields<'a>>) -> BTreeMap<String, BTreeMap<&'a str, &'a str>> {
        let mut kinds: BTreeMap<String, BTreeMap<&str, &str>> = BTreeMap::new();
        for (name, definition) in self.0.iter().filter(|(name, _)| types.contains_key(*name)) {
            for kind in definition["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let text = |field: &str| kind[field].as_str().unwrap_or_default();
                let name = if is_object(&types[name]) { OBJECT } else { name };
                if text("kind").ends_with("List") || name.starts_with("meta.") {
                    continue;
                }
                let version = match text("group") {
                    "" => text("version").to_owned(),
                    group => format!("{group}/{}", text("version")),
                };
                kinds.entry(version).or_default().insert(kind["kind"].as_str().unwrap_or_default(), name);
            }
        }
        kinds
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix(BUILT_IN).or_else(|| name.strip_prefix(META)).unwrap_or(name)
}

fn fields<'a>(definition: &'a Value, types: &BTreeMap<&'a str, Fields<'a>>) -> Fields<'a> {
    let properties = definition["properties"].as_object().into_iter().flatten();
    let all = properties.filter(|(name, _)| *name != "status").map(|(name, property)| {
        let text = |field: &str| property[field].as_str();
        let strategy = text("x-kubernetes-patch-strategy");
        let key = text("x-kubernetes-patch-merge-key");
        let keys = property["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
        let keys: Vec<&str> = keys.filter_map(Value::as_str).collect();
        // What is in a list that is replaced as a whole is not merged.
        let is_merged = text("type") != Some("array") || strategy.is_some_and(|s| s.contains("merge"));
        let of = text("$ref").or_else(|| property["items"]["$ref"].as_str());
        let of = of
            .and_then(|of| of.rsplit('/').next())
            .map(short)
            .filter(|of| is_merged && types.contains_key(of));
        let of = of.map(|of| if is_object(&types[of]) { OBJECT } else { of });
        let keys = if strategy.is_none() || key.is_some_and(|key| keys == [key]) { Vec::new() } else { keys };
        (name.as_str(), FieldEntry { key, keys, strategy, of })
    });
    all.filter(|(_, entry)| *entry != FieldEntry::default()).collect()
}

fn is_object(fields: &Fields<'_>) -> bool {
    fields.keys().eq(["metadata"].iter())
}

/// The types that kinds lead to.
fn reachable<'a>(
    types: &BTreeMap<&'a str, Fields<'a>>,
    kinds: impl Iterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let mut todo: Vec<&str> = kinds.collect();
    let mut found = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if found.insert(name) {
            todo.extend(types[name].values().filter_map(|field| field.of));
        }
    }
    found
}

/// The fields that both know and merge by different rules.
fn differences(one: &SchemaFile<'_>, other: &SchemaFile<'_>) -> Vec<String> {
    let rule = |entry: &FieldEntry<'_>| format!("{:?}", (entry.key, &entry.keys, entry.strategy));
    let fields = one.types.iter().flat_map(|(name, fields)| fields.iter().map(move |field| (*name, field)));
    let both = fields
        .filter_map(|(name, (field, one))| Some((name, field, one, other.types.get(name)?.get(field)?)));
    let told = both.filter(|(_, _, one, other)| rule(one) != rule(other));
    told.map(|(name, field, one, other)| format!("{name}.{field}: {} -> {}", rule(one), rule(other)))
        .collect()
}

#[test]
fn fields_are_merged_as_the_api_server_publishes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let document = Cluster::shared().admin().read("/openapi/v2").ok();
    let published = Published::of(&document);
    let mut types = published.types();
    let kinds = published.kinds(&types);
    let metadata = FieldEntry { of: Some("meta.v1.ObjectMeta"), ..FieldEntry::default() };
    types.insert(OBJECT, BTreeMap::from([("metadata", metadata)]));
    let kinds: BTreeMap<&str, _> =
        kinds.iter().map(|(version, kinds)| (version.as_str(), kinds.clone())).collect();
    let used = reachable(&types, kinds.values().flat_map(BTreeMap::values).copied());
    types.retain(|name, _| used.contains(name));
    let found = SchemaFile { kinds, types };
    let committed = std::fs::read_to_string(&path).unwrap();
    let version = Cluster::shared().admin().read("/version").ok()["gitVersion"].as_str().unwrap().to_owned();
    if !include_str!("../testbed/go.mod").contains(&format!("k8s.io/kubernetes {version}\n")) {
        let differences = differences(&serde_json::from_str(&committed).unwrap(), &found);
        assert!(differences.is_empty(), "{version} merges otherwise: {differences:#?}");
        return;
    }
    let found = serde_json::to_string_pretty(&found).unwrap() + "\n";
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        return std::fs::write(&path, &found).unwrap();
    }
    similar_asserts::assert_eq!(committed, found, "{FILE}; INTERLOCK_BLESS=1 writes what is published now");
}
