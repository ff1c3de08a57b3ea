//! What a reconcile asks the API server for.

use std::collections::BTreeSet;
use std::convert::Infallible;

use http::{Method, Request, Response};
use interlock_core::api::object::Gvk;
use interlock_core::kinds::capabilities::FLAVORS;
use interlock_core::topology::Epoch;
use kube::Client;
use kube::client::Body;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::events::EventPublisher;
use crate::cluster::supervisor::Sink as _;
use crate::cluster::watch::WatchChange;

/// Makes a ConfigMap, then marks the object.
static MARKS: Reconciler = Reconciler {
    name: "marks",
    capability: &FLAVORS,
    reconcile: |view| {
        let metadata = json!({"name": "child", "namespace": "ns"});
        let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let [Some(key), Some(own)] = [&child, view.object()].map(ObjectKey::of) else {
            return Ok(ReconcileStep::Await(None));
        };
        if view.get(&key)?.is_none() {
            return Ok(ReconcileStep::Write(vec![Effect::Create { object: child }]));
        }
        if view.object()["metadata"]["labels"]["marked"].is_string() {
            return Ok(ReconcileStep::Await(None));
        }
        let resource_version = meta_str(view.object(), "resourceVersion").unwrap_or_default().to_owned();
        let patch = json!({"metadata": {"labels": {"marked": "yes"}}});
        Ok(ReconcileStep::Write(vec![Effect::Patch { key: own, resource_version, patch }]))
    },
};

/// Lacks what no reconciler of a described kind gets.
static LACKS: Reconciler = Reconciler {
    name: "lacks",
    capability: &FLAVORS,
    reconcile: |_| Err(Needs { inventory: true, ..Needs::default() }),
};

const OBJECT: &str = "/api/v1/namespaces/ns/services/edge";

/// An API server with one object.
struct Api {
    object: Value,
    /// Writes of it that meet another version.
    conflicts: usize,
    requests: Vec<String>,
}

impl Api {
    fn answer(&mut self, method: &Method, path: &str, mut body: Value) -> (u16, Value) {
        self.requests.push(format!("{method} {}", path.rsplit_once('/').map_or(path, |(_, name)| name)));
        let status = |code: u16, reason: &str| {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code});
            (code, status)
        };
        match (method.as_str(), path) {
            ("GET", OBJECT) => (200, self.object.clone()),
            ("PATCH", OBJECT) if self.conflicts > 0 => {
                self.conflicts -= 1;
                self.object["metadata"]["resourceVersion"] = json!("8");
                status(409, "Conflict")
            }
            ("PATCH", OBJECT) => {
                assert_eq!(body["metadata"]["resourceVersion"], self.object["metadata"]["resourceVersion"]);
                body["metadata"]["resourceVersion"] = json!("9");
                json_patch::merge(&mut self.object, &body);
                (200, self.object.clone())
            }
            ("POST", _) => (201, body),
            _ => status(404, "NotFound"),
        }
    }
}

fn client(api: Arc<std::sync::Mutex<Api>>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let api = api.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
            let (code, answer) = api.lock().unwrap().answer(&head.method, head.uri.path(), body);
            let answer = Body::from(serde_json::to_vec(&answer).unwrap());
            let json = (http::header::CONTENT_TYPE, "application/json");
            Ok::<_, Infallible>(Response::builder().status(code).header(json.0, json.1).body(answer).unwrap())
        }
    });
    Client::new(service, "ns")
}

/// The controller of an object that no watch shows.
fn controller(client: Client) -> DescribedKind {
    let (store, metrics) = (Store::new(crate::kinds::all(), true), Arc::new(Metrics::new()));
    let bookkeeping = Bookkeeping::new(client.clone());
    let executor = Executor::of_process(client.clone(), Arc::default(), &bookkeeping);
    let until = tokio::time::Instant::now() + Duration::from_secs(600);
    let service = crate::kinds::all().iter().find(|kind| kind.resource.kind == "Service").unwrap();
    DescribedKind {
        resource: service.resource,
        reconciler: &MARKS,
        signer: Arc::new(CertificateSigner::new(executor.clone(), "system".to_owned())),
        executor,
        observer: Observer::new(store.clone(), Arc::default(), None, metrics.clone()),
        store,
        leadership: watch::channel(Leadership::Leader { leader_epoch: 1, until }).1,
        listers: KindListers::default(),
        metrics,
        refused: Arc::default(),
        reports: FailureReports::new(EventPublisher::new(client)),
    }
}

fn served() -> Arc<std::sync::Mutex<Api>> {
    let metadata = json!({"name": "edge", "namespace": "ns", "uid": "u", "resourceVersion": "7"});
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata});
    Arc::new(std::sync::Mutex::new(Api { object, conflicts: 0, requests: Vec::new() }))
}

#[tokio::test]
async fn a_need_that_nothing_serves_is_not_decided_on_again() {
    let api = served();
    let controller = DescribedKind { reconciler: &LACKS, ..controller(client(api.clone())) };
    let action = controller.reconcile(&NamespacedName::new("ns", "edge"), 1).await;
    assert_eq!(action, Action::Retry);
    assert_eq!(api.lock().unwrap().requests, ["GET edge"], "no Event tells of a limit");
    let needs = Needs { inventory: true, lists: BTreeSet::new(), ..Needs::default() };
    let refused = gathered::serves_all(&["lists"], &needs).unwrap_err();
    assert!(refused.message.contains("\"inventory\""), "{}", refused.message);
    gathered::serves_all(&["inventory"], &needs).unwrap();
}

/// The watch shows an empty list.
#[tokio::test]
async fn an_absence_that_has_to_be_certain_is_asked_for() {
    let controller = controller(client(served()));
    let (gvk, everywhere) = (Gvk::new(interlock_kong::api::API_VERSION, "DataPlane"), Arc::<str>::from(""));
    for change in [WatchChange::Listing(everywhere.clone()), WatchChange::Synced(everywhere)] {
        controller.observer.observe(&gvk, Epoch(1), change);
    }
    let key = ObjectKey { gvk, namespace: Some("ns".to_owned()), name: "lost".to_owned() };
    assert_eq!(controller.sources().kept(&key, false).await, Some(Lookup::Absent));
    assert_eq!(controller.sources().kept(&key, true).await, None);
}

/// The object as its own write was answered, or as it was read after a conflict, is not read again.
#[rstest]
#[case::written(0, &["GET edge", "GET child", "POST configmaps", "GET edge", "PATCH edge"])]
#[case::on_another_version(
    1,
    &["GET edge", "GET child", "POST configmaps", "GET edge", "PATCH edge", "GET edge", "PATCH edge"]
)]
#[tokio::test]
async fn what_the_api_server_answered_is_not_read_again(#[case] conflicts: usize, #[case] asked: &[&str]) {
    let api = served();
    api.lock().unwrap().conflicts = conflicts;
    let controller = controller(client(api.clone()));
    let action = controller.reconcile(&NamespacedName::new("ns", "edge"), 1).await;
    assert_eq!(action, Action::AwaitChange);
    assert_eq!(api.lock().unwrap().requests, asked);
}
