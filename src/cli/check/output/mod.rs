//! The forms of a report.

use std::fmt::Write as _;

use clap::ValueEnum;
use interlock_core::api::docs::DocsUrl;
use serde_json::{Value, json};

use super::decision::{FieldCause, ObjectDecision, Report, Verdict};

mod junit;
mod sarif;

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// JUnit XML: a test case for each object.
    Junit,
    /// SARIF 2.1.0: a result for each violation.
    Sarif,
}

impl ReportFormat {
    /// The report in this form.
    pub(super) fn of(self, report: &Report, docs: Option<&DocsUrl>) -> String {
        match self {
            Self::Text => text(report),
            Self::Json => format!("{:#}\n", json(report)),
            Self::Junit => junit::of(report),
            Self::Sarif => format!("{:#}\n", sarif::of(report, docs)),
        }
    }
}

/// The text of a report.
fn text(report: &Report) -> String {
    let is_stream = report.decisions.len() > 1;
    let mut text = String::new();
    for decision in &report.decisions {
        text_of(decision, is_stream, &mut text);
    }
    if is_stream {
        let count = |verdict| report.count(verdict);
        let _ = write!(
            text,
            "\n{} objects: {} allowed, {} refused, {} not checked",
            report.decisions.len(),
            count(Verdict::Allowed),
            count(Verdict::Refused),
            count(Verdict::NotChecked)
        );
        match report.unevaluated() {
            0 => text.push('\n'),
            rules => {
                let _ = writeln!(text, "; rules of schemas not evaluated: {rules}");
            }
        }
    }
    text
}

fn text_of(decision: &ObjectDecision, is_stream: bool, text: &mut String) {
    // Writing to a String cannot fail.
    for warning in &decision.warnings {
        let _ = writeln!(text, "Warning: {warning}");
    }
    for rule in &decision.unevaluated {
        let _ = writeln!(text, "Not evaluated: {rule}");
    }
    let verdict = match &decision.refusal {
        Some(refusal) => format!("refused ({} {})", refusal.code, refusal.reason),
        None => decision.verdict.as_str().to_owned(),
    };
    let place = if is_stream { format!(" ({})", decision.place) } else { String::new() };
    let _ = writeln!(text, "{verdict}: {}{place}", decision.subject());
    if let Some(refusal) = &decision.refusal {
        let _ = writeln!(text, "{}", refusal.message);
    }
    if let Some(note) = &decision.note {
        let _ = writeln!(text, "note: {note}");
    }
    if decision.verdict != Verdict::Allowed {
        return;
    }
    if let Some(plan) = &decision.plan {
        let _ = writeln!(text, "plan: {plan}");
    }
    for operation in decision.patch.as_array().into_iter().flatten() {
        let word = |key: &str| operation[key].as_str().unwrap_or_default();
        let value = operation.get("value").map(|value| format!(" {value}")).unwrap_or_default();
        let _ = writeln!(text, "patch: {} {}{value}", word("op"), word("path"));
    }
}

/// The JSON of a report; docs/check.md says what each key means.
fn json(report: &Report) -> Value {
    json!({
        "allowed": report.is_allowed(),
        "summary": {
            "objects": report.decisions.len(),
            "allowed": report.count(Verdict::Allowed),
            "refused": report.count(Verdict::Refused),
            "notChecked": report.count(Verdict::NotChecked),
            "notEvaluated": report.unevaluated(),
        },
        "objects": report.decisions.iter().map(json_of).collect::<Vec<_>>(),
    })
}

fn json_of(decision: &ObjectDecision) -> Value {
    let refusal = decision.refusal.as_ref();
    let verdict = match decision.verdict {
        Verdict::Allowed => "allowed",
        Verdict::Refused => "refused",
        Verdict::NotChecked => "notChecked",
    };
    let causes: Vec<Value> = refusal.into_iter().flat_map(|refusal| &refusal.causes).map(cause).collect();
    let unevaluated = decision.unevaluated.iter();
    json!({
        "apiVersion": decision.api_version,
        "kind": decision.kind,
        "namespace": decision.namespace,
        "name": decision.name,
        "file": decision.place.file,
        "line": decision.place.line,
        "verdict": verdict,
        "allowed": decision.verdict != Verdict::Refused,
        "code": refusal.map_or(200, |refusal| refusal.code),
        "reason": refusal.map(|refusal| &refusal.reason),
        "message": refusal.map(|refusal| &refusal.message),
        "note": decision.note,
        "causes": causes,
        "rules": decision.rules,
        "warnings": decision.warnings,
        "notEvaluated": unevaluated
            .map(|rule| json!({"field": rule.path, "rule": rule.rule, "reason": rule.reason}))
            .collect::<Vec<_>>(),
        "plan": decision.plan,
        "patch": decision.patch,
        "object": decision.object,
    })
}

fn cause(cause: &FieldCause) -> Value {
    json!({
        "field": cause.field,
        "rule": cause.rule,
        "reason": cause.reason,
        "message": cause.message,
        "file": cause.place.file,
        "line": cause.place.line,
    })
}
