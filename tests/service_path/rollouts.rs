//! DataPlanes on a real control plane: they run, roll blue/green, and heal from the last-applied spec, with pods
//! that answer as Kong does ([`fake_kong`]).

mod history;
mod large_specs;
mod refused;
mod requests;
mod routes;
mod scaling;
mod sourced_flavors;
mod take_over;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ::interlock::install::{self, InstallOptions, Part};
use go_template::yaml;
use interlock_kong::api as kong;
use interlock_kong::data_plane::rollout::side::Colour;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::fake_kong::FakeKong;
use crate::support::{
    Client, Cluster, Interlock, announce, interlock, service_path, shared, skipped, wait_until,
};

mod flavor_changes;

const CAP: Duration = Duration::from_secs(90);
const BLUE: &str = "dataplane-edge-blue";
const GREEN: &str = "dataplane-edge-green";
const INGRESS: &str = "dataplane-ingress-edge";
const NAMESPACE: &str = "gateways";

/// A cluster on which DataPlanes are carried out, and their pods have a producer.
pub(crate) struct Ground {
    cluster: Cluster,
    pub(crate) interlock: Arc<Interlock>,
    pub(crate) admin: Client,
    pub(crate) kong: FakeKong,
    _installed: service_path::Installation,
    stop: Arc<AtomicBool>,
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// The definition of DataPlanes: ours, or Kong's own where it is at hand.
pub(crate) fn definition(whose: &str) -> Option<Value> {
    if whose == "ours" {
        return install::objects(Part::KongCrds, &InstallOptions::default()).unwrap().into_iter().next();
    }
    let file = shared::find("crds/kong_dataplanes.yaml")?;
    let text = std::fs::read_to_string(file).expect("a file that is there");
    Some(yaml::documents(&text).expect("YAML").remove(0))
}

impl Ground {
    pub(crate) fn new(definition: Value) -> Self {
        Self::on(service_path::cluster(), definition)
    }

    fn on(cluster: Cluster, definition: Value) -> Self {
        let installed = service_path::install(&cluster, 1, &[]);
        let admin = cluster.admin();
        let options = InstallOptions { data_planes: true, ..InstallOptions::default() };
        let overlay = install::objects(Part::Rbac, &options).unwrap();
        interlock::apply(&admin, overlay);
        admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).ok();
        let settings = "apiVersion: interlock.dev/v1alpha1\nkind: Interlock\nmetadata: {name: default}\n\
                        spec: {capabilities: {dataplanes: {mode: auto}}}\n";
        admin.kubectl_in(&["apply", "--server-side", "--force-conflicts", "-f", "-"], settings).ok();
        admin.kubectl(&["create", "namespace", NAMESPACE]).ok();
        let kong = FakeKong::start(admin.clone());
        let interlock = installed.replicas[0].clone();
        let stop = Arc::new(AtomicBool::new(false));
        let ground = Self { cluster, interlock, admin, kong, _installed: installed, stop };
        wait_until("DataPlanes are served", CAP, || {
            let answer = ground.admin.read(&ground.path("dataplanes", ""));
            if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
        });
        ground
    }

