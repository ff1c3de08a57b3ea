//! The webhook routes: body -> admission -> answer, with one log line and one count for each decision.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{HeaderValue, StatusCode, header};
use interlock_core::admission::{
    AdmissionAnswer, Awaited, BadReview, CacheWait, DecisionKind, DecisionRecord, Reply, WebhookEndpoint,
};
use interlock_core::kinds::{Kinds, kind_name};
use serde_json::json;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::body;
use super::callers::{self, Caller, CallerTrust, Callers};
use super::duration;
use super::in_flight::InFlight;
use super::limits::Limits;
use super::waiting::Waiting;
use crate::cluster::arrivals::Arrivals;
use crate::telemetry::line_budget::LineBudget;
use crate::telemetry::metrics::{Cap, DecisionLabels, Metrics};
use crate::telemetry::readyz::Readyz;

/// Decides reviews; the server does not know the rules.
pub trait Reviewer: Send + Sync + 'static {
    /// Decides one review, without waiting.
    fn decide<'a>(
        &self,
        endpoint: WebhookEndpoint,
        body: &'a [u8],
        patience: CacheWait,
    ) -> Result<AdmissionAnswer<'a>, BadReview>;
}

/// The dependencies of the webhook routes.
pub struct WebhookRoutes {
    /// The kinds that the process knows, for metrics.
    pub kinds: Kinds,
    /// Decides reviews.
    pub reviewer: Arc<dyn Reviewer>,
    /// The accepted callers.
    pub callers: Arc<Callers>,
    /// Wakes reviews when the cache holds the OperatorVersion that they wait for.
    pub arrivals: Arc<Arrivals>,
    /// Whether that cache is in sync.
    pub readiness: Readyz,
    /// Bounds.
    pub limits: Limits,
    /// Memory of all bodies.
    pub in_flight: InFlight,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// Longest wait for an OperatorVersion that is not cached yet.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// `timeoutSeconds` of our own webhook configurations, for callers that send none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

pub fn router(routes: WebhookRoutes) -> Router {
    WebhookEndpoint::ALL
        .into_iter()
        .fold(Router::new(), |router, endpoint| {
            let handler =
                move |State(open): State<Arc<RoutesState>>, request: Request| handle(open, endpoint, request);
            router.route(endpoint.path(), post(handler))
        })
        .with_state(Arc::new(RoutesState::of(routes)))
}

/// The webhook's state.
struct RoutesState {
    routes: WebhookRoutes,
    waiting: Arc<Waiting>,
    /// For log lines that unknown callers can cause.
    lines: LineBudget,
    since: Instant,
}

async fn handle(open: Arc<RoutesState>, endpoint: WebhookEndpoint, request: Request) -> Response {
    let start = Instant::now();
    let routes = &open.routes;
    let _counted = Counted::new(&routes.metrics);
    // A span costs as much as its line, and the line of a decision already identifies the review.
    let span = tracing::debug_span!("review", door = endpoint.name());
    let address = request.extensions().get::<Arc<Caller>>().map(|caller| caller.address);
    let response = match open.answer(endpoint, request, start).instrument(span).await {
        Ok(reply) => with_json(reply),
        Err(refusal) => {
            if let Some(cap) = refusal.cap {
                routes.metrics.refused(cap);
            }
            log_refusal(endpoint, address, &refusal, || open.may_log(CallerTrust::Unknown, address));
            refusal.into_response()
        }
    };
    routes.metrics.answered(endpoint.name(), response.status().as_u16(), start.elapsed());
    response
}

impl RoutesState {
    fn of(routes: WebhookRoutes) -> Self {
        let waiting = Waiting::new(routes.limits.waiting);
        Self { routes, waiting, lines: LineBudget::default(), since: Instant::now() }
    }

    /// Whether to log a line about a caller: the number of lines suppressed before it.
    fn may_log(&self, trust: CallerTrust, address: Option<IpAddr>) -> Option<u64> {
        match trust {
            CallerTrust::Known => Some(0),
            CallerTrust::Unknown => self.lines.take(address, self.since.elapsed()),
        }
    }

