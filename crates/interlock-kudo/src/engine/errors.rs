//! Task errors: transient or fatal, with KUDO's texts and event reasons.

use std::collections::BTreeSet;

use interlock_core::api::meta;
use interlock_core::api::object::ObjectKey;
use interlock_core::api::rule::Rule;
use interlock_core::effect::ApiFailure;
use interlock_core::rejection::{Rejection, RejectionKind};
use thiserror::Error;

use crate::api::HeldObject;

/// Reasons of Events about runs that failed, as KUDO names them unless noted. Kinds of tasks define
/// their own beside these.
pub mod reason {
    /// A step names a task that the package does not have.
    pub const UNKNOWN_TASK: &str = "UnknownTaskName";
    /// A task cannot be made from its definition.
    pub const TASK_BUILD: &str = "TaskBuildError";
    /// The run's record has no such phase.
    pub const MISSING_PHASE: &str = "MissingPhaseStatus";
    /// The run's record has no such step.
    pub const MISSING_STEP: &str = "MissingStepStatus";
    /// A template does not render, or its output is not an object.
    pub const RENDERING: &str = "TaskRenderingError";
    /// A rendered object cannot take the Instance's labels, annotations or owner reference.
    pub const ENHANCEMENT: &str = "TaskEnhancementError";
    /// An object is in a state that it never recovers from.
    pub const TERMINAL_STATE: &str = "FailedTerminalStateError";
    /// The package does not have the plan (defined by KUDO, never emitted there).
    pub const INVALID_PLAN: &str = "InvalidPlan";
    /// A parameter has no usable value (defined by KUDO, never emitted there).
    pub const INVALID_PARAMS: &str = "InvalidParams";
    /// The packages that a package installs lead back to it, or are too many.
    pub const CIRCULAR_DEPENDENCY: &str = "CircularDependency";
    /// The API server rejects an object for good; ours, KUDO retries for ever.
    pub const REFUSED: &str = "ObjectRefused";
    /// The namespace is being terminated; ours.
    pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
    /// A phase or step is recorded as failed for good in a plan that runs; ours.
    pub const FAILED_BEFORE: &str = "FailedBefore";
    /// A step exceeded its deadline; ours.
    pub const STEP_DEADLINE: &str = "StepDeadlineExceeded";
    /// The cleanup of a deleted Instance failed beyond its time limit; ours.
    pub const CLEANUP_PATIENCE: &str = "CleanupPatienceExceeded";
    /// An object exists that this Instance did not make; ours.
    pub const NOT_ADOPTED: &str = "ObjectNotAdopted";
    /// A Delete task kept an object; ours.
    pub const KEPT: &str = "ObjectKept";
    /// A child Instance was removed, as the package no longer installs it; ours.
    pub const CHILD_REMOVED: &str = "ChildRemoved";
}

/// Why a task of a package is invalid. Texts are KUDO's (`task/task.go: Build`), where KUDO checks
/// the same.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct InvalidTask {
    /// The field of the task, such as `spec.resources`.
    pub field: String,
    /// The fault.
    pub message: String,
    pub remedy: &'static str,
}

impl InvalidTask {
    /// A fault of a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>, remedy: &'static str) -> Self {
        Self { field: field.into(), message: message.into(), remedy }
    }
}

/// Why a task did not progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// A transient error: the engine retries the task.
    Transient(String),
    /// It was interrupted, but is nearer to its end than before: the engine retries the task soon.
    Interrupted(String),
    /// A rejection by the API server that others can lift, such as a missing right or a full quota: the engine retries
    /// the task.
    Rejected(RejectionKind, String),
    /// The definition of the task is invalid.
    Build(InvalidTask),
    /// A fatal error: it ends the run.
    Fatal {
        /// Event reason.
        reason: &'static str,
        cause: String,
    },
    /// Objects exist that no Instance made: it ends the run, which may be retried with them.
    Held {
        /// Those that can be taken over.
        objects: BTreeSet<HeldObject>,
        cause: String,
    },
}

impl TaskError {
    /// An error that ends the run.
    pub fn fatal(reason: &'static str, cause: impl Into<String>) -> Self {
        Self::Fatal { reason, cause: cause.into() }
    }

    /// The error of a failed lookup or write; a denial by one of the `transient` rules ends no run.
    pub fn api(request: FailedRequest, key: &ObjectKey, failure: &ApiFailure, transient: &[Rule]) -> Self {
        let cause = request.text(key, failure);
        if matches!(failure.code, 403 | 422) && transient.iter().any(|rule| denied_by(failure, *rule)) {
            return Self::Transient(cause);
        }
        let rejection = Rejection::of(failure);
        match rejection.kind {
            RejectionKind::NamespaceTerminating => Self::fatal(reason::NAMESPACE_TERMINATING, cause),
            kind if kind.is_permanent() => Self::fatal(reason::REFUSED, cause),
            // A template that our own rules deny, unless they wait for a plan, is a fault of the package.
            RejectionKind::DeniedByAdmission if failure.code == 422 && is_ours(&rejection) => {
                Self::fatal(reason::REFUSED, cause)
            }
            kind => Self::Rejected(kind, cause),
        }
    }
}

