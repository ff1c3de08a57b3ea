//! DataPlanes that Kong's operator made: taken over, rolled out and handed back, and no pod is rolled for it.

use std::collections::BTreeMap;

use interlock_core::api::meta;
use interlock_core::api::meta::condition;
use interlock_kong::api::{OPERATOR_LEASE, WAIT_FOR_OWNER, labels};

use super::*;
use crate::rollout_certificates::grant;

const LIVE: &str = "dataplane-edge-x7k2p";
const PREVIEW: &str = "dataplane-edge-q9zb4";
const KONG_INGRESS: &str = "dataplane-ingress-edge-w4s8t";
const ADMIN: &str = "dataplane-admin-edge-h5n6v";
const PREVIEW_ADMIN: &str = "dataplane-admin-edge-p2c6d";
const SECRET: &str = "dataplane-edge-c2v7m";
const PREVIEW_SECRET: &str = "dataplane-edge-l8r5f";
const LIVE_SELECTOR: &str = "8f1e9a5c-3a1b-4c55-9d0e-0242ac120002";
const PREVIEW_SELECTOR: &str = "16f0a2d4-3a1b-4c55-9d0e-0242ac120002";
const OPERATOR: &str = "kong-system";
/// A take-over waits 30 s after the last write of Kong's operator, and looks again every 15 s.
const TAKES: Duration = Duration::from_secs(180);

/// What Kong's operator makes, as its field manager.
struct KongOperator<'g> {
    ground: &'g Ground,
    uid: String,
}

impl KongOperator<'_> {
    fn write(&self, resource: &str, name: &str, own: &[(&str, &str)], mut object: Value) {
        let mut all = json!({labels::APP: "edge", labels::MANAGED_BY: "dataplane"});
        for (label, value) in own {
            all[*label] = json!(value);
        }
        object["metadata"] = json!({
            "name": name, "labels": all, "finalizers": [WAIT_FOR_OWNER],
            "ownerReferences": [{
                "apiVersion": kong::API_VERSION, "kind": "DataPlane", "name": "edge", "uid": self.uid, "controller": true,
            }],
        });
        let path = format!("{}?fieldManager=manager", self.ground.path(resource, ""));
        self.ground.admin.post(&path, &object).ok();
    }

    fn service(&self, name: &str, state: &str, kind: &str, selector: &str, spec: &Value) {
        let mut spec = spec.clone();
        spec["selector"] = json!({labels::APP: "edge", labels::SELECTOR: selector});
        let own = [(labels::SERVICE_STATE, state), (labels::SERVICE_TYPE, kind)];
        self.write("services", name, &own, json!({ "spec": spec }));
    }

    fn deployment(&self, name: &str, state: &str, selector: &str, replicas: u32, secret: &str) {
        let pods = json!({labels::APP: "edge", labels::SELECTOR: selector});
        let files = ["tls.crt", "tls.key", "ca.crt"].map(|key| json!({"key": key, "path": key}));
        let spec = json!({
            "replicas": replicas,
            "selector": {"matchLabels": pods},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": pods},
                "spec": {
                    "volumes": [{"name": "cluster-certificate", "secret": {"secretName": secret, "items": files}}],
                    "containers": [{
                        "name": "proxy", "image": "kong:3.8",
                        // In the order of their names, with one that Interlock does not set.
                        "env": [
                            {"name": "KONG_ADMIN_LISTEN", "value": "0.0.0.0:8444 ssl reuseport backlog=16384"},
                            {"name": "KONG_DATABASE", "value": "off"},
                            {"name": "KONG_UNTRUSTED_LUA", "value": "sandbox"},
                        ],
                        "ports": [{"name": "proxy", "containerPort": 8000}, {"name": "metrics", "containerPort": 8100}],
                        "readinessProbe": {"httpGet": {"path": "/status", "port": 8100}, "initialDelaySeconds": 5},
                        "lifecycle": {"preStop": {"exec": {"command": ["/bin/bash", "-c", "kong quit"]}}},
                        "volumeMounts": [{"name": "cluster-certificate", "mountPath": "/var/cluster-certificate", "readOnly": true}],
                    }],
                },
            },
        });
        let own = [(labels::DEPLOYMENT_STATE, state), (labels::SELECTOR, selector)];
        self.write("deployments", name, &own, json!({ "spec": spec }));
    }

    fn all(&self) {
        let ports = json!([
            {"name": "http", "port": 80, "targetPort": 8000}, {"name": "https", "port": 443, "targetPort": 8443},
        ]);
        let ingress = |kind: &str| json!({"type": kind, "ports": ports});
        let admin = json!({
            "type": "ClusterIP", "clusterIP": "None", "publishNotReadyAddresses": true,
            "ports": [{"name": "admin", "port": 8444, "targetPort": 8444}],
        });
        self.service(KONG_INGRESS, "live", "ingress", LIVE_SELECTOR, &ingress("ClusterIP"));
        self.service(ADMIN, "live", "admin", LIVE_SELECTOR, &admin);
        self.service(
            "dataplane-ingress-edge-p2c6d",
            "preview",
            "ingress",
            PREVIEW_SELECTOR,
            &ingress("LoadBalancer"),
        );
        self.service(PREVIEW_ADMIN, "preview", "admin", PREVIEW_SELECTOR, &admin);
        let data = json!({"type": "kubernetes.io/tls", "stringData": {"tls.crt": "a", "tls.key": "b", "ca.crt": "c"}});
        for (name, service) in [(SECRET, ADMIN), (PREVIEW_SECRET, PREVIEW_ADMIN)] {
            self.write("secrets", name, &[(labels::SERVICE_SECRET, service)], data.clone());
        }
        self.deployment(LIVE, "live", LIVE_SELECTOR, 2, SECRET);
        self.deployment(PREVIEW, "preview", PREVIEW_SELECTOR, 0, PREVIEW_SECRET);
    }

    fn status(&self) {
        let generation = self.ground.data_plane()["metadata"]["generation"].clone();
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({"type": type_, "status": status, "reason": reason, "message": "", "observedGeneration": generation,
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let status = json!({
            "selector": LIVE_SELECTOR, "service": KONG_INGRESS, "replicas": 2, "readyReplicas": 2,
            "conditions": [condition("Ready", "True", "Ready")],
            "rollout": {
                "deployment": {"selector": PREVIEW_SELECTOR},
                "conditions": [condition("RolledOut", "False", "WaitingForChange")],
            },
        });
        let path = format!("{}/status?fieldManager=manager", self.ground.path("dataplanes", "edge"));
        self.ground.admin.merge_patch(&path, &json!({ "status": status })).ok();
    }

    /// Has its last write of a child so many seconds from now, as by another clock.
    fn write_later(&self, seconds: i64) {
        let path = self.ground.path("services", ADMIN);
        let mut entries = self.ground.admin.read(&path).ok()["metadata"]["managedFields"].clone();
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
        entries[0]["time"] = json!(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        self.ground.admin.merge_patch(&path, &json!({"metadata": {"managedFields": entries}})).ok();
    }

    /// Writes its Lease, as its leader does.
    fn lead(&self, holder: &str) {
        let admin = &self.ground.admin;
        admin.kubectl(&["create", "namespace", OPERATOR]);
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": OPERATOR_LEASE},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": now},
        });
        let path = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{OPERATOR}/leases/{OPERATOR_LEASE}?fieldManager=manager&force=true"
        );
        admin.server_side_apply(&path, &lease).ok();
    }
}

