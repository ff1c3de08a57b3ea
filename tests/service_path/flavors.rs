//! What the pods of gateways run with, asked at their own addresses: against a program that
//! answers as Kong does ([`fake_kong`]).

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::fake_kong::{self, FakeKong};
use crate::support::{Client, Cluster, Namespace, Output, interlock, service_path, wait_until};

const CAP: Duration = Duration::from_secs(120);

/// A Deployment of Kong; `annotations` are those of its pods.
fn deployment(name: &str, flavor: Option<&str>, image: &str, annotations: Value) -> Value {
    let env: Vec<Value> =
        flavor.into_iter().map(|flavor| json!({"name": "KONG_ROUTER_FLAVOR", "value": flavor})).collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "edge", "set": name}},
            "template": {
                "metadata": {"labels": {"app": "edge", "set": name}, "annotations": annotations},
                "spec": {"containers": [{
                    "name": "proxy", "image": image, "env": env,
                    "ports": [
                        {"name": "admin", "containerPort": fake_kong::ADMIN},
                        {"name": "status", "containerPort": fake_kong::STATUS},
                    ],
                }]},
            },
        },
    })
}

fn guarded(mut deployment: Value) -> Value {
    deployment["metadata"]["labels"] = json!({"interlock.dev/guard": "kong-router-flavor"});
    deployment
}

fn service(name: &str, selector: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": selector, "ports": [{"name": "admin", "port": fake_kong::ADMIN}]},
    })
}

/// Names, addresses of the pods of a set that run.
fn running(admin: &Client, ns: &Namespace<'_>, set: &str, count: usize) -> Vec<(String, String)> {
    let path = format!("{}?labelSelector=set={set}", ns.path("v1", "pods", ""));
    wait_until("the pods run", CAP, || {
        let list = admin.read(&path).ok();
        let alive = list["items"].as_array().into_iter().flatten();
        let pods: Vec<(String, String)> = alive
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .filter_map(|pod| {
                let name = pod["metadata"]["name"].as_str()?;
                Some((name.to_owned(), pod["status"]["podIP"].as_str()?.to_owned()))
            })
            .collect();
        if pods.len() == count { Ok(pods) } else { Err(format!("{} of {count}", pods.len())) }
    })
}

/// Waits for the Warning Event on an object.
fn await_warning(admin: &Client, ns: &Namespace<'_>, kind: &str) -> String {
    let path = ns.path("events.k8s.io/v1", "events", "");
    wait_until("people are warned", CAP, || {
        let list = admin.read(&path).ok();
        let mut events = list["items"].as_array().into_iter().flatten();
        let of =
            |event: &&Value| event["reason"] == "RouterFlavorsMixed" && event["regarding"]["kind"] == kind;
        let event = events.find(of).ok_or("no such Event yet")?;
        assert_eq!(event["type"], "Warning");
        Ok(event["note"].as_str().unwrap_or_default().to_owned())
    })
}

/// The fake holds to what the docs say was verified against it.
#[test]
fn the_fake_is_as_strict_as_kong() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let ns = cluster.namespace("kong");
    let admin = ns.admin();
    let kong = FakeKong::start(cluster.admin());
    let fields = json!([{"paths": ["/a"]}]);
    let expressions = json!([{"expression": "http.path == \"/a\"", "priority": 1}]);
    let both = json!([{"expression": "http.path == \"/a\"", "paths": ["/a"]}]);
    for (name, flavor, image, takes) in [
        ("t", "traditional", "kong:3.9", [201, 400, 400]),
        ("tc", "traditional_compatible", "kong:3.9", [201, 400, 400]),
        ("ex", "expressions", "kong:3.9", [201, 201, 400]),
        ("old", "expressions", "kong:3.6", [400, 201, 400]),
    ] {
        admin
            .post(&ns.path("apps/v1", "deployments", ""), &deployment(name, Some(flavor), image, json!({})))
            .ok();
        let pods = running(&admin, &ns, name, 2);
        let address = &pods[0].1;
        assert_eq!(kong.get(address, fake_kong::STATUS, "/status").0, 200);
        assert_eq!(
            kong.get(address, fake_kong::STATUS, "/status/ready").0,
            503,
            "it has no configuration yet"
        );
        let (_, root) = kong.get(address, fake_kong::ADMIN, "/");
        assert_eq!(root["configuration"]["router_flavor"], flavor);
        let answers = [&fields, &expressions, &both].map(|routes| kong.push(address, routes).0);
        assert_eq!(answers, takes, "{flavor} on {image}");
        assert_eq!(kong.get(address, fake_kong::STATUS, "/status/ready").0, 200);
    }
    let lags = deployment(
        "lags",
        Some("expressions"),
        "kong:3.9",
        json!({"testbed.interlock.dev/kong-lag": "60000000"}),
    );
    admin.post(&ns.path("apps/v1", "deployments", ""), &lags).ok();
    let address = running(&admin, &ns, "lags", 2)[0].1.clone();
    assert_eq!(kong.push(&address, &fields).0, 201);
    assert_eq!(kong.get(&address, fake_kong::STATUS, "/status/ready").0, 503, "it lags");
}

