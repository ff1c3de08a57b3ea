//! A small cluster: objects with versions, the controllers of Kubernetes as far as a rollout sees them, and the
//! reconciler run on it with a crash after any write.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, ObjectKey, annotation, meta_str};
use interlock_core::certificate;
use interlock_core::certificate::{
    CertificateAnswer, CertificateRequest, CertificateStep, FoundCertificate, ServedCertificate,
};
use interlock_core::effect::{ApiFailure, Effect};
use interlock_core::reconcile::{
    Facts, Lookup, Needs, PodRequest, PodResponse, ReconcileStep, RefusedWrite, View,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::faults::Fault;
use crate::api;
use crate::api::labels;
use crate::data_plane::rollout::reconcile::RECONCILER;

/// Steps of one reconcile, as the runtime has them.
const STEPS: usize = 40;

/// A stored object, shared by the worlds that have it until one changes it.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedObject(pub Arc<Value>);

impl Deref for SharedObject {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl DerefMut for SharedObject {
    fn deref_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Value> for SharedObject {
    fn from(object: Value) -> Self {
        Self(Arc::new(object))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct World {
    pub objects: BTreeMap<ObjectKey, SharedObject>,
    /// What the watches still show of objects that others have written, deleted or made since.
    pub unseen: BTreeMap<ObjectKey, Option<SharedObject>>,
    version: u64,
    pub now: Timestamp,
    /// What becomes of the certificate that is asked for.
    pub certificate: CertificateAnswer,
    /// Whether a CA signs it instead, into a Secret that is an object of this cluster.
    pub has_authority: bool,
    /// Since when a pod of the live Deployment has a node and waits for a volume.
    pub mounts_since: Option<Timestamp>,
    /// The router flavor that pods report.
    pub flavor: &'static str,
    /// Whether ConfigMaps and Secrets may not be read.
    pub withholds: bool,
    /// The routes that the pods of the live side and of the preview hold.
    pub routes: [&'static [&'static str]; 2],
    /// The rule that the controller goes without.
    pub fault: Option<Fault>,
    /// What the controller did, as lines.
    pub log: Vec<String>,
    /// Objects of which a write of this reconcile has met another version.
    met: BTreeSet<ObjectKey>,
    /// Of these kinds the API server refuses every write, with this text.
    pub refuses: Option<(&'static str, &'static str)>,
    /// What it has refused, until it is tried again.
    refused: BTreeMap<ObjectKey, RefusedWrite>,
}

/// How a pass of the controller ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassEnd {
    /// It waits for an event, or for a time.
    Waits,
    Killed,
}

pub fn template(image: &str) -> Value {
    json!({"spec": {"containers": [{"name": "proxy", "image": image}]}})
}

pub fn spec(image: &str) -> Value {
    json!({
        "deployment": {
            "podTemplateSpec": template(image),
            "rollout": {"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}},
        },
        "network": {"services": {"ingress": {"type": "ClusterIP"}}},
    })
}

pub fn data_plane() -> ObjectKey {
    ObjectKey {
        gvk: Gvk::new(api::API_VERSION, "DataPlane"),
        namespace: Some("kong".to_owned()),
        name: "edge".to_owned(),
    }
}

impl World {
    pub fn with(spec: Value) -> Self {
        let mut world = Self {
            objects: BTreeMap::new(),
            unseen: BTreeMap::new(),
            version: 1,
            now: Timestamp::UNIX_EPOCH,
            certificate: CertificateAnswer::OfAnother(Timestamp::MAX),
            has_authority: false,
            mounts_since: None,
            flavor: "traditional_compatible",
            withholds: false,
            routes: [&[], &[]],
            fault: None,
            log: Vec::new(),
            met: BTreeSet::new(),
            refuses: None,
            refused: BTreeMap::new(),
        };
        let key = data_plane();
        let object = json!({
            "apiVersion": api::API_VERSION, "kind": "DataPlane",
            "metadata": {"namespace": "kong", "name": "edge", "uid": "u-1", "generation": 1},
            "spec": spec,
        });
        world.store(&key, object);
        world
    }

    pub fn store(&mut self, key: &ObjectKey, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(key.clone(), object.into());
    }

    pub fn get(&self) -> &Value {
        &self.objects[&data_plane()]
    }

    /// What a user writes, as admission lets it through: the last-applied annotation stays.
    pub fn edit(&mut self, spec: Value) {
        let mut object = self.get().clone();
        if object["spec"] == spec {
            return;
        }
        object["spec"] = spec;
        bump(&mut object);
        self.store(&data_plane(), object);
    }

    /// The ConfigMap `router`, with this key `flavor`; `None` = there is none.
    pub fn give_flavor(&mut self, flavor: Option<&str>) {
        let key = ObjectKey {
            gvk: Gvk::new("v1", "ConfigMap"),
            namespace: Some("kong".to_owned()),
            name: "router".to_owned(),
        };
        let metadata = json!({"namespace": "kong", "name": "router"});
        match flavor {
            None => _ = self.objects.remove(&key),
            Some(flavor) => self.store(
                &key,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"flavor": flavor, "FLAVOR": flavor}}),
            ),
        }
    }

    pub fn annotate(&mut self, name: &str, value: &str) {
        let mut object = self.get().clone();
        object["metadata"]["annotations"][name] = json!(value);
        self.store(&data_plane(), object);
    }

    pub fn rolled_out(&self) -> &str {
        self.get().pointer("/status/rollout/conditions/0/reason").and_then(Value::as_str).unwrap_or_default()
    }

    pub fn stamp(&self) -> Value {
        let text = annotation(self.get(), meta::LAST_APPLIED_SPEC).unwrap_or("null");
        serde_json::from_str(text).unwrap()
    }

    pub fn child(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects
            .iter()
            .find(|(key, _)| key.gvk.kind == kind && key.name == name)
            .map(|(_, object)| &**object)
    }

    pub fn delete(&mut self, kind: &str, name: &str) {
        self.objects.retain(|key, _| key.gvk.kind != kind || key.name != name);
    }

    /// What `kubectl delete --cascade=foreground` does: the object stays until its pods are gone.
    pub fn terminate(&mut self, kind: &str, name: &str) {
        let deletion = json!({"metadata": {"deletionTimestamp": self.now.to_string()}});
        self.change(kind, name, |object| {
            json_patch::merge(object, &deletion);
            bump(object);
            // The Deployment controller goes on to report its status.
            object["status"]["observedGeneration"] = object["metadata"]["generation"].clone();
        });
    }

    /// What a person writes into a child, as `kubectl edit` does.
    pub fn edit_by_hand(&mut self, kind: &str, name: &str, patch: &Value) {
        self.change(kind, name, |object| {
            json_patch::merge(object, patch);
            bump(object);
        });
    }

    fn change(&mut self, kind: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let found = self.objects.iter().find(|(key, _)| key.gvk.kind == kind && key.name == name);
        let (key, mut object) = found.map(|(key, found)| (key.clone(), Value::clone(found))).unwrap();
        change(&mut object);
        self.store(&key, object);
    }

    /// What Kong answers, with the flavor that its pods run with.
    fn answer(&self, request: &PodRequest) -> PodResponse {
        let body = match request.tls {
            Some(_) if request.all_pages => {
                let side =
                    if request.tls.as_ref().is_some_and(|name| name.contains("-preview.")) { 1 } else { 0 };
                json!(self.routes[side]).to_string()
            }
            Some(_) => {
                json!({"version": "3.9.1", "configuration": {"router_flavor": self.flavor}}).to_string()
            }
            None => String::new(),
        };
        PodResponse { status: 200, server: None, body: Arc::from(body.as_bytes()) }
    }

    /// What the controller wants written now; `None` where it waits.
    pub fn decide(&self) -> Option<Vec<Effect>> {
        self.step().0.map(|(effects, _)| effects)
    }

    /// The same, with the passes that it took; the certificate, which the runtime asks for once, is none.
    pub fn steps(&self) -> (Option<Vec<Effect>>, usize) {
        let (step, passes) = self.step();
        (step.map(|(effects, _)| effects), passes)
    }

    /// The same, with whether each effect rests on those before it.
    fn step(&self) -> (Option<(Vec<Effect>, bool)>, usize) {
        let mut passes = 0;
        let mut facts = Facts { refused: self.refused.clone(), ..Facts::default() };
        let conflict = ApiFailure { code: 409, ..ApiFailure::default() };
        facts.failures.extend(self.met.iter().map(|key| (key.clone(), conflict.clone())));
        let Some(object) = self.view_of(&data_plane()) else { return (None, 0) };
        let object = self.fault.map_or_else(|| Value::clone(object), |fault| fault.read(object));
        loop {
            passes += 1;
            let needs = match (RECONCILER.reconcile)(&View::new(&object, &facts, self.now)) {
                Ok(ReconcileStep::Await(_)) => return (None, passes),
                Ok(ReconcileStep::Write(effects)) => {
                    return (self.written(effects).map(|effects| (effects, false)), passes);
                }
                Ok(ReconcileStep::InOrder(effects)) => {
                    return (self.written(effects).map(|effects| (effects, true)), passes);
                }
                Err(needs) => needs,
            };
            if let Some(request) = &needs.certificate {
                passes -= 1;
                let name = request.secret["metadata"]["name"].as_str().unwrap();
                let mounted = name == "dataplane-edge-certificate" || request.keeps_found;
                assert!(mounted && facts.certificate.is_none(), "{request:?}");
                match self.certify(request) {
                    Ok(answer) => facts.certificate = Some(answer),
                    Err(write) => {
                        return (self.written(vec![*write]).map(|effects| (effects, false)), passes);
                    }
                }
            }
            self.get_needs(needs, &mut facts);
        }
    }

    /// An object as the watch shows it.
    pub fn view_of(&self, key: &ObjectKey) -> Option<&SharedObject> {
        match self.unseen.get(key) {
            Some(earlier) => earlier.as_ref(),
            None => self.objects.get(key),
        }
    }

    /// Gets what a pass lacks.
    fn get_needs(&self, needs: Needs, facts: &mut Facts) {
        let found = |key: &ObjectKey| match (self.view_of(key), self.fault) {
            (None, _) => Lookup::Absent,
            (Some(stored), Some(fault)) => Lookup::Found(fault.found(&stored.0)),
            (Some(stored), None) => Lookup::Found(Arc::clone(&stored.0)),
        };
        for key in needs.objects {
            let found = found(&key);
            facts.failures.remove(&key);
            facts.objects.insert(key, found);
        }
        for key in needs.if_allowed {
            let found = if self.withholds { Lookup::Forbidden } else { found(&key) };
            facts.objects.insert(key, found);
        }
        for list in needs.lists {
            let objects = self.list(&list);
            facts.lists.insert(list, objects);
        }
        for request in needs.answers {
            let answer = self.answer(&request);
            facts.answers.insert(request, Ok(answer));
        }
    }

    /// What is written of what was decided, if anything.
    fn written(&self, effects: Vec<Effect>) -> Option<Vec<Effect>> {
        let effects = match self.fault {
            Some(fault) => fault.written(self, effects),
            None => effects,
        };
        Some(effects).filter(|effects| !effects.is_empty())
    }

    /// What the runtime does about a certificate: its answer, or `Err` with what it writes first.
    fn certify(&self, request: &CertificateRequest) -> Result<CertificateAnswer, Box<Effect>> {
        if !self.has_authority {
            return Ok(self.certificate.clone());
        }
        let key = ObjectKey::of(&request.secret).expect("a name");
        let served = ServedCertificate {
            issued: Timestamp::UNIX_EPOCH,
            expires: Timestamp::MAX,
            names: request.names.clone(),
            has_authorities: true,
        };
        let object = self.objects.get(&key);
        let found = object.map(|object| FoundCertificate { object, certificate: Some(&served) });
        match certificate::next(request, found, self.now) {
            CertificateStep::Answer(answer) => Ok(answer),
            CertificateStep::Renew | CertificateStep::Restore => {
                Err(Box::new(Effect::Create { object: request.secret.clone() }))
            }
        }
    }

    /// Runs the controller until it waits, or until it was killed after so many writes.
    pub fn reconcile(&mut self, mut writes: usize) -> PassEnd {
        self.met.clear();
        for _ in 0..STEPS {
            let Some((effects, in_order)) = self.step().0 else { return PassEnd::Waits };
            let mut is_tried = false;
            for effect in effects {
                match self.refuses(&effect) {
                    Some(tried) => {
                        is_tried |= tried;
                        if in_order {
                            break;
                        }
                        continue;
                    }
                    None => is_tried = true,
                }
                if writes == 0 {
                    return PassEnd::Killed;
                }
                // A proof changes nothing.
                let is_proof = matches!(&effect, Effect::Patch { patch, .. } if *patch == json!({}));
                if !is_proof && !matches!(effect, Effect::Event { .. } | Effect::Healed { .. }) {
                    writes -= 1;
                }
                if !self.write(effect) {
                    break;
                }
            }
            // The runtime decides again when a write is tried again.
            if !is_tried {
                return PassEnd::Waits;
            }
        }
        let wanted = self.decide();
        panic!("the controller does not come to an end:\n{}\n{wanted:#?}", self.log.join("\n"));
    }

    /// Whether the API server was asked about a write that it refuses; `None` for one that it takes.
    fn refuses(&mut self, effect: &Effect) -> Option<bool> {
        let (kind, message) = self.refuses?;
        let key = effect.key().filter(|key| key.gvk.kind == kind)?;
        let is_known =
            |refused: &RefusedWrite| refused.effect.is_same_write(effect) && refused.retry > self.now;
        let is_tried = !self.refused.get(&key).is_some_and(is_known);
        let failure = ApiFailure { code: 403, message: message.to_owned(), ..ApiFailure::default() };
        let retry = self.now + SignedDuration::from_mins(1);
        let refused = RefusedWrite { effect: effect.clone(), failure, since: self.now, retry };
        self.refused.insert(key, refused);
        Some(is_tried)
    }

    /// The API server takes everything again.
    pub fn take_all(&mut self) {
        self.refuses = None;
        self.refused.clear();
    }

    /// Carries out what was decided some time ago, as a leader does that was suspended meanwhile.
    pub fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if !self.write(effect) {
                return;
            }
        }
    }

    /// Whether the conditions of an effect hold now.
    pub fn holds(&self, effect: &Effect) -> bool {
        if self.fault == Some(Fault::UnconditionalWrites) {
            return match effect {
                Effect::Patch { key, .. } | Effect::Status { key, .. } => self.objects.contains_key(key),
                _ => true,
            };
        }
        let version =
            |key: &ObjectKey| self.objects.get(key).and_then(|found| meta_str(found, "resourceVersion"));
        match effect {
            Effect::Event { .. } | Effect::Healed { .. } => true,
            Effect::Apply { object, .. } => {
                version(&ObjectKey::of(object).expect("a name")) == meta_str(object, "resourceVersion")
            }
            Effect::Patch { key, resource_version, .. }
            | Effect::Status { key, resource_version, .. }
            | Effect::Delete { key, resource_version, .. } => version(key) == Some(resource_version),
            Effect::Create { object } => version(&ObjectKey::of(object).expect("a name")).is_none(),
        }
    }

    /// Carries out an effect; whether its conditions held.
    fn write(&mut self, effect: Effect) -> bool {
        // The view has the answer to an own write, and after a conflict what a request reads.
        if let Some(key) = effect.key().filter(|_| !matches!(effect, Effect::Event { .. })) {
            self.unseen.remove(&key);
        }
        if !self.holds(&effect) {
            self.met.extend(effect.key());
            return false;
        }
        match effect {
            Effect::Event { note, .. } => self.log.push(format!("event {}: {}", note.reason, note.message)),
            Effect::Healed { kind, cause } => self.log.push(format!("healed {kind}, {}", cause.as_str())),
            Effect::Apply { object, .. } => self.apply(object),
            Effect::Patch { key, patch, .. } => self.merge(&key, &patch, "patch"),
            Effect::Status { key, status, .. } => {
                self.merge(&key, &json!({ "status": status }), "status");
            }
            Effect::Delete { key, .. } => {
                self.log.push(format!("delete {} {}", key.gvk.kind, key.name));
                self.objects.remove(&key);
            }
            Effect::Create { mut object } => {
                let key = ObjectKey::of(&object).expect("a name");
                let is_created = ["ControllerRevision", "Secret"].contains(&key.gvk.kind.as_str());
                assert!(is_created, "children are applied");
                self.log.push(format!("create {} {}", key.gvk.kind, key.name));
                object["metadata"]["uid"] = json!(format!("uid-of-{}", key.name));
                self.store(&key, object);
            }
        }
        true
    }

    fn merge(&mut self, key: &ObjectKey, patch: &Value, what: &str) {
        let mut object = Value::clone(&self.objects[key]);
        json_patch::merge(&mut object, patch);
        self.log.push(format!("{what} {} {}", key.gvk.kind, key.name));
        // The API server gives an object that a patch leaves as it is no new version.
        if object != *self.objects[key] {
            self.store(key, object);
        }
    }

    fn apply(&mut self, mut body: Value) {
        let key = ObjectKey::of(&body).expect("a name");
        let found = self.objects.get(&key).cloned();
        let mut managers = vec![json!({"manager": meta::APPLY_MANAGER, "operation": "Apply"})];
        if let Some(found) = &found {
            let listed = found["metadata"]["managedFields"].as_array().into_iter().flatten();
            managers.extend(listed.filter(|entry| entry["manager"] != meta::APPLY_MANAGER).cloned());
            // What another manager owns stays.
            if body["spec"]["replicas"].is_null() && !found["spec"]["replicas"].is_null() {
                body["spec"]["replicas"] = found["spec"]["replicas"].clone();
            }
            if let Some(kept) = annotation(found, meta::FORMER_SIDE_KEPT) {
                body["metadata"]["annotations"][meta::FORMER_SIDE_KEPT] = json!(kept);
            }
        }
        body["metadata"]["managedFields"] = json!(managers);
        let generation = found.as_ref().map_or(0, |found| found["metadata"]["generation"].as_i64().unwrap());
        let changed = found.as_ref().is_none_or(|found| found["spec"] != body["spec"]);
        body["metadata"]["generation"] = json!(generation + i64::from(changed));
        if let Some(found) = &found {
            body["status"] = found["status"].clone();
            if is_terminating(found) {
                body["metadata"]["deletionTimestamp"] = found["metadata"]["deletionTimestamp"].clone();
            }
            let same = found["spec"]["selector"] == body["spec"]["selector"];
            assert!(same || key.gvk.kind != "Deployment", "the selector of a Deployment is immutable");
        }
        self.log.push(format!("apply {} {}", key.gvk.kind, key.name));
        self.store(&key, body);
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }
}

fn bump(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
    object["metadata"]["generation"] = json!(generation + 1);
}

/// Whether an object is being deleted.
pub fn is_terminating(object: &Value) -> bool {
    meta_str(object, "deletionTimestamp").is_some()
}

/// The selector of a Service.
pub fn selected(service: &Value) -> &str {
    service["spec"]["selector"][labels::SELECTOR].as_str().unwrap_or_default()
}
