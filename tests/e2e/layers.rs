//! The two layers decide alike: the webhook's rules, in process, beside the policies, on a real
//! API server that has no webhook. Both judge the object as it is stored.
//!
//! The policies see one object and no package, so they decide less: a refusal of theirs is one
//! of the webhook's too, and a refusal of the webhook's by a rule of theirs is theirs too.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use interlock::install::{self, InstallOptions, Part};
use interlock_core::admission;
use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, Freeze, WebhookEndpoint};
use interlock_core::api::meta;
use interlock_core::kinds;
use interlock_core::kinds::static_lister::StaticLister;
use interlock_kudo::api::Instance;
use interlock_kudo::instance::change::lock;
use serde_json::{Value, json};

use crate::support::interlock::{apply, await_definitions};
use crate::support::{Client, Cluster, Namespace, wait_for};

const FINISHED: &str = "11111111-1111-4111-8111-111111111111";
const RUNNING: &str = "22222222-2222-4222-8222-222222222222";
const FRESH: &str = "33333333-3333-4333-8333-333333333333";
/// The state in which the Instance has a parameter that the package does not define.
const STRAY: &str = "stray";

/// Rules that both layers have, as far as they follow from one object.
const BOTH: [&str; 7] = [
    "plan-running",
    "plan-cancel",
    "plan-override",
    "plan-status",
    "finalizer-kept",
    "instance-deleting",
    "status-owner",
];

fn package() -> Value {
    let plan = json!({"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["t"]}]}]});
    json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": "ov"},
        "spec": {
            "operator": {"name": "op"}, "version": "1.0.0",
            "tasks": [{"name": "t", "kind": "Dummy", "spec": {"done": true}}],
            "parameters": [{"name": "A", "trigger": "deploy"}, {"name": "B"}],
            "plans": {"deploy": plan, "update": plan, "backup": plan, "cleanup": plan},
        },
    })
}

/// Old objects: planExecution, planStatus, and whether the Instance is being deleted.
fn states() -> Vec<(&'static str, Value, Value, bool)> {
    let run = |plan: &str, uid: &str, status: &str| json!({"planName": plan, "uid": uid, "status": status});
    let entry = |uid: &str, status: &str| json!({"uid": uid, "status": status});
    let idle = json!({"deploy": entry(FINISHED, "COMPLETE")});
    vec![
        ("new", json!({}), json!({}), false),
        ("idle", json!({}), idle.clone(), false),
        ("failed", json!({}), json!({"deploy": entry(FINISHED, "FATAL_ERROR")}), false),
        ("scheduled", run("deploy", RUNNING, "NEVER_RUN"), idle.clone(), false),
        (
            "running",
            run("deploy", RUNNING, "IN_PROGRESS"),
            json!({"deploy": entry(RUNNING, "IN_PROGRESS")}),
            false,
        ),
        // With a parameter that the package does not define.
        (
            STRAY,
            run("deploy", RUNNING, "IN_PROGRESS"),
            json!({"deploy": entry(RUNNING, "IN_PROGRESS")}),
            false,
        ),
        ("in-error", run("backup", RUNNING, "ERROR"), json!({"backup": entry(RUNNING, "ERROR")}), false),
        ("ended", run("deploy", FINISHED, "COMPLETE"), idle.clone(), false),
        ("no-uid", json!({"planName": "deploy"}), json!({"deploy": {"status": "COMPLETE"}}), false),
        ("unnamed", json!({}), json!({"backup": entry(RUNNING, "PENDING")}), false),
        (
            "other-word",
            run("deploy", RUNNING, "IN_PROGRESS"),
            json!({"deploy": entry(RUNNING, "WHATEVER")}),
            false,
        ),
        ("deleting-idle", json!({}), idle.clone(), true),
        (
            "deleting-running",
            run("deploy", RUNNING, "IN_PROGRESS"),
            json!({"deploy": entry(RUNNING, "IN_PROGRESS")}),
            true,
        ),
        (
            "cleaning",
            run("cleanup", RUNNING, "IN_PROGRESS"),
            json!({"cleanup": entry(RUNNING, "IN_PROGRESS")}),
            true,
        ),
    ]
}

