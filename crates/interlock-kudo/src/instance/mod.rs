//! `Instance`: the object that the plans of its OperatorVersion run on.

pub mod change;
pub mod links;
mod listed;
mod page;
pub mod policies;
pub mod previous_spec;
pub mod remedy;
pub mod rules;
pub mod run_summary;
pub mod spec;
pub mod status;
pub mod status_wire;
mod story;
pub mod summary;
pub mod trouble;

use interlock_core::admission::kind::{GuardedKind, SubResource};
use interlock_core::api::meta;
use interlock_core::api::meta::{KUDO_GROUP, KUDO_VERSION};
use interlock_core::api::resource::Resource;
use interlock_core::kinds::capabilities::INSTANCES;
use interlock_core::kinds::descriptor::{
    Calls, Kind, MatchCondition, MatchedObjects, OnFailure, READ, Right, Role, WRITE, Watch, WebhookEntry,
    cel,
};

const RESOURCE: Resource = Resource::custom(KUDO_GROUP, &[KUDO_VERSION], "Instance", "instances");

/// The verbs of plan requests.
const PLAN_VERBS: &[&str] = &["abort", "retry", "restart", "pause", "resume", "adopt"];

/// Writes of the spec or of an annotation.
const CHANGES: &[MatchCondition] = &[
    MatchCondition::NotTheController,
    MatchCondition::Cel("spec-or-annotations-changed", || cel::SPEC_OR_ANNOTATIONS_CHANGED.to_owned()),
];

/// Everything that is known of Instances.
pub static KIND: Kind = Kind {
    listed: Some(listed::ListedPackages::empty),
    watch: Some(Watch::required(&INSTANCES).status_fields(&[
        "observedGeneration",
        "lastApplied",
        "progress",
        "requests",
    ])),
    schema: Some(&links::INSTANCE),
    admission: Some(&GuardedKind {
        resource: RESOURCE,
        capability: Some(INSTANCES.name),
        annotations: &[
            meta::HISTORY,
            meta::REQUEST,
            meta::REASON,
            meta::REQUESTED_BY,
            meta::STEP_DEADLINE,
            meta::CLEANUP_PATIENCE,
        ],
        decide: rules::decide,
        restore: rules::restore,
        sub_resources: &[SubResource { name: "status", decide: rules::status::decide }],
    }),
    webhooks: &[
        WebhookEntry {
            name: "instances",
            calls: Calls::Both,
            resources: &["instances"],
            operations: &["CREATE", "UPDATE"],
            on_failure: OnFailure::Refuse,
            conditions: CHANGES,
            objects: MatchedObjects::All,
        },
        WebhookEntry {
            name: "instances-status",
            calls: Calls::Validating,
            resources: &["instances/status"],
            operations: &["UPDATE"],
            on_failure: OnFailure::Refuse,
            conditions: &[MatchCondition::NotTheController],
            objects: MatchedObjects::All,
        },
    ],
    policies: policies::POLICIES,
    rights: &[
        Right::new(Role::Controller, KUDO_GROUP, "instances", &["update", "patch"]),
        Right::new(Role::Controller, KUDO_GROUP, "instances/status", &["get", "update", "patch"]),
        Right::new(Role::Viewer, KUDO_GROUP, "instances", READ),
        Right::new(Role::Viewer, KUDO_GROUP, "instances/status", &["get"]),
        Right::new(Role::Editor, KUDO_GROUP, "instances", WRITE),
        Right::new(Role::Editor, KUDO_GROUP, "instances", PLAN_VERBS),
    ],
    rules: rules::ids::RULES,
    page: Some(page::part),
    gauges: Some(summary::gauges),
    story: Some(&story::STORY),
    ..Kind::new(RESOURCE)
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn editors_have_the_verbs_of_all_requests() {
        let rights = change::plan_request::PlanVerb::ALL.map(change::plan_request::PlanVerb::right);
        assert_eq!(BTreeSet::from_iter(PLAN_VERBS), rights.iter().collect());
    }
}
