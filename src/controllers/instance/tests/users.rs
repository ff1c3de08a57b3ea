//! What users do, through the webhook or past it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::admission;
use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, Freeze, WebhookEndpoint};
use interlock_core::api::meta;
use interlock_core::api::object::Gvk;
use interlock_core::kinds;
use interlock_core::topology::Epoch;
use serde_json::{Value, json};

use super::super::patches;
use super::super::view::InstanceView;
use super::cluster::Cluster;
use super::ledger::Params;
use super::objects::{INSTANCE, LATER_VERSION};
use super::package::{LATER, key, later_version, manifest, operator_version};
use super::rules::Without;
use crate::cluster::watch::WatchChange;
use crate::runtime::index::{IndexLister, Store};

/// What an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    /// A, for which `deploy` runs.
    A,
    /// B, for which `update` runs.
    B,
    Both,
    /// C, which is immutable.
    Immutable,
    /// Nothing: `deploy` is triggered.
    Trigger,
    /// Nothing: the plan that is scheduled or runs is taken out of `planExecution`.
    Cancel,
    /// The reference, to an OperatorVersion that comes later.
    Away,
    /// Nothing: that OperatorVersion is created.
    Arrival,
}

/// How an edit reaches the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Through both webhooks.
    Admitted,
    /// Past them, as a patch.
    Unseen,
    /// Past them, as a replacement without what Interlock wrote, but for its finalizer.
    Replaced,
    /// Past them, with a stamp of its own and a scheduled plan.
    Forged,
}

/// Edits that admission refuses, unless one that it has not seen came before: of two plans at once, and of what
/// never changes.
pub const DENIED: [(Edit, Way); 2] = [(Edit::Both, Way::Admitted), (Edit::Immutable, Way::Admitted)];

/// Every edit in every way that differs.
pub const EDITS: [(Edit, Way); 14] = [
    (Edit::A, Way::Admitted),
    (Edit::B, Way::Admitted),
    DENIED[0],
    DENIED[1],
    (Edit::Trigger, Way::Admitted),
    (Edit::Cancel, Way::Admitted),
    (Edit::A, Way::Unseen),
    (Edit::B, Way::Unseen),
    (Edit::Both, Way::Unseen),
    (Edit::Immutable, Way::Unseen),
    (Edit::Trigger, Way::Unseen),
    (Edit::Cancel, Way::Unseen),
    (Edit::A, Way::Replaced),
    (Edit::Immutable, Way::Forged),
];

/// One edit of each way that it takes.
pub const FEW: [(Edit, Way); 4] = [
    (Edit::A, Way::Admitted),
    (Edit::B, Way::Unseen),
    (Edit::A, Way::Replaced),
    (Edit::Immutable, Way::Unseen),
];

/// What is applied from Git, in any order.
pub const REFERENCES: [(Edit, Way); 4] = [
    (Edit::Away, Way::Admitted),
    (Edit::Arrival, Way::Admitted),
    (Edit::A, Way::Admitted),
    (Edit::A, Way::Unseen),
];

/// An edit that admission schedules a plan for.
pub const ADMITTED: [(Edit, Way); 1] = [(Edit::A, Way::Admitted)];

/// The webhooks, and the rules that they go without.
pub struct Webhooks {
    lister: IndexLister,
    /// Where the OperatorVersion is there that comes later.
    later: IndexLister,
    without: Option<Without>,
}

impl Webhooks {
    pub fn new(without: Option<Without>) -> Self {
        let lister = |versions: &[Arc<Value>]| {
            let store = Store::new(crate::kinds::all(), false);
            let kind = Gvk::new(meta::KUDO_API_VERSION, "OperatorVersion");
            for version in versions {
                store.observe(&kind, Epoch(1), &WatchChange::Applied(version.clone()));
            }
            IndexLister::new(store.clone(), store)
        };
        let later = lister(&[operator_version(), later_version()]);
        Self { lister: lister(&[operator_version()]), later, without }
    }

    /// Creates the Instance.
    pub fn create(&self, admitted: bool) -> Cluster {
        let mut object = manifest();
        if admitted {
            object = self.admit(&self.lister, "CREATE", object, &Value::Null).unwrap();
        }
        if self.without == Some(Without::Finalizer) {
            object["metadata"]["finalizers"] = json!([]);
        }
        let mut cluster = Cluster::default();
        cluster.store(INSTANCE, object);
        cluster
    }

