//! Whether Kong's operator may still write the children of a DataPlane; the write by which each becomes ours, and, where
//! the DataPlane is handed back, the writes by which each is as Kong's operator finds it: with its labels, owner and
//! selectors, and without ours.

use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::meta::condition;
use interlock_core::api::object::{Gvk, ObjectKey, annotation, meta_str};
use interlock_core::effect::Effect;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::field_managers;
use crate::api::{OPERATOR_LEASE, WAIT_FOR_OWNER};
use crate::data_plane::rollout::kept::{KeptChildren, forget};
use crate::data_plane::rollout::report::ReportedRollout;
use crate::data_plane::rollout::view::DataPlaneView;

/// How long Kong's operator has to have written nothing: longer than its Lease lasts.
const QUIET: SignedDuration = SignedDuration::from_secs(30);
/// Pause before its Lease is looked at again: it is not watched.
const LOOK: Duration = Duration::from_secs(15);

/// The Lease of Kong's operator in a namespace.
pub fn lease_key(namespace: &str) -> ObjectKey {
    ObjectKey {
        gvk: Gvk::new("coordination.k8s.io/v1", "Lease"),
        namespace: Some(namespace.to_owned()),
        name: OPERATOR_LEASE.to_owned(),
    }
}

/// Whether a child is still Kong's operator's: it has its finalizer, or fields of these field managers.
pub fn is_held(found: &Value, managers: &[String]) -> bool {
    other_finalizers(found).is_some() || field_managers::last_write(found, managers).is_some()
}

/// Whether the children may be written: Kong's operator does not lead, and has not written them lately. `lease` is its
/// namespace and its Lease there; `None` where it is gone.
pub fn may_write<'c>(
    lease: Option<(&str, Option<&Value>)>,
    children: impl Iterator<Item = &'c Value>,
    managers: &[String],
    now: Timestamp,
) -> Result<(), LeftAlone> {
    if let Some((namespace, lease)) = lease {
        let Some(lease) = lease else {
            return Err(LeftAlone {
                again: Some(LOOK),
                ..LeftAlone::refused(format!(
                    "there is no Lease {OPERATOR_LEASE} in namespace {namespace}: write the namespace of Kong's operator into \
                     annotation {}, or \"{}\" where it is gone",
                    meta::TAKE_OVER,
                    meta::OPERATOR_UNINSTALLED
                ))
            });
        };
        if let Some(holder) = holder(lease, now) {
            let message = format!(
                "Kong's operator leads ({holder} holds Lease {namespace}/{OPERATOR_LEASE}): scale its Deployment to 0"
            );
            return Err(LeftAlone { again: Some(LOOK), ..another_writes(message) });
        }
    }
    let writes = children.filter_map(|child| Some((field_managers::last_write(child, managers)?, child)));
    let Some((at, child)) = writes.max_by_key(|(at, _)| *at) else { return Ok(()) };
    let quiet = at.parse::<Timestamp>().ok().and_then(|at| at.checked_add(QUIET).ok());
    match quiet {
        Some(quiet) if quiet > now => {
            let left = Duration::try_from(quiet.duration_since(now)).unwrap_or(LOOK);
            let message = format!(
                "Kong's operator wrote {} {} at {at}: scale its Deployment to 0, and wait {} s",
                child["kind"].as_str().unwrap_or_default(),
                meta_str(child, "name").unwrap_or_default(),
                QUIET.as_secs()
            );
            Err(LeftAlone { again: Some(left.min(LOOK)), ..another_writes(message) })
        }
        _ => Ok(()),
    }
}

fn another_writes(message: String) -> LeftAlone {
    LeftAlone::new(condition::ANOTHER_MANAGER_WRITES, message)
}

/// Who holds a Lease that has not run out.
fn holder(lease: &Value, now: Timestamp) -> Option<&str> {
    let spec = &lease["spec"];
    let holder = spec["holderIdentity"].as_str().filter(|holder| !holder.is_empty())?;
    let renewed: Timestamp = spec["renewTime"].as_str()?.parse().ok()?;
    let lasts = SignedDuration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or_default());
    (renewed.checked_add(lasts).unwrap_or(Timestamp::MAX) > now).then_some(holder)
}

/// The write by which a child becomes ours: without the finalizer of Kong's operator, and its fields as ours. It changes
/// nothing that Kubernetes acts on.
pub fn adopt(found: &Value, managers: &[String]) -> Option<Effect> {
    let mut metadata = json!({"managedFields": field_managers::taken(found, managers)});
    if let Some(finalizers) = other_finalizers(found) {
        metadata["finalizers"] = json!(finalizers);
    }
    Effect::patch_of(ObjectKey::of(found)?, found, json!({"metadata": metadata}))
}

/// The finalizers beside that of Kong's operator; `None` where it has none.
pub fn other_finalizers(found: &Value) -> Option<Vec<&Value>> {
    let all = found["metadata"]["finalizers"].as_array()?;
    let others: Vec<&Value> = all.iter().filter(|finalizer| **finalizer != WAIT_FOR_OWNER).collect();
    (others.len() < all.len()).then_some(others)
}

