//! Requests about a run and limits of it, through every way to write an Instance, with and without
//! the verb, and references to OperatorVersions of other namespaces.

use interlock_core::api::meta;
use interlock_kudo::instance::change::plan_request::PlanVerb;
use rstest::rstest;
use serde_json::{Value, json};

use super::{CAP, Ground, Layers, instance, rule};
use crate::support::client::Answer;
use crate::support::{Client, wait_until};

fn annotations(request: &str, reason: &str) -> Value {
    json!({"metadata": {"annotations": {meta::REQUEST: request, meta::REASON: reason}}})
}

/// Annotations by merge patch, JSON patch, PUT, server-side apply, client-side apply and annotate,
/// not stored where it is allowed.
fn every_way(ground: &Ground<'_>, user: &Client, wanted: &Value) -> Vec<(&'static str, bool, String)> {
    let path = format!("{}?dryRun=All", ground.path("demo"));
    let found = ground.get("demo");
    let whole = super::edited(found, |object| json_patch::merge(object, wanted));
    let answer = |how, answer: &Answer| (how, answer.code < 300, answer.to_string());
    let each = wanted["metadata"]["annotations"].as_object().expect("annotations");
    let add: Value = each
        .iter()
        .map(|(key, value)| {
            let path = format!("/metadata/annotations/{}", key.replace('/', "~1"));
            json!({"op": "add", "path": path, "value": value})
        })
        .collect();
    let pairs: Vec<String> =
        each.iter().map(|(key, value)| format!("{key}={}", value.as_str().expect("a text"))).collect();
    let mut annotate = vec!["annotate", "--dry-run=server", "--overwrite", "instance/demo"];
    annotate.extend(pairs.iter().map(String::as_str));
    let mut applied = super::manifest(&whole);
    applied["metadata"]["annotations"] = wanted["metadata"]["annotations"].clone();
    let text = applied.to_string();
    let put = user.put_edited(&path, |object| json_patch::merge(object, wanted));
    let mut ways = vec![
        answer("merge patch", &user.merge_patch(&path, wanted)),
        answer("JSON patch", &user.json_patch(&path, &add)),
        answer("PUT", &put),
    ];
    let server_side = ["apply", "--server-side", "--dry-run=server", "-f", "-"];
    for (how, out) in [
        ("server-side apply", user.kubectl_in(&server_side, &text)),
        ("apply", user.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &text)),
        ("annotate", user.kubectl(&annotate)),
    ] {
        ways.push((how, out.code == 0, format!("{}{}", out.stdout, out.stderr)));
    }
    ways
}

/// A user with the rights of an editor but for these verbs.
fn editor(ground: &Ground<'_>, name: &str, verbs: &[&str]) -> Client {
    let mut all = vec!["get", "patch", "update", "create"];
    all.extend(verbs);
    let rules = json!([{"apiGroups": ["kudo.dev"], "resources": ["instances"], "verbs": all}]);
    let user = ground.ns.user_with(name, &rules);
    wait_until("the binding counts", CAP, || match user.read(&ground.path("demo")) {
        answer if answer.code == 200 => Ok(()),
        answer => Err(answer.to_string()),
    });
    user
}

#[rstest]
fn only_who_has_the_verb_may_ask(#[values(Layers::Both, Layers::SamePlan, Layers::Policies)] layers: Layers) {
    let (ground, found) = layers.frozen();
    let run = found["status"]["planStatus"]["deploy"]["uid"].as_str().expect("a run");
    let without = editor(&ground, &format!("without-{layers:?}").to_lowercase(), &["retry"]);
    let with = editor(&ground, &format!("with-{layers:?}").to_lowercase(), &["abort"]);
    let request = annotations(&format!("abort/{run}/nonce-every-way"), "tried every way");
    for (how, allowed, said) in every_way(&ground, &without, &request) {
        assert!(!allowed && said.contains("[verb-rights]"), "{layers:?} {how}: {said}");
    }
    for (how, allowed, said) in every_way(&ground, &with, &request) {
        assert!(allowed, "{layers:?} {how}: {said}");
    }
    // A retry of what runs: refused by the webhook; the policies see the right alone.
    let answer =
        with.merge_patch(&ground.path("demo"), &annotations(&format!("retry/{run}/nonce-0001"), "x"));
    assert!(["verb-request", "verb-rights"].contains(&rule(&answer).as_str()), "{answer}");
}

