//! Denials are for people: change, rule, fields, reason, remedy.

use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, WebhookEndpoint, answer};
use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{NAMESPACE, RUN, Said, World, idle, kafka, manifest, review, running, scheduled};

fn refusals() -> Vec<Said> {
    let world = World::strict().with(kafka("kafka-2", "2.0.0")).with(running("deploy"));
    let many: serde_json::Map<String, Value> =
        (0..40).map(|i| (format!("UNKNOWN_{i}_{}", "N".repeat(60)), json!("v"))).collect();
    let long = "9".repeat(5000);
    let idle = idle(json!({"NODES": "3", "ID": "7"}));
    vec![
        world.create(manifest(Value::Object(many))),
        world.create(manifest(json!({"NODES": long}))),
        world.create(manifest(json!({"NODES": "a\nb\nc"}))),
        world.create(json!({"metadata": {"name": "x".repeat(253)}, "spec": {"operatorVersion": {"name": "y".repeat(253)}}})),
        world.merge(&running("deploy"), json!({"spec": {"parameters": {"NODES": "5", "PASSWORD": "n3w"}}})),
        world.merge(&scheduled("deploy"), json!({"spec": {"operatorVersion": {"name": "kafka-2"}}})),
        world.merge(&running("deploy"), json!({"spec": {"planExecution": {"planName": long}}})),
        world.merge(&idle, json!({"spec": {"parameters": {"ID": "8"}}})),
        world.merge(&idle, json!({"spec": {"planExecution": {"planName": "ghost"}}})),
        world.ask(WebhookEndpoint::Validate, &review("DELETE", "OperatorVersion", Value::Null, kafka("kafka-1", "1.0.0"))),
        world.ask(WebhookEndpoint::Validate, &review("CREATE", "Widget", idle.clone(), Value::Null)),
    ]
}

#[test]
fn every_refusal_fits_names_its_rule_and_page_and_never_makes_clients_retry() {
    for said in refusals() {
        assert!(!said.allowed());
        let status = &said.response["status"];
        let text = said.message();
        assert!(text.lines().next().unwrap().ends_with(&format!(" [{}]", said.rule())), "{text}");
        assert_eq!(status["status"], "Failure");
        assert!(matches!(said.code(), 400 | 403 | 422));
        let details = &status["details"];
        assert_eq!(details["group"], "kudo.dev");
        assert!(details["kind"].is_string() && details["name"].is_string());
        if said.code() == 422 {
            // kubectl prints the causes and nothing else.
            let causes = details["causes"].as_array().unwrap();
            assert!(causes.iter().all(|c| c["field"].as_str().is_some_and(|f| !f.is_empty())));
            assert!(causes.iter().skip(1).all(|c| !c["message"].as_str().unwrap().contains('\n')));
        }
        assert!(said.warnings().iter().all(|w| !w.contains('\n')));
        assert_eq!(said.response.get("patch"), None);
    }
}

#[test]
fn a_frozen_edit_reads_like_this() {
    let said = World::strict()
        .merge(&running("deploy"), json!({"spec": {"parameters": {"NODES": "5", "PASSWORD": "n3w"}}}));
    assert_eq!(
        said.message(),
        "failed to update Instance team/prod: the spec is frozen while plan 'deploy' is scheduled (or running) [plan-running]\n  \
         spec.parameters.NODES: '3' -> '5'\n  \
         spec.parameters.PASSWORD\n\
         Why now: plan deploy is IN_PROGRESS at phase brokers, step roll, last change 2m10s ago\n\
         Next: wait until it has ended (`kubectl wait --for=condition=Ready instance/prod -n team --timeout=10m` or \
         `interlock plan wait prod -n team`), or end it (`kubectl annotate instance prod -n team \
         plan.interlock.dev/request=abort/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee/aaaaaaaa plan.interlock.dev/reason=WHY` or \
         `interlock plan abort prod -n team --reason WHY`); then send the change again\n\
         See `interlock explain plan-running`"
    );
    let causes = &said.response["status"]["details"]["causes"];
    assert_eq!(causes[0]["field"], "spec.parameters.NODES");
    assert_eq!(causes[0]["reason"], "FieldValueForbidden");
    assert_eq!(
        causes[1],
        json!({"field": "spec.parameters.PASSWORD", "reason": "FieldValueForbidden", "message": "is changed; its value is not shown"})
    );
    assert_eq!(said.response["status"]["details"]["name"], "prod");
    assert_eq!(
        said.response["auditAnnotations"],
        json!({"verdict": "denied", "rule": "plan-running", "plan": "deploy"})
    );
    assert_eq!(said.record.plan.as_deref(), Some("deploy"));
}

