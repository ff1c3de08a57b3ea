//! `interlock.dev/v1alpha1`: the kind Override, which admits one user's write of one Instance against one rule.

use jiff::{SignedDuration, Timestamp};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longest and shortest time that an Override holds, in seconds.
pub const EXPIRATION: (i64, i64) = (60, 4 * 60 * 60);

/// A write against a rule that is admitted, of one object by one user and for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "Override",
    plural = "overrides",
    singular = "override",
    doc = "Admits writes of one Instance by one user against one rule, for at most four hours. It is removed when it has expired.",
    derive = "Default",
    derive = "PartialEq",
    schema = "derived",
    printcolumn = r#"{"name": "Rule", "type": "string", "jsonPath": ".spec.rule"}"#,
    printcolumn = r#"{"name": "User", "type": "string", "jsonPath": ".spec.user"}"#,
    printcolumn = r#"{"name": "Seconds", "type": "integer", "description": "How long it holds after its creation.", "jsonPath": ".spec.expirationSeconds"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".spec.reason"}"#,
    printcolumn = r#"{"name": "UID", "type": "string", "description": "The object.", "jsonPath": ".spec.objectUID", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = unchanged()))]
pub struct OverrideSpec {
    /// `metadata.uid` of the one Instance.
    #[serde(rename = "objectUID")]
    #[schemars(length(min = 1, max = 64))]
    pub object_uid: String,
    /// Id of the one rule, such as `parameter-immutable`.
    #[schemars(length(min = 1, max = 63))]
    pub rule: String,
    /// Name of the one user, as the API server knows it.
    #[schemars(length(min = 1, max = 512))]
    pub user: String,
    /// How long it holds after its creation, from a minute to four hours.
    #[schemars(extend("x-kubernetes-validations" = in_range()))]
    pub expiration_seconds: i64,
    /// Why, in one line: it goes into Events.
    #[schemars(length(min = 1, max = 256), regex(pattern = "^[^\\x00-\\x1f\\x7f]+$"))]
    pub reason: String,
}

fn in_range() -> Value {
    let (least, most) = EXPIRATION;
    json!([{
        "rule": format!("self >= {least} && self <= {most}"),
        "message": format!("an Override holds for at least {least} and at most {most} seconds"),
    }])
}

fn unchanged() -> Value {
    json!([{"rule": "self == oldSelf", "message": "an Override does not change: delete it, and create another one"}])
}

impl Override {
    /// When it ceases to hold; `None` before it is created.
    pub fn expires(&self) -> Option<Timestamp> {
        let created = self.metadata.creation_timestamp.as_ref()?.0;
        let (least, most) = EXPIRATION;
        // The schema has these limits, and another process may have made the object without it.
        let seconds = self.spec.expiration_seconds.clamp(least, most);
        created.checked_add(SignedDuration::from_secs(seconds)).ok()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_given(600, 600)]
    #[case::for_ever(i64::MAX, 14_400)]
    #[case::never(-1, 60)]
    fn an_override_holds_for_at_most_four_hours(#[case] seconds: i64, #[case] expected: i64) {
        let object: Override = serde_json::from_value(json!({
            "metadata": {"name": "o", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"objectUID": "u", "rule": "r", "user": "a", "reason": "why", "expirationSeconds": seconds},
        }))
        .unwrap();
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(object.expires(), Some(created + SignedDuration::from_secs(expected)));
    }
}