    async fn answer(
        &self,
        endpoint: WebhookEndpoint,
        request: Request,
        start: Instant,
    ) -> Result<Vec<u8>, Refusal> {
        let routes = &self.routes;
        let (head, body) = request.into_parts();
        let caller = head.extensions.get::<Arc<Caller>>();
        let address = caller.map(|caller| caller.address);
        let certificate = caller.and_then(|caller| caller.certificate.as_ref());
        let trust = match routes.callers.check(address, certificate) {
            Ok(trust) => trust,
            Err(refused) => {
                body::discard(body, &routes.limits).await;
                return Err(refused.into());
            }
        };
        if !routes.readiness.can_decide() {
            body::discard(body, &routes.limits).await;
            return Err(Refusal::not_in_sync());
        }
        let share = routes.in_flight.share(address.filter(|_| trust == CallerTrust::Unknown));
        let mut body = body::read(&head.headers, body, &routes.limits, share, &routes.in_flight).await?;
        if let Some(caller) = caller {
            caller.connection.answering();
        }
        let timeout = duration::timeout_of(head.uri.query()).unwrap_or(DEFAULT_TIMEOUT);
        let deadline = start + LONGEST_WAIT.min(timeout / 2);
        let reply = self.decide(endpoint, &body.bytes, deadline).await?;
        routes.count(endpoint, &reply.record);
        log_decision(endpoint, &reply.record, start, || self.may_log(trust, address));
        let answer = reply.body;
        // The body is done with, and the answer may be read slowly.
        body.share.shrink_to(answer.len());
        if let Some(caller) = caller {
            caller.connection.set_review(body.share);
        }
        Ok(answer)
    }

    /// Decides again when the cache holds the OperatorVersion that admission waits for.
    async fn decide<'a>(
        &self,
        endpoint: WebhookEndpoint,
        body: &'a [u8],
        deadline: Instant,
    ) -> Result<Reply<'a>, BadReview> {
        let reviewer = &self.routes.reviewer;
        let awaited = match reviewer.decide(endpoint, body, CacheWait::Wait)? {
            AdmissionAnswer::Done(reply) => return Ok(reply),
            AdmissionAnswer::Wait(awaited) => awaited,
        };
        match self.waiting.enter(&awaited.namespace, body.len()) {
            Some(_place) => {
                let span = tracing::debug_span!("wait", door = endpoint.name(), operator_version = %awaited);
                let waited = tokio::time::timeout_at(deadline, self.wait(endpoint, body, awaited));
                if let Ok(answer) = waited.instrument(span).await {
                    return answer;
                }
            }
            None => self.routes.metrics.refused(Cap::Waiting),
        }
        match reviewer.decide(endpoint, body, CacheWait::Exhausted)? {
            AdmissionAnswer::Done(reply) => Ok(reply),
            AdmissionAnswer::Wait(awaited) => {
                Err(BadReview(format!("OperatorVersion {awaited} is not known")))
            }
        }
    }

    async fn wait<'a>(
        &self,
        endpoint: WebhookEndpoint,
        body: &'a [u8],
        mut awaited: Awaited,
    ) -> Result<Reply<'a>, BadReview> {
        loop {
            let mut arrival = self.routes.arrivals.expect(&awaited.operator_version);
            loop {
                // It may have arrived since the look-up.
                match self.routes.reviewer.decide(endpoint, body, CacheWait::Wait)? {
                    AdmissionAnswer::Done(reply) => return Ok(reply),
                    AdmissionAnswer::Wait(now) if now != awaited => {
                        awaited = now;
                        break;
                    }
                    AdmissionAnswer::Wait(_) => arrival.next().await,
                }
            }
            // Yields, so that the timeout works whatever the result is.
            tokio::task::yield_now().await;
        }
    }
}

impl WebhookRoutes {
    fn count(&self, endpoint: WebhookEndpoint, record: &DecisionRecord<'_>) {
        let verdict = verdict(record.verdict);
        let mut decision = DecisionLabels {
            door: endpoint.name(),
            // Labels that a caller cannot choose freely.
            kind: kind_name(self.kinds, &record.kind).unwrap_or("other"),
            operation: OPERATIONS.into_iter().find(|o| *o == record.operation.as_str()).unwrap_or("other"),
            rule: "none",
            verdict,
            dry_run: if record.dry_run { "true" } else { "false" },
        };
        if record.rules.is_empty() {
            self.metrics.decided(&decision);
        }
        for rule in &record.rules {
            decision.rule = rule;
            self.metrics.decided(&decision);
        }
        for rule in record.admitted.iter().filter(|_| !record.dry_run) {
            self.metrics.admitted(endpoint.name(), rule);
        }
    }
}

