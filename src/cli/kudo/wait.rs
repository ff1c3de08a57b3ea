//! Waits for the plans of an Instance, by events: their changes, and whether they are over.

use std::collections::BTreeMap;
use std::time::Duration;

use interlock_kudo::api::{ExecutionStatus, Instance, PlanStatus};
use interlock_kudo::instance::change::lock;

use super::instance::{InstanceRef, last, locking_run, queued};
use crate::cli::common::error::CliError;
use crate::cli::common::output;

/// How the last plan ended, where none is queued behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum PlanEnd {
    Complete(String),
    /// The plan failed; its messages.
    Failed(String),
}

/// Waits until no plan is scheduled, runs or is queued, with a line for each change of a step; without one, reports how
/// the last one ended, and without that, waits for the first. A plan that fails ends the wait.
pub(in crate::cli) async fn run(subject: &InstanceRef, limit: Duration) -> Result<(), CliError> {
    let instance = subject.read().await?;
    if let Some(end) = ended(&instance) {
        return print_end(subject, &end);
    }
    let mut follower = Follower::default();
    // The running plan is known even if no event follows.
    for line in follower.observe(&instance).0 {
        output::line(&line)?;
    }
    let end = subject.until(limit, |instance| {
        let (lines, end) = follower.observe(&instance);
        let printed = lines.iter().try_for_each(|line| output::line(line));
        // Only the record shows a run that ended before the watch began.
        printed.map_or_else(|error| Some(Err(error)), |()| end.or_else(|| ended(&instance)).map(Ok))
    });
    match end.await? {
        Some(end) => print_end(subject, &end),
        None => Err(subject.not_done(limit).why(follower.current_state()).next(format!(
            "wait longer with --timeout, or look at what it waits for: `interlock plan status {}`",
            subject.arguments()
        ))),
    }
}

/// How the last run ended, where no other is to follow.
pub(super) fn ended(instance: &Instance) -> Option<PlanEnd> {
    if locking_run(instance).is_some() {
        return None;
    }
    let (plan, entry) = last(instance)?;
    end(instance, plan, entry)
}

/// How a run ended; `None` where it did not, or was COMPLETE and another plan is queued.
fn end(instance: &Instance, plan: &str, entry: &PlanStatus) -> Option<PlanEnd> {
    match entry.status {
        ExecutionStatus::Complete => queued(instance).is_none().then(|| PlanEnd::Complete(plan.to_owned())),
        ExecutionStatus::FatalError => Some(PlanEnd::Failed(failure_message(plan, entry))),
        _ => None,
    }
}

/// Prints the end of a plan, or fails with it.
pub(super) fn print_end(subject: &InstanceRef, end: &PlanEnd) -> Result<(), CliError> {
    match end {
        PlanEnd::Complete(plan) => {
            output::line(&format!("instance {}: plan {plan} is COMPLETE", subject.key()))
        }
        PlanEnd::Failed(why) => Err(CliError::refused(why).place(subject.to_string()).next(format!(
            "correct the cause, then `interlock plan retry {} --reason WHY`",
            subject.arguments()
        ))),
    }
}

/// Follows the plan of an Instance, also when another replaces it.
#[derive(Debug, Default)]
pub(in crate::cli) struct Follower {
    run: Option<(String, String)>,
    shown: BTreeMap<String, ExecutionStatus>,
    /// The plan that is queued behind the run, which is COMPLETE.
    next: Option<String>,
}

impl Follower {
    /// Takes in a version of the Instance; returns new lines, and the end where there is one. The record shows a run that
    /// began and ended between two versions, such as one that was queued.
    pub(in crate::cli) fn observe(&mut self, instance: &Instance) -> (Vec<String>, Option<PlanEnd>) {
        if let Some(execution) = instance.spec.plan_execution.as_ref().filter(|e| !e.plan().is_empty()) {
            let run = (execution.plan().to_owned(), execution.uid().to_owned());
            if self.run.as_ref() != Some(&run) {
                *self = Self { run: Some(run), ..Self::default() };
            }
        }
        let next = queued(instance).filter(|_| locking_run(instance).is_none());
        let Some((plan, uid)) = self.run.clone() else {
            self.next = next;
            return (Vec::new(), None);
        };
        let entry = instance.status.as_ref().and_then(|status| status.plan_status.get(&plan));
        let entry = entry.filter(|entry| lock::records(&entry.uid, &uid));
        let Some(entry) = entry else { return (Vec::new(), None) };
        let mut lines = self.changes(&plan, entry);
        let next = next.filter(|_| entry.status == ExecutionStatus::Complete);
        if let Some(next) = next.as_ref().filter(|next| self.next.as_ref() != Some(*next)) {
            lines.push(format!("plan {plan} is COMPLETE, and plan {next} is queued: it runs next"));
        }
        self.next = next;
        let end = match end(instance, &plan, entry) {
            Some(PlanEnd::Complete(plan)) => ended(instance).or(Some(PlanEnd::Complete(plan))),
            end => end,
        };
        (lines, end)
    }