/// Edits of the object, as merge patches.
fn edits() -> Vec<Value> {
    let execution = |value: Value| json!({"spec": {"planExecution": value}});
    let mut edits = vec![
        json!({}),
        json!({"metadata": {"labels": {"x": "y"}}}),
        json!({"metadata": {"annotations": {"x": "y"}}}),
        json!({"metadata": {"annotations": {meta::REQUEST: format!("abort/{RUNNING}/nonce-0001"), meta::REASON: "why"}}}),
        json!({"metadata": {"annotations": {meta::REQUEST: format!("retry/{FINISHED}/nonce-0001"), meta::REASON: "why"}}}),
        json!({"metadata": {"annotations": {meta::REQUEST: format!("abort/{RUNNING}/nonce-0001")}}}),
        json!({"metadata": {"annotations": {meta::REQUEST: "promote/u/nonce-0001", meta::REASON: "why"}}}),
        json!({"metadata": {"annotations": {meta::REQUEST: format!("restart/{RUNNING}/nonce-0001"), meta::REASON: "why"}}}),
        json!({"metadata": {"annotations": {meta::REQUEST: format!("pause/{RUNNING}/nonce-0001"), meta::REASON: "why"}}}),
        json!({"metadata": {"annotations": {meta::REQUEST: format!("resume/{RUNNING}/nonce-0001"), meta::REASON: "why"}}}),
        json!({"metadata": {"annotations": {meta::REQUEST: format!("adopt/{FINISHED}/nonce-0001"), meta::REASON: "why"}}}),
        json!({"metadata": {"annotations": {meta::REASON: "why", meta::REQUESTED_BY: "who"}}}),
        json!({"metadata": {"annotations": {meta::HISTORY: "[]"}}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"finalizers": ["example.com/other"]}}),
        json!({"spec": {"parameters": {"A": "2"}}}),
        json!({"spec": {"parameters": {"B": "2"}}}),
        json!({"spec": {"parameters": {"A": null}}}),
        json!({"spec": {"parameters": null}}),
        json!({"spec": {"parameters": {"STRAY": null}}}),
        json!({"spec": {"parameters": {"A": "2", "STRAY": null}}}),
        json!({"spec": {"operatorVersion": {"name": "other"}}}),
        json!({"spec": {"operatorVersion": {"kind": "OperatorVersion"}}}),
        json!({"spec": {"operatorVersion": {"namespace": "NAMESPACE"}}}),
        json!({"spec": null}),
        json!({"metadata": {"annotations": {meta::STEP_DEADLINE: "1h", meta::CLEANUP_PATIENCE: "1h"}}}),
        execution(json!(null)),
    ];
    for plan in ["deploy", "backup", "cleanup", ""] {
        for uid in [FRESH, FINISHED, RUNNING, ""] {
            for status in [json!("NEVER_RUN"), json!("COMPLETE"), json!("IN_PROGRESS"), json!(null)] {
                edits.push(execution(json!({"planName": plan, "uid": uid, "status": status})));
            }
        }
    }
    edits.extend(["FATAL_ERROR", "NEVER_RUN", ""].map(|status| execution(json!({"status": status}))));
    edits.extend([FRESH, ""].map(|uid| execution(json!({"uid": uid}))));
    edits.push(json!({"spec": {"parameters": {"A": "2"}, "planExecution": {"planName": "deploy", "uid": FRESH, "status": "NEVER_RUN"}}}));
    edits
}

/// Edits of the status.
fn status_edits() -> Vec<Value> {
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "Because", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    vec![
        json!({"planStatus": {"deploy": {"status": "COMPLETE"}}}),
        json!({"planStatus": {"mine": {"status": "COMPLETE"}}}),
        json!({"planStatus": null}),
        json!({"conditions": [condition("Mine", "True")]}),
        json!({"conditions": [condition("Mine", "True"), condition("Ready", "True")]}),
        json!({"conditions": [condition("SpecDrift", "True")]}),
        json!({"lastApplied": {"hash": "sha256:0"}}),
        json!({"progress": {"uid": "x"}}),
        json!({"requests": {"run": RUNNING, "paused": {"since": "2026-01-01T00:00:00Z", "reason": "mine"}}}),
        json!({"requests": {"run": FINISHED, "heldBy": [{"kind": "Secret", "name": "theirs", "uid": "u"}]}}),
        json!({"observedGeneration": 99}),
        json!({"conditions": null}),
        json!({}),
    ]
}

