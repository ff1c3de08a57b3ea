//! Lists the pods of a gateway and the Services around them, with few requests, and probes the configuration of the pods
//! by their Admin API.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt as _;
use interlock_core::api::object::{Gvk, ObjectKey, meta_str};
use interlock_core::effect::ApiFailure;
use interlock_core::reconcile::{ObjectList, PodRequest};
use interlock_kong::api as kong;
use interlock_kong::api::labels;
use interlock_kong::data_plane::flavor::Flavor;
use interlock_kong::data_plane::flavor::environment::Unknown;
use interlock_kong::data_plane::flavor::gateway::Gateway;
use interlock_kong::data_plane::flavor::gateway_ref::{GatewayKind, GatewayRef};
use interlock_kong::data_plane::flavor::reading::Effective;
use interlock_kong::data_plane::flavor::running::pod::AdminEndpoint;
use interlock_kong::data_plane::flavor::running::report::StatusReport;
use interlock_kong::data_plane::flavor::running::{ByFlavor, Pod, RouterState, Selector, pod};
use interlock_kong::data_plane::flavor::sources::Nothing;
use interlock_kong::data_plane::rollout::gates;
use kube::Client;
use serde_json::Value;

use crate::cluster::path;
use crate::cluster::pods;
use crate::cluster::read::{get, list};
use crate::runtime::index::{Child, Store};

/// Concurrent probes of pods.
const CONCURRENT: usize = 8;

/// The observed state of a gateway.
pub struct GatewayPods {
    pub object: Value,
    pub pods: Vec<Pod>,
    /// Services of its namespace; none where its pods agree.
    pub services: Vec<Selector>,
    /// Its declared flavor, where that is known and not staged.
    pub wanted: Option<Flavor>,
    /// Whether some of its pods are not ready.
    pub starting: bool,
}

/// Reads a gateway, from what is watched where that is kept; `None` where the object is gone, or is no gateway.
pub async fn at(
    client: &Client,
    store: &Store,
    subject: &GatewayRef,
) -> Result<Option<GatewayPods>, ApiFailure> {
    let namespace = &subject.name.namespace;
    let kept_object = store.kept_object(&key_of(subject)).filter(|_| subject.kind == GatewayKind::DataPlane);
    let object = match kept_object {
        Some(Child::Kept(object)) => Some(Value::clone(&object)),
        Some(Child::Absent) => None,
        Some(Child::Unread) | None => get(client, &path_of(subject)?).await?,
    };
    let Some(object) = object else { return Ok(None) };
    let gateway = Gateway::read(&object, namespace, &Nothing).ok().flatten();
    let gateway = gateway.filter(|gateway| {
        // The Deployment of an ingress controller carries the label as well.
        Gateway::is_guarded(&object)
            && !matches!(
                &gateway.spec.reading.effective,
                Effective::Unknown(Unknown::NoProxy | Unknown::NoKong)
            )
    });
    let Some(gateway) = gateway else { return Ok(None) };
    let deployments = match subject.kind {
        GatewayKind::Deployment => vec![object.clone()],
        GatewayKind::DataPlane => {
            // Of a namespace of many DataPlanes, only the Deployments of this one are held.
            let owner = BTreeSet::from([uid(&object)]);
            let own =
                [(labels::APP, &*subject.name.name), (labels::MANAGED_BY, labels::MANAGED_BY_DATA_PLANE)];
            let all = match kept(store, Gvk::new("apps/v1", "Deployment"), namespace, own) {
                Some(all) => all,
                None => {
                    let own = format!("{}={}", labels::APP, subject.name.name);
                    list(client, &collection("apps/v1", namespace, "deployments")?, &own).await?
                }
            };
            all.into_iter().filter(|deployment| pod::is_of(deployment, &owner)).collect()
        }
    };
    let mut pods = Vec::new();
    for deployment in &deployments {
        let selector = &deployment["spec"]["selector"]["matchLabels"];
        let own = [labels::APP, labels::SELECTOR]
            .map(|label| (label, selector[label].as_str().unwrap_or_default()));
        let name = meta_str(deployment, "name").unwrap_or_default();
        match kept_pods(store, namespace, own, name).filter(|_| subject.kind == GatewayKind::DataPlane) {
            Some(kept) => pods.extend(kept),
            None => pods.extend(pods_of(client, namespace, deployment).await?),
        }
    }
    let starting = pods.iter().any(|pod| !pod::is_ready(pod));
    let reported = futures::stream::iter(pods).map(|pod| async move {
        let reported = tell(&pod).await;
        Pod {
            name: meta_str(&pod, "name").unwrap_or_default().to_owned(),
            labels: pod::labels(&pod),
            reported,
        }
    });
    let pods: Vec<Pod> = reported.buffered(CONCURRENT).collect().await;
    // Where all pods agree, it does not matter which Services they are behind.
    let services = match ByFlavor::of(&pods).is_mixed() {
        false => Vec::new(),
        true => list(client, &collection("v1", namespace, "services")?, "").await?,
    };
    Ok(Some(GatewayPods {
        pods,
        services: services.iter().map(Selector::of).collect(),
        wanted: gateway.spec.reading.effective.known().filter(|_| !gateway.spec.staged),
        object,
        starting,
    }))
}

