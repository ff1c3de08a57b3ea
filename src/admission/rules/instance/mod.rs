//! Instances: KUDO's rules (`pkg/webhook/instance_admission.go`) with the holes closed, the
//! freeze, and the stamp.

mod asked;
mod create;
mod desired;
mod locked;
mod refusals;
mod unlocked;
mod update;
mod verbs;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::super::refusal::Refusal;
use super::super::request::{Change, Operation, Request};
use super::super::verdict::{Outcome, Verdict};
use super::super::{Context, Door, Patience};
use crate::admission::review::Object;
use crate::admission::spec::Spec;
use crate::api::interlock::Action;
use crate::api::object::NamespacedName;
use crate::plan::bench::Bench;
use crate::plan::package::Package;
use crate::plan::uid::Subject;

/// A request about an Instance, with everything that its rules ask.
pub(super) struct Ask<'a> {
    /// The request.
    request: &'a Request<'a>,
    /// Everything beside it.
    context: &'a Context<'a>,
    /// Hears what speaks against a spec.
    bench: Bench,
    /// Refusals that the settings let pass, to be told.
    passed: RefCell<Vec<Refusal>>,
    /// Whether the request refers anew to an OperatorVersion of another namespace: a refusal would
    /// tell what is there to somebody who may not read it.
    looks_elsewhere: Cell<bool>,
}

/// Why a decision ends here.
enum Stop {
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

/// Decides on an Instance.
pub(super) fn judge(request: &Request<'_>, operation: &Operation<'_>, context: &Context<'_>) -> Verdict {
    let bench = Bench::new(context.view.actions(request.namespace));
    let (passed, looks_elsewhere) = (RefCell::default(), Cell::default());
    let ask = Ask { request, context, bench, passed, looks_elsewhere };
    let decided = match operation {
        Operation::Create(object) => ask.create(object),
        Operation::Update(change) => ask.update(*change),
        Operation::Delete(_) => Ok(Verdict::allow()),
    };
    match decided.and_then(|verdict| ask.requests(operation, verdict)) {
        Ok(verdict) => ask.tell(verdict, operation),
        // The policy that asks whether the user may read it comes before the validating call.
        Err(Stop::Refused(_)) if context.door == Door::Mutate && ask.looks_elsewhere.get() => {
            Verdict::allow()
        }
        Err(Stop::Refused(refusal)) => Verdict::of(Outcome::Refuse(refusal)),
        Err(Stop::Wait(key)) => Verdict::of(Outcome::Wait(key)),
    }
}

impl<'a> Ask<'a> {
    /// Notes which OperatorVersion is referred to, before anything is said about it.
    fn refers(&self, new: &Spec<'_>, old: Option<&Spec<'_>>) {
        let version = &new.applied.operator_version;
        let same = old.is_some_and(|old| old.applied.operator_version == *version);
        let elsewhere = !version.name.is_empty() && version.namespace != self.request.namespace;
        self.looks_elsewhere.set(elsewhere && !same);
    }

    /// Hears a refusal: an error where it holds.
    fn refuse(&self, refusal: Refusal) -> Result<(), Stop> {
        match self.bench.actions().of(refusal.rule) {
            Action::Deny => return Err(refusal.into()),
            Action::Warn => self.passed.borrow_mut().push(refusal),
            Action::Off => {}
        }
        Ok(())
    }

    /// Tells what would have been refused.
    fn tell(self, mut verdict: Verdict, operation: &Operation<'_>) -> Verdict {
        let passed = self.passed.take();
        let told = self.bench.told();
        if passed.is_empty() && told.is_empty() {
            return verdict;
        }
        passed.iter().for_each(|refusal| verdict.admit(refusal.rule, &refusal.sentence));
        let (object, creation) = match operation {
            Operation::Create(object) => (*object, true),
            Operation::Update(change) => (change.old, false),
            Operation::Delete(old) => (*old, false),
        };
        let instance = name_of(self.request, object);
        for objection in told {
            let rule = objection.rule;
            let objection = if creation { create::at_creation(objection) } else { objection };
            verdict.admit(rule, &objection.full(&instance));
        }
        verdict
    }

    /// `namespace/name`, with the prefix where the name is yet to be generated.
    fn instance(&self, object: &Object<'_>) -> String {
        name_of(self.request, object)
    }

    /// What an execution is scheduled on: the prefix where the name was generated, as the
    /// mutating call does not know the name yet.
    fn subject<'s>(&'s self, change: Option<Change<'s>>, object: &'s Object<'_>) -> Subject<'s> {
        let metadata = change.map_or(&object.metadata, |c| &c.old.metadata);
        let generated = metadata.generate_name.as_deref().filter(|prefix| !prefix.is_empty());
        Subject {
            namespace: self.request.namespace,
            name: generated.unwrap_or(self.request.name),
            version: change.and_then(|c| c.old.metadata.resource_version.as_deref()).unwrap_or("create"),
        }
    }

    /// The spec of an object, which is likely much like another.
    fn spec(&self, object: &Object<'a>, like: Option<&Spec<'a>>) -> Result<Spec<'a>, Stop> {
        Spec::read_like(object, self.request.namespace, like)
            .map_err(|error| refusals::unreadable("spec", &error).into())
    }

    /// The OperatorVersion of a spec; waits for one that the view does not show yet.
    fn package(&self, spec: &Spec<'_>, instance: &str) -> Result<Arc<Package>, Stop> {
        let key = spec.version();
        if key.name.is_empty() {
            return Err(refusals::version_required(instance).into());
        }
        match (self.context.view.operator_version(&key), self.context.patience) {
            (Some(package), _) => Ok(package),
            (None, Patience::Wait) => Err(Stop::Wait(key)),
            (None, Patience::Exhausted) => Err(refusals::version_missing(instance, &key).into()),
        }
    }
}

fn name_of(request: &Request<'_>, object: &Object<'_>) -> String {
    let generated = object.metadata.generate_name.as_deref().unwrap_or_default();
    let name = if request.name.is_empty() { generated } else { request.name };
    format!("{}/{name}", request.namespace)
}
