//! The commands that denials name: one of kubectl's, which everybody has who is denied, and Interlock's beside
//! it.

use interlock_core::api::violation::InstanceCommand;

use crate::instance::change::lock::Lock;
use crate::instance::change::plan_request::{NONCE, PlanRequest};

/// Longest text of the remedy of a lock: one with longer names lists fewer commands.
const LIMIT: usize = 600;

/// An Instance as commands name it: `NAME -n NAMESPACE`.
pub fn object(instance: &str) -> String {
    let (namespace, name) = instance.split_once('/').unwrap_or_default();
    [name, " -n ", namespace].concat()
}

/// A command about an Instance, `NAMESPACE/NAME`.
pub fn text(command: InstanceCommand, instance: &str) -> String {
    let object = object(instance);
    match command {
        InstanceCommand::Await => {
            format!("`kubectl wait --for=condition=Ready instance/{object} --timeout=10m`")
        }
        InstanceCommand::AwaitDeletion => {
            format!("`kubectl wait --for=delete instance/{object} --timeout=10m`")
        }
        InstanceCommand::Delete => format!("`kubectl delete instance {object}`"),
        InstanceCommand::Describe => format!("`kubectl describe instance {object}`"),
        InstanceCommand::Show => format!("`kubectl get instance {object} -o yaml`"),
        InstanceCommand::Trigger => format!(
            "`kubectl patch instance {object} --type=merge -p \
             '{{\"spec\":{{\"planExecution\":{{\"planName\":\"PLAN\"}}}}}}'` or `interlock plan trigger {object} --plan PLAN`"
        ),
    }
}

/// How to write a plan request.
pub fn request(instance: &str) -> String {
    let object = object(instance);
    format!(
        "write it as VERB/RUN-UID/NONCE, with a reason (`kubectl get instance {object} -o \
         jsonpath={{.spec.planExecution.uid}}` prints RUN-UID), or let `interlock plan abort {object} --reason WHY` \
         write it"
    )
}

/// The remedy while a plan is scheduled or runs: to wait, or to end it. One that is paused does not end by itself, so
/// it is let go on instead. `pause` is the nonce of the request for the pause, if there is one.
pub fn next_locked(instance: &str, lock: &Lock<'_>, pause: Option<&str>) -> String {
    let object = object(instance);
    if let Some(go_on) = pause.and_then(|pause| request_of(lock, "resume", &resumption(pause))) {
        let first = ["let it go on (`", &annotate(&object, &go_on), "`"].concat();
        let then = "send the change again when it has ended";
        let more = [
            " or `interlock plan resume ",
            &object,
            " --reason WHY`), or end it (`interlock plan abort ",
            &object,
        ];
        let both = [first.as_str(), &more.concat(), " --reason WHY`); ", then].concat();
        return if both.len() <= LIMIT { both } else { [first.as_str(), "); ", then].concat() };
    }
    let wait = wait(&object, lock);
    let then = "then send the change again";
    if let Some(end) = lock.uid.get(..NONCE.0).and_then(|nonce| request_of(lock, "abort", nonce)) {
        let both = [
            "wait until it has ended (`",
            &wait,
            "` or `interlock plan wait ",
            &object,
            "`), or end it (`",
            &annotate(&object, &end),
            "` or `interlock plan abort ",
            &object,
            " --reason WHY`); ",
            then,
        ]
        .concat();
        if both.len() <= LIMIT {
            return both;
        }
    }
    ["wait until it has ended (`", &wait, "`), ", then].concat()
}

/// `kubectl annotate` with a request.
fn annotate(object: &str, request: &str) -> String {
    let start = ["kubectl annotate instance ", object, " plan.interlock.dev/request="].concat();
    [start.as_str(), request, " plan.interlock.dev/reason=WHY"].concat()
}

/// `kubectl wait` for the end of a plan. `Ready` says it of the plans that make an Instance ready; of others
/// the status of the plan does.
fn wait(object: &str, lock: &Lock<'_>) -> String {
    let makes_ready = matches!(lock.plan, "deploy" | "update" | "upgrade");
    let is_plain = lock.plan.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let condition = match (makes_ready, lock.status) {
        (false, Some(_)) if is_plain => {
            format!("jsonpath={{.status.planStatus.{}.status}}=COMPLETE", lock.plan)
        }
        _ => "condition=Ready".to_owned(),
    };
    ["kubectl wait --for=", &condition, " instance/", object, " --timeout=10m"].concat()
}

