//! `interlock topology` and `interlock why` on a real control plane, with the rights of a user who
//! may do everything in one namespace and nothing elsewhere: the texts of `tests/data/see/`.

use std::time::Duration;

use regex::Regex;
use serde_json::{Value, json};

use crate::support::interlock::interlock;
use crate::support::{Client, Interlock, Namespace, Output, instances, wait_until};

const CAP: Duration = Duration::from_secs(60);
const PACKAGE: &str = include_str!("plans/operatorversion.yaml");

/// An Ingress to a Service that is there and to one that is not.
const FRONT: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: there}
spec: {ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front}
spec:
  defaultBackend: {service: {name: there, port: {number: 80}}}
  rules:
  - http: {paths: [{path: /x, pathType: Prefix, backend: {service: {name: not-there, port: {number: 80}}}}]}
"#;

fn instance(parameters: &Value) -> String {
    json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "demo"},
        "spec": {"operatorVersion": {"name": "web-0.1.0"}, "parameters": parameters},
    })
    .to_string()
}

/// Without what differs from run to run: names, times, and the order of what happens within a
/// second. A plan that ends quickly tells nobody that it started, nor that it waits.
pub fn settled(out: &Output, namespace: &str) -> String {
    let mut text = out.stdout.replace(namespace, "NAMESPACE");
    for (pattern, name) in [
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"-[0-9a-f]{8,10}(-[a-z0-9]{5})?\b", "-HASH"),
        // Their order is that of random names.
        (r"(?m)^.*EndpointSlice\.discovery.*\n", ""),
        (r"(?m)^.*(PlanStarted|(Stalled|Reconciling) became).*\n", ""),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, name).into_owned();
    }
    let mut lines: Vec<&str> = text.lines().collect();
    for heading in ["Who acts on it", "What happened last"] {
        if let Some(start) = lines.iter().position(|line| *line == heading) {
            let end =
                lines[start..].iter().position(|line| line.is_empty()).map_or(lines.len(), |at| start + at);
            lines[start + 1..end].sort_unstable();
        }
    }
    format!("{}\n(exit code {})\n", lines.join("\n"), out.code)
}

#[track_caller]
pub fn compare(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/see").join(name);
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    similar_asserts::assert_eq!(expected, text, "{name}; INTERLOCK_BLESS=1 writes what is printed now");
}

struct Ground<'a> {
    ns: Namespace<'a>,
    user: Client,
}

impl Ground<'_> {
    fn new(name: &str) -> Self {
        let (cluster, _) = Interlock::shared();
        let ns = cluster.namespace(name);
        let user = ns.user("alice");
        user.apply(PACKAGE);
        Self { ns, user }
    }

    /// `-n` and the rest, as alice.
    fn run(&self, arguments: &[&str]) -> Output {
        interlock(&self.user, &[arguments, &["-n", self.ns.name()]].concat(), "")
    }
}

#[test]
fn why_tells_of_an_instance_and_of_what_it_made() {
    let ground = Ground::new("why");
    let (user, name) = (&ground.user, ground.ns.name().to_owned());
    user.apply(&instance(&json!({})));
    instances::await_run(user, "demo", "deploy", "");
    instances::await_event(&ground.ns, "PlanFinished");
    let by_path = interlock(user, &["why", &format!("Instance/{name}/demo")], "");
    compare("why-instance.txt", &settled(&by_path, &name));
    let as_kubectl = ground.run(&["why", "inst", "demo"]);
    assert_eq!(settled(&as_kubectl, &name), settled(&by_path, &name));
    compare("why-configmap.txt", &settled(&ground.run(&["why", "cm/demo-config"]), &name));

    let pods = instances::names(user, "pods");
    let pod = ground.run(&["why", &pods[0], "-o", "json"]).ok();
    let pod: Value = serde_json::from_str(&pod).unwrap();
    assert_eq!(pod["dependsOn"][0]["kind"], "ReplicaSet.apps", "{pod:#}");
    let actors = pod["actedOnBy"].to_string();
    assert!(actors.contains("Interlock"), "its owner's owner's owner is an Instance: {actors}");
    let yaml: Value = serde_saphyr::from_str(&ground.run(&["why", &pods[0], "-o", "yaml"]).ok()).unwrap();
    assert_eq!((&yaml["object"], &yaml["dependsOn"]), (&pod["object"], &pod["dependsOn"]));

    let missing = ground.run(&["why", "inst/nobody"]);
    let nobody = format!("error: Instance {name}/nobody does not exist\n  next:  name one of the ");
    assert!(missing.code == 3 && missing.stderr.starts_with(&nobody), "{missing}");
    let unknown = ground.run(&["why", "gizmo/x"]);
    assert!(unknown.code == 3 && unknown.stderr.contains("serves no kind \"gizmo\""), "{unknown}");
}

#[test]
fn why_tells_what_a_plan_waits_for_and_what_is_missing() {
    let ground = Ground::new("why-not");
    let name = ground.ns.name().to_owned();
    ground.ns.forbid("secrets");
    ground.user.apply(&instance(&json!({"FORBIDDEN": "true"})));
    wait_until("the plan stalls", CAP, || {
        let found = instances::instance(&ground.user, "demo");
        let stalled = instances::condition(&found, "Stalled")["status"] == "True";
        if stalled { Ok(()) } else { Err(found.to_string()) }
    });
    let said = ground.run(&["why", "instance/demo"]).ok();
    for wanted in ["plan deploy is ", "phase app, step forbidden is ", "exceeded quota", "Stalled=True"] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    ground.user.apply(FRONT);
    compare("why-ingress.txt", &settled(&ground.run(&["why", "ingress/front"]), &name));
    ground.ns.allow("secrets");
}

#[test]
fn topology_prints_what_the_user_may_see_and_says_what_not() {
    let ground = Ground::new("topology");
    let name = ground.ns.name().to_owned();
    ground.user.apply(&instance(&json!({})));
    instances::await_run(&ground.user, "demo", "deploy", "");
    let root = format!("instance/{name}/demo");
    for (format, file) in [("tree", "topology.txt"), ("dot", "topology.dot")] {
        let out = ground.run(&["topology", "--root", &root, "-o", format]);
        compare(file, &settled(&out, &name));
    }
    let out = ground.run(&["topology", "-o", "json"]);
    let found: Value = serde_json::from_str(&out.stdout).unwrap();
    let ids: Vec<&str> = found["nodes"].as_array().unwrap().iter().filter_map(|n| n["id"].as_str()).collect();
    for wanted in ["Instance.kudo.dev", "OperatorVersion.kudo.dev", "Deployment.apps", "ConfigMap"] {
        assert!(ids.iter().any(|id| id.starts_with(wanted)), "{wanted}: {ids:?}");
    }
    assert!(out.stderr.contains("not served by this cluster"), "{}", out.stderr);
    let yaml: Value = serde_saphyr::from_str(&ground.run(&["topology", "-o", "yaml"]).ok()).unwrap();
    assert_eq!(yaml["notSeen"], found["notSeen"]);

    // Without -n all namespaces are asked for, and then her kubeconfig's: she may neither.
    let home = interlock(&ground.user, &["topology", "--root", &root], "");
    assert!(home.code == 1 && home.stderr.starts_with("error: no objects could be read\n"), "{home}");
    assert!(home.stderr.contains("instances.kudo.dev"), "{home}");
    let events = interlock(&ground.user, &["topology", "events"], "").ok();
    assert!(events.contains("Instance.kudo.dev"), "{events}");
}
