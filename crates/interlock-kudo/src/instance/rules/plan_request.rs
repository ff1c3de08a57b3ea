//! Plan requests, which users write as an annotation: well formed, of this Instance, for a run that
//! permits them, and alone. A policy decides whether the user may, as it can use the API server's
//! authorizer.

use std::borrow::Cow;

use interlock_core::admission::decision::{Decision, Outcome};
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::patch::Operations;
use interlock_core::admission::request::{ObjectChange, Operation};
use interlock_core::admission::review::{Annotations, ReviewObject};
use interlock_core::api::meta;
use interlock_core::api::stamp::Envelope;
use interlock_core::api::violation::InstanceCommand;

use super::context::{Evaluation, Rejection};
use super::{commands, denials};
use crate::instance::change::history;
use crate::instance::change::lock::LockEntry;
use crate::instance::change::plan_request;
use crate::instance::change::plan_request::{
    PlanRequest, RequestError, RequestObjection, RequestPreconditions, Runs,
};
use crate::instance::rules::ids::VERB_REQUEST;
use crate::instance::spec::SpecView;
use crate::instance::status::StatusView;

const REQUEST: &str = "metadata.annotations[plan.interlock.dev/request]";
const REASON: &str = "metadata.annotations[plan.interlock.dev/reason]";
const REQUESTED_BY: &str = "metadata.annotations[plan.interlock.dev/requested-by]";

/// The three annotations of a request, if present.
struct Written<'a> {
    request: Option<Cow<'a, str>>,
    reason: Option<Cow<'a, str>>,
    by: Option<Cow<'a, str>>,
}

impl<'a> Written<'a> {
    fn of(annotations: &Annotations<'a>) -> Self {
        Self {
            request: annotations.own_text(meta::REQUEST),
            reason: annotations.own_text(meta::REASON),
            by: annotations.own_text(meta::REQUESTED_BY),
        }
    }

    fn keys(&self) -> impl Iterator<Item = &'static str> {
        let there = [
            self.request.as_ref().map(|_| meta::REQUEST),
            self.reason.as_ref().map(|_| meta::REASON),
            self.by.as_ref().map(|_| meta::REQUESTED_BY),
        ];
        there.into_iter().flatten()
    }

    fn request_text(&self) -> Option<&str> {
        self.request.as_deref().filter(|request| !request.is_empty())
    }
}

impl<'a> Evaluation<'a> {
    /// Adds the effect of a plan request to the decision about the object.
    pub(super) fn requests(
        &self,
        operation: &Operation<'a>,
        verdict: Decision,
    ) -> Result<Decision, Rejection> {
        match operation {
            Operation::Create(object) => Ok(self.no_request(object, verdict)),
            Operation::Update(change) => self.request(*change, verdict),
            Operation::Delete(_) => Ok(verdict),
        }
    }

    /// A new Instance has no run: drops the request of a copied manifest.
    fn no_request(&self, object: &ReviewObject<'a>, verdict: Decision) -> Decision {
        let written = Written::of(&object.metadata.annotations);
        let mut operations = Operations::default();
        written.keys().for_each(|key| operations.drop_annotation(key));
        self.mend(verdict, operations, || {
            let detail = "a new Instance has no run that it could be asked of".to_owned();
            (REQUEST, detail)
        })
    }

    fn request(&self, change: ObjectChange<'a>, verdict: Decision) -> Result<Decision, Rejection> {
        let annotations = &change.object.metadata.annotations;
        if annotations.own(meta::REQUEST).is_none() {
            return Ok(verdict);
        }
        let (new, old) = (Written::of(annotations), Written::of(&change.old.metadata.annotations));
        let Some(text) = new.request_text() else { return Ok(verdict) };
        let mut operations = Operations::default();
        if new.request == old.request {
            // While the request exists, its user and reason stay.
            for (key, now, before) in
                [(meta::REASON, &new.reason, &old.reason), (meta::REQUESTED_BY, &new.by, &old.by)]
            {
                match before {
                    Some(before) if now.as_ref() != Some(before) => operations.annotation(key, before),
                    None if now.is_some() => operations.drop_annotation(key),
                    _ => {}
                }
            }
            return Ok(self.mend(verdict, operations, || {
                (REQUEST, "who asked and why stay as they are while the request is there".to_owned())
            }));
        }
        self.judge(change, text, new.reason.as_deref().unwrap_or_default())?;
        if new.by.as_deref() != Some(self.request.user) {
            operations.annotation(meta::REQUESTED_BY, self.request.user);
        }
        Ok(self.mend(verdict, operations, || {
            (REQUESTED_BY, format!("must be {:?}, who asks", self.request.user))
        }))
    }

