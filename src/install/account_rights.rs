//! The rights that the service accounts of the process need, one by one, from the rendered roles.

use std::collections::BTreeSet;

use interlock_core::api::meta::install;
use serde_json::Value;

use super::{ChartError, InstallOptions, Layout, Part, objects};

/// ClusterRoles whose rights the process can do without; the rest of the installation says so.
const OPTIONAL: [&str; 3] = ["interlock-watch", "interlock-watch-custom", "interlock-flavor-sources"];

/// A right of a user, as a SubjectAccessReview asks for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeededRight {
    pub user: String,
    /// Namespace; empty for all.
    pub namespace: String,
    /// API group.
    pub group: String,
    pub resource: String,
    /// Subresource; empty for none.
    pub subresource: String,
    pub verb: String,
    /// Name of the object; empty for all.
    pub name: String,
}

impl std::fmt::Display for NeededRight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, resource, .. } = self;
        write!(f, "{verb} {resource}")?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if !self.name.is_empty() {
            write!(f, " {:?}", self.name)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in namespace {}", self.namespace)?;
        }
        Ok(())
    }
}

/// The rights without which the process does not do its work.
pub fn needed(options: &InstallOptions) -> Result<BTreeSet<NeededRight>, ChartError> {
    let all = objects(Part::Rbac, options)?;
    let mut needed = BTreeSet::new();
    for binding in all.iter().filter(|object| is_binding(object)) {
        let role = &binding["roleRef"];
        if OPTIONAL.iter().any(|name| role["name"] == *name) {
            continue;
        }
        let namespace = binding["metadata"]["namespace"].as_str().unwrap_or_default();
        let granted = all.iter().find(|object| {
            object["kind"] == role["kind"]
                && object["metadata"]["name"] == role["name"]
                && object["metadata"]["namespace"].as_str().unwrap_or_default() == namespace
        });
        let user = user_of(binding, options);
        for rule in granted.into_iter().flat_map(|role| items(&role["rules"])) {
            needed.extend(rights_of(rule, &user, namespace));
        }
    }
    Ok(needed)
}

fn is_binding(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding"))
}

/// The user that a binding of ours is for. The process may run as another user than its service account.
fn user_of(binding: &Value, options: &InstallOptions) -> String {
    let subject = &binding["subjects"][0];
    if options.layout == Layout::Together || subject["name"] == install::NAME {
        return options.controller_user();
    }
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    format!("system:serviceaccount:{}:{}", text("namespace"), text("name"))
}

fn rights_of(rule: &Value, user: &str, namespace: &str) -> Vec<NeededRight> {
    let names: Vec<&Value> = items(&rule["resourceNames"]).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = Vec::new();
    for group in items(&rule["apiGroups"]) {
        for path in items(&rule["resources"]) {
            let path = text(path);
            let (resource, subresource) = path.split_once('/').unwrap_or((&path, ""));
            for verb in items(&rule["verbs"]) {
                let right = NeededRight {
                    user: user.to_owned(),
                    namespace: namespace.to_owned(),
                    group: text(group),
                    resource: resource.to_owned(),
                    subresource: subresource.to_owned(),
                    verb: text(verb),
                    name: String::new(),
                };
                if names.is_empty() {
                    all.push(right.clone());
                }
                all.extend(names.iter().map(|name| NeededRight { name: text(name), ..right.clone() }));
            }
        }
    }
    all
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(options: &InstallOptions) -> Vec<String> {
        needed(options).unwrap().iter().map(|right| format!("{}: {right}", right.user)).collect()
    }

    #[test]
    fn the_rights_of_the_process_are_those_of_its_roles() {
        let all = texts(&InstallOptions::default());
        let ours = "system:serviceaccount:interlock-system:interlock";
        for right in [
            "patch instances.kudo.dev/status",
            "create interlocks.interlock.dev",
            "patch validatingadmissionpolicybindings.admissionregistration.k8s.io \"interlock-freeze\"",
            "update secrets \"interlock-certificate\" in namespace interlock-system",
            "impersonate serviceaccounts \"interlock-packages\" in namespace interlock-system",
        ] {
            assert!(all.contains(&format!("{ours}: {right}")), "{right} is not in {all:#?}");
        }
        assert!(!all.iter().any(|right| right.contains("cronjobs")), "watches of packages are optional");
    }

    #[test]
    fn a_separate_webhook_has_rights_of_its_own() {
        let all = texts(&InstallOptions { layout: Layout::Split, ..InstallOptions::default() });
        let webhook = "system:serviceaccount:interlock-system:interlock-webhook: list instances.kudo.dev";
        assert!(all.iter().any(|right| right == webhook), "{all:#?}");
    }
}
