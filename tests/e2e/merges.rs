//! What an update leaves of what others added to an object, and what it takes away.

use serde_json::{Value, json};

use crate::support::Interlock;
use crate::support::ground::Ground;
use crate::support::instances::{await_run, run_of};

/// `merges-0.1.0`: a Deployment without replicas and a Service; with SECOND=true both have one more element in their
/// lists.
const PACKAGE: &str = include_str!("merges/operatorversion.yaml");

struct Objects<'g>(&'g Ground<'g>);

impl Objects<'_> {
    fn path(&self, kind: &str) -> String {
        let version = if kind == "deployments" { "apps/v1" } else { "v1" };
        self.0.ns.path(version, kind, "demo")
    }

    #[track_caller]
    fn spec(&self, kind: &str) -> Value {
        self.0.user.read(&self.path(kind)).ok()["spec"].take()
    }

    /// As another controller does: it reads nothing, and adds its element alone.
    #[track_caller]
    fn strategic_patch(&self, kind: &str, patch: &Value) {
        let (resource, patch) = (kind.trim_end_matches('s'), patch.to_string());
        self.0.user.kubectl(&["patch", resource, "demo", "--type=strategic", "-p", &patch]).ok();
    }

    /// Changes the parameter, and waits until the plan has run.
    #[track_caller]
    fn edit(&self, second: bool) {
        let before = run_of(&self.0.get("demo"), "deploy");
        self.0.edit("demo", &json!({"SECOND": second.to_string()}));
        await_run(&self.0.user, "demo", "deploy", &before);
    }
}

fn names<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    list.as_array().into_iter().flatten().filter_map(|element| element[key].as_str()).collect()
}

#[test]
fn elements_of_others_survive_an_update_and_those_that_the_package_drops_go() {
    let ground = Ground::new(Interlock::shared().0, "merges", PACKAGE);
    ground.create("demo", "merges-0.1.0", &json!({"SECOND": "true"}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let objects = Objects(&ground);
    let added = json!({"spec": {"template": {"spec": {
        "containers": [{"name": "proxy", "image": "proxy"}, {"name": "web", "env": [{"name": "INJECTED", "value": "1"}]}],
        "volumes": [{"name": "certificates", "emptyDir": {}}],
    }}}});
    objects.strategic_patch("deployments", &added);
    let pod = |of: &Value| of["template"]["spec"].clone();
    let found = pod(&objects.spec("deployments"));
    assert_eq!(
        names(&found["containers"], "name"),
        ["proxy", "web", "helper"],
        "as kubectl puts it: {found:#}"
    );

    objects.edit(false);
    let found = pod(&objects.spec("deployments"));
    assert_eq!(names(&found["containers"], "name"), ["proxy", "web"], "the helper went: {found:#}");
    assert_eq!(names(&found["containers"][1]["env"], "name"), ["INJECTED", "MODE"], "{found:#}");
    assert_eq!(names(&found["volumes"], "name"), ["certificates"], "{found:#}");

    objects.edit(true);
    let found = pod(&objects.spec("deployments"));
    let mut containers = names(&found["containers"], "name");
    containers.sort_unstable();
    assert_eq!(containers, ["helper", "proxy", "web"], "{found:#}");
}

#[test]
fn a_port_of_two_protocols_comes_and_goes_and_the_others_keep_their_node_ports() {
    let ground = Ground::new(Interlock::shared().0, "ports", PACKAGE);
    ground.create("demo", "merges-0.1.0", &json!({"SECOND": "false"}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let objects = Objects(&ground);
    objects.strategic_patch("services", &json!({"spec": {"ports": [{"port": 9090, "name": "metrics"}]}}));
    let node_port = |ports: &Value, name: &str| {
        let found = ports.as_array().into_iter().flatten().find(|port| port["name"] == name);
        found.and_then(|port| port["nodePort"].as_u64())
    };
    let before = objects.spec("services")["ports"].take();
    assert!(node_port(&before, "dns-tcp").is_some() && node_port(&before, "metrics").is_some(), "{before:#}");

    objects.edit(true);
    let both = objects.spec("services")["ports"].take();
    let protocols = |ports: &Value, name: &str| {
        let found = ports.as_array().into_iter().flatten().find(|port| port["name"] == name);
        found.map(|port| (port["port"].as_u64(), port["protocol"].as_str().map(str::to_owned)))
    };
    assert_eq!(protocols(&both, "dns-tcp"), Some((Some(53), Some("TCP".to_owned()))), "{both:#}");
    assert_eq!(protocols(&both, "dns"), Some((Some(53), Some("UDP".to_owned()))), "{both:#}");
    for name in ["dns-tcp", "metrics"] {
        assert_eq!(node_port(&both, name), node_port(&before, name), "{name} of {both:#}");
    }

    objects.edit(false);
    let left = objects.spec("services")["ports"].take();
    assert_eq!(protocols(&left, "dns"), None, "{left:#}");
    for name in ["dns-tcp", "metrics"] {
        assert_eq!(node_port(&left, name), node_port(&before, name), "{name} of {left:#}");
    }
}
