//! The rules about Instances.

use interlock_core::api::rule::rules;

rules! {
    /// The spec is frozen while a plan is scheduled or runs.
    PLAN_RUNNING = "plan-running" in Freeze, waits;
    /// Emptying planExecution must not cancel a scheduled or running plan.
    PLAN_CANCEL = "plan-cancel" in Lock, waits;
    /// Writing planExecution must not replace or restart a scheduled or running plan.
    PLAN_OVERRIDE = "plan-override" in Lock, waits;
    /// Only the bookkeeping user writes `planExecution.status`.
    PLAN_STATUS = "plan-status" in Lock;
    /// A plan is triggered directly, or by a change of the spec, never both at once.
    PLAN_AND_EDIT = "plan-and-edit" in Requests;
    /// A plan that is triggered must exist.
    PLAN_UNKNOWN = "plan-unknown" in Requests, reads_others;
    /// A change triggers at most one plan.
    PLAN_MULTIPLE = "plan-multiple" in Plans, reads_others;
    /// The `cleanup` plan runs at deletion only.
    PLAN_CLEANUP = "plan-cleanup" in Requests;
    /// planExecution carries the uid that mutation computed.
    PLAN_UID = "plan-uid" in Lock;
    /// Parameters must be defined by the OperatorVersion.
    PARAMETER_UNKNOWN = "parameter-unknown" in Parameters, reads_others;
    /// Immutable parameters keep their values.
    PARAMETER_IMMUTABLE = "parameter-immutable" in Parameters, reads_others;
    /// Values of parameters have the type that the OperatorVersion declares.
    PARAMETER_INVALID = "parameter-invalid" in Parameters, reads_others;
    /// An upgrade keeps the operator, does not lower the version, and follows `upgradableFrom`.
    UPGRADE_PATH = "upgrade-path" in Upgrades, reads_others;
    /// An upgrade is not mixed with a change that triggers another plan.
    UPGRADE_AND_EDIT = "upgrade-and-edit" in Plans, reads_others;
    /// The name of a new Instance is a label value.
    INSTANCE_NAME = "instance-name" in Requests;
    /// An Instance leaves room for the record of its plans.
    INSTANCE_SIZE = "instance-size" in Requests;
    /// An Instance names its OperatorVersion.
    VERSION_REQUIRED = "version-required" in Requests;
    /// The OperatorVersion that an Instance names is there.
    VERSION_MISSING = "version-missing" in References, waits, reads_others;
    /// The OperatorVersions of a namespace fit into the memory that it has.
    VERSION_LEFT_OUT = "version-left-out" in Requests, waits, reads_others;
    /// Only users who may read an OperatorVersion of another namespace may use it.
    VERSION_NAMESPACE = "version-namespace" in Requests;
    /// The spec of an Instance that is being deleted does not change.
    INSTANCE_DELETING = "instance-deleting" in Lock, waits;
    /// The cleanup finalizer stays while a plan is scheduled or runs.
    FINALIZER_KEPT = "finalizer-kept" in Lock, waits;
    /// Only Interlock writes the history of runs.
    HISTORY_OWNER = "history-owner" in Lock;
    /// The object must carry the result of mutation.
    MUTATION_MISSING = "mutation-missing" in Lock, reads_others;
    /// An edit that bypassed admission waits for validation.
    SPEC_DRIFT = "spec-drift" in Lock, waits;
    /// Only Interlock writes `status.planStatus` and its own conditions.
    STATUS_OWNER = "status-owner" in Lock;
    /// A plan request must be well formed, and apply to its run.
    VERB_REQUEST = "verb-request" in Lock;
    /// A user who makes a plan request needs the right to its verb.
    VERB_RIGHTS = "verb-rights" in Lock;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrity of the lock, and what no user may request, cannot be overridden; nor the freeze, which the second
    /// layer holds as well.
    #[test]
    fn what_can_be_overridden_is_about_packages() {
        let can: Vec<&str> =
            RULES.iter().filter(|rule| rule.can_be_overridden()).map(|rule| rule.id()).collect();
        assert_eq!(
            can,
            [
                "plan-multiple",
                "parameter-unknown",
                "parameter-immutable",
                "parameter-invalid",
                "upgrade-path",
                "upgrade-and-edit"
            ]
        );
        assert!(
            interlock_core::kinds::override_object::ids::RULES.iter().all(|rule| !rule.can_be_overridden())
        );
    }
}