/// One namespace with an Instance in each state, and the layers beside each other.
struct Ground<'a> {
    ns: Namespace<'a>,
    user: Client,
    /// The bookkeeping user.
    books: Client,
    view: StaticLister,
    freeze: Freeze,
    instances: BTreeMap<&'static str, Value>,
}

impl<'a> Ground<'a> {
    fn new(cluster: &'a Cluster, freeze: Freeze) -> Self {
        let admin = cluster.admin();
        // Its controller labels Secrets as well.
        let options = InstallOptions { freeze, flavor_secrets: true, ..InstallOptions::default() };
        let mut objects = install::objects(Part::All, &options).unwrap();
        objects.retain(|o| {
            !["Deployment", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
                .iter()
                .any(|k| o["kind"] == *k)
        });
        apply(&admin, objects);
        await_definitions(&admin);
        let ns = cluster.namespace("layers");
        let user = ns.user("alice");
        let mut view = StaticLister::of(interlock::kinds::all());
        view.add(&package(), ns.name()).unwrap();
        let books = cluster.user("interlock", &[]);
        let mut ground = Self { ns, user, books, view, freeze, instances: BTreeMap::new() };
        for (name, execution, plans, deleting) in states() {
            let instance = ground.make(&ground.books, name, &execution, &plans, deleting);
            ground.instances.insert(name, instance);
        }
        ground.await_policies();
        ground
    }

    fn path(&self, name: &str) -> String {
        self.ns.path("kudo.dev/v1beta1", "instances", name)
    }

    fn make(&self, books: &Client, name: &str, execution: &Value, plans: &Value, deleting: bool) -> Value {
        let parameters = if name == STRAY { json!({"A": "1", "STRAY": "1"}) } else { json!({"A": "1"}) };
        let instance = json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"name": name, "finalizers": ["example.com/other", meta::FINALIZER]},
            "spec": {"operatorVersion": {"name": "ov"}, "parameters": parameters},
        });
        let path = self.path(name);
        self.user.post(&self.path(""), &instance).ok();
        books.merge_patch(&path, &json!({"spec": {"planExecution": execution}})).ok();
        let ready = json!({"type": "Ready", "status": "False", "reason": "Because", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {"planStatus": plans, "conditions": [ready]}});
        books.merge_patch(&format!("{path}/status"), &status).ok();
        if deleting {
            self.user.delete(&path).ok();
        }
        self.user.read(&path).ok()
    }

    /// Policies take effect about a second after they were made; those of another mode may be
    /// replaced by these.
    fn await_policies(&self) {
        let forged = json!({"status": {"planStatus": {"x": {"status": "COMPLETE"}}}});
        let restart = json!({"spec": {"planExecution": {"uid": FRESH, "status": "NEVER_RUN"}}});
        wait_for("the policies decide", Duration::from_secs(60), || {
            let status = self.user.merge_patch(&format!("{}/status?dryRun=All", self.path("idle")), &forged);
            let running = self.user.merge_patch(&format!("{}?dryRun=All", self.path("running")), &restart);
            let restarts = running.code == 200;
            status.code == 422 && restarts == (self.freeze == Freeze::SamePlan)
        });
    }

    /// The rule that the webhook refuses an update of a core kind by, in process.
    fn said_of(
        &self,
        view: &StaticLister,
        (group, kind): (&str, &str),
        new: &Value,
        old: &Value,
    ) -> Option<&'static str> {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": FRESH, "kind": {"group": group, "version": "v1", "kind": kind},
                "name": old["metadata"]["name"], "namespace": self.ns.name(), "operation": "UPDATE",
                "userInfo": {"username": "alice"}, "object": new, "oldObject": old,
            },
        });
        let config =
            Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze: self.freeze, docs: None };
        let body = serde_json::to_vec(&review).unwrap();
        let answer = admission::answer(
            &kinds::guarded(interlock::kinds::all()),
            WebhookEndpoint::Validate,
            &body,
            view,
            &config,
            CacheWait::Exhausted,
            None,
        )
        .unwrap();
        let AdmissionAnswer::Done(reply) = answer else { panic!("it waits") };
        let response: Value = serde_json::from_slice(&reply.body).unwrap();
        (response["response"]["allowed"] != true)
            .then(|| reply.record.rules.first().copied().unwrap_or("none"))
    }

    /// The rule that the webhook refuses by, in process.
    fn webhook(
        &self,
        door: WebhookEndpoint,
        new: &Value,
        old: &Value,
        subresource: Option<&str>,
    ) -> (Option<&'static str>, Value) {
        let kind = json!({"group": "kudo.dev", "version": "v1beta1", "kind": "Instance"});
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": FRESH, "kind": kind, "requestKind": kind,
                "resource": {"group": "kudo.dev", "version": "v1beta1", "resource": "instances"},
                "subResource": subresource, "requestSubResource": subresource,
                "name": old["metadata"]["name"], "namespace": self.ns.name(), "operation": "UPDATE",
                "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
                "object": new, "oldObject": old, "dryRun": true,
            },
        });
        let config =
            Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze: self.freeze, docs: None };
        let body = serde_json::to_vec(&review).unwrap();
        let answer = admission::answer(
            &kinds::guarded(interlock::kinds::all()),
            door,
            &body,
            &self.view,
            &config,
            CacheWait::Exhausted,
            None,
        )
        .unwrap();
        let AdmissionAnswer::Done(reply) = answer else { panic!("it waits") };
        let response: Value = serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].clone();
        if response["allowed"] != true {
            return (Some(reply.record.rules.first().copied().unwrap_or("none")), new.clone());
        }
        let mut object = new.clone();
        if let Some(patch) = response["patch"].as_str() {
            let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            json_patch::patch(&mut object, &patch.0).unwrap();
        }
        (None, object)
    }

    /// What the policies say.
    fn policies(&self, new: &Value, subresource: &str) -> Option<String> {
        let name = new["metadata"]["name"].as_str().unwrap();
        let answer = self.user.put(&format!("{}{subresource}?dryRun=All", self.path(name)), new);
        match answer.code {
            200 => None,
            422 if answer.message().contains("ValidatingAdmissionPolicy") => {
                Some(answer.message().to_owned())
            }
            _ => panic!("neither allowed nor refused by a policy: {answer}"),
        }
    }
}

