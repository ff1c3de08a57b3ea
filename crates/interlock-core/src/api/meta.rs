//! Every label, annotation, finalizer and well-known name of the contract, once.
//!
//! Sources: KUDO v0.19 (`pkg/util/kudo/labels.go`, `pkg/kudoctl/kudoinit`), KEP-0018, and the
//! decisions in `docs/architecture.md` for the keys under `interlock.dev`.

/// API group of Operators, OperatorVersions and Instances.
pub const KUDO_GROUP: &str = "kudo.dev";
/// The one version of [`KUDO_GROUP`].
pub const KUDO_VERSION: &str = "v1beta1";
/// `apiVersion` of the KUDO kinds.
pub const KUDO_API_VERSION: &str = "kudo.dev/v1beta1";

/// API group of the kind Interlock.
pub const INTERLOCK_GROUP: &str = "interlock.dev";
/// `apiVersion` of the kind Interlock.
pub const INTERLOCK_API_VERSION: &str = "interlock.dev/v1alpha1";

/// Finalizer on Instances whose OperatorVersion has a `cleanup` plan.
pub const FINALIZER: &str = "kudo.dev.instance.cleanup";

/// Label on everything a package made; its value is [`HERITAGE_VALUE`].
pub const HERITAGE: &str = "heritage";
/// Value of the label [`HERITAGE`].
pub const HERITAGE_VALUE: &str = "kudo";
/// Label: name of the Operator.
pub const OPERATOR: &str = "kudo.dev/operator";
/// Label: name of the Instance.
pub const INSTANCE: &str = "kudo.dev/instance";
/// Label on cluster-scoped children, which can have no owner reference: uid of the Instance that
/// made them.
pub const INSTANCE_UID: &str = "interlock.dev/instance-uid";

/// Annotation on children: plan that wrote them last.
pub const PLAN: &str = "kudo.dev/plan";
/// Annotation on children: phase that wrote them last.
pub const PHASE: &str = "kudo.dev/phase";
/// Annotation on children: step that wrote them last.
pub const STEP: &str = "kudo.dev/step";
/// Annotation on children: uid of the plan execution that wrote them last.
pub const PLAN_UID: &str = "kudo.dev/last-plan-execution-uid";
/// Annotation on children: JSON of what was applied, the "original" of the three-way merge.
pub const LAST_APPLIED_CONFIGURATION: &str = "kudo.dev/last-applied-configuration";
/// Annotation on the Pods of Pipe tasks: `true`.
pub const PIPE_POD: &str = "kudo.dev/pipepod";
/// Annotation on pod templates: `OperatorVersion.spec.version`.
pub const OPERATOR_VERSION: &str = "kudo.dev/operator-version";
/// Annotation on pod templates: what the ConfigMaps and Secrets that they use hash to.
pub const DEPENDENCIES_HASH: &str = "kudo.dev/dependencies-hash";
/// Annotation on a ConfigMap or Secret: it does not count in [`DEPENDENCIES_HASH`].
pub const SKIP_HASH_CALCULATION: &str = "kudo.dev/skip-hash-calculation";
/// Annotation: the object is never deleted by Interlock.
pub const KEEP: &str = "interlock.dev/keep";
/// Annotation on an object that no Instance made: the Instance that it is handed over to, by name;
/// on a cluster-scoped object as `NAMESPACE/NAME`. People write it.
pub const ADOPT: &str = "interlock.dev/adopt";
/// Annotation on an object that no Instance made and that a package writes: uid of the Instance
/// that wrote it first. While it is set the object has no owner reference, and is not deleted.
pub const ADOPTED_BY: &str = "interlock.dev/adopted-by";
/// Annotation on an object whose template was written for a removed version of its API: that `apiVersion`.
pub const CONVERTED_FROM: &str = "interlock.dev/converted-from";
/// Annotation on a cluster-scoped object that an Instance made: uids of the other Instances that
/// apply it, between commas.
pub const SHARED_BY: &str = "interlock.dev/shared-by";
/// Annotation on an object that a package applies, of a kind whose health its conditions report: the type of the
/// condition that is `True` once it is ready. Packages write it.
pub const READY_CONDITION: &str = "interlock.dev/ready-condition";

