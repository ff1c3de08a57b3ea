//! Requests that must not act, or that come without a name.

use serde_json::json;

use super::{Layers, instance, rule};
use crate::support::wait_until;

#[test]
fn creation_by_generate_name_is_admitted_and_runs() {
    let ground = Layers::Both.ground("generate");
    let mut object = instance("", &json!({}));
    object["metadata"] = json!({"generateName": "made-"});
    let names: Vec<String> = (0..3)
        .map(|_| {
            let made = ground.user.post(&ground.path(""), &object).ok();
            assert_eq!(made["spec"]["planExecution"]["planName"], "deploy");
            made["metadata"]["name"].as_str().unwrap().to_owned()
        })
        .collect();
    for name in &names {
        assert!(name.starts_with("made-") && name.len() > 5);
        ground.await_plan(name, "deploy", "COMPLETE");
        let edit = json!({"spec": {"parameters": {"OTHER": "some"}}});
        ground.user.merge_patch(&ground.path(name), &edit).ok();
        ground.await_plan(name, "update", "COMPLETE");
    }
    let mut wrong = object;
    wrong["spec"]["parameters"] = json!({"NONE": "1"});
    assert_eq!(rule(&ground.user.post(&ground.path(""), &wrong)), "parameter-unknown");
}

/// A dry run is decided alike, and nothing follows.
#[test]
fn a_dry_run_is_decided_like_the_real_one_and_nothing_follows() {
    let ground = Layers::Both.ground("dry");
    let dry = |path: &str| format!("{path}?dryRun=All");
    let edit = json!({"spec": {"parameters": {"OTHER": "some"}}});
    let trigger = json!({"spec": {"planExecution": {"planName": "backup"}}});

    let made = ground.user.post(&dry(&ground.path("")), &instance("demo", &json!({}))).ok();
    assert_eq!(made["spec"]["planExecution"]["planName"], "deploy");
    assert_eq!(ground.user.read(&ground.path("demo")).code, 404);

    let idle = ground.deployed("demo");
    let path = ground.path("demo");
    let edited = ground.user.merge_patch(&dry(&path), &edit).ok();
    assert_eq!(edited["spec"]["planExecution"]["planName"], "update");
    let triggered = ground.user.merge_patch(&dry(&path), &trigger).ok();
    assert_eq!(triggered["spec"]["planExecution"]["planName"], "backup");
    let text = instance("demo", &json!({"OTHER": "some"})).to_string();
    ground.user.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &text).ok();
    ground.user.kubectl_in(&["diff", "-f", "-"], &text);
    // Another Instance goes all the way after it: had anything been queued, it would have run.
    ground.deployed("later");
    assert_eq!(ground.get("demo"), idle);
    assert_eq!(ground.data("demo-before").unwrap()["plan"], "deploy");

    let before = ground.running("gated");
    let answer = ground.user.merge_patch(&dry(&ground.path("gated")), &edit);
    assert_eq!(rule(&answer), "plan-running");
    ground.user.delete(&dry(&ground.path("gated"))).ok();
    assert_eq!(ground.get("gated")["metadata"]["deletionTimestamp"], before["metadata"]["deletionTimestamp"]);
}

/// A rule of somebody else's that sends us what we never asked for.
#[test]
fn an_unknown_kind_or_operation_on_our_paths_is_refused_with_a_clear_text_and_counted() {
    let ground = Layers::Both.ground("misrouted");
    let admin = ground.ns.admin();
    let (_, process) = crate::support::Interlock::shared();
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let ours = admin.read(&format!("{configurations}/interlock")).ok();
    let bundle = &ours["webhooks"][0]["clientConfig"]["caBundle"];
    for path in ["validate", "admit-kudo-dev-v1beta1-instance"] {
        let name = format!("{}-{path}", ground.ns.name());
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": format!("{path}.misrouted.testbed.interlock.dev"),
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
                "clientConfig": {"url": format!("https://127.0.0.1:{}/{path}", process.webhook_port()), "caBundle": bundle},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ground.ns.name()}},
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts", "pods/exec"], "operations": ["*"]},
                    {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"], "operations": ["*"]},
                ],
            }],
        });
        admin.post(configurations, &configuration).ok();
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "stray"}});
        let stray = format!("{}?dryRun=All", ground.ns.path("v1", "serviceaccounts", ""));
        let answer = wait_until("the stray rule is in force", super::CAP, || {
            let answer = ground.user.post(&stray, &object);
            if answer.code == 201 { Err(answer.to_string()) } else { Ok(answer) }
        });
        admin.delete(&format!("{configurations}/{name}")).ok();
        assert_eq!(rule(&answer), "request-unknown", "{answer}");
        assert!(answer.message().contains("ServiceAccount"), "it names the kind: {answer}");
        wait_until("the stray rule is gone", super::CAP, || {
            let answer = ground.user.post(&stray, &object);
            if answer.code == 201 { Ok(()) } else { Err(answer.to_string()) }
        });
    }
    let (_, metrics) = process.ops("/metrics").unwrap();
    assert!(metrics.lines().any(|l| l.contains("request-unknown") && !l.ends_with(" 0")), "{metrics}");
}
