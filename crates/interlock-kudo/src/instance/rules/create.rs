//! CREATE: finalizer, `deploy`, defaults of immutable parameters, last-applied annotation.

use std::borrow::Cow;

use interlock_core::admission::decision::Decision;
use interlock_core::admission::denial::{FieldReason, ViolationField};
use interlock_core::admission::ids::STAMP_MISMATCH;
use interlock_core::admission::review::{Annotations, ReviewObject};
use interlock_core::api::meta;
use interlock_core::api::rule::Rule;
use interlock_core::api::violation::{MessagePrefix, SpecViolation};
use interlock_core::last_applied;
use interlock_core::last_applied::LastAppliedDraft;

use super::context::{Evaluation, Rejection};
use super::mutation::{Finalizer, Mutation, WantedExecution, WantedInstanceStamp};
use crate::instance::change::creation::{Creation, PLAN, violations};
use crate::instance::change::uid::plan_uid;
use crate::instance::rules::ids::{HISTORY_OWNER, INSTANCE_NAME, PARAMETER_INVALID, PLAN_UID};
use crate::instance::spec::SpecView;

impl<'a> Evaluation<'a> {
    /// Decides on a CREATE.
    pub(super) fn create(&self, object: &ReviewObject<'a>) -> Result<Decision, Rejection> {
        let instance = self.instance(object);
        self.violated(name_violation(self.request.name, self.request.namespace), &instance);
        let given = self.spec(object)?;
        self.refers(&given, None);
        let package = self.package(&given, &instance)?;
        let mut spec = given.clone();
        let mut defaults = Vec::new();
        let mut finalizer = Finalizer::Assumed;
        // What it is completed with is not known, or was not when it was mutated: the leader does it.
        let elsewhere = self.refers_to_other_namespace.get();
        let stamped = object.metadata.annotations.stamp_json().is_some();
        let scheduled = !given.execution.plan.is_empty() || stamped && !elsewhere;
        let awaits = match self.context.endpoint.patches() {
            true => self.awaited.get().is_some(),
            false => !scheduled && (self.awaited.get().is_some() || package.is_some()),
        };
        if let Some(package) = &package {
            let creation = Creation::new(package, &given.applied.parameters);
            defaults
                .extend(creation.defaults.iter().map(|(name, value)| (name.to_string(), value.to_string())));
            spec.set(&defaults);
            let found = violations(package, &given.applied.parameters, &spec.applied.parameters);
            self.violated(found.into_iter().map(at_creation), &instance);
            // The API server drops a status that a client sends, so no cleanup has run.
            finalizer = match creation.finalizer {
                true => Finalizer::Required,
                // The API server warns of the finalizer: whether it is there must not tell who may not read the package.
                false if elsewhere => Finalizer::Assumed,
                false => Finalizer::AsWritten,
            };
        }
        if awaits {
            return Ok(self.unscheduled(&given, object, elsewhere));
        }
        let uid = plan_uid(self.subject(None, object), PLAN, spec.hash()).to_string();
        let draft = draft(&spec);
        let made = last_applied::write(&draft, object.metadata.annotations.room(self.request.size));
        let warnings = self.undone(&given, object, Some(&uid), made.as_deref());
        let desired = Mutation {
            execution: Some(WantedExecution {
                plan: Cow::Borrowed(PLAN),
                uid: Cow::Owned(uid),
                status: Cow::Borrowed("NEVER_RUN"),
            }),
            finalizer,
            stamp: WantedInstanceStamp::Made { text: made, draft, before: None },
            history: None,
            defaults,
            dropped: Vec::new(),
        };
        let mut verdict = desired.finish(self, object, &given);
        verdict.plan = Some(PLAN.to_owned());
        warnings.into_iter().for_each(|(rule, text)| verdict.warn(rule, text));
        Ok(verdict)
    }