    fn judge(&self, change: ObjectChange<'a>, text: &str, reason: &str) -> Result<(), Rejection> {
        let instance = self.instance(change.old);
        let malformed = |error: &RequestError| {
            let (field, shown) = match error {
                RequestError::NoReason | RequestError::Reason(_) => (REASON, FieldReason::Required),
                _ => (REQUEST, FieldReason::Invalid),
            };
            Denial::invalid(
                VERB_REQUEST,
                format!("Instance {instance}: the request cannot be read"),
                vec![ViolationField::new(field, shown, error.to_string())],
            )
            .next(commands::request(&instance))
        };
        let request = text.parse::<PlanRequest>();
        let errors = [request.as_ref().err().cloned(), plan_request::check_reason(reason).err()];
        errors.iter().flatten().for_each(|error| self.violations.push(malformed(error)));
        let Ok(request) = request else { return Ok(()) };
        let spec = self.spec(change.object)?;
        let before = self.spec(change.old)?;
        let alone = spec.applied == before.applied
            && (!spec.execution.said || spec.execution.same(&before.execution));
        if !alone {
            let denial = Denial::invalid(
                VERB_REQUEST,
                format!("Instance {instance}: a request is made alone"),
                vec![ViolationField::new(
                    REQUEST,
                    FieldReason::Forbidden,
                    "the spec changes in the same write",
                )],
            );
            self.violations.push(denial.next(denials::next(
                "send the request first, and the change of the spec when its run has ended",
                InstanceCommand::Await,
                &instance,
            )));
        }
        self.holds(change, &request, &before, &instance)
    }

    /// Whether the request can be carried out on the Instance in its present state.
    fn holds(
        &self,
        change: ObjectChange<'a>,
        request: &PlanRequest,
        spec: &SpecView<'_>,
        instance: &str,
    ) -> Result<(), Rejection> {
        let status = StatusView::read(change.old).map_err(|_| Rejection::unreadable_status(change.old))?;
        let entries: Vec<LockEntry<'_>> = status.entries().collect();
        let requests = status.requests();
        let (plan, uid) = (&spec.execution.plan, &spec.execution.uid);
        let runs = Runs { plan, uid, entries: &entries, requests: requests.as_ref() };
        let annotations = &change.old.metadata.annotations;
        let stamp = annotations.stamp_text();
        let past = annotations.own_text(meta::HISTORY);
        let ground = RequestPreconditions {
            previous: stamp.as_deref().and_then(Envelope::parse).is_some_and(|e| e.previous.is_some()),
            deleting: change.old.metadata.deletion_timestamp.is_some(),
            used: history::knows(&history::read(past.as_deref()), &request.nonce),
        };
        if let Err(objection) = plan_request::validate(request, runs, ground) {
            let denial = Denial::invalid(
                VERB_REQUEST,
                format!("Instance {instance}: {} is not possible", request.verb.word()),
                vec![ViolationField::new(REQUEST, FieldReason::Invalid, objection.to_string())],
            );
            self.violations.push(denial.next(remedy(&objection, instance)));
        }
        Ok(())
    }

    /// Adds the operations to the patch; a validating endpoint gets a violation instead.
    fn mend(
        &self,
        mut verdict: Decision,
        operations: Operations,
        wrong: impl FnOnce() -> (&'static str, String),
    ) -> Decision {
        if operations.is_empty() {
            return verdict;
        }
        if !self.context.endpoint.patches() {
            let (field, detail) = wrong();
            let instance = format!("{}/{}", self.request.namespace, self.request.name);
            self.violations.push(denials::not_mutated(VERB_REQUEST, &instance, field, &detail));
            return verdict;
        }
        if let Outcome::Allow { patch } = &mut verdict.outcome {
            patch.0.extend(operations.finish().0);
        }
        verdict
    }
}

fn remedy(objection: &RequestObjection, instance: &str) -> String {
    let object = commands::object(instance);
    let show = commands::text(InstanceCommand::Show, instance);
    match objection {
        RequestObjection::Used(_) => {
            format!("leave it; {show} or `interlock plan history {object}` shows what became of it")
        }
        RequestObjection::NoPrevious => format!(
            "request abort in place of abort-revert, as {show} shows no earlier spec; `interlock plan abort {object} \
             --reason WHY` without --revert does"
        ),
        RequestObjection::Deleting => denials::next(
            "wait; an abort of cleanup lets the Instance go",
            InstanceCommand::AwaitDeletion,
            instance,
        ),
        RequestObjection::Paused { .. } => format!(
            "leave it ({show} tells who paused it), or let the run go on by `interlock plan resume {object} --reason WHY`"
        ),
        RequestObjection::NotPaused { .. } => {
            format!("leave it, as the run goes on; {show} shows how far it is")
        }
        RequestObjection::NothingToAdopt { .. } => {
            format!("correct what ended it ({show} tells), then `interlock plan retry {object} --reason WHY`")
        }
        RequestObjection::Over { .. } => format!(
            "run the plan again by {}, or where it failed by `interlock plan retry {object} --reason WHY`",
            commands::text(InstanceCommand::Trigger, instance)
        ),
        _ => format!("name one of the runs that {show} or `interlock plan status {object}` shows"),
    }
}
