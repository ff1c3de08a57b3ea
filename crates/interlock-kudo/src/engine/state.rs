//! States of plans, phases and steps: the table of transitions, the start and the forced end of a
//! run.
//!
//! The engine changes a status only through [`TABLE`]; `docs/plan-states.md` is made from it.

use std::collections::{BTreeMap, HashMap};

use super::lookup::PlanState;
use crate::api;
use crate::api::ExecutionStatus;
use crate::api::ExecutionStatus::{Complete, Error, FatalError, InProgress, NeverRun, Pending};
use crate::api::{PhaseStatus, PlanStatus, StepStatus};
use crate::package::Package;

/// The parts of a plan that have a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Plan,
    /// A phase of a plan.
    Phase,
    /// A step of a phase.
    Step,
}

/// An event that changes a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateEvent {
    /// The plan is scheduled under a new uid.
    Scheduled,
    /// Its run failed, and a retry resumes it under a new uid.
    Retried,
    /// The engine reaches it.
    Reached,
    /// One of its tasks failed with a transient error.
    Failed,
    /// A fatal error occurred in it, or the run was ended.
    Ended,
    /// All its parts are done.
    Finished,
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Transition {
    /// Levels that it applies to.
    pub levels: &'static [Level],
    pub event: StateEvent,
    /// Statuses before it.
    pub from: &'static [ExecutionStatus],
    /// Status after it.
    pub to: ExecutionStatus,
    /// The reason, for people.
    pub why: &'static str,
}

const ALL: &[Level] = &[Level::Plan, Level::Phase, Level::Step];
const OPEN: &[ExecutionStatus] = &[NeverRun, Pending, InProgress, Error];

/// All transitions of a status. Without a matching row it stays as it is: within a run `COMPLETE`
/// and `FATAL_ERROR` are final.
pub static TABLE: [Transition; 6] = [
    Transition {
        levels: ALL,
        event: StateEvent::Scheduled,
        from: &[NeverRun, Pending, InProgress, Error, FatalError, Complete],
        to: Pending,
        why: "the plan is scheduled under a new uid: the plan, its phases and its steps start again",
    },
    Transition {
        levels: ALL,
        event: StateEvent::Retried,
        from: &[NeverRun, Pending, InProgress, Error, FatalError],
        to: Pending,
        why: "the run is retried under a new uid: what is COMPLETE stays, everything else starts again",
    },
    Transition {
        levels: ALL,
        event: StateEvent::Reached,
        from: OPEN,
        to: InProgress,
        why: "the engine reaches it; a failed step is retried",
    },
    Transition {
        levels: &[Level::Step],
        event: StateEvent::Failed,
        from: &[InProgress],
        to: Error,
        why: "a task of the step failed with an error that may pass; plan and phase continue",
    },
    Transition {
        levels: ALL,
        event: StateEvent::Ended,
        from: OPEN,
        to: FatalError,
        why: "a task failed for good, or the run was ended; a step that fails for good ends its phase and plan",
    },
    Transition {
        levels: ALL,
        event: StateEvent::Finished,
        from: &[InProgress],
        to: Complete,
        why: "all tasks of the step, all steps of the phase, all phases of the plan are done",
    },
];

/// Changes a status according to the table.
pub fn change(level: Level, status: &mut ExecutionStatus, event: StateEvent) {
    // A word that KUDO does not know counts as never run.
    let from = if let ExecutionStatus::Other(_) = status { &NeverRun } else { &*status };
    let row = TABLE.iter().find(|t| t.event == event && t.levels.contains(&level) && t.from.contains(from));
    if let Some(row) = row {
        *status = row.to.clone();
    }
}

impl PlanState {
    /// A run of a plan at its beginning: everything pending, no message, nothing done. A plan
    /// that the package does not have gets no phases; the engine ends its run.
    pub fn start(package: &Package, plan: &str, uid: &str) -> Self {
        let mut status = PlanStatus { name: plan.to_owned(), uid: uid.to_owned(), ..PlanStatus::default() };
        if let Some(definition) = package.plan(plan) {
            arrange(&mut status, definition);
        }
        change(Level::Plan, &mut status.status, StateEvent::Scheduled);
        for phase in status.phases.iter_mut().flatten() {
            change(Level::Phase, &mut phase.status, StateEvent::Scheduled);
            for step in phase.steps.iter_mut().flatten() {
                change(Level::Step, &mut step.status, StateEvent::Scheduled);
            }
        }
        Self { status, ..Self::default() }
    }