/// Annotation on Instances and OperatorVersions: how long a step may take, as `10m` for each or
/// `PLAN.PHASE.STEP=10m` for one; several between commas.
pub const STEP_DEADLINE: &str = "interlock.dev/step-deadline";
/// Annotation on Instances and OperatorVersions: how long after the deletion of an Instance its
/// cleanup may keep failing.
pub const CLEANUP_PATIENCE: &str = "interlock.dev/cleanup-patience";
/// Annotation on Instances and OperatorVersions: `true` where a plan removes objects that it applied once and no longer
/// renders.
pub const PRUNE: &str = "interlock.dev/prune";
/// Annotation of a child of a DataPlane: a short hash of the applied body, which distinguishes a later edit from a
/// change of the body.
pub const APPLIED_HASH: &str = "interlock.dev/applied-hash";
/// Field manager of what Interlock posts and patches.
pub const FIELD_MANAGER: &str = "interlock-plan";
/// Field manager of what Interlock applies: one of its own, so that a field which an apply leaves out is not kept by
/// an earlier patch.
pub const APPLY_MANAGER: &str = "interlock";
/// Annotation of DataPlanes: how long the former side is kept after a promotion, such as `10m`.
pub const PROMOTION_GRACE_PERIOD: &str = "interlock.dev/promotion-grace-period";

/// Annotation of DataPlanes: Interlock takes one over that Kong's operator made, and hands it back when the annotation
/// is taken off. Its value is the namespace of Kong's operator, or [`OPERATOR_UNINSTALLED`].
pub const TAKE_OVER: &str = "interlock.dev/take-over";
/// Value of [`TAKE_OVER`] where Kong's operator and its Lease are gone.
pub const OPERATOR_UNINSTALLED: &str = "uninstalled";

/// Annotation of DataPlanes: how many former revisions their history keeps; as `revisionHistoryLimit` of Deployments.
pub const REVISION_HISTORY_LIMIT: &str = "interlock.dev/revision-history-limit";
/// Annotation of DataPlanes: the ControllerRevision that keeps the live spec in the history.
pub const LIVE_REVISION: &str = "interlock.dev/live-revision";
/// Annotation on the Services of the live side: their version when they last were kept with the former side, before the
/// live Deployment was made again.
pub const FORMER_SIDE_KEPT: &str = "interlock.dev/former-side-kept";
/// Label on the ControllerRevisions of a history: uid of the DataPlane.
pub const HISTORY_OF: &str = "interlock.dev/history-of";
/// Annotation on the ControllerRevisions of a history: when the spec became live last.
pub const LIVE_SINCE: &str = "interlock.dev/live-since";
/// On ControllerRevisions of a history: the router flavor that the live pods had.
pub const ROUTER_FLAVOR: &str = "interlock.dev/router-flavor";
/// Annotation, kubectl's: why an object was changed. The history shows it.
pub const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

/// Annotation: the envelope of the spec that is being, or has been, carried out.
pub const LAST_APPLIED_SPEC: &str = "interlock.dev/last-applied-spec";
/// Annotation: the last runs of an Instance, newest first.
pub const HISTORY: &str = "plan.interlock.dev/history";
/// Annotation: a plan request, as `VERB/RUN-UID/NONCE`.
pub const REQUEST: &str = "plan.interlock.dev/request";
/// Annotation: the reason of the request, in one line.
pub const REASON: &str = "plan.interlock.dev/reason";
/// Annotation: the requesting user, as the mutating webhook saw it; for the record only.
pub const REQUESTED_BY: &str = "plan.interlock.dev/requested-by";
/// Label on the ControllerRevisions that keep specs too large for the annotation: uid of the owner.
pub const REVISION_OF: &str = "interlock.dev/revision-of";
/// Label on the ControllerRevisions that keep an inventory: uid of the Instance.
pub const INVENTORY_OF: &str = "interlock.dev/inventory-of";

