//! `interlock plan list`: Instances with their plans, or the plans of one Instance.

use std::collections::BTreeSet;

use clap::Args;
use interlock_core::api::age::age;
use interlock_core::api::condition;
use interlock_core::api::meta::condition::READY;
use interlock_kudo::api::{ExecutionStatus, Instance, OperatorVersion, PlanStatus};
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;

use crate::cli::common::error::{CliError, api};
use crate::cli::common::object_ref::bare;
use crate::cli::common::output;
use crate::cli::common::output::OutputFlag;
use crate::cli::common::target::{AllNamespaces, TargetFlags};
use crate::cli::kudo::instance::{InstanceRef, entries, last, locking_run};

/// Objects for each page of the list.
const PAGE: u32 = 500;

/// Flags of `list`.
#[derive(Args, Debug)]
pub(super) struct ListFlags {
    /// Name of an Instance whose plans are listed; without, all Instances of the namespace.
    #[arg(value_name = "INSTANCE", conflicts_with = "all_namespaces")]
    name: Option<String>,
    #[command(flatten)]
    all: AllNamespaces,
    #[command(flatten)]
    form: OutputFlag,
}

/// An Instance with the plan that is scheduled or runs, else the one that ran last.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InstanceRow {
    namespace: String,
    name: String,
    operator_version: String,
    #[serde(flatten)]
    plan: PlanRow,
    /// Status of the condition Ready.
    ready: String,
}

/// A plan and its last run.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanRow {
    plan: String,
    status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    run: String,
    /// Last change of its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_change: Option<Timestamp>,
}

/// Prints the list.
pub(super) async fn run(target: &TargetFlags, flags: &ListFlags) -> Result<(), CliError> {
    if let Some(name) = &flags.name {
        let subject = InstanceRef::connect(target, bare(name)).await?;
        let instance = subject.read().await?;
        // Who may not read the OperatorVersion sees the plans that are recorded.
        let version = subject.operator_version(&instance).await.unwrap_or_default();
        let rows = plan_rows(&instance, version.as_ref());
        return flags.form.output.print(&rows, || plan_text(&rows, Timestamp::now()));
    }
    let (client, default) = target.connect().await?;
    let namespace = flags.all.scope(target, &default)?;
    let (instances, place): (Api<Instance>, _) = match namespace {
        Some(namespace) => (Api::namespaced(client, namespace), format!(" of namespace {namespace}")),
        None => (Api::all(client), String::new()),
    };
    let rows: Vec<InstanceRow> = all(&instances, &place).await?.iter().map(instance_row).collect();
    if rows.is_empty() {
        output::note(&format!("there are no Instances{place}"));
    }
    flags.form.output.print(&rows, || instance_text(&rows, flags.all.given(), Timestamp::now()))
}

/// All pages of the list.
async fn all(instances: &Api<Instance>, place: &str) -> Result<Vec<Instance>, CliError> {
    let mut wanted = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page =
            instances.list(&wanted).await.map_err(api(format!("Instances{place} cannot be listed")))?;
        all.extend(page.items);
        wanted.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if wanted.continue_token.is_none() {
            return Ok(all);
        }
    }
}

fn instance_row(instance: &Instance) -> InstanceRow {
    let running = locking_run(instance).map(|(plan, run)| {
        let entry = entries(instance).find(|(name, entry)| **name == plan && entry.uid == run);
        // What is scheduled and has no record of its own yet has never run.
        entry.map_or_else(
            || PlanRow {
                status: ExecutionStatus::NeverRun.to_string(),
                plan: plan.clone(),
                run,
                last_change: None,
            },
            |(plan, entry)| plan_row(plan, Some(entry)),
        )
    });
    let plan = running.or_else(|| last(instance).map(|(plan, entry)| plan_row(plan, Some(entry))));
    let conditions = instance.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    InstanceRow {
        namespace: text(&instance.metadata.namespace),
        name: text(&instance.metadata.name),
        operator_version: instance.spec.operator_version.as_ref().map_or("", |v| v.name()).to_owned(),
        plan: plan.unwrap_or_default(),
        ready: condition::find(conditions, READY).map_or_else(|| "Unknown".to_owned(), |c| c.status.clone()),
    }
}

fn plan_row(plan: &str, entry: Option<&PlanStatus>) -> PlanRow {
    PlanRow {
        plan: plan.to_owned(),
        status: entry.map_or(ExecutionStatus::NeverRun, |entry| entry.status.clone()).to_string(),
        run: entry.map(|entry| entry.uid.clone()).unwrap_or_default(),
        last_change: entry.and_then(|entry| entry.last_updated_timestamp.as_ref()).map(|time| time.0),
    }
}