/// A list of what is watched; `None` where it is not kept.
fn kept(store: &Store, gvk: Gvk, namespace: &str, labels: [(&str, &str); 2]) -> Option<Vec<Value>> {
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let found = store.kept_list(&ObjectList { gvk, namespace: namespace.to_owned(), labels })?;
    Some(found.iter().map(|object| Value::clone(object)).collect())
}

fn kept_pods(
    store: &Store,
    namespace: &str,
    labels: [(&str, &str); 2],
    deployment: &str,
) -> Option<Vec<Value>> {
    let pods: Vec<_> =
        kept(store, Gvk::new("v1", "Pod"), namespace, labels)?.into_iter().map(Arc::new).collect();
    Some(gates::of_deployment(&pods, deployment).cloned().collect())
}

/// Pods of the ReplicaSets of a Deployment, by owner: any pod may carry the labels.
async fn pods_of(client: &Client, namespace: &str, deployment: &Value) -> Result<Vec<Value>, ApiFailure> {
    let labels = pod::texts(&deployment["spec"]["selector"]["matchLabels"]);
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let labels = labels.join(",");
    let sets = collection("apps/v1", namespace, "replicasets")?;
    let owner = BTreeSet::from([uid(deployment)]);
    let sets = list(client, &sets, &labels).await?;
    let sets: BTreeSet<String> = sets.iter().filter(|set| pod::is_of(set, &owner)).map(uid).collect();
    let pods = list(client, &collection("v1", namespace, "pods")?, &labels).await?;
    Ok(pods.into_iter().filter(|pod| pod::is_alive(pod) && pod::is_of(pod, &sets)).collect())
}

/// From its Admin API where that can be probed, else from its environment.
async fn tell(pod: &Value) -> RouterState {
    let why = match pod::endpoint(pod) {
        Ok(endpoint) => match report(&endpoint).await {
            Ok(report) => return RouterState::Reports(report.flavor),
            Err(why) => why,
        },
        Err(why) => why,
    };
    match pod::declared(pod, &Nothing) {
        Ok(flavor) => RouterState::Declares(flavor, why),
        Err(unknown) => RouterState::Nothing(format!("{why}, and {unknown}")),
    }
}

fn uid(object: &Value) -> String {
    meta_str(object, "uid").unwrap_or_default().to_owned()
}

fn collection(api_version: &str, namespace: &str, plural: &str) -> Result<String, ApiFailure> {
    path::of(api_version, Some(namespace), plural, &[])
}

/// The uid of a gateway that is kept.
pub fn kept_uid(store: &Store, key: &ObjectKey) -> Option<String> {
    match store.kept_object(key)? {
        Child::Kept(object) => Some(uid(&object)),
        Child::Absent | Child::Unread => None,
    }
}

pub fn key_of(subject: &GatewayRef) -> ObjectKey {
    let gvk = match subject.kind {
        GatewayKind::DataPlane => Gvk::new(kong::API_VERSION, "DataPlane"),
        GatewayKind::Deployment => Gvk::new("apps/v1", "Deployment"),
    };
    ObjectKey { gvk, namespace: Some(subject.name.namespace.clone()), name: subject.name.name.clone() }
}

fn path_of(subject: &GatewayRef) -> Result<String, ApiFailure> {
    let (api, plural) = match subject.kind {
        GatewayKind::DataPlane => (kong::API_VERSION, "dataplanes"),
        GatewayKind::Deployment => ("apps/v1", "deployments"),
    };
    path::of(api, Some(&subject.name.namespace), plural, &[&subject.name.name])
}

/// The report of a pod's Admin API, or why there is none.
async fn report(endpoint: &AdminEndpoint) -> Result<StatusReport, String> {
    let AdminEndpoint { address, port } = endpoint;
    let request =
        PodRequest { address: address.clone(), port: *port, tls: None, path: "/", all_pages: false };
    let answer = match pods::ask(&request, None).await {
        // A redirect counts as any other status that is not 200.
        Ok(answer) if answer.status != 200 => Err(format!("answers {}", answer.status)),
        answer => answer,
    };
    let answer = answer.map_err(|why| format!("its Admin API (port {port}) {why}"))?;
    StatusReport::read(&answer.body)
}
