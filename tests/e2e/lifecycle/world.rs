//! A control plane and a process of their own, definitions that can be taken away, and what is
//! looked at from outside.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use go_template::yaml;
use interlock::install::{self, Part};
use interlock_core::api::meta;
use interlock_core::api::watched::AGGREGATE;
use serde_json::{Value, json};

use super::metric;
use crate::support::audit::Audit;
use crate::support::{Cluster, Interlock, Namespace, interlock as process, shared, wait_until};

pub const CAP: Duration = Duration::from_secs(90);

const PACKAGE: &str = include_str!("operatorversion.yaml");
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub struct World {
    pub cluster: Cluster,
    pub interlock: Interlock,
    pid: Option<u32>,
}

/// The definitions that are played with, by plural: our own, those that the projects publish, and
/// small ones where those are not at hand.
pub fn definition(plural: &str) -> Value {
    static READ: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    // A test that panics while it reads one leaves the others as they are.
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.entry(plural.to_owned())
        .or_insert_with(|| own(plural).or_else(|| stock(plural)).unwrap_or_else(|| stand_in(plural)))
        .clone()
}

fn own(plural: &str) -> Option<Value> {
    let own = install::objects(Part::Crds, &install::InstallOptions::default()).unwrap();
    own.into_iter().find(|o| o["spec"]["names"]["plural"] == plural)
}

fn stock(plural: &str) -> Option<Value> {
    let publisher = match plural {
        "envoyfilters" => "istio",
        "httproutes" | "grpcroutes" | "gateways" | "gatewayclasses" => "gateway-api",
        "dataplanes" | "controlplanes" => "kong",
        _ => return None,
    };
    let file = shared::find(&format!("crds/{publisher}_{plural}.yaml"))?;
    let text = std::fs::read_to_string(file).expect("a file that is there");
    Some(yaml::documents(&text).expect("YAML").remove(0))
}

fn stand_in(plural: &str) -> Value {
    match plural {
        "envoyfilters" => small("networking.istio.io", "EnvoyFilter", plural, "v1alpha3"),
        "httproutes" => of_gateways("HTTPRoute", plural),
        "grpcroutes" => of_gateways("GRPCRoute", plural),
        "tlsroutes" => of_gateways("TLSRoute", plural),
        "gateways" => of_gateways("Gateway", plural),
        "gatewayclasses" => {
            let mut object = of_gateways("GatewayClass", plural);
            object["spec"]["scope"] = json!("Cluster");
            object
        }
        "dataplanes" => small("gateway-operator.konghq.com", "DataPlane", plural, "v1beta1"),
        "controlplanes" => small("gateway-operator.konghq.com", "ControlPlane", plural, "v2beta1"),
        other => panic!("no definition of {other}"),
    }
}

fn of_gateways(kind: &str, plural: &str) -> Value {
    let mut object = small("gateway.networking.k8s.io", kind, plural, "v1");
    // Such groups are protected: https://github.com/kubernetes/enhancements/pull/1111.
    object["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, for a test"});
    object
}

fn small(group: &str, kind: &str, plural: &str, version: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
            "versions": [{ "name": version, "served": true, "storage": true, "schema": schema }],
        },
    })
}

impl World {
    /// Installed, with the definitions of KUDO's kinds.
    pub fn new() -> Self {
        Self::on(Cluster::own(&["--audit"]), &[])
    }

    /// The same on this control plane, with further flags of the process.
    pub fn on(cluster: Cluster, flags: &[&str]) -> Self {
        let world = Self::bare(cluster, flags);
        for plural in ["operators", "operatorversions", "instances"] {
            world.install(plural);
        }
        world.await_state("instances", "Running");
        world
    }

    /// Installed, without any definition that the capabilities need.
    pub fn without_definitions() -> Self {
        Self::bare(Cluster::own(&["--audit"]), &[])
    }

    fn bare(cluster: Cluster, flags: &[&str]) -> Self {
        let interlock = Interlock::prepare(&cluster, flags);
        let kudo = ["instances", "operatorversions", "operators"];
        process::apply_installation_without(&cluster, &interlock.options(&[]), &kudo);
        let world = Self { cluster, interlock, pid: None };
        world.interlock.start();
        world.interlock.await_ready();
        world.interlock.await_guarding(&world.cluster);
        Self { pid: world.interlock.pid(), ..world }
    }

    pub fn path(plural: &str) -> String {
        format!("{DEFINITIONS}/{}", definition(plural)["metadata"]["name"].as_str().unwrap())
    }

    /// Creates a definition; waits until the API server has made up its mind about it.
    pub fn install(&self, plural: &str) {
        let admin = self.cluster.admin();
        wait_until("the definition is created", CAP, || {
            let answer = admin.post(DEFINITIONS, &definition(plural));
            if matches!(answer.code, 201 | 409) { Ok(()) } else { Err(answer.to_string()) }
        });
    }

    /// Deletes a definition, and waits until it is gone.
    pub fn remove(&self, plural: &str) {
        let admin = self.cluster.admin();
        let path = Self::path(plural);
        admin.delete(&path);
        wait_until(&format!("{plural} are gone"), CAP, || {
            let answer = admin.read(&path);
            if answer.code == 404 { Ok(()) } else { Err(answer.to_string()) }
        });
    }

