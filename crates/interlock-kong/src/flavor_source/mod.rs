//! ConfigMaps and Secrets that the router flavors of gateways come from.

pub mod policies;
pub mod rules;

use interlock_core::admission::kind::{GuardedKind, allow};
use interlock_core::api::meta;
use interlock_core::api::resource::Resource;
use interlock_core::kinds::capabilities::FLAVORS;
use interlock_core::kinds::descriptor::{
    Calls, Kind, MatchCondition, MatchedObjects, OnFailure, Right, Role, Watch, WebhookEntry, cel,
};

use super::data_plane::links;
use crate::data_plane::labelled::FLAVOR_SOURCES;

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
    policies: &[policies::sources],
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
