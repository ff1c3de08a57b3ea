//! The effects of a reconciler on a real API server: what an apply creates, drops, takes over and leaves alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use interlock::cluster::api_writer::Bookkeeping;
use interlock::cluster::discovery::KindDiscovery;
use interlock::cluster::events::EventPublisher;
use interlock::cluster::failure_reports::FailureReports;
use interlock::cluster::lease::Leadership;
use interlock::cluster::read::{self, BoundedList};
use interlock::cluster::request_limit::RequestLimit;
use interlock::cluster::requests::{ApiRequests, Fence, JSON};
use interlock::runtime::certificates::CertificateSigner;
use interlock::runtime::controller::{Action, Controller as _};
use interlock::runtime::executor::{Executor, OfProcess, Written};
use interlock::runtime::index::{Observer, Store};
use interlock::runtime::reconciler::DescribedKind;
use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey};
use interlock_core::api::resource::Resource;
use interlock_core::effect::{ApiFailure, Effect, Propagation};
use interlock_core::kinds::capabilities::DATA_PLANES;
use interlock_core::reconcile::{Needs, ObjectList, PodRequest, ReconcileStep, Reconciler, View};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::support::{Cluster, Namespace, block_on, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// A namespace in which a reconciler writes a Service and a Deployment.
struct Children<'c> {
    ns: Namespace<'c>,
    executor: Executor<OfProcess>,
}

impl Children<'static> {
    fn new(name: &str) -> Self {
        let cluster = Cluster::shared();
        let client = cluster.admin().kube();
        let kinds = Arc::new(KindDiscovery::default());
        let executor = Executor::of_process(client.clone(), kinds, &Bookkeeping::new(client));
        Self { ns: cluster.namespace(name), executor }
    }
}

impl Children<'_> {
    fn write(&self, effect: Effect) -> Result<Written, ApiFailure> {
        let mut answers = block_on(self.executor.run(vec![vec![effect]]));
        answers.pop().expect("an answer").1
    }

    /// The object as answered.
    fn applied(&self, object: Value) -> Value {
        match self.write(Effect::Apply { object, force: true }) {
            Ok(Written::Now(object, _)) => Value::clone(&object),
            other => panic!("{other:?}"),
        }
    }

    /// Status and reason of the refusal.
    fn refused(&self, object: Value, force: bool) -> (u16, String) {
        let failure = self.write(Effect::Apply { object, force }).expect_err("a refusal");
        (failure.code, failure.reason)
    }

    fn service(&self, labels: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "edge", "namespace": self.ns.name(), "labels": labels},
            "spec": {"selector": {"app": "blue"}, "ports": [{"name": "proxy", "port": 80}]},
        })
    }

    fn deployment(&self, env: &Value) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "edge", "namespace": self.ns.name()},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "blue"}},
                "template": {
                    "metadata": {"labels": {"app": "blue"}},
                    "spec": {"containers": [{"name": "proxy", "image": "kong:3.9", "env": env}]},
                },
            },
        })
    }

    fn found(&self, api_version: &str, plural: &str) -> Value {
        self.ns.admin().read(&self.ns.path(api_version, plural, "edge")).ok()
    }
}

/// The object on the version of another.
fn on(mut object: Value, read: &Value) -> Value {
    for field in ["uid", "resourceVersion"] {
        object["metadata"][field] = read["metadata"][field].clone();
    }
    object
}

const CONFLICT: (u16, &str) = (409, "Conflict");

fn is_conflict((code, reason): (u16, String)) -> bool {
    (code, reason.as_str()) == CONFLICT
}

#[test]
fn an_apply_drops_the_fields_that_it_leaves_out() {
    let children = Children::new("drops");
    children.applied(children.deployment(&json!([
        {"name": "KONG_DATABASE", "value": "off"}, {"name": "KONG_ROUTER_FLAVOR", "value": "traditional"},
    ])));
    let kept = json!([{"name": "KONG_DATABASE", "value": "off"}]);
    // The controller of Deployments writes the status meanwhile.
    wait_until("an apply meets the present version", CAP, || {
        let object = on(children.deployment(&kept), &children.found("apps/v1", "deployments"));
        children.write(Effect::Apply { object, force: true }).map_err(|failure| failure.message)
    });
    let found = children.found("apps/v1", "deployments");
    assert_eq!(found["spec"]["template"]["spec"]["containers"][0]["env"], kept, "{found}");
    let managers = found["metadata"]["managedFields"].as_array().expect("managers");
    let ours = managers.iter().filter(|entry| entry["manager"] == "interlock");
    let operations: Vec<&Value> = ours.map(|entry| &entry["operation"]).collect();
    assert_eq!(operations, ["Apply"], "the API server remembers no other write of ours");
}

