//! The review that is measured: an update that changes one parameter of an Instance, which
//! schedules a plan and writes a new stamp.
//!
//! Names are those that the controller-runtime peer knows, so that it patches too.

use std::collections::BTreeMap;

use interlock_core::api::meta;
use interlock_core::api::stamp::{Applied, Envelope, KeptSpec, VersionRef};
use interlock_core::api::values::Values;
use interlock_core::kinds::static_lister::StaticLister;
use interlock_kudo::instance::change::baseline::Baseline;
use serde_json::{Value, json};

const NAMESPACE: &str = "team";
const VERSION: &str = "kafka-1.0.0";

/// The review, and the one OperatorVersion that it takes.
pub struct Update {
    pub body: Vec<u8>,
    pub view: StaticLister,
}

/// A review of about so many bytes.
pub fn update(bytes: usize) -> Update {
    let size = |parameters: usize| body(parameters).len();
    let parameters = (1..).find(|&n| size(n + 1) > bytes).expect("sizes grow");
    let mut view = StaticLister::of(interlock::kinds::all());
    view.add(&operator_version(parameters), NAMESPACE).expect("an OperatorVersion");
    Update { body: body(parameters), view }
}

fn body(parameters: usize) -> Vec<u8> {
    let (old, new) = (instance(parameters), changed(parameters));
    let kind = json!({"group": "kudo.dev", "version": "v1beta1", "kind": "Instance"});
    let resource = json!({"group": "kudo.dev", "version": "v1beta1", "resource": "instances"});
    let review = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0e5f6f2e-9d5c-4f0e-8f52-0a2ac0d6d5d1",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": "prod",
            "namespace": NAMESPACE,
            "operation": "UPDATE",
            "userInfo": {"username": "alice", "groups": ["team", "system:authenticated"]},
            "object": new,
            "oldObject": old,
            "dryRun": false,
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl-edit"}
        }
    });
    serde_json::to_vec(&review).expect("JSON")
}

fn name(index: usize) -> String {
    format!("PARAM_{index:04}")
}

fn value(index: usize) -> String {
    format!("value-{index:04}-of-a-usual-length")
}

/// The first parameter has changed.
fn changed(parameters: usize) -> Value {
    let mut instance = instance(parameters);
    instance["spec"]["parameters"][name(0)] = json!("another value");
    instance["metadata"]["generation"] = json!(4);
    instance
}

/// `deploy` has completed; stamped, with its basis, idle.
fn instance(parameters: usize) -> Value {
    let values: Values<'_> = (0..parameters).map(|i| (name(i).into(), value(i).into())).collect();
    let applied = Applied {
        operator_version: VersionRef { name: VERSION.into(), namespace: NAMESPACE.into() },
        parameters: values,
    };
    let stamp = Envelope {
        hash: applied.hash(),
        kept: KeptSpec::Inline { spec: applied.clone() },
        previous: None,
        uid: Some("c0ffee00-2222-4333-8444-555555555555".into()),
        generation: Some(2),
    };
    let basis = Baseline::new(&applied, BTreeMap::new());
    let time = "2026-01-02T03:10:00Z";
    let phase = |name: &str| {
        let step = json!({"name": "apply", "status": "COMPLETE"});
        json!({"name": name, "status": "COMPLETE", "steps": [step]})
    };
    json!({
        "apiVersion": meta::KUDO_API_VERSION,
        "kind": "Instance",
        "metadata": {
            "name": "prod", "namespace": NAMESPACE, "uid": "c0ffee00-2222-4333-8444-555555555555",
            "resourceVersion": "41", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"kudo.dev/operator": "kafka"},
            "finalizers": [meta::FINALIZER],
            "annotations": {meta::LAST_APPLIED_SPEC: stamp.to_json()}
        },
        "spec": {"operatorVersion": {"name": VERSION}, "parameters": applied.parameters},
        "status": {
            "planStatus": {
                "deploy": {
                    "name": "deploy", "status": "COMPLETE", "uid": "11111111-2222-4333-8444-555555555555",
                    "lastUpdatedTimestamp": time,
                    "phases": [phase("zookeeper"), phase("brokers"), phase("topics")]
                },
                "cleanup": {"name": "cleanup", "status": "NEVER_RUN"}
            },
            "lastApplied": basis,
            "conditions": [{"type": "Ready", "status": "True", "reason": "ResourcesReady",
                            "message": "", "lastTransitionTime": time}]
        }
    })
}

fn operator_version(parameters: usize) -> Value {
    let plan = json!({"phases": [{"name": "all", "steps": [{"name": "apply", "tasks": ["apply"]}]}]});
    let declared: Vec<_> = (0..parameters)
        .map(|i| match i {
            0 => json!({"name": name(i), "trigger": "deploy"}),
            _ => json!({"name": name(i), "default": "a default"}),
        })
        .collect();
    json!({
        "apiVersion": meta::KUDO_API_VERSION,
        "kind": "OperatorVersion",
        "metadata": {"name": VERSION, "namespace": NAMESPACE},
        "spec": {
            "operator": {"name": "kafka", "kind": "Operator"},
            "version": "1.0.0",
            "templates": {"cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"},
            "tasks": [{"name": "apply", "kind": "Apply", "spec": {"resources": ["cm.yaml"]}}],
            "parameters": declared,
            "plans": {"deploy": plan, "cleanup": plan}
        }
    })
}
