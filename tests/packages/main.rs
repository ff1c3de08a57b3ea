//! Real packages, read, checked and carried out plan by plan on an API server that says yes; templates, compared
//! with what Go makes of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use go_template::Never;
use interlock_core::api::inventory::ObjectInventory;
use interlock_core::api::object::{Gvk, NamespacedName};
use interlock_core::api::values::Values;
use interlock_core::config_digest::ConfigDigest;
use interlock_core::effect::{Effect, FileRead};
use interlock_core::reconcile::{KindServed, Lookup};
use interlock_kudo::api::ExecutionStatus;
use interlock_kudo::engine::advance::advance;
use interlock_kudo::engine::lookup::{EngineStep, Observed, PlanState};
use interlock_kudo::engine::render_cache::Rendered;
use interlock_kudo::engine::run::{InstanceId, PipeHelper, Run};
use interlock_kudo::engine::{tasks, validate};
use interlock_kudo::package::Package;
use interlock_kudo::package::bundle::{PackageBundle, PackageFiles};
use serde_json::{Value, json};

mod compared;
mod grid;
mod merged_objects;
mod merges;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "a test needs the builds alone")]
mod process;
#[path = "../support/shared.rs"]
mod shared;
mod templates;

fn announce(said: &str) {
    println!("{said}");
}

fn files(dir: &Path, below: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
}

fn package(dir: &Path) -> Package {
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let mut templates = BTreeMap::new();
    files(&dir.join("templates"), "", &mut templates);
    let source = PackageFiles { operator: text("operator.yaml"), params: text("params.yaml"), templates };
    let packaged = PackageBundle::read(&source, tasks::client_problems).unwrap();
    let spec = serde_json::from_value(packaged.operator_version["spec"].clone()).unwrap();
    Package::new(NamespacedName::new("ns", packaged.operator_version_name), spec)
}

fn packages() -> Vec<(String, Package)> {
    let Some(root) = shared::find("packages") else { return Vec::new() };
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path().join("operator")).collect();
    dirs.retain(|dir| dir.is_dir());
    dirs.sort();
    let name = |dir: &Path| dir.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    dirs.iter().map(|dir| (name(dir), package(dir))).collect()
}

fn served(gvk: &Gvk) -> KindServed {
    match gvk.kind.as_str() {
        "ClusterRole" | "ClusterRoleBinding" | "CustomResourceDefinition" | "Namespace" => {
            KindServed::Cluster
        }
        _ => KindServed::Namespaced,
    }
}

/// An object as controllers leave it.
fn healthy(mut object: Value) -> Value {
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
    object["metadata"]["uid"] = "u".into();
    object["metadata"]["resourceVersion"] = "1".into();
    object["metadata"]["generation"] = 1.into();
    match object["kind"].as_str().unwrap() {
        "Service" if object["spec"]["clusterIP"].is_null() => object["spec"]["clusterIP"] = "10.0.0.1".into(),
        "Job" => object["status"] = json!({"succeeded": object["spec"]["completions"].as_i64().unwrap_or(1)}),
        "Deployment" | "StatefulSet" => {
            object["status"] = json!({"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas,
                "availableReplicas": replicas, "readyReplicas": replicas});
        }
        "Pod" => {
            object["status"] =
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        }
        _ => {}
    }
    object
}

/// Carries a plan out as far as it goes; the last step, and how many objects were written.
fn carry_out(package: &Package, plan: &str) -> (EngineStep, usize) {
    let values = Values::new();
    let instance =
        InstanceId { namespace: "ns".to_owned(), name: "inst".to_owned(), uid: "uid-1".to_owned() };
    let rendered = Rendered::default();
    let run = Run {
        package,
        instance: &instance,
        plan,
        uid: "run-1",
        values: &values,
        transient: &[],
        helper: PipeHelper::kudo(),
        seed: None,
        rendered: &rendered,
        interrupt: &Never,
    };
    let mut observed = Observed::default();
    let mut state = PlanState::start(package, plan, "run-1");
    let mut written = 0;
    loop {
        let step = advance(&run, state, &observed);
        if step.needs.is_empty() && step.effects.is_empty() {
            return (step, written);
        }
        state = step.state;
        let (facts, needs) = (&mut observed.facts, step.needs);
        facts.kinds.extend(needs.kinds.into_iter().map(|gvk| (gvk.clone(), served(&gvk))));
        let keys = needs.objects.into_iter().chain(needs.certainly);
        facts.objects.extend(keys.map(|key| (key, Lookup::Absent)));
        facts.digests.extend(needs.digests.into_iter().map(|key| (key, Ok(ConfigDigest::default()))));
        facts.pod_failures.extend(needs.pod_failures.into_iter().map(|key| (key, Ok(None))));
        if needs.inventory {
            facts.inventory = Some(ObjectInventory::default());
        }
        let content: Arc<[u8]> = Arc::from(b"A=1\n".as_slice());
        facts.files.extend(needs.files.into_iter().map(|file| (file, FileRead::Content(content.clone()))));
        for write in step.effects.into_iter().flatten() {
            written += 1;
            let key = write.key().unwrap();
            let seen = match write {
                Effect::Create { object } => Lookup::Found(Arc::new(healthy(object))),
                Effect::Patch { patch, .. } => {
                    let Some(Lookup::Found(current)) = observed.facts.objects.get(&key) else {
                        panic!("{key} is not there")
                    };
                    let mut object = Value::clone(current);
                    json_patch::merge(&mut object, &patch);
                    Lookup::Found(Arc::new(healthy(object)))
                }
                Effect::Delete { .. } => Lookup::Absent,
                Effect::Apply { .. }
                | Effect::Status { .. }
                | Effect::Event { .. }
                | Effect::Healed { .. } => {
                    panic!("the engine wants none of these")
                }
            };
            observed.facts.objects.insert(key, seen);
        }
    }
}

#[test]
fn nothing_is_wrong_with_real_packages() {
    for (name, package) in packages() {
        assert_eq!(validate::findings(&package.spec), validate::Findings::default(), "{name}");
    }
}

/// Every plan of every package completes with the defaults, but for a Dummy task of zookeeper that is never done.
#[test]
fn plans_of_real_packages_complete() {
    for (name, package) in packages() {
        for plan in package.plan_names() {
            let (step, written) = carry_out(&package, plan);
            println!("{name} {plan}: {} after {written} writes", step.state.status.status);
            let fatal =
                step.fatal.map(|fatal| format!("{}: {}", fatal.reason, fatal.message)).unwrap_or_default();
            let expected = match (name.as_str(), plan) {
                ("zookeeper", "not-allowed") => ExecutionStatus::InProgress,
                _ => ExecutionStatus::Complete,
            };
            assert_eq!(step.state.status.status, expected, "{name} {plan}: {fatal} {:?}", step.waiting);
            assert_eq!(fatal, "");
        }
    }
}