    /// The cluster after an edit; `None` where it is refused, or changes nothing.
    pub fn edit(&self, cluster: &Cluster, (edit, way): (Edit, Way)) -> Option<Cluster> {
        let before = cluster.objects.instance()?;
        let mut after = cluster.clone();
        if edit == Edit::Arrival {
            after.objects.insert(LATER_VERSION, later_version());
            return cluster.objects.get(LATER_VERSION).is_none().then_some(after);
        }
        let mut object = change(before, edit);
        match way {
            Way::Admitted => {
                let is_there = cluster.objects.get(LATER_VERSION).is_some();
                let lister = if is_there { &self.later } else { &self.lister };
                object = self.admit_update(lister, object, before)?;
                Arc::make_mut(&mut after.ledger).admitted(before, &object);
            }
            Way::Unseen => {}
            Way::Replaced => {
                object["spec"].as_object_mut()?.remove("planExecution");
                object["metadata"].as_object_mut()?.remove("annotations");
                if self.without == Some(Without::Basis) {
                    let status = object.get_mut("status").and_then(Value::as_object_mut);
                    status.map(|status| status.remove("lastApplied"));
                }
            }
            Way::Forged => forge(before, &mut object, &mut after),
        }
        let object = after.store(INSTANCE, object);
        let execution = &object["spec"]["planExecution"];
        let began = after.ledger.first.is_some();
        let promised = match way {
            // What was created past admission runs `deploy` first, whatever else is scheduled.
            Way::Admitted if !began => None,
            Way::Admitted if execution["uid"].is_string() => execution["uid"].as_str().map(str::to_owned),
            // A write that goes past admission may take back what it has promised.
            Way::Replaced | Way::Forged => None,
            Way::Unseen if matches!(edit, Edit::Trigger | Edit::Cancel) => None,
            Way::Admitted | Way::Unseen => after.ledger.promised.clone(),
        };
        Arc::make_mut(&mut after.ledger).promised = promised;
        (object != *before).then_some(after)
    }

    fn admit_update(&self, lister: &IndexLister, object: Value, before: &Value) -> Option<Value> {
        match self.without {
            Some(Without::Lock) => {}
            Some(Without::Restoration) if object["spec"]["planExecution"] == json!({}) => {
                return Some(object);
            }
            _ => return self.admit(lister, "UPDATE", object, before),
        }
        let unlocked = |object: &Value| {
            let mut object = object.clone();
            object["spec"]["planExecution"] = json!({});
            object["status"]["planStatus"] = json!({});
            object
        };
        let mut object = self.admit(lister, "UPDATE", unlocked(&object), &unlocked(before))?;
        object["status"] = before["status"].clone();
        Some(object)
    }

    /// The object that both webhooks admit.
    fn admit(
        &self,
        lister: &IndexLister,
        operation: &str,
        mut object: Value,
        before: &Value,
    ) -> Option<Value> {
        let mutated = review(lister, WebhookEndpoint::Mutate, operation, &object, before)?;
        if let Some(patch) = mutated["patch"].as_str() {
            let patch = STANDARD.decode(patch).unwrap();
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            json_patch::patch(&mut object, &patch).unwrap();
        }
        review(lister, WebhookEndpoint::Validate, operation, &object, before)?;
        Some(object)
    }
}

/// The response of a webhook; `None` where it denies.
fn review(
    lister: &IndexLister,
    endpoint: WebhookEndpoint,
    operation: &str,
    object: &Value,
    before: &Value,
) -> Option<Value> {
    let kind = json!({"group": "kudo.dev", "version": "v1beta1", "kind": "Instance"});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "0e5f6f2e-9d5c-4f0e-8f52-0a2ac0d6d5d1", "kind": kind, "requestKind": kind,
            "resource": {"group": "kudo.dev", "version": "v1beta1", "resource": "instances"},
            "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
            "operation": operation, "userInfo": {"username": "alice"},
            "object": object, "oldObject": before,
        },
    });
    let config =
        Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze: Freeze::Strict, docs: None };
    let (body, kinds) = (serde_json::to_vec(&review).unwrap(), kinds::guarded(crate::kinds::all()));
    let wait = CacheWait::Exhausted;
    let answer = admission::answer(&kinds, endpoint, &body, lister, &config, wait, None).unwrap();
    let AdmissionAnswer::Done(reply) = answer else { panic!("the review waits") };
    let mut answer: Value = serde_json::from_slice(&reply.body).unwrap();
    let response = answer["response"].take();
    (response["allowed"] == true).then_some(response)
}

fn change(before: &Value, edit: Edit) -> Value {
    let mut object = before.clone();
    let mut raise = |name: &str| {
        let parameter = &mut object["spec"]["parameters"][name];
        let value: u64 = parameter.as_str().unwrap().parse().unwrap();
        *parameter = json!((value + 1).to_string());
    };
    match edit {
        Edit::A => raise("A"),
        Edit::B => raise("B"),
        Edit::Both => ["A", "B"].into_iter().for_each(raise),
        Edit::Immutable => raise("C"),
        Edit::Trigger => object["spec"]["planExecution"] = json!({"planName": "deploy"}),
        Edit::Cancel => object["spec"]["planExecution"] = json!({}),
        Edit::Away => object["spec"]["operatorVersion"]["name"] = json!(LATER),
        Edit::Arrival => {}
    }
    object
}

/// Leaves the spec, and schedules `deploy` on a stamp of the changed one.
fn forge(before: &Arc<Value>, object: &mut Value, cluster: &mut Cluster) {
    let changed = InstanceView::read(&key(), Arc::new(object.clone())).unwrap();
    let forged = InstanceView::read(&key(), before.clone()).unwrap();
    let stamp = patches::stamp(&forged, &changed.spec).unwrap();
    Arc::make_mut(&mut cluster.ledger)
        .knows(changed.hash.as_str(), Params::of(&object["spec"]["parameters"]));
    object["spec"] = before["spec"].clone();
    object["spec"]["planExecution"] =
        json!({"planName": "deploy", "uid": "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "status": "NEVER_RUN"});
    object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp);
}
