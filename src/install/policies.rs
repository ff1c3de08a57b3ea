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
use crate::api::rule::Rule;
use crate::plan::verb;

/// A locked Instance keeps its spec. Bound apart from the rest: its binding leaves the namespaces
/// out in which the settings let the freeze pass.
pub const FREEZE: &str = meta::install::FREEZE_BINDING;
/// A locked Instance keeps its `planExecution` and our finalizer, one that is being deleted its
/// spec.
pub const LOCK: &str = "interlock-lock";
/// `planExecution` is written as a trigger or not at all.
pub const PLAN_EXECUTION: &str = "interlock-plan-execution";
/// `planStatus` and our conditions are written by the process only.
pub const STATUS: &str = "interlock-status";

/// What people ask of a run, by the API server's own authorizer.
pub const VERBS: &str = "interlock-verbs";

/// OperatorVersions of other namespaces, by the API server's own authorizer.
pub const VERSIONS: &str = "interlock-versions";

/// The lock: the predicate of [`crate::plan::lock`], on the old object.
const LOCKED: [(&str, &str); 3] = [
    ("entry", "variables.past[?variables.oldPlan].orValue({})"),
    (
        "scheduled",
        "variables.oldPlan != '' && !(variables.oldUid != '' && variables.entry.?uid.orValue('') == variables.oldUid \
         && variables.entry.?status.orValue('') in ['COMPLETE', 'FATAL_ERROR'])",
    ),
    (
        "running",
        "variables.past.filter(p, variables.past[p].?status.orValue('') in ['PENDING', 'IN_PROGRESS', 'ERROR'])",
    ),
];

