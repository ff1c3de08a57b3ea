//! Ways round the guard, each on a real API server: with both layers (webhook and policies), and
//! where it matters with the policies alone.
//!
//! What a test's name says is what Interlock decides on purpose.

use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use interlock::api::meta;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::instances::condition;
use crate::support::{Client, Cluster, Interlock, Namespace, wait_until};

mod frozen;
mod gone;
mod identities;
mod lock;
mod mutators;
mod printed;
mod quiet;
mod same_plan;
mod verbs;
mod versions;
mod writes;

const CAP: Duration = Duration::from_secs(60);

/// `gated-0.1.0`, whose plan deploy waits at a Service without an address where parameter GATED
/// is true, and `meddling-0.1.0`, whose template is an Instance of another's.
const PACKAGE: &str = include_str!("bypass/operatorversion.yaml");

/// The control plane whose webhook configurations are gone, while Interlock runs.
fn policies_alone() -> &'static Cluster {
    static OWN: LazyLock<(Cluster, Interlock)> = LazyLock::new(|| {
        let cluster = Cluster::own(&[]);
        let process = Interlock::install(&cluster, &[]);
        for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
            cluster.admin().kubectl(&["delete", kind, meta::install::WEBHOOK_CONFIGURATION]).ok();
        }
        let ns = cluster.namespace("probe");
        ns.admin().create_package(ns.name(), PACKAGE);
        wait_until("the webhook is called no more, and the policies decide", CAP, || {
            let stampless = json!({"metadata": {"name": "probe"}, "apiVersion": meta::KUDO_API_VERSION,
                "kind": "Instance", "spec": {"operatorVersion": {"name": "none"}}});
            let path = format!("{}?dryRun=All", ns.path(meta::KUDO_API_VERSION, "instances", ""));
            let unseen = ns.admin().post(&path, &stampless);
            let mut forged = stampless;
            forged["spec"]["planExecution"] = json!({"planName": "deploy", "status": "COMPLETE"});
            let refused = ns.admin().post(&path, &forged);
            match (unseen.code, refused.code) {
                (201, 422) => Ok(()),
                _ => Err(format!("{unseen}\n{refused}")),
            }
        });
        drop(ns);
        (cluster, process)
    });
    &OWN.0
}

/// The control plane where a change that triggers the running plan restarts it.
fn same_plan() -> &'static Cluster {
    static OWN: LazyLock<(Cluster, Interlock)> = LazyLock::new(|| {
        let cluster = Cluster::own(&[]);
        let process = Interlock::install(&cluster, &["--freeze=same-plan"]);
        (cluster, process)
    });
    &OWN.0
}

/// Which layers guard, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layers {
    /// Webhook and policies.
    Both,
    /// The policies, with the webhook configurations deleted.
    Policies,
    /// Webhook and policies, under `--freeze=same-plan`.
    SamePlan,
}

impl Layers {
    fn cluster(self) -> &'static Cluster {
        match self {
            Self::Both => Interlock::shared().0,
            Self::Policies => policies_alone(),
            Self::SamePlan => same_plan(),
        }
    }
}

/// A namespace with the packages, and a user who may do everything in it.
struct Ground {
    ns: Namespace<'static>,
    user: Client,
}

impl Ground {
    fn new(layers: Layers, base: &str) -> Self {
        let ns = layers.cluster().namespace(base);
        let user = ns.user("alice");
        user.create_package(ns.name(), PACKAGE);
        Self { ns, user }
    }