    /// A run that resumes a failed one of the same plan and package: finished parts stay finished,
    /// the others begin anew.
    pub fn retry(failed: &PlanStatus, package: &Package, plan: &str, uid: &str) -> Self {
        let mut status = PlanStatus {
            name: plan.to_owned(),
            uid: uid.to_owned(),
            status: failed.status.clone(),
            phases: failed.phases.clone(),
            ..PlanStatus::default()
        };
        if let Some(definition) = package.plan(plan) {
            arrange(&mut status, definition);
        }
        change(Level::Plan, &mut status.status, StateEvent::Retried);
        for phase in status.phases.iter_mut().flatten() {
            change(Level::Phase, &mut phase.status, StateEvent::Retried);
            phase.message = None;
            for step in phase.steps.iter_mut().flatten() {
                change(Level::Step, &mut step.status, StateEvent::Retried);
                step.message = None;
            }
        }
        Self { status, ..Self::default() }
    }

    /// The run, ended from outside: by a deletion, a lost package, a terminating namespace. Parts
    /// that have begun end with it; the others stay pending, as where a task ends the run. A run
    /// that is over stays as it is.
    pub fn end(mut self, message: &str) -> Self {
        if self.status.status.is_terminal() {
            return self;
        }
        change(Level::Plan, &mut self.status.status, StateEvent::Ended);
        self.status.message = Some(message.to_owned());
        let begun = |status: &ExecutionStatus| matches!(status, InProgress | Error);
        for phase in self.status.phases.iter_mut().flatten().filter(|p| begun(&p.status)) {
            change(Level::Phase, &mut phase.status, StateEvent::Ended);
            for step in phase.steps.iter_mut().flatten().filter(|s| begun(&s.status)) {
                change(Level::Step, &mut step.status, StateEvent::Ended);
            }
        }
        self.done.clear();
        self.begun.clear();
        self
    }
}

/// `status.planStatus` with an entry for each plan of the package: entries are kept by the names
/// of plans, phases and steps, in the package's order; new ones were never run; entries of plans
/// that the package does not have stay (KUDO `EnsurePlanStatusInitialized`). Those that never ran have no phases where
/// the record of all plans is large.
pub fn all_plans(found: &BTreeMap<String, PlanStatus>, package: &Package) -> BTreeMap<String, PlanStatus> {
    let mut all = found.clone();
    for (name, plan) in package.spec.plans.iter().flatten() {
        let entry = all.entry(name.clone()).or_default();
        entry.name.clone_from(name);
        if package.record.bytes <= WHOLE || entry.status != ExecutionStatus::NeverRun {
            arrange(entry, plan);
        }
    }
    all
}

/// The most bytes of a record that names the phases of plans that never ran.
const WHOLE: usize = 64 << 10;

/// Gives an entry the phases and steps of a plan, keeping what it has of them by name.
fn arrange(entry: &mut PlanStatus, plan: &api::Plan) {
    let found = entry.phases.take().unwrap_or_default();
    let phases: HashMap<&str, &PhaseStatus> = found.iter().rev().map(|p| (p.name.as_str(), p)).collect();
    let phases = plan.phases.iter().flatten().map(|phase| {
        let name = phase.name.clone().unwrap_or_default();
        let mut status = phases.get(name.as_str()).copied().cloned().unwrap_or_default();
        let found = status.steps.take().unwrap_or_default();
        let steps: HashMap<&str, &StepStatus> = found.iter().rev().map(|s| (s.name.as_str(), s)).collect();
        let steps = phase.steps.iter().flatten().map(|step| {
            let name = step.name.clone().unwrap_or_default();
            let kept = steps.get(name.as_str()).copied().cloned();
            kept.unwrap_or(StepStatus { name, ..StepStatus::default() })
        });
        status.steps = Some(steps.collect());
        PhaseStatus { name, ..status }
    });
    entry.phases = Some(phases.collect());
}