/// Who holds the lock, for people.
const HOLDER: [(&str, &str); 3] = [
    ("locked", "variables.scheduled || variables.running.size() > 0"),
    (
        "holder",
        "variables.scheduled ? variables.oldPlan : (variables.running.size() > 0 ? variables.running[0] : '')",
    ),
    (
        "state",
        "variables.scheduled && variables.entry.?uid.orValue('') != variables.oldUid ? 'scheduled' \
         : variables.past[?variables.holder].?status.orValue('scheduled')",
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
const EXECUTION: [(&str, &str); 11] = [
    ("old", "oldObject == null ? {} : oldObject.?spec.?planExecution.orValue({})"),
    ("oldPlan", "variables.old.?planName.orValue('')"),
    ("oldUid", "variables.old.?uid.orValue('')"),
    ("oldStatus", "variables.old.?status.orValue('')"),
    ("newPlan", "object.?spec.?planExecution.?planName.orValue('')"),
    ("newUid", "object.?spec.?planExecution.?uid.orValue('')"),
    ("newStatus", "object.?spec.?planExecution.?status.orValue('')"),
    (
        "sameExecution",
        "variables.newPlan == variables.oldPlan && variables.newUid == variables.oldUid \
         && variables.newStatus == variables.oldStatus",
    ),
    ("past", "oldObject == null ? {} : oldObject.?status.?planStatus.orValue({})"),
    (
        "usedUp",
        "variables.past.exists(p, variables.past[p].?uid.orValue('') == variables.newUid \
         && variables.past[p].?status.orValue('') in ['COMPLETE', 'FATAL_ERROR'])",
    ),
    ("deleting", "has(object.metadata.deletionTimestamp)"),
];

const STAMP: [(&str, &str); 2] = [
    ("newStamp", "object.?metadata.?annotations[?'interlock.dev/last-applied-spec'].orValue('')"),
    (
        "oldStamp",
        "oldObject == null ? '' : oldObject.?metadata.?annotations[?'interlock.dev/last-applied-spec'].orValue('')",
    ),
];

/// What of `planExecution` a locked Instance still lets change.
fn execution_kept(freeze: Freeze) -> String {
    match freeze {
        Freeze::Strict => "variables.sameExecution".to_owned(),
        // A restart of the running plan, as the webhook writes it; `cleanup` while deleting.
        Freeze::SamePlan => format!(
            "variables.sameExecution || ({}) || (variables.newPlan == 'cleanup' && variables.deleting)",
            restart()
        ),
    }
}

fn restart() -> String {
    format!("variables.newPlan == variables.holder && {SCHEDULES}")
}

/// Policies, each followed by its binding.
pub fn all(options: &Options) -> Vec<Value> {
    let all = [
        freeze(options),
        lock(options),
        plan_execution(options),
        status(options),
        verbs(options).0,
        versions(options),
    ];
    all.into_iter().flat_map(|policy| [json!(policy), json!(binding(&policy))]).collect()
}

/// The policy that guards what people ask of a run, and its binding: nothing is carried out where
/// these are not intact.
///
/// Only the API server knows what a user may do. It is asked for the verb of that name on the
/// Instance, and nothing that a user writes can pretend to be somebody else.
pub fn verbs(options: &Options) -> (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding) {
    let policy = verbs_policy(options);
    let binding = binding(&policy);
    (policy, binding)
}

/// Whether `planExecution` is written as the webhook writes a run that it schedules.
const SCHEDULES: &str =
    "variables.newUid != '' && variables.newUid != variables.oldUid && variables.newStatus == 'NEVER_RUN'";

const WHILE_IT_RUNS: &str =
    "while plan ' + variables.holder + ' is ' + variables.state + '; wait until it has ended";

/// The API server tells only one denial, and which policy it asks first is not settled: where
/// [`LOCK`] refuses because of `planExecution` or the deletion, it alone speaks.
fn freeze(options: &Options) -> ValidatingAdmissionPolicy {
    let mut variables = EXECUTION.to_vec();
    variables.extend(LOCKED);
    variables.extend(HOLDER);
    variables.extend(SPEC);
    let parameters = match options.freeze {
        Freeze::Strict => "variables.sameParameters".to_owned(),
        Freeze::SamePlan => format!("variables.sameParameters || ({})", restart()),
    };
    let execution = execution_kept(options.freeze);
    let validations = vec![guard(
        Rule::PlanRunning,
        &format!(
            "!variables.locked || variables.deleting || !({execution}) || (variables.sameVersion && ({parameters}))"
        ),
        "the spec is frozen while a plan is scheduled or runs",
        &format!("the spec is frozen {WHILE_IT_RUNS}"),
    )];
    policy(FREEZE, ("instances", &["UPDATE"]), &variables, validations, options)
}

fn lock(options: &Options) -> ValidatingAdmissionPolicy {
    let mut variables = EXECUTION.to_vec();
    variables.extend(LOCKED);
    variables.extend(HOLDER);
    variables.extend(SPEC);
    let execution = execution_kept(options.freeze);
    let finalizer = cel_string(meta::FINALIZER);
    let kept = format!(
        "!({finalizer} in oldObject.?metadata.?finalizers.orValue([])) \
         || {finalizer} in object.?metadata.?finalizers.orValue([])"
    );
    let validations = vec![
        guard(
            Rule::PlanOverride,
            &format!("!variables.locked || {execution}"),
            "spec.planExecution is frozen while a plan is scheduled or runs",
            &format!("spec.planExecution is frozen {WHILE_IT_RUNS}"),
        ),
        guard(
            Rule::FinalizerKept,
            &format!("!variables.locked || {kept}"),
            "our finalizer stays while a plan is scheduled or runs",
            &format!("finalizer {} stays {WHILE_IT_RUNS}", meta::FINALIZER),
        ),
        guard(
            Rule::InstanceDeleting,
            "!variables.deleting || (variables.sameVersion && variables.sameParameters)",
            "the spec does not change while the Instance is being deleted",
            "the spec does not change while the Instance is being deleted; let the deletion end",
        ),
    ];
    policy(LOCK, ("instances", &["UPDATE"]), &variables, validations, options)
}

fn plan_execution(options: &Options) -> ValidatingAdmissionPolicy {
    let mut variables = EXECUTION.to_vec();
    variables.extend(LOCKED);
    variables.extend(HOLDER);
    variables.extend(STAMP);
    // Where the lock refuses, it alone speaks.
    let frozen = format!("variables.locked && !({})", execution_kept(options.freeze));
    variables.push(("frozen", &frozen));
    let cleanup = match options.freeze {
        Freeze::Strict => "variables.newPlan != 'cleanup'",
        Freeze::SamePlan => "variables.newPlan != 'cleanup' || variables.deleting",
    };
    let validations = vec![
        guard(
            Rule::PlanStatus,
            &format!(
                "variables.frozen || variables.sameExecution \
                 || (variables.newPlan == '' && (variables.newUid == '' || variables.newUid == variables.oldUid) && (variables.newStatus == '' || variables.newStatus == variables.oldStatus)) \
                 || (variables.newPlan != '' && {SCHEDULES})"
            ),
            "spec.planExecution is changed only to nothing, or to a planName with a new uid and status NEVER_RUN",
            "spec.planExecution is changed only to nothing, or to a planName with a new uid and status NEVER_RUN",
        ),
        guard(
            Rule::PlanUid,
            "variables.frozen || variables.sameExecution || variables.newPlan == '' || !variables.usedUp",
            "spec.planExecution.uid is that of a run that has ended; a new run needs a new uid",
            "spec.planExecution.uid is that of a run that has ended; a new run needs a new uid",
        ),
        guard(
            Rule::PlanCleanup,
            &format!("variables.frozen || variables.sameExecution || {cleanup}"),
            "only Interlock schedules plan cleanup, when the Instance is deleted",
            "only Interlock schedules plan cleanup, when the Instance is deleted",
        ),
        guard(
            Rule::InstanceDeleting,
            "variables.frozen || variables.sameExecution || !variables.deleting || variables.newPlan == '' || variables.newPlan == 'cleanup'",
            "no plan but cleanup is scheduled while the Instance is being deleted",
            "no plan but cleanup is scheduled while the Instance is being deleted; let the deletion end",
        ),
        guard(
            Rule::StampMismatch,
            // Only the head is matched: the cost of a regular expression grows with the text.
            "variables.newStamp == variables.oldStamp || variables.newStamp == '' \
             || (variables.newStamp.size() > 96 && variables.newStamp.endsWith('}') && variables.newStamp.substring(0, 96)\
             .matches('^\\\\{\"v\":1,\"hash\":\"sha256:[0-9a-f]{64}\",\"(spec|ref)\":'))",
            "annotation interlock.dev/last-applied-spec is written by Interlock; leave it as it is, or drop it",
            "annotation interlock.dev/last-applied-spec is written by Interlock; leave it as it is, or drop it",
        ),
    ];
    policy(PLAN_EXECUTION, ("instances", &["CREATE", "UPDATE"]), &variables, validations, options)
}

fn status(options: &Options) -> ValidatingAdmissionPolicy {
    let ours = meta::condition::OURS.map(cel_string).join(", ");
    let of_type = |object: &str| {
        format!("{object}.?status.?conditions.orValue([]).filter(c, c.?type.orValue('') == t)")
    };
    let alone = "written by Interlock only";
    let conditions = format!("the conditions {}", meta::condition::OURS.join(", "));
    let validations = vec![
        guard(
            Rule::StatusOwner,
            "object.?status.?planStatus.orValue({}) == oldObject.?status.?planStatus.orValue({})",
            &format!("status.planStatus is {alone}"),
            &format!("status.planStatus is {alone}, and not by ' + request.userInfo.username + '"),
        ),
        guard(
            Rule::StatusOwner,
            &format!("[{ours}].all(t, {} == {})", of_type("object"), of_type("oldObject")),
            &format!("{conditions} are {alone}"),
            &format!("{conditions} are {alone}, and not by ' + request.userInfo.username + '"),
        ),
    ];
    policy(STATUS, ("instances/status", &["UPDATE"]), &[], validations, options)
}

/// A reference to an OperatorVersion of another namespace is for those who may read it: its
/// templates and defaults come to light in what the Instance makes.
fn versions(options: &Options) -> ValidatingAdmissionPolicy {
    let of = |object: &str, field: &str| format!("{object}.?spec.?operatorVersion.?{field}.orValue('')");
    let before = |field: &str| format!("oldObject == null ? '' : {}", of("oldObject", field));
    let owned = [
        ("newNamespace", of("object", "namespace")),
        ("newName", of("object", "name")),
        ("oldNamespace", before("namespace")),
        ("oldName", before("name")),
        (
            "refers",
            "variables.newNamespace != '' && variables.newNamespace != request.namespace \
             && (variables.newNamespace != variables.oldNamespace || variables.newName != variables.oldName)"
                .to_owned(),
        ),
    ];
    let variables: Vec<(&str, &str)> = owned.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let may_read = format!(
        "!variables.refers || authorizer.group({}).resource('operatorversions').namespace(variables.newNamespace)\
         .name(variables.newName).check('get').allowed()",
        cel_string(meta::KUDO_GROUP)
    );
    let validations = vec![guard(
        Rule::VersionNamespace,
        &may_read,
        "an OperatorVersion of another namespace is used only by who may get it there",
        "user ' + request.userInfo.username + ' may not get OperatorVersion ' + variables.newNamespace + '/' + \
         variables.newName + '; use one of namespace ' + request.namespace + ', or ask for the right to get that one",
    )];
    policy(VERSIONS, ("instances", &["CREATE", "UPDATE"]), &variables, validations, options)
}

fn verbs_policy(options: &Options) -> ValidatingAdmissionPolicy {
    let annotation = |object: &str, key: &str| {
        format!("{object}.?metadata.?annotations[?{}].orValue('')", cel_string(key))
    };
    let before = |key: &str| format!("oldObject == null ? '' : {}", annotation("oldObject", key));
    let owned = [
        ("request", annotation("object", meta::REQUEST)),
        ("oldRequest", before(meta::REQUEST)),
        ("reason", annotation("object", meta::REASON)),
        ("oldReason", before(meta::REASON)),
        ("by", annotation("object", meta::REQUESTED_BY)),
        ("oldBy", before(meta::REQUESTED_BY)),
        ("asks", "variables.request != '' && variables.request != variables.oldRequest".to_owned()),
        ("stays", "variables.request != '' && variables.request == variables.oldRequest".to_owned()),
        ("verb", "variables.request.startsWith('retry/') ? 'retry' : 'abort'".to_owned()),
    ];
    let variables: Vec<(&str, &str)> = owned.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let words = verb::Verb::ALL.map(verb::Verb::word).join("|");
    let (shortest, longest) = verb::NONCE;
    let shape =
        format!("^({words})/[A-Za-z0-9-]{{1,{}}}/[A-Za-z0-9-]{{{shortest},{longest}}}$", verb::RUN_LIMIT);
    let reason = format!("^[^\\x00-\\x1f\\x7f]{{1,{}}}$", verb::REASON_LIMIT);
    let request = meta::REQUEST;
    let reason_key = meta::REASON;
    let says = |text: &str| (text.to_owned(), text.to_owned());
    let (malformed, malformed_text) = says(&format!(
        "annotation {request} is VERB/RUN-UID/NONCE, with abort, abort-revert or retry as VERB and a nonce of \
         {shortest} to {longest} letters, digits or dashes"
    ));
    let (unreasoned, unreasoned_text) = says(&format!(
        "annotation {reason_key} says why in one line of at most {} characters",
        verb::REASON_LIMIT
    ));
    let (changed, changed_text) = says(&format!(
        "annotation {reason_key} and who asked stay as they are while the request is there; take the request away first"
    ));
    let (created, created_text) =
        says(&format!("a new Instance has no run yet; leave annotation {request} out"));
    let validations = vec![
        guard(Rule::VerbRequest, "!variables.asks || oldObject != null", &created, &created_text),
        guard(
            Rule::VerbRequest,
            &format!("!variables.asks || variables.request.matches('{shape}')"),
            &malformed,
            &malformed_text,
        ),
        guard(
            Rule::VerbRequest,
            &format!("!variables.asks || variables.reason.matches('{reason}')"),
            &unreasoned,
            &unreasoned_text,
        ),
        guard(
            Rule::VerbRequest,
            "!variables.asks || variables.by in ['', request.userInfo.username]",
            "who asks is recorded by Interlock, and is nobody else",
            "who asks is recorded by Interlock, and is nobody but ' + request.userInfo.username + '",
        ),
        guard(
            Rule::VerbRequest,
            "!variables.stays || (variables.reason == variables.oldReason && variables.by == variables.oldBy)",
            &changed,
            &changed_text,
        ),
        guard(
            Rule::VerbRights,
            &format!(
                "!variables.asks || oldObject == null || authorizer.group({}).resource('instances')\
                 .namespace(request.namespace).name(request.name).check(variables.verb).allowed()",
                cel_string(meta::KUDO_GROUP)
            ),
            "this needs the verb abort or retry on instances.kudo.dev; ask for a role that gives it",
            "user ' + request.userInfo.username + ' has no verb ' + variables.verb + ' on instances.kudo.dev here; \
             ask for a role that gives it, as admin and edit do",
        ),
    ];
    policy(VERBS, ("instances", &["CREATE", "UPDATE"]), &variables, validations, options)
}

/// What must hold, and what is said where it does not: `plain`, where `text` cannot be made.
/// `text` stands inside of a CEL string, which it may close and open again.
///
/// `Invalid`, as kubectl then prints the text alone, and not the whole patch before it.
fn guard(rule: Rule, expression: &str, plain: &str, text: &str) -> Validation {
    let id = rule.id();
    Validation {
        expression: expression.to_owned(),
        message: Some(format!("{plain} [{id}]")),
        message_expression: Some(format!(
            "'Instance ' + request.namespace + '/' + request.name + ': {text} [{id}]'"
        )),
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
                let optional = expression.contains(".?") || expression.contains("[?");
                assert!(!optional || expression.contains("orValue"), "{expression} keeps an optional value");
            }
        }
    }

    #[test]
    fn the_status_does_not_depend_on_the_mode() {
        let (strict, same) = (policies(Freeze::Strict), policies(Freeze::SamePlan));
        assert!(strict[..3].iter().zip(&same[..3]).all(|(strict, same)| strict != same));
        assert_eq!(strict[3], same[3]);
    }
}
