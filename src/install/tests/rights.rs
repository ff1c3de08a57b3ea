//! The roles and their bindings.

use interlock_core::api::meta;
use interlock_core::api::meta::install;
use interlock_core::api::watched::BUILT_IN;
use serde_json::{Value, json};

use super::{added, of};
use crate::install::{InstallOptions, Layout, Part};

const DATA_PLANE_CERTIFICATES: &str = "interlock-dataplane-certificates";
const FLAVOR_SECRETS: &str = "interlock-flavor-secrets";
const PACKAGE_INSTALLER: &str = "interlock-package-installer";

fn all(options: &InstallOptions) -> Vec<Value> {
    of(Part::Rbac, options)
}

/// The roles for people.
fn people() -> Vec<Value> {
    let names = ["interlock-viewer", "interlock-editor", "interlock-admin", PACKAGE_INSTALLER];
    let mut all = all(&InstallOptions::default());
    all.retain(|object| {
        object["kind"] == "ClusterRole" && names.iter().any(|name| object["metadata"]["name"] == *name)
    });
    assert_eq!(all.len(), names.len());
    all
}

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
    let both = InstallOptions { data_plane_certificates: true, ..options.clone() };
    let opt_in = added(Part::Rbac, &both);
    let verbs: Vec<_> = rules(&opt_in).map(|(name, rule)| (name, rule["verbs"].clone())).collect();
    assert_eq!(
        verbs,
        [
            (FLAVOR_SECRETS, json!(["get", "patch"])),
            (DATA_PLANE_CERTIFICATES, json!(["create", "get", "patch"])),
            (DATA_PLANE_CERTIFICATES, json!(["get", "patch"])),
        ]
    );
    let of_authority = rules(&opt_in).last().unwrap().1;
    assert_eq!(of_authority["resourceNames"], json!([install::DATA_PLANE_CA_SECRET]));
    for (flag, name) in [
        (InstallOptions { data_planes: true, ..InstallOptions::default() }, false),
        (InstallOptions { data_plane_certificates: true, ..InstallOptions::default() }, true),
    ] {
        let bound = all(&flag).iter().any(|object| object["metadata"]["name"] == DATA_PLANE_CERTIFICATES);
        assert_eq!(bound, name, "carrying DataPlanes out alone gives no right on Secrets");
    }
    assert!(all(&options).iter().any(|object| object["metadata"]["name"] == FLAVOR_SECRETS));
    assert!(
        !all(&InstallOptions::default()).iter().any(|object| object["metadata"]["name"] == FLAVOR_SECRETS)
    );
}

/// The rights on what belongs to DataPlanes are opt-in, and each is written down once.
#[test]
fn rights_on_what_belongs_to_data_planes_are_a_binding_of_their_own() {
    let options = InstallOptions { data_planes: true, ..InstallOptions::default() };
    let of_role: Vec<String> = rules(&added(Part::Rbac, &options))
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
    let webhook = added(Part::Rbac, &InstallOptions { layout: Layout::Split, ..InstallOptions::default() });
    let mut kinds = 0;
    for (_, rule) in rules(&webhook) {
        let verbs = rule["verbs"].as_array().unwrap();
        assert!(verbs.iter().all(|verb| ["get", "list", "watch"].iter().any(|read| verb == read)), "{rule}");
        assert!(!has(rule, "resources", "secrets"));
        kinds += rule["resources"].as_array().unwrap().len();
    }
    assert!(kinds <= 35);
}

/// The process may watch exactly the kinds it watches: declared ones and those of packages.
#[test]
fn every_kind_that_is_watched_may_be_read() {
    use crate::controllers::capabilities::CAPABILITIES;
    // What only rollouts and limits watch may be read by the roles that they take.
    let all = all(&InstallOptions { data_planes: true, policies: true, ..InstallOptions::default() });
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
    for (group, resource) in
        declared.chain(on_demand).chain([("apiextensions.k8s.io", "customresourcedefinitions")])
    {
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
    let admin = InstallOptions { packages_cluster_admin: true, ..InstallOptions::default() };
    assert_eq!(added(Part::Rbac, &admin)[0]["roleRef"]["name"], "cluster-admin");
}

/// A package may do what its account may: `edit` and `admin` of a namespace stay unchanged.
#[test]
fn only_a_role_of_its_own_writes_packages() {
    let people = people();
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
    for (name, rule) in rules(&people()) {
        if has(rule, "resources", "instances/status") {
            assert_eq!(rule["verbs"], json!(["get"]), "{name}");
        }
    }
}
