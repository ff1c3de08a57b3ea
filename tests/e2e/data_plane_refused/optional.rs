//! What a DataPlane has beside its pods and Services: an autoscaler, and its history.

use serde_json::json;

use super::*;
use crate::support::denying_policy::DenyingPolicy;

fn scaled() -> Value {
    let mut spec = spec();
    let deployment = spec["deployment"].as_object_mut().unwrap();
    deployment.remove("replicas");
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}});
    deployment.insert(
        "scaling".into(),
        json!({"horizontal": {"minReplicas": 1, "maxReplicas": 3, "metrics": [cpu]}}),
    );
    spec
}

/// A quota of none of a resource, in force.
fn none_of(ns: &Namespace<'_>, resource: &str) {
    at_most(ns, 0, resource);
}

fn at_most(ns: &Namespace<'_>, count: usize, resource: &str) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {format!("count/{resource}"): count.to_string()}},
    });
    ns.admin().post(&ns.path("v1", "resourcequotas", ""), &quota).ok();
    wait_until("the quota is in force", CAP, || {
        let found = ns.admin().read(&ns.path("v1", "resourcequotas", "none")).ok();
        if found["status"]["hard"].is_object() { Ok(()) } else { Err(found.to_string()) }
    });
}

impl Plane<'_> {
    /// Edits the spec: an autoscaler is replaced by a number of pods.
    fn replace_scaling(&self) {
        let patch = json!({"spec": {"deployment": {"scaling": null, "replicas": 1}}});
        self.admin.merge_patch(&self.path("dataplanes", &self.name), &patch).ok();
    }

    #[track_caller]
    fn await_observed(&self) {
        wait_until("Ready is of this generation", CAP, || {
            let found = self.found();
            let observed = &condition(&found, "Ready")["observedGeneration"];
            if *observed == found["metadata"]["generation"] { Ok(()) } else { Err(found.to_string()) }
        });
    }
}

#[test]
fn a_deletion_that_is_refused_is_told_of_and_the_rest_goes_on() {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("kept-autoscaler");
    let plane = Plane::create(&ns, "edge", &scaled());
    plane.await_child("horizontalpodautoscalers", "edge");
    plane.await_well();
    let said = "autoscalers are not deleted on Fridays";
    let rule = json!({
        "apiGroups": ["autoscaling"], "apiVersions": ["*"], "operations": ["DELETE"],
        "resources": ["horizontalpodautoscalers"],
    });
    let policy = DenyingPolicy::apply(&ns, &rule, said, None);
    let path = format!("{}?dryRun=All", plane.path("horizontalpodautoscalers", "edge"));
    wait_until("the policy is in force", CAP, || {
        let answer = plane.admin.delete(&path);
        if answer.message().contains(said) { Ok(()) } else { Err(answer.to_string()) }
    });

    plane.replace_scaling();
    plane.await_condition(
        "Stalled",
        "True",
        "DeniedByAdmission",
        "HorizontalPodAutoscaler edge is not deleted: ",
    );
    plane.await_observed();
    plane.await_one_event("DeniedByAdmission", said);
    drop(policy);
    plane.await_well();
    plane.await_one_event("DeniedByAdmission", said);
    assert!(plane.admin.read(&plane.path("horizontalpodautoscalers", "edge")).code == 404);
}

#[test]
fn a_child_that_nobody_wants_any_more_is_not_missed() {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("no-autoscaler");
    none_of(&ns, "horizontalpodautoscalers.autoscaling");
    let plane = Plane::create(&ns, "edge", &scaled());
    plane.await_stalled("QuotaExceeded", "HorizontalPodAutoscaler edge is not applied: ");
    plane.replace_scaling();
    plane.await_well();
    plane.await_observed();
}

#[test]
fn a_history_that_is_refused_is_told_of_and_written_later() {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("no-history");
    none_of(&ns, "controllerrevisions.apps");
    let plane = Plane::create(&ns, "edge", &spec());
    plane.await_condition("Stalled", "True", "QuotaExceeded", "is not created: ");
    plane.await_condition("Ready", "True", "Ready", "");
    let revision =
        |plane: &Plane<'_>| plane.found()["metadata"]["annotations"]["interlock.dev/live-revision"].clone();
    assert_eq!(revision(&plane), Value::Null, "it names no revision that is not there");
    ns.admin().delete(&ns.path("v1", "resourcequotas", "none")).ok();
    plane.await_well();
    wait_until("the history is written", CAP, || match revision(&plane).as_str() {
        Some(name) => Ok(plane.admin.read(&plane.path("controllerrevisions", name)).ok()),
        None => Err(plane.found().to_string()),
    });
}

/// A staged change would replace the only place where it is.
#[test]
fn a_large_live_spec_that_is_not_kept_is_told_of() {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("no-archive");
    let plane = Plane::create(&ns, "edge", &spec());
    plane.await_well();
    wait_until("the history is written", CAP, || {
        let found = plane.found();
        let revision = &found["metadata"]["annotations"]["interlock.dev/live-revision"];
        if revision.is_string() { Ok(()) } else { Err(found.to_string()) }
    });
    at_most(&ns, 1, "controllerrevisions.apps");
    // These are live at once, and no part of the history.
    let patch = json!({"spec": {"deployment": {"annotations": {"large": "x".repeat(40 << 10)}}}});
    plane.admin.merge_patch(&plane.path("dataplanes", "edge"), &patch).ok();
    plane.await_condition("Stalled", "True", "QuotaExceeded", "ControllerRevision edge-");
    plane.await_one_event("QuotaExceeded", "was not kept in a ControllerRevision: ");
    ns.admin().delete(&ns.path("v1", "resourcequotas", "none")).ok();
    plane.await_well();
}
