//! RBAC: two identities, and roles for people.
//!
//! No rule has a wildcard. Effects of packages use another service account, by impersonation; no binding
//! here gives it rights, so that the installing user decides what packages may do.

use std::collections::BTreeMap;

use interlock_core::api::meta::install;
use interlock_core::api::watched::BUILT_IN;
use interlock_core::kinds::Kinds;
use interlock_core::kinds::descriptor::{Role as Grantee, Watch};
use interlock_kong::data_plane::policies::OVERRIDES;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use serde_json::{Value, json};

use super::metadata::strings;
use super::rbac_objects::{
    Named, RBAC_GROUP, account, account_in, aggregating, bind, bind_cluster, cluster_role, own, role, rule,
};
use super::{InstallOptions, Layout, kind_rights, opt_in_rights};

const DEFINITIONS_GROUP: &str = "apiextensions.k8s.io";
const DEFINITIONS: &str = "customresourcedefinitions";

const READ: [&str; 3] = ["get", "list", "watch"];

/// Role that lets the process act as the service account of packages, and as no other.
const IMPERSONATOR: &str = "interlock-impersonator";

/// Service accounts, roles and bindings.
pub fn all(options: &InstallOptions) -> Vec<Value> {
    let mut all = vec![
        json!(account(install::NAME, options)),
        json!(account_in(&options.packages.namespace, &options.packages.name)),
        json!(cluster_role("interlock-controller", controller_rules(options.kinds), None)),
        json!(bind_cluster("interlock-controller", "interlock-controller", own(install::NAME, options))),
        json!(cluster_role("interlock-watch", watched_rules(), Some(WATCH_WHY))),
        json!(bind_cluster("interlock-watch", "interlock-watch", own(install::NAME, options))),
        json!(aggregating("interlock-watch-custom", WATCH_CUSTOM_WHY)),
        json!(bind_cluster("interlock-watch-custom", "interlock-watch-custom", own(install::NAME, options))),
        json!(cluster_role(
            "interlock-flavor-sources",
            kind_rights::of(options.kinds, Grantee::FlavorSources),
            Some(FLAVOR_SOURCES_WHY)
        )),
        json!(bind_cluster(
            "interlock-flavor-sources",
            "interlock-flavor-sources",
            own(install::NAME, options)
        )),
        json!(role(install::NAME, &options.namespace, own_namespace_rules())),
        json!(bind(install::NAME, &options.namespace, options)),
        json!(role(IMPERSONATOR, &options.packages.namespace, impersonation_rules(options))),
        json!(bind(IMPERSONATOR, &options.packages.namespace, options)),
    ];
    if options.flavor_secrets {
        all.extend(opt_in_rights::flavor_secrets(options));
    }
    if options.data_planes {
        all.extend(opt_in_rights::data_planes(options));
    }
    if options.data_plane_certificates {
        all.extend(opt_in_rights::data_plane_certificates(options));
    }
    if options.layout == Layout::Split {
        all.extend(webhook(options));
    }
    all.push(json!(metrics_reader()));
    all.extend(people(options.kinds));
    all
}

/// The rights of a separate webhook: read the data of its decisions, and nothing else.
pub fn webhook(options: &InstallOptions) -> Vec<Value> {
    let answers = |watch: &Watch| watch.capability.answers;
    let mut rules = kind_rights::of_watches(options.kinds, answers);
    rules.extend(kind_rights::of(options.kinds, Grantee::Webhook));
    rules.push(rule([DEFINITIONS_GROUP], [DEFINITIONS], ["list", "watch"]));
    // Overrides count only while their policy is intact.
    rules.push(
        rule(
            ["admissionregistration.k8s.io"],
            ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
            READ,
        )
        .named([OVERRIDES]),
    );
    vec![
        json!(account(install::WEBHOOK_NAME, options)),
        json!(cluster_role(install::WEBHOOK_NAME, rules, None)),
        json!(bind_cluster(
            install::WEBHOOK_NAME,
            install::WEBHOOK_NAME,
            own(install::WEBHOOK_NAME, options)
        )),
        // It asks who may read its metrics: TokenReviews and SubjectAccessReviews, which store nothing.
        json!(bind_cluster(
            &format!("{}-auth-delegator", install::WEBHOOK_NAME),
            "system:auth-delegator",
            own(install::WEBHOOK_NAME, options)
        )),
    ]
}

