//! Whether the webhook configurations and the policies guard as much as those that this version renders.

use interlock_core::admission::Freeze;
use serde_json::Value;

use super::report::CheckResult;
use crate::cli::common::installation::{Installation, there};
use crate::cli::common::reader::ReadOutcome;
use crate::cluster::tamper::weakened;
use crate::install;
use crate::install::InstallOptions;

const WEBHOOKS: &str = "webhooks";
const POLICIES: &str = "policies";

fn apply(part: &str) -> String {
    format!(
        "apply what you installed from again, such as `interlock render {part} | kubectl apply --server-side \
         --force-conflicts -f -` with the flags of the installation"
    )
}

/// The webhook configurations.
pub(super) fn webhooks(installation: &Installation) -> CheckResult {
    let wanted = install::webhooks::all(&installation.options);
    let reads = [&installation.mutating, &installation.validating];
    for (wanted, read) in wanted.iter().zip(reads) {
        if let Some(found) = problem(wanted, read) {
            return CheckResult::failed(WEBHOOKS, found, apply("webhooks"));
        }
    }
    let count = reads.into_iter().filter_map(there).map(|found| entries(found).count()).sum::<usize>();
    CheckResult::ok(WEBHOOKS, format!("{count} entries of both configurations guard as they were rendered"))
}

fn entries(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}

/// What is wrong with a guard object.
fn problem(wanted: &Value, read: &ReadOutcome) -> Option<String> {
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let name = format!("{} {}", text(&wanted["kind"]), text(&wanted["metadata"]["name"]));
    match read {
        ReadOutcome::Missing => Some(format!("{name} does not exist")),
        ReadOutcome::Unknown(why) => Some(format!("{name} cannot be read: {why}")),
        ReadOutcome::There(found) => {
            if !found["metadata"]["deletionTimestamp"].is_null() {
                return Some(format!("{name} is being deleted"));
            }
            if let Some(field) = weakened(wanted, found) {
                return Some(format!("{name} guards less than it was rendered: {field} differs"));
            }
            let warnings = found.pointer("/status/typeChecking/expressionWarnings");
            warnings
                .filter(|warnings| warnings.as_array().is_some_and(|list| !list.is_empty()))
                .map(|_| format!("{name} has expressions that do not fit the definitions of this cluster"))
        }
    }
}

/// The policies and their bindings. Where no flag shows the freeze, either of both will do.
pub(super) async fn policies(installation: &Installation) -> CheckResult {
    let freezes = match installation.freeze {
        Some(freeze) => vec![freeze],
        None => vec![Freeze::Strict, Freeze::SamePlan],
    };
    let mut first = None;
    for freeze in freezes {
        let options = InstallOptions { freeze, ..installation.options.clone() };
        match compare_policies(installation, &options).await {
            Ok(count) => {
                let message = format!("{count} policies are in force and bound as they were rendered");
                return CheckResult::ok(POLICIES, message);
            }
            Err(problem) => first = first.or(Some(problem)),
        }
    }
    CheckResult::failed(POLICIES, first.unwrap_or_default(), apply("policies"))
}

/// The number of policies; an error names the first difference.
async fn compare_policies(installation: &Installation, options: &InstallOptions) -> Result<usize, String> {
    let wanted = install::policies::all(options);
    for object in &wanted {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let read = installation.get("admissionregistration.k8s.io", kind, "", name).await;
        if let Some(problem) = problem(object, &read) {
            return Err(problem);
        }
    }
    Ok(wanted.iter().filter(|object| object["kind"] == "ValidatingAdmissionPolicy").count())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn first_policy() -> Value {
        install::policies::all(&InstallOptions::default()).remove(0)
    }

    #[rstest]
    #[case::same(json!({}), None)]
    #[case::open(json!({"spec": {"failurePolicy": "Ignore"}}), Some("failurePolicy differs"))]
    #[case::going(json!({"metadata": {"deletionTimestamp": "now"}}), Some("is being deleted"))]
    #[case::untyped(
        json!({"status": {"typeChecking": {"expressionWarnings": [{"warning": "w"}]}}}),
        Some("expressions that do not fit")
    )]
    fn a_policy_that_guards_less_is_named(#[case] change: Value, #[case] text: Option<&str>) {
        let mut found = first_policy();
        json_patch::merge(&mut found, &change);
        let said = problem(&first_policy(), &ReadOutcome::There(Arc::new(found)));
        assert_eq!(said.is_some(), text.is_some(), "{said:?}");
        if let (Some(said), Some(text)) = (said, text) {
            let named =
                format!("ValidatingAdmissionPolicy {}", first_policy()["metadata"]["name"].as_str().unwrap());
            assert!(said.starts_with(&named) && said.contains(text), "{said}");
        }
    }
}
