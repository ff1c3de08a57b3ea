//! Objects by kind and name, and what reconciles them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::{NamespacedName, ObjectKey};
use interlock_core::effect::{ApiFailure, Effect};
use interlock_core::kinds::inventory::{Inventory as _, ReadKinds};
use interlock_core::reconcile::{Facts, Lookup, Needs, ReconcileStep, Reconciler, RefusedWrite, View};
use interlock_core::topology::KindName;
use serde_json::{Value, json};

use super::super::names::{LIMITS, LIMITS_CONFIG_MAP, Patched};
use super::super::{gateway as of_gateways, gateway_class as of_classes, policy as of_policies};
use crate::policies::Attachments;

/// Steps until nothing is left to do.
const STEPS: usize = 2_000;

type Woken = Arc<Mutex<BTreeSet<(&'static str, NamespacedName)>>>;

/// See the module.
pub struct Cluster {
    attachments: Attachments,
    objects: BTreeMap<String, Value>,
    woken: Woken,
    revision: u64,
    /// The outputs that were written.
    pub written: BTreeSet<String>,
    /// A kind that is not read.
    pub unread: Option<&'static str>,
    /// Whether Envoy Gateway refuses EnvoyPatchPolicies.
    pub refuses: bool,
    /// A kind of which the API server refuses writes.
    pub denied: Option<&'static str>,
    refused: BTreeMap<ObjectKey, RefusedWrite>,
    /// What the auth server says of the AuthConfigs that it does not decide by.
    pub unready: Option<&'static str>,
    /// Whether the definition of policies is Kuadrant's, which prunes the conditions by ancestor.
    pub prunes_ancestors: bool,
}

/// The kinds that are read.
struct Read(Option<&'static str>);

impl ReadKinds for Read {
    fn is_read(&self, _: &str, kind: &str, _: &str) -> bool {
        self.0 != Some(kind)
    }
}

fn title(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

impl Cluster {
    /// With a GatewayClass of Envoy Gateway.
    pub fn new() -> Self {
        let woken = Woken::default();
        let mut attachments = Attachments::default();
        let by = woken.clone();
        attachments.follow(Arc::new(move |kind: KindName, name| {
            by.lock().unwrap().insert((kind.kind, name));
        }));
        let mut cluster = Self {
            attachments,
            objects: BTreeMap::new(),
            woken,
            revision: 0,
            written: BTreeSet::new(),
            unread: None,
            refuses: false,
            denied: None,
            refused: BTreeMap::new(),
            unready: None,
            prunes_ancestors: false,
        };
        cluster.put(class("gateway.envoyproxy.io/gatewayclass-controller"));
        cluster
    }

    /// With these objects, in another order.
    pub fn of(objects: Vec<Value>) -> Self {
        let mut cluster = Self::new();
        objects.into_iter().rev().for_each(|object| cluster.put(object));
        cluster
    }

    /// Writes an object; its status stays.
    pub fn put(&mut self, mut object: Value) {
        let name = title(&object);
        let old = self.objects.get(&name).cloned();
        let uid = old.as_ref().map_or_else(
            || json!(format!("uid-{name}-{}", self.revision)),
            |old| old["metadata"]["uid"].clone(),
        );
        object["metadata"]["uid"] = uid;
        if let Some(old) = &old {
            object["metadata"]["creationTimestamp"] = old["metadata"]["creationTimestamp"].clone();
            if object["status"].is_null() {
                object["status"] = old["status"].clone();
            }
        }
        let generation = old.as_ref().map_or(1, |old| {
            old["metadata"]["generation"].as_i64().unwrap() + i64::from(old["spec"] != object["spec"])
        });
        object["metadata"]["generation"] = generation.into();
        self.store(name, object);
    }

    fn store(&mut self, name: String, mut object: Value) {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        self.attachments.take(&object);
        self.objects.insert(name, object);
    }

    /// Changes an object by hand.
    pub fn edit(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.objects[name].clone();
        change(&mut object);
        self.put(object);
    }

    /// Deletes an object.
    pub fn delete(&mut self, name: &str) {
        let object = self.objects.remove(name).unwrap();
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let key = NamespacedName::new(text("namespace"), text("name"));
        let kind = object["kind"].as_str().unwrap();
        self.attachments.drop(if kind == "ConfigMap" { LIMITS_CONFIG_MAP } else { kind }, &key);
    }

    /// The cache loses an object that exists.
    pub fn forget(&mut self, name: &str) {
        let object = self.objects[name].clone();
        self.delete(name);
        self.objects.insert(name.to_owned(), object);
    }

    /// A kind is not read any more.
    pub fn forget_kind(&mut self, kind: &str) {
        self.attachments.forget(kind);
    }

    /// Reconciles an object, as is done after a while.
    pub fn wake(&mut self, kind: &'static str, name: &str) {
        self.woken.lock().unwrap().insert((kind, NamespacedName::new("shop", name)));
        self.settle();
    }

    /// Reconciles until nothing is woken.
    pub fn settle(&mut self) {
        for _ in 0..STEPS {
            let next = self.woken.lock().unwrap().pop_first();
            let Some((kind, key)) = next else { return };
            let name = format!("{kind} {}", key.name);
            let Some(object) = self.objects.get(&name).cloned() else { continue };
            let reconciler = match kind {
                "Gateway" => &of_gateways::RECONCILER,
                "GatewayClass" => &of_classes::RECONCILER,
                "AuthPolicy" => &of_policies::OF_AUTH,
                _ => &of_policies::OF_LIMITS,
            };
            match self.step(reconciler, &object) {
                ReconcileStep::Write(effects) | ReconcileStep::InOrder(effects) => {
                    let mut is_done = true;
                    for effect in effects {
                        is_done &= self.try_out(effect);
                    }
                    if is_done {
                        self.woken.lock().unwrap().insert((kind, key));
                    }
                }
                ReconcileStep::Await(_) => {}
            }
        }
        panic!("it does not come to rest: {:?}", self.written);
    }

    fn step(&self, reconciler: &Reconciler, object: &Value) -> ReconcileStep {
        let listers = KindListers::default().with::<dyn ReadKinds>(Arc::new(Read(self.unread)));
        let listers = self.attachments.listers(listers);
        let mut facts = Facts { listers, refused: self.refused.clone(), ..Facts::default() };
        loop {
            let now = "2026-01-02T00:00:00Z".parse().unwrap();
            match (reconciler.reconcile)(&View::new(object, &facts, now)) {
                Ok(step) => return step,
                Err(needs) => self.look_up(&mut facts, needs),
            }
        }
    }

    fn look_up(&self, facts: &mut Facts, needs: Needs) {
        let all = || self.objects.values().map(|object| (ObjectKey::of(object).unwrap(), object));
        for key in needs.objects {
            let found = all().find(|(own, _)| *own == key);
            facts.objects.insert(
                key,
                found.map_or(Lookup::Absent, |(_, object)| Lookup::Found(Arc::new(object.clone()))),
            );
        }
        for list in needs.lists {
            let is_in = |key: &ObjectKey, object: &Value| {
                key.gvk == list.gvk
                    && key.namespace.as_deref() == Some(&list.namespace)
                    && list.labels.iter().all(|(name, value)| object["metadata"]["labels"][name] == **value)
            };
            let found =
                all().filter(|(key, object)| is_in(key, object)).map(|(_, own)| Arc::new(own.clone()));
            let found = found.collect();
            facts.lists.insert(list, found);
        }
    }

    /// Whether there is something to do after it: what was refused is decided about once more, and then waits.
    fn try_out(&mut self, effect: Effect) -> bool {
        let key = match &effect {
            Effect::Apply { object, .. } => ObjectKey::of(object).unwrap(),
            _ => {
                self.carry_out(effect);
                return true;
            }
        };
        if self.denied != Some(key.gvk.kind.as_str()) {
            self.refused.remove(&key);
            self.carry_out(effect);
            return true;
        }
        let message = "exceeded quota: none".to_owned();
        let failure = ApiFailure { code: 403, message, ..ApiFailure::default() };
        let (since, retry) = Default::default();
        self.refused.insert(key, RefusedWrite { effect, failure, since, retry }).is_none()
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Apply { object, .. } => {
                let name = title(&object);
                self.written.insert(name.clone());
                let old = self.objects.get(&name);
                assert_eq!(object["metadata"]["resourceVersion"].is_null(), old.is_none(), "{name}");
                // An apply leaves the fields of others.
                let mut whole = old.cloned().unwrap_or_else(|| json!({}));
                for (field, value) in object.as_object().unwrap() {
                    match (whole[field].as_object_mut(), value.as_object()) {
                        (Some(own), Some(value)) => own.extend(value.clone()),
                        _ => whole[field] = value.clone(),
                    }
                }
                self.put(whole);
                self.program(&name);
            }
            Effect::Patch { key, patch, .. } => {
                let name = format!("{} {}", key.gvk.kind, key.name);
                self.written.insert(name.clone());
                let mut object = self.objects[&name].clone();
                json_patch::merge(&mut object, &patch);
                self.put(object);
                self.program(&name);
            }
            Effect::Delete { key, .. } => {
                let name = format!("{} {}", key.gvk.kind, key.name);
                self.written.insert(name.clone());
                self.delete(&name);
            }
            Effect::Status { key, status, .. } => {
                let name = format!("{} {}", key.gvk.kind, key.name);
                self.written.insert(name.clone());
                let mut object = self.objects[&name].clone();
                // A merge patch leaves the fields of others.
                for (field, value) in status.as_object().unwrap() {
                    object["status"][field] = value.clone();
                }
                if self.prunes_ancestors {
                    object["status"].as_object_mut().unwrap().remove("ancestors");
                }
                self.store(name, object);
            }
            effect => panic!("{effect:?}"),
        }
    }

    /// What the auth server says of an AuthConfig.
    fn say(&mut self, name: &str) {
        let mut object = self.objects[name].clone();
        let hosts = object["spec"]["hosts"].clone();
        object["status"] = match self.unready {
            None => {
                json!({"conditions": [{"type": "Ready", "status": "True"}], "summary": {"hostsReady": hosts}})
            }
            Some(why) => json!({"conditions": [{"type": "Ready", "status": "False", "reason": why}]}),
        };
        self.store(name.to_owned(), object);
    }

    /// The auth server says something else of all AuthConfigs.
    pub fn say_of_all(&mut self, unready: Option<&'static str>) {
        self.unready = unready;
        let all: Vec<String> =
            self.objects.keys().filter(|name| name.starts_with("AuthConfig ")).cloned().collect();
        all.iter().for_each(|name| self.say(name));
    }

    /// What Envoy Gateway says of an EnvoyPatchPolicy.
    fn program(&mut self, name: &str) {
        let mut object = self.objects[name].clone();
        match object["kind"].as_str() {
            Some("AuthConfig") => return self.say(name),
            Some("EnvoyPatchPolicy") => {}
            _ => return,
        }
        let (status, reason, message) = match self.refuses {
            true => ("False", "Disabled", "EnvoyPatchPolicy is disabled"),
            false => ("True", "Programmed", "Patches have been successfully applied."),
        };
        let generation = object["metadata"]["generation"].clone();
        object["status"] = json!({"ancestors": [{"conditions": [{
            "type": "Programmed", "status": status, "reason": reason, "message": message, "observedGeneration": generation,
        }]}]});
        self.store(name.to_owned(), object);
    }

    fn is_output(object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let has = |label: &str| !labels[label].is_null();
        Patched::ALL.into_iter().any(|own| has(own.label()))
            || !labels[LIMITS].is_null()
            || object["kind"] == "Limitador"
    }

    /// The EnvoyPatchPolicies.
    pub fn patches(&self) -> Vec<Value> {
        self.objects.values().filter(|own| own["kind"] == "EnvoyPatchPolicy").cloned().collect()
    }

    /// What was written, without what differs between two processes.
    pub fn outputs(&self) -> BTreeMap<String, Value> {
        let outputs = self.objects.iter().filter(|(_, object)| Self::is_output(object));
        let plain = |object: &Value| json!({"spec": object["spec"], "data": object["data"]});
        outputs.map(|(name, object)| (name.clone(), plain(object))).collect()
    }

    /// The objects that people wrote.
    pub fn inputs(&self) -> Vec<Value> {
        let inputs = self.objects.values().filter(|object| !Self::is_output(object));
        inputs.cloned().collect()
    }

    /// `ROUTE CONFIGURATION PREFIX LIMITS` of each rule with limits.
    pub fn limited(&self, patch: &str) -> Vec<String> {
        self.actions(patch, "interlock.limits", limits_in)
    }

    /// `ROUTE CONFIGURATION PREFIX ACTION` of each rule and namespace that is guarded, and of the others, as `*`. An action
    /// that asks names the ways of authentication.
    pub fn guarded(&self, patch: &str) -> Vec<String> {
        self.actions(patch, "interlock.auth", |action| self.guard_in(action))
    }

    fn actions(&self, patch: &str, filter: &str, text: impl Fn(&Value) -> String) -> Vec<String> {
        let operations = self.objects[patch]["spec"]["jsonPatches"].as_array().unwrap();
        let mut found = Vec::new();
        for operation in operations {
            let path = operation["operation"]["path"].as_str().unwrap_or_default();
            if !path.starts_with(&format!("/typed_per_filter_config/{filter}")) {
                continue;
            }
            let matcher = &operation["operation"]["value"]["matcher"];
            let configuration = operation["name"].as_str().unwrap();
            let map = matcher["matcher_tree"]["prefix_match_map"]["map"].as_object().unwrap();
            let others = Some(&matcher["on_no_match"]).filter(|own| !own.is_null());
            let all = map.iter().map(|(prefix, own)| (prefix.as_str(), own));
            for (prefix, action) in all.chain(others.map(|own| ("*", own))) {
                found.push(format!("{configuration} {prefix} {}", text(action)));
            }
        }
        found
    }

    fn guard_in(&self, action: &Value) -> String {
        if let Some(matchers) = action["matcher"]["matcher_list"]["matchers"].as_array() {
            let one = |own: &Value| {
                let suffix = own["predicate"]["single_predicate"]["value_match"]["suffix"].as_str().unwrap();
                format!("{suffix} {}", self.guard_in(&own["on_match"]))
            };
            return matchers.iter().map(one).collect::<Vec<_>>().join(" ");
        }
        let name = action["action"]["name"].as_str().unwrap();
        let filter = &action["action"]["typed_config"]["typed_config"]["typed_config"];
        let host = &filter["grpc_service"]["initial_metadata"][0]["value"];
        if host.is_null() {
            return name.to_owned();
        }
        let config = self.auth_config(host.as_str().unwrap());
        let ways = config["spec"]["authentication"].as_object().unwrap();
        format!("{name} {}", ways.keys().cloned().collect::<Vec<_>>().join(" "))
    }

    /// The AuthConfig of a host.
    pub fn auth_config(&self, host: &str) -> &Value {
        self.auth_configs().into_iter().find(|own| own["spec"]["hosts"][0] == host).unwrap()
    }

    /// All AuthConfigs.
    pub fn auth_configs(&self) -> Vec<&Value> {
        self.objects.values().filter(|own| own["kind"] == "AuthConfig").collect()
    }

    /// `DOMAIN NAME MOST/SECONDS` of each limit.
    pub fn counted(&self, store: &str) -> Vec<String> {
        let object = &self.objects[store];
        let entries: Vec<Value> = match object["data"]["limits.yaml"].as_str() {
            Some(text) => serde_json::from_str(text).unwrap(),
            None => object["spec"]["limits"].as_array().unwrap().clone(),
        };
        let text = |own: &Value| {
            let name = own["name"].as_str().unwrap();
            format!("{} {name} {}/{}", own["namespace"].as_str().unwrap(), own["max_value"], own["seconds"])
        };
        entries.iter().map(text).collect()
    }

    /// The message of the condition of a Gateway.
    pub fn affected(&self, gateway: &str) -> String {
        let object = &self.objects[&format!("Gateway {gateway}")];
        object["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// `GATEWAY TYPE STATUS REASON` of each condition by ancestor.
    pub fn ancestors(&self, policy: &str) -> Vec<String> {
        let object = &self.objects[&format!("RateLimitPolicy {policy}")];
        let mut found = Vec::new();
        for own in object["status"]["ancestors"].as_array().into_iter().flatten() {
            let reference = &own["ancestorRef"];
            let name =
                format!("{}/{}", reference["kind"].as_str().unwrap(), reference["name"].as_str().unwrap());
            for condition in own["conditions"].as_array().unwrap() {
                let text = |field: &str| condition[field].as_str().unwrap();
                found.push(format!("{name} {} {} {}", text("type"), text("status"), text("reason")));
            }
        }
        found
    }

    /// `STATUS REASON MESSAGE` of a condition of a RateLimitPolicy.
    pub fn condition(&self, policy: &str, kind: &str) -> String {
        self.condition_of(&format!("RateLimitPolicy {policy}"), kind)
    }

    /// The same of a policy of any kind.
    pub fn condition_of(&self, policy: &str, kind: &str) -> String {
        let object = &self.objects[policy];
        let conditions = object["status"]["conditions"].as_array().unwrap();
        let own = conditions.iter().find(|own| own["type"] == kind).unwrap();
        let text = |field: &str| own[field].as_str().unwrap().to_owned();
        format!("{} {} {}", text("status"), text("reason"), text("message"))
    }
}

/// The names of the limits that an action asks about, behind the host where that decides.
fn limits_in(action: &Value) -> String {
    if let Some(matchers) = action["matcher"]["matcher_list"]["matchers"].as_array() {
        let one = |own: &Value| {
            let suffix = own["predicate"]["single_predicate"]["value_match"]["suffix"].as_str().unwrap();
            format!("{suffix} {}", limits_in(&own["on_match"]))
        };
        return matchers.iter().map(one).collect::<Vec<_>>().join(" ");
    }
    let names = keys(action).into_iter().filter_map(|key| {
        let name = key.strip_prefix("limit.")?.split_once("__")?;
        (!name.1.contains('.')).then(|| name.0.to_owned())
    });
    names.collect::<Vec<_>>().join(" ")
}

fn keys(action: &Value) -> Vec<String> {
    let filter = &action["action"]["typed_config"]["typed_config"]["typed_config"];
    let actions = filter["rate_limits"][0]["actions"].as_array().into_iter().flatten();
    let key = |own: &Value| own["extension"]["typed_config"]["descriptor_key"].as_str().unwrap().to_owned();
    actions.map(key).collect()
}

/// The keys of the descriptor of a rule.
pub fn keys_of(patch: &Value, prefix: &str) -> Vec<String> {
    let operations = patch["spec"]["jsonPatches"].as_array().unwrap();
    let map = |own: &Value| {
        own["operation"]["value"]["matcher"]["matcher_tree"]["prefix_match_map"]["map"][prefix].clone()
    };
    operations.iter().map(map).find(|own| !own.is_null()).map(|action| keys(&action)).unwrap()
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"namespace": "shop", "name": name, "creationTimestamp": "2026-01-01T00:00:00Z"});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

pub fn class(controller: &str) -> Value {
    json!({
        "apiVersion": GATEWAY_API, "kind": "GatewayClass", "metadata": {"name": "eg"},
        "spec": {"controllerName": controller},
    })
}

pub fn gateway(name: &str) -> Value {
    let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    object(GATEWAY_API, "Gateway", name, json!({"gatewayClassName": "eg", "listeners": listeners}))
}

pub fn route(name: &str, gateways: &[&str]) -> Value {
    let parents: Vec<Value> = gateways.iter().map(|name| json!({"name": name})).collect();
    object(GATEWAY_API, "HTTPRoute", name, json!({"parentRefs": parents, "rules": [{}]}))
}

/// A policy of a target such as `Gateway/gw-1#http`.
pub fn policy(name: &str, target: &str, spec: Value) -> Value {
    let (target, section) =
        target.split_once('#').map_or((target, None), |(own, section)| (own, Some(section)));
    let (kind, target) = target.split_once('/').unwrap();
    let mut spec = spec;
    spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": target});
    if let Some(section) = section {
        spec["targetRef"]["sectionName"] = section.into();
    }
    object("kuadrant.io/v1", "RateLimitPolicy", name, spec)
}

/// An AuthPolicy of such a target.
pub fn auth_policy(name: &str, target: &str, spec: Value) -> Value {
    let mut object = policy(name, target, spec);
    object["kind"] = "AuthPolicy".into();
    object
}

/// Limits of five requests a minute.
pub fn limits(names: &[&str]) -> Value {
    let limit = json!({"rates": [{"limit": 5, "window": "1m"}]});
    json!({"limits": names.iter().map(|name| ((*name).to_owned(), limit.clone())).collect::<BTreeMap<_, _>>()})
}

pub fn settings(limitadors: Value) -> Value {
    settings_of(json!({"limitadors": limitadors}))
}

pub fn settings_of(policies: Value) -> Value {
    json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Interlock", "metadata": {"name": "default"},
        "spec": {"policies": policies},
    })
}
