//! The result of a check, and how results are printed.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

/// Whether a check passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckOutcome {
    /// It passed.
    Ok,
    /// It did not.
    Failed,
    /// This installation has nothing to check.
    Skipped,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CheckResult {
    pub(super) check: &'static str,
    /// Whether it passed.
    pub(super) result: CheckOutcome,
    /// What was found.
    pub(super) message: String,
    /// What to do, in the imperative, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

impl CheckResult {
    /// It passed.
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, result: CheckOutcome::Ok, message: message.into(), next: None }
    }

    /// There is nothing to check.
    pub(super) fn skipped(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, result: CheckOutcome::Skipped, message: message.into(), next: None }
    }

    pub(super) fn failed(check: &'static str, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, result: CheckOutcome::Failed, message: message.into(), next: Some(next.into()) }
    }
}

/// Whether no check failed.
pub(super) fn passed(results: &[CheckResult]) -> bool {
    results.iter().all(|result| result.result != CheckOutcome::Failed)
}

/// The names of the checks that failed.
pub(super) fn failed(results: &[CheckResult]) -> Vec<&'static str> {
    results.iter().filter(|result| result.result == CheckOutcome::Failed).map(|result| result.check).collect()
}

/// One line a check; below one that failed, what to do.
pub(super) fn text(results: &[CheckResult]) -> String {
    let width = results.iter().map(|result| result.check.len()).max().unwrap_or(0);
    let mut out = String::new();
    for CheckResult { check, result, message, next } in results {
        let word = match result {
            CheckOutcome::Ok => "ok",
            CheckOutcome::Failed => "FAILED",
            CheckOutcome::Skipped => "skipped",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{word:<8}{check:<width$}  {}", one_line(message));
        if let Some(next) = next {
            let _ = writeln!(out, "{:8}{:width$}  Next: {}", "", "", one_line(next));
        }
    }
    out
}

/// Messages of the API server may have several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One JSON object.
pub(super) fn json(results: &[CheckResult]) -> String {
    json!({ "ok": passed(results), "checks": results }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Vec<CheckResult> {
        vec![
            CheckResult::ok("server", "Kubernetes v1.36.2"),
            CheckResult::failed("policies", "interlock-lock:\n  gone", "apply it"),
            CheckResult::skipped("leader", "nothing runs"),
        ]
    }

    #[test]
    fn each_check_is_a_line_and_a_failed_one_says_what_to_do() {
        let expected = "ok      server    Kubernetes v1.36.2\n\
                        FAILED  policies  interlock-lock: gone\n                  Next: apply it\n\
                        skipped leader    nothing runs\n";
        assert_eq!(text(&results()), expected);
    }

    #[test]
    fn what_is_skipped_fails_nothing() {
        assert_eq!((passed(&results()), failed(&results())), (false, vec!["policies"]));
        assert!(passed(&[results()[0].clone(), results()[2].clone()]));
        let read: serde_json::Value = serde_json::from_str(&json(&results())).unwrap();
        assert_eq!((&read["ok"], &read["checks"][1]["result"]), (&json!(false), &json!("failed")));
    }
}
