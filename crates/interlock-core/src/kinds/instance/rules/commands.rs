//! The commands that denials name: one of kubectl's, which everybody has who is denied, and Interlock's beside
//! it.

use crate::api::violation::InstanceCommand;
use crate::kinds::instance::change::lock::Lock;

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
/// it is let go on instead.
pub fn next_locked(instance: &str, lock: &Lock<'_>, paused: bool) -> String {
    let object = object(instance);
    if let Some(go_on) = request_of(lock, "resume", "resume-").filter(|_| paused) {
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
    if let Some(end) = request_of(lock, "abort", "") {
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

/// A request about a run, with the beginning of its id in the nonce: a request holds for one run, and once. `None` for
/// an id that no request can name.
fn request_of(lock: &Lock<'_>, verb: &str, before: &str) -> Option<String> {
    let is_plain = lock.uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let nonce = lock.uid.get(..8).filter(|_| is_plain && lock.uid.len() <= 64)?;
    Some([verb, "/", lock.uid, "/", before, nonce].concat())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::kudo::ExecutionStatus;
    use crate::kinds::instance::change::plan_request::PlanRequest;

    const UID: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";

    fn lock<'a>(plan: &'a str, uid: &'a str, status: Option<&'a ExecutionStatus>) -> Lock<'a> {
        Lock { plan, uid, status }
    }

    #[test]
    fn a_run_can_be_awaited_and_ended_by_kubectl_alone() {
        assert_eq!(
            next_locked("team/prod", &lock("deploy", UID, Some(&ExecutionStatus::InProgress)), false),
            "wait until it has ended (`kubectl wait --for=condition=Ready instance/prod -n team --timeout=10m` or \
             `interlock plan wait prod -n team`), or end it (`kubectl annotate instance prod -n team \
             plan.interlock.dev/request=abort/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee/aaaaaaaa \
             plan.interlock.dev/reason=WHY` or `interlock plan abort prod -n team --reason WHY`); then send the \
             change again"
        );
        let lock = lock("deploy", UID, None);
        for (verb, before) in [("abort", ""), ("resume", "resume-")] {
            assert!(request_of(&lock, verb, before).unwrap().parse::<PlanRequest>().is_ok());
        }
    }

    #[test]
    fn a_run_that_is_paused_is_not_waited_for() {
        assert_eq!(
            next_locked("team/prod", &lock("deploy", UID, Some(&ExecutionStatus::InProgress)), true),
            "let it go on (`kubectl annotate instance prod -n team \
             plan.interlock.dev/request=resume/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee/resume-aaaaaaaa \
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
        let text = next_locked("team/prod", &lock(plan, UID, status), false);
        assert!(text.contains(&format!("kubectl wait --for={condition} instance/prod")), "{text}");
    }

    #[rstest]
    #[case::none("")]
    #[case::short("u1")]
    #[case::odd("aaaaaaaa/bbbb; rm")]
    fn a_run_that_no_request_can_name_is_only_awaited(#[case] uid: &str) {
        let text = next_locked("team/prod", &lock("deploy", uid, None), false);
        assert!(!text.contains("abort") && text.contains("kubectl wait"), "{text}");
    }

    #[test]
    fn long_names_leave_room_for_a_command() {
        let instance = ["n".repeat(63), "i".repeat(253)].join("/");
        let text = next_locked(&instance, &lock("deploy", UID, None), false);
        assert!(text.len() <= LIMIT && text.contains("kubectl wait"), "{text}");
        let text = next_locked(&instance, &lock("deploy", UID, None), true);
        assert!(text.len() <= LIMIT && text.contains("=resume/"), "{text}");
    }
}
