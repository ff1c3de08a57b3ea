//! What the API server rejects, and how Instances report it: a denial by a quota, a policy or a webhook of others ends no
//! plan, whatever its code.

use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::effect::ApiFailure;
use interlock_core::rejection::{Rejection, RejectionKind};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::denying_policy::DenyingPolicy;
use crate::support::ground;
use crate::support::ground::Ground;
use crate::support::instances::{await_event, condition, run_of};
use crate::support::interlock::interlock;
use crate::support::scripted::{Reaction, Scripted};
use crate::support::{Client, Cluster, Interlock, Namespace, suffix, wait_until};

const CAP: Duration = Duration::from_secs(60);
const PACKAGE: &str = include_str!("rejections/operatorversion.yaml");
const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";

/// The answer as the process reads it.
fn rejection(answer: &Answer) -> Rejection {
    let text = |field: &str| answer.body[field].as_str().unwrap_or_default().to_owned();
    let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    Rejection::of(&ApiFailure {
        code: answer.code,
        reason: text("reason"),
        message: text("message"),
        namespace_terminating: causes.iter().any(|cause| cause["reason"] == "NamespaceTerminating"),
    })
}

#[track_caller]
fn assert_rejected(answer: &Answer, code: u16, kind: RejectionKind, by: Option<&str>) {
    let found = rejection(answer);
    assert_eq!((answer.code, found.kind, found.by.as_deref()), (code, kind, by), "{answer}");
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn deployment(name: &str, container: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    })
}

/// Pods of one container that asks for this.
fn pod(resources: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    })
}

/// A policy that denies ConfigMaps.
fn deny_config_maps(ns: &Namespace<'_>, reason: Option<&str>) -> DenyingPolicy {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
    });
    let policy = DenyingPolicy::apply(ns, &rule, FRIDAY, reason);
    await_denial(ns);
    policy
}

/// A ConfigMap as it would be created.
fn try_config_map(ns: &Namespace<'_>) -> Answer {
    let path = format!("{}?dryRun=All", ns.path("v1", "configmaps", ""));
    ns.admin().post(&path, &config_map("tried"))
}

fn await_denial(ns: &Namespace<'_>) {
    wait_until("ConfigMaps are denied", CAP, || {
        let answer = try_config_map(ns);
        if answer.code >= 400 { Ok(()) } else { Err(answer.to_string()) }
    });
}

/// A webhook of others that denies ConfigMaps of a namespace; it goes with the test.
struct Denying<'c> {
    server: Scripted,
    admin: Client,
    name: String,
    ns: &'c Namespace<'c>,
}

impl<'c> Denying<'c> {
    fn new(ns: &'c Namespace<'c>, status: &Value) -> Self {
        let (server, name) = (Scripted::start(), format!("policy-{}", suffix()));
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "policy.acme.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "timeoutSeconds": 2, "failurePolicy": "Fail", "clientConfig": server.client_config("/validating"),
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns.name()}},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
                }],
            }],
        });
        ns.admin().post(&format!("{REGISTRATION}/validatingwebhookconfigurations"), &configuration).ok();
        let denying = Self { server, admin: ns.admin(), name, ns };
        denying.denies(status);
        denying
    }

    fn denies(&self, status: &Value) {
        let status = status.clone();
        self.server.script(move |_| Reaction::deny(&status));
        await_denial(self.ns);
    }
}

impl Drop for Denying<'_> {
    fn drop(&mut self) {
        self.admin.delete(&format!("{REGISTRATION}/validatingwebhookconfigurations/{}", self.name));
    }
}

/// A port and an address that another Service has.
fn taken(ns: &Namespace<'_>) {
    let post = |object: &Value| ns.admin().post(&ns.path("v1", "services", ""), object);
    let service = |name: &str, port: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
        })
    };
    let made = post(&service("one", &Value::Null)).ok();
    let taken = service("two", &made["spec"]["ports"][0]["nodePort"]);
    assert_rejected(&post(&taken), 422, RejectionKind::AlreadyAllocated, None);
    let mut taken = service("two", &Value::Null);
    taken["spec"]["clusterIP"] = made["spec"]["clusterIP"].clone();
    assert_rejected(&post(&taken), 422, RejectionKind::AlreadyAllocated, None);
}