/// Who may patch an Instance and not end its plans sets its limits exactly while there is nothing
/// to end: the lock of the policies is that of the engine.
fn limits_are_kept(ground: &Ground<'_>) {
    let rules = json!([{"apiGroups": ["kudo.dev"], "resources": ["instances"], "verbs": ["get", "patch"]}]);
    let bob = ground.ns.user_with("bob", &rules);
    let limit = json!({"metadata": {"annotations": {meta::STEP_DEADLINE: "1h"}}});
    let set = |name: &str| bob.merge_patch(&format!("{}?dryRun=All", ground.path(name)), &limit);
    wait_for("the binding counts and the policy decides", Duration::from_secs(60), || {
        set("idle").code == 200 && set("running").code == 422
    });
    for (name, old) in &ground.instances {
        let typed: Instance = serde_json::from_value(old.clone()).unwrap();
        let kept = lock::of(&typed).is_some() || !old["metadata"]["deletionTimestamp"].is_null();
        let answer = set(name);
        assert_eq!(answer.code, if kept { 422 } else { 200 }, "{name}: {answer}");
        assert_eq!(answer.message().contains("[verb-rights]"), kept, "{name}: {answer}");
    }
}

/// The label of what a router flavor comes from: the webhook knows which gateways there are, the
/// policy only who wrote the label. What the controller wrote is kept by both.
fn labels_are_kept(ground: &Ground<'_>) {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "edge", "namespace": ground.ns.name(), "labels": {meta::GUARD: meta::GUARD_FLAVOR},
            "annotations": {meta::GUARDED_SOURCES: "configmaps/source,secrets/source"},
        },
        "spec": {"template": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9", "envFrom": [
            {"prefix": "KONG_", "configMapRef": {"name": "source"}}, {"prefix": "KONG_", "secretRef": {"name": "source"}},
        ]}]}}},
    });
    let mut view = StaticLister::of(interlock::kinds::all());
    view.add(&deployment, ground.ns.name()).unwrap();
    let edits = [
        ("in-use", json!({meta::FLAVOR_SOURCE: null}), Some("RF18"), true),
        ("in-use", json!({meta::FLAVOR_SOURCE: null, "other": "x"}), Some("RF18"), true),
        // A label of people's own is kept by the webhook alone; alice may override its rules.
        ("in-use", json!({meta::FLAVOR_SOURCE: "mine"}), None, true),
        ("mine", json!({meta::FLAVOR_SOURCE: null}), Some("RF18"), false),
        ("mine", json!({meta::FLAVOR_SOURCE: "in-use"}), None, false),
        ("in-use", json!({"other": "x"}), None, false),
    ];
    for (kind, plural) in [("ConfigMap", "configmaps"), ("Secret", "secrets")] {
        let path = ground.ns.path("v1", plural, "source");
        let source = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "source"}});
        ground.user.post(&ground.ns.path("v1", plural, ""), &source).ok();
        let books = json!({"metadata": {"labels": {meta::FLAVOR_SOURCE: "in-use"}}});
        ground.books.merge_patch(&path, &books).ok();
        let taken = json!({"metadata": {"labels": {meta::FLAVOR_SOURCE: null}}});
        wait_for("the policy of labels decides", Duration::from_secs(60), || {
            ground.user.merge_patch(&format!("{path}?dryRun=All"), &taken).code == 422
        });
        for (value, labels, webhook, policy) in &edits {
            let books = json!({"metadata": {"labels": {meta::FLAVOR_SOURCE: value, "other": null}}});
            let old = ground.books.merge_patch(&path, &books).ok();
            let edit = json!({"metadata": {"labels": labels}});
            let mut new = old.clone();
            json_patch::merge(&mut new, &edit);
            let rule = ground.said_of(&view, ("", kind), &new, &old);
            assert_eq!(rule, *webhook, "{kind} {value} {labels}");
            let answer = ground.user.merge_patch(&format!("{path}?dryRun=All"), &edit);
            assert_eq!(answer.code, if *policy { 422 } else { 200 }, "{kind} {value} {labels}: {answer}");
            assert_eq!(
                answer.message().contains("[RF18]; see `interlock explain RF18`"),
                *policy,
                "{answer}"
            );
        }
        ground.user.delete(&path).ok();
    }
}

