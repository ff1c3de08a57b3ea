//! DataPlanes that Kong's operator made, on the small cluster: taken over, rolled out, and handed back.

use interlock_core::api::meta;
use interlock_core::api::meta::condition;
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::certificate::CertificateAnswer;
use rstest::rstest;
use serde_json::{Value, json};

use super::scenarios::{image, replicas, settle};
use super::world::{World, data_plane, selected, spec, template};
use crate::api::{OPERATOR_LEASE, WAIT_FOR_OWNER, labels};
use crate::data_plane::rollout::side::Colour;

const LIVE: &str = "dataplane-edge-x7k2p";
const PREVIEW: &str = "dataplane-edge-q9zb4";
const INGRESS: &str = "dataplane-ingress-edge-w4s8t";
const LIVE_SELECTOR: &str = "8f1e9a5c-0000-4000-8000-000000000000";
const PREVIEW_SELECTOR: &str = "16f0a2d4-0000-4000-8000-000000000000";

/// A child as Kong's operator writes it, a long time ago.
fn child(api_version: &str, kind: &str, name: &str, own: &[(&str, &str)], spec: Value) -> Value {
    let mut all = json!({labels::APP: "edge", labels::MANAGED_BY: "dataplane"});
    for (label, value) in own {
        all[*label] = json!(value);
    }
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "namespace": "kong", "name": name, "uid": format!("uid-of-{name}"), "labels": all, "generation": 1,
            "finalizers": [WAIT_FOR_OWNER],
            "ownerReferences": [{"kind": "DataPlane", "name": "edge", "uid": "u-1", "controller": true}],
            "managedFields": [{
                "manager": "manager", "operation": "Update", "apiVersion": api_version, "time": "1969-12-31T00:00:00Z",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:gateway-operator.konghq.com/managed-by": {}}}, "f:spec": {"f:x": {}}},
            }],
        },
        "spec": spec,
    })
}

fn deployment(name: &str, state: &str, selector: &str, replicas: i32) -> Value {
    let pods = json!({labels::APP: "edge", labels::SELECTOR: selector});
    // Kong's operator sorts variables, and has others.
    let mut template = template("kong:3.8");
    template["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "value": "a"}, {"name": "KONG_ADMIN_LISTEN", "value": "0.0.0.0:8444 ssl"}]);
    template["spec"]["volumes"] =
        json!([{"name": "cluster-certificate", "secret": {"secretName": format!("{name}-tls")}}]);
    template["metadata"] = json!({"labels": pods, "annotations": {"kubectl.kubernetes.io/restartedAt": "t"}});
    child(
        "apps/v1",
        "Deployment",
        name,
        &[(labels::DEPLOYMENT_STATE, state), (labels::SELECTOR, selector)],
        json!({"replicas": replicas, "selector": {"matchLabels": pods}, "template": template}),
    )
}

fn service(name: &str, state: &str, kind: &str, selector: &str) -> Value {
    let selector = json!({labels::APP: "edge", labels::SELECTOR: selector});
    let own = [(labels::SERVICE_STATE, state), (labels::SERVICE_TYPE, kind)];
    child("v1", "Service", name, &own, json!({ "selector": selector }))
}

fn insert(world: &mut World, object: Value) {
    let key = ObjectKey::of(&object).unwrap();
    world.store(&key, object);
}

/// A DataPlane of Kong's operator, which does not run any more.
fn of_kong() -> World {
    let mut world = World::with(spec("kong:3.8"));
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({"type": type_, "status": status, "reason": reason, "message": "", "observedGeneration": 1,
               "lastTransitionTime": "1969-12-31T00:00:00Z"})
    };
    let status = json!({
        "selector": LIVE_SELECTOR, "service": INGRESS,
        "conditions": [condition("Ready", "True", "Ready")],
        "rollout": {
            "deployment": {"selector": PREVIEW_SELECTOR},
            "conditions": [condition("RolledOut", "False", "WaitingForChange")],
        },
    });
    world.objects.get_mut(&data_plane()).unwrap()["status"] = status;
    for object in [
        deployment(LIVE, "live", LIVE_SELECTOR, 1),
        deployment(PREVIEW, "preview", PREVIEW_SELECTOR, 0),
        service(INGRESS, "live", "ingress", LIVE_SELECTOR),
        service("dataplane-admin-edge-h5n6v", "live", "admin", LIVE_SELECTOR),
        service("dataplane-ingress-edge-preview-1", "preview", "ingress", PREVIEW_SELECTOR),
        service("dataplane-admin-edge-preview-1", "preview", "admin", PREVIEW_SELECTOR),
        lease("pod-1", "1969-12-31T00:00:00Z"),
    ] {
        insert(&mut world, object);
    }
    world.settle_deployments();
    world
}

