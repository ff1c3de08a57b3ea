//! `interlock policies list`: policies, and what became of them.

use std::collections::BTreeSet;

use clap::Args;
use gateway_policies::PolicyId;
use interlock_core::api::display::one_line;
use interlock_gateway::policies::{PolicyRow, StatusCondition};
use serde_json::{Map, Value, json};

use super::source::{FilesFlag, Source, at_most_one_stdin};
use crate::cli::common::output;
use crate::cli::common::output::OutputFlag;
use crate::cli::common::target::{AllNamespaces, TargetFlags};

/// Names in one cell of the table; JSON has all of them.
const SHOWN: usize = 3;

/// Flags of `list`.
#[derive(Args, Debug)]
pub(super) struct ListFlags {
    #[command(flatten)]
    input: FilesFlag,
    #[command(flatten)]
    all: AllNamespaces,
    #[command(flatten)]
    form: OutputFlag,
}

/// Prints the list. With -n it has the policies of that namespace, else all.
pub(super) async fn run(target: &TargetFlags, flags: &ListFlags) -> anyhow::Result<()> {
    let scope = flags.all.scope(target, target.namespace.as_deref().unwrap_or_default())?;
    let scope = scope.filter(|namespace| !namespace.is_empty());
    at_most_one_stdin(flags.input.files.iter())?;
    let source = Source::read(target, &flags.input.files).await?;
    let survey = source.survey();
    let (mut rows, affected) = survey.rows();
    rows.retain(|row| scope.is_none_or(|namespace| &*row.id.namespace == namespace));
    if rows.is_empty() {
        let place = scope.map_or_else(String::new, |namespace| format!(" in namespace {namespace}"));
        let among = if source.gaps.is_none() { "" } else { " among the objects that can be seen" };
        output::note(&format!("there are no policies{place}{among}"));
    } else if !source.gaps.is_none() {
        output::note("what cannot be seen may replace rules of these policies, too");
    }
    let acting: BTreeSet<(&str, &str)> = affected
        .values()
        .flatten()
        .flat_map(|(kind, names)| names.iter().map(|name| (kind.as_str(), name.as_str())))
        .collect();
    for row in &rows {
        let is_acting = acting.contains(&(&*row.id.kind, row.id.qualified_name().as_str()));
        if row.accepted.status == "True" && !is_acting && source.gaps.is_none() {
            let how = if row.by.is_empty() {
                "no path leads through its targets"
            } else {
                "others replace its rules"
            };
            output::note(&one_line(&format!("{} acts nowhere: {how}", row.id)));
        }
        row.warnings.iter().for_each(|warning| output::note(&format!("{}: {warning}", row.id)));
        if row.accepted.status != "True" {
            let how =
                if row.accepted.status == "False" { "not accepted" } else { "not known to be accepted" };
            output::note(&format!("{} is {how}: {}", row.id, one_line(&row.accepted.message)));
        }
        // That others replace its rules is said above.
        let enforced = row.enforced.as_ref().filter(|own| own.status != "True" && own.reason != "Overridden");
        for (kind, reported) in [("Accepted", row.reported.as_ref()), ("Enforced", enforced)] {
            let Some(StatusCondition { status, reason, message }) = reported else { continue };
            let said = format!("{}: its status has {kind} {status} ({reason}): {message}", row.id);
            output::note(&one_line(&said));
        }
    }
    let policies: Map<String, Value> = rows.iter().map(|row| (row.id.to_string(), json(row))).collect();
    let answer = source.complete(&survey, json!({"policies": policies, "affected": affected}));
    Ok(flags.form.output.print(&answer, || text(&rows))?)
}

fn json(row: &PolicyRow) -> Value {
    let names: Vec<String> = row.by.iter().map(PolicyId::qualified_name).collect();
    let mut value = json!({
        "accepted": {"status": row.accepted.status, "reason": row.accepted.reason},
        "by": names,
    });
    if row.accepted.status != "True" {
        value["accepted"]["message"] = row.accepted.message.as_str().into();
    }
    let condition = |own: &StatusCondition| json!({"status": own.status, "reason": own.reason});
    if let Some(reported) = &row.reported {
        value["reported"] = condition(reported);
    }
    if !row.programmed.is_empty() {
        let programmed = row.programmed.iter().map(|(ancestor, own)| (ancestor.clone(), condition(own)));
        value["programmed"] = Value::Object(programmed.collect());
    }
    if let Some(enforced) = &row.enforced {
        value["enforced"] = condition(enforced);
        // Kuadrant has no reason for it; its message says it.
        let is_partial = enforced.status == "True" && enforced.message.contains("partially enforced");
        value["enforced"]["partially"] = is_partial.into();
    }
    value
}

fn text(rows: &[PolicyRow]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    // Without a controller that carries policies out, none has the condition.
    let is_enforced_said = rows.iter().any(|row| row.enforced.is_some());
    let cells = |row: &PolicyRow| {
        let accepted = with_reason(row.accepted.status, row.accepted.reason);
        let by: BTreeSet<String> = row.by.iter().map(PolicyId::qualified_name).collect();
        let name = row.id.qualified_name();
        let mut cells = vec![row.id.kind.to_string(), name, names(&row.targets), accepted];
        if is_enforced_said {
            let of = |own: &StatusCondition| with_reason(&own.status, &own.reason);
            cells.push(row.enforced.as_ref().map_or_else(|| "-".to_owned(), of));
        }
        cells.push(names(&by));
        cells
    };
    let mut headers = vec!["KIND", "POLICY", "TARGET", "ACCEPTED", "REPLACED BY"];
    if is_enforced_said {
        headers.insert(4, "ENFORCED");
    }
    output::table(&headers, rows.iter().map(cells))
}

/// `True`, or `False (REASON)`.
fn with_reason(status: &str, reason: &str) -> String {
    if status == "True" { status.to_owned() } else { format!("{} ({})", one_line(status), one_line(reason)) }
}

/// The first names, and how many there are more.
fn names<'a>(all: impl IntoIterator<Item = &'a String>) -> String {
    let all: Vec<&str> = all.into_iter().map(String::as_str).collect();
    match all.len() {
        0 => "-".to_owned(),
        count if count > SHOWN => format!("{} and {} more", all[..SHOWN].join(", "), count - SHOWN),
        _ => all.join(", "),
    }
}
