//! A namespace that is being terminated and cannot end: its children are deleted, and none can be made again.

use super::*;
use crate::support::denying_policy::DenyingPolicy;

/// A policy that protects DataPlanes from deletion.
fn protect(ns: &Namespace<'_>, plane: &str) -> DenyingPolicy {
    let rule = json!({
        "apiGroups": [kong::API_VERSION.split('/').next()], "apiVersions": ["*"], "operations": ["DELETE"],
        "resources": ["dataplanes"],
    });
    let policy = DenyingPolicy::apply(ns, &rule, "it is protected", None);
    let path = format!("{}?dryRun=All", ns.path(kong::API_VERSION, "dataplanes", plane));
    wait_until("the policy is in force", CAP, || {
        let answer = ns.admin().delete(&path);
        if answer.message().contains("it is protected") { Ok(()) } else { Err(answer.to_string()) }
    });
    policy
}

/// No Event can be made there.
#[test]
fn a_namespace_that_is_being_terminated_is_told_of() {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("ends");
    let plane = Plane::create(&ns, "edge", &spec());
    plane.await_well();
    let protection = protect(&ns, "edge");
    let path = format!("/api/v1/namespaces/{}", ns.name());
    ns.admin().delete(&path).ok();
    plane.await_stalled("NamespaceTerminating", "because it is being terminated");
    drop(protection);
    wait_until("the namespace is gone", CAP, || {
        let answer = ns.admin().read(&path);
        if answer.code == 404 { Ok(()) } else { Err(answer.to_string()) }
    });
}
