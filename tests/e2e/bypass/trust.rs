//! What was written while nothing guarded it, found when something does: stamps by hand, and references
//! into other namespaces.

use interlock_core::api::meta;
use interlock_core::api::stamp::{Applied, VersionRef};
use serde_json::{Value, json};

use super::{CAP, GATED, Ground, PACKAGE, condition, instance};
use crate::support::lasting::Lasting;
use crate::support::{Cluster, Interlock, wait_until};

/// The control plane of an installation that was taken apart: the webhook configurations are gone, and
/// the policies about stamps and plans. Interlock runs.
fn unguarded() -> &'static Cluster {
    static OWN: Lasting<(Cluster, Interlock)> = Lasting::new();
    let (cluster, _) = OWN.get(|| {
        let cluster = Cluster::own(&[]);
        let process = Interlock::install(&cluster, &[]);
        process.await_requests_count(&cluster);
        let admin = cluster.admin();
        for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
            admin.kubectl(&["delete", kind, meta::install::WEBHOOK_CONFIGURATION]).ok();
        }
        for name in ["interlock-freeze", "interlock-lock", "interlock-plan-execution"] {
            admin.kubectl(&["delete", "validatingadmissionpolicybinding", name]).ok();
        }
        let ns = cluster.namespace("probe");
        let mut forged = instance("probe", &json!({}));
        forged["metadata"]["annotations"] = json!({ meta::LAST_APPLIED_SPEC: stamp("elsewhere", &[]) });
        let path = format!("{}?dryRun=All", ns.path(meta::KUDO_API_VERSION, "instances", ""));
        wait_until("nothing looks at stamps", CAP, || match ns.admin().post(&path, &forged) {
            answer if answer.code == 201 && answer.body["metadata"]["annotations"].is_object() => Ok(()),
            answer => Err(answer.to_string()),
        });
        drop(ns);
        (cluster, process)
    });
    cluster
}

fn ground(base: &str) -> Ground<'static> {
    Ground::new(unguarded(), base, PACKAGE)
}