/// For the user of Prometheus, by a binding of its own.
fn metrics_reader() -> ClusterRole {
    let rule = PolicyRule {
        non_resource_urls: Some(strings(["/metrics"])),
        verbs: strings(["get"]),
        ..PolicyRule::default()
    };
    cluster_role(install::METRICS_READER, vec![rule], Some(METRICS_READER_WHY))
}

/// What the process does: it reads the kinds that it watches (of Deployments, Services and ConfigMaps it
/// lists only labelled ones, which a role cannot express), and has the rights that the kinds name.
fn controller_rules(kinds: Kinds) -> Vec<PolicyRule> {
    let mut rules = kind_rights::of_watches(kinds, kind_rights::is_on_by_default);
    rules.extend(kind_rights::of(kinds, Grantee::Controller));
    rules.extend(kind_rights::of(kinds, Grantee::Webhook));
    rules.extend([
        // Specs that are too large for the annotation, under names that are not known beforehand.
        rule(["apps"], ["controllerrevisions"], ["create", "get", "list", "delete"]),
        // Capabilities start and stop with their definitions.
        rule([DEFINITIONS_GROUP], [DEFINITIONS], ["list", "watch"]),
        // Listed where a step waits for the pods of a workload, which does not say itself why it lacks them.
        rule(["events.k8s.io"], ["events"], ["create", "patch", "list"]),
        rule(
            ["admissionregistration.k8s.io"],
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            ["get", "list", "watch", "patch"],
        )
        .named([install::WEBHOOK_CONFIGURATION]),
        // Detects tampering; plan requests run only while the policies are intact. One watch covers all: a
        // watch for each name takes more connections, and a right for each.
        rule(
            ["admissionregistration.k8s.io"],
            ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
            READ,
        ),
        // The freeze's binding follows the settings of namespaces.
        rule(["admissionregistration.k8s.io"], ["validatingadmissionpolicybindings"], ["patch"])
            .named([install::FREEZE_BINDING]),
        rule(["authentication.k8s.io"], ["selfsubjectreviews", "tokenreviews"], ["create"]),
        rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
    ]);
    rules
}

/// Objects of packages are watched, so that events drive their plans.
fn watched_rules() -> Vec<PolicyRule> {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for kind in BUILT_IN {
        groups.entry(kind.group).or_default().push(kind.plural.to_owned());
    }
    let rule = |(group, resources): (&str, Vec<String>)| PolicyRule {
        api_groups: Some(strings([group])),
        resources: Some(resources),
        verbs: strings(READ),
        ..PolicyRule::default()
    };
    groups.into_iter().map(rule).collect()
}

const WATCH_WHY: &str = "A kind of this list is watched while a package that is in use makes objects of it; of these, \
     only objects with the label heritage=kudo. Where a right is taken away, plans read what they need instead. Secrets are \
     not in the list: a right to list them is a right to read them all.";
const WATCH_CUSTOM_WHY: &str = "Custom kinds that packages make are watched as well, by their metadata, where a ClusterRole \
     with the label rbac.interlock.dev/aggregate-to-watch=true grants get, list and watch. Without, plans read what they \
     need.";

const METRICS_READER_WHY: &str = "The port of the metrics asks the API server whether a caller may get /metrics: bind this \
     to the service account of Prometheus.";

const FLAVOR_SOURCES_WHY: &str = "ConfigMaps that the router flavor of a gateway comes from are labelled, so that changes \
     of them are judged. Their names are not known beforehand; they are read and patched by name. Where no flavor \
     comes from any, this binding can be removed.";

