//! What is known of the objects that bear on flavors, as far as the rules read them: gateways,
//! their sources, who configures them, and the routes that not every flavor serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::gateway::{Gateway, sources_of};
use super::group::{self, Group};
use super::reading::{FILE_VARIABLE, Reading, VARIABLE};
use super::routes::{Inventory, Route};
use super::sources::{Given, Source, SourceKind};
use super::subject::{Subject, SubjectKind};
use crate::api::meta;
use crate::api::object::{Gvk, NamespacedName, meta_str};
use crate::api::watched::LABELLED;

/// Kind and name.
type Key = (String, NamespacedName);

/// What is known around a gateway.
#[derive(Clone, Debug)]
pub struct Around {
    /// ConfigMaps and Secrets.
    pub sources: Given,
    /// The routes that exist.
    pub routes: Arc<Inventory>,
    /// Who shares its configuration producer.
    pub group: Option<Group>,
    /// What a Deployment ran with when all its pods were of one template.
    pub rolled_out: Option<Reading>,
}

impl Default for Around {
    fn default() -> Self {
        Self { sources: Given::default(), routes: Arc::new(Inventory::Unseen), group: None, rolled_out: None }
    }
}

/// The objects.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Gateways, ControlPlanes, ingress controllers and Services.
    objects: BTreeMap<Key, Arc<Value>>,
    sources: Given,
    /// Those that the controller labelled.
    ours: BTreeSet<Source>,
    routes: BTreeMap<Key, Route>,
    /// Deployments as they were when last all their pods were of one template.
    rolled_out: BTreeMap<Subject, Arc<Value>>,
    /// Of `routes`, made when it is asked for.
    inventory: OnceLock<Arc<Inventory>>,
}

impl Known {
    /// Takes an object in; kinds that no rule about flavors asks about are left out. `namespace`
    /// stands for one that is absent.
    pub fn take(&mut self, object: &Value, namespace: &str) {
        let Some(key) = key_of(object, namespace) else { return };
        match Role::of(object) {
            Some(Role::Source) => {
                self.sources.add(object, namespace);
                let ours = object["metadata"]["labels"][meta::FLAVOR_SOURCE] == meta::FLAVOR_SOURCE_OURS;
                match source_of(object, &key.1) {
                    Some(source) if ours => self.ours.insert(source),
                    Some(source) => self.ours.remove(&source),
                    None => false,
                };
            }
            Some(Role::Route) => {
                self.inventory = OnceLock::new();
                match Route::of(object, namespace) {
                    Some(route) => self.routes.insert(key, route),
                    None => self.routes.remove(&key),
                };
            }
            Some(Role::Party) => {
                let kept = Arc::new(pruned(object, &key.1));
                if object["kind"] == "Deployment" && is_rolled_out(object) {
                    self.rolled_out.insert(deployment(&key.1), kept.clone());
                }
                self.objects.insert(key, kept);
            }
            None => {}
        }
    }

    /// Drops an object that is gone; its kind by its name, or by the one that stands for its
    /// labelled objects.
    pub fn drop(&mut self, kind: &str, name: &NamespacedName) {
        let key = (served_as(kind).to_owned(), name.clone());
        match key.0.as_str() {
            "ConfigMap" => {
                let source = Source { kind: SourceKind::ConfigMap, name: name.clone() };
                self.sources.remove(&source);
                self.ours.remove(&source);
            }
            "Deployment" => {
                self.rolled_out.remove(&deployment(name));
            }
            _ => {}
        }
        self.objects.remove(&key);
        if self.routes.remove(&key).is_some() {
            self.inventory = OnceLock::new();
        }
    }

    /// Forgets the objects of a kind, by its name or by the one that stands for its labelled
    /// objects.
    pub fn forget(&mut self, kind: &str) {
        let labelled = LABELLED.iter().find(|labelled| labelled.name == kind);
        let kind = labelled.map_or(kind, |labelled| labelled.kind);
        self.objects.retain(|(known, _), _| known != kind);
        self.routes.retain(|(known, _), _| known != kind);
        self.inventory = OnceLock::new();
        match kind {
            "Deployment" => self.rolled_out.clear(),
            "ConfigMap" => (self.sources, self.ours) = Default::default(),
            _ => {}
        }
    }

    /// The gateways.
    pub fn gateways(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.objects.values().filter(|object| Gateway::is_guarded(object))
    }

    /// The sources that are known.
    pub fn sources(&self) -> &Given {
        &self.sources
    }

    /// The gateways whose flavor may come from a source.
    pub fn fed_by(&self, source: &Source) -> Vec<Arc<Value>> {
        let here = |object: &&Arc<Value>| meta_str(object, "namespace") == Some(&source.name.namespace);
        let fed = self.gateways().filter(here).filter(|object| sources_of(object).contains(source));
        fed.cloned().collect()
    }

    /// All that the flavors of gateways may come from.
    pub fn wanted_sources(&self) -> BTreeSet<Source> {
        self.gateways().flat_map(|object| sources_of(object)).collect()
    }

    /// The sources that the controller labelled, as far as they are seen.
    pub fn our_sources(&self) -> &BTreeSet<Source> {
        &self.ours
    }