impl Ground {
    /// Switches the carrying out of DataPlanes on or off.
    fn switch(&self, mode: &str, reason: &str) {
        let patch = json!({"spec": {"capabilities": {"dataplanes": {"mode": mode}}}});
        let path = "/apis/interlock.dev/v1alpha1/interlocks/default";
        self.admin.merge_patch(path, &patch).ok();
        wait_until(&format!("dataplanes is {reason}"), CAP, || {
            let found = self.admin.read(path).ok();
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is = |found: &&Value| found["type"] == "DataplanesReady" && found["reason"] == reason;
            if conditions.iter().any(|found| is(&found)) { Ok(()) } else { Err(found["status"].to_string()) }
        });
    }

    /// A DataPlane of Kong's operator, which leads, with its pods.
    fn of_kong(&self) -> KongOperator<'_> {
        self.switch("off", "Disabled");
        self.create(spec("kong:3.8"));
        let uid = self.data_plane()["metadata"]["uid"].as_str().expect("a uid").to_owned();
        let operator = KongOperator { ground: self, uid };
        operator.all();
        operator.status();
        operator.lead("pod-of-the-operator");
        self.await_child("deployments", LIVE, "has its pods", |found| {
            found["status"]["availableReplicas"] == 2
        });
        self.switch("auto", "Running");
        operator
    }

    fn ask(&self, operator: Option<&str>) {
        let key = meta::TAKE_OVER;
        let change = operator.map_or_else(|| format!("{key}-"), |operator| format!("{key}={operator}"));
        self.admin.kubectl(&["annotate", "dataplane", "edge", "-n", NAMESPACE, &change]).ok();
    }

    /// Waits until `Managed` has a reason; returns its message.
    #[track_caller]
    fn await_managed(&self, data_plane: &str, reason: &str, said: &str) -> String {
        wait_until(&format!("{data_plane} is {reason}: {said}"), TAKES, || {
            let found = self.admin.read(&self.path("dataplanes", data_plane)).ok();
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let managed = conditions.iter().find(|found| found["type"] == condition::MANAGED);
            let message = managed.and_then(|found| found["message"].as_str()).unwrap_or_default();
            match managed {
                Some(found) if found["reason"] == reason && message.contains(said) => Ok(message.to_owned()),
                _ => Err(found["status"].to_string()),
            }
        })
    }

    fn list(&self, resource: &str) -> Vec<Value> {
        let path = format!("{}?labelSelector=app=edge", self.path(resource, ""));
        self.admin.read(&path).ok()["items"].as_array().cloned().unwrap_or_default()
    }

    /// The uids of the children, of the pods, and of the ReplicaSets that have some, by resource and name.
    fn uids(&self) -> BTreeMap<String, Value> {
        let mut uids = BTreeMap::new();
        for resource in ["services", "deployments", "replicasets", "pods"] {
            for object in self
                .list(resource)
                .iter()
                .filter(|object| object["spec"]["replicas"] != 0 || resource == "deployments")
            {
                let name = object["metadata"]["name"].as_str().expect("a name");
                uids.insert(format!("{resource}/{name}"), object["metadata"]["uid"].clone());
            }
        }
        uids
    }

    /// What a Deployment is, without what is said about it.
    fn deployment_spec(&self, name: &str) -> Value {
        self.admin.read(&self.path("deployments", name)).ok()["spec"].clone()
    }
}