/// Logs refusals of unidentified callers, as they may be the API server; other refusals only go into
/// answers.
fn log_refusal(
    endpoint: WebhookEndpoint,
    address: Option<IpAddr>,
    refusal: &Refusal,
    may_log: impl FnOnce() -> Option<u64>,
) {
    let unauthenticated = refusal.cap == Some(Cap::Unauthenticated);
    if !unauthenticated && !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let Some(left_out) = may_log() else { return };
    let left_out = (left_out > 0).then_some(left_out);
    let (door, code, text) = (endpoint.name(), refusal.status.as_u16(), refusal.text.as_str());
    let address = address.map(tracing::field::display);
    if unauthenticated {
        tracing::info!(door, address, code, text, left_out, "refused");
    } else {
        tracing::debug!(door, address, code, text, left_out, "refused");
    }
}

/// Operations with a metrics label of their own.
const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// Logs denials, mutations and downgraded violations at info; other decisions at debug.
fn log_decision(
    endpoint: WebhookEndpoint,
    record: &DecisionRecord<'_>,
    start: Instant,
    may_log: impl FnOnce() -> Option<u64>,
) {
    let verdict = verdict(record.verdict);
    let DecisionRecord { uid, operation, group, kind, namespace, name, user, rules, plan, dry_run, .. } =
        record;
    let plan = plan.as_deref().unwrap_or_default();
    let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    // The level of a tracing line is a constant, so each level is a line of its own.
    macro_rules! decided {
        ($level:ident, $left_out:expr) => {
            tracing::$level!(
                door = endpoint.name(),
                uid = uid.as_str(),
                operation = operation.as_str(),
                group = group.as_str(),
                kind = kind.as_str(),
                namespace = namespace.as_str(),
                name = name.as_str(),
                user = user.as_str(),
                ?rules,
                verdict,
                plan,
                dry_run,
                micros,
                left_out = $left_out,
                "decided"
            )
        };
    }
    if matches!(record.verdict, DecisionKind::Denied | DecisionKind::Patched) || !record.admitted.is_empty() {
        if let Some(left_out) = may_log() {
            decided!(info, (left_out > 0).then_some(left_out));
        }
    } else {
        decided!(debug, None::<u64>);
    }
}

/// An answer that is not a review.
struct Refusal {
    status: StatusCode,
    text: String,
    cap: Option<Cap>,
    retry: bool,
}

impl Refusal {
    /// The API server retries inside the webhook's timeout, on a new connection, and may so reach a replica
    /// that is in sync.
    fn not_in_sync() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            text: "the cache of Interlock is not in sync yet; try again".to_owned(),
            cap: Some(Cap::NotInSync),
            retry: true,
        }
    }

    fn status_object(&self) -> Vec<u8> {
        let unauthorized = self.status == StatusCode::UNAUTHORIZED;
        let status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "message": self.text,
            "reason": if unauthorized { "Unauthorized" } else { "Forbidden" },
            "code": self.status.as_u16(),
        });
        status.to_string().into_bytes()
    }

    fn into_response(self) -> Response {
        let mut response = match self.cap {
            // The API server shows the message of a Status, but that of a plain text only for some codes.
            Some(Cap::Unauthenticated) => (self.status, with_json(self.status_object())).into_response(),
            _ => (self.status, format!("{}\n", self.text)).into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if self.retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<body::BodyRefused> for Refusal {
    fn from(refused: body::BodyRefused) -> Self {
        let status = refused.status();
        let retry = status == StatusCode::TOO_MANY_REQUESTS;
        let (text, cap) = (refused.to_string(), Some(refused.cap()));
        Self { status, text, cap, retry }
    }
}

impl From<callers::CallerRefused> for Refusal {
    fn from(refused: callers::CallerRefused) -> Self {
        let (text, cap) = (refused.to_string(), Some(Cap::Unauthenticated));
        Self { status: refused.status(), text, cap, retry: false }
    }
}

impl From<BadReview> for Refusal {
    fn from(bad: BadReview) -> Self {
        let (status, cap) = (StatusCode::BAD_REQUEST, Some(Cap::Malformed));
        Self { status, text: bad.to_string(), cap, retry: false }
    }
}

fn with_json(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

fn verdict(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::Allowed => "allowed",
        DecisionKind::Patched => "patched",
        DecisionKind::Denied => "denied",
        DecisionKind::Skipped => "skipped",
    }
}

struct Counted<'a>(&'a Metrics);

impl<'a> Counted<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.in_flight(1);
        Self(metrics)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.in_flight(-1);
    }
}
