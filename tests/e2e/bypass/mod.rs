//! Ways round the guard, each on a real API server: with both layers (webhook and policies), and
//! where it matters with the policies alone.
//!
//! What a test's name says is what Interlock decides on purpose.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::ground::{self, Ground};
use crate::support::instances::condition;
use crate::support::lasting::Lasting;
use crate::support::{Client, Cluster, Interlock, wait_until};

mod frozen;
mod gone;
mod identities;
mod lock;
mod mutators;
mod printed;
mod quiet;
mod remedies;
mod same_plan;
mod trust;
mod verbs;
mod versions;
mod writes;

const CAP: Duration = Duration::from_secs(60);

/// `gated-0.1.0`, whose plan deploy waits at a Service without an address where parameter GATED
/// is true, and `meddling-0.1.0`, whose template is an Instance of another's.
const PACKAGE: &str = include_str!("operatorversion.yaml");

const GATED: &str = "gated-0.1.0";

/// Where the refusals of one of the control planes can be read about.
const DOCS: &str = "--docs-url=https://docs.example.org/guard/";

/// The control plane whose webhook configurations are gone, while Interlock runs.
fn policies_alone() -> &'static Cluster {
    static OWN: Lasting<(Cluster, Interlock)> = Lasting::new();
    let (cluster, _) = OWN.get(|| {
        let cluster = Cluster::own(&[]);
        let process = Interlock::install(&cluster, &[]);
        process.await_requests_count(&cluster);
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
    cluster
}

/// The control plane where a change that triggers the running plan restarts it.
fn same_plan() -> &'static Cluster {
    static OWN: Lasting<(Cluster, Interlock)> = Lasting::new();
    let (cluster, _) = OWN.get(|| {
        let cluster = Cluster::own(&[]);
        let process = Interlock::install(&cluster, &["--freeze=same-plan", DOCS]);
        process.await_requests_count(&cluster);
        (cluster, process)
    });
    cluster
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

    /// A namespace with the packages, under these layers.
    fn ground(self, base: &str) -> Ground<'static> {
        Ground::new(self.cluster(), base, PACKAGE)
    }

    /// A ground with a running Instance `demo` that tests share while they run at the same time, and
    /// that Instance: for what is refused.
    fn frozen(self) -> (Arc<Ground<'static>>, Value) {
        static SHARED: [Mutex<Weak<Ground<'static>>>; 3] = [const { Mutex::new(Weak::new()) }; 3];
        let mut shared = SHARED[self as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let ground = shared.upgrade().unwrap_or_else(|| {
            let ground = Arc::new(self.ground("frozen"));
            ground.running("demo");
            *shared = Arc::downgrade(&ground);
            ground
        });
        let found = ground.get("demo");
        (ground, found)
    }
}

/// What these tests do with a ground.
impl Ground<'_> {
    /// An Instance whose plan `deploy` runs, and waits at its gate.
    fn running(&self, name: &str) -> Value {
        self.create(name, GATED, &json!({"GATED": "true"}));
        self.await_running(name)
    }

    /// Waits until plan `deploy` waits at its gate.
    #[track_caller]
    fn await_running(&self, name: &str) -> Value {
        self.await_step(name, "deploy", 1, "IN_PROGRESS");
        // The last write before it waits: a PUT on an earlier version would be a conflict.
        self.await_that(name, "it says what it waits for", |found| {
            condition(found, "Reconciling")["reason"] == "Waiting"
        })
    }

    /// An Instance that is deployed.
    fn deployed(&self, name: &str) -> Value {
        self.create(name, GATED, &json!({}));
        self.await_plan(name, "deploy", "COMPLETE")
    }

    /// Data of a ConfigMap.
    fn data(&self, name: &str) -> Option<Value> {
        let answer = self.user.read(&self.ns.path("v1", "configmaps", name));
        (answer.code == 200).then(|| answer.body["data"].clone())
    }
}

fn instance(name: &str, parameters: &Value) -> Value {
    ground::instance(name, GATED, parameters)
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
    let ids = interlock_core::kinds::rules(interlock::kinds::all()).map(|rule| rule.id());
    let said = answer.body.to_string();
    // The first that is named; a refusal may list further violations.
    let named = ids.filter_map(|id| Some((said.find(&format!("[{id}]"))?, id))).min();
    named.map(|(_, id)| id).unwrap_or_else(|| panic!("no rule is named: {answer}")).to_owned()
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
