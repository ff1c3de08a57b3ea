//! Edits that admission never saw: with the webhook configurations and the policies deleted,
//! the reconciler finds every one, carries out what admission would have accepted and reports
//! what it would have refused. A case a row of the table in `docs/drift.md`, "Drift".

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::instances::condition;
use crate::support::lasting::Lasting;
use crate::support::{Client, Cluster, Interlock, Namespace, wait_until};

mod midway;
mod no_room;

const CAP: Duration = Duration::from_secs(120);
const PACKAGE: &str = include_str!("operatorversion.yaml");
const STAMP: &str = "interlock.dev/last-applied-spec";

/// A control plane where Interlock runs and nothing guards.
fn unguarded() -> &'static Cluster {
    static OWN: Lasting<(Cluster, Interlock)> = Lasting::new();
    let (cluster, _) = OWN.get(|| {
        let cluster = Cluster::own(&[]);
        let process = Interlock::install(&cluster, &[]);
        remove_guards(&cluster);
        (cluster, process)
    });
    cluster
}

fn remove_guards(cluster: &Cluster) {
    let kinds = [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicies",
    ];
    for kind in kinds {
        cluster.admin().kubectl(&["delete", kind, "-l", "app.kubernetes.io/name=interlock"]).ok();
    }
    let ns = cluster.namespace("probe");
    ns.admin().apply(PACKAGE);
    // A policy is enforced for about a second after it was deleted.
    wait_until("a forged status is let through", CAP, || {
        let path = ns.path("kudo.dev/v1beta1", "instances", "probe");
        let object = instance("probe", &json!({}));
        let list = ns.path("kudo.dev/v1beta1", "instances", "");
        cluster.admin().post(list.trim_end_matches('/'), &object);
        let forged =
            json!({ "status": { "planStatus": { "deploy": { "status": "COMPLETE", "uid": "x" } } } });
        let answer = cluster.admin().merge_patch(&format!("{path}/status"), &forged);
        if answer.code == 200 { Ok(()) } else { Err(answer.message().to_owned()) }
    });
}

fn instance(name: &str, parameters: &Value) -> Value {
    json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "Instance",
        "metadata": { "name": name },
        "spec": { "operatorVersion": { "name": "web-0.1.0" }, "parameters": parameters },
    })
}

/// One Instance of the package, in a namespace of its own.
struct Subject<'a> {
    ns: Namespace<'a>,
    user: Client,
}

impl Subject<'_> {
    fn new(base: &str) -> Self {
        let ns = unguarded().namespace(base);
        let user = ns.admin();
        user.apply(PACKAGE);
        Self { ns, user }
    }

    fn created(base: &str) -> Self {
        let subject = Self::new(base);
        subject.user.apply(&instance("demo", &json!({})).to_string());
        subject.await_plan("deploy", "COMPLETE");
        subject
    }

    fn path(&self) -> String {
        self.ns.path("kudo.dev/v1beta1", "instances", "demo")
    }

    fn get(&self) -> Value {
        self.user.get("instances.kudo.dev", "demo").expect("the Instance")
    }

    #[track_caller]
    fn patch(&self, patch: &Value) -> Value {
        self.user.merge_patch(&self.path(), patch).ok()
    }

    #[track_caller]
    fn patch_status(&self, patch: &Value) {
        self.user.merge_patch(&format!("{}/status", self.path()), patch).ok();
    }

    #[track_caller]
    fn await_that(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait_until(what, CAP, || {
            let found = self.get();
            if holds(&found) { Ok(found) } else { Err(format!("{found:#}")) }
        })
    }

    #[track_caller]
    fn await_plan(&self, plan: &str, status: &str) -> Value {
        self.await_that(&format!("plan {plan} is {status} and nothing is scheduled"), |found| {
            idle(found) && status_of(found, plan) == status
        })
    }

    #[track_caller]
    fn await_running(&self, plan: &str) -> Value {
        self.await_that(&format!("plan {plan} runs"), |found| status_of(found, plan) == "IN_PROGRESS")
    }

    fn greeting(&self) -> String {
        self.user.get("configmap", "demo-config").expect("the ConfigMap")["data"]["greeting"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

fn idle(found: &Value) -> bool {
    found["spec"]["planExecution"]["planName"].as_str().unwrap_or("").is_empty()
}

fn status_of<'a>(found: &'a Value, plan: &str) -> &'a str {
    found["status"]["planStatus"][plan]["status"].as_str().unwrap_or("")
}

fn uid_of<'a>(found: &'a Value, plan: &str) -> &'a str {
    found["status"]["planStatus"][plan]["uid"].as_str().unwrap_or("")
}

