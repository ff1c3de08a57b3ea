//! The second layer: what CEL can say of the rules, as ValidatingAdmissionPolicies.
//!
//! They hold while the webhook is down or its configuration is gone. They see the object after
//! the webhook's mutation, under the user's identity, so what the webhook writes must pass too:
//! `planExecution` as `{plan, uid, NEVER_RUN}`.
//!
//! Two traps shape the expressions (both measured): a variable that keeps an optional value
//! reads as absent later, so each ends in `orValue`; and a message with a line break is dropped,
//! so each is one line, with a plain one beside it.

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation, Variable,
};
use serde_json::{Value, json};

use super::webhooks::{cel_string, not_ourselves};
use super::{Options, cluster_wide, strings};
use crate::admission::Freeze;
use crate::api::meta;

/// A locked Instance keeps its spec and our finalizer.
pub const FREEZE: &str = "interlock-freeze";
/// `planExecution` is written as a trigger or not at all.
pub const PLAN_EXECUTION: &str = "interlock-plan-execution";
/// `planStatus` and our conditions are written by the process only.
pub const STATUS: &str = "interlock-status";

/// What is bookkept of the old object: `locked` is the predicate of [`crate::plan::lock`].
const LOCK: [(&str, &str); 7] = [
    ("plan", "oldObject.?spec.?planExecution.?planName.orValue('')"),
    ("uid", "oldObject.?spec.?planExecution.?uid.orValue('')"),
    ("entries", "oldObject.?status.?planStatus.orValue({})"),
    ("entry", "oldObject.?status.?planStatus[?variables.plan].orValue({})"),
    (
        "scheduled",
        "variables.plan != '' && !(variables.uid != '' && variables.entry.?uid.orValue('') == variables.uid \
         && variables.entry.?status.orValue('') in ['COMPLETE', 'FATAL_ERROR'])",
    ),
    (
        "running",
        "variables.entries.filter(p, variables.entries[p].?status.orValue('') in ['PENDING', 'IN_PROGRESS', 'ERROR'])",
    ),
    ("locked", "variables.scheduled || variables.running.size() > 0"),
];

/// Who holds the lock, for people.
const HOLDER: [(&str, &str); 2] = [
    (
        "holder",
        "variables.scheduled ? variables.plan : (variables.running.size() > 0 ? variables.running[0] : '')",
    ),
    (
        "state",
        "variables.scheduled && variables.entry.?uid.orValue('') != variables.uid ? 'scheduled' \
         : variables.entries[?variables.holder].?status.orValue('scheduled')",
    ),
];

/// What is carried out, compared as the stamp's hash is made: name and namespace of the
/// OperatorVersion, the namespace defaulted, and the parameters.
const SPEC: [(&str, &str); 4] = [
    ("oldVersion", "oldObject.?spec.?operatorVersion.?namespace.orValue('')"),
    ("newVersion", "object.?spec.?operatorVersion.?namespace.orValue('')"),
    (
        "sameVersion",
        "object.?spec.?operatorVersion.?name.orValue('') == oldObject.?spec.?operatorVersion.?name.orValue('') \
         && (variables.newVersion == '' ? request.namespace : variables.newVersion) \
         == (variables.oldVersion == '' ? request.namespace : variables.oldVersion)",
    ),
    ("sameParameters", "object.?spec.?parameters.orValue({}) == oldObject.?spec.?parameters.orValue({})"),
];

/// `planExecution` before and after; there is no old object on CREATE.
const EXECUTION: [(&str, &str); 7] = [
    ("old", "oldObject == null ? {} : oldObject.?spec.?planExecution.orValue({})"),
    ("newPlan", "object.?spec.?planExecution.?planName.orValue('')"),
    ("newUid", "object.?spec.?planExecution.?uid.orValue('')"),
    ("newStatus", "object.?spec.?planExecution.?status.orValue('')"),
    (
        "sameExecution",
        "variables.newPlan == variables.old.?planName.orValue('') && variables.newUid == variables.old.?uid.orValue('') \
         && variables.newStatus == variables.old.?status.orValue('')",
    ),
    ("past", "oldObject == null ? {} : oldObject.?status.?planStatus.orValue({})"),
    (
        "usedUp",
        "variables.past.exists(p, variables.past[p].?uid.orValue('') == variables.newUid \
         && variables.past[p].?status.orValue('') in ['COMPLETE', 'FATAL_ERROR'])",
    ),
];

const STAMP: [(&str, &str); 2] = [
    ("newStamp", "object.?metadata.?annotations[?'interlock.dev/last-applied-spec'].orValue('')"),
    (
        "oldStamp",
        "oldObject == null ? '' : oldObject.?metadata.?annotations[?'interlock.dev/last-applied-spec'].orValue('')",
    ),
];

