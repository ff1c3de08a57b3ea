//! What a reconcile asks the API server for.

use std::convert::Infallible;

use http::{Method, Request, Response};
use interlock_core::kinds::capabilities::FLAVORS;
use kube::Client;
use kube::client::Body;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::events::EventPublisher;

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

/// The object as its own write was answered, or as it was read after a conflict, is not read again.
#[rstest]
#[case::written(0, &["GET edge", "GET child", "POST configmaps", "GET edge", "PATCH edge"])]
#[case::on_another_version(
    1,
    &["GET edge", "GET child", "POST configmaps", "GET edge", "PATCH edge", "GET edge", "PATCH edge"]
)]
#[tokio::test]
async fn what_the_api_server_answered_is_not_read_again(#[case] conflicts: usize, #[case] asked: &[&str]) {
    let metadata = json!({"name": "edge", "namespace": "ns", "uid": "u", "resourceVersion": "7"});
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata});
    let api = Arc::new(std::sync::Mutex::new(Api { object, conflicts, requests: Vec::new() }));
    let controller = controller(client(api.clone()));
    let action = controller.reconcile(&NamespacedName::new("ns", "edge"), 1).await;
    assert_eq!(action, Action::AwaitChange);
    assert_eq!(api.lock().unwrap().requests, asked);
}