/// Why a DataPlane is left to another operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// Reason of the condition `Managed`.
    pub reason: &'static str,
    /// For people; the same as long as the cause is.
    pub message: String,
    /// When to look again; `None` = with the next event.
    pub again: Option<Duration>,
}

impl LeftAlone {
    /// For a cause that only an event of the DataPlane, or of what belongs to it, takes away.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), again: None }
    }

    /// As what was found cannot be taken over.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(condition::TAKE_OVER_REFUSED, message)
    }
}

/// Field manager that children are given back to where none of Kong's operator was found.
const UNKNOWN: &str = "before-first-apply";

/// Whether the status says that nothing is staged and no promotion goes on, as Kong's operator has to find it. `staged`
/// tells whether the spec differs from the live one.
pub fn is_at_rest(of: &DataPlaneView<'_>, staged: bool) -> bool {
    if !of.is_blue_green() {
        return true;
    }
    !staged && ReportedRollout::of(of.object).is_some_and(|found| found.rests())
}

/// The writes by which the children become Kong's operator's, and then those that forget what was kept.
pub fn hand_back<'c>(
    of: &DataPlaneView<'_>,
    kept: &KeptChildren,
    record: &Value,
    children: impl Iterator<Item = &'c Value>,
) -> Vec<Effect> {
    let manager = kept.managers.first().map_or(UNKNOWN, String::as_str);
    let children: Vec<Effect> = children.filter_map(|child| given_back(child, manager)).collect();
    if !children.is_empty() {
        return children;
    }
    // The history goes on where Interlock takes it over again.
    let patch = json!({"metadata": {"annotations": {meta::LIVE_REVISION: null}}});
    let recorded = annotation(of.object, meta::LIVE_REVISION).map(|_| of.patch(patch));
    recorded.into_iter().chain([forget(of, record)]).collect()
}

fn given_back(found: &Value, manager: &str) -> Option<Effect> {
    if annotation(found, meta::APPLIED_HASH).is_none() && !field_managers::has_ours(found) {
        return None;
    }
    let patch = json!({"metadata": {
        "annotations": {meta::APPLIED_HASH: null, meta::FORMER_SIDE_KEPT: null},
        "managedFields": field_managers::given_back(found, manager),
    }});
    Effect::patch_of(ObjectKey::of(found)?, found, patch)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn lease(holder: &str, renewed: i64) -> Value {
        json!({"spec": {"holderIdentity": holder, "renewTime": at(renewed).to_string(), "leaseDurationSeconds": 15}})
    }

    fn written(second: i64) -> Value {
        json!({"kind": "Service", "metadata": {"name": "s", "managedFields": [{
            "manager": "manager", "operation": "Update", "time": at(second).to_string(),
            "fieldsV1": {"f:spec": {"f:type": {}}},
        }]}})
    }

    #[rstest]
    #[case::led(Some(lease("pod-1", 990)), 0, "pod-1 holds Lease kong-system/a7feedc84.konghq.com")]
    #[case::led_by_nobody(Some(lease("", 990)), 0, "")]
    #[case::run_out(Some(lease("pod-1", 985)), 0, "")]
    #[case::without_a_time(Some(json!({"spec": {"holderIdentity": "pod-1"}})), 0, "")]
    #[case::absent(None, 0, "there is no Lease")]
    #[case::written_lately(Some(lease("pod-1", 0)), 971, "wrote Service s at 1970-01-01T00:16:11Z")]
    #[case::written_before(Some(lease("pod-1", 0)), 970, "")]
    fn children_are_written_when_nobody_else_does(
        #[case] lease: Option<Value>,
        #[case] wrote: i64,
        #[case] said: &str,
    ) {
        let (child, managers) = (written(wrote), vec!["manager".to_owned()]);
        let found =
            may_write(Some(("kong-system", lease.as_ref())), [&child].into_iter(), &managers, at(1000));
        match found {
            Ok(()) => assert_eq!(said, ""),
            Err(refused) => {
                assert!(!said.is_empty() && refused.message.contains(said), "{refused:?}");
                assert!(refused.again.is_some());
            }
        }
    }

    #[test]
    fn the_finalizer_goes_and_others_stay() {
        let mut child = written(0);
        child["apiVersion"] = json!("v1");
        child["metadata"]["resourceVersion"] = json!("7");
        child["metadata"]["finalizers"] =
            json!([WAIT_FOR_OWNER, "service.kubernetes.io/load-balancer-cleanup"]);
        let managers = vec!["manager".to_owned()];
        assert!(is_held(&child, &managers));
        let Some(Effect::Patch { patch, .. }) = adopt(&child, &managers) else { panic!("a patch") };
        json_patch::merge(&mut child, &patch);
        assert_eq!(child["metadata"]["finalizers"], json!(["service.kubernetes.io/load-balancer-cleanup"]));
        assert!(!is_held(&child, &managers), "{child:#}");
    }
}