/// Label on Deployments: guarded by the rules that its value names.
pub const GUARD: &str = "interlock.dev/guard";
/// Value of the label [`GUARD`]: the rules about router flavors.
pub const GUARD_FLAVOR: &str = "kong-router-flavor";
/// Label on ConfigMaps and Secrets that may set the flavor of a gateway: admission validates their
/// changes. Its value shows who wrote the label.
pub const FLAVOR_SOURCE: &str = "interlock.dev/flavor-source";
/// Value of the label [`FLAVOR_SOURCE`] that the controller sets and removes; users set any other.
pub const FLAVOR_SOURCE_OURS: &str = "in-use";
/// Annotation on the pods of a Deployment: the container that runs Kong.
pub const KONG_CONTAINER: &str = "interlock.dev/kong-container";
/// Annotation on gateways: the ConfigMaps and Secrets that are guarded, as their flavor comes from there and the author
/// may update them; `configmaps/NAME,secrets/NAME`.
pub const GUARDED_SOURCES: &str = "interlock.dev/guarded-flavor-sources";
/// Annotation on gateways: configuration producer, as `NAMESPACE/NAME` or a name of their namespace.
pub const CONFIG_PRODUCER: &str = "interlock.dev/config-producer";
/// Annotation: the one change of router flavor allowed against the rules, `FROM->TO@CHANGE`.
pub const ALLOW_FLAVOR: &str = "interlock.dev/allow-router-flavor-change";
/// Annotation on DataPlanes, Kong's: what is staged is promoted when it is ready. `true`, or the hash of
/// the spec that is meant.
pub const PROMOTE_WHEN_READY: &str = "gateway-operator.konghq.com/promote-when-ready";
/// Annotation on DataPlanes, Kong's: the selector of all its Services, as `k=v,k2=v2`.
pub const SERVICE_SELECTOR_OVERRIDE: &str = "gateway-operator.konghq.com/service-selector-override";
/// Annotation on the Deployment of a configuration producer that is scaled to 0 while a DataPlane is promoted:
/// `NAMESPACE/NAME:REPLICAS`, the DataPlane and the number of pods to go back to.
pub const STOPPED_FOR_PROMOTION: &str = "interlock.dev/stopped-for-promotion";
/// Annotation on a DataPlane that is scaled to 0 while its flavor is changed: the number of pods to go back to.
pub const REPLICAS_BEFORE_OUTAGE: &str = "interlock.dev/replicas-before-outage";
/// Label on the copy of a configuration producer that serves the preview of a DataPlane: the name of that.
pub const PREVIEW_PRODUCER_OF: &str = "interlock.dev/preview-producer-of";
/// Verb that a user who writes [`ALLOW_FLAVOR`] on an object needs there.
pub const ALLOW_FLAVOR_VERB: &str = "override-router-flavor";

/// Default namespace of the process.
pub const NAMESPACE: &str = "interlock-system";
/// Default user of the process.
pub const CONTROLLER_USER: &str = "system:serviceaccount:interlock-system:interlock";
/// Default service account that package effects are made as.
pub const PACKAGES_SERVICE_ACCOUNT: &str = "interlock-packages";

/// Names of the objects of an installation; the manifests and the process must agree on them.
pub mod install {
    /// Deployment, Service, service account, PodDisruptionBudget and NetworkPolicy.
    pub const NAME: &str = "interlock";
    /// Optional NetworkPolicy for egress.
    pub const EGRESS_POLICY: &str = "interlock-egress";
    /// ResourceQuota that permits pods of the priority class `system-cluster-critical`.
    pub const CRITICAL_PODS: &str = "interlock-critical-pods";
    /// Service account of the webhook where the roles are split.
    pub const WEBHOOK_NAME: &str = "interlock-webhook";
    /// The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration.
    pub const WEBHOOK_CONFIGURATION: &str = "interlock";
    /// The Service that the API server calls.
    pub const SERVICE: &str = "interlock";
    /// Secret of type `kubernetes.io/tls`, with `ca.crt` beside the pair.
    pub const CERTIFICATE_SECRET: &str = "interlock-certificate";
    /// Secret with the key of which generated passwords and keys of templates follow.
    pub const TEMPLATE_KEY_SECRET: &str = "interlock-template-key";
    /// Secret with the CA of the certificates of DataPlanes.
    pub const DATA_PLANE_CA_SECRET: &str = "interlock-dataplane-ca";
    /// Key of the ConfigMap with the CA of the API server's client certificate.
    pub const CLIENT_CA_KEY: &str = "client-ca.crt";
    /// ValidatingAdmissionPolicy of the freeze, and its binding, which follows the settings.
    pub const FREEZE_BINDING: &str = "interlock-freeze";
    /// ValidatingAdmissionPolicy of references to OperatorVersions of other namespaces, and its binding.
    pub const VERSIONS_POLICY: &str = "interlock-versions";
    /// ConfigMap that records which state of the policy `interlock-verbs` has been in force.
    pub const ENFORCED: &str = "interlock-verbs";
    /// Lease of the replica that reconciles.
    pub const LEASE: &str = "interlock";
    /// The Service that Prometheus calls.
    pub const METRICS_SERVICE: &str = "interlock-metrics";
    /// ClusterRole of users who may read metrics.
    pub const METRICS_READER: &str = "interlock-metrics-reader";
    /// Port of the metrics, in the pod and on the Service.
    pub const METRICS_PORT: u16 = 8443;
    /// Port of the webhook in the pod; 443 on the Service.
    pub const WEBHOOK_PORT: u16 = 9443;
}