fn own_namespace_rules() -> Vec<PolicyRule> {
    vec![
        // RBAC cannot restrict the name of a created object.
        rule(["coordination.k8s.io"], ["leases"], ["create"]),
        rule(["coordination.k8s.io"], ["leases"], ["get", "list", "watch", "update", "patch"])
            .named([install::LEASE]),
        // The recorded revision of the request policy.
        rule([""], ["configmaps"], ["create"]),
        rule([""], ["configmaps"], ["get", "patch"]).named([install::ENFORCED]),
        rule([""], ["secrets"], ["create"]),
        rule([""], ["secrets"], ["get", "list", "watch", "update", "patch"])
            .named([install::CERTIFICATE_SECRET]),
        // The key of which what templates generate follows.
        rule([""], ["secrets"], ["get"]).named([install::TEMPLATE_KEY_SECRET]),
    ]
}

fn impersonation_rules(options: &InstallOptions) -> Vec<PolicyRule> {
    vec![rule([""], ["serviceaccounts"], ["impersonate"]).named([options.packages.name.as_str()])]
}

/// Role that lets people install packages, in namespaces or everywhere, by a binding of its own.
const PACKAGE_INSTALLER: &str = "interlock-package-installer";
const PACKAGE_INSTALLER_WHY: &str = "A package does what its service account may do, so who writes an OperatorVersion has the \
     rights of that account. That is why this role is not added to edit or admin: bind it to people that are trusted with \
     those rights.";

/// Roles for people, most of them aggregated to the default ClusterRoles. The status of an Instance records
/// its plans; only the process gets the right to write it.
fn people(kinds: Kinds) -> Vec<Value> {
    let of = |grantee| kind_rights::of(kinds, grantee);
    let admin = [of(Grantee::Editor), of(Grantee::Admin)].concat();
    let packages = of(Grantee::PackageInstaller);
    vec![
        json!(aggregated_to("view", "interlock-viewer", of(Grantee::Viewer))),
        json!(aggregated_to("edit", "interlock-editor", of(Grantee::Editor))),
        json!(aggregated_to("admin", "interlock-admin", admin)),
        json!(cluster_role(PACKAGE_INSTALLER, packages, Some(PACKAGE_INSTALLER_WHY))),
    ]
}

/// A ClusterRole that is aggregated to a default one.
fn aggregated_to(into: &str, name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    let mut role = cluster_role(name, rules, None);
    let labels = role.metadata.labels.get_or_insert_default();
    labels.insert(format!("{RBAC_GROUP}/aggregate-to-{into}"), "true".to_owned());
    role
}

#[cfg(test)]
mod tests {
    use interlock_core::api::meta;

    use super::*;

    fn rules(objects: &[Value]) -> impl Iterator<Item = (&str, &Value)> {
        objects.iter().flat_map(|o| {
            o["rules"].as_array().into_iter().flatten().map(|r| (o["metadata"]["name"].as_str().unwrap(), r))
        })
    }

    fn has(rule: &Value, list: &str, item: &str) -> bool {
        rule[list].as_array().is_some_and(|l| l.iter().any(|i| i == item))
    }

    #[test]
    fn no_wildcards_and_no_way_to_more_rights() {
        let all = all(&InstallOptions { layout: Layout::Split, ..InstallOptions::default() });
        for (name, rule) in rules(&all) {
            for list in ["apiGroups", "resources", "nonResourceURLs", "verbs"] {
                assert!(
                    !rule[list].as_array().into_iter().flatten().any(|i| i.as_str().unwrap().contains('*')),
                    "{name}: {rule}"
                );
            }
            for verb in ["escalate", "bind"] {
                assert!(!has(rule, "verbs", verb), "{name}: {rule}");
            }
            if has(rule, "verbs", "impersonate") {
                assert_eq!(rule["resources"], json!(["serviceaccounts"]));
                assert_eq!(rule["resourceNames"], json!(["interlock-packages"]));
            }
        }
    }