/// The page `docs/plan-states.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# States of plans, phases and steps\n\n\
         Generated from the table in `crates/interlock-kudo/src/engine/state.rs` by \
         `UPDATE_DOCS=1 cargo test -p interlock-kudo plan_states`; a test compares the two.\n\n\
         ```mermaid\nstateDiagram-v2\n    [*] --> NEVER_RUN\n",
    );
    for row in &TABLE {
        for from in row.from.iter().filter(|from| **from != row.to) {
            page += &format!("    {from} --> {}: {}\n", row.to, label(row));
        }
    }
    page += "```\n\n| event | of | from | to | why |\n|---|---|---|---|---|\n";
    for row in &TABLE {
        let from: Vec<&str> = row.from.iter().map(ExecutionStatus::as_str).collect();
        page += &format!(
            "| {} | {} | {} | {} | {} |\n",
            event_name(row.event),
            level_names(row.levels),
            from.join(", "),
            row.to,
            row.why
        );
    }
    page += "\nA status that is not in the column `from` of an event stays as it is. So a run never leaves `COMPLETE` or \
             `FATAL_ERROR`: only a new uid starts the plan again. A plan runs while its status is `PENDING`, \
             `IN_PROGRESS` or `ERROR`.\n";
    page
}

fn label(row: &Transition) -> String {
    let name = event_name(row.event);
    if row.levels.len() == ALL.len() {
        name.to_owned()
    } else {
        format!("{name} ({})", level_names(row.levels))
    }
}

