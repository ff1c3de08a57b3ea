//! The table of CustomResourceDefinitions: which custom kinds can be used, and why others cannot.
//!
//! Existing, established and served are three separate moments, so the table checks all of them.
//! A definition is kept as a row of a few words; its schemas are never built (see [`DecodedDefinition`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use interlock_core::api::object::Gvk;
use serde::{Deserialize, Deserializer, Serialize};

/// A CustomResourceDefinition as this process decodes it: fields not named here, schemas above all, are
/// skipped while the bytes are parsed. No field is required, so that no definition can make a list
/// unreadable.
pub type DecodedDefinition = kube::core::Object<CrdSpec, CrdStatus>;

/// `spec` of a definition.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CrdSpec {
    pub group: String,
    pub names: CrdNames,
    pub scope: String,
    #[serde(deserialize_with = "or_default")]
    pub versions: Vec<CrdVersion>,
}

/// `spec.names` of a definition.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CrdNames {
    pub kind: String,
    pub plural: String,
}

/// One of `spec.versions` of a definition.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CrdVersion {
    pub name: String,
    pub served: bool,
    #[serde(deserialize_with = "or_default", skip_serializing)]
    pub schema: CrdSchema,
}

/// The part of a version's schema that is decoded: the names of the fields of `status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CrdSchema {
    #[serde(rename = "openAPIV3Schema", deserialize_with = "or_default")]
    pub root: SchemaOf<StatusProperty>,
}

/// A schema whose properties are decoded as `P`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SchemaOf<P: Default> {
    pub properties: Option<P>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub preserves_unknown_fields: Option<bool>,
}

/// `properties` of the schema of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StatusProperty {
    pub status: Option<SchemaOf<BTreeMap<String, serde::de::IgnoredAny>>>,
}

impl CrdSchema {
    /// The fields of `status` that are stored; `None` where all are.
    fn status_fields(self) -> Option<BTreeSet<String>> {
        let preserves = |schema: Option<bool>| schema == Some(true);
        let status = self.root.properties.unwrap_or_default().status.unwrap_or_default();
        let all = preserves(self.root.preserves_unknown_fields) || preserves(status.preserves_unknown_fields);
        (!all).then(|| status.properties.unwrap_or_default().into_keys().collect())
    }
}

/// `status` of a definition.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CrdStatus {
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<CrdCondition>,
}

/// One of `status.conditions` of a definition.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CrdCondition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    pub message: String,
}

/// Reads `null` as absent, as Go does.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Why a kind cannot be used now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// There is no definition of it.
    Missing,
    /// Its definition is not established; the API server's message.
    NotEstablished(String),
    /// Its definition serves other versions only.
    NotServed {
        /// Acceptable versions.
        wanted: Vec<String>,
        /// Served versions.
        served: Vec<String>,
    },
    /// Its definition has another scope than the requested kind.
    OtherScope,
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is not installed"),
            Self::NotEstablished(why) if why.is_empty() => f.write_str("is not established yet"),
            Self::NotEstablished(why) => write!(f, "is not established: {why}"),
            Self::NotServed { wanted, served } if served.is_empty() => {
                write!(f, "serves no version, not {}", wanted.join(" or "))
            }
            Self::NotServed { wanted, served } => {
                write!(f, "serves {}, not {}", served.join(" and "), wanted.join(" or "))
            }
            Self::OtherScope => f.write_str("has the wrong scope"),
        }
    }
}

/// The definition of a kind and the version in use. Under another identity, earlier knowledge of the kind
/// does not apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `metadata.uid` of the definition; empty for kinds that are built into the API server.
    pub uid: String,
    /// The version in use.
    pub version: String,
    /// Those of the fields of `status` that Interlock writes and that the definition lacks. A watch that was opened
    /// before it got them goes on to leave them out.
    pub dropped: Vec<&'static str>,
}

/// A kind that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usable {
    /// Its definition, and the version.
    pub identity: Identity,
    /// Plural, as in the path.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Every served version; the objects are the same at each.
    pub served: Vec<String>,
    /// Whether its definition is being deleted: until the last object is gone, objects can be read, changed
    /// and deleted, but not created.
    pub terminating: bool,
    /// The fields of `status` that the API server stores at the version in use; `None` where it stores all.
    pub status_fields: Option<BTreeSet<String>>,
}

