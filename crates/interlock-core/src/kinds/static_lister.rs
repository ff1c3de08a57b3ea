//! A static lister over a list of objects: for `interlock check`, tests and benchmarks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::Kinds;
use super::listed::ListedObjects;
use super::namespace::NamespaceLister;
use crate::admission::lister::{CacheState, KindListers, Lister};
use crate::api::interlock::{Actions, Labels, Rules};
use crate::api::object::{Gvk, ObjectKey};
use crate::api::rule::RuleGroup;

/// An unreadable object of a known kind.
#[derive(Debug, Error)]
#[error("{key} cannot be read: {source}; correct the field that it names")]
pub struct UnreadableObject {
    /// The object.
    pub key: String,
    /// Why.
    #[source]
    pub source: serde_json::Error,
}

/// A lister over a fixed list of objects.
#[derive(Clone)]
pub struct StaticLister {
    domains: Vec<Arc<dyn ListedObjects>>,
    namespaces: Arc<ListedNamespaces>,
    rules: Rules,
    listers: KindListers,
    /// Capabilities that are switched off, with the reason.
    unavailable: BTreeMap<&'static str, String>,
    /// Whether OperatorVersions that are referred to must be in the list.
    requires_references: bool,
}

#[derive(Clone, Debug, Default)]
struct ListedNamespaces {
    terminating: BTreeSet<String>,
    labels: BTreeMap<String, Labels>,
}

impl StaticLister {
    /// An empty list of objects of these kinds.
    pub fn of(kinds: Kinds) -> Self {
        let mut lister = Self {
            domains: kinds.iter().filter_map(|kind| kind.listed).map(|listed| listed()).collect(),
            namespaces: Arc::default(),
            rules: Rules::default(),
            listers: KindListers::default(),
            unavailable: BTreeMap::new(),
            requires_references: false,
        };
        lister.lists();
        lister
    }

    /// Adds an object; ignores kinds that no rule reads. `namespace` is the default for an absent one.
    ///
    /// # Errors
    /// An unreadable object of a kind that rules read.
    pub fn add(&mut self, object: &Value, namespace: &str) -> Result<(), UnreadableObject> {
        let Some(key) = ObjectKey::of(object) else { return Ok(()) };
        // The objects are changed in place: the listers hold no reference meanwhile.
        self.listers = KindListers::default();
        let added = self.add_to_each(&key, object, namespace);
        self.lists();
        added.map_err(|source| UnreadableObject { key: key.to_string(), source })
    }

    fn add_to_each(
        &mut self,
        key: &ObjectKey,
        object: &Value,
        namespace: &str,
    ) -> Result<(), serde_json::Error> {
        if key.gvk == Gvk::new("v1", "Namespace") {
            Arc::make_mut(&mut self.namespaces).add(key.name.clone(), object)?;
        }
        for domain in &mut self.domains {
            if Arc::get_mut(domain).is_none() {
                *domain = domain.copied();
            }
            if let Some(domain) = Arc::get_mut(domain) {
                domain.add(key, object, namespace)?;
            }
        }
        Ok(())
    }

    fn lists(&mut self) {
        let namespaces = KindListers::default().with::<dyn NamespaceLister>(self.namespaces.clone());
        self.listers =
            self.domains.iter().fold(namespaces, |listers, domain| domain.clone().listers(listers));
    }

    /// Sets the actions of the rules by namespace; without them the defaults hold.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Refuses references to OperatorVersions that are not in the list: nothing comes later.
    pub fn require_references(&mut self) {
        self.requires_references = true;
    }

    /// Switches a capability off: its rules are not enforced, with this reason.
    pub fn switch_off(&mut self, capability: &'static str, why: &str) {
        self.unavailable.insert(capability, why.to_owned());
    }
}

impl Lister for StaticLister {
    fn actions(&self, namespace: &str) -> Actions {
        let actions = self.rules.within(self.namespaces.labels.get(namespace));
        if self.requires_references { actions.denying(RuleGroup::References) } else { actions }
    }

    fn cache(&self, capability: &str) -> CacheState {
        self.unavailable
            .get(capability)
            .map_or(CacheState::Synced, |why| CacheState::Unavailable(why.clone()))
    }

    fn kinds(&self) -> &KindListers {
        &self.listers
    }
}

impl ListedNamespaces {
    fn add(&mut self, name: String, object: &Value) -> Result<(), serde_json::Error> {
        if object.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null()) {
            self.terminating.insert(name.clone());
        }
        let labels = object.pointer("/metadata/labels").map(Option::<Labels>::deserialize).transpose()?;
        self.labels.insert(name, labels.flatten().unwrap_or_default());
        Ok(())
    }
}

impl NamespaceLister for ListedNamespaces {
    fn namespace_terminating(&self, namespace: &str) -> bool {
        self.terminating.contains(namespace)
    }
}