/// Plans with a meaning of their own (KUDO `pkg/apis/kudo/v1beta1/instance_types_helpers.go`).
pub mod plan {
    /// Runs at creation.
    pub const DEPLOY: &str = "deploy";
    /// Runs for parameters without a trigger.
    pub const UPDATE: &str = "update";
    /// Runs when the OperatorVersion changes.
    pub const UPGRADE: &str = "upgrade";
    /// Runs at deletion.
    pub const CLEANUP: &str = "cleanup";
}

/// Types and reasons of the conditions on Instances.
pub mod condition {
    /// Summary: everything that the Instance asks for is there.
    pub const READY: &str = "Ready";
    /// A plan is scheduled or runs; absent otherwise. kstatus reads it as `InProgress`.
    pub const RECONCILING: &str = "Reconciling";
    /// Only a person can help; absent otherwise, and never beside [`RECONCILING`]. kstatus reads it as `Failed`.
    pub const STALLED: &str = "Stalled";
    /// The spec differs from what was carried out; absent otherwise.
    pub const SPEC_DRIFT: &str = "SpecDrift";
    /// Reason of [`RECONCILING`]: the run goes on.
    pub const PLAN_IN_PROGRESS: &str = "PlanInProgress";
    /// Reason of [`RECONCILING`]: the run waits for objects.
    pub const WAITING: &str = "Waiting";
    /// Reason of [`RECONCILING`]: the run is paused on request.
    pub const PAUSED: &str = "Paused";
    /// Reason of [`RECONCILING`]: a request failed and is sent again.
    pub const RETRYING: &str = "Retrying";
    /// Reason of [`READY`] and [`STALLED`]: the last plan failed (KUDO's).
    pub const PLAN_IN_FATAL_ERROR: &str = "PlanInFatalError";
    /// Reason of [`READY`], [`STALLED`] and [`SPEC_DRIFT`]: plans failed that a change of the spec needs.
    pub const PLAN_OWED: &str = "PlanOwed";
    /// Reason of [`READY`]: an object of the package is not healthy (KUDO's).
    pub const RESOURCE_NOT_READY: &str = "ResourceNotReady";
    /// The objects of the package are healthy.
    pub const RESOURCES_READY: &str = "ResourcesReady";
    /// Reason of [`READY`] and [`STALLED`]: something that has to be served is not.
    pub const MISSING_DEPENDENCY: &str = "MissingDependency";
    /// Reason of [`RECONCILING`], for two minutes, then of [`STALLED`]: the OperatorVersion is not there.
    pub const OPERATOR_VERSION_MISSING: &str = "OperatorVersionMissing";
    /// Reason of [`STALLED`]: the API server refused a request for good.
    pub const REQUEST_REFUSED: &str = "RequestRefused";
    /// Reason of [`STALLED`]: a request has failed for two minutes, and is still sent again.
    pub const TRANSIENT_ERROR: &str = "TransientError";
    /// Reason of [`STALLED`]: a step can never be done.
    pub const NEVER_DONE: &str = "NeverDone";
    /// Reason of [`STALLED`]: the service account that packages act as is absent.
    pub const NO_SERVICE_ACCOUNT: &str = "NoServiceAccount";
    /// Reason of [`STALLED`]: the process lacks a right that an overlay grants.
    pub const MISSING_RIGHT: &str = "MissingRight";
    /// Reason of [`STALLED`]: a ResourceQuota denies an object.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// Reason of [`STALLED`]: a policy, a webhook or an admission plugin denies an object.
    pub const DENIED_BY_ADMISSION: &str = "DeniedByAdmission";
    /// Reason of [`STALLED`]: a webhook of others does not answer.
    pub const WEBHOOK_UNAVAILABLE: &str = "WebhookUnavailable";
    /// Reason of [`STALLED`]: the namespace is being terminated.
    pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
    /// Reason of [`STALLED`]: the API server does not accept an object that follows from the spec.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// Reason of [`STALLED`]: another object has the name.
    pub const NAME_TAKEN: &str = "NameTaken";
    /// Reason of [`STALLED`]: another object has the port or address.
    pub const ALREADY_ALLOCATED: &str = "AlreadyAllocated";
    /// Reason of [`STALLED`]: an object is too large for the API server.
    pub const OBJECT_TOO_LARGE: &str = "ObjectTooLarge";
    /// Reason of [`STALLED`]: others change the object, or own its fields.
    pub const CONFLICT: &str = "Conflict";
    /// Reason of [`STALLED`]: the API server limits the rate of requests.
    pub const TOO_MANY_REQUESTS: &str = "TooManyRequests";
    /// Reason of [`STALLED`]: the API server does not answer, or answers an error of its own.
    pub const API_SERVER_UNAVAILABLE: &str = "ApiServerUnavailable";
    /// Reason of [`STALLED`]: the API server denies the pods of a workload.
    pub const PODS_REFUSED: &str = "PodsRefused";
    /// Reason of [`STALLED`]: a spec could not be stored, so that its plan does not begin.
    pub const SPEC_NOT_KEPT: &str = "SpecNotKept";
    /// Plan requests are not executed: the policy that guards them is not as installed.
    pub const VERBS_UNAVAILABLE: &str = "VerbsUnavailable";
    /// Of DataPlanes: the pods behind one Service run with one router flavor.
    pub const ROUTER_FLAVOR_CONSISTENT: &str = "RouterFlavorConsistent";
    /// Of DataPlanes: a ConfigMap or Secret that the router flavor comes from was changed, and that waits for a promotion;
    /// absent otherwise. The message says which flavors.
    pub const ROUTER_FLAVOR_STAGED: &str = "RouterFlavorStaged";
    /// Of DataPlanes: false where Interlock leaves one to another operator, true where it has taken one over; absent
    /// otherwise.
    pub const MANAGED: &str = "Managed";
    /// Reason of [`MANAGED`]: Interlock has taken it over from Kong's operator.
    pub const TAKEN_OVER: &str = "TakenOver";
    /// Reason of [`MANAGED`]: it is handed back to Kong's operator.
    pub const HANDED_BACK: &str = "HandedBack";
    /// Reason of [`MANAGED`]: what was found cannot be taken over.
    pub const TAKE_OVER_REFUSED: &str = "TakeOverRefused";
    /// Reason of [`MANAGED`]: Kong's operator may still write the children.
    pub const ANOTHER_MANAGER_WRITES: &str = "AnotherManagerWrites";
    /// Of DataPlanes: fields of the spec that Interlock does not carry out; absent otherwise.
    pub const NOT_CARRIED_OUT: &str = "NotCarriedOut";
    /// Of DataPlanes: the hash of the spec that the live side is made from; true once the live side was ready.
    pub const LIVE_SPEC_RECORDED: &str = "LiveSpecRecorded";
    /// All of ours on Instances: only the bookkeeping user writes them.
    pub const OURS: [&str; 5] = [READY, RECONCILING, STALLED, SPEC_DRIFT, VERBS_UNAVAILABLE];
}