fn stamp(found: &Value) -> Value {
    let text = found["metadata"]["annotations"][STAMP].as_str().unwrap_or("null");
    serde_json::from_str(text).expect("the stamp is JSON")
}

fn basis(found: &Value) -> Value {
    found["status"]["lastApplied"].clone()
}

/// The runs of an Instance, oldest first.
fn history(found: &Value) -> Vec<Value> {
    let text = found["metadata"]["annotations"]["plan.interlock.dev/history"].as_str().unwrap_or("[]");
    let mut runs: Vec<Value> = serde_json::from_str(text).expect("the history is JSON");
    runs.reverse();
    runs
}

#[test]
fn created_unseen_gets_finalizer_defaults_stamp_and_deploy() {
    let subject = Subject::new("created");
    let mut object = instance("demo", &json!({ "GREETING": "unseen" }));
    object["metadata"]["annotations"] = json!({ STAMP: "{\"copied\":true}" });
    subject.user.apply(&object.to_string());
    let found = subject.await_plan("deploy", "COMPLETE");
    assert_eq!(found["metadata"]["finalizers"], json!(["kudo.dev.instance.cleanup"]));
    assert_eq!(found["spec"]["parameters"], json!({ "GREETING": "unseen", "CODE": "alpha" }));
    assert_eq!(stamp(&found)["spec"]["parameters"], found["spec"]["parameters"]);
    assert_eq!(basis(&found)["hash"], stamp(&found)["hash"]);
    assert_eq!(subject.greeting(), "unseen");
}

#[test]
fn created_unseen_and_refused_is_reported() {
    let subject = Subject::new("created-bad");
    subject.user.apply(&instance("demo", &json!({ "NOBODY": "1" })).to_string());
    let found = subject.await_that("SpecDrift is True", |f| condition(f, "SpecDrift")["status"] == "True");
    let message = condition(&found, "SpecDrift")["message"].as_str().unwrap();
    assert!(message.contains("failed to find parameter \"NOBODY\""), "{message}");
    assert!(idle(&found) && status_of(&found, "deploy").is_empty(), "{found:#}");
    subject
        .user
        .kubectl(&[
            "patch",
            "instance",
            "demo",
            "--type=json",
            "-p",
            r#"[{"op":"remove","path":"/spec/parameters/NOBODY"}]"#,
        ])
        .ok();
    let found = subject.await_plan("deploy", "COMPLETE");
    assert_eq!(condition(&found, "SpecDrift"), &Value::Null);
}

#[test]
fn an_edit_by_a_put_that_drops_the_annotation_is_carried_out() {
    let subject = Subject::created("put");
    let edited = subject.user.put_edited(&subject.path(), |object| {
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.remove("annotations");
        metadata.remove("managedFields");
        object["spec"] = json!({ "operatorVersion": { "name": "web-0.1.0" }, "parameters": { "GREETING": "put", "CODE": "alpha" } });
        object.as_object_mut().unwrap().remove("status");
    });
    edited.ok();
    let found = subject.await_plan("update", "COMPLETE");
    assert_eq!(subject.greeting(), "put");
    assert_eq!(stamp(&found)["spec"]["parameters"]["GREETING"], "put");
}

#[test]
fn several_triggers_run_one_after_another() {
    let subject = Subject::created("several");
    subject.patch(&json!({ "spec": { "parameters": { "BACKUP": "1", "AUDIT": "1" } } }));
    let found = subject.await_that("both plans have completed", |found| {
        idle(found) && ["audit", "backup"].iter().all(|plan| status_of(found, plan) == "COMPLETE")
    });
    assert!(basis(&found)["owed"].is_null(), "{found:#}");
    let runs = history(&found);
    let order: Vec<&str> = runs.iter().map(|run| run["plan"].as_str().unwrap()).collect();
    assert_eq!(order, ["deploy", "audit", "backup"]);
}

#[test]
fn what_admission_would_refuse_is_neither_carried_out_nor_reverted() {
    let subject = Subject::created("refused");
    subject.patch(&json!({ "spec": { "parameters": { "CODE": "beta", "GREETING": "never" } } }));
    let found = subject.await_that("SpecDrift is True", |f| condition(f, "SpecDrift")["status"] == "True");
    let message = condition(&found, "SpecDrift")["message"].as_str().unwrap();
    assert!(message.contains("parameter 'CODE' is immutable"), "{message}");
    assert_eq!(found["spec"]["parameters"]["CODE"], "beta", "not reverted");
    assert_eq!(subject.greeting(), "hello", "not carried out");
    subject.patch(&json!({ "spec": { "parameters": { "CODE": "alpha" } } }));
    subject.await_plan("update", "COMPLETE");
    assert_eq!(subject.greeting(), "never");
    subject.await_that("SpecDrift is gone", |f| condition(f, "SpecDrift").is_null());
}