/// The kind of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedRequest {
    /// A lookup.
    Get,
    /// The first write of an object.
    Create,
    /// A later write.
    Patch,
    /// A removal.
    Delete,
}

impl FailedRequest {
    /// KUDO names the object of a failed patch; it repeats the server's message for other failures.
    fn text(self, key: &ObjectKey, failure: &ApiFailure) -> String {
        let message = match failure.message.as_str() {
            "" => format!("{} {key}: the API server answered {}", self.verb(), failure.status()),
            message => immutable(key, message).unwrap_or_else(|| message.to_owned()),
        };
        match self {
            Self::Patch => {
                let namespace = key.namespace.as_deref().unwrap_or_default();
                format!(
                    "failed to patch a {} {namespace}/{}: failed to execute patch: {message}",
                    key.gvk, key.name
                )
            }
            Self::Get | Self::Create | Self::Delete => message,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// How much is shown of a value that may not change.
const VALUE_TOLD: usize = 160;

/// A refusal to change a field for good: the API server puts the whole value, such as a pod template, before its cause.
fn immutable(key: &ObjectKey, message: &str) -> Option<String> {
    const CAUSE: &str = "field is immutable";
    let (before, _) = message.split_once(CAUSE)?;
    let (object, rest) = before.split_once(" is invalid: ")?;
    // One of several causes is not named alone.
    let (field, value) = rest.split_once(": Invalid value: ").filter(|(field, _)| !field.starts_with('['))?;
    let value = value.trim_end_matches(": ");
    let told = &value[..value.floor_char_boundary(VALUE_TOLD)];
    let dots = if told.len() < value.len() { "..." } else { "" };
    // What a deletion of other kinds loses, a new object may not bring back.
    let remedy = match (key.gvk.kind.as_str(), &key.namespace) {
        ("Job", Some(namespace)) => format!(
            "delete the object, which the plan then makes anew (`kubectl delete job.batch {} -n {namespace}`), and retry the plan",
            key.name
        ),
        _ => "leave the field as it is in the package, or make the object anew where nothing is lost by that, and retry the plan"
            .to_owned(),
    };
    Some(format!("{object} is invalid: {field}: {CAUSE}: {remedy}; the value that was refused: {told}{dots}"))
}

/// Whether a webhook or a policy of Interlock denied the request.
fn is_ours(rejection: &Rejection) -> bool {
    let by = rejection.by.as_deref().unwrap_or_default();
    by.starts_with("interlock-")
        || by.strip_suffix(meta::INTERLOCK_GROUP).is_some_and(|rest| rest.ends_with('.'))
}

/// Whether this rule denied the request: the webhook and the policies name it in brackets.
fn denied_by(failure: &ApiFailure, rule: Rule) -> bool {
    let mut parts = failure.message.split('[').skip(1);
    parts.any(|part| part.strip_prefix(rule.id()).is_some_and(|rest| rest.starts_with(']')))
}

/// Whether a write failed because the object has changed since it was read: not an error, the
/// engine reads it again.
///
/// Only where a new read can help: a POST answered 404 has no endpoint, one answered 409 without
/// `AlreadyExists` met a conflict elsewhere (a quota), and a webhook may deny with any code.
pub fn is_stale(request: FailedRequest, failure: &ApiFailure) -> bool {
    let denied = failure.message.starts_with("admission webhook");
    match request {
        FailedRequest::Get => false,
        FailedRequest::Create => failure.code == 409 && failure.reason == "AlreadyExists",
        FailedRequest::Patch | FailedRequest::Delete => matches!(failure.code, 404 | 409) && !denied,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::engine::lookup::FailureKind;

    fn failure(code: u16, reason: &str, message: &str) -> ApiFailure {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        ApiFailure { code, reason, message, namespace_terminating: false }
    }

    const TRANSIENT: &str = "transient";
    const FATAL: &str = "fatal";

    /// Of all that deny, only what can never work ends a run.
    #[rstest]
    #[case(422, "Deployment.apps \"x\" is invalid: spec.selector: field is immutable", FATAL)]
    #[case(
        422,
        "admission webhook \"w\" denied the request: the spec is frozen [plan-running]\n  a: b",
        TRANSIENT
    )]
    #[case(
        422,
        "ValidatingAdmissionPolicy 'p' denied request: Instance a/b: frozen [plan-override]",
        TRANSIENT
    )]
    #[case(
        422,
        "admission webhook \"w\" denied the request: OperatorVersion a/b is not found [version-missing]",
        TRANSIENT
    )]
    #[case(
        422,
        "admission webhook \"instances.interlock.dev\" denied the request: unknown parameter [parameter-unknown]",
        FATAL
    )]
    #[case(
        422,
        "admission webhook \"notinterlock.dev\" denied the request: no [parameter-unknown]",
        "DeniedByAdmission"
    )]
    #[case(422, "admission webhook \"w\" denied the request: no", "DeniedByAdmission")]
    #[case(
        422,
        "x \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
        "DeniedByAdmission"
    )]
    #[case(
        422,
        "x \"a\" is forbidden: ValidatingAdmissionPolicy 'interlock-freeze' denied request: no",
        FATAL
    )]
    #[case(403, "secrets \"a\" is forbidden: exceeded quota: q, requested: count/secrets=1", "QuotaExceeded")]
    #[case(422, "Service \"x\" is invalid: nodePort: provided port is already allocated", "AlreadyAllocated")]
    #[case(403, "secrets is forbidden: User \"u\" cannot create resource \"secrets\"", "RequestRefused")]
    #[case(400, "cannot be handled as a Deployment", "RequestRefused")]
    #[case(500, "etcdserver: request is too large", FATAL)]
    #[case(500, "Internal error occurred: failed calling webhook \"w\": no answer", TRANSIENT)]
    #[case(422, "spec.x[0] [plan-runningx] [plan-running", FATAL)]
    #[case(403, "denied the request: it is used [version-in-use]", TRANSIENT)]
    fn what_ends_a_run(#[case] code: u16, #[case] message: &str, #[case] expected: &str) {
        let key = ObjectKey::of(&serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"},
        }));
        let failure = failure(code, "Invalid", message);
        let transient = crate::transient_rules();
        let found = match TaskError::api(FailedRequest::Create, &key.unwrap(), &failure, transient) {
            TaskError::Fatal { .. } => FATAL,
            TaskError::Rejected(kind, _) => FailureKind::Rejected(kind).stalls().unwrap_or(TRANSIENT),
            _ => TRANSIENT,
        };
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::dumped(
        "batch/v1",
        "Job",
        "Job.batch \"a\" is invalid: spec.template: Invalid value: {\"x\":{}}: field is immutable",
        "Job.batch \"a\" is invalid: spec.template: field is immutable: delete the object, which the plan then makes anew (`kubectl delete job.batch a -n ns`), and retry the plan; the value that was refused: {\"x\":{}}"
    )]
    #[case::several(
        "apps/v1",
        "Deployment",
        "Deployment.apps \"a\" is invalid: [spec.selector: Invalid value: 1: field is immutable, spec.x: Required value]",
        "Deployment.apps \"a\" is invalid: [spec.selector: Invalid value: 1: field is immutable, spec.x: Required value]"
    )]
    #[case::data(
        "v1",
        "PersistentVolumeClaim",
        "PersistentVolumeClaim \"a\" is invalid: spec: Invalid value: 1: field is immutable",
        "PersistentVolumeClaim \"a\" is invalid: spec: field is immutable: leave the field as it is in the package, or make the object anew where nothing is lost by that, and retry the plan; the value that was refused: 1"
    )]
    #[case::other(
        "v1",
        "Secret",
        "Secret \"a\" is invalid: data: Required value",
        "Secret \"a\" is invalid: data: Required value"
    )]
    fn a_field_that_may_not_change(
        #[case] version: &str,
        #[case] kind: &str,
        #[case] message: &str,
        #[case] told: &str,
    ) {
        let key = ObjectKey::of(&serde_json::json!({
            "apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "ns"},
        }));
        assert_eq!(FailedRequest::Create.text(&key.unwrap(), &failure(422, "Invalid", message)), told);
    }

    #[rstest]
    #[case(FailedRequest::Get, 409, "Conflict", "", false)]
    #[case(FailedRequest::Create, 409, "AlreadyExists", "", true)]
    #[case(FailedRequest::Create, 409, "Conflict", "Operation cannot be fulfilled on resourcequotas", false)]
    #[case(FailedRequest::Create, 404, "NotFound", "namespaces \"ns\" not found", false)]
    #[case(FailedRequest::Patch, 409, "Conflict", "the object has been modified", true)]
    #[case(FailedRequest::Patch, 404, "NotFound", "", true)]
    #[case(FailedRequest::Patch, 409, "Conflict", "admission webhook \"x\" denied the request: later", false)]
    #[case(FailedRequest::Patch, 500, "", "", false)]
    #[case(FailedRequest::Delete, 409, "Conflict", "Precondition failed", true)]
    fn stale(
        #[case] request: FailedRequest,
        #[case] code: u16,
        #[case] reason: &str,
        #[case] message: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(is_stale(request, &failure(code, reason, message)), expected);
    }
}
