//! The webhook configurations: exactly our kinds and subresources, never `*`.
//!
//! They match nothing that the process needs to start, so a dead webhook cannot prevent its own restart.
//! Metadata of Instances stays editable while it is dead.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::api::kong;
use interlock_core::api::meta::{self, install};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::{Value, json};

use super::metadata::{cluster_wide, strings};
use super::{CertificateIssuer, Endpoint, InstallOptions};

/// Longest wait of the API server for an answer. Ours takes well below a millisecond, unless it waits for
/// an OperatorVersion (at most two seconds).
const TIMEOUT_SECONDS: i32 = 5;

/// Whether an update changes the spec or an annotation. The optional fields are needed: the
/// plain form fails on an object without a spec, which then could never lose its finalizer.
const SPEC_OR_ANNOTATIONS_CHANGED: &str = "request.operation != 'UPDATE'\n\
    || object.?spec.orValue({}) != oldObject.?spec.orValue({})\n\
    || object.?metadata.?annotations.orValue({}) != oldObject.?metadata.?annotations.orValue({})";

/// Whether an update changes the spec.
const SPEC_CHANGED: &str = "request.operation != 'UPDATE'\n\
    || object.?spec.orValue({}) != oldObject.?spec.orValue({})";

/// Whether an update changes the data of a ConfigMap or Secret, or removes a label: without that the API
/// server would send no later change. The entry's selector also matches the old object.
fn data_changed_or_label_removed(label: &str) -> String {
    let labelled =
        |object: &str| format!("({} in {object}.?metadata.?labels.orValue({{}}))", cel_string(label));
    format!(
        "request.operation != 'UPDATE'\n\
         || object.?data.orValue({{}}) != oldObject.?data.orValue({{}})\n\
         || ({} && !{})",
        labelled("oldObject"),
        labelled("object")
    )
}

/// The failure policy of an entry.
#[derive(Clone, Copy)]
enum OnFailure {
    Refuse,
    Admit,
}

/// One entry of a configuration.
struct Entry {
    name: &'static str,
    /// Group and version.
    api: (&'static str, &'static str),
    resources: &'static [&'static str],
    operations: &'static [&'static str],
    on_failure: OnFailure,
    conditions: Vec<MatchCondition>,
    objects: Objects,
}

