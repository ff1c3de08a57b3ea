//! What can happen to a definition, and where that must lead.

use serde_json::{Value, json};

use super::world::{World, definition};

/// A change of one definition. Each leaves the definition usable at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Deleted, and installed again.
    Remove,
    /// Deleted and installed again without a pause.
    Replace,
    /// Its version is not served for a while.
    Unserve,
    /// Another definition has its names first.
    Rival,
    /// The process may not read the kind when it comes back.
    Forbid,
}

impl Change {
    pub const ALL: [Self; 5] = [Self::Remove, Self::Replace, Self::Unserve, Self::Rival, Self::Forbid];
}

/// Role and rule that let the process read a kind.
fn role_of(plural: &str) -> &'static str {
    if plural == "envoyfilters" { "watch-filters" } else { "interlock-controller" }
}

pub fn path_of_role(plural: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{}", role_of(plural))
}

/// Rules of a role without those about a kind.
pub fn without(rules: &Value, plural: &str) -> Value {
    let rules = rules.as_array().cloned().unwrap_or_default();
    let kept = rules.into_iter().filter_map(|mut rule| {
        let resources =
            rule["resources"].as_array()?.iter().filter(|r| *r != plural).cloned().collect::<Vec<_>>();
        let empty = resources.is_empty();
        rule["resources"] = Value::from(resources);
        (!empty).then_some(rule)
    });
    kept.collect()
}

/// A definition that claims the same kind under another plural.
pub fn rival(plural: &str) -> Value {
    let mut object = definition(plural);
    let group = object["spec"]["group"].as_str().unwrap().to_owned();
    let other = format!("rival{plural}");
    object["metadata"]["name"] = json!(format!("{other}.{group}"));
    object["spec"]["names"]["plural"] = json!(other);
    object["spec"]["names"]["singular"] =
        json!(format!("rival{}", object["spec"]["names"]["singular"].as_str().unwrap_or("one")));
    object["spec"]["names"].as_object_mut().unwrap().remove("shortNames");
    object
}

impl World {
    /// Serves, or does not serve, what is served; another version is served meanwhile.
    pub fn serve(&self, plural: &str, served: bool) {
        let admin = self.cluster.admin();
        let mut versions = definition(plural)["spec"]["versions"].as_array().cloned().unwrap();
        let mut other = versions[0].clone();
        other["name"] = json!("v1alpha9");
        other["storage"] = json!(false);
        other["served"] = json!(true);
        versions.iter_mut().for_each(|version| version["served"] = json!(served));
        versions.push(other);
        admin.merge_patch(&Self::path(plural), &json!({"spec": {"versions": versions}})).ok();
    }
}