impl Usable {
    /// The same, for objects in whose `status` Interlock writes these fields.
    #[must_use]
    pub fn with_status_of(mut self, fields: &[&'static str]) -> Self {
        if let Some(stored) = &self.status_fields {
            self.identity.dropped = fields.iter().copied().filter(|field| !stored.contains(*field)).collect();
        }
        self
    }
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    uid: String,
    group: String,
    kind: String,
    plural: String,
    namespaced: bool,
    served: Vec<String>,
    /// By served version: the fields of `status` that are stored, `None` for all.
    status_fields: BTreeMap<String, Option<BTreeSet<String>>>,
    /// `None` while it can be used; else the API server's message.
    unestablished: Option<String>,
    terminating: bool,
}

impl Row {
    fn of(definition: DecodedDefinition) -> Self {
        let CrdSpec { group, names, scope, versions } = definition.spec;
        let conditions = definition.status.unwrap_or_default().conditions;
        let find = |type_: &str| conditions.iter().find(|c| c.type_ == type_);
        let holds = |type_: &str| find(type_).is_some_and(|c| c.status == "True");
        let said = |type_: &str| find(type_).map(|c| c.message.clone()).unwrap_or_default();
        let unestablished = match (holds("NamesAccepted"), holds("Established")) {
            (true, true) => None,
            (false, _) => Some(said("NamesAccepted")),
            (true, false) => Some(said("Established")),
        };
        Self {
            uid: definition.metadata.uid.unwrap_or_default(),
            group,
            kind: names.kind,
            plural: names.plural,
            namespaced: scope == "Namespaced",
            served: versions.iter().filter(|v| v.served).map(|v| v.name.clone()).collect(),
            status_fields: versions
                .into_iter()
                .filter(|v| v.served)
                .map(|v| (v.name, v.schema.status_fields()))
                .collect(),
            unestablished,
            terminating: definition.metadata.deletion_timestamp.is_some() || holds("Terminating"),
        }
    }

    fn group_kind(&self) -> GroupKind {
        (self.group.clone(), self.kind.clone())
    }

    fn usable(&self, versions: &[String]) -> Result<Usable, Absence> {
        if let Some(why) = &self.unestablished {
            return Err(Absence::NotEstablished(why.clone()));
        }
        let version = versions
            .iter()
            .find(|v| self.served.contains(v))
            .ok_or_else(|| Absence::NotServed { wanted: versions.to_vec(), served: self.served.clone() })?;
        Ok(Usable {
            identity: Identity { uid: self.uid.clone(), version: version.clone(), dropped: Vec::new() },
            plural: self.plural.clone(),
            namespaced: self.namespaced,
            served: self.served.clone(),
            terminating: self.terminating,
            status_fields: self.status_fields.get(version).cloned().flatten(),
        })
    }
}

type GroupKind = (String, String);

/// Every definition of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Crds {
    rows: BTreeMap<String, Row>,
    /// Names by group and kind: several can claim the same kind, the API server accepts one.
    names: BTreeMap<GroupKind, BTreeSet<String>>,
}

impl Crds {
    /// Adds or replaces a definition; returns the groups and kinds that may have changed.
    pub fn apply(&mut self, definition: DecodedDefinition) -> BTreeSet<GroupKind> {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let row = Row::of(definition);
        if self.rows.get(&name) == Some(&row) {
            return BTreeSet::new();
        }
        let mut touched = self.remove(&name);
        let group_kind = row.group_kind();
        self.names.entry(group_kind.clone()).or_default().insert(name.clone());
        self.rows.insert(name, row);
        touched.insert(group_kind);
        touched
    }

    /// Removes a definition.
    pub fn remove(&mut self, name: &str) -> BTreeSet<GroupKind> {
        let Some(row) = self.rows.remove(name) else { return BTreeSet::new() };
        let group_kind = row.group_kind();
        if let Some(names) = self.names.get_mut(&group_kind) {
            names.remove(name);
            if names.is_empty() {
                self.names.remove(&group_kind);
            }
        }
        BTreeSet::from([group_kind])
    }

    /// Replaces the table by a complete list: removes definitions that the list does not hold.
    pub fn replace(&mut self, definitions: Vec<DecodedDefinition>) {
        *self = Self::default();
        for definition in definitions {
            let _ = self.apply(definition);
        }
    }

    /// How a kind can be used at the first of these versions that is served.
    pub fn find(&self, group: &str, kind: &str, versions: &[String]) -> Result<Usable, Absence> {
        let names = self.names.get(&(group.to_owned(), kind.to_owned()));
        let mut absence = Absence::Missing;
        for row in names.into_iter().flatten().filter_map(|name| self.rows.get(name)) {
            match row.usable(versions) {
                Ok(usable) => return Ok(usable),
                Err(why) => absence = why,
            }
        }
        Err(absence)
    }

