//! `DataPlane`, and Deployments that run Kong: router flavors, rollouts, the spec of the live pods.

pub mod flavor;
pub mod labelled;
pub mod links;

mod listed;
mod lister;
pub mod live_spec;
pub mod names;
mod page;
pub mod policies;
pub mod remedy;
pub mod rollout;
pub mod rules;
mod story;
pub mod validation;

pub use lister::{GatewayLister, gateways};

use interlock_core::admission::kind::{GuardedKind, allow};
use interlock_core::api::meta;
use interlock_core::api::resource::Resource;
use interlock_core::kinds::capabilities::FLAVORS;
use interlock_core::kinds::descriptor::{
    Calls, Kept, Kind, MatchCondition, MatchedObjects, OnFailure, Right, Role, Watch, WebhookEntry, cel,
};

use self::flavor::inventory::GatewayInventory;
use self::policies::{OF_DATA_PLANES, OF_DEPLOYMENTS};
use crate::api::{GROUP, VERSION};
use crate::data_plane::labelled::{GUARDED_DEPLOYMENTS, GUARDED_SERVICES};

const DATA_PLANES: Resource = Resource::custom(GROUP, &[VERSION], "DataPlane", "dataplanes");
const CONTROL_PLANES: Resource =
    Resource::custom(GROUP, &["v2beta1", "v1beta1"], "ControlPlane", "controlplanes");
const DEPLOYMENTS: Resource = Resource::built_in("apps", &["v1"], "Deployment", "deployments");
const SERVICES: Resource = Resource::built_in("", &["v1"], "Service", "services");

/// Everything that is known of DataPlanes.
pub static DATA_PLANE: Kind = Kind {
    listed: Some(listed::ListedGateways::empty),
    inventory: Some(GatewayInventory::OF_DOMAIN),
    page: Some(page::part),
    gauges: Some(rollout::report::totals::gauges),
    story: Some(&story::STORY),
    node_facts: Some(rollout::report::summary::node_facts),
    watch: Some(Watch::optional(&FLAVORS).kept(&Kept::WHOLE)),
    schema: Some(&links::DATA_PLANE_KIND),
    admission: Some(&GuardedKind {
        resource: DATA_PLANES,
        capability: None,
        annotations: &[
            meta::ALLOW_FLAVOR,
            meta::PROMOTE_WHEN_READY,
            meta::SERVICE_SELECTOR_OVERRIDE,
            meta::REVISION_HISTORY_LIMIT,
            meta::PROMOTION_GRACE_PERIOD,
            meta::GUARDED_SOURCES,
        ],
        decide: rules::decide_data_plane,
        restore: allow,
        sub_resources: &[],
    }),
    webhooks: &[
        WebhookEntry {
            name: "dataplanes",
            calls: Calls::Both,
            resources: &["dataplanes"],
            operations: &["CREATE", "UPDATE"],
            on_failure: OnFailure::Refuse,
            conditions: &[
                MatchCondition::NotTheController,
                // The last-applied spec is an annotation.
                MatchCondition::Cel("spec-or-annotations-changed", || {
                    cel::SPEC_OR_ANNOTATIONS_CHANGED.to_owned()
                }),
            ],
            objects: MatchedObjects::All,
        },
        WebhookEntry {
            name: "dataplane-flavor-sources",
            calls: Calls::Sources,
            resources: &["dataplanes"],
            operations: &["CREATE", "UPDATE"],
            // Without it a source is read, and not guarded.
            on_failure: OnFailure::Admit,
            conditions: &[
                MatchCondition::NotTheController,
                MatchCondition::Cel("spec-changed", || cel::SPEC_CHANGED.to_owned()),
                MatchCondition::Cel("has-sources", || policies::have_sources(OF_DATA_PLANES)),
                MatchCondition::Cel("may-update-configmaps", || {
                    policies::may_update_config_maps(OF_DATA_PLANES)
                }),
                MatchCondition::Cel("may-update-secrets", || policies::may_update_secrets(OF_DATA_PLANES)),
            ],
            objects: MatchedObjects::All,
        },
    ],
    policies: &[policies::overrides, policies::guarded_sources],
    rights: &[
        // For the check that the pods behind one Service run with one router flavor.
        Right::new(Role::Controller, "", "pods", &["list"]),
        Right::new(Role::Controller, GROUP, "dataplanes/status", &["patch"]),
        Right::new(Role::Admin, GROUP, "dataplanes", &[meta::ALLOW_FLAVOR_VERB]),
        // The certificates of their admin API, under names that are not known beforehand.
        Right::new(Role::DataPlaneCertificates, "", "secrets", &["create", "get", "patch"]),
    ],
    rules: rules::ids::RULES,
    reconciler: Some(&rollout::reconcile::RECONCILER),
    ..Kind::new(DATA_PLANES)
};

