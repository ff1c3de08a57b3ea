//! Each command that a refusal names is one that whoever is refused can run, as it stands: kubectl's, and
//! Interlock's beside it.

use interlock_core::api::meta::condition as types;
use interlock_core::api::object::NamespacedName;
use interlock_kudo::instance::remedy::{REASONS, of_instance};
use serde_json::{Value, json};

use super::{GATED, Layers};
use crate::support::Output;
use crate::support::client::Answer;
use crate::support::ground::Ground;
use crate::support::remedy::{commands, run};

/// The refusal of an edit of a running Instance, as its commands.
#[track_caller]
fn frozen(ground: &Ground<'_>, name: &str) -> [String; 4] {
    let edit = json!({"spec": {"parameters": {"SIZE": "large"}}});
    let said = ground.user.merge_patch(&ground.path(name), &edit);
    assert_eq!(said.code, 422, "{said}");
    assert!(said.message().contains("Why now: plan deploy is IN_PROGRESS for "), "{said}");
    commands(said.message()).try_into().expect("four commands")
}

#[test]
fn a_plan_is_awaited_by_the_commands_of_its_refusal() {
    let ground = Layers::Both.ground("awaited");
    ground.running("demo");
    let [wait, ours, _, _] = frozen(&ground, "demo");
    ground.open("demo");
    let said = run(&ground.user, &wait).ok();
    assert!(said.contains("demo condition met"), "{said}");
    run(&ground.user, &ours).ok();
    ground.await_plan("demo", "deploy", "COMPLETE");
    ground.edit("demo", &json!({"SIZE": "large"}));
}

#[test]
fn a_plan_is_ended_by_the_commands_of_its_refusal() {
    let ground = Layers::Both.ground("ended");
    for name in ["kubectl", "interlock"] {
        ground.running(name);
        let [_, _, annotate, abort] = frozen(&ground, name);
        let command = if name == "kubectl" { annotate } else { abort };
        assert!(command.starts_with(&format!("{name} ")), "{command}");
        run(&ground.user, &command).ok();
        ground.await_plan(name, "deploy", "FATAL_ERROR");
        ground.edit(name, &json!({"SIZE": "large"}));
    }
}

/// An installation says where its documentation is: the webhook and the policies refer to it.
#[test]
fn a_refusal_leads_to_the_documentation_of_the_installation() {
    let ground = Layers::SamePlan.ground("documented");
    ground.running("demo");
    let page = |rule: &str| format!("see https://docs.example.org/guard/docs/denials/{rule}.md");
    let edit = json!({"spec": {"parameters": {"SIZE": "large"}}});
    let said = ground.user.merge_patch(&ground.path("demo"), &edit);
    assert!(said.message().to_lowercase().ends_with(&page("plan-running")), "{said}");
    // A policy of the second layer says who lacks a verb.
    let rights = json!([{"apiGroups": ["kudo.dev"], "resources": ["instances"], "verbs": ["get", "patch"]}]);
    let bob = ground.ns.user_with("bob", &rights);
    let limit = json!({"metadata": {"annotations": {"interlock.dev/step-deadline": "1h"}}});
    let said = bob.merge_patch(&ground.path("demo"), &limit);
    assert!(said.message().ends_with(&format!("[verb-rights]; {}", page("verb-rights"))), "{said}");
}

/// Runs each command of a refusal; what they print.
#[track_caller]
fn follow(ground: &Ground<'_>, said: &Answer) -> Vec<Output> {
    assert!(matches!(said.code, 403 | 422), "{said}");
    let named = commands(said.message());
    assert!(named.iter().any(|command| command.starts_with("kubectl ")), "{said}");
    let run = |command: &String| {
        let command = command.replace("PLAN", "backup");
        let out = run(&ground.user, &command);
        assert_eq!(out.code, 0, "{command}\n{out}\n--- is named by\n{said}");
        out
    };
    named.iter().filter(|command| !command.contains("render")).map(run).collect()
}

