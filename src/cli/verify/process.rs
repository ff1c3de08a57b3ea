//! Whether replicas run, one of them leads, and the settings are Ready.

use std::time::Duration;

use interlock_core::api::interlock::DEFAULT;
use interlock_core::api::meta;
use interlock_core::api::meta::install;
use jiff::Timestamp;
use serde_json::Value;

use super::report::CheckResult;
use crate::cli::common::installation::Installation;
use crate::cli::common::reader::ReadOutcome;
use crate::install::Endpoint;
use crate::telemetry::build;

/// The oldest supported Kubernetes.
const OLDEST_MINOR: u64 = 30;
/// How long a Lease that looks old may take to be renewed; its times are of another machine's clock.
const RENEWAL: Duration = Duration::from_secs(5);

/// The version of the API server, and ours.
pub(super) fn versions(server: &str) -> CheckResult {
    const CHECK: &str = "versions";
    let message = format!("Kubernetes {server}; this is interlock {}", build::VERSION);
    let version = semver::Version::parse(server.trim_start_matches('v'));
    match version {
        Ok(version) if version.major == 1 && version.minor < OLDEST_MINOR => CheckResult::failed(
            CHECK,
            message,
            format!("use Kubernetes 1.{OLDEST_MINOR} or later, as the policies need"),
        ),
        _ => CheckResult::ok(CHECK, message),
    }
}

pub(super) fn deployments(installation: &Installation) -> CheckResult {
    const CHECK: &str = "deployment";
    let namespace = installation.options.namespace.as_str();
    if matches!(installation.options.endpoint, Endpoint::Url { .. }) {
        return CheckResult::skipped(CHECK, "the process runs outside of the cluster");
    }
    let found = match &installation.deployments {
        Ok(found) => found,
        Err(why) => {
            let next = format!("run this as a user who may list Deployments in namespace {namespace}");
            return CheckResult::failed(CHECK, why, next);
        }
    };
    let ours = |found: &&Value| {
        [install::NAME, install::WEBHOOK_NAME].iter().any(|name| found["metadata"]["name"] == *name)
    };
    let ours: Vec<&Value> = found.iter().filter(ours).collect();
    if ours.is_empty() {
        let next = "apply what you installed from, or name its namespace with -n";
        return CheckResult::failed(CHECK, format!("namespace {namespace} has none of Interlock"), next);
    }
    let waits = ours.iter().find_map(|deployment| waiting(deployment));
    let images: Vec<String> = ours.iter().map(|deployment| describe(deployment)).collect();
    match waits {
        None => CheckResult::ok(CHECK, images.join("; ")),
        Some((name, why)) => CheckResult::failed(
            CHECK,
            format!("{name}: {why}"),
            format!(
                "look why: `kubectl -n {namespace} rollout status deployment/{name}` and `kubectl -n {namespace} \
                 get pods`"
            ),
        ),
    }
}

fn describe(deployment: &Value) -> String {
    let text = |at: &str| deployment.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let image = text("/spec/template/spec/containers/0/image");
    let tag = image.rsplit_once(':').map_or("", |(_, tag)| tag);
    let other =
        semver::Version::parse(tag.trim_start_matches('v')).is_ok_and(|v| v.to_string() != build::VERSION);
    let note = if other { ", which is not the version of this program" } else { "" };
    let available = deployment["status"]["availableReplicas"].as_u64().unwrap_or(0);
    format!("{} has {available} available of image {image}{note}", text("/metadata/name"))
}

/// What `kubectl rollout status` would wait for.
fn waiting(deployment: &Value) -> Option<(&str, String)> {
    let name = deployment["metadata"]["name"].as_str()?;
    let number = |at: &str| deployment.pointer(at).and_then(Value::as_u64).unwrap_or(0);
    let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let (updated, available) = (number("/status/updatedReplicas"), number("/status/availableReplicas"));
    if wanted == 0 {
        return Some((name, "it is scaled to 0".to_owned()));
    }
    if number("/status/observedGeneration") < number("/metadata/generation") || updated < wanted {
        return Some((name, format!("{updated} of {wanted} replicas are updated")));
    }
    (available < wanted).then(|| (name, format!("{available} of {wanted} replicas are available")))
}

/// Checks that a replica holds the Lease, and renews it.
pub(super) async fn leader(installation: &Installation) -> CheckResult {
    const CHECK: &str = "leader";
    let namespace = installation.options.namespace.as_str();
    let next = format!(
        "start a replica, or look why none leads: `kubectl -n {namespace} get pods` and `kubectl -n {namespace} logs \
         deployment/{}`",
        install::NAME
    );
    let read = || installation.get("coordination.k8s.io", "Lease", namespace, install::LEASE);
    let lease = match read().await {
        ReadOutcome::There(lease) => lease,
        ReadOutcome::Missing => {
            return CheckResult::failed(
                CHECK,
                format!("there is no Lease {namespace}/{}", install::LEASE),
                next,
            );
        }
        ReadOutcome::Unknown(why) => {
            return CheckResult::failed(CHECK, why, "run this as a user who may get Leases there");
        }
    };
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    if holder.is_empty() {
        return CheckResult::failed(CHECK, "nobody holds the Lease", next);
    }
    if is_old(&lease, Timestamp::now()) {
        tokio::time::sleep(RENEWAL).await;
        let ReadOutcome::There(again) = read().await else {
            return CheckResult::failed(CHECK, "the Lease is gone", next);
        };
        if again["metadata"]["resourceVersion"] == lease["metadata"]["resourceVersion"] {
            return CheckResult::failed(CHECK, format!("{holder} does not renew the Lease"), next);
        }
    }
    CheckResult::ok(CHECK, format!("{holder} holds the Lease"))
}