/// The nonce of the request that ends a pause: another one for each pause of a run.
fn resumption(pause: &str) -> String {
    const START: &str = "resume-";
    let skipped = pause.len().saturating_sub(NONCE.1 - START.len());
    [START, pause.get(skipped..).unwrap_or_default()].concat()
}

/// A request about a run: it holds for that run, and once. `None` for an id that no request can name.
fn request_of(lock: &Lock<'_>, verb: &str, nonce: &str) -> Option<String> {
    let text = [verb, "/", lock.uid, "/", nonce].concat();
    text.parse::<PlanRequest>().is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::ExecutionStatus;

    const UID: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";

    fn lock<'a>(plan: &'a str, uid: &'a str, status: Option<&'a ExecutionStatus>) -> Lock<'a> {
        Lock { plan, uid, status }
    }

    #[test]
    fn a_run_can_be_awaited_and_ended_by_kubectl_alone() {
        assert_eq!(
            next_locked("team/prod", &lock("deploy", UID, Some(&ExecutionStatus::InProgress)), None),
            "wait until it has ended (`kubectl wait --for=condition=Ready instance/prod -n team --timeout=10m` or \
             `interlock plan wait prod -n team`), or end it (`kubectl annotate instance prod -n team \
             plan.interlock.dev/request=abort/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee/aaaaaaaa \
             plan.interlock.dev/reason=WHY` or `interlock plan abort prod -n team --reason WHY`); then send the \
             change again"
        );
    }

    #[test]
    fn a_run_that_is_paused_is_not_waited_for() {
        assert_eq!(
            next_locked(
                "team/prod",
                &lock("deploy", UID, Some(&ExecutionStatus::InProgress)),
                Some("pause-2b")
            ),
            "let it go on (`kubectl annotate instance prod -n team \
             plan.interlock.dev/request=resume/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee/resume-pause-2b \
             plan.interlock.dev/reason=WHY` or `interlock plan resume prod -n team --reason WHY`), or end it (`interlock \
             plan abort prod -n team --reason WHY`); send the change again when it has ended"
        );
    }

    #[rstest]
    #[case::backup("backup", true, "jsonpath={.status.planStatus.backup.status}=COMPLETE")]
    #[case::not_begun("backup", false, "condition=Ready")]
    #[case::odd_name("a.b", true, "condition=Ready")]
    #[case::upgrade("upgrade", true, "condition=Ready")]
    fn what_is_awaited(#[case] plan: &str, #[case] begun: bool, #[case] condition: &str) {
        let status = begun.then_some(&ExecutionStatus::InProgress);
        let text = next_locked("team/prod", &lock(plan, UID, status), None);
        assert!(text.contains(&format!("kubectl wait --for={condition} instance/prod")), "{text}");
    }

    #[rstest]
    #[case::none("")]
    #[case::short("u1")]
    #[case::odd("aaaaaaaa/bbbb; rm")]
    fn a_run_that_no_request_can_name_is_only_awaited(#[case] uid: &str) {
        let text = next_locked("team/prod", &lock("deploy", uid, None), None);
        assert!(!text.contains("abort") && text.contains("kubectl wait"), "{text}");
    }

    /// A second pause of a run is ended by a request of its own, whose nonce is one however long that of the pause is.
    #[test]
    fn each_pause_is_ended_by_another_request() {
        let long = "n".repeat(63);
        let [first, second, of_long] = ["pause-2b", "pause-3c", &format!("{long}1")].map(resumption);
        assert_ne!(first, second);
        assert_ne!(of_long, resumption(&format!("{long}2")));
        for nonce in [first, second, of_long] {
            assert!(request_of(&lock("deploy", UID, None), "resume", &nonce).is_some(), "{nonce}");
        }
    }

    #[test]
    fn long_names_leave_room_for_a_command() {
        let instance = ["n".repeat(63), "i".repeat(253)].join("/");
        let text = next_locked(&instance, &lock("deploy", UID, None), None);
        assert!(text.len() <= LIMIT && text.contains("kubectl wait"), "{text}");
        let text = next_locked(&instance, &lock("deploy", UID, None), Some("pause-2b"));
        assert!(text.len() <= LIMIT && text.contains("=resume/"), "{text}");
    }
}