#[test]
fn another_version_runs_upgrade() {
    let subject = Subject::created("upgrade");
    let newer = PACKAGE.replace("web-0.1.0", "web-0.2.0").replace("version: 0.1.0", "version: 0.2.0");
    subject.user.apply(&newer);
    subject.patch(&json!({ "spec": { "operatorVersion": { "name": "web-0.2.0" } } }));
    let found = subject.await_plan("upgrade", "COMPLETE");
    assert_eq!(stamp(&found)["spec"]["operatorVersion"]["name"], "web-0.2.0");
    subject.patch(&json!({ "spec": { "operatorVersion": { "name": "web-0.1.0" } } }));
    let found = subject.await_that("SpecDrift is True", |f| condition(f, "SpecDrift")["status"] == "True");
    assert!(condition(&found, "SpecDrift")["message"].as_str().unwrap().contains("lower"), "{found:#}");
}

#[test]
fn a_bare_hash_is_enough_to_deploy() {
    let subject = Subject::new("bare");
    let name = |i: usize| format!("A_PARAMETER_WITH_QUITE_A_LONG_NAME_{i:04}");
    let parameters: String = (0..900).map(|i| format!("  - name: {}\n    default: d\n", name(i))).collect();
    let package = PACKAGE.replace("  - name: EXTRA\n", &format!("{parameters}  - name: EXTRA\n"));
    subject.user.kubectl_in(&["apply", "--server-side", "--force-conflicts", "-f", "-"], &package).ok();
    let values: serde_json::Map<String, Value> = (0..900).map(|i| (name(i), Value::from("v"))).collect();
    let object = instance("demo", &Value::Object(values)).to_string();
    subject.user.kubectl_in(&["apply", "--server-side", "-f", "-"], &object).ok();
    let found = subject.await_plan("deploy", "COMPLETE");
    assert!(basis(&found)["detail"].is_null(), "the short hashes do not fit");
    let first = uid_of(&found, "deploy").to_owned();
    subject.patch(&json!({ "spec": { "parameters": { "GREETING": "bare" } } }));
    subject.await_that("deploy has run again", |f| {
        idle(f) && uid_of(f, "deploy") != first && status_of(f, "deploy") == "COMPLETE"
    });
    assert_eq!(subject.greeting(), "bare");
}