    /// Configures every pod that a producer finds behind an admin Service.
    pub(crate) fn produce(&self) {
        let (admin, kong, stop) = (self.admin.clone(), self.kong.clone(), self.stop.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let list = admin.read(&format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app=edge"));
                for pod in list.body["items"].as_array().into_iter().flatten() {
                    if let Some(address) = pod["status"]["podIP"].as_str() {
                        kong.offer(address, &json!([{"paths": ["/a"]}]));
                    }
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
    }

    pub(crate) fn path(&self, resource: &str, name: &str) -> String {
        let api = match resource {
            "dataplanes" => format!("apis/{}", kong::API_VERSION),
            "deployments" | "replicasets" | "controllerrevisions" => "apis/apps/v1".to_owned(),
            "horizontalpodautoscalers" => "apis/autoscaling/v2".to_owned(),
            "events" => "apis/events.k8s.io/v1".to_owned(),
            "endpointslices" => "apis/discovery.k8s.io/v1".to_owned(),
            _ => "api/v1".to_owned(),
        };
        let path = format!("/{api}/namespaces/{NAMESPACE}/{resource}");
        if name.is_empty() { path } else { format!("{path}/{name}") }
    }

    pub(crate) fn create(&self, spec: Value) {
        let object = json!({
            "apiVersion": kong::API_VERSION, "kind": "DataPlane",
            "metadata": {"name": "edge", "annotations": {"interlock.dev/promotion-grace-period": "2s"}},
            "spec": spec,
        });
        wait_until("the DataPlane is created", CAP, || {
            let answer = self.admin.post(&self.path("dataplanes", ""), &object);
            if answer.code == 201 { Ok(()) } else { Err(answer.to_string()) }
        });
    }

    pub(crate) fn stage(&self, image: &str) {
        let patch = json!({"spec": {"deployment": {"podTemplateSpec": template(image)}}});
        self.admin.merge_patch(&self.path("dataplanes", "edge"), &patch).ok();
    }

    pub(crate) fn data_plane(&self) -> Value {
        self.admin.read(&self.path("dataplanes", "edge")).ok()
    }

    fn selector(&self, colour: Colour) -> String {
        colour.selector(self.data_plane()["metadata"]["uid"].as_str().expect("a uid"))
    }

    #[track_caller]
    pub(crate) fn await_rolled_out(&self, reason: &str) -> Value {
        wait_until(&format!("the rollout is {reason}"), CAP, || {
            let found = self.data_plane();
            let rolled_out = &found["status"]["rollout"]["conditions"][0];
            let current = rolled_out["observedGeneration"] == found["metadata"]["generation"];
            if rolled_out["reason"] == reason && current {
                Ok(found)
            } else {
                Err(found["status"].to_string())
            }
        })
    }

    /// Waits until a child is as it shall be.
    #[track_caller]
    pub(crate) fn await_child(
        &self,
        resource: &str,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        wait_until(&format!("{name} {what}"), CAP, || {
            let found = self.admin.read(&self.path(resource, name));
            let is_alive = found.code == 200 && found.body["metadata"]["deletionTimestamp"].is_null();
            if is_alive && holds(&found.body) { Ok(found.body) } else { Err(found.to_string()) }
        })
    }

    #[track_caller]
    fn await_event(&self, reason: &str, said: &str) {
        wait_until(&format!("an Event {reason} says {said:?}"), CAP, || {
            let list = self.admin.read(&self.path("events", "")).ok();
            let all = list["items"].as_array().cloned().unwrap_or_default();
            let is = |e: &Value| {
                e["reason"] == reason && e["note"].as_str().is_some_and(|note| note.contains(said))
            };
            if all.iter().any(is) { Ok(()) } else { Err(format!("{all:#?}")) }
        });
    }

    #[track_caller]
    fn rollout(&self, arguments: &[&str]) -> String {
        let line = [&["rollout"], arguments, &["-n", NAMESPACE]].concat();
        self.admin.command(&interlock::binary(), &line, "").ok()
    }
}

fn template(image: &str) -> Value {
    json!({"spec": {"containers": [{"name": "proxy", "image": image}]}})
}

pub(crate) fn spec(image: &str) -> Value {
    json!({
        "deployment": {
            "replicas": 2,
            "podTemplateSpec": template(image),
            "rollout": {"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}},
        },
        "network": {"services": {"ingress": {"type": "ClusterIP"}}},
    })
}

fn image(deployment: &Value) -> &str {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().expect("containers");
    containers.iter().find(|container| container["name"] == "proxy").expect("a proxy")["image"]
        .as_str()
        .unwrap()
}

fn selected(service: &Value) -> &str {
    service["spec"]["selector"]["gateway-operator.konghq.com/selector"].as_str().unwrap_or_default()
}

/// The EndpointSlices of the live Service.
fn live_slices(ground: &Ground) -> String {
    slices_of(ground, INGRESS)
}

/// The EndpointSlices of a Service.
fn slices_of(ground: &Ground, service: &str) -> String {
    format!("{}?labelSelector=kubernetes.io/service-name={service}", ground.path("endpointslices", ""))
}

fn ready_endpoints(slices: &Value) -> usize {
    let slices = slices["items"].as_array().into_iter().flatten();
    let endpoints = slices.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true).count()
}

/// Counts the moments at which the live Service has no ready endpoint.
struct Probe {
    stop: Arc<AtomicBool>,
    empty: Arc<AtomicUsize>,
    looks: Arc<AtomicUsize>,
}

impl Probe {
    fn start(ground: &Ground) -> Self {
        Self::of(ground, INGRESS)
    }

    fn of(ground: &Ground, service: &str) -> Self {
        let (admin, stop) = (ground.admin.clone(), Arc::new(AtomicBool::new(false)));
        let path = slices_of(ground, service);
        let (empty, looks) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let probe = Self { stop: stop.clone(), empty: empty.clone(), looks: looks.clone() };
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let list = admin.read(&path);
                if list.code != 200 {
                    continue;
                }
                looks.fetch_add(1, Ordering::SeqCst);
                if ready_endpoints(&list.body) == 0 {
                    empty.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        probe
    }

    fn end(self, what: &str) {
        self.stop.store(true, Ordering::SeqCst);
        let (empty, looks) = (self.empty.load(Ordering::SeqCst), self.looks.load(Ordering::SeqCst));
        announce(&format!("{what}: {empty} of {looks} looks at the endpoints found none ready"));
        assert_eq!(empty, 0);
        assert!(looks > 10, "{looks}");
    }
}

/// From its creation to the second promotion, by the commands that people use.
#[rstest]
#[case::ours("ours")]
#[case::kongs("Kong's")]
fn a_data_plane_rolls_blue_green(#[case] whose: &str) {
    if !service_path::inside() {
        return;
    }
    let Some(definition) = definition(whose) else { return };
    let ground = Ground::new(definition);
    ground.create(spec("kong:3.8"));
    let idle = ground.await_rolled_out("WaitingForChange");
    assert_eq!(idle["status"]["selector"], ground.selector(Colour::Blue));
    assert_eq!((&idle["status"]["replicas"], &idle["status"]["service"]), (&json!(2), &json!(INGRESS)));
    ground
        .admin
        .kubectl(&["wait", "--for=condition=Ready", "dataplane/edge", "-n", NAMESPACE, "--timeout=60s"])
        .ok();

    ground.stage("kong:3.9");
    wait_until("the preview waits for a configuration", CAP, || {
        let found = ground.data_plane();
        let rolled_out = &found["status"]["rollout"]["conditions"][0];
        let waits = rolled_out["message"].as_str().is_some_and(|message| message.contains("/status/ready"));
        if waits { Ok(()) } else { Err(rolled_out.to_string()) }
    });
    ground.produce();
    ground.await_rolled_out("AwaitingPromotion");
    let live =
        ground.await_child("deployments", BLUE, "is as it was", |found| found["spec"]["replicas"] == 2);
    assert_eq!(image(&live), "kong:3.8");
    let status = ground.rollout(&["status", "edge"]);
    assert!(status.contains("AwaitingPromotion") && status.contains("kong:3.9"), "{status}");

    let probe = Probe::start(&ground);
    let said = ground.rollout(&["promote", "edge", "--wait"]);
    assert!(said.contains("edge"), "{said}");
    let done = ground.await_rolled_out("WaitingForChange");
    probe.end("one promotion");
    assert_eq!(done["status"]["selector"], ground.selector(Colour::Green));
    assert!(done["metadata"]["annotations"]["gateway-operator.konghq.com/promote-when-ready"].is_null());
    let service = ground.await_child("services", INGRESS, "is there", |_| true);
    assert_eq!(selected(&service), ground.selector(Colour::Green));
    ground.await_child("deployments", BLUE, "has no pods", |found| found["spec"]["replicas"] == 0);
    ground.await_event("Promoted", GREEN);

    ground.stage("kong:3.7");
    ground.await_rolled_out("AwaitingPromotion");
    ground.rollout(&["abort", "edge", "--wait"]);
    ground.await_rolled_out("WaitingForChange");
    let live = ground.await_child("deployments", GREEN, "is as it was", |_| true);
    assert_eq!(image(&live), "kong:3.9");

    // Kong's definition admits no promotion without a request.
    if whose == "ours" {
        let strategy = json!({"blueGreen": {"promotion": {"strategy": "AutomaticPromotion"}}});
        let automatic = json!({"spec": {"deployment": {"rollout": {"strategy": strategy}}}});
        ground.admin.merge_patch(&ground.path("dataplanes", "edge"), &automatic).ok();
        let probe = Probe::start(&ground);
        ground.stage("kong:3.7");
        ground.await_child("services", INGRESS, "selects what was staged", |found| {
            selected(found) == ground.selector(Colour::Blue)
        });
        ground.await_rolled_out("WaitingForChange");
        probe.end("a promotion without a request");
    }
}

/// What is deleted or edited by hand comes back as it was, while another spec is staged.
#[test]
fn the_live_side_heals_while_a_change_is_staged() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    ground.create(spec("kong:3.8"));
    ground.await_rolled_out("WaitingForChange");
    ground.stage("kong:3.9");
    ground.await_rolled_out("AwaitingPromotion");
    for (resource, name) in [
        ("deployments", BLUE),
        ("deployments", GREEN),
        ("services", INGRESS),
        ("services", "dataplane-admin-edge"),
        ("services", "dataplane-ingress-edge-preview"),
    ] {
        let before = ground.admin.read(&ground.path(resource, name)).ok();
        ground.admin.delete(&ground.path(resource, name)).ok();
        let uid = before["metadata"]["uid"].clone();
        let after = ground.await_child(resource, name, "is back", |found| found["metadata"]["uid"] != uid);
        if resource == "deployments" {
            assert_eq!(image(&after), image(&before), "{name}");
        } else {
            assert_eq!(selected(&after), selected(&before), "{name}");
        }
        if name == BLUE || name == INGRESS {
            ground.await_event("LiveChildRecreated", name);
        }
    }
    ground.await_rolled_out("AwaitingPromotion");
    let edits: [(&str, &str, Value); 3] = [
        ("deployments", BLUE, json!({"spec": {"template": template("kong:evil")}})),
        ("deployments", BLUE, json!({"metadata": {"ownerReferences": null, "labels": null}})),
        ("services", INGRESS, json!({"spec": {"selector": {"app": "nobody"}}})),
    ];
    for (resource, name, edit) in edits {
        let before = ground.admin.read(&ground.path(resource, name)).ok();
        let patched = ground.admin.kubectl(&[
            "patch",
            resource,
            name,
            "-n",
            NAMESPACE,
            "--type=merge",
            "-p",
            &edit.to_string(),
        ]);
        patched.ok();
        ground.await_child(resource, name, "is set back", |found| {
            found["spec"]["selector"] == before["spec"]["selector"]
                && found["spec"]["template"] == before["spec"]["template"]
                && found["metadata"]["labels"] == before["metadata"]["labels"]
                && found["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
        });
        ground.await_event("LiveChildRestored", name);
    }
    // What is added is taken away: a variable would change what Kong does, as its router flavor.
    let added =
        ["set", "env", &format!("deployment/{BLUE}"), "-n", NAMESPACE, "KONG_ROUTER_FLAVOR=expressions"];
    ground.admin.kubectl(&added).ok();
    ground.await_child("deployments", BLUE, "is without it", |found| {
        !found["spec"].to_string().contains("KONG_ROUTER_FLAVOR")
    });
    ground.await_event("LiveChildRestored", "KONG_ROUTER_FLAVOR");
    wait_until("its pods are back", CAP, || {
        let status = &ground.data_plane()["status"];
        if status["readyReplicas"] == 2 { Ok(()) } else { Err(status.to_string()) }
    });
}

/// What an admission plugin of others changes in each of our writes is not fought.
#[test]
fn a_plugin_that_changes_children_is_not_fought() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "always-pull"},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"],
            }]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
                "[JSONPatch{op: 'replace', path: '/spec/template/spec/containers/0/imagePullPolicy', value: 'Always'}]"}}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "always-pull"}, "spec": {"policyName": "always-pull"},
    });
    let group = "/apis/admissionregistration.k8s.io/v1";
    if ground.admin.read(&format!("{group}/mutatingadmissionpolicies")).code == 404 {
        return skipped("this Kubernetes has no MutatingAdmissionPolicies");
    }
    ground.admin.post(&format!("{group}/mutatingadmissionpolicies"), &policy).ok();
    ground.admin.post(&format!("{group}/mutatingadmissionpolicybindings"), &binding).ok();
    let deployments = "/apis/apps/v1/namespaces/default/deployments?dryRun=All";
    wait_until("the policy is in force", CAP, || {
        let probe = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "probe"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent"}]},
            }},
        });
        let answer = ground.admin.post(deployments, &probe);
        let pulls = &answer.body["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"];
        if *pulls == "Always" { Ok(()) } else { Err(answer.to_string()) }
    });
    ground.produce();
    ground.create(spec("kong:3.8"));
    ground.await_rolled_out("WaitingForChange");
    let live = ground.await_child("deployments", BLUE, "is there", |_| true);
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"], "Always");
    ground.stage("kong:3.9");
    ground.await_rolled_out("AwaitingPromotion");
    let list = ground.admin.read(&ground.path("events", "")).ok();
    let fought =
        list["items"].as_array().into_iter().flatten().filter(|e| e["reason"] == "LiveChildRestored").count();
    assert_eq!(fought, 0);
    assert!(!ground.interlock.log().contains("reconcile exceeded a limit"), "{}", ground.interlock.log());
}

