//! The rules of roles that follow from the kinds, for the chart.

use interlock_core::api::interlock::Mode;
use interlock_core::api::resource::Resource;
use interlock_core::api::watched::BUILT_IN;
use interlock_core::kinds::Kinds;
use interlock_core::kinds::capabilities::{DATA_PLANES, POLICIES};
use interlock_core::kinds::descriptor::{Capability, READ, Right, Role, Watch};
use k8s_openapi::api::rbac::v1::PolicyRule;

/// The rules that follow from the kinds, by the role that the chart adds the others to.
pub(super) fn of_roles(kinds: Kinds) -> [(&'static str, Vec<PolicyRule>); 13] {
    let of = |role| of(kinds, role);
    let controller = [of_watches(kinds, is_on_by_default), of(Role::Controller), of(Role::Webhook)].concat();
    let webhook = [of_watches(kinds, |watch| watch.capability.answers), of(Role::Webhook)].concat();
    let of_capability = |capability: &Capability, role| {
        let is_of = |watch: &Watch| watch.capability.name == capability.name;
        [of_watches(kinds, is_of), of(role)].concat()
    };
    [
        ("controller", controller),
        ("watch", of_packages()),
        ("webhook", webhook),
        ("flavor-sources", of(Role::FlavorSources)),
        ("flavor-secrets", of(Role::FlavorSecrets)),
        ("dataplanes", of_capability(&DATA_PLANES, Role::DataPlanes)),
        ("policies", of_capability(&POLICIES, Role::Policies)),
        ("limitadors", of(Role::Limitadors)),
        ("dataplane-certificates", of(Role::DataPlaneCertificates)),
        ("viewer", of(Role::Viewer)),
        ("editor", of(Role::Editor)),
        ("admin", of(Role::Admin)),
        ("package-installer", of(Role::PackageInstaller)),
    ]
}

/// The rights of a role.
fn of(kinds: Kinds, role: Role) -> Vec<PolicyRule> {
    let rights = kinds.iter().flat_map(|kind| kind.rights).filter(|right| right.role == role);
    merged(rights.copied())
}

/// The rights to read the kinds that are watched.
fn of_watches(kinds: Kinds, which: impl Fn(&Watch) -> bool) -> Vec<PolicyRule> {
    let watched = kinds.iter().filter(|kind| kind.watch.as_ref().is_some_and(&which));
    let right = |resource: &Resource| Right::new(Role::Controller, resource.group, resource.plural, READ);
    merged(watched.map(|kind| right(&kind.resource)))
}

/// The rights to watch the objects of packages.
fn of_packages() -> Vec<PolicyRule> {
    merged(BUILT_IN.iter().map(|kind| Right::new(Role::Controller, kind.group, kind.plural, READ)))
}

/// One rule for all resources of a group with the same verbs.
fn merged(rights: impl Iterator<Item = Right>) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    for right in rights {
        let groups = vec![right.group.to_owned()];
        let verbs: Vec<String> = right.verbs.iter().map(|&verb| verb.to_owned()).collect();
        let same = |rule: &&mut PolicyRule| rule.api_groups.as_ref() == Some(&groups) && rule.verbs == verbs;
        let resource = right.resource.to_owned();
        match rules.iter_mut().find(same) {
            Some(rule) => {
                let resources = rule.resources.get_or_insert_default();
                if !resources.contains(&resource) {
                    resources.push(resource);
                }
            }
            None => rules.push(PolicyRule {
                api_groups: Some(groups),
                resources: Some(vec![resource]),
                verbs,
                ..PolicyRule::default()
            }),
        }
    }
    rules
}

/// Whether the base lets the process read what is watched, or an overlay does.
fn is_on_by_default(watch: &Watch) -> bool {
    watch.capability.default_mode != Mode::Off
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_of_a_group_with_the_same_verbs_are_one_rule() {
        let right = |resource, verbs| Right::new(Role::Viewer, "g", resource, verbs);
        let rights = [right("a", READ), right("b", &["get"]), right("c", READ), right("a", READ)];
        let rules = merged(rights.into_iter());
        let resources: Vec<_> = rules.iter().map(|rule| rule.resources.clone().unwrap()).collect();
        assert_eq!(resources, [vec!["a", "c"], vec!["b"]]);
    }
}
