//! How far the plan of an Instance is that is scheduled or runs: steps done of all, the open step, the start. Pure.

use jiff::Timestamp;

use super::change::lock;
use crate::api::{ExecutionStatus, Instance, PhaseStatus, StepStatus};

/// A plan that is scheduled or runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary<'a> {
    /// Its name.
    pub plan: &'a str,
    /// Its status, or `scheduled` while there is none.
    pub status: &'a str,
    /// When it was started; `None` before that.
    pub started: Option<Timestamp>,
    /// Its steps in order, each with its phase.
    pub steps: Vec<(&'a PhaseStatus, &'a StepStatus)>,
}

impl<'a> RunSummary<'a> {
    /// Of an Instance; `None` where no plan holds its lock.
    pub fn of(instance: &'a Instance) -> Option<Self> {
        let lock = lock::of(instance)?;
        let status = instance.status.as_ref();
        // A plan that is scheduled has the entry of its last run.
        let entry = status.and_then(|status| status.plan_status.get(lock.plan));
        let entry = entry.filter(|_| lock.status.is_some());
        let phases = entry.into_iter().flat_map(|entry| entry.phases.iter().flatten());
        let steps = phases.flat_map(|phase| phase.steps.iter().flatten().map(move |step| (phase, step)));
        let progress = status.and_then(|status| status.progress.as_ref());
        Some(Self {
            plan: lock.plan,
            status: lock.status.map_or("scheduled", ExecutionStatus::as_str),
            started: progress.filter(|progress| progress.uid == lock.uid).map(|progress| progress.started),
            steps: steps.collect(),
        })
    }

    /// Steps that are done.
    pub fn done(&self) -> usize {
        self.steps.iter().filter(|(_, step)| step.status == ExecutionStatus::Complete).count()
    }

    /// The step that it is at: one that goes on, else the first that is not done.
    pub fn current(&self) -> Option<(&'a PhaseStatus, &'a StepStatus)> {
        let find = |pick: fn(&ExecutionStatus) -> bool| {
            self.steps.iter().find(|(_, step)| pick(&step.status)).copied()
        };
        find(|status| matches!(status, ExecutionStatus::InProgress | ExecutionStatus::Error))
            .or_else(|| find(|status| *status != ExecutionStatus::Complete))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    fn instance(scheduled: &str, status: &str, steps: &[(&str, &str)]) -> Instance {
        let steps: Vec<Value> = steps
            .iter()
            .map(|(place, status)| {
                let (phase, step) = place.split_once('/').unwrap();
                json!({"name": phase, "status": status, "steps": [{"name": step, "status": status}]})
            })
            .collect();
        let object = json!({
            "metadata": {"name": "demo"},
            "spec": {"planExecution": {"planName": scheduled, "uid": "u"}},
            "status": {
                "planStatus": {"deploy": {"uid": "u", "status": status, "phases": steps}},
                "progress": {"plan": "deploy", "uid": "u", "package": format!("sha256:{}", "0".repeat(64)), "started": "2026-01-01T00:00:00Z"},
            },
        });
        Instance::deserialize(object).unwrap()
    }

    #[rstest]
    #[case::begins("IN_PROGRESS", &[("a/x", "IN_PROGRESS"), ("b/y", "PENDING")], (0, 2), Some("a/x"))]
    #[case::goes_on("IN_PROGRESS", &[("a/x", "COMPLETE"), ("b/y", "COMPLETE"), ("c/z", "IN_PROGRESS")], (2, 3), Some("c/z"))]
    #[case::side_by_side("IN_PROGRESS", &[("a/x", "PENDING"), ("b/y", "ERROR")], (0, 2), Some("b/y"))]
    #[case::between("IN_PROGRESS", &[("a/x", "COMPLETE"), ("b/y", "PENDING")], (1, 2), Some("b/y"))]
    #[case::ends("IN_PROGRESS", &[("a/x", "COMPLETE")], (1, 1), None)]
    #[case::no_steps("PENDING", &[], (0, 0), None)]
    fn how_far_a_plan_is(
        #[case] status: &str,
        #[case] steps: &[(&str, &str)],
        #[case] count: (usize, usize),
        #[case] current: Option<&str>,
    ) {
        let instance = instance("deploy", status, steps);
        let run = RunSummary::of(&instance).unwrap();
        assert_eq!((run.plan, run.status), ("deploy", status));
        assert_eq!((run.done(), run.steps.len()), count);
        let found = run.current().map(|(phase, step)| format!("{}/{}", phase.name, step.name));
        assert_eq!(found.as_deref(), current);
        assert_eq!(run.started, Some("2026-01-01T00:00:00Z".parse().unwrap()));
    }

    #[test]
    fn a_plan_that_is_scheduled_has_no_steps_yet() {
        let instance = instance("update", "COMPLETE", &[("a/x", "COMPLETE")]);
        let run = RunSummary::of(&instance).unwrap();
        assert_eq!((run.plan, run.status, run.steps.len()), ("update", "scheduled", 0));
    }

    #[test]
    fn without_a_plan_there_is_none() {
        assert_eq!(RunSummary::of(&instance("", "COMPLETE", &[])), None);
    }
}
