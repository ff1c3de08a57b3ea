//! Interlock and a Limitador beside Envoy Gateway, and the policies that they carry out.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::interlock::install::{InstallOptions, Part, objects};
use serde_json::{Value, json};

use crate::site::{HOST, PORT};
use crate::support::auth_server::{self, AuthServer};
use crate::support::envoy_gateway::Envoy;
use crate::support::interlock::{self, opt_in_rights};
use crate::support::limitador::{self, Limitador};
use crate::support::{Client, Cluster, Interlock, service_path, shared, wait_until};

pub const CAP: Duration = Duration::from_secs(90);
const LIMITS: &str = "limits";

/// Interlock, and a Limitador whose file is the ConfigMap that Interlock writes.
pub struct Ground {
    pub admin: Client,
    pub interlock: Interlock,
    pub limitador: Arc<Mutex<Limitador>>,
}

impl Ground {
    /// With Kuadrant's definition; without it, the test is skipped.
    pub fn new(cluster: &Cluster) -> Option<Self> {
        let definition = shared::find("crds/kuadrant_ratelimitpolicies.yaml")?;
        cluster.admin().kubectl(&["apply", "--server-side", "-f", &definition.to_string_lossy()]).ok();
        Some(Self::install(cluster))
    }

    /// With Kuadrant's and Authorino's definitions, and an auth server; without them, the test is skipped.
    pub fn with_auth(cluster: &Cluster) -> Option<(Self, AuthServer)> {
        for name in ["kuadrant_ratelimitpolicies", "kuadrant_authpolicies", "authorino_authconfigs"] {
            let definition = shared::find(&format!("crds/{name}.yaml"))?;
            let definition = definition.to_string_lossy();
            cluster.admin().kubectl(&["apply", "--server-side", "-f", &definition]).ok();
        }
        Some((Self::install(cluster), AuthServer::start(cluster, service_path::REPLICAS[2])))
    }

    /// With Interlock's own definition.
    pub fn with_own_definition(cluster: &Cluster) -> Self {
        interlock::apply(&cluster.admin(), objects(Part::KuadrantCrds, &InstallOptions::default()).unwrap());
        Self::install(cluster)
    }

    fn install(cluster: &Cluster) -> Self {
        let admin = cluster.admin();
        let interlock = Interlock::install(cluster, &[]);
        interlock::apply(&admin, opt_in_rights(&InstallOptions { policies: true, ..interlock.options(&[]) }));
        let limitador = Arc::new(Mutex::new(Limitador::start(cluster, service_path::REPLICAS[1])));
        follow(admin.clone(), limitador.clone());
        admin.apply(&settings().to_string());
        Self { admin: admin.within("app"), interlock, limitador }
    }

    pub fn put(&self, policy: &Value) {
        self.admin.apply(&policy.to_string());
    }

    /// Waits until the newest version of a policy is in force.
    pub fn await_enforced(&self, name: &str) {
        self.await_enforced_of("ratelimitpolicy", name);
    }

    /// The same of a policy of any kind.
    pub fn await_enforced_of(&self, resource: &str, name: &str) {
        await_enforced(&self.admin, resource, name);
    }

    /// The requests that a limit counted, and let through.
    pub fn counted(&self, limit: &str) -> usize {
        let asked = self.limitador.lock().expect("no panic").asked();
        let key = format!("limit.{limit}__");
        let counts = |own: &&Value| {
            let mut entries = own["asked"]["descriptors"][0].as_object().into_iter().flatten();
            own["limited"] == false && entries.any(|(own, value)| own.starts_with(&key) && value == "1")
        };
        asked.iter().filter(counts).count()
    }
}

/// Waits until the newest version of a policy is in force.
pub fn await_enforced(client: &Client, resource: &str, name: &str) {
    wait_until(&format!("{resource} {name} is enforced"), CAP, || {
        let policy = client.get(resource, name).ok_or("there is none")?;
        let condition = condition(&policy, "Enforced");
        let is_of_this = condition["observedGeneration"] == policy["metadata"]["generation"];
        if condition["status"] == "True" && is_of_this { Ok(()) } else { Err(format!("{condition:#}")) }
    });
}

pub fn condition(policy: &Value, kind: &str) -> Value {
    let mut conditions = policy["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|own| own["type"] == kind).cloned().unwrap_or_default()
}

/// Keeps the file of a Limitador as the ConfigMap is, as the kubelet would.
fn follow(admin: Client, limitador: Arc<Mutex<Limitador>>) {
    let own = Arc::downgrade(&limitador);
    std::thread::spawn(move || {
        let mut last = String::new();
        while let Some(limitador) = own.upgrade() {
            let found = admin.within("system").get("configmap", LIMITS);
            let text = found.and_then(|own| own["data"]["limits.yaml"].as_str().map(str::to_owned));
            if let Some(text) = text.filter(|text| *text != last) {
                limitador.lock().expect("no panic").set_limits(&text);
                last = text;
            }
            drop(limitador);
            // The kubelet of a cluster looks less often.
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

fn settings() -> Value {
    let (host, port) = (service_path::REPLICAS[1], limitador::PORT);
    let limitadors = json!([{"namespace": "system", "configMap": LIMITS, "host": host, "port": port}]);
    let auth_servers = json!([{"host": service_path::REPLICAS[2], "port": auth_server::PORT}]);
    let policies = json!({"limitadors": limitadors, "authServers": auth_servers});
    let interlock = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Interlock", "metadata": {"name": "default"},
        "spec": {"capabilities": {"policies": {"mode": "auto"}}, "policies": policies},
    });
    let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "system"}});
    json!({"apiVersion": "v1", "kind": "List", "items": [system, interlock]})
}

/// A policy of a target such as `HTTPRoute/api#rule-1`.
pub fn policy(name: &str, target: &str, mut spec: Value) -> Value {
    let (target, section) =
        target.split_once('#').map_or((target, None), |(own, section)| (own, Some(section)));
    let (kind, object) = target.split_once('/').expect("kind and name");
    spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": object});
    if let Some(section) = section {
        spec["targetRef"]["sectionName"] = section.into();
    }
    json!({"apiVersion": "kuadrant.io/v1", "kind": "RateLimitPolicy", "metadata": {"name": name}, "spec": spec})
}

/// An AuthPolicy of such a target.
pub fn auth_policy(name: &str, target: &str, spec: Value) -> Value {
    let mut object = policy(name, target, spec);
    object["kind"] = "AuthPolicy".into();
    object
}

/// A limit of so many requests an hour.
pub fn limit(most: u64, when: &[&str], counters: &[&str]) -> Value {
    let predicates: Vec<Value> = when.iter().map(|own| json!({"predicate": own})).collect();
    let counters: Vec<Value> = counters.iter().map(|own| json!({"expression": own})).collect();
    json!({"rates": [{"limit": most, "window": "1h"}], "when": predicates, "counters": counters})
}

/// Waits for an answer to a request with these header lines.
#[track_caller]
pub fn await_answer(envoy: &Envoy, path: &str, headers: &str, status: u16) {
    wait_until(&format!("{path} with {headers:?} is answered with {status}"), CAP, || {
        let found = envoy.get(PORT, HOST, path, headers);
        if found == Some(status) { Ok(()) } else { Err(format!("{found:?}")) }
    });
}