#[rstest]
#[case::ours("ours", true)]
#[case::kongs_without_a_right_on_secrets("Kong's", false)]
fn a_data_plane_is_taken_over_and_handed_back(#[case] whose: &str, #[case] granted: bool) {
    if !service_path::inside() {
        return;
    }
    let Some(definition) = definition(whose) else { return };
    let ground = Ground::new(definition);
    if granted {
        grant(&ground);
    }
    let operator = ground.of_kong();
    ground.await_managed("edge", "AnotherOperator", meta::TAKE_OVER);
    let (before, deployment) = (ground.uids(), ground.deployment_spec(LIVE));
    let secret = ground.admin.read(&ground.path("secrets", SECRET)).ok();
    let probe = Probe::of(&ground, KONG_INGRESS);

    ground.ask(Some(OPERATOR));
    ground.await_managed("edge", condition::ANOTHER_MANAGER_WRITES, "pod-of-the-operator holds Lease");
    assert_eq!(ground.uids(), before);
    operator.lead("");
    let said = ground.await_managed("edge", condition::TAKEN_OVER, LIVE);
    let managed = ["wait", "dataplane", "edge", "-n", NAMESPACE, "--for=condition=Managed", "--timeout=60s"];
    ground.admin.kubectl(&managed).ok();
    let finalizers = r#"{"metadata":{"finalizers":null}}"#;
    let remedy = format!(
        "kubectl patch secret {SECRET} {PREVIEW_SECRET} -n {NAMESPACE} --type=merge -p '{finalizers}'"
    );
    assert_eq!(said.contains(&remedy), !granted, "{said}");
    ground.await_event("TakenOver", KONG_INGRESS);
    ground.await_rolled_out("WaitingForChange");
    assert_eq!(ground.uids(), before, "nothing is renamed, and no pod is rolled");
    assert_eq!(ground.deployment_spec(LIVE), deployment);
    for (resource, object) in
        ["services", "deployments"].iter().flat_map(|r| ground.list(r).into_iter().map(move |o| (r, o)))
    {
        let metadata = &object["metadata"];
        assert!(metadata["finalizers"].is_null(), "{resource}: {metadata:#}");
        assert!(!metadata["annotations"][meta::APPLIED_HASH].is_null(), "{resource}: {metadata:#}");
        let managers = metadata["managedFields"].as_array().expect("managers");
        let theirs = managers.iter().find(|entry| entry["manager"] == "manager");
        assert_eq!(theirs, None, "{resource}");
    }
    let of_secret = |name: &str| ground.admin.read(&ground.path("secrets", name)).ok();
    let is_free = |name: &str| of_secret(name)["metadata"]["finalizers"].is_null();
    assert_eq!((is_free(SECRET), is_free(PREVIEW_SECRET)), (granted, granted));
    let taken_off =
        ["patch", "secret", SECRET, PREVIEW_SECRET, "-n", NAMESPACE, "--type=merge", "-p", finalizers];
    ground.admin.kubectl(&taken_off).ok();
    assert!(is_free(SECRET) && is_free(PREVIEW_SECRET));
    assert_eq!(of_secret(SECRET)["data"], secret["data"], "its certificate is not made anew");

    // It heals what is there now, under the names that are there.
    let edit = json!({"spec": {"selector": {"app": "nobody"}}});
    ground.admin.merge_patch(&ground.path("services", ADMIN), &edit).ok();
    ground.await_child("services", ADMIN, "is set back", |found| {
        found["spec"]["selector"] == json!({"app": "edge", labels::SELECTOR: LIVE_SELECTOR})
    });
    ground.await_rolled_out("WaitingForChange");

    ground.ask(None);
    ground.await_managed("edge", condition::HANDED_BACK, "");
    ground.await_event("HandedBack", "");
    assert_eq!(ground.uids(), before, "nothing is renamed, and no pod is rolled");
    assert_eq!(ground.deployment_spec(LIVE), deployment);
    for object in ["services", "deployments"].iter().flat_map(|resource| ground.list(resource)) {
        let metadata = &object["metadata"];
        assert_eq!(metadata["ownerReferences"][0]["uid"], operator.uid.as_str());
        assert!(!metadata.to_string().contains("interlock"), "{metadata:#}");
        assert_eq!(metadata["labels"][labels::MANAGED_BY], "dataplane");
    }
    let found = ground.data_plane();
    assert_eq!(found["status"]["selector"], LIVE_SELECTOR);
    assert_eq!(found["status"]["rollout"]["deployment"]["selector"], PREVIEW_SELECTOR);
    let records = ground.admin.read(&ground.path("controllerrevisions", "")).ok().to_string();
    assert!(!records.contains("taken-over"), "{records}");
    probe.end("a take-over, and the way back");
    assert!(!ground.interlock.log().contains("reconcile exceeded a limit"), "{}", ground.interlock.log());
}

