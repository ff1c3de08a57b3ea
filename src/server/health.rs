//! `/healthz`, `/livez` and `/readyz`, on the webhook port and on the ops port.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, Uri, header};

use super::shutdown::Shutdown;
use crate::telemetry::readyz::{Probe, Readyz, answer};

/// The state behind the probes.
#[derive(Clone)]
pub struct Probes {
    /// The checks.
    pub readiness: Readyz,
    /// A process that shuts down is not ready.
    pub shutdown: Shutdown,
}

impl Probes {
    fn report(&self) -> Vec<(String, Option<String>)> {
        let mut report = self.readiness.report();
        let stopping = self.shutdown.is_lingering();
        report.push(("shutdown".to_owned(), stopping.then(|| "the process is stopping".to_owned())));
        report
    }
}

/// Routes of the probes.
pub fn router(health: Probes) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .route("/readyz/{check}", get(ready_in_one))
        .with_state(health)
}

async fn alive(uri: Uri) -> Response {
    let kind = uri.path().trim_start_matches('/').to_owned();
    let report = [("ping".to_owned(), None)];
    text(answer(&kind, &report, &Probe::from_query(uri.query(), None)))
}

async fn ready(State(health): State<Probes>, uri: Uri) -> Response {
    text(answer("readyz", &health.report(), &Probe::from_query(uri.query(), None)))
}

async fn ready_in_one(State(health): State<Probes>, Path(check): Path<String>, uri: Uri) -> Response {
    text(answer("readyz", &health.report(), &Probe::from_query(uri.query(), Some(check))))
}

fn text((code, text): (u16, String)) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let nosniff = (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let plain = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    (status, [plain, nosniff], text).into_response()
}