    /// One with a running Instance `demo` that tests share while they run at the same time, and
    /// that Instance: for what is refused.
    fn frozen(layers: Layers) -> (Arc<Self>, Value) {
        static SHARED: [Mutex<Weak<Ground>>; 3] = [const { Mutex::new(Weak::new()) }; 3];
        let mut shared = SHARED[layers as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let ground = shared.upgrade().unwrap_or_else(|| {
            let ground = Arc::new(Self::new(layers, "frozen"));
            ground.running("demo");
            *shared = Arc::downgrade(&ground);
            ground
        });
        let found = ground.get("demo");
        (ground, found)
    }

    fn path(&self, name: &str) -> String {
        self.ns.path(meta::KUDO_API_VERSION, "instances", name)
    }

    fn get(&self, name: &str) -> Value {
        self.user.read(&self.path(name)).ok()
    }

    /// An Instance whose plan `deploy` runs, and waits at its gate.
    fn running(&self, name: &str) -> Value {
        self.user.post(&self.path(""), &instance(name, &json!({"GATED": "true"}))).ok();
        self.await_running(name)
    }

    #[track_caller]
    fn await_running(&self, name: &str) -> Value {
        self.await_that(name, "plan deploy waits at its gate", |found| {
            let steps = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"];
            steps[1]["status"] == "IN_PROGRESS"
        })
    }

    /// An Instance that is deployed.
    fn idle(&self, name: &str) -> Value {
        self.user.post(&self.path(""), &instance(name, &json!({}))).ok();
        self.await_plan(name, "deploy", "COMPLETE")
    }

    /// Lets the plan of a gated Instance go on.
    fn open(&self, name: &str) {
        let path = format!("{}/status", self.ns.path("v1", "services", &format!("{name}-gate")));
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        self.ns.admin().merge_patch(&path, &status).ok();
    }

    #[track_caller]
    fn await_that(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait_until(&format!("{name}: {what}"), CAP, || {
            let found = self.user.read(&self.path(name));
            if found.code == 200 && holds(&found.body) { Ok(found.body) } else { Err(found.to_string()) }
        })
    }

    /// Waits until a plan has ended so, and nothing is scheduled.
    #[track_caller]
    fn await_plan(&self, name: &str, plan: &str, status: &str) -> Value {
        self.await_that(name, &format!("plan {plan} is {status} and nothing is scheduled"), |found| {
            let idle = found["spec"]["planExecution"]["planName"].as_str().unwrap_or("").is_empty();
            idle && found["status"]["planStatus"][plan]["status"] == status
        })
    }

    /// Data of a ConfigMap.
    fn data(&self, name: &str) -> Option<Value> {
        let answer = self.user.read(&self.ns.path("v1", "configmaps", name));
        (answer.code == 200).then(|| answer.body["data"].clone())
    }
}

fn instance(name: &str, parameters: &Value) -> Value {
    json!({
        "apiVersion": meta::KUDO_API_VERSION,
        "kind": "Instance",
        "metadata": {"name": name},
        "spec": {"operatorVersion": {"name": "gated-0.1.0"}, "parameters": parameters},
    })
}

/// An object as a client sends it back: with its edit, and without what only the server keeps.
fn edited(mut found: Value, edit: impl FnOnce(&mut Value)) -> Value {
    if let Some(metadata) = found["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    edit(&mut found);
    found
}

/// As an unchanged manifest is: no status, nothing of what the server or Interlock adds.
fn manifest(found: &Value) -> Value {
    let mut spec = found["spec"].clone();
    spec.as_object_mut().map(|spec| spec.remove("planExecution"));
    json!({
        "apiVersion": found["apiVersion"], "kind": found["kind"],
        "metadata": {"name": found["metadata"]["name"], "namespace": found["metadata"]["namespace"]},
        "spec": spec,
    })
}

/// The rule that refused, by its id in brackets.
#[track_caller]
fn rule(answer: &Answer) -> String {
    assert!(matches!(answer.code, 403 | 422), "this had to be refused: {answer}");
    let ids = interlock::api::rule::Rule::ALL.iter().map(|rule| rule.id());
    let said = answer.body.to_string();
    let id = ids.filter(|id| said.contains(&format!("[{id}]"))).max_by_key(|id| id.len());
    id.unwrap_or_else(|| panic!("no rule is named: {answer}")).to_owned()
}

/// What is carried out, and what carries it out.
fn essence(found: &Value) -> Value {
    json!({"uid": found["metadata"]["uid"], "spec": found["spec"], "finalizers": found["metadata"]["finalizers"],
        "run": found["status"]["planStatus"]["deploy"]["uid"]})
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