#[test]
fn the_commands_of_other_refusals_work_as_they_stand() {
    let ground = Layers::Both.ground("remedies");
    ground.deployed("demo");
    let path = ground.path("demo");
    let patch = |spec: Value| ground.user.merge_patch(&path, &json!({"spec": spec}));
    let refused: [(Value, &str); 5] = [
        (json!({"parameters": {"SZE": "large"}}), "did you mean SIZE?"),
        (json!({"planExecution": {"planName": "bakcup"}}), "did you mean backup?"),
        (json!({"parameters": {"GATED": "true", "OTHER": "some"}}), "[plan-multiple]"),
        (
            json!({"parameters": {"SIZE": "large"}, "planExecution": {"planName": "backup"}}),
            "[plan-and-edit]",
        ),
        (json!({"parameters": {"SIZE": 3}}), "a number, and not a string"),
    ];
    for (spec, text) in refused {
        let said = patch(spec);
        assert!(said.message().contains(text), "want {text:?} in {said}");
        follow(&ground, &said);
    }
    let request = json!({"metadata": {"annotations": {"plan.interlock.dev/request": "abort", "plan.interlock.dev/reason": "x"}}});
    ground.running("asked");
    let said = ground.user.merge_patch(&ground.path("asked"), &request);
    assert!(said.message().contains("[verb-request]"), "{said}");
    follow(&ground, &said);
    // An annotation that is no time, and a package that is used, and then one that is not valid.
    let limit = json!({"metadata": {"annotations": {"interlock.dev/step-deadline": "soon"}}});
    follow(&ground, &ground.user.merge_patch(&path, &limit));
    let version = |name: &str| ground.ns.path("kudo.dev/v1beta1", "operatorversions", name);
    let said = ground.user.delete(&version(GATED));
    assert!(said.message().contains("[version-in-use]"), "{said}");
    follow(&ground, &said);
    let lost = json!({"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["befor"]}]}]});
    let lost = json!({"spec": {"plans": {"deploy": lost, "update": null, "upgrade": null}}});
    let said = ground.user.merge_patch(&version(GATED), &lost);
    assert!(said.message().contains("or name another: did you mean before?"), "{said}");
    follow(&ground, &said);
    // Commands that change the Instance: a plan is triggered, first by kubectl, then by Interlock; then it goes.
    let said = patch(json!({"planExecution": {"planName": "backup", "status": "COMPLETE"}}));
    assert!(said.message().contains("[plan-status]"), "{said}");
    for command in commands(said.message()) {
        run(&ground.user, &command.replace("PLAN", "backup")).ok();
        ground.await_plan("demo", "backup", "COMPLETE");
    }
    let said = patch(json!({"planExecution": {"planName": "cleanup"}}));
    assert!(said.message().contains("[plan-cleanup]"), "{said}");
    follow(&ground, &said);
    let gone = format!("kubectl wait --for=delete instance/demo -n {} --timeout=10m", ground.ns.name());
    run(&ground.user, &gone).ok();
    assert_eq!(ground.user.read(&path).code, 404);
}

/// What refusals name that takes a state of its own to be refused by.
#[test]
fn commands_about_the_installation_and_the_schema_work_as_they_stand() {
    let ground = Layers::Both.ground("named");
    ground.deployed("demo");
    let ns = ground.ns.name();
    for command in [
        format!("kubectl describe instance demo -n {ns}"),
        format!("kubectl get instance demo -n {ns} -o yaml"),
        format!("kubectl get operatorversions,instances -n {ns}"),
        format!("interlock plan history demo -n {ns}"),
        "kubectl explain instances.kudo.dev.status".to_owned(),
        "kubectl explain deployments.spec".to_owned(),
    ] {
        let out = run(&ground.user, &command);
        assert_eq!(out.code, 0, "{command}\n{out}");
    }
    for command in [
        "kubectl get mutatingwebhookconfigurations -o yaml",
        "kubectl get validatingwebhookconfigurations -o yaml",
        "interlock render webhooks",
    ] {
        let out = run(&ground.ns.admin(), command);
        assert!(out.code == 0 && out.stdout.contains("interlock"), "{command}\n{out}");
    }
}

/// What conditions, alerts, `why` and `explain` name for each reason, as `docs/conditions.md` lists it.
#[test]
fn the_command_of_each_reason_works_as_it_stands() {
    let ground = Layers::Both.ground("reasons");
    ground.deployed("demo");
    ground.running("demo-runs");
    let of = |reason: &str, name: &str| {
        of_instance(reason, "deploy", &NamespacedName::new(ground.ns.name(), name)).command
    };
    let paused = format!("interlock plan pause demo-runs -n {} --reason WHY", ground.ns.name());
    run(&ground.user, &paused).ok();
    let changes = [types::PAUSED, types::NEVER_DONE, types::PLAN_IN_FATAL_ERROR];
    for reason in changes {
        run(&ground.user, &of(reason, "demo-runs")).ok();
        match reason {
            types::NEVER_DONE => drop(ground.await_plan("demo-runs", "deploy", "FATAL_ERROR")),
            _ => drop(ground.await_running("demo-runs")),
        }
    }
    for reason in REASONS.into_iter().chain(["ParameterImmutable", "SomethingNew"]) {
        let command = of(reason, "demo");
        match reason {
            reason if changes.contains(&reason) => {}
            // Of the cluster that all tests share nothing is written.
            types::VERBS_UNAVAILABLE => {
                let command = command.replace("kubectl apply", "kubectl apply --dry-run=server");
                run(&ground.ns.admin(), &command).ok();
            }
            // What it finds is its own matter.
            types::MISSING_RIGHT => {
                let said = run(&ground.ns.admin(), &command);
                assert!(said.code < 2, "{said}");
            }
            types::WEBHOOK_UNAVAILABLE | types::MISSING_DEPENDENCY | types::ALREADY_ALLOCATED => {
                run(&ground.ns.admin(), &command).ok();
            }
            _ => drop(run(&ground.user, &command).ok()),
        }
    }
    ground.await_plan("demo", "deploy", "COMPLETE");
}
