//! The ops port: health, metrics and the live graph; and the metrics port, which has no graph. Plain on
//! loopback; beyond it TLS, and the API server authorizes readers of metrics and graph.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use interlock_core::kinds::gauge::Gauge;
use tokio::sync::Semaphore;

use super::graph::{self, GraphPage};
use super::health::{self, Probes};
use super::loopback_host;
use crate::cluster::authorize::Authorizer;
use crate::telemetry::metrics::{CONTENT_TYPE, Metrics};

/// Concurrent requests to the API server, for all callers.
const CONCURRENT_REVIEWS: usize = 4;

/// Authorizes each request at the API server.
#[derive(Clone)]
pub struct OpsGuard {
    authorizer: Authorizer,
    reviews: Arc<Semaphore>,
}

impl OpsGuard {
    /// As the user of the process.
    pub fn new(authorizer: Authorizer) -> Self {
        Self { authorizer, reviews: Arc::new(Semaphore::new(CONCURRENT_REVIEWS)) }
    }

    async fn check(&self, token: Option<&str>, path: &str) -> Result<(), (StatusCode, String)> {
        let Some(token) = token else {
            let text = format!("send a bearer token of a user who may `get` the path {path}\n");
            return Err((StatusCode::UNAUTHORIZED, text));
        };
        let Ok(_turn) = self.reviews.try_acquire() else {
            return Err((
                StatusCode::TOO_MANY_REQUESTS,
                "too many concurrent requests; try again\n".to_owned(),
            ));
        };
        match self.authorizer.may_get(token, path).await {
            Ok(true) => Ok(()),
            Ok(false) => Err((StatusCode::FORBIDDEN, format!("this user may not `get` the path {path}\n"))),
            Err(error) => {
                tracing::warn!(%error, "the API server did not authorize a request to the ops port");
                Err((
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the API server did not answer the authorization request; try again\n".to_owned(),
                ))
            }
        }
    }
}

/// What `/metrics` exposes.
#[derive(Clone)]
pub struct Exposition {
    /// What the process counts.
    pub metrics: Arc<Metrics>,
    /// Returns what the kinds say of all their objects, at a time in Unix seconds.
    pub gauges: Arc<dyn Fn(u64) -> Vec<Gauge> + Send + Sync>,
}

/// Routes of the ops port; without a guard every user of this machine may read.
pub fn router(health: Probes, exposed: Exposition, graph: GraphPage, guard: Option<OpsGuard>) -> Router {
    let private = metrics_route(exposed).merge(graph::router(graph));
    health::router(health).merge(guarded(private, guard))
}

/// Routes of the metrics port.
pub fn metrics_router(health: Probes, exposed: Exposition, guard: Option<OpsGuard>) -> Router {
    health::router(health).merge(guarded(metrics_route(exposed), guard))
}

fn metrics_route(exposed: Exposition) -> Router {
    Router::new().route("/metrics", get(exposition)).with_state(exposed)
}

fn guarded(private: Router, guard: Option<OpsGuard>) -> Router {
    match guard {
        Some(guard) => private.route_layer(from_fn_with_state(guard, authorize)),
        None => private.route_layer(from_fn(loopback_host::only)),
    }
}

async fn authorize(State(guard): State<OpsGuard>, request: Request, next: Next) -> Response {
    let value = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| value.strip_prefix("Bearer ")).map(|token| token.trim().to_owned());
    let path = request.uri().path().to_owned();
    match guard.check(token.as_deref(), &path).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn exposition(State(exposed): State<Exposition>) -> Response {
    let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0);
    let encoded = tokio::task::spawn_blocking(move || {
        exposed.metrics.kinds((exposed.gauges)(now));
        exposed.metrics.encode(now)
    });
    match encoded.await {
        Ok(text) => {
            let content_type = (header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
            ([content_type], text).into_response()
        }
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be read\n").into_response(),
    }
}
