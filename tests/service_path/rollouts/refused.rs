//! What the API server refuses of a DataPlane's children and pods is seen on the DataPlane, holds up nothing else, and
//! goes on by itself when it is mended.

use super::*;

/// A platform's policy: no Deployment runs this image.
const DENIED: &str = "kong:denied";
const POLICY: &str = "no-denied-image";

fn deny_image(ground: &Ground) {
    let policy = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {POLICY}}}\n\
         spec:\n  matchConstraints:\n    resourceRules: [{{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}}]\n  \
         validations:\n  - expression: \"object.spec.template.spec.containers.all(c, c.image != '{DENIED}')\"\n    message: this image is not allowed here\n\
         ---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: {POLICY}}}\n\
         spec: {{policyName: {POLICY}, validationActions: [Deny]}}\n"
    );
    ground.admin.kubectl_in(&["apply", "-f", "-"], &policy).ok();
    let probe = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "probe"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": DENIED}]}}},
    });
    let path = format!("{}?dryRun=All", ground.path("deployments", ""));
    wait_until("the policy is in force", CAP, || {
        let answer = ground.admin.post(&path, &probe);
        if answer.message().contains(POLICY) { Ok(()) } else { Err(answer.to_string()) }
    });
}

fn condition<'o>(object: &'o Value, type_: &str) -> &'o Value {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|found| found["type"] == type_).unwrap_or(&Value::Null)
}

#[track_caller]
fn await_condition(ground: &Ground, type_: &str, status: &str, reason: &str, said: &str) -> Value {
    wait_until(&format!("{type_} is {status}/{reason} and says {said:?}"), CAP, || {
        let found = ground.data_plane();
        let condition = condition(&found, type_);
        let says = condition["message"].as_str().is_some_and(|message| message.contains(said));
        let is_current = condition["observedGeneration"] == found["metadata"]["generation"];
        match is_current && condition["status"] == status && condition["reason"] == reason && says {
            true => Ok(found),
            false => Err(found["status"].to_string()),
        }
    })
}

#[track_caller]
fn await_no_stall(ground: &Ground) {
    wait_until("it is not stalled", CAP, || {
        let found = ground.data_plane();
        let stalled = condition(&found, "Stalled");
        if stalled.is_null() { Ok(()) } else { Err(stalled.to_string()) }
    });
}

fn in_place(image: &str) -> Value {
    let mut spec = spec(image);
    spec["deployment"].as_object_mut().expect("a deployment").remove("rollout");
    spec
}

#[test]
fn what_is_refused_in_place_is_seen_and_the_last_accepted_spec_heals() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    deny_image(&ground);
    ground.create(in_place("kong:3.8"));
    await_condition(&ground, "Ready", "True", "Ready", "");

    // To the API server another number is another port, beside ours and of the same name.
    let path = ground.path("services", INGRESS);
    let hand_edit = json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]);
    ground
        .admin
        .kubectl(&["patch", "service", INGRESS, "-n", NAMESPACE, "--type=json", "-p", &hand_edit.to_string()])
        .ok();
    ground.await_child("services", INGRESS, "has port 80 again", |found| {
        found["spec"]["ports"].as_array().is_some_and(|ports| ports.iter().all(|port| port["port"] != 81))
    });
    ground.await_event("LiveChildRestored", "81/TCP");
    let ports = ground.admin.read(&path).body["spec"]["ports"].clone();
    assert_eq!(ports.as_array().map(Vec::len), Some(2), "{ports}");

    ground.stage(DENIED);
    let stalled = await_condition(&ground, "Stalled", "True", "DeniedByAdmission", POLICY);
    assert!(
        condition(&stalled, "Stalled")["message"].as_str().unwrap().contains("this image is not allowed")
    );
    await_condition(&ground, "Ready", "False", "DeniedByAdmission", BLUE);
    ground.await_event("DeniedByAdmission", "this image is not allowed here");
    let status = ground.rollout(&["status", "edge"]);
    assert!(status.contains("stalled: DeniedByAdmission"), "{status}");

    // The last spec that the API server accepted is the live one until the new one is accepted.
    ground.admin.delete(&ground.path("deployments", BLUE)).ok();
    let healed =
        ground.await_child("deployments", BLUE, "is back", |found| found["status"]["readyReplicas"] == 2);
    assert_eq!(image(&healed), "kong:3.8");
    await_condition(&ground, "Stalled", "True", "DeniedByAdmission", POLICY);

    ground.stage("kong:3.9");
    ground.await_child("deployments", BLUE, "runs what was corrected", |found| image(found) == "kong:3.9");
    await_no_stall(&ground);
    await_condition(&ground, "Ready", "True", "Ready", "");
    wait_until("the annotation names no previous spec", CAP, || {
        let found = ground.data_plane();
        let stamp =
            found["metadata"]["annotations"]["interlock.dev/last-applied-spec"].as_str().unwrap_or_default();
        if stamp.contains("kong:3.9") && !stamp.contains("previous") { Ok(()) } else { Err(stamp.to_owned()) }
    });

    // The quota counts pods: the API server takes the Deployment, and refuses its pods.
    let quota = format!(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: few, namespace: {NAMESPACE}}}\nspec: {{hard: {{pods: \"2\"}}}}\n"
    );
    ground.admin.kubectl_in(&["apply", "-f", "-"], &quota).ok();
    ground
        .admin
        .merge_patch(&ground.path("dataplanes", "edge"), &json!({"spec": {"deployment": {"replicas": 4}}}))
        .ok();
    await_condition(&ground, "Stalled", "True", "PodsRefused", "exceeded quota: few");
    ground.admin.kubectl(&["delete", "resourcequota", "few", "-n", NAMESPACE]).ok();
    await_no_stall(&ground);
}

#[test]
fn a_staged_spec_that_is_refused_has_failed_and_leaves_the_live_side_alone() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    deny_image(&ground);
    ground.create(spec("kong:3.8"));
    ground.await_rolled_out("WaitingForChange");

    ground.stage(DENIED);
    let failed = ground.await_rolled_out("Failed");
    let message = failed["status"]["rollout"]["conditions"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains(POLICY), "{message}");
    await_condition(&ground, "Stalled", "True", "DeniedByAdmission", POLICY);
    assert_eq!(condition(&ground.data_plane(), "Ready")["status"], "True", "the live side serves");
    let status = ground.rollout(&["status", "edge"]);
    assert!(status.contains(POLICY) && status.contains("interlock rollout abort"), "{status}");
    let live =
        ground.await_child("deployments", BLUE, "is as it was", |found| found["spec"]["replicas"] == 2);
    assert_eq!(image(&live), "kong:3.8");

    ground.rollout(&["abort", "edge", "--wait"]);
    ground.await_rolled_out("WaitingForChange");
    await_no_stall(&ground);

    // A quota refuses the Deployment itself; it goes on when the quota grows.
    let quota = |hard: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: few, namespace: {NAMESPACE}}}\nspec: {{hard: {{count/deployments.apps: \"{hard}\"}}}}\n"
        );
        ground.admin.kubectl_in(&["apply", "-f", "-"], &text).ok();
    };
    ground.admin.delete(&ground.path("dataplanes", "edge")).ok();
    wait_until("it is gone", CAP, || {
        let found = ground.admin.read(&ground.path("deployments", BLUE));
        if found.code == 404 { Ok(()) } else { Err(found.to_string()) }
    });
    quota("0");
    ground.create(spec("kong:3.8"));
    await_condition(&ground, "Stalled", "True", "QuotaExceeded", "few");
    quota("5");
    ground.await_rolled_out("WaitingForChange");
    await_no_stall(&ground);
}