fn lease(holder: &str, renewed: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kong-system", "name": OPERATOR_LEASE},
        "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
    })
}

fn taken_over() -> World {
    let mut world = of_kong();
    world.annotate(meta::TAKE_OVER, "kong-system");
    settle(&mut world);
    world
}

/// Status, reason and message of `Managed`.
fn managed(world: &World) -> (String, String, String) {
    let all = world.get()["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|found| found["type"] == condition::MANAGED).cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

/// Names of the Deployments and Services.
fn names(world: &World) -> Vec<String> {
    let is_child = |key: &&ObjectKey| matches!(key.gvk.kind.as_str(), "Deployment" | "Service");
    world.objects.keys().filter(is_child).map(|key| key.name.clone()).collect()
}

fn pods(world: &World, deployment: &str) -> Value {
    world.child("Deployment", deployment).expect("the Deployment")["spec"]["template"].clone()
}

/// The template without the time of a restart, which no manifest states.
fn pods_of_kong() -> Value {
    let mut template = deployment(LIVE, "live", LIVE_SELECTOR, 1)["spec"]["template"].clone();
    template["metadata"]["annotations"] = json!({});
    template
}

#[test]
fn names_selectors_and_pods_stay_as_they_are() {
    let before = names(&of_kong());
    let world = taken_over();
    let (status, reason, message) = managed(&world);
    assert_eq!((&*status, &*reason), ("True", condition::TAKEN_OVER), "{message}");
    assert!(
        message.contains(LIVE) && message.contains(INGRESS) && message.contains("x7k2p-tls"),
        "{message}"
    );
    assert_eq!(names(&world), before);
    assert_eq!(pods(&world, LIVE), pods_of_kong());
    assert_eq!(world.stamp()["selector"], LIVE_SELECTOR);
    assert_eq!(world.get()["status"]["selector"], LIVE_SELECTOR);
    assert_eq!(world.rolled_out(), "WaitingForChange");
    assert_eq!(world.get()["status"]["rollout"]["deployment"]["selector"], PREVIEW_SELECTOR);
    assert_eq!(selected(world.child("Service", INGRESS).unwrap()), LIVE_SELECTOR);
    for (key, object) in world.objects.iter().filter(|(key, _)| key.gvk.kind != "DataPlane") {
        assert!(
            object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty),
            "{key}: {:#}",
            **object
        );
    }
    assert!(world.log.iter().any(|line| line.starts_with("event TakenOver")), "{:#?}", world.log);
    assert!(!world.log.iter().any(|line| line.starts_with("healed")), "{:#?}", world.log);
    // The Secret may not be written, so its finalizer stays, and the message says so.
    let mut world = of_kong();
    world.certificate = CertificateAnswer::Denied("no".to_owned());
    world.annotate(meta::TAKE_OVER, "kong-system");
    settle(&mut world);
    let (_, _, message) = managed(&world);
    let remedy = "kubectl patch secret dataplane-edge-x7k2p-tls dataplane-edge-q9zb4-tls -n kong";
    assert!(message.contains(remedy), "{message}");
}

/// The record keeps what Kong's operator's field managers were called: without it there is no way back.
#[test]
fn nothing_is_adopted_without_its_record() {
    let mut world = of_kong();
    world.annotate(meta::TAKE_OVER, "kong-system");
    let before = world.objects.clone();
    let text = "controllerrevisions.apps \"x\" is forbidden: exceeded quota: none, requested: 1, used: 0, limited: 0";
    world.refuses = Some(("ControllerRevision", text));
    settle(&mut world);
    settle(&mut world);
    let (status, reason, message) = managed(&world);
    assert_eq!((&*status, &*reason), ("False", condition::TAKE_OVER_REFUSED), "{message}");
    assert!(message.contains("is not created: controllerrevisions.apps"), "{message}");
    let is_child = |(key, _): &(&ObjectKey, _)| key.gvk.kind != "DataPlane";
    assert!(world.objects.iter().filter(is_child).eq(before.iter().filter(is_child)), "nothing is adopted");
    world.take_all();
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER);
}