/// Each verb is a right of its own: who has all the others may not ask for it.
#[test]
fn each_verb_is_a_right_of_its_own() {
    let (ground, found) = Layers::Policies.frozen();
    let run = found["status"]["planStatus"]["deploy"]["uid"].as_str().expect("a run");
    let mut verbs: Vec<&str> = PlanVerb::ALL.into_iter().map(PlanVerb::right).collect();
    verbs.dedup();
    assert!(verbs.len() >= 6, "{verbs:?}");
    for verb in &verbs {
        let others: Vec<&str> = verbs.iter().copied().filter(|other| other != verb).collect();
        let without = editor(&ground, &format!("no-{verb}"), &others);
        let with = editor(&ground, &format!("only-{verb}"), &[verb]);
        let path = format!("{}?dryRun=All", ground.path("demo"));
        let request = annotations(&format!("{verb}/{run}/nonce-0001"), "tried");
        let refused = without.merge_patch(&path, &request);
        assert_eq!(rule(&refused), "verb-rights", "{verb}: {refused}");
        assert!(
            refused.message().contains(&format!("has no verb {verb} on instances.kudo.dev")),
            "{refused}"
        );
        with.merge_patch(&path, &request).ok();
    }
}

/// A deadline that is over ends a run, as an abort does.
#[rstest]
fn only_who_may_abort_changes_a_limit_of_what_runs(
    #[values(Layers::Both, Layers::SamePlan, Layers::Policies)] layers: Layers,
    #[values(meta::STEP_DEADLINE, meta::CLEANUP_PATIENCE)] key: &str,
) {
    let (ground, _) = layers.frozen();
    let of = |whether: &str| format!("{whether}-{layers:?}-{}", key.replace('/', "-")).to_lowercase();
    let without = editor(&ground, &of("unlimited"), &["retry"]);
    let with = editor(&ground, &of("limited"), &["abort"]);
    let limit = json!({"metadata": {"annotations": {key: "0s"}}});
    for (how, allowed, said) in every_way(&ground, &without, &limit) {
        assert!(!allowed && said.contains("[verb-rights]"), "{layers:?} {how}: {said}");
        assert!(said.contains(key) && said.contains("verb abort"), "{layers:?} {how}: {said}");
    }
    for (how, allowed, said) in every_way(&ground, &with, &limit) {
        assert!(allowed, "{layers:?} {how}: {said}");
    }
}

#[rstest]
#[case::of_another_instance("abort/99999999-9999-4999-8999-999999999999/nonce-0001")]
#[case::unknown_verb("promote/RUN/nonce-0001")]
#[case::resume_of_what_goes_on("resume/RUN/nonce-0001")]
#[case::adopt_of_what_runs("adopt/RUN/nonce-0001")]
#[case::no_nonce("abort/RUN/x")]
#[case::no_request("abort")]
fn what_is_no_request_is_refused_or_dropped(#[case] request: &str) {
    for layers in [Layers::Both, Layers::SamePlan, Layers::Policies] {
        let (ground, found) = layers.frozen();
        let run = found["status"]["planStatus"]["deploy"]["uid"].as_str().expect("a run");
        let before = super::essence(&found);
        let asked = annotations(&request.replace("RUN", run), "why");
        let answer = ground.user.merge_patch(&ground.path("demo"), &asked);
        if answer.code >= 300 {
            assert_eq!(rule(&answer), "verb-request", "{layers:?}");
        } else {
            // The policies do not know the runs: the controller takes it away, and nothing ends.
            assert_eq!(layers, Layers::Policies, "{answer}");
            ground.await_that("demo", "the request is dropped", |found| {
                found["metadata"]["annotations"][meta::REQUEST].is_null()
            });
        }
        assert_eq!(super::essence(&ground.get("demo")), before, "{layers:?}");
    }
}

/// Nothing else passes beside a request.
#[rstest]
fn a_request_opens_no_door(#[values(Layers::Both, Layers::SamePlan, Layers::Policies)] layers: Layers) {
    let (ground, found) = layers.frozen();
    let run = found["status"]["planStatus"]["deploy"]["uid"].as_str().expect("a run");
    let mut both = annotations(&format!("abort/{run}/nonce-0001"), "why");
    both["spec"] = json!({"parameters": {"SIZE": "large"}});
    let answer = ground.user.merge_patch(&ground.path("demo"), &both);
    assert_eq!(rule(&answer), "plan-running", "{answer}");
    let mut forged = annotations(&format!("abort/{run}/nonce-0001"), "why");
    forged["metadata"]["annotations"][meta::REQUESTED_BY] = json!("somebody-else");
    let answer = ground.user.merge_patch(&format!("{}?dryRun=All", ground.path("demo")), &forged);
    match layers {
        // What is written is replaced by who asks.
        Layers::Both | Layers::SamePlan => {
            let by = &answer.ok()["metadata"]["annotations"][meta::REQUESTED_BY];
            assert_eq!(by, "alice");
        }
        Layers::Policies => assert_eq!(rule(&answer), "verb-request"),
    }
    assert_eq!(super::essence(&ground.get("demo")), super::essence(&found));
}