/// The objects that an entry matches.
#[derive(Clone, Copy)]
enum Objects {
    All,
    /// Those with a label, and a value of it.
    Labelled(&'static str, &'static str),
    /// Those with a label, whatever its value, outside of our own namespace: no match can block a restart
    /// of the process.
    Marked(&'static str),
}

const INSTANCES: (&str, &str) = (meta::KUDO_GROUP, meta::KUDO_VERSION);

/// The mutating and the validating configuration.
pub fn all(options: &InstallOptions) -> Vec<Value> {
    vec![json!(mutating(options)), json!(validating(options))]
}

/// A string literal of CEL.
pub(super) fn cel_string(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

const NOT_OURSELVES: &str = "not-the-controller";
const IS_NOT: &str = "request.userInfo.username != ";

/// Skips the user of the process, and no other: an exact match of the whole name.
pub(super) fn not_ourselves(options: &InstallOptions) -> MatchCondition {
    MatchCondition {
        name: NOT_OURSELVES.to_owned(),
        expression: format!("{IS_NOT}{}", cel_string(&options.controller_user())),
    }
}

/// The user that an installed webhook configuration skips, read back from its match conditions.
pub fn bookkeeper_of(configuration: &Value) -> Option<String> {
    let webhooks = configuration["webhooks"].as_array()?.iter();
    let mut conditions = webhooks.filter_map(|webhook| webhook["matchConditions"].as_array()).flatten();
    let ours = conditions.find(|condition| condition["name"] == NOT_OURSELVES)?;
    let quoted = ours["expression"].as_str()?.strip_prefix(IS_NOT)?;
    let text = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut user = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        user.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    Some(user)
}

pub(super) fn condition(name: &str, expression: &str) -> MatchCondition {
    MatchCondition { name: name.to_owned(), expression: expression.to_owned() }
}

fn instances(name: &'static str, options: &InstallOptions) -> Entry {
    Entry {
        name,
        api: INSTANCES,
        resources: &["instances"],
        operations: &["CREATE", "UPDATE"],
        on_failure: OnFailure::Refuse,
        conditions: vec![
            not_ourselves(options),
            condition("spec-or-annotations-changed", SPEC_OR_ANNOTATIONS_CHANGED),
        ],
        objects: Objects::All,
    }
}

/// DataPlanes, whose stamp is an annotation.
fn data_planes(name: &'static str, options: &InstallOptions) -> Entry {
    Entry { api: (kong::GROUP, kong::VERSION), resources: &["dataplanes"], ..instances(name, options) }
}

fn mutating(options: &InstallOptions) -> MutatingWebhookConfiguration {
    let entries = [
        instances("instances.mutate.interlock.dev", options),
        data_planes("dataplanes.mutate.interlock.dev", options),
    ];
    let webhook = |entry: Entry| MutatingWebhook {
        admission_review_versions: strings(["v1", "v1beta1"]),
        client_config: client(options, WebhookEndpoint::Mutate),
        failure_policy: Some(entry.on_failure.as_str()),
        match_policy: Some("Equivalent".to_owned()),
        name: entry.name.to_owned(),
        namespace_selector: options.namespace_selector(),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        rules: Some(vec![entry.rule()]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        match_conditions: Some(entry.conditions),
        object_selector: None,
    };
    MutatingWebhookConfiguration {
        metadata: metadata(options),
        webhooks: Some(entries.into_iter().map(webhook).collect()),
    }
}

fn validating(options: &InstallOptions) -> ValidatingWebhookConfiguration {
    let entries = vec![
        instances("instances.interlock.dev", options),
        Entry {
            name: "instances-status.interlock.dev",
            api: INSTANCES,
            resources: &["instances/status"],
            operations: &["UPDATE"],
            on_failure: OnFailure::Refuse,
            conditions: vec![not_ourselves(options)],
            objects: Objects::All,
        },
        Entry {
            name: "operatorversions.interlock.dev",
            api: INSTANCES,
            resources: &["operatorversions"],
            operations: &["CREATE", "UPDATE"],
            on_failure: OnFailure::Refuse,
            conditions: vec![condition("spec-changed", SPEC_CHANGED)],
            objects: Objects::All,
        },
        Entry {
            name: "operatorversions-delete.interlock.dev",
            api: INSTANCES,
            resources: &["operatorversions"],
            operations: &["DELETE"],
            on_failure: OnFailure::Admit,
            conditions: Vec::new(),
            objects: Objects::All,
        },
        data_planes("dataplanes.interlock.dev", options),
        // Every cluster has Deployments: match only labelled ones, and never block recovery.
        Entry {
            name: "kong-deployments.interlock.dev",
            api: ("apps", "v1"),
            resources: &["deployments"],
            operations: &["CREATE", "UPDATE"],
            on_failure: OnFailure::Admit,
            conditions: vec![condition("spec-changed", SPEC_CHANGED)],
            objects: Objects::Labelled(meta::GUARD, meta::GUARD_FLAVOR),
        },
        // The API server does not send edits of other ConfigMaps and Secrets at all.
        Entry {
            name: "flavor-sources.interlock.dev",
            api: ("", "v1"),
            resources: &["configmaps", "secrets"],
            operations: &["UPDATE", "DELETE"],
            on_failure: OnFailure::Admit,
            conditions: vec![
                not_ourselves(options),
                condition(
                    "data-changed-or-label-removed",
                    &data_changed_or_label_removed(meta::FLAVOR_SOURCE),
                ),
            ],
            objects: Objects::Marked(meta::FLAVOR_SOURCE),
        },
    ];
    let webhook = |entry: Entry| ValidatingWebhook {
        admission_review_versions: strings(["v1", "v1beta1"]),
        client_config: client(options, WebhookEndpoint::Validate),
        failure_policy: Some(entry.on_failure.as_str()),
        match_policy: Some("Equivalent".to_owned()),
        name: entry.name.to_owned(),
        namespace_selector: entry.objects.namespaces(options),
        rules: Some(vec![entry.rule()]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        object_selector: entry.objects.selector(),
        match_conditions: (!entry.conditions.is_empty()).then_some(entry.conditions),
    };
    ValidatingWebhookConfiguration {
        metadata: metadata(options),
        webhooks: Some(entries.into_iter().map(webhook).collect()),
    }
}

impl OnFailure {
    fn as_str(self) -> String {
        match self {
            Self::Refuse => "Fail",
            Self::Admit => "Ignore",
        }
        .to_owned()
    }
}

impl Objects {
    fn selector(self) -> Option<LabelSelector> {
        match self {
            Self::All => None,
            Self::Labelled(key, value) => Some(LabelSelector {
                match_labels: Some([(key.to_owned(), value.to_owned())].into()),
                match_expressions: None,
            }),
            Self::Marked(key) => Some(LabelSelector {
                match_labels: None,
                match_expressions: Some(vec![requirement(key, "Exists", None)]),
            }),
        }
    }

    fn namespaces(self, options: &InstallOptions) -> Option<LabelSelector> {
        let mut selector = options.namespace_selector();
        if matches!(self, Self::Marked(_)) {
            let others = requirement(NAMESPACE_NAME, "NotIn", Some(vec![options.namespace.clone()]));
            selector.get_or_insert_default().match_expressions.get_or_insert_default().push(others);
        }
        selector
    }
}

/// The label that every Namespace has.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

fn requirement(key: &str, operator: &str, values: Option<Vec<String>>) -> LabelSelectorRequirement {
    LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values }
}

impl Entry {
    fn rule(&self) -> RuleWithOperations {
        RuleWithOperations {
            api_groups: Some(strings([self.api.0])),
            api_versions: Some(strings([self.api.1])),
            operations: Some(self.operations.iter().map(|&o| o.to_owned()).collect()),
            resources: Some(self.resources.iter().map(|&resource| resource.to_owned()).collect()),
            scope: Some("Namespaced".to_owned()),
        }
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

fn client(options: &InstallOptions, door: WebhookEndpoint) -> WebhookClientConfig {
    let path = door.path();
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
    use interlock_core::admission::request::kinds;
    use rstest::rstest;

    use super::*;

    fn entries(options: &InstallOptions) -> Vec<Value> {
        all(options).iter().flat_map(|c| c["webhooks"].as_array().cloned().unwrap_or_default()).collect()
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
                    assert!(ours.contains(&rule["apiGroups"]), "{entry}");
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
        let known =
            kinds().map(|gvk| format!("{:?}/{:?}/{}s", gvk.group, gvk.version, gvk.kind.to_lowercase()));
        let known = known.filter(|kind| !kind.ends_with("/operators")).collect();
        assert_eq!(asked, known);
    }

    #[test]
    fn every_entry_is_quick_free_of_side_effects_and_exact() {
        let all = entries(&InstallOptions::default());
        assert_eq!(all.len(), 9);
        for entry in all {
            assert_eq!(entry["timeoutSeconds"], 5);
            assert_eq!(entry["sideEffects"], "None");
            assert_eq!(entry["matchPolicy"], "Equivalent");
            let rule = &entry["rules"][0];
            let foreign = [json!(["apps"]), json!([""])].contains(&rule["apiGroups"]);
            let ignored = rule["operations"] == json!(["DELETE"]) || foreign;
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
            assert!(["https://127.0.0.1:9443/mutate", "https://127.0.0.1:9443/validate"].contains(&url));
            assert_eq!(entry["clientConfig"]["caBundle"], "cGVt");
            assert!(entry["clientConfig"].get("service").is_none());
        }
    }

    #[rstest]
    #[case("a'b", r"'a\'b'")]
    #[case(r"a\b", r"'a\\b'")]
    #[case("a\nb", r"'a\nb'")]
    #[case("plain", "'plain'")]
    fn cel_strings_cannot_be_left(#[case] text: &str, #[case] literal: &str) {
        assert_eq!(cel_string(text), literal);
    }
}