/// The runtime ends a reconcile that has more.
#[test]
fn a_take_over_fits_into_one_reconcile() {
    let mut world = of_kong();
    world.annotate(meta::TAKE_OVER, "kong-system");
    let mut total = 1;
    loop {
        let (effects, steps) = world.steps();
        total += steps;
        let Some(effects) = effects else { break };
        world.carry_out(effects);
    }
    assert_eq!(managed(&world).1, condition::TAKEN_OVER);
    assert!(total <= 24, "{total} steps");
}

/// It is killed after each of its writes, and ends the same.
#[test]
fn a_take_over_survives_the_death_of_the_process() {
    let whole = taken_over();
    let writes = whole.log.iter().filter(|line| !line.starts_with("event")).count();
    for killed in 0..writes {
        let mut world = of_kong();
        world.annotate(meta::TAKE_OVER, "kong-system");
        world.reconcile(killed);
        settle(&mut world);
        assert_eq!(managed(&world), managed(&whole), "{killed}");
        assert_eq!((names(&world), pods(&world, LIVE)), (names(&whole), pods_of_kong()), "{killed}");
    }
}

fn merged(world: &mut World, kind: &str, name: &str, patch: Value) {
    let key = world.objects.keys().find(|key| key.gvk.kind == kind && key.name == name).unwrap().clone();
    let mut object = Value::clone(&world.objects[&key]);
    json_patch::merge(&mut object, &patch);
    world.store(&key, object);
}