/// A DataPlane and a Deployment, asked at the addresses of their pods.
#[test]
fn flavors_behind_one_service_are_told() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let _interlock = service_path::install(&cluster, 1, &[]);
    let ns = cluster.namespace("kong");
    let admin = ns.admin();
    let kong = FakeKong::start(cluster.admin());
    let nothing = diagnose(&ns, &ns.user("early"), &[]);
    assert_eq!(nothing.code, 3, "{nothing}");
    assert!(nothing.stderr.contains("not seen: DataPlanes: not served by this cluster"), "{nothing}");
    a_data_plane(&cluster, &ns, &admin, &kong);
    a_deployment(&ns, &admin);
    a_deadlock_is_named(&ns);
}

fn diagnose(ns: &Namespace<'_>, user: &Client, arguments: &[&str]) -> Output {
    let line = [&["flavor", "diagnose", "-n", ns.name()], arguments].concat();
    user.command(&interlock::binary(), &line, "")
}

/// What is printed of the Deployment that stands still, with the caller's rights; pods without
/// their names, and times without their lengths.
fn a_deadlock_is_named(ns: &Namespace<'_>) {
    let user = ns.user("alice");
    let found = wait_until("the new pod has not been ready for long", CAP * 2, || {
        let found = diagnose(ns, &user, &["deployment/plain"]);
        // A pod that was slow to answer is asked again.
        let told = found.stdout.contains("not become ready") && !found.stdout.contains("by its environment");
        if told { Ok(found) } else { Err(found.to_string()) }
    });
    assert_eq!(found.code, 1, "{found}");
    let pod = regex::Regex::new("plain-[a-z0-9]+-[a-z0-9]{5}").unwrap();
    let age = regex::Regex::new("for [0-9]+ (s|min|h)").unwrap();
    let text = found.stdout.replace(ns.name(), "kong");
    let text = age.replace_all(&pod.replace_all(&text, "plain-POD"), "for SOME TIME").into_owned();
    let (mut pods, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("  plain-POD: "));
    pods.sort_unstable();
    let text = [&rest[..1], &pods, &rest[1..], &[""]].concat().join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kubectl/flavor-diagnose.txt");
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    similar_asserts::assert_eq!(expected, text, "INTERLOCK_BLESS=1 writes what is printed now");
    // What the caller may not see is said.
    let deployments = json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]);
    let blind = diagnose(ns, &ns.user_with("mallory", &deployments), &["deployment/plain"]);
    assert_eq!(blind.code, 0, "{blind}");
    assert!(blind.stdout.contains("not seen\n") && blind.stdout.contains("is forbidden"), "{blind}");
}

