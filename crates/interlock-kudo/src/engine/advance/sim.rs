//! A small API server and a small controller, for tests of the engine: writes are conditional,
//! workloads become healthy in their own time, and the process can be killed at every write.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use go_template::Never;
use interlock_core::api::interlock::Adoption;
use interlock_core::api::inventory::ObjectInventory;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, meta_str};
use interlock_core::api::values::Values;
use interlock_core::config_digest::{ConfigDigest, ConfigKind};
use interlock_core::effect::{ApiFailure, Effect, FileRead, PodFile};
use interlock_core::reconcile::{Facts, KindServed, Lookup, Needs};
use serde_json::{Value, json};

use super::advance;
use crate::api::{HeldObject, OperatorVersionSpec};
use crate::engine::lookup::{EngineStep, Observed, PlanState};
use crate::engine::render_cache::Rendered;
use crate::engine::run::{InstanceId, Run};
use crate::package::Package;
use crate::package::time_limits::RunLimits;

/// A package with an Instance and values.
pub struct Fixture {
    pub package: Package,
    pub instance: InstanceId,
    pub values: Values<'static>,
    pub rendered: Rendered,
}

impl Fixture {
    pub fn new(spec: Value) -> Self {
        let spec: OperatorVersionSpec = serde_json::from_value(spec).unwrap();
        Self {
            package: Package::new(NamespacedName::new("ns", "ov"), spec),
            instance: InstanceId {
                namespace: "ns".to_owned(),
                name: "inst".to_owned(),
                uid: "uid-1".to_owned(),
            },
            values: Values::new(),
            rendered: Rendered::default(),
        }
    }

    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.values.extend([(name.into(), value.into())]);
        self
    }

    pub fn run(&self) -> Run<'_> {
        Run {
            package: &self.package,
            instance: &self.instance,
            plan: "deploy",
            uid: "run-1",
            values: &self.values,
            transient: crate::transient_rules(),
            helper: crate::engine::run::PipeHelper::kudo(),
            seed: None,
            rendered: &self.rendered,
            interrupt: &Never,
        }
    }

    pub fn start(&self) -> PlanState {
        PlanState::start(&self.package, "deploy", "run-1")
    }
}

/// The text of a template with one object.
pub fn manifest(api_version: &str, kind: &str, name: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n")
}

pub fn failure(code: u16, message: &str) -> ApiFailure {
    ApiFailure { code, reason: String::new(), message: message.to_owned(), namespace_terminating: false }
}

/// Effect of a write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Did {
    Create(ObjectKey),
    Patch(ObjectKey),
    Delete(ObjectKey),
}

#[derive(Default)]
pub struct Server {
    pub objects: BTreeMap<ObjectKey, Value>,
    pub ledger: Vec<Did>,
    /// Answers to the next writes; `None` lets one through.
    pub faults: VecDeque<Option<ApiFailure>>,
    /// What controllers report of pods of workloads.
    pub reports: BTreeMap<ObjectKey, String>,
    /// How the API server serves unusual kinds.
    pub served: BTreeMap<&'static str, KindServed>,
    pub version: u64,
    /// An object that another client makes just before the next write.
    pub rival: Option<Value>,
    /// Files of Pods, by path.
    pub files: BTreeMap<&'static str, FileRead>,
}

impl Server {
    pub fn kind(&self, gvk: &Gvk) -> KindServed {
        match gvk.kind.as_str() {
            kind if self.served.contains_key(kind) => self.served[kind],
            "ClusterRole" | "Namespace" | "PersistentVolume" | "CustomResourceDefinition" => {
                KindServed::Cluster
            }
            _ => KindServed::Namespaced,
        }
    }

    pub fn look(&self, key: &ObjectKey) -> Lookup {
        self.objects.get(key).map_or(Lookup::Absent, |object| Lookup::Found(Arc::new(object.clone())))
    }

