//! A child whose write may succeed by itself: `Ready` says at once why it does not, and `Stalled` after two minutes.

use std::time::Duration;

use super::*;
use crate::support::answering::Refusal;
use crate::support::scripted::{Reaction, Scripted};
use crate::support::suffix;

/// When `Stalled` is said, and the next try after it.
const STALLS: Duration = Duration::from_secs(200);

/// What the API server answers to each write of one child.
struct Case {
    name: &'static str,
    code: u16,
    status_reason: &'static str,
    message: &'static str,
    /// Of the conditions.
    reason: &'static str,
}

const CASES: [Case; 4] = [
    Case {
        name: "busy",
        code: 429,
        status_reason: "TooManyRequests",
        message: "the server has received too many requests and has asked us to try again later",
        reason: "TooManyRequests",
    },
    Case {
        name: "broken",
        code: 500,
        status_reason: "InternalError",
        message: "Internal error occurred: etcdserver: request timed out",
        reason: "ApiServerUnavailable",
    },
    Case {
        name: "down",
        code: 503,
        status_reason: "ServiceUnavailable",
        message: "the server is currently unable to handle the request",
        reason: "ApiServerUnavailable",
    },
    Case {
        name: "late",
        code: 409,
        status_reason: "Conflict",
        message: "Operation cannot be fulfilled on services: the object has been modified; please apply your changes to the latest version and try again",
        reason: "Conflict",
    },
];

/// A webhook of others that fails for the Deployment of a DataPlane.
fn failing_webhook(ns: &Namespace<'_>, deployment: &str) -> Scripted {
    let webhook = Scripted::start();
    let failing = deployment.to_owned();
    webhook.script(move |call| match call.at("/name") == failing.as_str() {
        true => Reaction::Raw(500, "broken".to_owned()),
        false => Reaction::allow(),
    });
    let rule = json!({
        "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE", "UPDATE"],
    });
    webhook.register(&ns.admin(), "Validating", &format!("failing-{}", suffix()), ns.name(), &rule);
    wait_until("the webhook is called", CAP, || {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": deployment},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            }},
        });
        let path = format!("{}?dryRun=All", ns.path("apps/v1", "deployments", ""));
        let answer = ns.admin().post(&path, &object);
        if answer.code == 500 { Ok(()) } else { Err(answer.to_string()) }
    });
    webhook
}

/// All at once: each is refused for more than two minutes.
#[test]
fn a_write_that_may_succeed_by_itself_is_told_of_at_once_and_stalls_after_two_minutes() {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("a-while");
    let webhook = failing_webhook(&ns, "dataplane-hooked-blue");
    let hooked = Plane::create(&ns, "hooked", &spec());
    let refused: Vec<(Plane<'_>, &Case)> = CASES
        .iter()
        .map(|case| {
            world.answering.refuse(Refusal {
                code: case.code,
                reason: case.status_reason,
                message: case.message,
                path: refused_path(case.name),
            });
            (Plane::create(&ns, case.name, &spec()), case)
        })
        .collect();
    for (plane, case) in &refused {
        plane.await_condition("Ready", "False", case.reason, case.message);
        plane.await_child("deployments", &plane.deployment());
        plane.await_child("services", &format!("dataplane-admin-{}", plane.name));
    }
    let failed = "failed calling webhook \"failing-";
    hooked.await_condition("Ready", "False", "WebhookUnavailable", failed);
    hooked.await_child("services", &hooked.ingress());
    hooked.await_child("services", "dataplane-admin-hooked");

    wait_until("all are stalled", STALLS, || {
        let all = refused.iter().map(|(plane, _)| plane).chain([&hooked]);
        let open: Vec<String> = all
            .filter(|plane| condition(&plane.found(), "Stalled").is_null())
            .map(|plane| plane.name.clone())
            .collect();
        if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not")) }
    });
    for (plane, case) in &refused {
        plane.await_stalled(case.reason, case.message);
        plane.await_one_event(case.reason, case.message);
        world.answering.pass(&refused_path(case.name));
    }
    hooked.await_stalled("WebhookUnavailable", failed);
    hooked.await_one_event("WebhookUnavailable", failed);
    webhook.script(|_| Reaction::allow());
    for plane in refused.iter().map(|(plane, _)| plane).chain([&hooked]) {
        plane.await_well();
    }
}

fn refused_path(name: &str) -> String {
    format!("/services/dataplane-ingress-{name}")
}
