//! A report for people.

use std::fmt::Write as _;

use crate::cli::check::decision::{ObjectDecision, Report, Verdict};

/// The text of a report.
pub(super) fn of(report: &Report) -> String {
    let is_stream = report.decisions.len() > 1;
    let mut text = String::new();
    for decision in &report.decisions {
        object(decision, is_stream, &mut text);
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

fn object(decision: &ObjectDecision, is_stream: bool, text: &mut String) {
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