#[test]
fn a_new_instance_is_asked_nothing() {
    let ground = Layers::Both.ground("asked");
    let mut copied = instance("copied", &json!({}));
    json_patch::merge(
        &mut copied,
        &annotations("abort/99999999-9999-4999-8999-999999999999/nonce-0001", "why"),
    );
    let created = ground.user.post(&ground.path(""), &copied).ok();
    assert!(created["metadata"]["annotations"][meta::REQUEST].is_null(), "{created:#}");
    let alone = Layers::Policies.ground("asked");
    assert_eq!(rule(&alone.user.post(&alone.path(""), &copied)), "verb-request");
}

#[rstest]
fn an_abort_that_was_carried_out_is_no_request(
    #[values(Layers::Both, Layers::SamePlan, Layers::Policies)] layers: Layers,
) {
    let ground = layers.ground("replay");
    let run = match layers {
        Layers::Both | Layers::SamePlan => ground.running("demo"),
        // Admission never saw it: it is run all the same.
        Layers::Policies => {
            ground.user.post(&ground.path(""), &instance("demo", &json!({"GATED": "true"}))).ok();
            ground.await_running("demo")
        }
    };
    let run = run["status"]["planStatus"]["deploy"]["uid"].as_str().expect("a run").to_owned();
    let request = annotations(&format!("abort/{run}/nonce-0001"), "enough");
    ground.user.merge_patch(&ground.path("demo"), &request).ok();
    let ended = ground.await_plan("demo", "deploy", "FATAL_ERROR");
    let before = super::essence(&ended);
    let again = ground.user.merge_patch(&ground.path("demo"), &request);
    if layers != Layers::Policies {
        assert_eq!(rule(&again), "verb-request");
    } else {
        again.ok();
        ground.await_that("demo", "the replay is dropped", |found| {
            found["metadata"]["annotations"][meta::REQUEST].is_null()
        });
    }
    assert_eq!(super::essence(&ground.get("demo")), before);
}

/// A package of another namespace is for who may read it there.
#[rstest]
fn a_version_of_another_namespace_is_for_who_may_get_it(
    #[values(Layers::Both, Layers::SamePlan, Layers::Policies)] layers: Layers,
) {
    let (here, there) = (layers.ground("here"), layers.ground("there"));
    let bob = here.ns.user("bob");
    let mut foreign = instance("demo", &json!({}));
    foreign["spec"]["operatorVersion"]["namespace"] = json!(there.ns.name());
    let refused = bob.post(&here.path(""), &foreign);
    assert_eq!(rule(&refused), "version-namespace", "{refused}");
    // Nor is anything told of what is there.
    foreign["spec"]["operatorVersion"]["name"] = json!("not-there-0.1.0");
    assert_eq!(rule(&bob.post(&here.path(""), &foreign)), "version-namespace");
    foreign["spec"]["operatorVersion"]["name"] = json!("gated-0.1.0");
    let rules = json!([{"apiGroups": ["kudo.dev"], "resources": ["operatorversions"], "verbs": ["get"]}]);
    drop(there.ns.user_with("bob", &rules));
    if layers != Layers::Policies {
        wait_until("bob may read it, and it is used", CAP, || match bob.post(&here.path(""), &foreign) {
            answer if answer.code == 201 => Ok(()),
            answer => Err(answer.to_string()),
        });
        here.await_plan("demo", "deploy", "COMPLETE");
        assert!(here.data("demo-after").is_some(), "its objects are in the namespace of the Instance");
    }
}

/// Nobody saw to the right of whoever wrote it: it is drift, and not carried out.
#[test]
fn a_reference_that_nobody_admitted_is_drift() {
    let (here, there) = (Layers::Both.ground("here"), Layers::Both.ground("there"));
    let before = here.deployed("demo");
    let books = Layers::Both.cluster().user("interlock", &[]);
    let foreign = json!({"spec": {"operatorVersion": {"namespace": there.ns.name()}}});
    books.merge_patch(&here.path("demo"), &foreign).ok();
    let drifted = here.await_that("demo", "the drift is told", |found| {
        super::condition(found, "SpecDrift")["status"] == "True"
    });
    assert_eq!(super::condition(&drifted, "SpecDrift")["reason"], "VersionNamespace", "{drifted:#}");
    assert_eq!(drifted["status"]["planStatus"], before["status"]["planStatus"]);
}