/// Its next rollout goes from one of the two Deployments to the other.
#[test]
fn what_was_taken_over_is_rolled_out_and_handed_back() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    let operator = ground.of_kong();
    // A Gateway of Kong's carries this one out, whatever it is asked for.
    let owned = json!({
        "apiVersion": kong::API_VERSION, "kind": "DataPlane",
        "metadata": {
            "name": "owned", "annotations": {meta::TAKE_OVER: OPERATOR},
            "ownerReferences": [{
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "g", "uid": "0", "controller": true,
            }],
        },
        "spec": spec("kong:3.8"),
    });
    ground.admin.post(&ground.path("dataplanes", ""), &owned).ok();
    ground.await_managed("owned", "OwnedByAnother", "its owner is a Gateway");

    operator.lead("");
    operator.write_later(30);
    ground.ask(Some(OPERATOR));
    ground.await_managed("edge", condition::ANOTHER_MANAGER_WRITES, "Kong's operator wrote");
    ground.await_managed("edge", condition::TAKEN_OVER, LIVE);
    ground.await_rolled_out("WaitingForChange");
    let services = |uids: BTreeMap<String, Value>| -> Vec<String> {
        uids.into_keys()
            .filter(|name| name.starts_with("services/") || name.starts_with("deployments/"))
            .collect()
    };
    let before = services(ground.uids());

    let probe = Probe::of(&ground, KONG_INGRESS);
    ground.stage("kong:3.9");
    ground.await_rolled_out("AwaitingPromotion");
    ground.rollout(&["promote", "edge", "--wait"]);
    let done = ground.await_rolled_out("WaitingForChange");
    assert_eq!(done["status"]["selector"], PREVIEW_SELECTOR);
    let live = ground.await_child("deployments", PREVIEW, "is live", |found| {
        found["metadata"]["labels"][labels::DEPLOYMENT_STATE] == "live"
    });
    assert_eq!(image(&live), "kong:3.9");
    assert_eq!(services(ground.uids()), before);

    let pods = ground.uids();
    ground.ask(None);
    ground.await_managed("edge", condition::HANDED_BACK, "");
    assert_eq!(ground.uids(), pods);
    let service = ground.await_child("services", KONG_INGRESS, "is there", |_| true);
    assert_eq!(selected(&service), PREVIEW_SELECTOR);
    probe.end("a promotion of what was taken over");
    assert!(ground.admin.read(&ground.path("services", "dataplane-ingress-owned")).code == 404);
}
