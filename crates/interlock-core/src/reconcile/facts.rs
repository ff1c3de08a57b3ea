//! What a reconcile has of the world.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::needs::{Needs, ObjectList, PodRequest};
use crate::api::inventory::ObjectInventory;
use crate::api::listers::KindListers;
use crate::api::object::{Gvk, ObjectKey};
use crate::certificate::CertificateAnswer;
use crate::config_digest::ConfigDigest;
use crate::effect::{ApiFailure, Effect, FileRead, PodFile};

/// Whether the API server serves a kind, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindServed {
    /// Objects live in namespaces.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
    /// Not now, and perhaps later: its CustomResourceDefinition is absent or being deleted. Its
    /// objects are gone, or about to be.
    Undefined,
    /// Not now, and perhaps later: its CustomResourceDefinition exists and does not serve it. Its
    /// objects cannot be read.
    NotServed,
    /// Not served, and never will be.
    NeverServed,
    /// Not known now.
    Unknown,
}

/// An object as it was looked up.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// It exists.
    Found(Arc<Value>),
    /// It does not exist.
    Absent,
    /// The API server does not let this process read it.
    Forbidden,
}

/// What the runtime has for a reconcile.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Objects that were looked up, or that the API server answered a write with.
    pub objects: BTreeMap<ObjectKey, Lookup>,
    /// Lookups and writes that failed, by object, where the reconciler decides what follows; the next lookup of the object
    /// removes its entry, and is made by request.
    pub failures: BTreeMap<ObjectKey, ApiFailure>,
    /// How the API server serves kinds.
    pub kinds: BTreeMap<Gvk, KindServed>,
    /// Lists.
    pub lists: BTreeMap<ObjectList, Vec<Arc<Value>>>,
    /// Answers of pods.
    pub answers: BTreeMap<PodRequest, PodAnswer>,
    /// The certificate of the object.
    pub certificate: Option<CertificateAnswer>,
    /// Writes that the API server refused.
    pub refused: BTreeMap<ObjectKey, RefusedWrite>,
    /// When the first of the pods was asked.
    pub asked: Option<Timestamp>,
    /// Files of pods.
    pub files: BTreeMap<PodFile, FileRead>,
    /// Digests of ConfigMaps and Secrets that pods use, or why they could not be read.
    pub digests: BTreeMap<ObjectKey, Result<ConfigDigest, ApiFailure>>,
    /// Why workloads lack pods, as their controllers last reported it in an Event; `None` where they reported nothing
    /// else since.
    pub pod_failures: BTreeMap<ObjectKey, Result<Option<String>, ApiFailure>>,
    /// The inventory of an Instance.
    pub inventory: Option<ObjectInventory>,
    /// What the domains keep of all objects.
    pub listers: KindListers,
}

impl Facts {
    /// An object; `None` where there is none.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<&Arc<Value>>, Needs> {
        match self.objects.get(key) {
            Some(Lookup::Found(object)) => Ok(Some(object)),
            Some(Lookup::Absent | Lookup::Forbidden) => Ok(None),
            None => Err(Needs::object(key.clone())),
        }
    }

    /// Takes in what the API server answered a write with; `None` where the object is gone.
    pub fn wrote(&mut self, key: ObjectKey, answer: Option<Arc<Value>>) {
        self.failures.remove(&key);
        self.objects.insert(key, answer.map_or(Lookup::Absent, Lookup::Found));
    }
}

/// A write that the API server refused.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedWrite {
    /// What was refused.
    pub effect: Effect,
    /// The answer.
    pub failure: ApiFailure,
    /// When the same write was refused first.
    pub since: Timestamp,
    /// When the same write is tried again.
    pub retry: Timestamp,
}

/// What a pod answered: the status and the body, or why there is no answer, for people.
pub type PodAnswer = Result<PodResponse, String>;

/// An answer of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodResponse {
    /// HTTP status.
    pub status: u16,
    /// The header `Server`, if it is text.
    pub server: Option<String>,
    /// The body, at most 1 MiB; of a list that was read with all its pages, a JSON array of the names of its elements.
    pub body: Arc<[u8]>,
}
