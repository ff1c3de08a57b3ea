//! `interlock plan status`.

use std::fmt::Write as _;

use clap::Args;
use interlock_core::api::condition;
use interlock_core::api::display::one_line;
use interlock_core::api::meta;
use interlock_core::api::meta::condition as types;
use interlock_kudo::api::{ExecutionStatus, Instance, PlanStatus};
use interlock_kudo::instance::change::baseline::PendingPlan;
use serde::Serialize;

use super::live;
use crate::cli::common::error::CliError;
use crate::cli::common::output::OutputFlag;
use crate::cli::kudo::instance::{InstanceName, InstanceRef, annotation, entries, locking_run};

/// Flags of `status`.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct StatusFlags {
    #[command(flatten)]
    pub(super) name: InstanceName,
    #[command(flatten)]
    form: OutputFlag,
    /// Watch the plan, and those queued behind it, until they end: on a terminal as a tree with its phases, steps and
    /// pods, else a line for each change. 0 where it is COMPLETE, 1 where it is FATAL_ERROR.
    #[arg(long, short, conflicts_with = "output")]
    watch: bool,
}

/// The state of an Instance's plans.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    namespace: String,
    name: String,
    operator_version: String,
    /// The run that is scheduled or runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<Current>,
    /// The last run of each plan, by name.
    plans: Vec<PlanStatus>,
    /// Pending plans, and why.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    owed: std::collections::BTreeMap<String, PendingPlan>,
    /// Conditions with a message for people.
    conditions: Vec<ConditionMessage>,
    /// A request that is not carried out yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
}