/// Policies, each followed by its binding.
pub fn all(options: &Options) -> Vec<Value> {
    [freeze(options), plan_execution(options), status(options)]
        .into_iter()
        .flat_map(|policy| [json!(policy), json!(binding(&policy))])
        .collect()
}

fn freeze(options: &Options) -> ValidatingAdmissionPolicy {
    let mut variables = LOCK.to_vec();
    variables.extend(HOLDER);
    variables.extend(SPEC);
    variables.extend(EXECUTION);
    let (parameters, execution) = match options.freeze {
        Freeze::Strict => ("variables.sameParameters", "variables.sameExecution"),
        // A restart of the running plan, as the webhook writes it; `cleanup` while deleting.
        Freeze::SamePlan => (
            "variables.sameParameters || (variables.newPlan == variables.plan && variables.newUid != variables.uid \
             && variables.newStatus == 'NEVER_RUN')",
            "variables.newPlan == variables.plan \
             || (variables.newPlan == 'cleanup' && object.?metadata.?deletionTimestamp.hasValue())",
        ),
    };
    let keeps_finalizer = format!(
        "!({0} in oldObject.?metadata.?finalizers.orValue([])) || {0} in object.?metadata.?finalizers.orValue([])",
        cel_string(meta::FINALIZER)
    );
    let validations = vec![
        guard(
            &unless_locked(&format!("variables.sameVersion && ({parameters})")),
            "the spec of an Instance is frozen while a plan is scheduled or runs",
            &about(
                "the spec is frozen while plan ' + variables.holder + ' is ' + variables.state + '; wait until it has ended",
            ),
        ),
        guard(
            &unless_locked(execution),
            "a plan that is scheduled or runs is neither cancelled nor replaced by an edit",
            &about(
                "spec.planExecution is frozen while plan ' + variables.holder + ' is ' + variables.state + '; wait until it has ended",
            ),
        ),
        guard(
            &unless_locked(&keeps_finalizer),
            "our finalizer stays while a plan is scheduled or runs",
            &about(
                "finalizer kudo.dev.instance.cleanup stays while plan ' + variables.holder + ' is ' + variables.state + '; wait until it has ended",
            ),
        ),
    ];
    policy(FREEZE, ("instances", &["UPDATE"]), &variables, validations, options)
}

fn plan_execution(options: &Options) -> ValidatingAdmissionPolicy {
    let mut variables = EXECUTION.to_vec();
    variables.extend(STAMP);
    let validations = vec![
        guard(
            "variables.sameExecution || (variables.newPlan == '' && variables.newUid == '' && variables.newStatus == '') \
             || (variables.newPlan != '' && variables.newUid != '' && variables.newStatus == 'NEVER_RUN')",
            "spec.planExecution is changed only to nothing, or to a planName with a uid and status NEVER_RUN",
            &about(
                "spec.planExecution is changed only to nothing, or to a planName with a uid and status NEVER_RUN; it asks for status ' + (variables.newStatus == '' ? 'none' : variables.newStatus)",
            ),
        ),
        guard(
            "variables.sameExecution || variables.newUid == '' || !variables.usedUp",
            "spec.planExecution.uid is that of a run that has ended; a new run needs a new uid",
            &about("spec.planExecution.uid is that of a run that has ended; a new run needs a new uid"),
        ),
        guard(
            // Only the head is matched: the cost of a regular expression grows with the text.
            "variables.newStamp == variables.oldStamp || variables.newStamp == '' \
             || (variables.newStamp.size() > 96 && variables.newStamp.endsWith('}') && variables.newStamp.substring(0, 96)\
             .matches('^\\\\{\"v\":1,\"hash\":\"sha256:[0-9a-f]{64}\",\"(spec|ref)\":'))",
            "annotation interlock.dev/last-applied-spec is written by Interlock; leave it as it is, or drop it",
            &about(
                "annotation interlock.dev/last-applied-spec is written by Interlock; leave it as it is, or drop it",
            ),
        ),
    ];
    policy(PLAN_EXECUTION, ("instances", &["CREATE", "UPDATE"]), &variables, validations, options)
}