/// What a LimitRange and the Pod Security Standards deny.
fn plugins(ns: &Namespace<'_>) {
    let admin = ns.admin();
    let post = |plural: &str, object: &Value| admin.post(&ns.path("v1", plural, ""), object);
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "range"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}}]},
    });
    post("limitranges", &range).ok();
    wait_until("the range limits", CAP, || {
        let answer = post("pods", &pod(&json!({"limits": {"cpu": "2", "memory": "2Gi"}})));
        let found = rejection(&answer);
        let limited = found.by.as_deref() == Some("LimitRange") && answer.code == 403;
        if limited { Ok(()) } else { Err(answer.to_string()) }
    });
    ns.admin().delete(&ns.path("v1", "limitranges", "range")).ok();
    let label = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    admin.merge_patch(&format!("/api/v1/namespaces/{}", ns.name()), &label).ok();
    wait_until("pods are judged", CAP, || {
        let answer = post("pods", &pod(&json!({})));
        let found = rejection(&answer);
        let denied = (answer.code, found.kind, found.by.as_deref())
            == (403, RejectionKind::DeniedByAdmission, Some("PodSecurity"));
        if denied { Ok(()) } else { Err(answer.to_string()) }
    });
}

/// Each text, as this API server says it.
#[test]
fn what_the_api_server_says_is_classified() {
    use RejectionKind::*;
    let cluster = Cluster::shared();
    let ns = cluster.namespace("says");
    let admin = ns.admin();
    let post = |api_version: &str, plural: &str, object: &Value| {
        admin.post(&ns.path(api_version, plural, ""), object)
    };

    for (reason, code) in [(None, 422), (Some("Forbidden"), 403)] {
        let policy = deny_config_maps(&ns, reason);
        assert_rejected(&try_config_map(&ns), code, DeniedByAdmission, Some(&policy.name));
        drop(policy);
        wait_until("the policy is gone", CAP, || {
            let answer = try_config_map(&ns);
            if answer.code < 300 { Ok(()) } else { Err(answer.to_string()) }
        });
    }
    let webhook = Denying::new(&ns, &json!({"message": "not on Fridays"}));
    assert_rejected(&try_config_map(&ns), 400, DeniedByAdmission, Some("policy.acme.com"));
    webhook.denies(&json!({"code": 422, "message": "exceeded quota: x, it says"}));
    assert_rejected(&try_config_map(&ns), 422, DeniedByAdmission, Some("policy.acme.com"));
    webhook.server.script(|_| Reaction::Raw(500, "broken".to_owned()));
    assert_rejected(&try_config_map(&ns), 500, WebhookUnavailable, Some("policy.acme.com"));
    drop(webhook);

    ns.forbid("secrets");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    assert_rejected(&post("v1", "secrets", &secret), 403, QuotaExceeded, Some("no-secrets"));
    let stranger = ns.stranger("mallory");
    let path = ns.path("v1", "configmaps", "");
    assert_rejected(&stranger.post(&path, &config_map("a")), 403, MissingRight, None);

    post("v1", "configmaps", &config_map("a")).ok();
    assert_rejected(&post("v1", "configmaps", &config_map("a")), 409, NameTaken, None);
    let stale = json!({"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}});
    assert_rejected(&admin.merge_patch(&ns.path("v1", "configmaps", "a"), &stale), 409, Conflict, None);
    let nowhere = "/api/v1/namespaces/nowhere/configmaps";
    assert_rejected(&admin.post(nowhere, &config_map("a")), 404, NotFound, None);
    let put = admin.put(&ns.path("v1", "configmaps", ""), &config_map("a"));
    assert_rejected(&put, 405, Unsupported, None);

    let odd = deployment("web", &json!({"name": "c", "image": "i", "imagePolicy": "Always"}));
    let path = format!("{}?fieldManager=x", ns.path("apps/v1", "deployments", "web"));
    assert_rejected(&admin.server_side_apply(&path, &odd), 500, NotInSchema, None);
    assert_rejected(&post("apps/v1", "deployments?fieldValidation=Strict", &odd), 400, NotInSchema, None);
    let wrong = deployment("web", &json!("c"));
    assert_rejected(&post("apps/v1", "deployments", &wrong), 400, NotInSchema, None);
    let probe = json!({"name": "c", "image": "i", "readinessProbe": {"initialDelaySeconds": 1}});
    assert_rejected(&post("apps/v1", "deployments", &deployment("web", &probe)), 422, InvalidSpec, None);
    for (bytes, code) in [(1_600_000, 500), (3_400_000, 413)] {
        let env = json!([{"name": "A", "value": "x".repeat(bytes)}]);
        let large = deployment("web", &json!({"name": "c", "image": "i", "env": env}));
        assert_rejected(&post("apps/v1", "deployments", &large), code, TooLarge, None);
    }

    taken(&ns);
    plugins(&ns);

    let held = json!({"metadata": {"finalizers": ["example.dev/held"]}});
    admin.merge_patch(&ns.path("v1", "configmaps", "a"), &held).ok();
    admin.delete(&format!("/api/v1/namespaces/{}", ns.name())).ok();
    wait_until("the namespace is terminated", CAP, || {
        let answer = post("v1", "configmaps", &config_map("b"));
        if rejection(&answer).kind == NamespaceTerminating { Ok(()) } else { Err(answer.to_string()) }
    });
    let free = json!({"metadata": {"finalizers": null}});
    admin.merge_patch(&ns.path("v1", "configmaps", "a"), &free).ok();
}

fn step(found: &Value) -> &Value {
    &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][0]
}

impl Ground<'_> {
    /// Waits until the plan is `Stalled` for this reason, with these texts, and goes on.
    #[track_caller]
    fn await_stalled(&self, name: &str, reason: &str, texts: &[&str]) -> Value {
        self.await_that(name, &format!("it is stalled: {reason}"), |found| {
            let stalled = condition(found, "Stalled");
            let message = stalled["message"].as_str().unwrap_or_default();
            let running = found["status"]["planStatus"]["deploy"]["status"] == "IN_PROGRESS";
            let told = [message, step(found)["message"].as_str().unwrap_or_default()];
            running && stalled["reason"] == reason && texts.iter().all(|t| told.iter().all(|m| m.contains(t)))
        })
    }

    /// What the commands for people print.
    #[track_caller]
    fn assert_told(&self, name: &str, texts: &[&str]) {
        let ns = self.ns.name();
        for command in [&["why", &format!("instance/{ns}/{name}")][..], &["plan", "status", name, "-n", ns]] {
            let said = interlock(&self.user, command, "");
            let all = format!("{}{}", said.stdout, said.stderr);
            for text in texts {
                assert!(all.contains(text), "{text}: {said}");
            }
        }
    }
}