    /// Whether a plan is known to be scheduled.
    pub(in crate::cli) fn has_plan(&self) -> bool {
        self.run.is_some()
    }

    /// The state of the plan, for a caller whose wait has timed out.
    pub(in crate::cli) fn current_state(&self) -> String {
        match (&self.run, &self.next) {
            (_, Some(next)) => format!("plan {next} is queued"),
            (None, None) => "no plan has been scheduled; is Interlock running?".to_owned(),
            (Some((plan, _)), None) => {
                let open: Vec<_> = self
                    .shown
                    .iter()
                    .filter(|(_, status)| **status != ExecutionStatus::Complete)
                    .map(|(step, status)| format!("{step} {status}"))
                    .collect();
                if open.is_empty() { format!("plan {plan} has not begun") } else { open.join(", ") }
            }
        }
    }

    fn changes(&mut self, plan: &str, entry: &PlanStatus) -> Vec<String> {
        let mut lines = Vec::new();
        for phase in entry.phases.iter().flatten() {
            for step in phase.steps.iter().flatten() {
                let key = format!("{plan} {}/{}", phase.name, step.name);
                let known = self.shown.get(&key);
                let news = known != Some(&step.status);
                let begun = !matches!(step.status, ExecutionStatus::Pending | ExecutionStatus::NeverRun);
                if news && (begun || known.is_some()) {
                    let message = step.message.as_deref().map_or_else(String::new, |m| format!(" ({m})"));
                    lines.push(format!("plan {key} {}{message}", step.status));
                }
                self.shown.insert(key, step.status.clone());
            }
        }
        lines
    }
}

