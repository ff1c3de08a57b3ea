//! What a tenant sees of the process while others use it: how long reviews, plans and health take.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use interlock_core::api::meta;
use interlock_kudo::api::Instance;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use super::ground::Ground;
use super::port::{Connection, WebhookPort};
use super::{Cluster, Interlock, spawn};

/// Its plan makes a ConfigMap.
const PACKAGE: &str = r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: quiet-0.1.0}
spec:
  operator: {kind: Operator, name: quiet}
  version: 0.1.0
  parameters: [{name: SIZE, default: small}]
  tasks: [{name: config, kind: Apply, spec: {resources: [config.yaml]}}]
  plans:
    deploy:
      strategy: serial
      phases: [{name: all, strategy: serial, steps: [{name: config, tasks: [config]}]}]
  templates:
    config.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ .Name }}-config"}
      data: {size: "{{ .Params.SIZE }}"}
"#;

/// As which address health is asked: the kubelet's is not the API server's.
const KUBELET: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
const API_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// What takes longer is counted as this long.
pub const CAP: Duration = Duration::from_secs(60);
const BETWEEN_PROBES: Duration = Duration::from_millis(50);
const BETWEEN_REVIEWS: Duration = Duration::from_millis(20);

/// A tenant with a package, and an Instance of it at rest.
pub struct Neighbour<'a> {
    ground: Ground<'a>,
    port: WebhookPort,
    review: String,
    made: usize,
}

/// What was found in a stretch of time, sorted.
#[derive(Debug, Default)]
pub struct Found {
    pub reviews: Vec<Duration>,
    pub plans: Vec<Duration>,
    pub livez: Vec<Duration>,
}

/// That part of sorted times, in milliseconds.
pub fn quantile(sorted: &[Duration], part: f64) -> f64 {
    let at = (sorted.len().saturating_sub(1) as f64 * part) as usize;
    sorted.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

impl<'a> Neighbour<'a> {
    pub fn new(cluster: &'a Cluster, interlock: &Interlock) -> Self {
        let ground = Ground::new(cluster, "neighbour", PACKAGE);
        ground.create("at-rest", "quiet-0.1.0", &json!({}));
        let object = ground.await_plan("at-rest", "deploy", "COMPLETE");
        let port = WebhookPort::of(cluster, interlock);
        Self { review: review(&object), ground, port, made: 0 }
    }

    /// Deploys Instances one after the other for so long, at least so many of them, and sends reviews
    /// and asks for health until that is done.
    pub fn measure(&mut self, plans: usize, time: Duration) -> Found {
        self.measure_beside(plans, time, || {})
    }

    /// [`Self::measure`] with something else done after each plan.
    pub fn measure_beside(&mut self, plans: usize, time: Duration, mut other: impl FnMut()) -> Found {
        let begun = Instant::now();
        let stop = Arc::new(AtomicBool::new(false));
        let livez = spawn(livez(self.port.clone(), stop.clone()));
        let reviews = spawn(reviews(self.port.clone(), self.review.clone(), stop.clone()));
        let mut found = Found::default();
        // One that does not end says enough.
        while (found.plans.len() < plans || begun.elapsed() < time)
            && found.plans.last().is_none_or(|took| *took < CAP)
        {
            found.plans.push(self.deploy());
            other();
        }
        stop.store(true, Ordering::Relaxed);
        (found.livez, found.reviews) =
            super::block_on(async { (livez.await.unwrap(), reviews.await.unwrap()) });
        for times in [&mut found.plans, &mut found.livez, &mut found.reviews] {
            times.sort_unstable();
        }
        found
    }

    /// How long it takes from the request that creates an Instance until its plan is complete.
    fn deploy(&mut self) -> Duration {
        self.made += 1;
        let name = format!("quiet-{}", self.made);
        let kind = ApiResource::erase::<Instance>(&());
        let api =
            Api::<DynamicObject>::namespaced_with(self.ground.user.kube(), self.ground.ns.name(), &kind);
        let complete = |found: Option<&DynamicObject>| {
            found.is_some_and(|found| found.data["status"]["planStatus"]["deploy"]["status"] == "COMPLETE")
        };
        let begun = Instant::now();
        self.ground.create(&name, "quiet-0.1.0", &json!({}));
        let ended = async { tokio::time::timeout(CAP, await_condition(api, &name, complete)).await };
        if let Ok(ended) = super::block_on(ended) {
            ended.expect("a watch");
        }
        begun.elapsed()
    }
}

async fn livez(port: WebhookPort, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut took = Vec::new();
    while took.is_empty() || !stop.load(Ordering::Relaxed) {
        took.push(port.probe(KUBELET, "/livez", CAP).await);
        tokio::time::sleep(BETWEEN_PROBES).await;
    }
    took
}

async fn reviews(port: WebhookPort, review: String, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let (mut took, mut connection) = (Vec::new(), None);
    while took.is_empty() || !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let answered = tokio::time::timeout(CAP, answer(&port, &review, &mut connection)).await;
        if answered.is_err() {
            connection = None;
        }
        took.push(begun.elapsed());
        tokio::time::sleep(BETWEEN_REVIEWS).await;
    }
    took
}

/// Sends a review until it is answered, on a connection that is kept as the API server keeps its own.
async fn answer(port: &WebhookPort, review: &str, connection: &mut Option<Connection>) {
    loop {
        let open = match connection.take() {
            Some(open) => Ok(open),
            None => port.connect(API_SERVER).await,
        };
        if let Ok(mut open) = open
            && let Ok((200, _)) = open.post("/mutate?timeout=5s", review).await
        {
            *connection = Some(open);
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An edit of an Instance that schedules a plan.
fn review(object: &Value) -> String {
    let kind = json!({"group": meta::KUDO_GROUP, "version": "v1beta1", "kind": "Instance"});
    let resource = json!({"group": meta::KUDO_GROUP, "version": "v1beta1", "resource": "instances"});
    let mut changed = object.clone();
    changed["spec"]["parameters"]["SIZE"] = json!("large");
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "0e5f6f2e-9d5c-4f0e-8f52-0a2ac0d6d5d1",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
            "operation": "UPDATE", "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": changed, "oldObject": object, "dryRun": true,
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
    .to_string()
}