#[rstest]
#[case::led(
    |w: &mut World| insert(w, lease("pod-2", "1969-12-31T23:59:50Z")), condition::ANOTHER_MANAGER_WRITES, "pod-2 holds Lease"
)]
#[case::written_lately(
    |w: &mut World| {
        let mut entries = w.child("Service", INGRESS).unwrap()["metadata"]["managedFields"].clone();
        entries[0]["time"] = json!("1969-12-31T23:59:50Z");
        merged(w, "Service", INGRESS, json!({"metadata": {"managedFields": entries}}));
    },
    condition::ANOTHER_MANAGER_WRITES, "wrote Service dataplane-ingress-edge-w4s8t"
)]
#[case::a_wrong_namespace(|w: &mut World| w.annotate(meta::TAKE_OVER, "kong"), condition::TAKE_OVER_REFUSED, "there is no Lease")]
#[case::nonsense(|w: &mut World| w.annotate(meta::TAKE_OVER, "Yes!"), condition::TAKE_OVER_REFUSED, "is \"Yes!\"")]
#[case::staged(|w: &mut World| w.edit(spec("kong:3.9")), condition::TAKE_OVER_REFUSED, "generation 2")]
#[case::promoting(
    |w: &mut World| merged(w, "DataPlane", "edge", json!({"status": {"rollout": {"conditions": [
        {"type": "RolledOut", "status": "False", "reason": "PromotionInProgress", "message": "", "observedGeneration": 1,
         "lastTransitionTime": "1969-12-31T00:00:00Z"}]}}})),
    condition::TAKE_OVER_REFUSED, "its rollout is PromotionInProgress"
)]
#[case::plugins(
    |w: &mut World| merged(w, "DataPlane", "edge", json!({"spec": {"pluginsToInstall": [{"name": "p"}]}})),
    condition::TAKE_OVER_REFUSED, "spec.pluginsToInstall is not carried out"
)]
#[case::two_live(
    |w: &mut World| insert(w, deployment("dataplane-edge-other", "live", LIVE_SELECTOR, 1)),
    condition::TAKE_OVER_REFUSED, "Deployment dataplane-edge-other and Deployment dataplane-edge-x7k2p"
)]
#[case::none(|w: &mut World| w.delete("Service", INGRESS), condition::TAKE_OVER_REFUSED, "no live ingress Service")]
#[case::going(
    |w: &mut World| merged(w, "Deployment", LIVE, json!({"metadata": {"deletionTimestamp": "1969-12-31T00:00:00Z"}})),
    condition::TAKE_OVER_REFUSED, "is being deleted"
)]
#[case::pods_of_the_preview(
    |w: &mut World| merged(w, "Deployment", PREVIEW, json!({"spec": {"replicas": 1}})),
    condition::TAKE_OVER_REFUSED, "of the preview has pods"
)]
#[case::another_selector(
    |w: &mut World| merged(w, "DataPlane", "edge", json!({"status": {"selector": PREVIEW_SELECTOR}})),
    condition::TAKE_OVER_REFUSED, "let Kong's operator end the promotion"
)]
#[case::of_a_control_plane(
    |w: &mut World| merged(w, "DataPlane", "edge", json!({"metadata": {"ownerReferences": [{"kind": "ControlPlane"}]}})),
    "OwnedByAnother", "its owner is a ControlPlane"
)]
fn what_cannot_be_taken_over_is_left_alone(
    #[case] change: fn(&mut World),
    #[case] reason: &str,
    #[case] said: &str,
) {
    let mut world = of_kong();
    world.annotate(meta::TAKE_OVER, "kong-system");
    change(&mut world);
    world.settle_deployments();
    let children = |world: &World| {
        let mut objects = world.objects.clone();
        objects.remove(&data_plane());
        objects
    };
    let before = children(&world);
    settle(&mut world);
    let (status, found, message) = managed(&world);
    assert_eq!((&*status, &*found), ("False", reason), "{message}");
    assert!(message.contains(said), "{message}");
    assert_eq!(children(&world), before);
}

/// Once the Lease has run out and the last write is old, nothing else has to happen.
#[test]
fn what_was_refused_is_taken_over_later() {
    let mut world = of_kong();
    insert(&mut world, lease("pod-2", "1970-01-01T00:00:00Z"));
    world.annotate(meta::TAKE_OVER, "kong-system");
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::ANOTHER_MANAGER_WRITES);
    world.wait(15);
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER);
}

#[test]
fn where_the_operator_is_gone_no_lease_is_looked_at() {
    let mut world = of_kong();
    world.delete("Lease", OPERATOR_LEASE);
    world.annotate(meta::TAKE_OVER, meta::OPERATOR_UNINSTALLED);
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER);
}

#[test]
fn a_change_is_rolled_out_between_the_two_deployments_that_are_there() {
    let mut world = taken_over();
    let before = names(&world);
    let mut scaled = spec("kong:3.8");
    scaled["deployment"]["replicas"] = json!(2);
    world.edit(scaled.clone());
    settle(&mut world);
    assert_eq!((pods(&world, LIVE), replicas(&world, LIVE)), (pods_of_kong(), 2), "scaling rolls nothing");

    scaled["deployment"]["podTemplateSpec"] = template("kong:3.9");
    world.edit(scaled.clone());
    settle(&mut world);
    assert_eq!((world.rolled_out(), image(&world, PREVIEW)), ("AwaitingPromotion", "kong:3.9"));
    assert_eq!(pods(&world, LIVE), pods_of_kong());
    let mounted = pods(&world, PREVIEW).to_string();
    assert!(mounted.contains("dataplane-edge-x7k2p-tls"), "both sides mount one: {mounted}");
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!(world.get()["status"]["selector"], PREVIEW_SELECTOR);
    assert_eq!(selected(world.child("Service", INGRESS).unwrap()), PREVIEW_SELECTOR);
    assert_eq!(pods(&world, LIVE), pods_of_kong(), "it can still go back");
    world.wait(30);
    settle(&mut world);
    assert_eq!((replicas(&world, LIVE), replicas(&world, PREVIEW)), (0, 2));
    assert_eq!(names(&world), before);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER);
}