#[derive(Debug, Serialize)]
struct Current {
    plan: String,
    run: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionMessage {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    reason: String,
    message: String,
}

/// Prints the state of the plans.
pub(super) async fn run(subject: &InstanceRef, flags: &StatusFlags) -> Result<(), CliError> {
    if flags.watch {
        return live::run(subject).await;
    }
    let report = Report::of(&subject.read().await?);
    flags.form.output.print(&report, || report.text())
}

impl Report {
    fn of(instance: &Instance) -> Self {
        let conditions = instance.status.as_ref().map(|s| s.conditions.clone()).unwrap_or_default();
        let told =
            [types::READY, types::RECONCILING, types::STALLED, types::SPEC_DRIFT, types::VERBS_UNAVAILABLE];
        let api_message = told.iter().filter_map(|type_| condition::find(&conditions, type_)).map(|found| {
            ConditionMessage {
                type_: found.type_.clone(),
                status: found.status.clone(),
                reason: found.reason.clone(),
                message: found.message.clone(),
            }
        });
        let name = |text: &Option<String>| text.clone().unwrap_or_default();
        let current = locking_run(instance).map(|(plan, run)| Current { plan, run });
        // The plan that runs is not queued, although it counts as pending until it is COMPLETE.
        let runs = |plan: &str| current.as_ref().is_some_and(|current| current.plan == plan);
        let baseline = instance.status.as_ref().and_then(|status| status.last_applied.as_ref());
        let mut owed = baseline.map(|baseline| baseline.pending.clone()).unwrap_or_default();
        owed.retain(|plan, how| *how != PendingPlan::Queued || !runs(plan));
        Self {
            namespace: name(&instance.metadata.namespace),
            name: name(&instance.metadata.name),
            operator_version: instance.spec.operator_version.as_ref().map_or("", |v| v.name()).to_owned(),
            current,
            plans: entries(instance)
                .map(|(plan, entry)| PlanStatus { name: plan.clone(), ..entry.clone() })
                .collect(),
            owed,
            conditions: api_message.collect(),
            request: annotation(instance, meta::REQUEST).map(str::to_owned),
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |text: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", one_line(&text));
        };
        line(format!("Instance {}/{}, OperatorVersion {}", self.namespace, self.name, self.operator_version));
        for plan in &self.plans {
            plan_lines(plan).into_iter().for_each(&mut line);
        }
        if let Some(current) =
            self.current.as_ref().filter(|c| !self.plans.iter().any(|plan| plan.uid == c.run))
        {
            line(format!("plan {} (run {}): scheduled, has not begun", current.plan, current.run));
        }
        for (plan, how) in &self.owed {
            let how = match how {
                PendingPlan::Queued => "is queued: it runs next",
                PendingPlan::Failed => "failed and is owed",
                PendingPlan::Aborted => "was aborted and is owed",
            };
            line(format!("plan {plan} {how}"));
        }
        for api_message in &self.conditions {
            let quiet = api_message.status == "False" && api_message.message.is_empty();
            if !quiet {
                let message = if api_message.message.is_empty() {
                    String::new()
                } else {
                    format!(": {}", api_message.message)
                };
                line(format!(
                    "{} {} ({}){message}",
                    api_message.type_, api_message.status, api_message.reason
                ));
            }
        }
        if let Some(request) = &self.request {
            line(format!("request {request} waits to be carried out"));
        }
        out
    }
}

fn plan_lines(plan: &PlanStatus) -> Vec<String> {
    let says = |message: &Option<String>| {
        message.as_ref().filter(|m| !m.is_empty()).map_or_else(String::new, |m| format!(" ({m})"))
    };
    if plan.status == ExecutionStatus::NeverRun {
        return vec![format!("plan {}: {}", plan.name, plan.status)];
    }
    let since =
        plan.last_updated_timestamp.as_ref().map_or_else(String::new, |t| format!(", last change {}", t.0));
    let mut lines =
        vec![format!("plan {} (run {}): {}{since}{}", plan.name, plan.uid, plan.status, says(&plan.message))];
    for phase in plan.phases.iter().flatten() {
        lines.push(format!("  phase {}: {}{}", phase.name, phase.status, says(&phase.message)));
        for step in phase.steps.iter().flatten() {
            lines.push(format!("    step {}: {}{}", step.name, step.status, says(&step.message)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A package names its plans, phases and steps.
    #[test]
    fn no_name_steers_the_terminal() {
        let instance: Instance = serde_json::from_value(json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"name": "demo", "namespace": "team"}, "spec": {"operatorVersion": {"name": "held-0.1.0"}},
            "status": {"planStatus": {"deploy": {"status": "FATAL_ERROR", "uid": "u1", "phases": [
                {"name": "\u{202e}main\nplan x", "status": "FATAL_ERROR", "message": "\u{1b}]0;x\u{7}",
                 "steps": [{"name": "\u{9b}1A", "status": "FATAL_ERROR"}]}]}}},
        }))
        .unwrap();
        let text = Report::of(&instance).text();
        let shown: Vec<&str> = text.lines().skip(2).collect();
        let phase = "  phase \\u202emain plan x: FATAL_ERROR (\\u001b]0;x\\u0007)";
        assert_eq!(shown, [phase, "    step \\u009b1A: FATAL_ERROR"]);
    }

    #[test]
    fn what_runs_what_it_waits_for_and_what_is_owed() {
        let api_message = |type_: &str, status: &str, reason: &str, message: &str| {
            json!({"type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-02T03:04:05Z"})
        };
        let instance: Instance = serde_json::from_value(json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"name": "demo", "namespace": "team", "annotations": {meta::REQUEST: "abort/u1/nonce-01"}},
            "spec": {"operatorVersion": {"name": "held-0.1.0"}, "planExecution": {"planName": "deploy", "uid": "u1"}},
            "status": {
                "planStatus": {
                    "deploy": {"status": "IN_PROGRESS", "uid": "u1", "lastUpdatedTimestamp": "2026-01-02T03:04:05Z",
                        "phases": [{"name": "main", "status": "IN_PROGRESS", "steps": [
                            {"name": "before", "status": "COMPLETE"}, {"name": "gate", "status": "IN_PROGRESS"}]}]},
                    "not-allowed": {"status": "NEVER_RUN"},
                },
                "conditions": [
                    api_message("Ready", "Unknown", "PlanInProgress", "plan deploy runs"),
                    api_message("Reconciling", "True", "Waiting", "Service team/demo-gate: service demo-gate has no address"),
                ],
                "lastApplied": {"hash": "sha256:0", "owed": {"update": "failed", "backup": "aborted", "deploy": "queued", "restore": "queued"}},
            },
        }))
        .unwrap();
        let report = Report::of(&instance);
        assert_eq!(
            report.text(),
            "Instance team/demo, OperatorVersion held-0.1.0\n\
             plan deploy (run u1): IN_PROGRESS, last change 2026-01-02T03:04:05Z\n\
             \x20 phase main: IN_PROGRESS\n\
             \x20   step before: COMPLETE\n\
             \x20   step gate: IN_PROGRESS\n\
             plan not-allowed: NEVER_RUN\n\
             plan backup was aborted and is owed\n\
             plan restore is queued: it runs next\n\
             plan update failed and is owed\n\
             Ready Unknown (PlanInProgress): plan deploy runs\n\
             Reconciling True (Waiting): Service team/demo-gate: service demo-gate has no address\n\
             request abort/u1/nonce-01 waits to be carried out\n"
        );
        assert_eq!(json!(report)["current"], json!({"plan": "deploy", "run": "u1"}));
    }
}