fn a_data_plane(cluster: &Cluster, ns: &Namespace<'_>, admin: &Client, kong: &FakeKong) {
    fake_kong::define_data_planes(&cluster.admin());
    let plane = json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "edge"},
        "spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": [{
            "name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_ROUTER_FLAVOR", "value": "expressions"}],
        }]}}}},
    });
    let api = "gateway-operator.konghq.com/v1beta1";
    let plane = admin.post(&ns.path(api, "dataplanes", ""), &plane).ok();
    let children = |mut deployment: Value| {
        deployment["metadata"]["labels"] = json!({"app": "edge"});
        deployment["metadata"]["ownerReferences"] = json!([{
            "apiVersion": api, "kind": "DataPlane", "name": "edge", "uid": plane["metadata"]["uid"], "controller": true,
        }]);
        deployment
    };
    let deployments = ns.path("apps/v1", "deployments", "");
    // What the environment does not tell, the pods do.
    let baked = json!({"testbed.interlock.dev/kong-baked": "expressions"});
    admin.post(&ns.path("v1", "services", ""), &service("edge-admin", json!({"app": "edge"}))).ok();
    admin.post(&deployments, &children(deployment("blue", None, "kong:3.9", baked))).ok();
    running(admin, ns, "blue", 2);
    // Kong's operator keeps the count of pods in the status.
    let status = format!("{}/status", ns.path(api, "dataplanes", "edge"));
    let happens = |replicas: u32| admin.merge_patch(&status, &json!({"status": {"replicas": replicas}})).ok();
    let condition = |what: &str, wanted: &str| {
        wait_until(what, CAP, || {
            let plane = admin.read(&ns.path(api, "dataplanes", "edge")).ok();
            let conditions = plane["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = conditions.iter().find(|condition| condition["type"] == "RouterFlavorConsistent");
            let text = found.map(|c| {
                format!(
                    "{} {}",
                    c["reason"].as_str().unwrap_or_default(),
                    c["message"].as_str().unwrap_or_default()
                )
            });
            match text {
                Some(text) if text.starts_with(wanted) => Ok(text),
                other => Err(format!("{other:?}")),
            }
        })
    };
    happens(2);
    assert_eq!(condition("its pods agree", "Consistent"), "Consistent 2 of 2 pods report expressions");
    // A redirect is not followed, a flood not read to its end: the environment counts.
    let answers = json!({"testbed.interlock.dev/kong-answer": "redirect"});
    let other = children(deployment("green", Some("traditional_compatible"), "kong:3.9", answers));
    admin.post(&deployments, &other).ok();
    running(admin, ns, "green", 2);
    happens(4);
    let text = condition("they do not agree", "Mixed");
    assert!(
        text.starts_with(
            "Mixed pods behind Service edge-admin run different router flavors (expressions: blue-"
        ),
        "{text}"
    );
    assert!(text.contains("; traditional_compatible: green-"), "{text}");
    let note = await_warning(admin, ns, "DataPlane");
    assert!(note.contains("`interlock flavor diagnose`"), "{note}");
    admin.delete(&ns.path("apps/v1", "deployments", "green")).ok();
    wait_until("the others are gone", CAP, || {
        let list = admin.read(&format!("{}?labelSelector=set=green", ns.path("v1", "pods", ""))).ok();
        let left = list["items"].as_array().map_or(0, Vec::len);
        if left == 0 { Ok(()) } else { Err(format!("{left} are left")) }
    });
    happens(2);
    condition("its pods agree again", "Consistent");
    assert!(kong.asked().iter().all(|name| name.starts_with("blue-") || name.starts_with("green-")));
    admin.delete(&ns.path("apps/v1", "deployments", "blue")).ok();
    admin.delete(&ns.path(api, "dataplanes", "edge")).ok();
}

/// The change is allowed in place from Kong 3.7 on; that it stands still half-way is told.
fn a_deployment(ns: &Namespace<'_>, admin: &Client) {
    let deployments = ns.path("apps/v1", "deployments", "");
    admin.delete(&ns.path("v1", "services", "edge-admin")).ok();
    admin.post(&ns.path("v1", "services", ""), &service("plain-admin", json!({"set": "plain"}))).ok();
    let plain = guarded(deployment("plain", Some("traditional_compatible"), "kong:3.9", json!({})));
    admin.post(&deployments, &plain).ok();
    running(admin, ns, "plain", 2);
    let change = json!({"spec": {"template": {
        "metadata": {"annotations": {"testbed.interlock.dev/unready": "true"}},
        "spec": {"containers": [{
            "name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_ROUTER_FLAVOR", "value": "expressions"}],
            "ports": [{"name": "admin", "containerPort": fake_kong::ADMIN}],
        }]},
    }}});
    admin.merge_patch(&ns.path("apps/v1", "deployments", "plain"), &change).ok();
    let note = await_warning(admin, ns, "Deployment");
    assert!(
        note.starts_with("pods behind Service plain-admin run different router flavors (expressions: plain-"),
        "{note}"
    );
}