/// Reasons of Events.
pub mod event {
    /// A plan was started.
    pub const PLAN_STARTED: &str = "PlanStarted";
    /// A plan ended.
    pub const PLAN_FINISHED: &str = "PlanFinished";
    /// A plan was ended on request; ours.
    pub const PLAN_ABORTED: &str = "PlanAborted";
    /// A plan that failed was scheduled anew on request; ours.
    pub const PLAN_RETRIED: &str = "PlanRetried";
    /// A run that was held by objects that no Instance made is retried on request, and takes them over; ours.
    pub const OBJECTS_ADOPTED: &str = "ObjectsAdopted";
    /// A run starts on a spec that a rule refuses and an Override admits; ours.
    pub const OVERRIDE_USED: &str = "OverrideUsed";
    /// A run was paused on request; ours.
    pub const PLAN_PAUSED: &str = "PlanPaused";
    /// A run that was paused goes on, on request; ours.
    pub const PLAN_RESUMED: &str = "PlanResumed";
    /// A run was ended and its plan scheduled anew on request; ours.
    pub const PLAN_RESTARTED: &str = "PlanRestarted";
    /// The spec was reverted to the one last carried out in full, on request; ours.
    pub const PLAN_REVERTED: &str = "PlanReverted";
    /// A request was removed without effect; ours.
    pub const REQUEST_DROPPED: &str = "RequestDropped";
    /// The honoured Interlock object was deleted; ours.
    pub const SETTINGS_DELETED: &str = "SettingsDeleted";
    /// A webhook configuration, a policy or a binding was deleted or edited; ours.
    pub const GUARD_NOT_INTACT: &str = "GuardNotIntact";
    /// It is as installed again; ours.
    pub const GUARD_INTACT: &str = "GuardIntact";
    /// The OperatorVersion of an Instance is absent or unusable.
    pub const INVALID_OPERATOR_VERSION: &str = "InvalidOperatorVersion";
    /// The API server warned about an object of a package, such as of a field that it does not know; ours.
    pub const API_WARNING: &str = "APIWarning";
    /// Pods behind one Service run with different router flavors; on gateways, ours.
    pub const ROUTER_FLAVORS_MIXED: &str = "RouterFlavorsMixed";
    /// A child of the live side was gone and was made again; on DataPlanes, ours.
    pub const LIVE_CHILD_RECREATED: &str = "LiveChildRecreated";
    /// A child of the live side was edited by hand and was set back; on DataPlanes, ours.
    pub const LIVE_CHILD_RESTORED: &str = "LiveChildRestored";
    /// It was taken over from Kong's operator; on DataPlanes, ours.
    pub const TAKEN_OVER: &str = "TakenOver";
    /// It was handed back to Kong's operator; on DataPlanes, ours.
    pub const HANDED_BACK: &str = "HandedBack";
    /// A staged spec became live; on DataPlanes, ours.
    pub const PROMOTED: &str = "Promoted";
    /// The spec that the live pods are made from was replaced before it was kept; on DataPlanes, ours.
    pub const LIVE_SPEC_LOST: &str = "LiveSpecLost";
    /// An Instance cannot be decoded, and is left alone; ours.
    pub const UNREADABLE: &str = "Unreadable";
    /// A change of router flavor was admitted that should have been denied; on gateways, ours.
    pub const ROUTER_FLAVOR_OVERLOOKED: &str = "RouterFlavorOverlooked";
    /// A reconcile needs more than a limit allows; ours.
    pub const LIMIT_EXCEEDED: &str = "LimitExceeded";