/// Whether a Lease was not renewed in time, by this machine's clock.
fn is_old(lease: &Value, now: Timestamp) -> bool {
    let renewed = lease["spec"]["renewTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let duration = lease["spec"]["leaseDurationSeconds"].as_i64().unwrap_or(0);
    renewed.is_none_or(|renewed| now.duration_since(renewed).as_secs() > duration)
}

/// `Interlock default` is Ready.
pub(super) async fn settings(installation: &Installation) -> CheckResult {
    const CHECK: &str = "settings";
    let next = "look at its conditions: `kubectl describe interlock default`";
    let object = match installation.get(meta::INTERLOCK_GROUP, "Interlock", "", DEFAULT).await {
        ReadOutcome::There(object) => object,
        ReadOutcome::Missing => {
            let next =
                "wait for a leader, which creates it; it needs the right to create interlocks.interlock.dev";
            return CheckResult::failed(CHECK, "there is no Interlock default", next);
        }
        ReadOutcome::Unknown(why) => {
            return CheckResult::failed(
                CHECK,
                why,
                "run this as a user who may get interlocks.interlock.dev",
            );
        }
    };
    match judge_settings(&object) {
        Ok(message) => CheckResult::ok(CHECK, message),
        Err(message) => CheckResult::failed(CHECK, message, next),
    }
}

fn judge_settings(object: &Value) -> Result<String, String> {
    let conditions = || object["status"]["conditions"].as_array().into_iter().flatten();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let generation = &object["metadata"]["generation"];
    for type_ in ["Accepted", "RulesApplied", "Ready"] {
        let Some(found) = conditions().find(|condition| condition["type"] == type_) else {
            return Err(format!("Interlock default has no condition {type_} yet"));
        };
        if found["observedGeneration"] != *generation {
            return Err(format!("condition {type_} of Interlock default is about an older generation"));
        }
        if found["status"] != "True" {
            return Err(format!("{type_} is {}: {}", text(found, "status"), text(found, "message")));
        }
    }
    Ok("Interlock default is Ready".to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn condition(type_: &str, status: &str, generation: u64) -> Value {
        json!({"type": type_, "status": status, "message": "m", "observedGeneration": generation})
    }

    #[rstest]
    #[case::ready(["True", "True", "True"], 1, None)]
    #[case::not_ready(["True", "True", "False"], 1, Some("Ready is False: m"))]
    #[case::not_accepted(["False", "True", "True"], 1, Some("Accepted is False: m"))]
    #[case::old(["True", "True", "True"], 2, Some("condition Accepted of Interlock default is about an older generation"))]
    fn settings_are_ready_when_their_conditions_are(
        #[case] statuses: [&str; 3],
        #[case] generation: u64,
        #[case] problem: Option<&str>,
    ) {
        let types = ["Accepted", "RulesApplied", "Ready"];
        let conditions: Vec<_> = types.iter().zip(statuses).map(|(t, s)| condition(t, s, 1)).collect();
        let object = json!({"metadata": {"generation": generation}, "status": {"conditions": conditions}});
        assert_eq!(judge_settings(&object).err().as_deref(), problem);
    }

    #[rstest]
    #[case::done(json!({"updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 3}), None)]
    #[case::unseen(json!({"updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 2}), Some("2 of 2 replicas are updated"))]
    #[case::no_image(json!({"updatedReplicas": 2, "observedGeneration": 3}), Some("0 of 2 replicas are available"))]
    #[case::new(json!({}), Some("0 of 2 replicas are updated"))]
    fn a_rollout_is_waited_for(#[case] status: Value, #[case] why: Option<&str>) {
        let deployment = json!({
            "metadata": {"name": "interlock", "generation": 3}, "spec": {"replicas": 2}, "status": status,
        });
        assert_eq!(waiting(&deployment).map(|(_, why)| why).as_deref(), why);
    }

    #[rstest]
    #[case::renewed("2026-01-01T00:00:00.000000Z", false)]
    #[case::not_renewed("2025-12-31T23:59:30.000000Z", true)]
    #[case::no_time("", true)]
    fn a_lease_is_old_when_its_time_is_over(#[case] renewed: &str, #[case] old: bool) {
        let lease = json!({"spec": {"renewTime": renewed, "leaseDurationSeconds": 15}});
        assert_eq!(is_old(&lease, "2026-01-01T00:00:10Z".parse().unwrap()), old);
    }
}
