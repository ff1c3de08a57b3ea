//! An Override that has expired is removed.

use std::time::Duration;

use serde::Deserialize as _;

use crate::api::object::{ObjectKey, meta_str};
use crate::api::override_object::Override;
use crate::effect::{Effect, Propagation};
use crate::kinds::capabilities::SETTINGS;
use crate::reconcile::{Needs, ReconcileStep, Reconciler, View};

pub(super) static RECONCILER: Reconciler = Reconciler { name: "override", capability: &SETTINGS, reconcile };

/// Removes an Override that has expired, or waits until it does.
fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let object = view.object();
    let expires = Override::deserialize(object).ok().and_then(|object| object.expires());
    let (Some(expires), Some(key)) = (expires, ObjectKey::of(object)) else {
        return Ok(ReconcileStep::Await(None));
    };
    Ok(match Duration::try_from(expires.duration_since(view.now())) {
        Ok(left) if !left.is_zero() => ReconcileStep::Await(Some(left)),
        _ => ReconcileStep::Write(vec![Effect::Delete {
            key,
            uid: meta_str(object, "uid").unwrap_or_default().to_owned(),
            resource_version: meta_str(object, "resourceVersion").unwrap_or_default().to_owned(),
            propagation: Propagation::Background,
        }]),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::reconcile::Facts;

    #[rstest]
    #[case::holds("2026-01-01T00:09:59Z", Some(1))]
    #[case::has_expired("2026-01-01T00:10:00Z", None)]
    #[case::long_expired("2027-01-01T00:00:00Z", None)]
    fn it_is_removed_when_it_has_expired(#[case] now: &str, #[case] left: Option<u64>) {
        let object = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "Override",
            "metadata": {"name": "o", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"objectUID": "i", "rule": "r", "user": "a", "reason": "why", "expirationSeconds": 600},
        });
        let facts = Facts::default();
        let step = reconcile(&View::new(&object, &facts, now.parse().unwrap()));
        match (step.unwrap(), left) {
            (ReconcileStep::Await(after), Some(left)) => assert_eq!(after, Some(Duration::from_secs(left))),
            (ReconcileStep::Write(effects), None) => {
                assert!(matches!(&effects[..], [Effect::Delete { uid, .. }] if uid == "u"), "{effects:?}");
            }
            (step, _) => panic!("{step:?}"),
        }
    }
}