fn level_names(levels: &[Level]) -> String {
    let name = |level: &Level| match level {
        Level::Plan => "plan",
        Level::Phase => "phase",
        Level::Step => "step",
    };
    levels.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn event_name(event: StateEvent) -> &'static str {
    match event {
        StateEvent::Scheduled => "scheduled",
        StateEvent::Retried => "retried",
        StateEvent::Reached => "reached",
        StateEvent::Failed => "failed, tried again",
        StateEvent::Ended => "ended",
        StateEvent::Finished => "finished",
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::NamespacedName;
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::api::OperatorVersionSpec;

    fn package(plans: serde_json::Value) -> Package {
        let spec: OperatorVersionSpec =
            serde_json::from_value(serde_json::json!({ "plans": plans })).unwrap();
        Package::new(NamespacedName::new("ns", "ov"), spec)
    }

    fn two_phases() -> serde_json::Value {
        serde_json::json!({"deploy": {"phases": [
            {"name": "a", "steps": [{"name": "one"}, {"name": "two"}]},
            {"name": "b", "steps": [{"name": "three"}]},
        ]}})
    }

    #[rstest]
    #[case(Level::Plan, Pending, StateEvent::Reached, InProgress)]
    #[case(Level::Step, Error, StateEvent::Reached, InProgress)]
    #[case(Level::Step, InProgress, StateEvent::Failed, Error)]
    #[case(Level::Phase, InProgress, StateEvent::Failed, InProgress)]
    #[case(Level::Plan, InProgress, StateEvent::Failed, InProgress)]
    #[case(Level::Plan, InProgress, StateEvent::Finished, Complete)]
    #[case(Level::Step, Error, StateEvent::Finished, Error)]
    #[case(Level::Step, Pending, StateEvent::Ended, FatalError)]
    #[case(Level::Plan, Complete, StateEvent::Scheduled, Pending)]
    #[case(Level::Step, ExecutionStatus::Other("ODD".to_owned()), StateEvent::Reached, InProgress)]
    fn changes(
        #[case] level: Level,
        #[case] from: ExecutionStatus,
        #[case] event: StateEvent,
        #[case] to: ExecutionStatus,
    ) {
        let mut status = from;
        change(level, &mut status, event);
        assert_eq!(status, to);
    }

    #[test]
    fn a_run_starts_with_everything_pending() {
        let state = PlanState::start(&package(two_phases()), "deploy", "u1");
        assert_eq!((state.status.name.as_str(), state.status.uid.as_str()), ("deploy", "u1"));
        assert_eq!(state.status.status, Pending);
        let phases = state.status.phases.unwrap();
        assert!(phases.iter().all(|p| p.status == Pending && p.message.is_none()));
        assert!(phases.iter().flat_map(|p| p.steps.iter().flatten()).all(|s| s.status == Pending));
        assert_eq!(phases[0].steps.as_ref().unwrap().len(), 2);
    }

    #[test]
    fn a_run_that_is_ended_keeps_what_had_not_begun() {
        let mut state = PlanState::start(&package(two_phases()), "deploy", "u1");
        state.status.status = InProgress;
        let phases = state.status.phases.as_mut().unwrap();
        phases[0].status = InProgress;
        let steps = phases[0].steps.as_mut().unwrap();
        steps[0].status = Complete;
        (steps[1].status, steps[1].message) = (Error, Some("why".to_owned()));
        let state = state.end("the Instance is being deleted");
        assert_eq!(state.status.status, FatalError);
        assert_eq!(state.status.message.as_deref(), Some("the Instance is being deleted"));
        let phases = state.status.phases.as_ref().unwrap();
        let steps = phases[0].steps.as_ref().unwrap();
        assert_eq!((&phases[0].status, &phases[1].status), (&FatalError, &Pending));
        assert_eq!((&steps[0].status, &steps[1].status), (&Complete, &FatalError));
        assert_eq!(steps[1].message.as_deref(), Some("why"));
        assert_eq!(state.clone().end("again"), state);
    }

    #[test]
    fn a_retry_keeps_what_was_finished() {
        let mut state = PlanState::start(&package(two_phases()), "deploy", "u1");
        state.status.status = FatalError;
        let phases = state.status.phases.as_mut().unwrap();
        phases[0].status = FatalError;
        let steps = phases[0].steps.as_mut().unwrap();
        steps[0].status = Complete;
        (steps[1].status, steps[1].message) = (FatalError, Some("why".to_owned()));
        let retried = PlanState::retry(&state.status, &package(two_phases()), "deploy", "u2").status;
        assert_eq!((retried.uid.as_str(), &retried.status), ("u2", &Pending));
        let phases = retried.phases.unwrap();
        let steps = phases[0].steps.as_ref().unwrap();
        assert_eq!((&phases[0].status, &phases[1].status), (&Pending, &Pending));
        assert_eq!((&steps[0].status, &steps[1].status), (&Complete, &Pending));
        assert_eq!(steps[1].message, None);
    }

    #[test]
    fn entries_are_kept_by_name_in_the_order_of_the_package() {
        let old = all_plans(
            &BTreeMap::new(),
            &package(serde_json::json!({
                "deploy": {"phases": [{"name": "b", "steps": [{"name": "x"}, {"name": "three"}]}, {"name": "c"}]},
                "gone": {"phases": [{"name": "a"}]},
            })),
        );
        assert!(old.values().all(|entry| entry.status == NeverRun));
        let mut old = old;
        let entry = old.get_mut("deploy").unwrap();
        (entry.status, entry.uid) = (Complete, "u0".to_owned());
        let phase = &mut entry.phases.as_mut().unwrap()[0];
        phase.status = Complete;
        phase.steps.as_mut().unwrap()[1].status = Complete;
        let new = all_plans(&old, &package(two_phases()));
        assert_eq!(new["gone"], old["gone"]);
        let entry = &new["deploy"];
        assert_eq!((&entry.status, entry.uid.as_str()), (&Complete, "u0"));
        let phases = entry.phases.as_ref().unwrap();
        let names: Vec<_> = phases.iter().map(|p| (p.name.as_str(), &p.status)).collect();
        assert_eq!(names, [("a", &NeverRun), ("b", &Complete)]);
        let steps = phases[1].steps.as_ref().unwrap();
        assert_eq!((steps.len(), &steps[0].status), (1, &Complete));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the page is a file of docs/")]
    fn plan_states_page_is_that_of_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plan-states.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == page(),
            "docs/plan-states.md is old: run UPDATE_DOCS=1 cargo test -p interlock-kudo plan_states"
        );
    }

    fn any_status() -> impl Strategy<Value = ExecutionStatus> {
        let words = vec![NeverRun, Pending, InProgress, Error, FatalError, Complete];
        prop_oneof![prop::sample::select(words), "[A-Z]{1,5}".prop_map(ExecutionStatus::from)]
    }

    proptest! {
        #[test]
        fn terminal_states_are_left_only_by_a_new_uid(
            level in prop::sample::select(ALL),
            status in any_status(),
            events in prop::collection::vec(
                prop::sample::select(vec![StateEvent::Reached, StateEvent::Failed, StateEvent::Ended, StateEvent::Finished]), 1..8),
        ) {
            let mut now = status;
            for event in events {
                let before = now.clone();
                change(level, &mut now, event);
                prop_assert!(!before.is_terminal() || now == before);
                prop_assert!(now == before || !matches!(now, NeverRun | Pending));
            }
        }
    }
}