fn agree(freeze: Freeze) {
    let cluster = Cluster::own(&[]);
    let ground = Ground::new(&cluster, freeze);
    limits_are_kept(&ground);
    labels_are_kept(&ground);
    let (mut allowed, mut refused_by_both, mut wrong) = (0_usize, 0_usize, Vec::new());
    let mut count = |rule: Option<&str>, policy: Option<&str>| match (rule, policy) {
        (None, None) => allowed += 1,
        (Some(_), Some(_)) => refused_by_both += 1,
        _ => {}
    };
    for (state, old) in &ground.instances {
        for edit in edits() {
            let edit: Value =
                serde_json::from_str(&edit.to_string().replace("NAMESPACE", ground.ns.name())).unwrap();
            let mut bare = old.clone();
            json_patch::merge(&mut bare, &edit);
            let (refused, mutated) = ground.webhook(WebhookEndpoint::Mutate, &bare, old, None);
            // As the API server has it: mutated, unless the webhook is not there.
            for (how, object) in [("bare", &bare), ("mutated", &mutated)] {
                if how == "mutated" && refused.is_some() {
                    continue;
                }
                let (rule, _) = ground.webhook(WebhookEndpoint::Validate, object, old, None);
                let policy = ground.policies(object, "");
                count(rule, policy.as_deref());
                let stricter = policy.is_some() && rule.is_none();
                let laxer = policy.is_none() && rule.is_some_and(|rule| BOTH.contains(&rule));
                if stricter || laxer {
                    wrong.push(format!("{state} {how} {edit}: webhook {rule:?}, policies {policy:?}"));
                }
            }
        }
        for edit in status_edits() {
            let mut object = old.clone();
            json_patch::merge(&mut object, &json!({"status": edit}));
            let (rule, _) = ground.webhook(WebhookEndpoint::Validate, &object, old, Some("status"));
            let policy = ground.policies(&object, "/status");
            count(rule, policy.as_deref());
            if rule.is_some() != policy.is_some() {
                wrong.push(format!("{state} status {edit}: webhook {rule:?}, policies {policy:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    println!("{freeze:?}: {allowed} allowed by both, {refused_by_both} refused by both");
    assert!(
        allowed > 100 && refused_by_both > 500,
        "{allowed} allowed and {refused_by_both} refused is too little to tell"
    );
}

#[test]
fn the_layers_agree_when_strict() {
    agree(Freeze::Strict);
}

#[test]
fn the_layers_agree_with_same_plan() {
    agree(Freeze::SamePlan);
}