    /// All of them.
    pub const ALL: [&str; 26] = [
        PLAN_STARTED,
        PLAN_FINISHED,
        PLAN_ABORTED,
        PLAN_RETRIED,
        OBJECTS_ADOPTED,
        OVERRIDE_USED,
        PLAN_PAUSED,
        PLAN_RESUMED,
        PLAN_RESTARTED,
        PLAN_REVERTED,
        REQUEST_DROPPED,
        SETTINGS_DELETED,
        GUARD_NOT_INTACT,
        GUARD_INTACT,
        INVALID_OPERATOR_VERSION,
        API_WARNING,
        ROUTER_FLAVORS_MIXED,
        LIVE_CHILD_RECREATED,
        LIVE_CHILD_RESTORED,
        TAKEN_OVER,
        HANDED_BACK,
        PROMOTED,
        LIVE_SPEC_LOST,
        UNREADABLE,
        ROUTER_FLAVOR_OVERLOOKED,
        LIMIT_EXCEEDED,
    ];

    #[cfg(test)]
    mod tests {
        #[test]
        fn all_of_them_are_listed() {
            let (_, events) = include_str!("meta.rs").split_once("pub mod event {").unwrap();
            let constants = events.split("\n}\n").next().unwrap().matches("pub const ").count();
            // This test names the words once, and the list is one.
            assert_eq!(constants - 2, super::ALL.len());
        }
    }
}
