//! Rules as tables, over whole reviews: each row is a request and its outcome.

mod awaited;
mod create;
mod deleting;
mod dependencies;
mod goldens;
mod history;
mod limits;
mod locked;
mod overrides;
mod properties;
mod refusals;
mod review;
mod settings;
mod softened;
mod stamp;
mod status;
mod update;
mod upgrade;
mod verbs;
mod versions;

use interlock_core::admission::lister::CacheState;
use interlock_core::admission::{Config, Freeze, WebhookEndpoint};
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::{Applied, SpecHash, VersionRef};
use interlock_core::kinds::static_lister::StaticLister;
use interlock_core::testing;
use serde_json::{Value, json};

use super::instance::change::baseline::{Baseline, PendingPlan};
use super::instance::change::uid::{ScheduledOn, plan_uid};
pub use interlock_core::testing::{Cached, Said, now};

pub const NAMESPACE: &str = "team";
pub const ALICE: &str = "alice";
pub const RESOURCE_VERSION: &str = "41";

/// The inputs beside the request.
pub struct World {
    pub view: StaticLister,
    pub cache: CacheState,
    pub config: Config,
}

impl World {
    pub fn new(freeze: Freeze) -> Self {
        let mut view = StaticLister::of(crate::all());
        view.add(&kafka("kafka-1", "1.0.0"), NAMESPACE).unwrap();
        let config = Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze, docs: None };
        Self { view, cache: CacheState::Synced, config }
    }

    pub fn strict() -> Self {
        Self::new(Freeze::Strict)
    }

    /// One to which no OperatorVersion comes later.
    pub fn complete() -> Self {
        let mut world = Self::strict();
        world.view.require_references();
        world
    }

    pub fn same_plan() -> Self {
        Self::new(Freeze::SamePlan)
    }

    pub fn with(mut self, object: Value) -> Self {
        self.view.add(&object, NAMESPACE).unwrap();
        self
    }

    pub fn ask(&self, door: WebhookEndpoint, review: &Value) -> Said {
        let view = Cached(&self.view, self.cache.clone());
        testing::ask(crate::all(), &view, &self.config, door, review)
    }

    /// Through both endpoints, as the API server calls them: validation must allow what mutation allows
    /// without a further patch, and a repeated mutation must not change it.
    pub fn admit(&self, review: Value) -> Said {
        let mutated = self.ask(WebhookEndpoint::Mutate, &review);
        if mutated.allowed() && foreign(&review) {
            let mut again = review.clone();
            again["request"]["object"] = mutated.object.clone();
            let validated = self.ask(WebhookEndpoint::Validate, &again);
            if !validated.allowed() {
                // Contents of another namespace are disclosed only after the policy has run.
                assert_eq!(mutated.patch, Value::Null);
                return validated;
            }
        }
        let kudo = self.ask(WebhookEndpoint::Kudo, &review);
        assert_eq!(kudo.response["allowed"], mutated.response["allowed"]);
        assert_eq!(kudo.patch, mutated.patch);
        let mut again = review;
        again["request"]["object"] = mutated.object.clone();
        if mutated.allowed() && again["request"]["operation"] != json!("DELETE") {
            let twice = self.ask(WebhookEndpoint::Mutate, &again);
            assert!(twice.allowed(), "refused when asked again: {}", twice.message());
            assert_eq!(twice.patch, Value::Null, "not idempotent");
            let validated = self.ask(WebhookEndpoint::Validate, &again);
            assert!(validated.allowed(), "mutation allows, validation refuses: {}", validated.message());
            assert_eq!(validated.patch, Value::Null);
        } else if !mutated.allowed() {
            let validated = self.ask(WebhookEndpoint::Validate, &again);
            assert!(!validated.allowed(), "mutation refuses, validation allows");
        }
        mutated
    }

    pub fn create(&self, object: Value) -> Said {
        self.admit(review("CREATE", "Instance", object, Value::Null))
    }

    pub fn update(&self, old: &Value, object: Value) -> Said {
        self.admit(review("UPDATE", "Instance", object, old.clone()))
    }

    /// An update by a merge patch.
    pub fn merge(&self, old: &Value, patch: Value) -> Said {
        let mut object = old.clone();
        json_patch::merge(&mut object, &patch);
        self.update(old, object)
    }
}

fn foreign(review: &Value) -> bool {
    let namespace = review["request"]["object"]["spec"]["operatorVersion"]["namespace"].as_str();
    namespace.is_some_and(|namespace| namespace != NAMESPACE)
}

pub fn review(operation: &str, kind: &str, object: Value, old: Value) -> Value {
    let name =
        old.pointer("/metadata/name").or(object.pointer("/metadata/name")).cloned().unwrap_or(Value::Null);
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0e5f6f2e-9d5c-4f0e-8f52-0a2ac0d6d5d1",
            "kind": {"group": "kudo.dev", "version": "v1beta1", "kind": kind},
            "resource": {"group": "kudo.dev", "version": "v1beta1", "resource": plural},
            "requestKind": {"group": "kudo.dev", "version": "v1beta1", "kind": kind},
            "name": name,
            "namespace": NAMESPACE,
            "operation": operation,
            "userInfo": {"username": ALICE, "groups": ["system:authenticated"]},
            "object": object,
            "oldObject": old,
            "dryRun": false,
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
        }
    })
}

