//! Writes of Gateways, routes and policies while Interlock runs: what can never act is refused, and what a write changes for
//! others is said. Definitions come while it runs.

use std::time::Duration;

use serde_json::{Value, json};

use super::policies::define;
use crate::support::client::Client;
use crate::support::{Cluster, Interlock, Namespace, Output, wait_until};

const CAP: Duration = Duration::from_secs(60);
const API: &str = "gateway.networking.k8s.io/v1";

fn target(kind: &str, name: &str, section: Option<&str>) -> Value {
    let mut target = json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": name});
    target.as_object_mut().unwrap().extend(section.map(|name| ("sectionName".to_owned(), name.into())));
    target
}

fn limits(name: &str, target: &Value, block: Option<&str>, window: &str) -> Value {
    let limits = json!({"limits": {"burst": {"rates": [{"limit": 5, "window": window}]}}});
    let mut spec = match block {
        Some(block) => json!({block: limits}),
        None => limits,
    };
    spec["targetRef"] = target.clone();
    json!({"apiVersion": "kuadrant.io/v1", "kind": "RateLimitPolicy", "metadata": {"name": name}, "spec": spec})
}

fn route(rules: &Value) -> Value {
    let spec = json!({"parentRefs": [{"name": "gw"}], "rules": rules});
    json!({"apiVersion": API, "kind": "HTTPRoute", "metadata": {"name": "api"}, "spec": spec})
}

struct Ground<'a> {
    admin: Client,
    ns: Namespace<'a>,
}

impl Ground<'_> {
    fn kubectl(&self, arguments: &[&str], object: &Value) -> Output {
        let arguments = [&["-n", self.ns.name()][..], arguments].concat();
        self.admin.kubectl_in(&arguments, &object.to_string())
    }

    fn apply(&self, object: &Value) {
        self.await_that("the object is applied", || {
            let out = self.kubectl(&["apply", "-f", "-"], object);
            (out.code == 0).then_some(()).ok_or(out)
        });
    }

    fn await_that<T>(&self, what: &str, mut condition: impl FnMut() -> Result<T, Output>) -> T {
        wait_until(what, CAP, || condition().map_err(|out| out.to_string()))
    }

    /// Waits until a write is allowed with this warning; the watches bring what it needs.
    fn await_warning(&self, arguments: &[&str], object: &Value, warning: &str) {
        let warning = warning.replace("NS", self.ns.name());
        self.await_that(&warning, || {
            let out = self.kubectl(&[arguments, &["--dry-run=server"]].concat(), object);
            let is_said =
                out.code == 0 && out.stderr.contains(&format!("Warning: {warning} [policy-effect]"));
            is_said.then_some(()).ok_or(out)
        });
    }
}

#[test]
fn writes_of_policies_are_foreseen() {
    let cluster = Cluster::own(&[]);
    let _process = Interlock::install(&cluster, &[]);
    let ground = Ground { admin: cluster.admin(), ns: cluster.namespace("shop") };
    ground.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}));
    if define(&ground.admin).is_none() {
        return;
    }
    ground.apply(&json!({
        "apiVersion": API, "kind": "GatewayClass", "metadata": {"name": "eg"},
        "spec": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
    }));
    let listener = json!({"name": "http", "port": 80, "protocol": "HTTP"});
    ground.apply(&json!({
        "apiVersion": API, "kind": "Gateway", "metadata": {"name": "gw"},
        "spec": {"gatewayClassName": "eg", "listeners": [listener]},
    }));
    ground.apply(&route(&json!([{"name": "read"}, {"backendRefs": []}])));

    let (gateway, whole) = (target("Gateway", "gw", None), target("HTTPRoute", "api", None));
    let out = ground.await_that("a window of 500 ms is refused", || {
        let out = ground.kubectl(&["apply", "-f", "-"], &limits("upper", &gateway, None, "500ms"));
        if out.code == 0 { Err(out) } else { Ok(out) }
    });
    for part in
        ["[policy-window]", "spec.limits.burst.rates[0].window", "500ms", "Next: write a window of 1s"]
    {
        assert!(out.stderr.contains(part), "{out}");
    }

    ground.apply(&limits("upper", &gateway, Some("overrides"), "1s"));
    let lower = limits("lower", &whole, None, "1s");
    ground.await_warning(
        &["apply", "-f", "-"],
        &lower,
        "RateLimitPolicy/NS/lower is overridden by [NS/upper] on all its 2 paths",
    );
    let second = target("HTTPRoute", "api", Some("rule-2"));
    ground.apply(&limits("second", &second, None, "1s"));
    ground.await_warning(
        &["apply", "-f", "-"],
        &route(&json!([{"name": "read"}, {"name": "write", "backendRefs": []}])),
        "naming rule 2 of HTTPRoute/NS/api detaches RateLimitPolicy/NS/second, which targets HTTPRoute/NS/api#rule-2; \
         let it target #write",
    );
    ground.apply(&json!({
        "apiVersion": "kuadrant.io/v1", "kind": "AuthPolicy", "metadata": {"name": "guard"},
        "spec": {"targetRef": gateway, "rules": {"authentication": {"keys": {"apiKey": {"selector": {}}}}}},
    }));
    ground.await_that("what the deletion opens is said", || {
        let out = ground.kubectl(&["delete", "authpolicy", "guard", "--dry-run=server"], &Value::Null);
        let is_said =
            out.stderr.contains("Warning: no rule of any AuthPolicy acts on 2 paths any more, as on ");
        is_said.then_some(()).ok_or(out)
    });
}
