//! The certificate of the admin API as a rollout sees it: whether pods mount the one that is made for them, and what
//! a condition says where it cannot be made.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::certificate::CertificateAnswer;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::condition;
use crate::data_plane::flavor::running::pod;
use crate::data_plane::rollout::{children, status};

/// How long a pod may take to mount its volumes, before that is said to be why it does not start.
const MOUNTS: SignedDuration = SignedDuration::from_secs(30);
/// Pause before pods are looked at again that do not start, and before the right is tried again.
const LOOK: Duration = Duration::from_secs(30);

/// Whether the pods of a spec mount the Secret that is made for them, and no other.
pub fn is_mounted(spec: &Value) -> bool {
    !children::brings_certificate(spec)
}

/// Whether the pods of a spec serve a certificate that this process has signed.
pub fn is_ours(answer: Option<&CertificateAnswer>, spec: &Value) -> bool {
    is_mounted(spec) && matches!(answer, Some(CertificateAnswer::InPlace(_)))
}

/// Whether a Deployment shall have pods and not all of them are available: only then is it asked what they wait for.
pub fn is_waiting(deployment: &Value) -> bool {
    deployment["spec"]["replicas"].as_i64() != Some(0) && !status::is_available(deployment)
}

/// Whether a pod cannot start as a volume of it is missing: it has a node, and is not ready to start containers.
pub fn lacks_a_volume(pods: &[Arc<Value>], now: Timestamp) -> bool {
    pods.iter().filter(|pod| pod::is_alive(pod)).any(|pod| {
        let status = &pod["status"];
        let scheduled = condition(status, "PodScheduled").filter(|scheduled| scheduled["status"] == "True");
        let since = scheduled.and_then(|scheduled| scheduled["lastTransitionTime"].as_str()?.parse().ok());
        let starts =
            condition(status, "PodReadyToStartContainers").is_none_or(|starts| starts["status"] != "False");
        !starts && since.is_some_and(|since: Timestamp| now.duration_since(since) >= MOUNTS)
    })
}

/// Reason and message of `Stalled` where the certificate cannot be made. `lacks_a_volume` tells whether pods wait
/// for it: without the right to read Secrets, that is how one that is missing shows.
pub fn stalled(
    secret: &str,
    answer: &CertificateAnswer,
    lacks_a_volume: bool,
) -> Option<(&'static str, String)> {
    match answer {
        CertificateAnswer::Denied(why) if lacks_a_volume => Some((
            meta::condition::MISSING_RIGHT,
            format!("no container starts, as where a volume is missing: {}", missing(secret, why)),
        )),
        CertificateAnswer::NoAuthority(why) => Some(("InvalidCertificateAuthority", why.clone())),
        _ => None,
    }
}

/// Why pods with this certificate are not asked by their admin API, and what to do; `None` where they are.
pub fn unasked(secret: &str, answer: Option<&CertificateAnswer>, spec: &Value) -> Option<String> {
    if !is_mounted(spec) {
        return Some(format!(
            "the template mounts a certificate of its own: take the volume cluster-certificate out of it, so that \
             the pods mount Secret {secret}"
        ));
    }
    match answer {
        Some(CertificateAnswer::InPlace(_)) => None,
        Some(CertificateAnswer::Denied(_)) => Some(format!(
            "Interlock may not make Secret {secret}: grant it (`interlock render rbac --dataplanes \
             --dataplane-certificates`, with the other flags of this installation)"
        )),
        Some(CertificateAnswer::OfAnother(_)) => {
            Some(format!("Secret {secret} is not of Interlock's CA: delete it, and Interlock makes it"))
        }
        Some(CertificateAnswer::NoAuthority(why)) => Some(why.clone()),
        None => Some(format!("Secret {secret} was not looked at yet")),
    }
}

/// What a Deployment that is not ready may wait for, for people.
pub fn note(secret: &str, answer: Option<&CertificateAnswer>) -> String {
    match answer {
        Some(CertificateAnswer::Denied(why)) => format!("; {}", missing(secret, why)),
        _ => String::new(),
    }
}

fn missing(secret: &str, why: &str) -> String {
    format!(
        "its pods mount Secret {secret} (tls.crt, tls.key, ca.crt), which Interlock may not make ({why}): grant it (`interlock render rbac \
         --dataplanes --dataplane-certificates`, with the other flags of this installation), or create the Secret, or mount \
         another one as volume cluster-certificate"
    )
}

/// When to look at the certificate again. `waiting` = whether pods are missing.
pub fn again(answer: Option<&CertificateAnswer>, waiting: bool, now: Timestamp) -> Option<Duration> {
    match answer? {
        CertificateAnswer::InPlace(at) | CertificateAnswer::OfAnother(at) => {
            let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            Some(if waiting { left.min(LOOK) } else { left })
        }
        CertificateAnswer::Denied(_) => waiting.then_some(LOOK),
        CertificateAnswer::NoAuthority(_) => Some(LOOK),
    }
}

/// The sooner of two times.
pub fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    [one, other].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn pod(scheduled: &str, starts: &str) -> Arc<Value> {
        Arc::new(json!({"status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": scheduled, "lastTransitionTime": "1970-01-01T00:00:00Z"},
            {"type": "PodReadyToStartContainers", "status": starts},
        ]}}))
    }

    #[rstest]
    #[case::for_long("True", "False", 30, true)]
    #[case::not_for_long("True", "False", 29, false)]
    #[case::pulls_its_image("True", "True", 300, false)]
    #[case::has_no_node("False", "False", 300, false)]
    fn a_pod_that_mounts_nothing_is_known(
        #[case] scheduled: &str,
        #[case] starts: &str,
        #[case] now: i64,
        #[case] expected: bool,
    ) {
        let now = Timestamp::from_second(now).unwrap();
        assert_eq!(lacks_a_volume(&[pod(scheduled, starts)], now), expected);
        assert!(!lacks_a_volume(&[], now));
    }
}
