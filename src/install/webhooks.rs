//! The webhook configurations: exactly our kinds and subresources, never `*`.
//!
//! They match nothing that the process needs to start, so a dead webhook cannot prevent its own restart.
//! Metadata of Instances stays editable while it is dead.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::api::meta::install;
use interlock_core::kinds::descriptor::{
    Calls, IS_NOT, Kind, MatchCondition, MatchedObjects, NOT_THE_CONTROLLER, OnFailure, WebhookEntry,
    not_the_controller,
};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition as Condition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::{Value, json};

use super::metadata::{cluster_wide, strings};
use super::{CertificateIssuer, Endpoint, InstallOptions};

/// Longest wait of the API server for an answer. Ours takes well below a millisecond, unless it waits for
/// an OperatorVersion (at most two seconds).
const TIMEOUT_SECONDS: i32 = 5;

/// The mutating and the validating configuration.
pub fn all(options: &InstallOptions) -> Vec<Value> {
    vec![json!(mutating(options)), json!(validating(options))]
}

/// The user that an installed webhook configuration skips, read back from its match conditions.
pub fn bookkeeper_of(configuration: &Value) -> Option<String> {
    let webhooks = configuration["webhooks"].as_array()?.iter();
    let mut conditions = webhooks.filter_map(|webhook| webhook["matchConditions"].as_array()).flatten();
    let ours = conditions.find(|condition| condition["name"] == NOT_THE_CONTROLLER)?;
    let quoted = ours["expression"].as_str()?.strip_prefix(IS_NOT)?;
    let text = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut user = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        user.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    Some(user)
}

/// The entries of all kinds, each with its kind.
fn entries(options: &InstallOptions) -> impl Iterator<Item = (&'static Kind, &'static WebhookEntry)> {
    options.kinds.iter().flat_map(|kind| kind.webhooks.iter().map(move |entry| (*kind, entry)))
}

fn mutating(options: &InstallOptions) -> MutatingWebhookConfiguration {
    let webhook = |(kind, entry): (&Kind, &WebhookEntry)| MutatingWebhook {
        admission_review_versions: strings(["v1", "v1beta1"]),
        client_config: client(
            options,
            match entry.calls {
                Calls::Sources => WebhookEndpoint::Sources,
                Calls::Both | Calls::Validating => WebhookEndpoint::Mutate,
            },
        ),
        failure_policy: Some(failure_policy(entry.on_failure)),
        match_policy: Some("Equivalent".to_owned()),
        name: format!("{}.mutate.interlock.dev", entry.name),
        namespace_selector: namespaces(entry.objects, options),
        object_selector: selector(entry.objects),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        rules: Some(vec![rule(kind, entry)]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        match_conditions: conditions(entry, options),
    };
    let entries = entries(options).filter(|(_, entry)| entry.calls != Calls::Validating);
    MutatingWebhookConfiguration {
        metadata: metadata(options),
        webhooks: Some(entries.map(webhook).collect()),
    }
}

fn validating(options: &InstallOptions) -> ValidatingWebhookConfiguration {
    let webhook = |(kind, entry): (&Kind, &WebhookEntry)| ValidatingWebhook {
        admission_review_versions: strings(["v1", "v1beta1"]),
        client_config: client(options, WebhookEndpoint::Validate),
        failure_policy: Some(failure_policy(entry.on_failure)),
        match_policy: Some("Equivalent".to_owned()),
        name: format!("{}.interlock.dev", entry.name),
        namespace_selector: namespaces(entry.objects, options),
        object_selector: selector(entry.objects),
        rules: Some(vec![rule(kind, entry)]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        match_conditions: conditions(entry, options),
    };
    ValidatingWebhookConfiguration {
        metadata: metadata(options),
        webhooks: Some(
            entries(options).filter(|(_, entry)| entry.calls != Calls::Sources).map(webhook).collect(),
        ),
    }
}

fn failure_policy(on_failure: OnFailure) -> String {
    match on_failure {
        OnFailure::Refuse => "Fail",
        OnFailure::Admit => "Ignore",
    }
    .to_owned()
}

fn conditions(entry: &WebhookEntry, options: &InstallOptions) -> Option<Vec<Condition>> {
    let condition = |condition: &MatchCondition| match condition {
        MatchCondition::NotTheController => not_the_controller(&options.controller_user()),
        MatchCondition::Cel(name, expression) => {
            Condition { name: (*name).to_owned(), expression: expression() }
        }
    };
    (!entry.conditions.is_empty()).then(|| entry.conditions.iter().map(condition).collect())
}

fn selector(objects: MatchedObjects) -> Option<LabelSelector> {
    match objects {
        MatchedObjects::All => None,
        MatchedObjects::Labelled(key, value) => Some(LabelSelector {
            match_labels: Some([(key.to_owned(), value.to_owned())].into()),
            match_expressions: None,
        }),
        MatchedObjects::HavingLabel(key) => Some(LabelSelector {
            match_labels: None,
            match_expressions: Some(vec![requirement(key, "Exists", None)]),
        }),
    }
}

fn namespaces(objects: MatchedObjects, options: &InstallOptions) -> Option<LabelSelector> {
    let mut selector = options.namespace_selector();
    if matches!(objects, MatchedObjects::HavingLabel(_)) {
        let others = requirement(NAMESPACE_NAME, "NotIn", Some(vec![options.namespace.clone()]));
        selector.get_or_insert_default().match_expressions.get_or_insert_default().push(others);
    }
    selector
}

/// The label that every Namespace has.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

fn requirement(key: &str, operator: &str, values: Option<Vec<String>>) -> LabelSelectorRequirement {
    LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values }
}

fn rule(kind: &Kind, entry: &WebhookEntry) -> RuleWithOperations {
    let owned = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
    let scope = if kind.resource.namespaced { "Namespaced" } else { "Cluster" };
    RuleWithOperations {
        api_groups: Some(strings([kind.resource.group])),
        api_versions: Some(strings([kind.resource.version()])),
        operations: Some(owned(entry.operations)),
        resources: Some(owned(entry.resources)),
        scope: Some(scope.to_owned()),
    }
}

fn metadata(options: &InstallOptions) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    let mut metadata = cluster_wide(install::WEBHOOK_CONFIGURATION);
    if options.certificates == CertificateIssuer::CertManager {
        let from = format!("{}/{}", options.namespace, install::CERTIFICATE_SECRET);
        metadata.annotations = Some([("cert-manager.io/inject-ca-from".to_owned(), from)].into());
    }
    metadata
}

