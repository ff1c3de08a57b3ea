//! The two ports, and their certificate.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use interlock_core::kinds;
use jiff::Timestamp;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Parts, Process};
use crate::cluster::authorize::Authorizer;
use crate::cluster::supervisor::CapabilitySnapshot;
use crate::runtime::index::IndexLister;
use crate::runtime::index::current_kinds::CurrentKinds;
use crate::runtime::index::gateways::CurrentGateways;
use crate::runtime::index::graph_page::{Document, PlacedDrawing};
use crate::server::accept::{DRAIN, Port};
use crate::server::admission::Admission;
use crate::server::callers::Callers;
use crate::server::client_auth::ClientAuthority;
use crate::server::graph::GraphPage;
use crate::server::health::{self, Probes};
use crate::server::in_flight::InFlight;
use crate::server::limits::Limits;
use crate::server::ops::{self, Exposition, OpsGuard};
use crate::server::tls::Tls;
use crate::server::webhook_routes;
use crate::server::webhook_routes::WebhookRoutes;

impl Process {
    fn health(&self) -> Probes {
        Probes { readiness: self.readiness.clone(), shutdown: self.shutdown.clone() }
    }

    /// The accepted callers of the webhook port; follows the CA's file, if there is one.
    fn callers(&self, parts: &mut Parts) -> Arc<Callers> {
        let options = &self.options.callers;
        let authority = options.authority.clone().map(|file| {
            let (oldest, names) = (self.options.tls_min_version, options.names.clone());
            let authority = ClientAuthority::new(self.resolver.clone(), oldest, names);
            let (followed, interval) = (authority.clone(), options.interval);
            let gate = self.readiness.gate("client-ca");
            parts.spawn(async move {
                followed.follow(file, interval, gate).await;
                Ok("the CA of client certificates")
            });
            authority
        });
        Arc::new(Callers { api_servers: options.api_servers.clone(), authority })
    }

    fn port(&self, app: Router, tls: Option<Tls>, callers: Arc<Callers>) -> Port {
        Port {
            app,
            tls,
            callers,
            limits: Limits::default(),
            shutdown: self.shutdown.clone(),
            metrics: self.metrics.clone(),
        }
    }

    /// Health on every role, the webhook routes where the webhook is one of them.
    pub(super) fn serve_webhook(
        &self,
        listener: TcpListener,
        capabilities: watch::Receiver<Arc<CapabilitySnapshot>>,
        servers: &mut JoinSet<()>,
        parts: &mut Parts,
    ) {
        let callers = self.callers(parts);
        let mut app = health::router(self.health());
        if self.options.roles.webhook {
            let limits = Limits::default();
            let gateways =
                CurrentGateways { gateways: self.store.clone(), capabilities: capabilities.clone() };
            let read = self.current_kinds(capabilities.clone());
            let lister = IndexLister::new(self.store.clone(), Arc::new(gateways));
            let lister = Arc::new(lister.with_read_kinds(read));
            app = app.merge(webhook_routes::router(WebhookRoutes {
                kinds: self.options.kinds,
                reviewer: Arc::new(Admission {
                    kinds: kinds::guarded(self.options.kinds),
                    lister,
                    config: self.config.clone(),
                    capabilities,
                }),
                callers: callers.clone(),
                arrivals: self.store.arrivals(),
                readiness: self.readiness.clone(),
                limits,
                in_flight: InFlight::new(&limits, self.metrics.clone()),
                metrics: self.metrics.clone(),
            }));
        }
        let tls = callers.authority.as_ref().map_or_else(|| self.tls(), |authority| authority.tls());
        servers.spawn(self.port(app, Some(tls), callers).serve(listener, DRAIN));
    }

    /// Of which kinds the cache has all objects.
    pub(super) fn current_kinds(
        &self,
        capabilities: watch::Receiver<Arc<CapabilitySnapshot>>,
    ) -> Arc<CurrentKinds> {
        let namespaces = self.options.watch_namespaces.clone();
        Arc::new(CurrentKinds { kinds: self.options.kinds, capabilities, namespaces })
    }

    fn tls(&self) -> Tls {
        self.resolver.server_config(self.options.tls_min_version).into()
    }

    pub(super) fn serve_ops(
        &self,
        listener: TcpListener,
        process_client: &Client,
        capabilities: watch::Receiver<Arc<CapabilitySnapshot>>,
        servers: &mut JoinSet<()>,
    ) {
        let (store, drawn) = (self.store.clone(), self.store.clone());
        let graph = GraphPage::new(
            Arc::new(move || Document::of(&store, &capabilities.borrow(), Timestamp::now()).json()),
            Arc::new(move || PlacedDrawing::of(&drawn, Timestamp::now()).json()),
        );
        let guard = self.ops_guard(self.options.ops_address, process_client);
        let app = ops::router(self.health(), self.exposition(), graph, guard);
        self.serve_private(app, self.options.ops_address, listener, servers);
    }

    /// Serves metrics and health to callers on other machines.
    pub(super) fn serve_metrics(
        &self,
        listener: TcpListener,
        address: SocketAddr,
        process_client: &Client,
        servers: &mut JoinSet<()>,
    ) {
        let guard = self.ops_guard(address, process_client);
        let app = ops::metrics_router(self.health(), self.exposition(), guard);
        self.serve_private(app, address, listener, servers);
    }

    fn exposition(&self) -> Exposition {
        let store = self.store.clone();
        Exposition { metrics: self.metrics.clone(), gauges: Arc::new(move |now| store.gauges(now)) }
    }

    /// Who may read a port: everybody on loopback, else those whom the API server authorizes.
    fn ops_guard(&self, address: SocketAddr, process_client: &Client) -> Option<OpsGuard> {
        (!address.ip().is_loopback()).then(|| OpsGuard::new(Authorizer::new(process_client)))
    }

    /// Plain on loopback, else TLS.
    fn serve_private(
        &self,
        app: Router,
        address: SocketAddr,
        listener: TcpListener,
        servers: &mut JoinSet<()>,
    ) {
        let tls = (!address.ip().is_loopback()).then(|| self.tls());
        servers.spawn(self.port(app, tls, Arc::default()).serve(listener, DRAIN));
    }
}
