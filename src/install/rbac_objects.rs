//! Roles, their rules and their bindings, as objects.

use interlock_core::api::meta::install;
use interlock_core::api::watched::AGGREGATE;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::InstallOptions;
use super::metadata::{cluster_wide, strings, within};

pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn rule<const G: usize, const R: usize, const V: usize>(
    groups: [&str; G],
    resources: [&str; R],
    verbs: [&str; V],
) -> PolicyRule {
    PolicyRule {
        api_groups: Some(strings(groups)),
        resources: Some(strings(resources)),
        verbs: strings(verbs),
        ..PolicyRule::default()
    }
}

/// Restricts a rule to names.
pub(super) trait Named {
    fn named<const N: usize>(self, names: [&str; N]) -> Self;
}

impl Named for PolicyRule {
    fn named<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.resource_names = Some(strings(names));
        self
    }
}

pub(super) fn account(name: &str, options: &InstallOptions) -> ServiceAccount {
    account_in(&options.namespace, name)
}

pub(super) fn account_in(namespace: &str, name: &str) -> ServiceAccount {
    ServiceAccount { metadata: within(namespace, name), ..ServiceAccount::default() }
}

pub(super) fn cluster_role(name: &str, rules: Vec<PolicyRule>, why: Option<&str>) -> ClusterRole {
    let mut metadata = cluster_wide(name);
    metadata.annotations = why.map(|why| [("interlock.dev/why".to_owned(), why.to_owned())].into());
    ClusterRole { metadata, rules: Some(rules), aggregation_rule: None }
}

/// A ClusterRole that aggregates all those with our label.
pub(super) fn aggregating(name: &str, why: &str) -> ClusterRole {
    let selector = LabelSelector {
        match_labels: Some([(AGGREGATE.to_owned(), "true".to_owned())].into()),
        ..LabelSelector::default()
    };
    let aggregation_rule = Some(AggregationRule { cluster_role_selectors: Some(vec![selector]) });
    // The controller manager fills the rules in, and owns them.
    ClusterRole { rules: None, aggregation_rule, ..cluster_role(name, Vec::new(), Some(why)) }
}

pub(super) fn role(name: &str, namespace: &str, rules: Vec<PolicyRule>) -> Role {
    Role { metadata: within(namespace, name), rules: Some(rules) }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: Some(RBAC_GROUP.to_owned()), kind: kind.to_owned(), name: name.to_owned() }
}

pub(super) fn subject(namespace: &str, account: &str) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: account.to_owned(),
        namespace: Some(namespace.to_owned()),
        api_group: None,
    }
}

pub(super) fn own(account: &str, options: &InstallOptions) -> Subject {
    subject(&options.namespace, account)
}

pub(super) fn bind_cluster(name: &str, role: &str, to: Subject) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: cluster_wide(name),
        role_ref: role_ref("ClusterRole", role),
        subjects: Some(vec![to]),
    }
}

/// Binds the process to the Role of that name.
pub(super) fn bind(name: &str, namespace: &str, options: &InstallOptions) -> RoleBinding {
    RoleBinding {
        metadata: within(namespace, name),
        role_ref: role_ref("Role", name),
        subjects: Some(vec![own(install::NAME, options)]),
    }
}