    /// Names of the Instances that the Instance of a run owns.
    fn children_of(&self, run: &Run<'_>) -> BTreeSet<String> {
        let owned = |object: &&Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|owner| owner["uid"] == run.instance.uid.as_str())
        };
        let instances = self.objects.values().filter(|object| object["kind"] == "Instance").filter(owned);
        instances.filter_map(|object| meta_str(object, "name")).map(str::to_owned).collect()
    }

    pub fn file(&self, file: &PodFile) -> FileRead {
        let pod = self.objects.get(&file.pod).and_then(|pod| meta_str(pod, "uid"));
        assert_eq!(pod, Some(file.uid.as_str()), "a file of the Pod that is there");
        self.files.get(file.path.as_str()).cloned().unwrap_or_else(|| FileRead::Ended {
            code: 1,
            said: format!("cat: can't open '{}': No such file or directory", file.path),
        })
    }

    fn stamp(&mut self, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object
    }

    /// Stores an object as another client would.
    pub fn put(&mut self, mut object: Value) {
        let key = ObjectKey::of(&object).unwrap();
        object["metadata"]["uid"] = format!("u-{}", self.version + 1).into();
        let object = self.stamp(object);
        self.objects.insert(key, object);
    }

    pub fn write(&mut self, write: Effect) -> Result<Lookup, ApiFailure> {
        if let Some(Some(fault)) = self.faults.pop_front() {
            return Err(fault);
        }
        if let Some(rival) = self.rival.take() {
            self.put(rival);
        }
        match write {
            Effect::Create { object } => {
                let key = ObjectKey::of(&object).unwrap();
                if self.objects.contains_key(&key) {
                    return Err(ApiFailure {
                        reason: "AlreadyExists".to_owned(),
                        ..failure(409, "already exists")
                    });
                }
                self.put(object);
                self.ledger.push(Did::Create(key.clone()));
                Ok(self.look(&key))
            }
            Effect::Patch { key, resource_version, patch } => {
                let mut object = self.current(&key, &resource_version)?;
                let before = object.clone();
                json_patch::merge(&mut object, &patch);
                if object != before {
                    let object = self.stamp(object);
                    self.objects.insert(key.clone(), object);
                }
                self.ledger.push(Did::Patch(key.clone()));
                Ok(self.look(&key))
            }
            Effect::Apply { .. } | Effect::Status { .. } | Effect::Event { .. } | Effect::Healed { .. } => {
                panic!("the engine wants none of these")
            }
            Effect::Delete { key, uid, resource_version, .. } => {
                let mut object = self.current(&key, &resource_version)?;
                assert_eq!(meta_str(&object, "uid"), Some(uid.as_str()));
                self.ledger.push(Did::Delete(key.clone()));
                if ["ConfigMap", "ClusterRole"].contains(&key.gvk.kind.as_str()) {
                    self.objects.remove(&key);
                } else {
                    object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                    let object = self.stamp(object);
                    self.objects.insert(key.clone(), object);
                }
                Ok(self.look(&key))
            }
        }
    }

    fn current(&self, key: &ObjectKey, version: &str) -> Result<Value, ApiFailure> {
        let object = self.objects.get(key).ok_or_else(|| failure(404, "not found"))?;
        if meta_str(object, "resourceVersion") == Some(version) {
            Ok(object.clone())
        } else {
            Err(failure(409, "the object has been modified"))
        }
    }

    /// Time passes: objects that are being deleted disappear, Jobs complete, Pods run.
    pub fn tick(&mut self) {
        self.objects.retain(|_, object| meta_str(object, "deletionTimestamp").is_none());
        let status = |object: &Value| match object["kind"].as_str() {
            _ if !object["status"].is_null() => None,
            Some("Job") => Some(json!({"succeeded": 1})),
            Some("Pod") => {
                Some(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}))
            }
            _ => None,
        };
        let pending: Vec<(Value, Value)> =
            self.objects.values().filter_map(|object| Some((object.clone(), status(object)?))).collect();
        for (mut object, status) in pending {
            object["status"] = status;
            let key = ObjectKey::of(&object).unwrap();
            let object = self.stamp(object);
            self.objects.insert(key, object);
        }
    }
}

/// The process was killed.
#[derive(Debug)]
pub struct Killed;

/// A controller that saves the state of a run for the process after a restart.
pub struct Process<'a> {
    pub run: Run<'a>,
    /// The saved status and finished tasks.
    pub saved: PlanState,
    /// Writes until the process is killed; the last of them takes effect.
    pub lives: usize,
    /// Current time and time limits.
    pub limits: RunLimits,
    /// Whether tasks write objects that no Instance made.
    pub adoption: Adoption,
    /// The inventory that is saved.
    pub inventory: ObjectInventory,
    pub adopts: BTreeSet<HeldObject>,
    /// Called with each step, before its writes.
    pub watch: fn(&Run<'_>, &EngineStep),
}