#[test]
fn a_first_apply_leaves_the_object_of_another_alone() {
    let children = Children::new("foreign");
    let theirs = children.service(&json!({"team": "edge"}));
    children.ns.admin().post(&children.ns.path("v1", "services", ""), &theirs).ok();
    let before = children.found("v1", "services");
    for force in [false, true] {
        assert!(is_conflict(children.refused(children.service(&json!({"app": "ours"})), force)));
    }
    assert_eq!(children.found("v1", "services"), before);
}

#[test]
fn an_apply_takes_back_what_was_edited_by_hand() {
    let children = Children::new("edited");
    let first = children.applied(children.service(&json!({"app": "edge"})));
    let path = children.ns.path("v1", "services", "edge");
    let edit = json!({
        "metadata": {"labels": {"app": "other", "team": "a"}}, "spec": {"selector": {"app": "green"}},
    });
    children.ns.admin().merge_patch(&path, &edit).ok();
    assert!(is_conflict(children.refused(on(children.service(&json!({"app": "edge"})), &first), true)));

    let edited = children.found("v1", "services");
    let ours = on(children.service(&json!({"app": "edge"})), &edited);
    assert!(is_conflict(children.refused(ours.clone(), false)), "the fields have another manager");
    let found = children.applied(ours);
    assert_eq!(found["spec"]["selector"], json!({"app": "blue"}));
    assert_eq!(found["metadata"]["labels"], json!({"app": "edge", "team": "a"}), "a further label stays");
}

#[test]
fn one_of_two_first_applies_is_a_conflict() {
    let children = Children::new("race");
    let object = || vec![Effect::Apply { object: children.service(&json!({})), force: true }];
    let answers = block_on(children.executor.run((0..8).map(|_| object()).collect()));
    let (done, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(_, answer)| answer.is_ok());
    assert_eq!((done.len(), lost.len()), (1, 7));
    for (_, answer) in lost {
        let failure = answer.expect_err("it lost");
        assert_eq!(failure.code, 409, "{failure:?}");
    }
}

#[test]
fn an_apply_does_not_bring_back_what_was_deleted_since() {
    let children = Children::new("deleted");
    let first = children.applied(children.service(&json!({})));
    children.ns.admin().delete(&children.ns.path("v1", "services", "edge")).ok();
    assert!(is_conflict(children.refused(on(children.service(&json!({})), &first), true)));
    children.applied(children.service(&json!({})));
}

#[test]
fn a_deletion_in_the_background_frees_the_name_at_once() {
    let children = Children::new("background");
    let object = children.applied(children.deployment(&json!([])));
    let text = |field: &str| object["metadata"][field].as_str().expect("text").to_owned();
    let key = ObjectKey {
        gvk: Gvk::new("apps/v1", "Deployment"),
        namespace: Some(children.ns.name().to_owned()),
        name: "edge".to_owned(),
    };
    let delete = |resource_version: String| Effect::Delete {
        key: key.clone(),
        uid: text("uid"),
        resource_version,
        propagation: Propagation::Background,
    };
    let stale = children.write(delete("2".to_owned())).expect_err("a condition");
    assert_eq!(stale.code, 409, "{stale:?}");
    // The controller writes the status meanwhile, so the present version is read until a deletion meets it.
    let answer = wait_until("it is deleted", CAP, || {
        let version = children.found("apps/v1", "deployments")["metadata"]["resourceVersion"].clone();
        let answer = children.write(delete(version.as_str().expect("text").to_owned()));
        answer.map_err(|failure| failure.message)
    });
    assert_eq!(answer, Written::Gone, "no finalizer holds it");
    assert!(children.ns.admin().get("deployment", "edge").is_none());
    children.applied(children.deployment(&json!([])));
}

