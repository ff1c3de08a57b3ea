//! Which kinds are watched, and where their changes go.

use std::sync::Arc;

use kube::Client;
use kube::api::ApiResource;
use tokio::task::JoinSet;

use super::store::Store;
use crate::api::meta;
use crate::api::object::{Gvk, NamespacedName};
use crate::cluster::queue::Queue;
use crate::cluster::watch::{self, Change, Scope};

/// Kinds of children that are watched; their events continue plans. A fixed list for now:
/// other kinds are read when a plan needs them.
const CHILDREN: [(&str, &str, &str); 12] = [
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Service", "services"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("v1", "Pod", "pods"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("apps/v1", "DaemonSet", "daemonsets"),
    ("batch/v1", "Job", "jobs"),
    ("batch/v1", "CronJob", "cronjobs"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("networking.k8s.io/v1", "Ingress", "ingresses"),
];

/// Whether objects of a kind are in the store, so that an absent one is known to be absent.
pub fn is_watched(gvk: &Gvk) -> bool {
    CHILDREN.iter().any(|(api_version, kind, _)| gvk.kind == *kind && gvk.api_version() == *api_version)
}

/// Says when a kind has been listed whole.
pub type OnSynced = Box<dyn Fn() + Send + Sync>;

/// Makes a handle for the kind of that plural.
pub type Handle<'a> = dyn FnMut(&str) -> OnSynced + 'a;

/// Starts the watches of the kinds that the answer path reads.
pub fn spawn_answer_path(
    tasks: &mut JoinSet<()>,
    client: &Client,
    store: &Arc<Store>,
    queue: Option<Arc<Queue<NamespacedName>>>,
    namespaces: &[String],
    handle: &mut Handle<'_>,
) {
    for scope in scopes(&kudo("OperatorVersion", "operatorversions"), None, namespaces) {
        let (store, queue, synced) = (store.clone(), queue.clone(), handle("operatorversions"));
        tasks.spawn(watch::run(client.clone(), scope, move |change| {
            let key = store.see_operator_version(&change);
            match (key, &queue) {
                (Some(key), Some(queue)) => store.instances_of(&key).into_iter().for_each(|i| queue.add(i)),
                _ => on_synced(&change, &synced),
            }
        }));
    }
    for scope in scopes(&kudo("Instance", "instances"), None, namespaces) {
        let (store, queue, synced) = (store.clone(), queue.clone(), handle("instances"));
        tasks.spawn(watch::run(client.clone(), scope, move |change| {
            match (store.see_instance(&change), &queue) {
                (Some(key), Some(queue)) => queue.add(key),
                _ => on_synced(&change, &synced),
            }
        }));
    }
    let scope = Scope { resource: resource("v1", "Namespace", "namespaces"), labels: None, namespace: None };
    let (store, synced) = (store.clone(), handle("namespaces"));
    tasks.spawn(watch::run(client.clone(), scope, move |change| {
        match (store.see_namespace(&change), &queue) {
            (Some(name), Some(queue)) => store.instances_in(&name).into_iter().for_each(|i| queue.add(i)),
            _ => on_synced(&change, &synced),
        }
    }));
}

/// Starts the watches of what packages make.
pub fn spawn_children(
    tasks: &mut JoinSet<()>,
    client: &Client,
    store: &Arc<Store>,
    queue: &Arc<Queue<NamespacedName>>,
    namespaces: &[String],
    handle: &mut Handle<'_>,
) {
    for (api_version, kind, plural) in CHILDREN {
        let labels = format!("{}={}", meta::HERITAGE, meta::HERITAGE_VALUE);
        for scope in scopes(&resource(api_version, kind, plural), Some(labels), namespaces) {
            let (store, queue, synced) = (store.clone(), queue.clone(), handle(plural));
            tasks.spawn(watch::run(client.clone(), scope, move |change| match store.see_child(&change) {
                Some(owner) => queue.add(owner),
                None => on_synced(&change, &synced),
            }));
        }
    }
}

fn on_synced(change: &Change, synced: &OnSynced) {
    if let Change::Synced = change {
        synced();
    }
}

fn scopes(resource: &ApiResource, labels: Option<String>, namespaces: &[String]) -> Vec<Scope> {
    let one =
        |namespace: Option<String>| Scope { resource: resource.clone(), labels: labels.clone(), namespace };
    match namespaces {
        [] => vec![one(None)],
        some => some.iter().cloned().map(|ns| one(Some(ns))).collect(),
    }
}

fn kudo(kind: &str, plural: &str) -> ApiResource {
    resource(meta::KUDO_API_VERSION, kind, plural)
}

fn resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let gvk = Gvk::new(api_version, kind);
    ApiResource {
        group: gvk.group,
        version: gvk.version,
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
