//! U(plan, spec): the uid of a scheduled execution, the same under reinvocation and retry.

use interlock_core::api::stamp::SpecHash;
use uuid::Uuid;

/// Namespace of our version-5 UUIDs; any constant will do as long as it never changes.
const SPACE: Uuid = Uuid::from_u128(0x6f1d_9a52_51a7_4d0e_9f0c_1b7a_3c58_e2d4);

/// The Instance, at the version that an execution is scheduled on.
#[derive(Clone, Copy, Debug)]
pub struct ScheduledOn<'a> {
    /// Namespace of the Instance.
    pub namespace: &'a str,
    /// `metadata.generateName` where it is set, else `metadata.name`.
    pub name: &'a str,
    /// `oldObject.metadata.resourceVersion`, or `create`.
    pub version: &'a str,
}

/// UUIDv5 over (namespace, generateName or name, version, plan, hash), NUL-separated.
pub fn plan_uid(subject: ScheduledOn<'_>, plan: &str, hash: &SpecHash) -> Uuid {
    let parts = [subject.namespace, subject.name, subject.version, plan, hash.as_str()];
    Uuid::new_v5(&SPACE, parts.join("\0").as_bytes())
}

/// Whether a uid is a version-5 UUID, as only Interlock writes them.
pub fn is_version_5(uid: &str) -> bool {
    Uuid::try_parse(uid).is_ok_and(|uuid| uuid.get_version_num() == 5)
}

/// The Instance whose run is retried.
#[derive(Clone, Copy, Debug)]
pub struct Retry<'a> {
    /// Namespace of the Instance.
    pub namespace: &'a str,
    /// `metadata.name`.
    pub name: &'a str,
}

/// The uid that the retry of a run runs under: a function of the request, so that one request
/// never starts two runs.
pub fn retry_uid(of: Retry<'_>, run: &str, nonce: &str) -> Uuid {
    let parts = ["retry", of.namespace, of.name, run, nonce];
    Uuid::new_v5(&SPACE, parts.join("\0").as_bytes())
}