#[test]
fn a_stamp_that_is_lost_or_wrong_is_rewritten() {
    let subject = Subject::created("restamp");
    let before = stamp(&subject.get());
    for text in
        [Value::Null, Value::from("nonsense"), Value::from(r#"{"v":1,"hash":"sha256:00","ref":"Secret"}"#)]
    {
        subject.patch(&json!({ "metadata": { "annotations": { STAMP: text } } }));
        subject.await_that("the stamp is rewritten", |f| {
            f["metadata"]["annotations"][STAMP].is_string()
                && f["metadata"]["annotations"][STAMP] != text
                && stamp(f)["hash"] == before["hash"]
        });
    }
    assert_eq!(status_of(&subject.get(), "update"), "NEVER_RUN", "nothing was run");
}

#[test]
fn an_execution_that_was_erased_is_put_back() {
    let subject = Subject::new("erased");
    subject.user.apply(&instance("demo", &json!({})).to_string());
    let running = subject.await_running("deploy");
    let uid = uid_of(&running, "deploy").to_owned();
    subject.patch(&json!({ "spec": { "planExecution": null } }));
    subject.await_that("the execution is named again", |f| f["spec"]["planExecution"]["uid"] == uid.as_str());
    let found = subject.await_plan("deploy", "COMPLETE");
    assert_eq!(uid_of(&found, "deploy"), uid, "it went on with its uid");
}

#[test]
fn a_forged_status_is_restored() {
    let subject = Subject::new("forged");
    subject.user.apply(&instance("demo", &json!({})).to_string());
    subject.await_running("deploy");
    subject.patch_status(&json!({ "status": { "planStatus": { "deploy": { "status": "COMPLETE" } } } }));
    subject.await_that("the run goes on", |f| status_of(f, "deploy") == "IN_PROGRESS");
    subject.await_plan("deploy", "COMPLETE");
    assert!(subject.user.get("deployment", "demo").is_some_and(|d| d["status"]["readyReplicas"] == 1));
    subject.patch_status(
        &json!({ "status": { "planStatus": { "backup": { "status": "IN_PROGRESS", "uid": "x" } } } }),
    );
    subject.await_that("the forged run is gone", |f| status_of(f, "backup") == "NEVER_RUN");
}

#[test]
fn a_spec_edited_during_a_run_is_judged_after_it() {
    let subject = Subject::new("during");
    subject.user.apply(&instance("demo", &json!({})).to_string());
    subject.await_running("deploy");
    subject.patch(&json!({ "spec": { "parameters": { "GREETING": "later" } } }));
    let found = subject.await_plan("update", "COMPLETE");
    assert_eq!(status_of(&found, "deploy"), "COMPLETE");
    assert_eq!(subject.greeting(), "later");
    let sets = subject.user.kubectl(&[
        "get",
        "replicasets",
        "-o",
        "jsonpath={.items[*].spec.template.metadata.annotations.greeting}",
    ]);
    let mut greetings: Vec<String> = sets.ok().split_whitespace().map(str::to_owned).collect();
    greetings.sort_unstable();
    assert_eq!(greetings, ["hello", "later"], "the first run was carried out on the spec it started with");
}

/// What happens while the process is down, and what an older KUDO left.
#[test]
fn a_process_that_was_down_finds_what_happened() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    remove_guards(&cluster);
    let ns = cluster.namespace("down");
    let user = ns.admin();
    user.apply(PACKAGE);
    let create = |name: &str| user.apply(&instance(name, &json!({})).to_string());
    let path = |name: &str| ns.path("kudo.dev/v1beta1", "instances", name);
    let await_that = |name: &str, what: &str, holds: &dyn Fn(&Value) -> bool| -> Value {
        wait_until(&format!("{name}: {what}"), CAP, || {
            let found = user.get("instances.kudo.dev", name).ok_or("no Instance")?;
            if holds(&found) { Ok(found) } else { Err(format!("{found:#}")) }
        })
    };
    let done = |plan: &'static str| move |f: &Value| idle(f) && status_of(f, plan) == "COMPLETE";
    create("killed");
    create("dropped");
    await_that("dropped", "deployed", &done("deploy"));
    await_that("killed", "deployed", &done("deploy"));
    user.merge_patch(&path("killed"), &json!({ "spec": { "parameters": { "GREETING": "again" } } })).ok();
    let running = await_that("killed", "update runs", &|f| status_of(f, "update") == "IN_PROGRESS");
    process.kill();
    // A trigger on a drifted spec whose stamp is gone has nothing to run on.
    let drifted = json!({
        "metadata": { "annotations": { STAMP: null } },
        "spec": { "parameters": { "GREETING": "drifted" }, "planExecution": { "planName": "backup", "uid": "u" } },
    });
    user.merge_patch(&path("dropped"), &drifted).ok();
    // Instances as an older KUDO leaves them: no stamp, no basis.
    for (name, status, execution) in [
        ("old", "COMPLETE", json!({})),
        ("old-running", "IN_PROGRESS", json!({ "planName": "deploy", "uid": "k", "status": "IN_PROGRESS" })),
        ("old-stuck", "IN_PROGRESS", json!({})),
    ] {
        create(name);
        user.merge_patch(&path(name), &json!({ "spec": { "planExecution": execution } })).ok();
        let entry = json!({ "name": "deploy", "uid": "k", "status": status, "phases": [] });
        user.merge_patch(
            &format!("{}/status", path(name)),
            &json!({ "status": { "planStatus": { "deploy": entry } } }),
        )
        .ok();
    }
    // Two at once, which is never shown for long.
    let two = json!({ "status": { "planStatus": { "backup": { "name": "backup", "uid": "b", "status": "IN_PROGRESS" } } } });
    create("two");
    user.merge_patch(&format!("{}/status", path("two")), &two).ok();
    let deploy = json!({ "status": { "planStatus": { "deploy": { "name": "deploy", "uid": "d", "status": "PENDING" } } } });
    user.merge_patch(&format!("{}/status", path("two")), &deploy).ok();
    process.start();

    let found = await_that("killed", "update has completed", &done("update"));
    assert_eq!(uid_of(&found, "update"), uid_of(&running, "update"), "the same run went on");
    let found = await_that("dropped", "the edit was carried out", &done("update"));
    assert_ne!(uid_of(&found, "backup"), "u", "the trigger was dropped");
    let found = await_that("old", "is adopted", &|f| basis(f).is_object() && stamp(f).is_object());
    assert_eq!(uid_of(&found, "deploy"), "k", "no rollout");
    assert!(user.get("configmap", "old-config").is_none(), "no rollout");
    for name in ["old-running", "old-stuck"] {
        let found = await_that(name, "is taken from its first step", &done("deploy"));
        assert_ne!(uid_of(&found, "deploy"), "k");
        assert!(user.get("configmap", &format!("{name}-config")).is_some());
    }
    await_that("two", "one has ended", &|f| {
        let running = ["deploy", "backup"]
            .iter()
            .filter(|plan| ["PENDING", "IN_PROGRESS"].contains(&status_of(f, plan)))
            .count();
        running <= 1 && idle(f)
    });
}
