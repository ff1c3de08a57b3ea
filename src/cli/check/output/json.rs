//! A report for programs; docs/check.md says what each key means.

use serde_json::{Value, json};

use crate::cli::check::decision::{FieldCause, ObjectDecision, Report, Verdict};

/// The JSON of a report.
pub(super) fn of(report: &Report) -> Value {
    json!({
        "allowed": report.is_allowed(),
        "summary": {
            "objects": report.decisions.len(),
            "allowed": report.count(Verdict::Allowed),
            "refused": report.count(Verdict::Refused),
            "notChecked": report.count(Verdict::NotChecked),
            "notEvaluated": report.unevaluated(),
        },
        "objects": report.decisions.iter().map(object).collect::<Vec<_>>(),
    })
}

fn object(decision: &ObjectDecision) -> Value {
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