    /// What is known around a gateway.
    pub fn around(&self, gateway: &Subject) -> Around {
        let namespace = &gateway.name.namespace;
        let objects: Vec<&Value> = self.objects.values().map(Arc::as_ref).collect();
        let own = objects.iter().find(|object| gateway.is(object));
        // An unreadable object among the others says nothing about who shares a producer.
        let group = own.and_then(|own| Group::of(own, &objects, namespace, &self.sources).ok().flatten());
        let rolled_out = self.rolled_out.get(gateway).and_then(|object| {
            Gateway::read(object, namespace, &self.sources).ok().flatten().map(|gateway| gateway.spec.reading)
        });
        Around { sources: self.sources.within(namespace), routes: self.inventory(), group, rolled_out }
    }

    /// The routes that not every flavor serves.
    pub fn inventory(&self) -> Arc<Inventory> {
        self.inventory.get_or_init(|| Arc::new(Inventory::seen(self.routes.values().cloned()))).clone()
    }
}

/// What an object is to the rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Route,
    Party,
}

impl Role {
    fn of(object: &Value) -> Option<Self> {
        let gvk = Gvk::of(object)?;
        match (gvk.group.as_str(), gvk.kind.as_str()) {
            ("", "ConfigMap" | "Secret") => Some(Self::Source),
            ("networking.k8s.io", "Ingress") => Some(Self::Route),
            ("gateway.networking.k8s.io", "HTTPRoute" | "GRPCRoute" | "TLSRoute") => Some(Self::Route),
            (crate::api::kong::GROUP, "DataPlane" | "ControlPlane") => Some(Self::Party),
            ("apps", "Deployment") | ("", "Service") => Some(Self::Party),
            _ => None,
        }
    }
}

fn key_of(object: &Value, namespace: &str) -> Option<Key> {
    let own = meta_str(object, "namespace").filter(|own| !own.is_empty()).unwrap_or(namespace);
    let name = NamespacedName::new(own, meta_str(object, "name")?);
    Some((object["kind"].as_str()?.to_owned(), name))
}

/// The kind that a name stands for.
fn served_as(kind: &str) -> &str {
    LABELLED.iter().find(|labelled| labelled.name == kind).map_or(kind, |labelled| labelled.kind)
}

fn source_of(object: &Value, name: &NamespacedName) -> Option<Source> {
    let kind = match object["kind"].as_str()? {
        "ConfigMap" => SourceKind::ConfigMap,
        "Secret" => SourceKind::Secret,
        _ => return None,
    };
    Some(Source { kind, name: name.clone() })
}

fn deployment(name: &NamespacedName) -> Subject {
    Subject { kind: SubjectKind::Deployment, name: name.clone() }
}

/// Whether all pods of a Deployment are of the template that it has, and there is no other one
/// (`kubectl rollout status`).
pub fn is_rolled_out(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or_default();
    let generation = deployment["metadata"]["generation"].as_i64().unwrap_or_default();
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    status["observedGeneration"].as_i64().is_some_and(|observed| observed >= generation)
        && [count("updatedReplicas"), count("replicas"), count("availableReplicas")] == [wanted; 3]
}

/// Only what the rules read of a gateway, a producer or a Service.
fn pruned(object: &Value, name: &NamespacedName) -> Value {
    let metadata = &object["metadata"];
    let spec = match object["kind"].as_str() {
        Some("DataPlane") => {
            let deployment = &object["spec"]["deployment"];
            let mut kept = some(deployment, &["replicas", "rollout"]);
            kept["podTemplateSpec"] = template(&deployment["podTemplateSpec"]);
            json!({ "deployment": kept })
        }
        Some("Deployment") => {
            let mut kept = some(&object["spec"], &["replicas"]);
            kept["template"] = template(&object["spec"]["template"]);
            kept
        }
        Some("Service") => some(&object["spec"], &["selector"]),
        _ => some(&object["spec"], &["dataplane"]),
    };
    let mut kept = some(object, &["apiVersion", "kind"]);
    kept["metadata"] = json!({
        "namespace": name.namespace,
        "name": name.name,
        "labels": some(&metadata["labels"], &[meta::GUARD]),
        "annotations": some(&metadata["annotations"], &[meta::CONFIG_PRODUCER, meta::LAST_APPLIED_SPEC]),
    });
    kept["spec"] = spec;
    kept["status"] = some(&object["status"], &["replicas"]);
    kept
}

fn template(template: &Value) -> Value {
    let containers = |field: &str, keep: fn(&Value) -> Value| -> Value {
        template["spec"][field].as_array().into_iter().flatten().map(keep).collect()
    };
    json!({
        "metadata": some(&template["metadata"], &["labels", "annotations"]),
        "spec": {
            "containers": containers("containers", container),
            "initContainers": containers("initContainers", container),
        },
    })
}

fn container(container: &Value) -> Value {
    let mut kept = some(container, &["name", "image", "command", "args", "envFrom", "volumeMounts"]);
    kept["env"] = variables(&container["env"]);
    kept
}

/// The variables that decide, and all of them where these refer to others.
fn variables(env: &Value) -> Value {
    let decides = |entry: &&Value| {
        let name = entry["name"].as_str().unwrap_or_default();
        [VARIABLE, FILE_VARIABLE, group::ADMIN_SERVICE_VARIABLE].contains(&name)
    };
    let entries = || env.as_array().into_iter().flatten();
    let refers = |entry: &Value| entry["value"].as_str().is_some_and(|value| value.contains('$'));
    if entries().filter(decides).any(refers) {
        return env.clone();
    }
    entries().filter(decides).cloned().collect()
}

/// Some members of an object.
fn some(object: &Value, members: &[&str]) -> Value {
    let found = members.iter().filter_map(|member| Some(((*member).to_owned(), object.get(member)?.clone())));
    Value::Object(found.collect::<Map<_, _>>())
}