/// The plans of the package and those that are recorded, by name.
fn plan_rows(instance: &Instance, version: Option<&OperatorVersion>) -> Vec<PlanRow> {
    let defined = version.into_iter().flat_map(|version| version.spec.plans.iter().flatten());
    let mut names: BTreeSet<&str> = defined.map(|(name, _)| name.as_str()).collect();
    names.extend(entries(instance).map(|(name, _)| name.as_str()));
    let entry = |name: &str| entries(instance).find(|(plan, _)| *plan == name).map(|(_, entry)| entry);
    names.into_iter().map(|name| plan_row(name, entry(name))).collect()
}

fn since(plan: &PlanRow, now: Timestamp) -> String {
    plan.last_change.map_or_else(|| "-".to_owned(), |at| age(at, now))
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn instance_text(rows: &[InstanceRow], namespaces: bool, now: Timestamp) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heading = ["NAMESPACE", "INSTANCE", "OPERATORVERSION", "PLAN", "STATUS", "SINCE", "READY"];
    let first = usize::from(!namespaces);
    let cells = |row: &InstanceRow| -> Vec<String> {
        let texts = [&row.namespace, &row.name, &row.operator_version, &row.plan.plan, &row.plan.status];
        let more = [since(&row.plan, now), row.ready.clone()];
        texts.into_iter().map(|text| or_dash(text)).chain(more).skip(first).collect()
    };
    output::table(&heading[first..], rows.iter().map(cells))
}

fn plan_text(rows: &[PlanRow], now: Timestamp) -> String {
    let cells =
        |row: &PlanRow| vec![row.plan.clone(), row.status.clone(), since(row, now), or_dash(&row.run)];
    output::table(&["PLAN", "STATUS", "SINCE", "RUN"], rows.iter().map(cells))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn instance(spec: Value, status: Value) -> Instance {
        serde_json::from_value(json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"name": "demo", "namespace": "team"}, "spec": spec, "status": status,
        }))
        .unwrap()
    }

    fn now() -> Timestamp {
        "2026-01-02T03:06:09Z".parse().unwrap()
    }

    #[test]
    fn the_running_plan_else_the_last_one_is_shown() {
        let reference = json!({"operatorVersion": {"name": "held-0.1.0"}});
        let ended = json!({
            "planStatus": {
                "deploy": {"status": "COMPLETE", "uid": "u1", "lastUpdatedTimestamp": "2026-01-02T03:04:05Z"},
                "backup": {"status": "FATAL_ERROR", "uid": "u2", "lastUpdatedTimestamp": "2026-01-02T03:05:05Z"},
            },
            "conditions": [{"type": "Ready", "status": "False", "reason": "PlanFailed", "message": "",
                "lastTransitionTime": "2026-01-02T03:05:05Z"}],
        });
        let mut scheduled = reference.clone();
        scheduled["planExecution"] = json!({"planName": "deploy", "uid": "u3", "status": "NEVER_RUN"});
        let rows = [
            instance_row(&instance(reference, ended.clone())),
            instance_row(&instance(scheduled, ended)),
            instance_row(&instance(json!({}), json!({}))),
        ];
        assert_eq!(
            instance_text(&rows, true, now()),
            "NAMESPACE  INSTANCE  OPERATORVERSION  PLAN    STATUS       SINCE  READY\n\
             team       demo      held-0.1.0       backup  FATAL_ERROR  1m4s   False\n\
             team       demo      held-0.1.0       deploy  NEVER_RUN    -      False\n\
             team       demo      -                -       -            -      Unknown\n"
        );
        assert!(instance_text(&rows, false, now()).starts_with("INSTANCE  OPERATORVERSION"));
        assert_eq!(instance_text(&[], false, now()), "");
        assert_eq!(
            json!(rows[1]),
            json!({"namespace": "team", "name": "demo", "operatorVersion": "held-0.1.0", "plan": "deploy",
                "status": "NEVER_RUN", "run": "u3", "ready": "False"})
        );
    }

    #[test]
    fn plans_of_the_package_and_of_the_record() {
        let version: OperatorVersion = serde_json::from_value(json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": "held-0.1.0"},
            "spec": {"plans": {"deploy": {}, "backup": {}}},
        }))
        .unwrap();
        let status = json!({"planStatus": {
            "deploy": {"status": "COMPLETE", "uid": "u1", "lastUpdatedTimestamp": "2026-01-02T03:04:05Z"},
            "old": {"status": "NEVER_RUN"},
        }});
        assert_eq!(
            plan_text(&plan_rows(&instance(json!({}), status), Some(&version)), now()),
            "PLAN    STATUS     SINCE  RUN\n\
             backup  NEVER_RUN  -      -\n\
             deploy  COMPLETE   2m4s   u1\n\
             old     NEVER_RUN  -      -\n"
        );
    }
}