/// A run that does not go on by itself is not to be waited for.
#[rstest]
#[case::paused(
    "",
    true,
    "step roll, last change 2m10s ago, and is paused\nNext: let it go on (`kubectl annotate instance prod -n team plan.interlock.dev/request=resume/"
)]
#[case::about_to_be(
    "pause",
    false,
    "step roll, last change 2m10s ago, and is to pause\nNext: let it go on (`kubectl annotate "
)]
#[case::about_to_go_on(
    "resume",
    true,
    "step roll, last change 2m10s ago\nNext: wait until it has ended (`kubectl "
)]
#[case::about_to_end(
    "abort",
    false,
    "step roll, last change 2m10s ago\nNext: wait until it has ended (`kubectl "
)]
fn a_frozen_edit_of_a_paused_run(#[case] request: &str, #[case] paused: bool, #[case] expected: &str) {
    let frozen = |run: &str| {
        let mut old = running("deploy");
        if !request.is_empty() {
            old["metadata"]["annotations"][meta::REQUEST] = json!(format!("{request}/{run}/nonce-01"));
        }
        if paused {
            old["status"]["requests"] = json!({"run": run, "paused": {"since": "2026-01-02T04:00:00Z", "reason": "the disks are moved"}});
        }
        World::strict().merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}})).message().to_owned()
    };
    let said = frozen(RUN);
    assert!(said.contains(expected), "{said}");
    // What was asked about another run says nothing of this one.
    let said = frozen("u");
    assert!(said.contains("step roll, last change 2m10s ago\nNext: wait until it has ended "), "{said}");
}

/// What kubectl prints before the message of a cause is not repeated in it; other clients read the message of
/// the status.
#[test]
fn a_field_whose_value_is_hidden_is_named_once() {
    let said =
        World::strict().merge(&running("deploy"), json!({"spec": {"parameters": {"PASSWORD": "n3w"}}}));
    assert!(
        said.message().contains("[plan-running]\n  spec.parameters.PASSWORD\nWhy now: "),
        "{}",
        said.message()
    );
    let cause = &said.response["status"]["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.parameters.PASSWORD");
    let message = cause["message"].as_str().unwrap();
    assert!(message.contains("[plan-running]\nWhy now: ") && !message.contains("PASSWORD"), "{message}");
}

/// `status.progress` says when the run started.
#[rstest]
#[case::of_this_run(RUN, "is IN_PROGRESS for 2m10s at phase brokers, step roll\n")]
#[case::of_another("u", "is IN_PROGRESS at phase brokers, step roll, last change 2m10s ago\n")]
fn a_run_is_as_old_as_its_record(#[case] uid: &str, #[case] why: &str) {
    let mut old = running("deploy");
    old["status"]["progress"] =
        json!({"plan": "deploy", "uid": uid, "package": "p", "started": "2026-01-02T04:00:00Z"});
    let said = World::strict().merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}}));
    assert!(said.message().contains(why), "{}", said.message());
}

/// Without the current time, a denial names times instead of ages.
#[test]
fn without_a_clock_times_are_named() {
    let mut old = running("deploy");
    let ask = |old: &Value| {
        let mut object = old.clone();
        object["spec"]["parameters"]["NODES"] = json!("5");
        let body = serde_json::to_vec(&review("UPDATE", "Instance", object, old.clone())).unwrap();
        let world = World::strict();
        let kinds = interlock_core::kinds::guarded(crate::all());
        let docs = Some("https://docs.example.org/".parse().unwrap());
        let config = Config { docs, ..world.config.clone() };
        match answer(&kinds, WebhookEndpoint::Mutate, &body, &world.view, &config, CacheWait::Exhausted, None)
        {
            Ok(AdmissionAnswer::Done(reply)) => {
                let answer: Value = serde_json::from_slice(&reply.body).unwrap();
                answer["response"]["status"]["message"].as_str().unwrap().to_owned()
            }
            other => panic!("{other:?}"),
        }
    };
    let text = ask(&old);
    assert!(text.contains("step roll, last change 2026-01-02T04:00:00Z\n"), "{text}");
    assert!(text.ends_with("\nSee https://docs.example.org/docs/denials/plan-running.md"), "{text}");
    old["status"]["progress"] = json!({"uid": RUN, "started": "2026-01-02T03:00:00Z"});
    let text = ask(&old);
    assert!(
        text.contains(" is IN_PROGRESS since 2026-01-02T03:00:00Z at phase brokers, step roll\n"),
        "{text}"
    );
}

/// A name that refers to nothing leads to the one that is meant.
#[rstest]
#[case::parameter(json!({"parameters": {"NODS": "5"}}), "\nNext: correct the name: did you mean NODES? (`kubectl ")]
#[case::plan(json!({"planExecution": {"planName": "bakcup"}}), "\nNext: did you mean backup? (`kubectl ")]
#[case::version(json!({"operatorVersion": {"name": "kafka1"}}), "or correct the name: did you mean kafka-1? (`kubectl ")]
#[case::nothing_like_it(json!({"operatorVersion": {"name": "zookeeper"}}), "\nNext: create it, or correct the name (`kubectl ")]
fn did_you_mean(#[case] spec: Value, #[case] text: &str) {
    let said = World::complete().merge(&idle(json!({"NODES": "3"})), json!({"spec": spec}));
    assert!(!said.allowed() && said.message().contains(text), "{}", said.message());
}

