//! A reconciler as a pure function of a [`View`]: it returns the effects that it wants, or waits. What the view lacks
//! ends the pass with [`Needs`]; the runtime gets that and calls the reconciler again.

mod facts;
mod needs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

pub use self::facts::{Facts, KindServed, Lookup, PodAnswer, PodResponse, RefusedWrite};
pub use self::needs::{Needs, ObjectList, PodRequest, both};
use crate::api::capability::Capability;
use crate::api::object::ObjectKey;
use crate::certificate::{CertificateAnswer, CertificateRequest};
use crate::effect::Effect;

/// The reconciler of a kind.
#[derive(Debug)]
pub struct Reconciler {
    /// Name in metrics and logs; one word.
    pub name: &'static str,
    /// The capability that switches it on and off. It needs the kind, whatever else the kind is watched for, but where
    /// the watch names it among those that it is for, too.
    pub capability: &'static Capability,
    /// Decides the next step. It is called again with what it lacked, and after its effects.
    pub reconcile: fn(&View<'_>) -> Result<ReconcileStep, Needs>,
}

/// What a reconciler wants.
#[derive(Clone, Debug, PartialEq)]
pub enum ReconcileStep {
    /// These effects, one after the other. An Event, or what is only counted, is carried out only where the write
    /// before it succeeded. What the API server refuses of a child ends nothing: [`View::refused`] tells of it.
    Write(Vec<Effect>),
    /// The same, where each rests on those before it: the first that the API server refuses ends them.
    InOrder(Vec<Effect>),
    /// Nothing until an event of the object, or until this time has passed.
    Await(Option<Duration>),
}

/// How old the answers of pods may be that a promotion is decided on, in seconds.
pub const FRESH_ANSWERS: i64 = 5;

/// What a reconciler decides on: the object, and whatever else it looks up.
///
/// A view is never older than the writes of this process, and never proof: other processes may have written since. What
/// must not be lost is a conditional write.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    object: &'a Value,
    facts: &'a Facts,
    now: Timestamp,
}

impl<'a> View<'a> {
    /// A view of an object.
    pub fn new(object: &'a Value, facts: &'a Facts, now: Timestamp) -> Self {
        Self { object, facts, now }
    }

    /// The object that is reconciled.
    pub fn object(&self) -> &'a Value {
        self.object
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// An object; `None` where there is none.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<&'a Arc<Value>>, Needs> {
        self.facts.get(key)
    }

    /// Makes sure that these objects can be looked up, all at once.
    pub fn have(&self, keys: impl IntoIterator<Item = ObjectKey>) -> Result<(), Needs> {
        let objects: BTreeSet<_> =
            keys.into_iter().filter(|key| !self.facts.objects.contains_key(key)).collect();
        if objects.is_empty() { Ok(()) } else { Err(Needs { objects, ..Needs::default() }) }
    }

    /// The same for objects that this process may not be allowed to read.
    pub fn have_if_allowed(&self, keys: impl IntoIterator<Item = ObjectKey>) -> Result<(), Needs> {
        self.have(keys).map_err(|needs| Needs { if_allowed: needs.objects, ..Needs::default() })
    }

    /// What a domain keeps of all objects, where this process has it.
    pub fn lister<T: ?Sized + Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.facts.listers.get::<T>()
    }

    /// An object as far as it was looked up.
    pub fn known(&self, key: &ObjectKey) -> Option<&'a Lookup> {
        self.facts.objects.get(key)
    }

    /// Whether a write of an object met another than was expected, and it was not looked up since.
    pub fn met_another(&self, key: &ObjectKey) -> bool {
        self.facts.failures.contains_key(key)
    }

    /// The objects of a kind in one namespace with these labels; none where the kind is not defined.
    pub fn list(&self, list: &ObjectList) -> Result<&'a [Arc<Value>], Needs> {
        let lacks = || Needs { lists: [list.clone()].into(), ..Needs::default() };
        self.facts.lists.get(list).map(Vec::as_slice).ok_or_else(lacks)
    }

    /// What a pod answers. One that does not answer is an answer.
    pub fn ask(&self, request: &PodRequest) -> Result<&'a PodAnswer, Needs> {
        let lacks = || Needs { answers: [request.clone()].into(), ..Needs::default() };
        self.facts.answers.get(request).ok_or_else(lacks)
    }

    /// Makes sure that these pods have been asked, all at once.
    pub fn ask_all(&self, requests: impl IntoIterator<Item = PodRequest>) -> Result<(), Needs> {
        let answers: BTreeSet<_> =
            requests.into_iter().filter(|request| !self.facts.answers.contains_key(request)).collect();
        if answers.is_empty() { Ok(()) } else { Err(Needs { answers, ..Needs::default() }) }
    }

    /// The answers of the pods that were asked.
    pub fn answers(&self) -> &'a BTreeMap<PodRequest, PodAnswer> {
        &self.facts.answers
    }

    /// Makes sure that the pods were asked less than [`FRESH_ANSWERS`] seconds ago.
    pub fn fresh_answers(&self) -> Result<(), Needs> {
        let is_old = |asked: Timestamp| self.now.duration_since(asked).as_secs() >= FRESH_ANSWERS;
        match self.facts.asked.is_some_and(is_old) {
            true => Err(Needs { again: true, ..Needs::default() }),
            false => Ok(()),
        }
    }

    /// What became of a certificate; it is in its Secret, or why it is not.
    pub fn certificate(
        &self,
        request: impl FnOnce() -> CertificateRequest,
    ) -> Result<&'a CertificateAnswer, Needs> {
        let lacks = || Needs { certificate: Some(Box::new(request())), ..Needs::default() };
        self.facts.certificate.as_ref().ok_or_else(lacks)
    }

    /// The last write of an object that the API server refused, and which no other write of it has followed.
    pub fn refused(&self, key: &ObjectKey) -> Option<&'a RefusedWrite> {
        self.facts.refused.get(key)
    }

    /// The refusal of this very write, on whatever version.
    pub fn refused_write(&self, write: &Effect) -> Option<(ObjectKey, &'a RefusedWrite)> {
        let key = write.key()?;
        let refused = self.refused(&key).filter(|refused| refused.effect.is_same_write(write))?;
        Some((key, refused))
    }

    /// All of them.
    pub fn all_refused(&self) -> impl Iterator<Item = (&'a ObjectKey, &'a RefusedWrite)> {
        self.facts.refused.iter()
    }
}