/// A stamp as admission writes it, of the package of that namespace.
fn stamp(namespace: &str, parameters: &[(&'static str, &'static str)]) -> String {
    let spec = Applied {
        operator_version: VersionRef { name: GATED.into(), namespace: namespace.to_owned().into() },
        parameters: parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
    };
    json!({"v": 1, "hash": spec.hash(), "spec": spec}).to_string()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Waits for `SpecDrift` with a reason; its message.
#[track_caller]
fn await_drift(ground: &Ground<'_>, name: &str, reason: &str, said: &str) -> Value {
    ground.await_that(name, &format!("SpecDrift is {reason}, and says {said:?}"), |found| {
        let drift = condition(found, "SpecDrift");
        drift["status"] == "True" && drift["reason"] == reason && text(&drift["message"]).contains(said)
    })
}

/// Made while no webhook is called, with a plan and a stamp that names a package of another namespace:
/// that package does not run, as whomever packages act.
#[test]
fn a_stamp_by_hand_runs_no_package_of_another_namespace() {
    let (here, there) = (ground("here"), ground("there"));
    let mut forged = instance("demo", &json!({}));
    forged["metadata"]["finalizers"] = json!([meta::FINALIZER]);
    forged["metadata"]["annotations"] = json!({ meta::LAST_APPLIED_SPEC: stamp(there.ns.name(), &[]) });
    let run = "9b2c2d3e-8c1f-4b5e-9d6a-0123456789ab";
    forged["spec"]["planExecution"] = json!({"planName": "deploy", "uid": run, "status": "NEVER_RUN"});
    here.user.post(&here.path(""), &forged).ok();
    let found = await_drift(&here, "demo", "VersionNamespace", "interlock plan abort");
    assert!(found["status"]["planStatus"]["deploy"].is_null(), "{found:#}");
    assert!(here.data("demo-before").is_none(), "nothing of it was made");

    // The way out that is named: the run ends, and nothing is believed for it.
    let ask = json!({"metadata": {"annotations": {
        meta::REQUEST: format!("abort/{run}/nonce-0001"), meta::REASON: "written by hand",
    }}});
    here.user.merge_patch(&here.path("demo"), &ask).ok();
    here.await_that("demo", "the stamp is that of the spec", |found| {
        let stamp = text(&found["metadata"]["annotations"][meta::LAST_APPLIED_SPEC]).to_owned();
        found["status"]["planStatus"]["deploy"]["status"] == "FATAL_ERROR"
            && stamp.contains(&format!("\"namespace\":\"{}\"", here.ns.name()))
    });
    let retry = json!({"metadata": {"annotations": {
        meta::REQUEST: format!("retry/{run}/nonce-0002"), meta::REASON: "as the spec says",
    }}});
    here.user.merge_patch(&here.path("demo"), &retry).ok();
    here.await_plan("demo", "deploy", "COMPLETE");
    assert!(here.data("demo-before").is_some());
}

/// A plan is triggered past admission, on a stamp by hand that would have been refused: its parameter
/// is none of the package's.
#[test]
fn a_trigger_does_not_run_on_a_stamp_by_hand() {
    let ground = self::ground("forged");
    ground.user.post(&ground.path(""), &instance("demo", &json!({}))).ok();
    ground.await_plan("demo", "deploy", "COMPLETE");
    ground.await_that("demo", "it is at rest", crate::support::instances::idle);
    let before = ground.get("demo");
    let forged = json!({
        "metadata": {"annotations": {meta::LAST_APPLIED_SPEC: stamp(ground.ns.name(), &[("FORGED", "yes")])}},
        "spec": {"planExecution": {
            "planName": "update", "uid": "9b2c2d3e-8c1f-4b5e-9d6a-0123456789ab", "status": "NEVER_RUN",
        }},
    });
    ground.user.merge_patch(&ground.path("demo"), &forged).ok();
    let found = await_drift(&ground, "demo", "ParameterUnknown", "FORGED");
    assert_eq!(found["status"]["planStatus"], before["status"]["planStatus"], "nothing ran");
}

/// The binding of `interlock-versions` is gone: a reference into another namespace is admitted, and not
/// followed; when the binding is back the packages' account is asked about.
#[test]
fn a_reference_is_followed_while_its_policy_guards_and_the_account_may_get_it() {
    let cluster = Cluster::own(&[]);
    let _process = Interlock::install(&cluster, &[]);
    let (here, there) = (Ground::new(&cluster, "here", PACKAGE), Ground::new(&cluster, "there", PACKAGE));
    let admin = cluster.admin();
    let binding =
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/interlock-versions";
    let mut installed = admin.read(binding).ok();
    admin
        .delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/interlock-packages-cluster-admin")
        .ok();
    admin.delete(binding).ok();
    let mut foreign = instance("demo", &json!({}));
    foreign["spec"]["operatorVersion"]["namespace"] = json!(there.ns.name());
    let bob = here.ns.user("bob");
    wait_until("the policy stands aside", CAP, || match bob.post(&here.path(""), &foreign) {
        answer if answer.code == 201 => Ok(()),
        answer => Err(answer.to_string()),
    });
    let found = await_drift(&here, "demo", "VersionNamespace", "interlock-versions does not exist");
    assert!(found["status"]["planStatus"]["deploy"].is_null(), "{found:#}");

    let metadata = installed["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|key, _| key == "name" || key == "labels");
    admin.post(binding.trim_end_matches("/interlock-versions"), &installed).ok();
    let account = "--serviceaccount=interlock-system:interlock-packages";
    let found = await_drift(&here, "demo", "VersionNamespace", account);
    let message = text(&condition(&found, "SpecDrift")["message"]).to_owned();
    assert!(here.data("demo-before").is_none(), "nothing of it was made");

    // The commands that it names, as they stand there.
    let commands = message.split_once("grant it: ").expect("a remedy").1;
    for command in commands.split(" (rule").next().expect("commands").split(" && ") {
        let words: Vec<&str> = command.trim_start_matches("kubectl ").split(' ').collect();
        admin.kubectl(&words).ok();
    }
    // The account may do nothing else: the plan has begun.
    here.await_that("demo", "the plan has begun, and lacks another right", |found| {
        text(&condition(found, "Stalled")["message"]).contains("cannot")
            && found["status"]["planStatus"]["deploy"]["status"] != "NEVER_RUN"
    });
}

/// What an abort goes back to is text as well: status says what was carried out before.
#[test]
fn an_abort_does_not_go_back_to_what_was_written_by_hand() {
    let ground = self::ground("previous");
    ground.user.post(&ground.path(""), &instance("demo", &json!({"GATED": "true"}))).ok();
    let running = ground.await_running("demo");
    let mut stamp: Value =
        serde_json::from_str(text(&running["metadata"]["annotations"][meta::LAST_APPLIED_SPEC]))
            .expect("a stamp");
    let forged: Value =
        serde_json::from_str(&self::stamp(ground.ns.name(), &[("FORGED", "yes")])).expect("a stamp");
    stamp["previous"] = json!({"hash": forged["hash"], "spec": forged["spec"]});
    let run = text(&running["status"]["planStatus"]["deploy"]["uid"]);
    let ask = json!({"metadata": {"annotations": {
        meta::LAST_APPLIED_SPEC: stamp.to_string(),
        meta::REQUEST: format!("abort-revert/{run}/nonce-0001"), meta::REASON: "back to my own",
    }}});
    ground.user.merge_patch(&ground.path("demo"), &ask).ok();
    let ended = ground.await_plan("demo", "deploy", "FATAL_ERROR");
    assert_eq!(ended["spec"]["parameters"], json!({"GATED": "true"}), "{ended:#}");
    wait_until("an Event says why it did not go back", CAP, || {
        let found = ground.user.read(&ground.ns.path("events.k8s.io/v1", "events", "")).ok();
        let told = found["items"].as_array().is_some_and(|events| {
            events
                .iter()
                .any(|event| event["reason"] == "RequestDropped" && text(&event["note"]).contains("FORGED"))
        });
        if told { Ok(()) } else { Err(found.to_string()) }
    });
    assert_eq!(ground.get("demo")["spec"]["parameters"], json!({"GATED": "true"}));
}
