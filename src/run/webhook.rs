//! The two ports, and the certificate that they show.

use std::sync::Arc;

use axum::Router;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Process;
use crate::cluster::authorize::Authorizer;
use crate::cluster::supervisor::Snapshot;
use crate::controllers::observe::live::Document;
use crate::server::accept::{DRAIN, Port};
use crate::server::admission::Admission;
use crate::server::doors::{self, Doors};
use crate::server::graph::Graph;
use crate::server::health::{self, Health};
use crate::server::in_flight::InFlight;
use crate::server::limits::Limits;
use crate::server::ops::{self, Guard};

impl Process {
    fn health(&self) -> Health {
        Health { readiness: self.readiness.clone(), shutdown: self.shutdown.clone() }
    }

    fn port(&self, app: Router, encrypted: bool) -> Port {
        Port {
            app,
            tls: encrypted.then(|| self.shown.server_config()),
            limits: Limits::default(),
            shutdown: self.shutdown.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// Health on every role, the doors where the webhook is one of them.
    pub(super) fn serve_webhook(
        &self,
        listener: TcpListener,
        capabilities: watch::Receiver<Arc<Snapshot>>,
        servers: &mut JoinSet<()>,
    ) {
        let mut app = health::router(self.health());
        if self.options.roles.webhook {
            let limits = Limits::default();
            app = app.merge(doors::router(Doors {
                judge: Arc::new(Admission {
                    view: self.store.clone(),
                    config: self.config.clone(),
                    capabilities,
                }),
                changes: self.store.changes(),
                readiness: self.readiness.clone(),
                limits,
                in_flight: InFlight::new(limits.in_flight_bytes, self.metrics.clone()),
                metrics: self.metrics.clone(),
            }));
        }
        servers.spawn(self.port(app, true).serve(listener, DRAIN));
    }

    pub(super) fn serve_ops(
        &self,
        listener: TcpListener,
        books: &Client,
        capabilities: watch::Receiver<Arc<Snapshot>>,
        servers: &mut JoinSet<()>,
    ) {
        let open = self.options.ops_address.ip().is_loopback();
        let guard = (!open).then(|| Guard::new(Authorizer::new(books)));
        let store = self.store.clone();
        let graph = Graph::new(Arc::new(move || Document::of(&store, &capabilities.borrow()).json()));
        let app = ops::router(self.health(), self.metrics.clone(), graph, guard);
        servers.spawn(self.port(app, !open).serve(listener, DRAIN));
    }
}