/// Everything that is known of ControlPlanes.
pub static CONTROL_PLANE: Kind = Kind {
    watch: Some(Watch::optional(&FLAVORS)),
    schema: Some(&links::CONTROL_PLANE_KIND),
    ..Kind::new(CONTROL_PLANES)
};

/// Everything that is known of Deployments that run Kong or configure it: those with our label.
pub static DEPLOYMENT: Kind = Kind {
    watch: Some(Watch::optional(&FLAVORS).labelled(&GUARDED_DEPLOYMENTS)),
    schema: Some(&links::GUARDED_DEPLOYMENT_KIND),
    admission: Some(&GuardedKind {
        resource: DEPLOYMENTS,
        capability: None,
        annotations: &[meta::ALLOW_FLAVOR, meta::GUARDED_SOURCES],
        decide: rules::decide_deployment,
        restore: allow,
        sub_resources: &[],
    }),
    // Every cluster has Deployments: match only labelled ones, and never block recovery.
    webhooks: &[
        WebhookEntry {
            name: "kong-deployments",
            calls: Calls::Validating,
            resources: &["deployments"],
            operations: &["CREATE", "UPDATE"],
            on_failure: OnFailure::Admit,
            conditions: &[MatchCondition::Cel("spec-changed", || cel::SPEC_CHANGED.to_owned())],
            objects: MatchedObjects::Labelled(meta::GUARD, meta::GUARD_FLAVOR),
        },
        WebhookEntry {
            name: "kong-deployment-flavor-sources",
            calls: Calls::Sources,
            resources: &["deployments"],
            operations: &["CREATE", "UPDATE"],
            on_failure: OnFailure::Admit,
            conditions: &[
                MatchCondition::Cel("spec-changed", || cel::SPEC_CHANGED.to_owned()),
                MatchCondition::Cel("has-sources", || policies::have_sources(OF_DEPLOYMENTS)),
                MatchCondition::Cel("may-update-configmaps", || {
                    policies::may_update_config_maps(OF_DEPLOYMENTS)
                }),
                MatchCondition::Cel("may-update-secrets", || policies::may_update_secrets(OF_DEPLOYMENTS)),
            ],
            objects: MatchedObjects::Labelled(meta::GUARD, meta::GUARD_FLAVOR),
        },
    ],
    rights: &[
        // The running template during a rollout of a Deployment.
        Right::new(Role::Webhook, "apps", "replicasets", &["list"]),
        Right::new(Role::Admin, "apps", "deployments", &[meta::ALLOW_FLAVOR_VERB]),
    ],
    ..Kind::new(DEPLOYMENTS)
};

/// Everything that is known of Services by which ingress controllers reach their gateways: those with our
/// label.
pub static SERVICE: Kind = Kind {
    watch: Some(Watch::optional(&FLAVORS).labelled(&GUARDED_SERVICES)),
    schema: Some(&links::SERVICE_KIND),
    ..Kind::new(SERVICES)
};