    /// State of a capability, as metrics tell.
    pub fn state(&self, capability: &str) -> String {
        let name = format!("name=\"{capability}\"");
        let states = interlock::cluster::supervisor::CapabilityPhase::NAMES.into_iter();
        let is = |state: &str| {
            let labels = [name.as_str(), &format!("state=\"{state}\"")].map(str::to_owned);
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            metric(&self.interlock, "interlock_capability_state{", &labels) == Some(1.0)
        };
        states.into_iter().find(|state| is(state)).unwrap_or("none").to_owned()
    }

    /// Sets `spec` of the Interlock object.
    pub fn set(&self, spec: &str) {
        let text = format!(
            "apiVersion: interlock.dev/v1alpha1\nkind: Interlock\nmetadata: {{name: default}}\nspec: {spec}\n"
        );
        // The leader may make the object at this very moment.
        let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.cluster.admin().kubectl_in(&arguments, &text).ok();
    }

    /// How many lines the process has logged.
    pub fn logged(&self) -> usize {
        self.interlock.log().lines().count()
    }

    /// How the process said that it sees a kind, each time, after it had logged so many lines.
    pub fn sights(&self, kind: &str, after: usize) -> Vec<String> {
        let log = self.interlock.log();
        let of = format!("Kind={kind} ");
        let told = log.lines().skip(after);
        let told = told.filter(|line| line.contains("watch state changed") && line.contains(&of));
        let sights = told.filter_map(|line| line.split(" to=").nth(1));
        let words =
            sights.filter_map(|text| text.split(|c: char| !c.is_alphanumeric()).find(|t| !t.is_empty()));
        words.map(str::to_owned).collect()
    }

    #[track_caller]
    pub fn await_state(&self, capability: &str, state: &str) {
        wait_until(&format!("{capability} is {state}"), CAP, || {
            let found = self.state(capability);
            if found == state { Ok(()) } else { Err(found) }
        });
    }

    #[track_caller]
    pub fn await_event(&self, reason: &str, definition: &str) {
        let admin = self.cluster.admin();
        wait_until(&format!("an Event {reason} on {definition}"), CAP, || {
            let found = admin.read("/apis/events.k8s.io/v1/namespaces/default/events").ok();
            let events = found["items"].as_array().cloned().unwrap_or_default();
            let is = |e: &Value| e["reason"] == reason && e["regarding"]["name"] == definition;
            if events.iter().any(is) { Ok(()) } else { Err(format!("{events:#?}")) }
        });
    }

    pub fn create_package(&self, ns: &Namespace<'_>) {
        let path = ns.path(meta::KUDO_API_VERSION, "operatorversions", "");
        let object = yaml::documents(PACKAGE).unwrap().remove(0);
        self.post_soon(&path, &object);
    }

    /// `kind` is `plain`, `filtered` (makes an EnvoyFilter) or `endless` (cleanup never ends).
    pub fn create_instance(&self, ns: &Namespace<'_>, name: &str, kind: &str) {
        let object = json!({
            "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance", "metadata": { "name": name },
            "spec": {
                "operatorVersion": { "name": "filter-0.1.0" },
                "parameters": {
                    "FILTER": (kind == "filtered").to_string(),
                    "ENDLESS": (kind == "endless").to_string(),
                },
            },
        });
        self.post_soon(&ns.path(meta::KUDO_API_VERSION, "instances", ""), &object);
    }

    /// POST, as often as a kind takes that was just established.
    pub fn post_soon(&self, path: &str, object: &Value) {
        let admin = self.cluster.admin();
        wait_until(&format!("{path} takes an object"), CAP, || {
            let answer = admin.post(path, object);
            if matches!(answer.code, 201 | 409) { Ok(()) } else { Err(answer.to_string()) }
        });
    }

    /// Lets the process watch EnvoyFilters.
    pub fn grant_filters(&self) {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "watch-filters", "labels": { AGGREGATE: "true" } },
            "rules": [{
                "apiGroups": ["networking.istio.io"], "resources": ["envoyfilters"],
                "verbs": ["get", "list", "watch"],
            }],
        });
        process::apply(&self.cluster.admin(), vec![role]);
    }

    #[track_caller]
    pub fn assert_same_process(&self) {
        let pid = self.pid.expect("it was started");
        let running =
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        assert!(running && self.interlock.pid() == Some(pid), "the process ended:\n{}", self.interlock.log());
        assert!(!self.interlock.log().contains("panicked"), "{}", self.interlock.log());
    }

    /// Resident memory of the process, in KiB.
    pub fn resident(&self) -> u64 {
        let pid = self.pid.expect("it was started");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default().to_owned();
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// What the process, or a package through it, has asked for: verb and path, watches left out.
    pub fn requests(&self, within: &str) -> Vec<String> {
        let requests = Audit::of(&self.cluster).map(|audit| audit.requests()).unwrap_or_default();
        let about = requests.iter().filter(|request| within.is_empty() || request.namespace == within);
        about.map(|request| format!("{} {}", request.verb, request.uri)).collect()
    }

    /// Waits until the audit log holds everything that was answered so far.
    pub fn settle_audit(&self) {
        if let Some(audit) = Audit::of(&self.cluster) {
            audit.settle(&self.cluster);
        }
    }
}