fn client(options: &InstallOptions, endpoint: WebhookEndpoint) -> WebhookClientConfig {
    let path = endpoint.path();
    match &options.endpoint {
        Endpoint::Service { name } => WebhookClientConfig {
            service: Some(ServiceReference {
                name: name.clone(),
                namespace: options.namespace.clone(),
                path: Some(path.to_owned()),
                port: Some(443),
            }),
            ca_bundle: options.ca_bundle(),
            url: None,
        },
        Endpoint::Url { base, .. } => WebhookClientConfig {
            service: None,
            ca_bundle: options.ca_bundle(),
            url: Some(format!("{}{path}", base.trim_end_matches('/'))),
        },
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::kinds;
    use rstest::rstest;

    use super::*;

    fn entries(options: &InstallOptions) -> Vec<Value> {
        all(options).iter().flat_map(|c| c["webhooks"].as_array().cloned().unwrap_or_default()).collect()
    }

    /// The groups of policies of the Gateway API, and of what they are attached to.
    fn of_policies() -> [Value; 3] {
        [json!(["gateway.networking.k8s.io"]), json!(["kuadrant.io"]), json!(["gateway.envoyproxy.io"])]
    }

    #[rstest]
    #[case("system:serviceaccount:interlock-system:interlock")]
    #[case("o'brien\\x")]
    fn the_user_that_is_skipped_can_be_read_back(#[case] user: &str) {
        let options = InstallOptions { controller_user: Some(user.to_owned()), ..InstallOptions::default() };
        for configuration in all(&options) {
            assert_eq!(bookkeeper_of(&configuration).as_deref(), Some(user));
        }
        assert_eq!(bookkeeper_of(&json!({"webhooks": []})), None);
    }

    /// The process needs Pods, Secrets, Leases, Nodes and reviews to start, and none of our kinds; its own
    /// Deployment has no label of ours.
    #[test]
    fn nothing_that_we_need_to_start_is_matched() {
        for entry in entries(&InstallOptions::default()) {
            for rule in entry["rules"].as_array().unwrap() {
                if rule["apiGroups"] == json!(["apps"]) {
                    assert_eq!(rule["resources"], json!(["deployments"]));
                    let labelled = json!({"matchLabels": {"interlock.dev/guard": "kong-router-flavor"}});
                    assert_eq!(entry["objectSelector"], labelled);
                } else if rule["apiGroups"] == json!([""]) {
                    let marked = json!({"matchExpressions": [{"key": "interlock.dev/flavor-source", "operator": "Exists"}]});
                    assert_eq!(entry["objectSelector"], marked);
                    let ours = &entry["namespaceSelector"]["matchExpressions"][0];
                    assert_eq!(
                        (&ours["operator"], &ours["values"]),
                        (&json!("NotIn"), &json!(["interlock-system"]))
                    );
                } else {
                    let ours = [json!(["kudo.dev"]), json!(["gateway-operator.konghq.com"])];
                    assert!(
                        ours.iter().chain(&of_policies()).any(|own| *own == rule["apiGroups"]),
                        "{entry}"
                    );
                    assert!(entry.get("objectSelector").is_none(), "{entry}");
                }
                for list in ["apiGroups", "apiVersions", "operations", "resources"] {
                    for item in rule[list].as_array().unwrap() {
                        assert!(!item.as_str().unwrap().contains('*'), "{entry}");
                    }
                }
            }
        }
    }

    /// No rule is about Operators, so the webhooks do not match them.
    #[test]
    fn what_is_asked_about_is_what_rules_know() {
        let mut asked = std::collections::BTreeSet::new();
        for entry in entries(&InstallOptions::default()) {
            let rule = &entry["rules"][0];
            for resource in rule["resources"].as_array().unwrap() {
                let plural = resource.as_str().unwrap().trim_end_matches("/status");
                asked.insert(format!("{}/{}/{plural}", rule["apiGroups"][0], rule["apiVersions"][0]));
            }
        }
        let known = kinds::guarded(crate::kinds::all());
        let known = known.iter().map(|guarded| guarded.resource);
        let known = known.map(|of| format!("{:?}/{:?}/{}", of.group, of.version(), of.plural));
        let known = known.filter(|kind| !kind.ends_with("/operators")).collect();
        assert_eq!(asked, known);
    }

    #[test]
    fn every_entry_is_quick_free_of_side_effects_and_exact() {
        let all = entries(&InstallOptions::default());
        assert_eq!(all.len(), 25);
        for entry in all {
            assert_eq!(entry["timeoutSeconds"], 5);
            assert_eq!(entry["sideEffects"], "None");
            assert_eq!(entry["matchPolicy"], "Equivalent");
            let rule = &entry["rules"][0];
            let mut foreign = of_policies().to_vec();
            foreign.extend([json!(["apps"]), json!([""])]);
            let foreign = foreign.contains(&rule["apiGroups"]);
            let lists = entry["name"].as_str().unwrap().contains("flavor-sources.mutate");
            let ignored = rule["operations"] == json!(["DELETE"]) || foreign || lists;
            assert_eq!(entry["failurePolicy"], if ignored { "Ignore" } else { "Fail" });
            assert_eq!(entry.get("namespaceSelector").is_some(), rule["apiGroups"] == json!([""]));
        }
    }

    #[test]
    fn watched_namespaces_are_the_only_ones_matched() {
        let options = InstallOptions { watch_namespaces: strings(["a", "b"]), ..InstallOptions::default() };
        for entry in entries(&options) {
            let only = &entry["namespaceSelector"]["matchExpressions"][0];
            assert_eq!(only["key"], "kubernetes.io/metadata.name");
            assert_eq!(only["operator"], "In");
            assert_eq!(only["values"], json!(["a", "b"]));
        }
    }

    #[test]
    fn a_process_outside_the_cluster_is_found_by_url() {
        let endpoint =
            Endpoint::Url { base: "https://127.0.0.1:9443/".to_owned(), ca_bundle: b"pem".to_vec() };
        for entry in entries(&InstallOptions { endpoint, ..InstallOptions::default() }) {
            let url = entry["clientConfig"]["url"].as_str().unwrap();
            let path = url.strip_prefix("https://127.0.0.1:9443").unwrap();
            assert!(["/mutate", "/validate", "/guarded-sources"].contains(&path), "{url}");
            assert_eq!(entry["clientConfig"]["caBundle"], "cGVt");
            assert!(entry["clientConfig"].get("service").is_none());
        }
    }
}
