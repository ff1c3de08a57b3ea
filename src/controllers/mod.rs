//! Glue, one folder a capability: event -> facts -> pure decision -> effects.

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::object::NamespacedName;
use crate::cluster::lease::Leadership;
use crate::cluster::queue::Queue;
use crate::telemetry::metrics::Metrics;
use observe::Store;

pub mod instance;
pub mod observe;

/// What the controllers are given.
#[derive(Clone)]
pub struct Context {
    /// Keeps the books: planExecution, status, stamp, finalizer.
    pub client: Client,
    /// Acts for packages, under their own identity.
    pub effects: Client,
    /// What the process knows of the cluster; the watches fill it.
    pub store: Arc<Store>,
    /// Instances that something happened to; the watches fill it.
    pub queue: Arc<Queue<NamespacedName>>,
    /// Whether this process may act; asked before each write.
    pub leadership: watch::Receiver<Leadership>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// The only namespaces that are looked at; empty means all.
    pub namespaces: Vec<String>,
    /// Namespace of the process.
    pub own_namespace: String,
}

/// Runs the controllers until `stop`; returns when nothing is being written any more.
pub async fn run(_context: Context, stop: CancellationToken) {
    stop.cancelled().await;
}