#[test]
fn a_list_has_the_labelled_objects_with_their_kind() {
    let children = Children::new("listed");
    let config_map = |name: String, labels: Value| {
        let metadata = json!({"name": name, "namespace": children.ns.name(), "labels": labels});
        Effect::Create { object: json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}) }
    };
    let list = |side: &str| {
        let labels =
            BTreeMap::from([("app".to_owned(), "edge".to_owned()), ("side".to_owned(), side.to_owned())]);
        let gvk = Gvk::new("v1", "ConfigMap");
        let list = ObjectList { gvk, namespace: children.ns.name().to_owned(), labels };
        block_on(children.executor.list(&list)).expect("a list")
    };
    children.write(config_map("blue".to_owned(), json!({"app": "edge", "side": "blue"}))).expect("it is new");
    children.write(config_map("plain".to_owned(), json!({"side": "blue"}))).expect("it is new");
    let BoundedList::Whole(objects) = list("blue") else { panic!("it is small") };
    let keys: Vec<Option<ObjectKey>> = objects.iter().map(ObjectKey::of).collect();
    let name = "blue".to_owned();
    let namespace = Some(children.ns.name().to_owned());
    assert_eq!(keys, [Some(ObjectKey { gvk: Gvk::new("v1", "ConfigMap"), namespace, name })]);
    assert_eq!(list("green"), BoundedList::Whole(Vec::new()));

    let labels = json!({"app": "edge", "side": "many"});
    let many = (0..=read::MOST_OBJECTS).map(|n| vec![config_map(format!("many-{n}"), labels.clone())]);
    let answers = block_on(children.executor.run(many.collect()));
    assert!(answers.iter().all(|(_, answer)| answer.is_ok()));
    assert_eq!(list("many"), BoundedList::TooLarge);
}

/// How often [`reconcile`] wanted to write.
static WRITES: AtomicUsize = AtomicUsize::new(0);

/// Makes the Service of a ConfigMap where it lists none, once the pod of the ConfigMap has been asked.
fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let Some(parent) = ObjectKey::of(view.object()) else { return Ok(ReconcileStep::Await(None)) };
    let namespace = parent.namespace.unwrap_or_default();
    let labels = BTreeMap::from([("parent".to_owned(), parent.name.clone())]);
    let list =
        ObjectList { gvk: Gvk::new("v1", "Service"), namespace: namespace.clone(), labels: labels.clone() };
    let services = view.list(&list)?;
    let pod = PodRequest {
        address: "127.0.0.1".to_owned(),
        port: 1,
        tls: None,
        path: "/status/ready",
        all_pages: false,
    };
    let answer = view.ask(&pod)?;
    // No pod has the address, and the answer says so.
    if answer.is_ok() || !services.is_empty() {
        return Ok(ReconcileStep::Await(Some(Duration::from_secs(services.len() as u64))));
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": parent.name, "namespace": namespace, "labels": labels},
        "spec": {"ports": [{"port": 80}]},
    });
    WRITES.fetch_add(1, Ordering::SeqCst);
    Ok(ReconcileStep::Write(vec![Effect::Apply { object, force: true }]))
}

static RECONCILER: Reconciler = Reconciler { name: "test", capability: &DATA_PLANES, reconcile };

/// Reconciles ConfigMaps, of which it makes one.
fn controller(children: &Children<'_>, reconciler: &'static Reconciler) -> DescribedKind {
    let until = Instant::now() + CAP;
    let leadership = watch::channel(Leadership::Leader { leader_epoch: 1, until });
    let store = Store::new(interlock::kinds::all(), false);
    let parent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "edge"}});
    children.ns.admin().post(&children.ns.path("v1", "configmaps", ""), &parent).ok();
    DescribedKind {
        resource: Resource::built_in("", &["v1"], "ConfigMap", "configmaps"),
        reconciler,
        executor: children.executor.clone(),
        signer: Arc::new(CertificateSigner::new(children.executor.clone(), children.ns.name().to_owned())),
        observer: Observer::new(store.clone(), Arc::default(), None, Arc::default()),
        store,
        leadership: leadership.1,
        listers: KindListers::default(),
        metrics: Arc::default(),
        refused: Arc::default(),
        reports: FailureReports::new(EventPublisher::new(children.ns.admin().kube())),
    }
}

/// A Service that the API server refuses, and one that it takes.
fn a_refused_one_first(view: &View<'_>) -> Vec<Effect> {
    let parent = ObjectKey::of(view.object()).expect("a key");
    let service = |name: &str, port: i32| Effect::Apply {
        object: json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": parent.namespace}, "spec": {"ports": [{"port": port}]},
        }),
        force: true,
    };
    vec![service("refused", 0), service("edge", 80)]
}

static EACH_ALONE: Reconciler = Reconciler {
    name: "test",
    capability: &DATA_PLANES,
    reconcile: |view| Ok(ReconcileStep::Write(a_refused_one_first(view))),
};
static IN_ORDER: Reconciler = Reconciler {
    name: "test",
    capability: &DATA_PLANES,
    reconcile: |view| Ok(ReconcileStep::InOrder(a_refused_one_first(view))),
};

