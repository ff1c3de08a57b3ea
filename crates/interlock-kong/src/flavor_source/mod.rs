//! ConfigMaps and Secrets that the router flavors of gateways come from, and the label that selects changes of them.

pub mod rules;

use interlock_core::admission::kind::{GuardedKind, allow};
use interlock_core::api::meta;
use interlock_core::api::resource::Resource;
use interlock_core::kinds::capabilities::FLAVORS;
use interlock_core::kinds::descriptor::{
    Calls, Kind, MatchCondition, MatchedObjects, OnFailure, PolicyOptions, PolicyScope, Right, Role, Watch,
    WebhookEntry, cel, only_where, policy_over,
};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};

use super::data_plane::links;
use crate::data_plane::labelled::FLAVOR_SOURCES;
use crate::data_plane::policies::may_override;
use crate::data_plane::rules::ids::FLAVOR_SOURCE;

const CONFIG_MAPS: Resource = Resource::built_in("", &["v1"], "ConfigMap", "configmaps");
const SECRETS: Resource = Resource::built_in("", &["v1"], "Secret", "secrets");

/// Everything that is known of ConfigMaps that are sources of flavors: those with our label.
pub static CONFIG_MAP: Kind = Kind {
    watch: Some(Watch::optional(&FLAVORS).labelled(&FLAVOR_SOURCES)),
    schema: Some(&links::SOURCE_KIND),
    admission: Some(&GuardedKind {
        resource: CONFIG_MAPS,
        capability: None,
        annotations: &[meta::ALLOW_FLAVOR],
        decide: rules::decide_config_map,
        restore: allow,
        sub_resources: &[],
    }),
    // The API server does not send edits of other ConfigMaps and Secrets at all.
    webhooks: &[WebhookEntry {
        name: "flavor-sources",
        calls: Calls::Validating,
        resources: &["configmaps", "secrets"],
        operations: &["UPDATE", "DELETE"],
        on_failure: OnFailure::Admit,
        conditions: &[
            MatchCondition::NotTheController,
            MatchCondition::Cel("data-changed-or-label-removed", data_changed_or_label_removed),
        ],
        objects: MatchedObjects::HavingLabel(meta::FLAVOR_SOURCE),
    }],
    policies: &[sources],
    rights: &[
        Right::new(Role::FlavorSources, "", "configmaps", &["get", "patch"]),
        Right::new(Role::Admin, "", "configmaps", &[meta::ALLOW_FLAVOR_VERB]),
    ],
    ..Kind::new(CONFIG_MAPS)
};

/// Everything that is known of Secrets that are sources of flavors. They are not watched: a right to list
/// Secrets is a right to read them all.
pub static SECRET: Kind = Kind {
    admission: Some(&GuardedKind {
        resource: SECRETS,
        capability: None,
        annotations: &[meta::ALLOW_FLAVOR],
        decide: rules::decide_secret,
        restore: allow,
        sub_resources: &[],
    }),
    rights: &[
        Right::new(Role::FlavorSecrets, "", "secrets", &["get", "patch"]),
        Right::new(Role::Admin, "", "secrets", &[meta::ALLOW_FLAVOR_VERB]),
    ],
    ..Kind::new(SECRETS)
};

/// Whether an update changes the data, or removes the label: without that the API server would send no
/// later change. The entry's selector also matches the old object.
fn data_changed_or_label_removed() -> String {
    let label = cel::string(meta::FLAVOR_SOURCE);
    let labelled = |object: &str| format!("({label} in {object}.?metadata.?labels.orValue({{}}))");
    format!(
        "request.operation != 'UPDATE'\n\
         || object.?data.orValue({{}}) != oldObject.?data.orValue({{}})\n\
         || ({} && !{})",
        labelled("oldObject"),
        labelled("object")
    )
}

/// ConfigMaps and Secrets that are sources of flavors keep the label that selects their changes, also while
/// the webhook is down.
pub const SOURCES: &str = "interlock-flavor-sources";

/// Resources that may be sources of flavors.
const HELD_IN: [(&str, &str, &str); 2] = [("", "v1", "configmaps"), ("", "v1", "secrets")];

/// Only the controller removes or replaces a label that it wrote: without it no later change reaches the
/// webhook. Removing a user's label takes the right to override the rules: the webhook decides
/// whether a gateway needs it.
pub fn sources(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let key = cel::string(meta::FLAVOR_SOURCE);
    let ours = cel::string(meta::FLAVOR_SOURCE_OURS);
    let label = |object: &str| format!("{object}.?metadata.?labels[?{key}].orValue('')");
    let labelled = |object: &str| format!("({key} in {object}.?metadata.?labels.orValue({{}}))");
    let (new, old) = (label("object"), label("oldObject"));
    let named = options.named_rule(FLAVOR_SOURCE);
    let remedy = format!(
        "leave it; Interlock takes it away when no gateway refers to the object any more, and verb {} takes one away \
         that people wrote",
        meta::ALLOW_FLAVOR_VERB
    );
    let what = format!("label {} shows Interlock what a router flavor comes from", meta::FLAVOR_SOURCE);
    let validation = Validation {
        expression: format!("{old} != {ours} && {}", may_override()),
        message: Some(format!("{what}; {remedy}{named}")),
        message_expression: Some(format!(
            "request.kind.kind + ' ' + request.namespace + '/' + request.name + ': {what}; {remedy}{named}'"
        )),
        reason: Some("Invalid".to_owned()),
    };
    let scope = PolicyScope { resources: &HELD_IN, operations: &["UPDATE"] };
    let policy = policy_over(SOURCES, &scope, &[], vec![validation], options);
    let lost = format!(
        "{} && (!{} || ({old} == {ours} && {new} != {ours}))",
        labelled("oldObject"),
        labelled("object")
    );
    only_where(policy, "loses-the-label", &lost)
}
