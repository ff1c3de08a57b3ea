//! The inventory of an Instance: the objects that each of its plans applies, and the Instances that its package
//! installs. It is what Interlock knows of objects that a plan no longer renders, and of children that are not named.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::meta;
use super::object::{Gvk, ObjectKey, meta_str};

/// An object in an inventory; its namespace, if it has one, is that of the Instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListedObject {
    /// Its kind, in the version that was applied.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Its name.
    pub name: String,
}

impl ListedObject {
    /// A rendered object, when it names its kind and itself.
    pub fn of(object: &Value) -> Option<Self> {
        Some(Self { gvk: Gvk::of(object)?, name: meta_str(object, "name")?.to_owned() })
    }

    /// A child Instance of this name.
    pub fn child(name: String) -> Self {
        Self { gvk: Gvk::new(meta::KUDO_API_VERSION, "Instance"), name }
    }

    /// Its key in the namespace of its Instance.
    pub fn within(&self, namespace: &str) -> ObjectKey {
        ObjectKey { gvk: self.gvk.clone(), namespace: Some(namespace.to_owned()), name: self.name.clone() }
    }

    /// The object as a template that renders nothing else of it.
    pub fn manifest(&self) -> Value {
        json!({"apiVersion": self.gvk.api_version(), "kind": self.gvk.kind, "metadata": {"name": self.name}})
    }

    /// What one object has in every version.
    fn identity(&self) -> (&str, &str, &str) {
        (&self.gvk.group, &self.gvk.kind, &self.name)
    }
}

/// Where an inventory lists child Instances, beside the plans: the plan that makes one and the plan that finds it
/// dropped may be two.
pub const CHILDREN: &str = "interlock.dev/children";

/// The objects that plans apply, by plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectInventory(BTreeMap<String, BTreeSet<ListedObject>>);

impl ObjectInventory {
    /// Whether it lists these objects of a plan.
    pub fn lists(&self, plan: &str, objects: &BTreeSet<ListedObject>) -> bool {
        self.0.get(plan).map_or(objects.is_empty(), |listed| listed.is_superset(objects))
    }

    /// All that it lists, of any plan.
    pub fn all(&self) -> BTreeSet<&ListedObject> {
        self.0.values().flatten().collect()
    }

    /// What it lists of a plan.
    pub fn of(&self, plan: &str) -> impl Iterator<Item = &ListedObject> {
        self.0.get(plan).into_iter().flatten()
    }

    /// The inventory with these objects of a plan beside those that it lists.
    #[must_use]
    pub fn with(&self, plan: &str, objects: &BTreeSet<ListedObject>) -> Self {
        let mut inventory = self.clone();
        inventory.0.entry(plan.to_owned()).or_default().extend(objects.iter().cloned());
        inventory
    }

    /// The inventory with these objects of a plan in place of those that it lists.
    #[must_use]
    pub fn replaced(&self, plan: &str, objects: &BTreeSet<ListedObject>) -> Self {
        let mut inventory = self.clone();
        inventory.0.insert(plan.to_owned(), objects.clone());
        inventory.0.retain(|_, objects| !objects.is_empty());
        inventory
    }

    /// What both list.
    #[must_use]
    pub fn joined(mut self, other: Self) -> Self {
        for (plan, objects) in other.0 {
            self.0.entry(plan).or_default().extend(objects);
        }
        self
    }

    /// The objects of a plan that it no longer renders, and that no other plan applies.
    pub fn stale(&self, plan: &str, rendered: &BTreeSet<ListedObject>) -> Vec<&ListedObject> {
        let others = self.0.iter().filter(|(other, _)| *other != plan).flat_map(|(_, objects)| objects);
        let kept: BTreeSet<_> = others.chain(rendered).map(ListedObject::identity).collect();
        self.of(plan).filter(|object| !kept.contains(&object.identity())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(names: &[&str]) -> BTreeSet<ListedObject> {
        let object =
            |name: &&str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        names.iter().map(object).filter_map(|object| ListedObject::of(&object)).collect()
    }

    fn stale(inventory: &ObjectInventory, plan: &str, rendered: &[&str]) -> Vec<String> {
        inventory.stale(plan, &objects(rendered)).into_iter().map(|object| object.name.clone()).collect()
    }

    #[test]
    fn what_no_plan_renders_any_more_is_stale() {
        let inventory = ObjectInventory::default()
            .with("deploy", &objects(&["a", "b", "c"]))
            .with("update", &objects(&["b"]));
        assert_eq!(stale(&inventory, "deploy", &["a"]), ["c"]);
        assert_eq!(stale(&inventory, "update", &[]), Vec::<String>::new(), "deploy applies it");
        let after = inventory.replaced("deploy", &objects(&["a"]));
        assert_eq!(stale(&after, "update", &[]), ["b"]);
        assert_eq!(
            after.replaced("deploy", &objects(&[])).replaced("update", &objects(&[])),
            ObjectInventory::default()
        );
    }

    #[test]
    fn a_child_is_no_object_of_a_plan() {
        let child = ListedObject::child("db".to_owned());
        assert_eq!(child.within("ns").to_string(), "Instance ns/db");
        let children = BTreeSet::from([child]);
        let inventory = ObjectInventory::default().with(CHILDREN, &children).with("deploy", &children);
        assert_eq!(stale(&inventory, "deploy", &[]), Vec::<String>::new(), "a task makes it as well");
        let after = inventory.replaced(CHILDREN, &BTreeSet::new());
        assert_eq!((after.of(CHILDREN).count(), stale(&after, "deploy", &[])), (0, vec!["db".to_owned()]));
    }

    #[test]
    fn another_version_is_the_same_object() {
        let of = |version: &str| {
            let object =
                json!({"apiVersion": version, "kind": "PodDisruptionBudget", "metadata": {"name": "x"}});
            BTreeSet::from([ListedObject::of(&object).unwrap()])
        };
        let inventory = ObjectInventory::default().with("deploy", &of("policy/v1beta1"));
        assert_eq!(inventory.stale("deploy", &of("policy/v1")), Vec::<&ListedObject>::new());
        assert!(!inventory.lists("deploy", &of("policy/v1")), "it is listed in the version that is applied");
    }

    #[test]
    fn it_is_recorded_as_text_and_read_again() {
        let inventory = ObjectInventory::default().with("deploy", &objects(&["a"]));
        let text = serde_json::to_string(&inventory).unwrap();
        assert_eq!(text, r#"{"deploy":[{"group":"","version":"v1","kind":"ConfigMap","name":"a"}]}"#);
        assert_eq!(serde_json::from_str::<ObjectInventory>(&text).unwrap(), inventory);
        assert!(inventory.lists("deploy", &objects(&["a"])) && !inventory.lists("deploy", &objects(&["b"])));
        assert!(ObjectInventory::default().lists("deploy", &objects(&[])));
        let joined = inventory.clone().joined(ObjectInventory::default().with("deploy", &objects(&["b"])));
        assert!(joined.lists("deploy", &objects(&["a", "b"])));
    }
}