const FRIDAY: &str = "not on Fridays";

#[test]
fn a_policy_of_others_stalls_a_plan_and_does_not_end_it() {
    let ground = Ground::new(Interlock::shared().0, "policy", PACKAGE);
    let policy = deny_config_maps(&ground.ns, None);
    ground.create("demo", "refused-0.1.0", &json!({}));
    ground.await_stalled("demo", "DeniedByAdmission", &[&policy.name, FRIDAY]);
    assert!(await_event(&ground.ns, "DeniedByAdmission").contains(FRIDAY));
    ground.assert_told("demo", &["DeniedByAdmission", &policy.name, FRIDAY]);
    drop(policy);
    ground.await_plan("demo", "deploy", "COMPLETE");
}

#[rstest]
#[case::by_default(json!({"message": FRIDAY}))]
#[case::as_invalid(json!({"code": 422, "reason": "Invalid", "message": FRIDAY}))]
fn a_webhook_of_others_stalls_a_plan_and_abort_ends_it(#[case] status: Value) {
    let ground = Ground::new(Interlock::shared().0, "webhook", PACKAGE);
    let webhook = Denying::new(&ground.ns, &status);
    ground.create("demo", "refused-0.1.0", &json!({}));
    let found = ground.await_stalled("demo", "DeniedByAdmission", &["policy.acme.com", FRIDAY]);
    let request = json!({"metadata": {"annotations": {
        meta::REQUEST: format!("abort/{}/nonce-01", run_of(&found, "deploy")), meta::REASON: "enough",
    }}});
    ground.user.merge_patch(&ground.path("demo"), &request).ok();
    ground.await_plan("demo", "deploy", "FATAL_ERROR");
    // The next try finds the webhook gone.
    drop(webhook);
    let again = json!({"spec": {"planExecution": {"planName": "deploy"}}});
    ground.user.merge_patch(&ground.path("demo"), &again).ok();
    ground.await_plan("demo", "deploy", "COMPLETE");
}

