//! `interlock rollout history`.

use std::fmt::Write as _;

use clap::Args;
use interlock_core::api::age::age;
use interlock_core::api::display::one_line;
use interlock_core::api::object::meta_str;
use interlock_kong::data_plane::rollout::history::History;
use interlock_kong::data_plane::rollout::history::summary::{RevisionSummary, summaries};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::data_plane::{DataPlaneName, DataPlaneRef};
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::invoked::as_called;
use crate::cli::common::output::{OutputFlag, table};

/// Flags of `history`.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct HistoryFlags {
    #[command(flatten)]
    pub(super) name: DataPlaneName,
    /// Show one revision: what it changed; with -o json or yaml its spec, too.
    #[arg(long, value_name = "REVISION")]
    revision: Option<i64>,
    #[command(flatten)]
    form: OutputFlag,
}

/// A revision with its spec.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RevisionDetail<'r> {
    #[serde(flatten)]
    summary: &'r RevisionSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Value>,
}

/// Prints the revisions, the oldest first, or one of them.
pub(super) async fn run(plane: &DataPlaneRef, flags: &HistoryFlags) -> Result<(), CliError> {
    let object = plane.get().await?;
    let listed = plane.history(&object).await?;
    let history = History::of(&listed, uid(&object));
    let kept = plane.kept(&object).await;
    let all = summaries(&object, kept.spec.as_ref(), &history);
    let Some(number) = flags.revision else {
        let text = || as_called(&list(plane, &all, Timestamp::now()));
        return flags.form.output.print(&all, text);
    };
    let Some(summary) = all.iter().find(|revision| revision.revision == number) else {
        return Err(CliError::unreached(format!("{plane} has no revision {number}"))
            .next(format!("choose one: `interlock rollout history {}`", plane.arguments())));
    };
    let spec = history.numbered(number).and_then(|revision| revision.spec());
    flags.form.output.print(&RevisionDetail { summary, spec }, || detail(plane, summary))
}

pub(super) fn uid(object: &Value) -> &str {
    meta_str(object, "uid").unwrap_or_default()
}

fn list(plane: &DataPlaneRef, all: &[RevisionSummary], now: Timestamp) -> String {
    if all.is_empty() {
        return format!(
            "no revision of {plane} is recorded: Interlock records one once the live pods were ready, where it carries \
             DataPlanes out\n"
        );
    }
    let row = |revision: &RevisionSummary| {
        let since = revision.live_since.as_deref().and_then(|since| since.parse::<Timestamp>().ok());
        vec![
            revision.revision.to_string(),
            since.map_or_else(|| "<unknown>".to_owned(), |since| age(since, now)),
            revision.state.to_string(),
            revision.router_flavor.clone().unwrap_or_else(|| "<unknown>".to_owned()),
            revision.hash.clone(),
            cell(&revision.change()),
        ]
    };
    table(&["REVISION", "AGE", "STATE", "FLAVOR", "SPEC", "CHANGE"], all.iter().map(row))
}

fn detail(plane: &DataPlaneRef, revision: &RevisionSummary) -> String {
    let mut out = format!("dataplane {} with revision #{}\n", plane.key(), revision.revision);
    let mut line = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name}: {}", cell(value));
    };
    line("state", &revision.state.to_string());
    line("spec", &revision.hash);
    for (name, value) in [
        ("live since", &revision.live_since),
        ("image", &revision.image),
        ("router flavor", &revision.router_flavor),
        ("change cause", &revision.change_cause),
    ] {
        if let Some(value) = value {
            line(name, value);
        }
    }
    if let Some(changes) = &revision.changes {
        out.push_str("changed:\n");
        for field in &changes.fields {
            let _ = writeln!(out, "  {}", cell(&field.to_string()));
        }
        if changes.more > 0 {
            let _ = writeln!(out, "  and {} more", changes.more);
        }
    }
    out
}

/// A text of others in one line.
fn cell(text: &str) -> String {
    plain(&one_line(text))
}