    /// The process reads only the Secrets of its certificate and of its key for templates, and may create them. `override-router-flavor` is
    /// a verb for people.
    #[test]
    fn no_secret_but_our_own_is_read() {
        for layout in [Layout::Together, Layout::Split] {
            let all = all(&InstallOptions { layout, ..InstallOptions::default() });
            for object in &all {
                for (name, rule) in
                    rules(std::slice::from_ref(object)).filter(|(_, r)| has(r, "resources", "secrets"))
                {
                    let of_people = rule["verbs"] == json!([meta::ALLOW_FLAVOR_VERB]);
                    let own = object["kind"] == "Role" && object["metadata"]["namespace"] == meta::NAMESPACE;
                    let named = [install::CERTIFICATE_SECRET, install::TEMPLATE_KEY_SECRET]
                        .iter()
                        .any(|name| rule["resourceNames"] == json!([name]));
                    let creates = rule["verbs"] == json!(["create"]);
                    assert!(of_people || own && (named || creates), "{name}: {rule}");
                }
            }
        }
    }

    /// Rights on other Secrets are opt-in, and do not list any.
    #[test]
    fn rights_on_secrets_are_bindings_of_their_own() {
        let options = InstallOptions { flavor_secrets: true, ..InstallOptions::default() };
        let opt_in =
            [opt_in_rights::flavor_secrets(&options), opt_in_rights::data_plane_certificates(&options)]
                .concat();
        let verbs: Vec<_> = rules(&opt_in).map(|(name, rule)| (name, rule["verbs"].clone())).collect();
        assert_eq!(
            verbs,
            [
                (opt_in_rights::FLAVOR_SECRETS, json!(["get", "patch"])),
                (opt_in_rights::DATA_PLANE_CERTIFICATES, json!(["create", "get", "patch"])),
                (opt_in_rights::DATA_PLANE_CERTIFICATES, json!(["get", "patch"])),
            ]
        );
        let of_authority = rules(&opt_in).last().unwrap().1;
        assert_eq!(of_authority["resourceNames"], json!([install::DATA_PLANE_CA_SECRET]));
        for (flag, name) in [
            (InstallOptions { data_planes: true, ..InstallOptions::default() }, false),
            (InstallOptions { data_plane_certificates: true, ..InstallOptions::default() }, true),
        ] {
            let bound = all(&flag)
                .iter()
                .any(|object| object["metadata"]["name"] == opt_in_rights::DATA_PLANE_CERTIFICATES);
            assert_eq!(bound, name, "carrying DataPlanes out alone gives no right on Secrets");
        }
        assert!(
            all(&options).iter().any(|object| object["metadata"]["name"] == opt_in_rights::FLAVOR_SECRETS)
        );
        assert!(
            !all(&InstallOptions::default())
                .iter()
                .any(|object| object["metadata"]["name"] == opt_in_rights::FLAVOR_SECRETS)
        );
    }

    /// The rights on what belongs to DataPlanes are opt-in, and each is written down once.
    #[test]
    fn rights_on_what_belongs_to_data_planes_are_a_binding_of_their_own() {
        let options = InstallOptions { data_planes: true, ..InstallOptions::default() };
        let of_role: Vec<String> = rules(&opt_in_rights::data_planes(&options))
            .map(|(_, rule)| {
                let words = |field: &str| {
                    let all = rule[field].as_array().into_iter().flatten();
                    all.filter_map(Value::as_str).collect::<Vec<_>>().join(",")
                };
                format!("{}/{}: {}", words("apiGroups"), words("resources"), words("verbs"))
            })
            .collect();
        assert_eq!(
            of_role,
            [
                "apps/deployments: get,list,watch",
                "/services,pods: get,list,watch",
                "autoscaling/horizontalpodautoscalers: get,list,watch",
                "policy/poddisruptionbudgets: get,list,watch",
                "discovery.k8s.io/endpointslices: get,list,watch",
                "apps/deployments: create,patch,delete",
                "gateway-operator.konghq.com/dataplanes,dataplanes/status: patch",
                "gateway-operator.konghq.com/dataplanes/finalizers: update",
                "apps/controllerrevisions: get,list,create,patch,delete",
                "/services: create,patch,delete",
                "autoscaling/horizontalpodautoscalers: create,patch,delete",
                "policy/poddisruptionbudgets: create,patch,delete",
                "coordination.k8s.io/leases: get",
            ]
        );
        let writes_deployments = |options: &InstallOptions| {
            rules(&all(options))
                .any(|(_, rule)| has(rule, "resources", "deployments") && has(rule, "verbs", "create"))
        };
        assert!(writes_deployments(&options));
        assert!(!writes_deployments(&InstallOptions::default()));
    }