impl<'a> Process<'a> {
    pub fn new(run: Run<'a>, saved: PlanState) -> Self {
        let (limits, adoption) = (RunLimits::default(), Adoption::default());
        let (inventory, adopts) = (ObjectInventory::default(), BTreeSet::new());
        Self { run, saved, lives: usize::MAX, limits, adoption, inventory, adopts, watch: |_, _| {} }
    }

    fn spend(&mut self) -> Result<(), Killed> {
        self.lives -= 1;
        if self.lives == 0 { Err(Killed) } else { Ok(()) }
    }

    fn save(&mut self, state: &mut PlanState) -> Result<(), Killed> {
        state.unsaved.clear();
        if *state != self.saved {
            self.saved = state.clone();
            self.spend()?;
        }
        Ok(())
    }

    pub fn look_up(&self, needs: &Needs, server: &Server, facts: &mut Facts) {
        facts.kinds.extend(needs.kinds.iter().map(|gvk| (gvk.clone(), server.kind(gvk))));
        for key in needs.objects.iter().chain(&needs.certainly) {
            facts.failures.remove(key);
            facts.objects.insert(key.clone(), server.look(key));
        }
        for key in &needs.digests {
            let kind = ConfigKind::of(&key.gvk).unwrap();
            let digest = server.objects.get(key).map(|o| ConfigDigest::of_live(kind, o));
            facts.digests.insert(key.clone(), Ok(digest.unwrap_or_default()));
        }
        let reports =
            needs.pod_failures.iter().map(|key| (key.clone(), Ok(server.reports.get(key).cloned())));
        facts.pod_failures.extend(reports);
        facts.files.extend(needs.files.iter().map(|file| (file.clone(), server.file(file))));
        if needs.inventory {
            facts.inventory = Some(self.inventory.clone());
        }
    }

    /// One pass: calls the engine until it needs nothing more.
    pub fn pass(&mut self, server: &mut Server) -> Result<EngineStep, Killed> {
        let (limits, adoption) = (self.limits.clone(), self.adoption);
        let (adopts, children) = (self.adopts.clone(), server.children_of(&self.run));
        let mut observed = Observed { limits, adoption, adopts, children, ..Observed::default() };
        let rendered = Rendered::default();
        let run = Run { rendered: &rendered, ..self.run };
        let mut state = self.saved.clone();
        let mut made: Vec<Effect> = Vec::new();
        for _ in 0..100 {
            let step = advance(&run, state, &observed);
            (self.watch)(&run, &step);
            state = step.state.clone();
            if let Some(inventory) = step.inventory.clone() {
                self.inventory = inventory.clone();
                observed.facts.inventory = Some(inventory);
                self.spend()?;
            }
            if !step.needs.is_empty() {
                self.look_up(&step.needs, server, &mut observed.facts);
            } else if step.effects.is_empty() {
                self.save(&mut state)?;
                return Ok(step);
            }
            if step.save_first && !step.effects.is_empty() {
                self.save(&mut state)?;
            }
            for lane in step.effects {
                for write in lane {
                    let key = write.key().unwrap();
                    assert!(!made.contains(&write), "the same write twice on what it made itself: {write:?}");
                    let answer = server.write(write.clone());
                    if answer.is_ok() {
                        // A later write to the object permits an earlier one again.
                        made.retain(|earlier| earlier.key() != write.key());
                        made.push(write);
                        self.spend()?;
                    }
                    match answer {
                        Ok(seen) => drop(observed.facts.objects.insert(key, seen)),
                        Err(failure) => {
                            observed.facts.failures.insert(key, failure);
                            break;
                        }
                    }
                }
            }
        }
        panic!("the pass does not end");
    }

    /// Runs passes until the run is over or nothing changes any more.
    pub fn finish(&mut self, server: &mut Server) -> Result<EngineStep, Killed> {
        for _ in 0..60 {
            let step = self.pass(server)?;
            if step.state.status.status.is_terminal() {
                return Ok(step);
            }
            server.tick();
        }
        panic!("the run does not end: {:#?}", self.saved);
    }
}
