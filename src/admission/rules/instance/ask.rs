//! A request about an Instance with everything that its rules ask, and why a decision ends early.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use serde_json::Value;

use super::misfit::misfits;
use super::refusals;
use crate::admission::refusal::Refusal;
use crate::admission::request::{Change, Request};
use crate::admission::review::Object;
use crate::admission::spec::Spec;
use crate::admission::{Context, Patience};
use crate::api::interlock::Action;
use crate::api::json::JsonError;
use crate::api::object::NamespacedName;
use crate::plan::bench::Bench;
use crate::plan::package::Package;
use crate::plan::uid::Subject;

/// A request about an Instance, with everything that its rules ask.
pub(super) struct Ask<'a> {
    /// The request.
    pub(super) request: &'a Request<'a>,
    /// Everything beside it.
    pub(super) context: &'a Context<'a>,
    /// Hears what speaks against a spec.
    pub(super) bench: Bench,
    /// Refusals that the settings let pass, to be told.
    pub(super) passed: RefCell<Vec<Refusal>>,
    /// Whether the request refers anew to an OperatorVersion of another namespace: a refusal would
    /// tell what is there to somebody who may not read it.
    pub(super) looks_elsewhere: Cell<bool>,
}

/// Why a decision ends here.
pub(super) enum Stop {
    /// It is refused.
    Refused(Box<Refusal>),
    /// An OperatorVersion decides that the view does not show yet.
    Wait(NamespacedName),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl<'a> Ask<'a> {
    /// Notes which OperatorVersion is referred to, before anything is said about it.
    pub(super) fn refers(&self, new: &Spec<'_>, old: Option<&Spec<'_>>) {
        let version = &new.applied.operator_version;
        let same = old.is_some_and(|old| old.applied.operator_version == *version);
        let elsewhere = !version.name.is_empty() && version.namespace != self.request.namespace;
        self.looks_elsewhere.set(elsewhere && !same);
    }

    /// Hears a refusal: an error where it holds.
    pub(super) fn refuse(&self, refusal: Refusal) -> Result<(), Stop> {
        match self.bench.actions().of(refusal.rule) {
            Action::Deny => return Err(refusal.into()),
            Action::Warn => self.passed.borrow_mut().push(refusal),
            Action::Off => {}
        }
        Ok(())
    }

    /// `namespace/name`, with the prefix where the name is yet to be generated.
    pub(super) fn instance(&self, object: &Object<'_>) -> String {
        name_of(self.request, object)
    }

    /// What an execution is scheduled on: the prefix where the name was generated, as the
    /// mutating call does not know the name yet.
    pub(super) fn subject<'s>(&'s self, change: Option<Change<'s>>, object: &'s Object<'_>) -> Subject<'s> {
        let metadata = change.map_or(&object.metadata, |c| &c.old.metadata);
        let generated = metadata.generate_name.as_deref().filter(|prefix| !prefix.is_empty());
        Subject {
            namespace: self.request.namespace,
            name: generated.unwrap_or(self.request.name),
            version: change.and_then(|c| c.old.metadata.resource_version.as_deref()).unwrap_or("create"),
        }
    }

    /// The spec of an object.
    pub(super) fn spec(&self, object: &Object<'a>) -> Result<Spec<'a>, Stop> {
        Spec::read(object, self.request.namespace).map_err(|error| self.unreadable(object, &error).into())
    }

    /// A spec that cannot be read: by its fields, where they are why.
    fn unreadable(&self, object: &Object<'_>, error: &JsonError) -> Refusal {
        let spec = object.spec.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let fields = spec.map(|spec| misfits(&spec, self.own_package(&spec).as_deref()));
        match fields.filter(|fields| !fields.is_empty()) {
            Some(fields) => refusals::mistyped(fields),
            None => refusals::unreadable("spec", error),
        }
    }

    /// The OperatorVersion of a spec that cannot be read, of the same namespace: who may see what
    /// another one's says is not known.
    fn own_package(&self, spec: &Value) -> Option<Arc<Package>> {
        let version = &spec["operatorVersion"];
        let namespace = version["namespace"].as_str().unwrap_or_default();
        let own = namespace.is_empty() || namespace == self.request.namespace;
        let name = version["name"].as_str().filter(|_| own)?;
        self.context.view.operator_version(&NamespacedName::new(self.request.namespace, name))
    }

    /// The OperatorVersion of a spec; waits for one that the view does not show yet.
    pub(super) fn package(&self, spec: &Spec<'_>, instance: &str) -> Result<Arc<Package>, Stop> {
        let key = spec.version();
        if key.name.is_empty() {
            return Err(refusals::version_required(instance).into());
        }
        if let Some(package) = self.context.view.operator_version(&key) {
            return Ok(package);
        }
        Err(match (self.context.view.left_out(&key), self.context.patience) {
            (Some(why), _) => refusals::version_left_out(instance, &key, &why).into(),
            (None, Patience::Wait) => Stop::Wait(key),
            (None, Patience::Exhausted) => refusals::version_missing(instance, &key).into(),
        })
    }
}

pub(super) fn name_of(request: &Request<'_>, object: &Object<'_>) -> String {
    let generated = object.metadata.generate_name.as_deref().unwrap_or_default();
    let name = if request.name.is_empty() { generated } else { request.name };
    [request.namespace, "/", name].concat()
}
