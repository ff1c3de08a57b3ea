//! The policy `interlock-protect-live`, on children as the process applies them.

use std::time::Duration;

use interlock::install::{self, InstallOptions};
use interlock_core::api::meta;
use interlock_core::effect::Effect;
use interlock_kong::data_plane::rollout::children::DataPlaneOwner;
use interlock_kong::data_plane::rollout::live_record::LiveSide;
use interlock_kong::data_plane::rollout::protect_live::PROTECT_LIVE;
use interlock_kong::data_plane::rollout::side::Colour;
use interlock_kong::data_plane::rollout::wanted;
use interlock_kong::data_plane::rollout::wanted::{ChildRole, ChildState};
use serde_json::{Value, json};

use super::{TC, data_plane, define_data_planes, env};
use crate::support::interlock::apply;
use crate::support::resources::path_of;
use crate::support::{Client, Cluster, Interlock, Namespace, wait_until};

const CAP: Duration = Duration::from_secs(60);
const API: &str = "gateway-operator.konghq.com/v1beta1";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// The policy on one namespace; it is taken away at the end.
struct Protection {
    admin: Client,
}

impl Protection {
    fn install(cluster: &Cluster, namespace: &str) -> Self {
        let watch_namespaces = vec![namespace.to_owned()];
        let options = InstallOptions { watch_namespaces, ..InstallOptions::default() };
        apply(&cluster.admin(), install::policies::protect_live(&options));
        Self { admin: cluster.admin() }
    }

    fn policy(&self) -> Value {
        self.admin.read(&format!("{GROUP}/validatingadmissionpolicies/{PROTECT_LIVE}")).ok()
    }
}

impl Drop for Protection {
    fn drop(&mut self) {
        for plural in ["validatingadmissionpolicybindings", "validatingadmissionpolicies"] {
            self.admin.delete(&format!("{GROUP}/{plural}/{PROTECT_LIVE}"));
        }
    }
}

/// The children of a DataPlane, as the process applies them.
fn children(ns: &Namespace<'_>) -> Vec<(ChildRole, Value)> {
    let mut plane = data_plane("edge", &env("kong:3.9", TC), true);
    plane["spec"]["network"] = json!({"services": {"ingress": {"type": "ClusterIP"}}});
    plane["spec"]["deployment"].as_object_mut().expect("an object").remove("replicas");
    plane["spec"]["deployment"]["scaling"] = json!({"horizontal": {"minReplicas": 1, "maxReplicas": 2}});
    plane["spec"]["resources"] = json!({"podDisruptionBudget": {"spec": {"maxUnavailable": 1}}});
    ns.admin().apply(&plane.to_string());
    let plane = ns.admin().read(&ns.path(API, "dataplanes", "edge")).ok();
    let owner = DataPlaneOwner::of(&plane, None).expect("an owner");
    let (colour, spec) = (Colour::Blue, plane["spec"].clone());
    let selector = colour.selector(&owner.uid);
    let side = LiveSide {
        selector: selector.clone(),
        colour,
        spec: spec.clone(),
        previous: None,
        sourced: None,
        is_stamped: true,
        refused: None,
    };
    let made = ChildRole::ALL.into_iter().map(|child| {
        let live = wanted::live(&owner, child, &side, &selector, None, 0).expect("a template");
        let body =
            live.or_else(|| wanted::preview(&owner, child, Colour::Green, &spec, 0).expect("a template"));
        let body = body.unwrap_or_else(|| panic!("{child:?} is asked for"));
        match wanted::apply(&body, &ChildState::Missing, None) {
            Some(Effect::Apply { object, .. }) => (child, object),
            other => panic!("{other:?}"),
        }
    });
    made.collect()
}

#[test]
fn people_neither_delete_nor_strip_what_is_live() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("protected");
    let alice = ns.user("alice");
    let all = children(&ns);
    apply(&ns.admin(), all.iter().map(|(_, object)| object.clone()).collect());
    let protection = Protection::install(cluster, ns.name());

    let (_, ingress) = all.iter().find(|(child, _)| *child == ChildRole::LiveIngress).expect("a Service");
    let dry = |path: String| format!("{path}?dryRun=All");
    let said = wait_until("the policy is in force", CAP, || match alice.delete(&dry(path_of(ingress))) {
        answer if answer.code == 422 => Ok(answer.message().to_owned()),
        answer => Err(answer.to_string()),
    });
    let expected = format!(
        "Service {}/dataplane-ingress-edge is live for DataPlane edge: nobody deletes it, or takes its labels, its owner \
         or annotation {} off; change the DataPlane, or delete that [dataplane-live-child]; see `interlock explain \
         dataplane-live-child`",
        ns.name(),
        meta::APPLIED_HASH
    );
    assert!(said.ends_with(&expected), "{said}");

    for (child, object) in &all {
        let (path, live) = (path_of(object), child.is_live());
        let strips = [
            json!({"metadata": {"labels": null}}),
            json!({"metadata": {"ownerReferences": null}}),
            json!({"metadata": {"annotations": {meta::APPLIED_HASH: null}}}),
        ];
        let deleted = alice.delete(&dry(path.clone()));
        assert_eq!(deleted.code == 422, live, "{child:?}: {deleted}");
        for strip in &strips {
            let stripped = alice.merge_patch(&dry(path.clone()), strip);
            assert_eq!(stripped.code, if live { 422 } else { 200 }, "{child:?} {strip}: {stripped}");
            assert_eq!(stripped.message().contains("[dataplane-live-child]"), live, "{child:?}: {stripped}");
        }
        let another = json!({"metadata": {"annotations": {"team": "edge"}}});
        alice.merge_patch(&path, &another).ok();
    }
    types_are_sound(cluster, &protection);
    what_may_delete_does(cluster, &ns, &all);
}

/// The process deletes what is live, and so does the garbage collector of Kubernetes.
fn what_may_delete_does(cluster: &Cluster, ns: &Namespace<'_>, all: &[(ChildRole, Value)]) {
    ns.bind("system:serviceaccount:interlock-system:interlock", "ClusterRole", "cluster-admin");
    let process = cluster.user("interlock", &[]);
    for (child, object) in all {
        let path = format!("{}?dryRun=All", path_of(object));
        wait_until(&format!("the process may delete {child:?}"), CAP, || match process.delete(&path) {
            answer if answer.code == 200 => Ok(()),
            answer => Err(answer.to_string()),
        });
    }
    if !cluster.has_workloads() {
        return;
    }
    ns.admin().delete(&ns.path(API, "dataplanes", "edge")).ok();
    for (child, object) in all {
        wait_until(&format!("{child:?} goes with its DataPlane"), CAP, || {
            match ns.admin().read(&path_of(object)) {
                answer if answer.code == 404 => Ok(()),
                answer => Err(answer.to_string()),
            }
        });
    }
}

fn types_are_sound(cluster: &Cluster, protection: &Protection) {
    if !cluster.has_workloads() {
        return;
    }
    let status = wait_until("the policy is type-checked", CAP, || {
        let policy = protection.policy();
        let status = policy["status"].clone();
        let done = status["observedGeneration"] == policy["metadata"]["generation"];
        if done && status.get("typeChecking").is_some() { Ok(status) } else { Err(status.to_string()) }
    });
    assert!(status["typeChecking"].get("expressionWarnings").is_none(), "{status:#}");
}