/// Why a plan failed: every message, with its phase and step.
pub(in crate::cli) fn failure_message(plan: &str, entry: &PlanStatus) -> String {
    let mut parts = Vec::new();
    let mut add = |at: String, message: Option<&String>| {
        if let Some(message) = message.filter(|m| !m.is_empty()) {
            parts.push(format!("{at}: {message}"));
        }
    };
    add(format!("plan {plan}"), entry.message.as_ref());
    for phase in entry.phases.iter().flatten() {
        add(format!("phase {}", phase.name), phase.message.as_ref());
        for step in phase.steps.iter().flatten() {
            add(format!("step {}/{}", phase.name, step.name), step.message.as_ref());
        }
    }
    if parts.is_empty() {
        return format!("plan {plan} ended in FATAL_ERROR");
    }
    format!("plan {plan} ended in FATAL_ERROR: {}", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn instance(execution: serde_json::Value, plans: serde_json::Value) -> Instance {
        serde_json::from_value(json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "i"},
            "spec": {"planExecution": execution}, "status": {"planStatus": plans},
        }))
        .unwrap()
    }

    fn plan(uid: &str, status: &str, step: &str, message: &str) -> serde_json::Value {
        json!({"uid": uid, "status": status, "phases": [
            {"name": "p", "status": status, "steps": [{"name": "s", "status": step, "message": message}]}]})
    }

    #[test]
    fn a_plan_is_followed_to_its_end() {
        let mut follower = Follower::default();
        let run = json!({"planName": "deploy", "uid": "1", "status": "NEVER_RUN"});
        assert_eq!(follower.observe(&instance(json!({}), json!({}))), (vec![], None));
        assert!(!follower.has_plan());
        assert_eq!(follower.observe(&instance(run.clone(), json!({}))), (vec![], None));
        let waiting = json!({"deploy": plan("1", "IN_PROGRESS", "PENDING", "")});
        assert_eq!(follower.observe(&instance(run.clone(), waiting)), (vec![], None));
        let trying = json!({"deploy": plan("1", "IN_PROGRESS", "ERROR", "try again")});
        let lines = vec!["plan deploy p/s ERROR (try again)".to_owned()];
        assert_eq!(follower.observe(&instance(run.clone(), trying.clone())), (lines, None));
        assert_eq!(follower.observe(&instance(run, trying)), (vec![], None), "nothing is told twice");
        assert_eq!(follower.current_state(), "deploy p/s ERROR");
        let done = json!({"deploy": plan("1", "COMPLETE", "COMPLETE", "")});
        let (_, end) = follower.observe(&instance(json!({}), done));
        assert_eq!(end, Some(PlanEnd::Complete("deploy".to_owned())));
    }

    #[test]
    fn an_old_end_is_not_the_end() {
        let mut follower = Follower::default();
        let run = json!({"planName": "deploy", "uid": "2"});
        let old = json!({"deploy": plan("1", "FATAL_ERROR", "FATAL_ERROR", "no")});
        assert_eq!(follower.observe(&instance(run, old)), (vec![], None));
    }

    /// A plan that is scheduled without an id locks, whatever an entry without one says.
    #[test]
    fn an_end_without_an_id_is_of_no_run() {
        let mut follower = Follower::default();
        let scheduled = json!({"planName": "deploy"});
        let old = json!({"deploy": plan("", "COMPLETE", "COMPLETE", "")});
        assert_eq!(follower.observe(&instance(scheduled, old)), (vec![], None));
    }

    #[test]
    fn a_failure_says_what_the_steps_say() {
        let mut follower = Follower::default();
        let run = json!({"planName": "deploy", "uid": "1"});
        let failed = json!({"deploy": plan("1", "FATAL_ERROR", "FATAL_ERROR", "no such kind")});
        let (_, end) = follower.observe(&instance(run, failed));
        let text = "plan deploy ended in FATAL_ERROR: step p/s: no such kind";
        assert_eq!(end, Some(PlanEnd::Failed(text.to_owned())));
    }

    #[test]
    fn a_plan_that_replaces_another_is_followed() {
        let mut follower = Follower::default();
        follower.observe(&instance(json!({"planName": "deploy", "uid": "1"}), json!({})));
        let plans = json!({"deploy": plan("1", "COMPLETE", "COMPLETE", ""), "update": plan("2", "PENDING", "PENDING", "")});
        let (_, end) = follower.observe(&instance(json!({"planName": "update", "uid": "2"}), plans));
        assert_eq!(end, None);
    }

    /// A change of two parameters may make two plans, one after the other.
    #[test]
    fn a_plan_that_is_queued_is_waited_for() {
        let owed = |mut instance: Instance, plans: &[&str]| {
            let owed: serde_json::Map<_, _> =
                plans.iter().map(|plan| ((*plan).to_owned(), json!("queued"))).collect();
            let baseline = json!({"hash": "sha256:0", "owed": owed});
            instance.status.as_mut().unwrap().last_applied = Some(serde_json::from_value(baseline).unwrap());
            instance
        };
        let mut follower = Follower::default();
        let run = json!({"planName": "deploy", "uid": "1"});
        let runs = json!({"deploy": plan("1", "IN_PROGRESS", "IN_PROGRESS", "")});
        follower.observe(&owed(instance(run.clone(), runs), &["deploy", "update"]));
        let done = json!({"deploy": plan("1", "COMPLETE", "COMPLETE", "")});
        let between = owed(instance(run, done.clone()), &["update"]);
        let (lines, end) = follower.observe(&between);
        let said = "plan deploy is COMPLETE, and plan update is queued: it runs next";
        assert_eq!((lines.last().map(String::as_str), end), (Some(said), None));
        let between = owed(instance(json!({}), done.clone()), &["update"]);
        assert_eq!(follower.observe(&between), (vec![], None), "nothing is told twice");
        assert_eq!(follower.current_state(), "plan update is queued");
        assert_eq!(ended(&between), None);
        let next = json!({"planName": "update", "uid": "2"});
        assert_eq!(follower.observe(&owed(instance(next, done.clone()), &["update"])).1, None);
        let mut plans = done;
        plans["update"] = plan("2", "COMPLETE", "COMPLETE", "");
        let (_, end) = follower.observe(&owed(instance(json!({}), plans), &[]));
        assert_eq!(end, Some(PlanEnd::Complete("update".to_owned())));
    }

    /// A watch that begins again may not show the version in which the next plan was scheduled.
    #[test]
    fn a_queued_plan_that_failed_between_two_versions_is_a_failure() {
        let mut follower = Follower::default();
        follower.observe(&instance(json!({"planName": "deploy", "uid": "1"}), json!({})));
        let mut plans = json!({
            "backup": plan("2", "FATAL_ERROR", "FATAL_ERROR", "no"), "deploy": plan("1", "COMPLETE", "COMPLETE", ""),
        });
        for plan in ["backup", "deploy"] {
            plans[plan]["lastUpdatedTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let (_, end) = follower.observe(&instance(json!({}), plans));
        assert_eq!(end, Some(PlanEnd::Failed("plan backup ended in FATAL_ERROR: step p/s: no".to_owned())));
    }

    /// The controller does not schedule it while the capability is off, or the reference was refused.
    #[test]
    fn what_is_queued_behind_an_earlier_plan_is_named_when_the_time_is_up() {
        let mut idle = instance(json!({}), json!({"deploy": plan("1", "COMPLETE", "COMPLETE", "")}));
        let baseline = json!({"hash": "sha256:0", "owed": {"update": "queued"}});
        idle.status.as_mut().unwrap().last_applied = Some(serde_json::from_value(baseline).unwrap());
        let mut follower = Follower::default();
        assert_eq!((follower.observe(&idle), ended(&idle)), ((vec![], None), None));
        assert_eq!(follower.current_state(), "plan update is queued");
    }

    #[test]
    fn a_plan_that_fails_ends_the_wait_whatever_is_queued() {
        let failed = json!({"deploy": plan("1", "FATAL_ERROR", "FATAL_ERROR", "no")});
        let mut instance = instance(json!({}), failed);
        let baseline = json!({"hash": "sha256:0", "owed": {"deploy": "failed", "update": "queued"}});
        instance.status.as_mut().unwrap().last_applied = Some(serde_json::from_value(baseline).unwrap());
        assert!(matches!(ended(&instance), Some(PlanEnd::Failed(_))));
    }
}
