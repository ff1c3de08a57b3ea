//! What the cluster holds: the objects of `--objects`, and those that the checked ones before leave.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use anyhow::Context as _;
use crd_schema::{Definition, DefinitionVersion};
use interlock_core::admission::kind::GuardedKind;
use interlock_core::api::interlock::{Mode, Settings};
use interlock_core::api::object::{Gvk, ObjectKey};
use interlock_core::kinds;
use interlock_core::kinds::Kinds;
use interlock_core::kinds::capabilities::DATA_PLANES;
use interlock_core::kinds::static_lister::StaticLister;
use serde_json::{Value, json};

use super::manifests::Manifest;
use super::object::{as_stored, namespace_of, set_namespace};
use crate::install;
use crate::install::{InstallOptions, Part};

/// A definition, and who says that it is served.
#[derive(Clone)]
pub(super) struct KnownDefinition {
    pub(super) definition: Arc<Definition>,
    /// Whether it was among the objects, else it is the one that `interlock render` prints.
    pub(super) is_given: bool,
}

/// The state of the cluster between two objects.
pub(super) struct ClusterState {
    kinds: Kinds,
    guarded: Arc<[&'static GuardedKind]>,
    /// Groups and resources that the mutating webhook is registered for.
    mutated: HashSet<(String, String)>,
    /// The namespace of objects that name none.
    namespace: String,
    objects: BTreeMap<ObjectKey, Value>,
    definitions: HashMap<(String, String), KnownDefinition>,
    lister: StaticLister,
    settings: Option<Settings>,
}

impl ClusterState {
    /// The state of a cluster in which Interlock is installed, with these objects.
    pub(super) fn new(
        kinds: Kinds,
        namespace: &str,
        settings: Option<Settings>,
        objects: Vec<Manifest>,
    ) -> anyhow::Result<Self> {
        let mut state = Self {
            kinds,
            guarded: kinds::guarded(kinds),
            mutated: mutated(),
            namespace: namespace.to_owned(),
            objects: BTreeMap::new(),
            definitions: HashMap::new(),
            lister: StaticLister::of(kinds),
            settings,
        };
        for part in [Part::Crds, Part::KongCrds, Part::KuadrantCrds] {
            for definition in install::objects(part, &InstallOptions::default())? {
                state.define(Definition::read(&definition)?, false);
            }
        }
        // Definitions say which of the others have a namespace.
        let (definitions, others): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|manifest| Definition::is(&manifest.object));
        for Manifest { object, place, .. } in definitions {
            state.define(Definition::read(&object).with_context(|| place.to_string())?, true);
        }
        for manifest in others {
            let object = state.completed(manifest.object);
            state.objects.extend(ObjectKey::of(&object).map(|key| (key, object)));
        }
        state.lister = state.listed()?;
        Ok(state)
    }

    pub(super) fn kinds(&self) -> Kinds {
        self.kinds
    }

    pub(super) fn guarded(&self) -> &[&'static GuardedKind] {
        &self.guarded
    }

    pub(super) fn lister(&self) -> &StaticLister {
        &self.lister
    }

    fn define(&mut self, definition: Definition, is_given: bool) {
        let key = (definition.group.clone(), definition.kind.clone());
        self.definitions.insert(key, KnownDefinition { definition: Arc::new(definition), is_given });
    }

    /// The definition of a kind, in whatever version.
    pub(super) fn definition(&self, gvk: &Gvk) -> Option<&KnownDefinition> {
        self.definitions.get(&(gvk.group.clone(), gvk.kind.clone()))
    }

    /// Whether the rules of a kind decide on its objects.
    pub(super) fn is_guarded(&self, gvk: &Gvk) -> bool {
        self.guarded.iter().any(|known| known.resource.gvk() == *gvk)
    }

    /// Whether the mutating webhook is asked about objects of a kind; the validating one is asked about all.
    pub(super) fn is_mutated(&self, gvk: &Gvk) -> bool {
        let known = self.guarded.iter().find(|known| known.resource.gvk() == *gvk);
        known.is_some_and(|known| {
            let resource = &known.resource;
            self.mutated.contains(&(resource.group.to_owned(), resource.plural.to_owned()))
        })
    }

    /// An object as it is stored: with its namespace, a Secret without `stringData`.
    pub(super) fn completed(&self, mut object: Value) -> Value {
        let Some(gvk) = Gvk::of(&object) else { return object };
        let is_namespaced = match self.definition(&gvk) {
            Some(known) => known.definition.namespaced,
            None => self.is_guarded(&gvk),
        };
        if is_namespaced && namespace_of(&object).is_none() {
            set_namespace(&mut object, &self.namespace);
        }
        as_stored(&mut object);
        object
    }

    /// An object of the state as the API server reads it.
    pub(super) fn read(&self, object: &Value) -> Value {
        let known = Gvk::of(object).and_then(|gvk| self.definition(&gvk));
        let version: Option<&DefinitionVersion> = known.and_then(|known| known.definition.version_of(object));
        version.map_or_else(|| object.clone(), |version| version.stored(object.clone()))
    }

    /// The object of the same kind, namespace and name.
    pub(super) fn get(&self, object: &Value) -> Option<Value> {
        self.objects.get(&ObjectKey::of(object)?).map(|old| self.read(old))
    }

    /// Adds an object, or replaces the one of the same name.
    pub(super) fn put(&mut self, object: Value) -> anyhow::Result<()> {
        let object = self.completed(object);
        if Definition::is(&object) {
            self.define(Definition::read(&object)?, true);
        }
        let Some(key) = ObjectKey::of(&object) else { return Ok(()) };
        let is_new = !self.objects.contains_key(&key);
        if is_new {
            self.lister.add(&object, &self.namespace)?;
        }
        self.objects.insert(key, object);
        if !is_new {
            self.lister = self.listed()?;
        }
        Ok(())
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, object: &Value) -> anyhow::Result<()> {
        if let Some(key) = ObjectKey::of(object)
            && self.objects.remove(&key).is_some()
        {
            self.lister = self.listed()?;
        }
        Ok(())
    }

    /// Has a namespace's own label, where the Namespace is not among the objects.
    pub(super) fn ensure_namespace(&mut self, name: &str) -> anyhow::Result<()> {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        });
        match ObjectKey::of(&namespace).is_some_and(|key| self.objects.contains_key(&key)) {
            true => Ok(()),
            false => self.put(namespace),
        }
    }

    /// A lister over all objects.
    fn listed(&self) -> anyhow::Result<StaticLister> {
        let mut lister = StaticLister::of(self.kinds);
        lister.require_references();
        for object in self.objects.values() {
            lister.add(object, &self.namespace)?;
        }
        if let Some(settings) = &self.settings {
            lister.set_rules(settings.rules.clone());
            let mode = settings.modes.get(DATA_PLANES.name).copied().unwrap_or(DATA_PLANES.default_mode);
            if mode == Mode::Off {
                lister.switch_off(DATA_PLANES.name, "another operator carries them out");
            }
        }
        Ok(lister)
    }
}

/// The groups and resources of the rendered mutating webhook.
fn mutated() -> HashSet<(String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let configurations = install::webhooks::all(&InstallOptions::default()).into_iter();
    let mut mutated = HashSet::new();
    for configuration in configurations.filter(|object| object["kind"] == "MutatingWebhookConfiguration") {
        let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
        for rule in webhooks.filter_map(|webhook| webhook["rules"].as_array()).flatten() {
            for group in texts(&rule["apiGroups"]) {
                mutated
                    .extend(texts(&rule["resources"]).into_iter().map(|resource| (group.clone(), resource)));
            }
        }
    }
    mutated
}