    /// An Instance that is left to the leader: without a plan, and without what only Interlock writes. The last-applied spec
    /// of one that refers to another namespace proves that the policy has asked for its user's right.
    fn unscheduled(&self, given: &SpecView<'_>, object: &ReviewObject<'_>, elsewhere: bool) -> Decision {
        let none = Annotations::default();
        let execution = WantedExecution { plan: "".into(), uid: "".into(), status: "".into() };
        let mut desired = Mutation { execution: Some(execution), ..Mutation::restoring(&none) };
        let mut made = None;
        if elsewhere {
            let draft = draft(given);
            made = last_applied::write(&draft, object.metadata.annotations.room(self.request.size));
            desired.stamp = WantedInstanceStamp::Made { text: made.clone(), draft, before: None };
            desired.finalizer = Finalizer::Assumed;
        }
        let warnings = self.undone(given, object, None, made.as_deref());
        let mut verdict = desired.finish(self, object, given);
        warnings.into_iter().for_each(|(rule, text)| verdict.warn(rule, text));
        verdict
    }

    /// Warnings about fields of a copied manifest that are replaced.
    fn undone(
        &self,
        given: &SpecView<'_>,
        object: &ReviewObject<'_>,
        uid: Option<&str>,
        stamp: Option<&str>,
    ) -> Vec<(Rule, String)> {
        let mut warnings = Vec::new();
        // Our own uid is an earlier pass, over values that another webhook has changed since.
        let ours = crate::instance::change::uid::is_version_5(&given.execution.uid)
            && given.execution.status == "NEVER_RUN";
        if !self.context.endpoint.patches() || ours {
            return warnings;
        }
        if !given.execution.plan.is_empty() && uid.is_none_or(|uid| given.execution.uid != uid) {
            warnings.push((
                PLAN_UID,
                "spec.planExecution is replaced: a new Instance runs plan 'deploy'".to_owned(),
            ));
        }
        let written = object.metadata.annotations.stamp_text();
        if written.is_some() && written.as_deref() != stamp {
            warnings.push((
                STAMP_MISMATCH,
                "annotation interlock.dev/last-applied-spec is Interlock's own and is replaced".to_owned(),
            ));
        }
        if object.metadata.annotations.own(meta::HISTORY).is_some() {
            warnings.push((
                HISTORY_OWNER,
                "annotation plan.interlock.dev/history is Interlock's own and is taken away".to_owned(),
            ));
        }
        warnings
    }
}

/// The last-applied spec of a new Instance.
fn draft<'s>(spec: &'s SpecView<'_>) -> LastAppliedDraft<'s> {
    let (hash, spec) = (spec.hash(), Some(spec.canonical()));
    LastAppliedDraft { hash, spec, previous: None, uid: None, more: &[], excerpt: None }
}

/// The longest value of a label; every object of an Instance has the name of that in one.
const MAX_LABEL_VALUE: usize = 63;

/// The API server generates no longer names.
fn name_violation(name: &str, namespace: &str) -> Option<SpecViolation> {
    let length = name.len();
    (length > MAX_LABEL_VALUE).then(|| {
        let limit = format!("the label {} of its objects takes at most {MAX_LABEL_VALUE}", meta::INSTANCE);
        let field = ViolationField::new("metadata.name", FieldReason::Invalid, limit.as_str());
        SpecViolation::new(
            INSTANCE_NAME,
            format!("its name has {length} characters, and {limit}"),
            vec![field],
        )
        .next(format!(
            "choose a name of at most {MAX_LABEL_VALUE} characters (`kubectl get instances -n {namespace}` lists the others)"
        ))
        .prelude(MessagePrefix::Create)
    })
}

/// An objection in KUDO's words for a creation.
fn at_creation(mut objection: SpecViolation) -> SpecViolation {
    if objection.rule == PARAMETER_INVALID {
        objection.sentence = format!("parameters are not valid: {}", objection.sentence);
    }
    objection.prelude(MessagePrefix::Create)
}