    /// Like [`Self::find`], for exactly this version.
    pub fn find_exactly(&self, gvk: &Gvk) -> Result<Usable, Absence> {
        self.find(&gvk.group, &gvk.kind, std::slice::from_ref(&gvk.version))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn definition(change: impl FnOnce(&mut Value)) -> DecodedDefinition {
        let mut object = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "filters.example.io", "uid": "u1" },
            "spec": {
                "group": "example.io", "scope": "Namespaced",
                "names": { "kind": "Filter", "plural": "filters", "shortNames": ["f"] },
                "versions": [
                    { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } },
                    { "name": "v1beta1", "served": true, "storage": false },
                ],
            },
            "status": { "conditions": [
                { "type": "NamesAccepted", "status": "True", "message": "no conflicts found" },
                { "type": "Established", "status": "True", "message": "the initial names have been accepted" },
            ], "storedVersions": ["v1beta1", "v1"] },
        });
        change(&mut object);
        serde_json::from_value(object).unwrap()
    }

    fn versions(versions: &[&str]) -> Vec<String> {
        versions.iter().map(|v| (*v).to_owned()).collect()
    }

    fn find(crds: &Crds, wanted: &[&str]) -> Result<Usable, Absence> {
        crds.find("example.io", "Filter", &versions(wanted))
    }

    #[rstest]
    #[case::the_highest_wanted(&["v2", "v1", "v1beta1"], Ok("v1"))]
    #[case::a_lower_one(&["v1beta1"], Ok("v1beta1"))]
    #[case::none(&["v2"], Err("serves v1 and v1beta1, not v2"))]
    fn versions_are_tried_in_order(#[case] wanted: &[&str], #[case] expected: Result<&str, &str>) {
        let mut crds = Crds::default();
        let _ = crds.apply(definition(|_| {}));
        let found = find(&crds, wanted).map(|u| u.identity.version).map_err(|why| why.to_string());
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[rstest]
    #[case::no_status(|o: &mut Value| { o.as_object_mut().unwrap().remove("status"); }, "is not established yet")]
    #[case::names_taken(
        |o: &mut Value| o["status"]["conditions"][0] = json!({"type": "NamesAccepted", "status": "False", "message": "\"filters\" is taken"}),
        "is not established: \"filters\" is taken"
    )]
    #[case::not_established(
        |o: &mut Value| o["status"]["conditions"][1] = json!({"type": "Established", "status": "False", "message": "installing"}),
        "is not established: installing"
    )]
    #[case::unserved(|o: &mut Value| o["spec"]["versions"][0]["served"] = json!(false), "serves v1beta1, not v1")]
    #[case::nothing_served(|o: &mut Value| o["spec"]["versions"] = json!([]), "serves no version, not v1")]
    fn what_is_not_ready(#[case] change: fn(&mut Value), #[case] why: &str) {
        let mut crds = Crds::default();
        let _ = crds.apply(definition(change));
        assert_eq!(find(&crds, &["v1"]).unwrap_err().to_string(), why);
    }

    #[rstest]
    #[case(|o: &mut Value| o["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"))]
    #[case(|o: &mut Value| {
        let conditions = o["status"]["conditions"].as_array_mut().unwrap();
        conditions.push(json!({"type": "Terminating", "status": "True"}));
    })]
    fn a_definition_that_is_being_deleted_is_leaving(#[case] change: fn(&mut Value)) {
        let mut crds = Crds::default();
        let _ = crds.apply(definition(change));
        assert!(find(&crds, &["v1"]).unwrap().terminating);
    }

    #[test]
    fn of_two_that_claim_a_kind_the_accepted_one_counts() {
        let mut crds = Crds::default();
        let _ = crds.apply(definition(|o| {
            o["metadata"] = json!({"name": "afilters.example.io", "uid": "u2"});
            o["spec"]["names"]["plural"] = json!("afilters");
            o["status"]["conditions"][0]["status"] = json!("False");
        }));
        assert!(matches!(find(&crds, &["v1"]), Err(Absence::NotEstablished(_))));
        let touched = crds.apply(definition(|_| {}));
        assert_eq!(touched, BTreeSet::from([("example.io".to_owned(), "Filter".to_owned())]));
        assert_eq!(find(&crds, &["v1"]).unwrap().plural, "filters");
        let _ = crds.remove("filters.example.io");
        assert!(find(&crds, &["v1"]).is_err());
        let _ = crds.remove("afilters.example.io");
        assert_eq!(find(&crds, &["v1"]), Err(Absence::Missing));
        assert!(crds.names.is_empty());
    }

    #[test]
    fn the_same_name_with_another_uid_is_another_identity_and_an_echo_touches_nothing() {
        let mut crds = Crds::default();
        assert_eq!(crds.apply(definition(|_| {})).len(), 1);
        assert_eq!(crds.apply(definition(|o| o["metadata"]["annotations"] = json!({"a": "b"}))).len(), 0);
        let first = find(&crds, &["v1"]).unwrap().identity;
        assert_eq!(crds.apply(definition(|o| o["metadata"]["uid"] = json!("u2"))).len(), 1);
        assert_ne!(find(&crds, &["v1"]).unwrap().identity, first);
        crds.replace(Vec::new());
        assert_eq!(find(&crds, &["v1"]), Err(Absence::Missing));
    }

    #[test]
    fn a_definition_that_lacks_everything_is_read_and_says_nothing() {
        let bare: DecodedDefinition = serde_json::from_value(json!({
            "metadata": {"name": "x"}, "spec": {"versions": null}, "status": {"conditions": null},
        }))
        .unwrap();
        let mut crds = Crds::default();
        let _ = crds.apply(bare);
        assert_eq!(find(&crds, &["v1"]), Err(Absence::Missing));
        assert!(crds.names.keys().all(|(group, _)| group.is_empty()));
        assert!(crds.find_exactly(&Gvk::new("example.io/v1", "Filter")).is_err());
    }
}