/// A package with every kind of parameter and plan that rules distinguish.
pub fn kafka(name: &str, version: &str) -> Value {
    let plan =
        |name: &str| json!({"phases": [{"name": name, "steps": [{"name": "apply", "tasks": ["apply"]}]}]});
    json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "OperatorVersion",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "operator": {"name": "kafka", "kind": "Operator"},
            "version": version,
            "templates": {"cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"},
            "tasks": [{"name": "apply", "kind": "Apply", "spec": {"resources": ["cm.yaml"]}}],
            "parameters": [
                {"name": "NODES", "value-type": "integer", "default": "3"},
                {"name": "MEMORY", "default": "1Gi"},
                {"name": "PASSWORD", "trigger": "deploy"},
                {"name": "BACKUP_FILE", "trigger": "backup"},
                {"name": "RESTORE_FILE", "trigger": "restore"},
                {"name": "ID", "value-type": "integer", "immutable": true, "default": "7"},
                {"name": "ZONE", "immutable": true},
                {"name": "SIZE", "enum": ["small", "large"]},
                {"name": "CLEAN", "trigger": "cleanup"},
                {"name": "GHOST", "trigger": "ghost"}
            ],
            "plans": {
                "deploy": plan("deploy"), "update": plan("update"), "upgrade": plan("upgrade"),
                "backup": plan("backup"), "restore": plan("restore"), "cleanup": plan("cleanup")
            }
        }
    })
}

/// The package with changes.
pub fn kafka_with(name: &str, version: &str, patch: Value) -> Value {
    let mut object = kafka(name, version);
    json_patch::merge(&mut object, &patch);
    object
}

/// An Instance as a user writes it.
pub fn manifest(parameters: Value) -> Value {
    json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "Instance",
        "metadata": {"name": "prod", "namespace": NAMESPACE},
        "spec": {"operatorVersion": {"name": "kafka-1"}, "parameters": parameters}
    })
}

pub fn applied(spec: &Value) -> Applied<'static> {
    let reference = &spec["operatorVersion"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = reference["namespace"].as_str().unwrap_or(NAMESPACE).to_owned();
    Applied {
        operator_version: VersionRef { name: text(&reference["name"]).into(), namespace: namespace.into() },
        parameters: spec["parameters"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.clone().into(), text(v).into()))
            .collect(),
    }
}

pub fn hash_of(spec: &Value) -> SpecHash {
    applied(spec).hash()
}

/// U(plan, spec) for the Instance `prod` at [`RESOURCE_VERSION`].
pub fn ours(plan: &str, spec: &Value) -> String {
    let subject = ScheduledOn { namespace: NAMESPACE, name: "prod", version: RESOURCE_VERSION };
    plan_uid(subject, plan, &hash_of(spec)).to_string()
}

pub fn stamp_of(spec: &Value) -> Value {
    json!({
        "v": 1,
        "hash": hash_of(spec),
        "spec": applied(spec),
        "uid": "c0ffee",
        "generation": 2
    })
}

/// `deploy` was successful: last-applied annotation, baseline, idle.
pub fn idle(parameters: Value) -> Value {
    let mut object = manifest(parameters);
    let spec = object["spec"].clone();
    let annotations = json!({ meta::LAST_APPLIED_SPEC: stamp_of(&spec).to_string() });
    object["metadata"] = json!({
        "name": "prod", "namespace": NAMESPACE, "uid": "c0ffee", "resourceVersion": RESOURCE_VERSION,
        "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
        "finalizers": [meta::FINALIZER], "annotations": annotations
    });
    object["status"] = json!({
        "planStatus": {
            "deploy": {"name": "deploy", "status": "COMPLETE", "uid": "11111111-2222-4333-8444-555555555555",
                       "lastUpdatedTimestamp": "2026-01-02T03:10:00Z",
                       "phases": [{"name": "deploy", "status": "COMPLETE",
                                   "steps": [{"name": "apply", "status": "COMPLETE"}]}]},
            "update": {"name": "update", "status": "NEVER_RUN"}
        },
        "lastApplied": basis_of(&spec, &[]),
        "observedGeneration": 3,
        "conditions": [ready()]
    });
    object
}

pub fn basis_of(spec: &Value, owed: &[(&str, PendingPlan)]) -> Baseline {
    Baseline::new(&applied(spec), owed.iter().map(|(plan, state)| ((*plan).to_owned(), *state)).collect())
}

fn ready() -> Value {
    json!({"type": "Ready", "status": "True", "reason": "ResourcesReady", "message": "", "observedGeneration": 3,
           "lastTransitionTime": "2026-01-02T03:10:00Z"})
}

pub const RUN: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";

/// `plan` is running.
pub fn running(plan: &str) -> Value {
    let mut object = idle(json!({"NODES": "3", "PASSWORD": "s3cret"}));
    object["spec"]["planExecution"] = json!({"planName": plan, "uid": RUN, "status": "IN_PROGRESS"});
    object["status"]["planStatus"][plan] = json!({
        "name": plan, "status": "IN_PROGRESS", "uid": RUN, "lastUpdatedTimestamp": "2026-01-02T04:00:00Z",
        "phases": [{"name": "zookeeper", "status": "COMPLETE", "steps": [{"name": "zk", "status": "COMPLETE"}]},
                   {"name": "brokers", "status": "IN_PROGRESS", "steps": [{"name": "roll", "status": "IN_PROGRESS"}]}]
    });
    object
}

/// `plan` is scheduled, and has not started.
pub fn scheduled(plan: &str) -> Value {
    let mut object = idle(json!({"NODES": "3", "PASSWORD": "s3cret"}));
    object["spec"]["planExecution"] = json!({"planName": plan, "uid": RUN, "status": "NEVER_RUN"});
    object
}

/// `plan` has ended, and planExecution still names it.
pub fn ended(plan: &str, status: &str) -> Value {
    let mut object = running(plan);
    object["status"]["planStatus"][plan]["status"] = json!(status);
    object
}

/// The object after `kubectl delete`.
pub fn deleted(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-02T05:00:00Z");
    object
}

pub fn key(name: &str) -> NamespacedName {
    NamespacedName::new(NAMESPACE, name)
}