fn status(options: &Options) -> ValidatingAdmissionPolicy {
    let ours = meta::condition::OURS.map(cel_string).join(", ");
    let of_type = |object: &str| {
        format!("{object}.?status.?conditions.orValue([]).filter(c, c.?type.orValue('') == t)")
    };
    let validations = vec![
        guard(
            "object.?status.?planStatus.orValue({}) == oldObject.?status.?planStatus.orValue({})",
            "status.planStatus is written by Interlock only",
            &about(
                "status.planStatus is written by Interlock only, and not by ' + request.userInfo.username",
            ),
        ),
        guard(
            &format!("[{ours}].all(t, {} == {})", of_type("object"), of_type("oldObject")),
            "the conditions Ready, PlanRunning, Stalled, SpecDrift and SpecStamped are written by Interlock only",
            &about(
                "the conditions Ready, PlanRunning, Stalled, SpecDrift and SpecStamped are written by Interlock only, and not by ' + request.userInfo.username",
            ),
        ),
    ];
    policy(STATUS, ("instances/status", &["UPDATE"]), &[], validations, options)
}

fn unless_locked(expression: &str) -> String {
    format!("!variables.locked || ({expression})")
}

/// A CEL expression of one line that names the Instance first. `text` goes on inside of the
/// quotes, which it closes where it ends in an expression.
fn about(text: &str) -> String {
    let end = if text.matches('\'').count() % 2 == 0 { "'" } else { "" };
    format!("'Instance ' + request.namespace + '/' + request.name + ': {text}{end}")
}

/// `Invalid`, as kubectl then prints the text alone, and not the whole patch before it.
fn guard(expression: &str, message: &str, message_expression: &str) -> Validation {
    Validation {
        expression: expression.to_owned(),
        message: Some(message.to_owned()),
        message_expression: Some(message_expression.to_owned()),
        reason: Some("Invalid".to_owned()),
    }
}

fn policy(
    name: &str,
    (resource, operations): (&str, &[&str]),
    variables: &[(&str, &str)],
    validations: Vec<Validation>,
    options: &Options,
) -> ValidatingAdmissionPolicy {
    let rule = NamedRuleWithOperations {
        api_groups: Some(strings([meta::KUDO_GROUP])),
        api_versions: Some(strings([meta::KUDO_VERSION])),
        operations: Some(operations.iter().map(|&o| o.to_owned()).collect()),
        resources: Some(strings([resource])),
        scope: Some("Namespaced".to_owned()),
        resource_names: None,
    };
    let variables: Vec<_> = variables
        .iter()
        .map(|&(name, expression)| Variable { name: name.to_owned(), expression: expression.to_owned() })
        .collect();
    ValidatingAdmissionPolicy {
        metadata: cluster_wide(name),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            match_conditions: Some(vec![not_ourselves(options)]),
            match_constraints: Some(MatchResources {
                match_policy: Some("Equivalent".to_owned()),
                namespace_selector: options.namespace_selector(),
                resource_rules: Some(vec![rule]),
                ..MatchResources::default()
            }),
            validations: Some(validations),
            variables: (!variables.is_empty()).then_some(variables),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    }
}

fn binding(policy: &ValidatingAdmissionPolicy) -> ValidatingAdmissionPolicyBinding {
    let name = policy.metadata.name.clone().unwrap_or_default();
    ValidatingAdmissionPolicyBinding {
        metadata: cluster_wide(&name),
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: name,
            validation_actions: strings(["Deny"]),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(freeze: Freeze) -> Vec<Value> {
        let options = Options { freeze, ..Options::default() };
        all(&options).into_iter().filter(|o| o["kind"] == "ValidatingAdmissionPolicy").collect()
    }

    #[test]
    fn every_policy_fails_closed_and_is_bound() {
        let all = all(&Options::default());
        for pair in all.chunks(2) {
            assert_eq!(pair[0]["spec"]["failurePolicy"], "Fail");
            assert_eq!(pair[1]["spec"]["policyName"], pair[0]["metadata"]["name"]);
            assert_eq!(pair[1]["spec"]["validationActions"], json!(["Deny"]));
        }
    }

    /// A line break loses the message; an optional value in a variable reads as absent.
    #[test]
    fn no_trap_is_stepped_into() {
        for policy in [Freeze::Strict, Freeze::SamePlan].into_iter().flat_map(policies) {
            for validation in policy["spec"]["validations"].as_array().unwrap() {
                for text in ["message", "messageExpression"] {
                    assert!(!validation[text].as_str().unwrap().contains('\n'), "{validation}");
                }
            }
            for variable in policy["spec"]["variables"].as_array().into_iter().flatten() {
                let expression = variable["expression"].as_str().unwrap();
                assert_eq!(
                    expression.contains(".?"),
                    expression.contains("orValue"),
                    "{expression} keeps an optional value"
                );
            }
        }
    }

    #[test]
    fn only_the_freeze_depends_on_the_mode() {
        let (strict, same) = (policies(Freeze::Strict), policies(Freeze::SamePlan));
        assert_ne!(strict[0], same[0]);
        assert_eq!(strict[1..], same[1..]);
    }
}