/// A child that is deleted comes back under its name.
#[test]
fn what_is_deleted_comes_back_under_its_name() {
    let mut world = taken_over();
    let before = names(&world);
    for (kind, name) in
        [("Service", INGRESS), ("Deployment", LIVE), ("ControllerRevision", "edge-taken-over-u-1")]
    {
        world.delete(kind, name);
        settle(&mut world);
        assert_eq!(names(&world), before, "{name}");
        assert_eq!(managed(&world).1, condition::TAKEN_OVER, "{name}");
    }
    assert_eq!(pods(&world, LIVE), pods_of_kong());
}

/// Kong's operator was started again and writes: Interlock does not write against it.
#[test]
fn what_the_operator_writes_again_is_left_to_it() {
    let mut world = taken_over();
    let mut entries = world.child("Service", INGRESS).unwrap()["metadata"]["managedFields"].clone();
    let theirs = json!({"manager": "manager", "operation": "Update", "apiVersion": "v1", "time": "1970-01-01T00:00:00Z",
                        "fieldsV1": {"f:spec": {"f:selector": {}}}});
    entries.as_array_mut().unwrap().push(theirs);
    merged(
        &mut world,
        "Service",
        INGRESS,
        json!({"metadata": {"managedFields": entries}, "spec": {"selector": {labels::SELECTOR: null}}}),
    );
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::ANOTHER_MANAGER_WRITES);
    assert_eq!(selected(world.child("Service", INGRESS).unwrap()), "");
    world.wait(30);
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER);
    assert_eq!(selected(world.child("Service", INGRESS).unwrap()), LIVE_SELECTOR);
}

fn hand_back(world: &mut World) {
    merged(world, "DataPlane", "edge", json!({"metadata": {"annotations": {meta::TAKE_OVER: null}}}));
    settle(world);
}

#[rstest]
#[case::at_once(false)]
#[case::after_a_promotion(true)]
fn what_is_handed_back_is_as_kongs_operator_finds_it(#[case] promoted: bool) {
    let mut world = taken_over();
    if promoted {
        world.edit(spec("kong:3.9"));
        world.annotate(meta::PROMOTE_WHEN_READY, "true");
        settle(&mut world);
        world.wait(30);
        settle(&mut world);
    }
    let before = names(&world);
    let live = if promoted { PREVIEW } else { LIVE };
    let (template, selector) = (pods(&world, live), world.get()["status"]["selector"].clone());
    hand_back(&mut world);
    let (status, reason, message) = managed(&world);
    assert_eq!((&*status, &*reason), ("False", condition::HANDED_BACK), "{message}");
    assert_eq!((names(&world), pods(&world, live)), (before, template));
    assert_eq!(world.get()["status"]["selector"], selector);
    let deployment = world.child("Deployment", live).unwrap();
    assert_eq!(deployment["metadata"]["labels"][labels::DEPLOYMENT_STATE], "live");
    let children =
        world.objects.iter().filter(|(key, _)| matches!(key.gvk.kind.as_str(), "Deployment" | "Service"));
    for (key, child) in children {
        assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], "u-1", "{key}");
        assert!(!child.to_string().contains("interlock"), "{key}: {:#}", **child);
        assert!(child["metadata"]["managedFields"].to_string().contains("\"manager\""), "{key}");
    }
    let record = |world: &World| world.objects.keys().any(|key| key.name.contains("taken-over"));
    assert!(!record(&world));
    let conditions = world.get()["status"]["conditions"].to_string();
    assert!(!conditions.contains(condition::LIVE_SPEC_RECORDED), "{conditions}");
    // No controller heals it any more, and it is taken over again when it is asked for.
    world.delete("Service", INGRESS);
    settle(&mut world);
    assert!(world.child("Service", INGRESS).is_none());
    insert(&mut world, service(INGRESS, "live", "ingress", selector.as_str().unwrap()));
    world.annotate(meta::TAKE_OVER, "kong-system");
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER, "{}", managed(&world).2);
    assert!(record(&world));
}