/// The process dies in the middle of promotions; the traffic always has pods.
#[test]
fn promotions_survive_the_death_of_the_process() {
    if !service_path::inside() {
        return;
    }
    let long = std::env::var_os("INTERLOCK_SOAK").is_some();
    let (promotions, kills) = if long { (50, 200) } else { (5, 20) };
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    ground.create(spec("kong:3.0"));
    ground.await_rolled_out("WaitingForChange");
    let probe = Probe::start(&ground);
    let mut killed = 0;
    for round in 1..=promotions {
        ground.stage(&format!("kong:3.{round}"));
        let promote =
            json!({"metadata": {"annotations": {"gateway-operator.konghq.com/promote-when-ready": "true"}}});
        ground.admin.merge_patch(&ground.path("dataplanes", "edge"), &promote).ok();
        for kill in 0..kills / promotions {
            let seen = ground.data_plane()["metadata"]["resourceVersion"].clone();
            // The next write of the DataPlane is one of a rollout under way, if it is not over.
            let moved = std::time::Instant::now();
            while ground.data_plane()["metadata"]["resourceVersion"] == seen
                && moved.elapsed() < Duration::from_millis(300 + 37 * kill)
            {}
            ground.interlock.kill();
            ground.interlock.start();
            killed += 1;
        }
        let wanted = format!("kong:3.{round}");
        let live = if round % 2 == 0 { BLUE } else { GREEN };
        ground.await_child("deployments", live, "runs what was staged", |found| {
            image(found) == wanted && found["status"]["availableReplicas"] == 2
        });
        wait_until("the promotion is over", CAP, || {
            let found = ground.data_plane();
            let reason = &found["status"]["rollout"]["conditions"][0]["reason"];
            let colour = if round % 2 == 0 { Colour::Blue } else { Colour::Green };
            let is_live = found["status"]["selector"] == ground.selector(colour);
            if is_live && *reason == "WaitingForChange" { Ok(()) } else { Err(found["status"].to_string()) }
        });
    }
    probe.end(&format!("{promotions} promotions, {killed} kills"));
}