/// A denial does not reveal the OperatorVersions of another namespace.
#[test]
fn names_of_another_namespace_are_not_told() {
    let mut elsewhere = kafka("kafka-secret", "1.0.0");
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    let world = World::complete().with(elsewhere);
    for namespace in ["elsewhere", NAMESPACE] {
        let version = json!({"name": "kafka-secre", "namespace": namespace});
        let said = world.merge(&idle(json!({"NODES": "3"})), json!({"spec": {"operatorVersion": version}}));
        said.assert_refused("version-missing", "is not found");
        assert!(!said.response.to_string().contains("kafka-secret"), "{}", said.message());
    }
}

/// Values are shown only if they cannot be secret.
#[rstest]
#[case::string(json!({"PASSWORD": "n3w-s3cret"}), "n3w-s3cret")]
#[case::removed(json!({"PASSWORD": null}), "s3cret")]
#[case::untyped(json!({"MEMORY": "n3w-s3cret"}), "n3w-s3cret")]
#[case::unknown(json!({"NODS": "n3w-s3cret"}), "n3w-s3cret")]
fn secrets_are_masked(#[case] parameters: Value, #[case] secret: &str) {
    for old in [running("deploy"), idle(json!({"NODES": "3", "PASSWORD": "s3cret", "ZONE": "z"}))] {
        for extra in [json!({}), json!({"ZONE": "n3w-s3cret"}), json!({"NODES": "many"})] {
            let mut all = parameters.clone();
            json_patch::merge(&mut all, &extra);
            let said = World::strict().merge(&old, json!({"spec": {"parameters": all}}));
            if !said.allowed() {
                assert!(!said.response.to_string().contains(secret), "{}", said.message());
            }
        }
    }
}

/// The package decides which users may see a value; a boolean is never secret.
#[rstest]
#[case::number(json!({"parameters": {"NODES": 3}}), "spec.parameters.NODES: 3 is a number, and not a string; write it in quotes: \"3\"")]
#[case::fraction(json!({"parameters": {"NODES": 0.5}}), "spec.parameters.NODES: 0.5 is a number, and not a string; write it in quotes: \"0.5\"")]
#[case::password(json!({"parameters": {"PASSWORD": 7_734_451}}), "spec.parameters.PASSWORD: a number, and not a string; write it in quotes\nNext")]
#[case::unknown(json!({"parameters": {"NODS": 7_734_451}}), "spec.parameters.NODS: a number, and not a string; write it in quotes\nNext")]
#[case::boolean(json!({"parameters": {"PASSWORD": true}}), "spec.parameters.PASSWORD: true is a boolean, and not a string; write it in quotes: \"true\"")]
#[case::null(json!({"parameters": {"NODES": null}}), "spec.parameters.NODES: null, and not a string; leave it out, or write \"\"")]
#[case::list(json!({"parameters": {"NODES": [7_734_451]}}), "spec.parameters.NODES: a list, and not a string; write it as a string of YAML or JSON\nNext")]
#[case::map(json!({"parameters": {"NODES": {"a": "7734451"}}}), "spec.parameters.NODES: a map, and not a string; write it as a string of YAML or JSON\nNext")]
#[case::all(json!({"parameters": ["NODES"]}), "spec.parameters: a list, and not a map; write it as one")]
#[case::version(json!({"operatorVersion": {"name": 3}}), "spec.operatorVersion.name: 3 is a number, and not a string; write it in quotes: \"3\"")]
#[case::versions(json!({"operatorVersion": "kafka-1"}), "spec.operatorVersion: a string, and not a map")]
#[case::plan(json!({"planExecution": {"planName": true}}), "spec.planExecution.planName: true is a boolean")]
fn what_is_no_string_is_named_with_what_to_write(#[case] spec: Value, #[case] detail: &str) {
    let mut object = manifest(json!({"SIZE": "small"}));
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let said = World::strict().create(object);
    said.assert_refused(
        "request-unknown",
        "the spec of the Instance cannot be read [request-unknown]\n  spec.",
    );
    said.assert_refused("request-unknown", detail);
    let path = detail.split_once(": ").unwrap().0;
    assert_eq!(said.response["status"]["details"]["causes"][0]["field"], path);
    assert!(!said.response.to_string().contains("7734451"), "{}", said.message());
}

/// The parameters of an OperatorVersion in another namespace are not disclosed.
#[test]
fn another_namespaces_package_shows_nothing() {
    let mut object = manifest(json!({"NODES": 3}));
    object["spec"]["operatorVersion"]["namespace"] = json!("elsewhere");
    let world = World::strict();
    let said = world.ask(WebhookEndpoint::Mutate, &review("CREATE", "Instance", object, Value::Null));
    said.assert_refused("request-unknown", "NODES: a number, and not a string; write it in quotes\nNext");
}