/// What is staged is not lost: Kong's operator would not know what is live.
#[test]
fn what_is_staged_is_handed_back_when_its_rollout_is_over() {
    let mut world = taken_over();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    hand_back(&mut world);
    let (_, reason, message) = managed(&world);
    assert_eq!(reason, condition::TAKEN_OVER);
    assert!(message.contains("promote what is staged"), "{message}");
    world.edit(spec("kong:3.8"));
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::HANDED_BACK);
}

/// Kong's operator would keep it, and say something else beside.
#[test]
fn no_closed_gate_is_handed_back() {
    let mut world = taken_over();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    let conditions = |world: &World| world.get()["status"]["rollout"]["conditions"].to_string();
    assert!(conditions(&world).contains("GatesPassed"), "{}", conditions(&world));
    let mut plain = spec("kong:3.9");
    plain["deployment"].as_object_mut().unwrap().remove("rollout");
    world.edit(plain);
    hand_back(&mut world);
    assert_eq!(managed(&world).1, condition::HANDED_BACK, "{}", managed(&world).2);
    assert!(!conditions(&world).contains("GatesPassed"), "{}", conditions(&world));
}

/// Without a preview of Kong's operator, the next one has a name of ours.
#[test]
fn without_blue_green_there_is_no_preview_to_keep() {
    let mut world = of_kong();
    for name in ["dataplane-ingress-edge-preview-1", "dataplane-admin-edge-preview-1"] {
        world.delete("Service", name);
    }
    world.delete("Deployment", PREVIEW);
    let mut plain = spec("kong:3.8");
    plain["deployment"].as_object_mut().unwrap().remove("rollout");
    let mut object = world.get().clone();
    object["spec"] = plain;
    object["status"].as_object_mut().unwrap().remove("rollout");
    world.store(&data_plane(), object);
    world.annotate(meta::TAKE_OVER, "kong-system");
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER, "{}", managed(&world).2);
    world.edit(spec("kong:3.8"));
    settle(&mut world);
    world.edit(spec("kong:3.9"));
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!(world.get()["status"]["selector"], Colour::Green.selector("u-1"));
    assert_eq!(image(&world, "dataplane-edge-green"), "kong:3.9");
    world.wait(30);
    settle(&mut world);
    // It is live under a name of ours when it comes back.
    hand_back(&mut world);
    assert_eq!(managed(&world).1, condition::HANDED_BACK);
    world.annotate(meta::TAKE_OVER, "kong-system");
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER, "{}", managed(&world).2);
    assert_eq!(
        meta_str(world.child("Deployment", "dataplane-edge-green").unwrap(), "name"),
        Some("dataplane-edge-green")
    );
    assert_eq!(image(&world, "dataplane-edge-green"), "kong:3.9");
}

/// A literal in the place of the reference would roll the pods.
#[test]
fn a_flavor_from_a_source_is_taken_over_as_a_reference() {
    let mut world = of_kong();
    world.give_flavor(Some("traditional"));
    let from = json!([{"prefix": "KONG_ROUTER_", "configMapRef": {"name": "router"}}]);
    let key = data_plane();
    let spec = &mut world.objects.get_mut(&key).unwrap()["spec"];
    spec["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["envFrom"] = from;
    world.annotate(meta::TAKE_OVER, "kong-system");
    settle(&mut world);
    assert_eq!(managed(&world).1, condition::TAKEN_OVER);
    assert_eq!(pods(&world, LIVE), pods_of_kong());
}