    #[test]
    fn the_webhook_apart_writes_nothing_and_reads_what_it_decides_with() {
        let webhook = webhook(&InstallOptions::default());
        let mut kinds = 0;
        for (_, rule) in rules(&webhook) {
            let verbs = rule["verbs"].as_array().unwrap();
            assert!(verbs.iter().all(|verb| READ.iter().any(|read| verb == read)), "{rule}");
            assert!(!has(rule, "resources", "secrets"));
            kinds += rule["resources"].as_array().unwrap().len();
        }
        assert!(kinds <= 20);
    }

    /// The process may watch exactly the kinds it watches: declared ones and those of packages.
    #[test]
    fn every_kind_that_is_watched_may_be_read() {
        use crate::controllers::capabilities::CAPABILITIES;
        // What only rollouts watch may be read by the role that they take.
        let all = all(&InstallOptions { data_planes: true, ..InstallOptions::default() });
        let granted = |group: &str, resource: &str| {
            rules(&all).any(|(_, rule)| {
                let unnamed = rule["resourceNames"].is_null();
                let verbs = ["list", "watch"].iter().all(|verb| has(rule, "verbs", verb));
                unnamed && verbs && has(rule, "apiGroups", group) && has(rule, "resources", resource)
            })
        };
        let declared = CAPABILITIES.iter().flat_map(|of| of.all());
        let declared = declared.map(|kind| (kind.group, kind.plural));
        let on_demand = BUILT_IN.iter().map(|kind| (kind.group, kind.plural));
        for (group, resource) in declared.chain(on_demand).chain([(DEFINITIONS_GROUP, DEFINITIONS)]) {
            assert!(granted(group, resource), "{resource}.{group}");
        }
        assert!(!granted("", "secrets"));
    }

    #[test]
    fn packages_are_bound_to_nothing() {
        let all = all(&InstallOptions::default());
        for object in all.iter().filter(|o| o["kind"].as_str().unwrap().ends_with("Binding")) {
            assert_ne!(object["subjects"][0]["name"], meta::PACKAGES_SERVICE_ACCOUNT, "{object}");
        }
        assert_eq!(
            opt_in_rights::packages_cluster_admin(&InstallOptions::default())["roleRef"]["name"],
            "cluster-admin"
        );
    }

    /// A package may do what its account may: `edit` and `admin` of a namespace stay unchanged.
    #[test]
    fn only_a_role_of_its_own_writes_packages() {
        let people = people(crate::kinds::all());
        let aggregates = |object: &Value| {
            let labels = object["metadata"]["labels"].as_object();
            labels.is_some_and(|labels| labels.keys().any(|key| key.contains("aggregate-to-")))
        };
        for (name, rule) in rules(&people).filter(|(_, rule)| has(rule, "resources", "operatorversions")) {
            assert_eq!(has(rule, "verbs", "create"), name == PACKAGE_INSTALLER, "{name}: {rule}");
        }
        for role in &people {
            assert_eq!(aggregates(role), role["metadata"]["name"] != PACKAGE_INSTALLER, "{role}");
        }
    }

    #[test]
    fn nobody_gets_a_right_to_write_the_record() {
        for (name, rule) in rules(&people(crate::kinds::all())) {
            if has(rule, "resources", "instances/status") {
                assert_eq!(rule["verbs"], json!(["get"]), "{name}");
            }
        }
    }
}