#[test]
fn a_quota_stalls_a_plan_until_it_grows() {
    let ground = Ground::new(Interlock::shared().0, "quota", PACKAGE);
    ground.ns.forbid("deployments.apps");
    ground.create("demo", "refused-0.1.0", &json!({"OBJECT": "Deployment"}));
    let texts = ["exceeded quota: no-deployments.apps"];
    ground.await_stalled("demo", "QuotaExceeded", &texts);
    assert!(await_event(&ground.ns, "QuotaExceeded").contains(texts[0]));
    ground.assert_told("demo", &["QuotaExceeded", texts[0]]);
    let grown = json!({"spec": {"hard": {"count/deployments.apps": "1"}}});
    ground
        .ns
        .admin()
        .merge_patch(&ground.ns.path("v1", "resourcequotas", "no-deployments.apps"), &grown)
        .ok();
    ground.await_that("demo", "the Deployment is created", |found| condition(found, "Stalled").is_null());
}

/// Another Service may give its port back; an invalid object stays invalid.
#[test]
fn what_is_taken_is_waited_for_and_what_is_invalid_is_not() {
    let ground = Ground::new(Interlock::shared().0, "taken", PACKAGE);
    let holder = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "holder"},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 31999}]},
    });
    ground.ns.admin().post(&ground.ns.path("v1", "services", ""), &holder).ok();
    ground.create("demo", "refused-0.1.0", &json!({"OBJECT": "NodePort"}));
    ground.await_stalled("demo", "AlreadyAllocated", &["provided port is already allocated"]);
    ground.ns.admin().delete(&ground.ns.path("v1", "services", "holder")).ok();
    ground.await_plan("demo", "deploy", "COMPLETE");
    ground.create("other", "refused-0.1.0", &json!({"OBJECT": "invalid"}));
    ground.await_plan("other", "deploy", "FATAL_ERROR");
}

/// The workload is created, and its pods are not. Deployments say so, other workloads only in Events.
#[rstest]
#[case::deployment("Deployment")]
#[case::stateful_set("StatefulSet")]
#[case::job("Job")]
fn pods_that_a_quota_refuses_stall_the_plan(#[case] kind: &str) {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ground = Ground::new(cluster, "no-pods", PACKAGE);
    ground.ns.forbid("pods");
    ground.create("demo", "refused-0.1.0", &json!({"OBJECT": kind}));
    let texts = ["its pods are refused", "exceeded quota: no-pods"];
    ground.await_stalled("demo", "PodsRefused", &texts);
    assert!(await_event(&ground.ns, "PodsRefused").contains(texts[1]));
    ground.assert_told("demo", &["PodsRefused", texts[1]]);
    ground.ns.allow("pods");
    // The controller of the workload tries again, ever more rarely.
    ground.await_plan("demo", "deploy", "COMPLETE");
}

#[test]
fn a_name_that_is_no_label_value_is_refused_and_a_generated_one_never_is() {
    let ground = Ground::new(Interlock::shared().0, "names", PACKAGE);
    let long = ground::instance(&"n".repeat(64), "refused-0.1.0", &json!({}));
    let answer = ground.user.post(&ground.path(""), &long);
    for part in ["its name has 64 characters", "kudo.dev/instance", "at most 63", "[instance-name]"] {
        assert!(answer.message().contains(part), "{part}: {answer}");
    }
    answer.refused(422);
    let mut generated = ground::instance("", "refused-0.1.0", &json!({}));
    generated["metadata"] = json!({"generateName": "n".repeat(70)});
    let made = ground.user.post(&ground.path(""), &generated).ok();
    let name = made["metadata"]["name"].as_str().expect("a name");
    ground.await_plan(name, "deploy", "COMPLETE");
}