#[rstest]
#[case::each_alone(&EACH_ALONE, true)]
#[case::in_order(&IN_ORDER, false)]
fn what_rests_on_a_refused_write_is_not_written(#[case] reconciler: &'static Reconciler, #[case] made: bool) {
    let children = Children::new("rests-on");
    let controller = controller(&children, reconciler);
    let name = NamespacedName::new(children.ns.name(), "edge");
    let admin = children.ns.admin();
    for _ in 0..3 {
        let after = block_on(controller.reconcile(&name, 1));
        assert!(matches!(after, Action::Requeue(after) if !after.is_zero()) || made, "{after:?}");
        assert_eq!(admin.get("service", "edge").is_some(), made);
    }
    let events = admin.read(&children.ns.path("events.k8s.io/v1", "events", "")).ok();
    let told = events["items"].as_array().into_iter().flatten();
    let told =
        told.filter(|event| event["note"].as_str().is_some_and(|note| note.contains("Service refused: ")));
    assert_eq!(told.count(), usize::from(!made), "once a text: {events:#}");
}

#[test]
fn a_reconciler_lists_asks_and_applies() {
    let children = Children::new("reconciled");
    let controller = controller(&children, &RECONCILER);
    let (admin, name) = (children.ns.admin(), NamespacedName::new(children.ns.name(), "edge"));
    let reconciled = |epoch| block_on(controller.reconcile(&name, epoch));

    // It is the Service of another: each try finds none with the label, and changes nothing.
    admin.post(&children.ns.path("v1", "services", ""), &children.service(&json!({"team": "a"}))).ok();
    let theirs = children.found("v1", "services");
    let after = reconciled(1);
    assert!(matches!(after, Action::Requeue(after) if after <= Duration::from_secs(1)), "{after:?}");
    assert_eq!(WRITES.load(Ordering::SeqCst), 5, "it is not tried for ever");
    assert_eq!(children.found("v1", "services"), theirs);
    admin.delete(&children.ns.path("v1", "services", "edge")).ok();

    // Another term tries what was refused at once.
    controller.begin(1);
    assert_eq!(reconciled(2), Action::AwaitChange, "it does not write in another leader epoch");
    assert!(admin.get("service", "edge").is_none());
    assert_eq!(reconciled(1), Action::Requeue(Duration::from_secs(1)), "it lists again what it has made");
    let made = children.found("v1", "services");
    assert_eq!(reconciled(1), Action::Requeue(Duration::from_secs(1)));
    assert_eq!(children.found("v1", "services"), made);
}

#[test]
fn a_list_that_is_refused_fails_with_the_reason() {
    let cluster = Cluster::shared();
    let ns = cluster.namespace("list-refused");
    let client = ns.stranger("mallory").kube();
    let executor =
        Executor::of_process(client.clone(), Arc::new(KindDiscovery::default()), &Bookkeeping::new(client));
    let gvk = Gvk::new("v1", "ConfigMap");
    let list = ObjectList { gvk, namespace: ns.name().to_owned(), labels: BTreeMap::new() };
    let failure = block_on(executor.list(&list)).expect_err("a refusal");
    assert_eq!((failure.code, failure.reason.as_str()), (403, "Forbidden"), "{failure:?}");
    assert!(failure.message.contains("cannot list resource \"configmaps\""), "{}", failure.message);
}

/// A process that was suspended, or told to wait, while its request had no share: another one may lead by now.
#[test]
fn a_write_that_waited_is_sent_only_while_the_process_leads() {
    let cluster = Cluster::shared();
    let ns = cluster.namespace("fence");
    let path = ns.path("v1", "configmaps", "");
    let limit = Arc::new(RequestLimit::of_books(None));
    let lead = |leader_epoch| Leadership::Leader { leader_epoch, until: Instant::now() + CAP };
    // What it waits for: a share, or a connection.
    let written = |name: &str, is_held: bool, then: Leadership| {
        let (leads, leadership) = watch::channel(lead(1));
        let fence = Fence { leadership, epoch: Some(1) };
        let requests = ApiRequests::new(ns.admin().kube(), limit.clone()).within(fence);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let answer = block_on(async {
            let all_shares = if is_held { Some(limit.enter(&path, usize::MAX).await) } else { None };
            let mut write = std::pin::pin!(requests.send(None, Method::POST, &path, JSON, Some(&object)));
            assert!(futures::poll!(&mut write).is_pending(), "it waits");
            leads.send_replace(then);
            drop(all_shares);
            write.await
        });
        let found = ns.admin().get("configmap", name).is_some();
        assert_eq!(answer.is_ok(), found, "{answer:?}");
        found
    };
    for (is_held, what) in [(true, "a-share"), (false, "a-connection")] {
        assert!(written(&format!("leads-on-{what}"), is_held, lead(1)));
        assert!(!written(&format!("standby-{what}"), is_held, Leadership::Standby));
        assert!(!written(&format!("another-epoch-{what}"), is_held, lead(2)));
    }
}
