//! The webhook paths: body -> admission -> answer, one log line and one count a decision.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{HeaderValue, StatusCode, header};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::body;
use super::duration;
use super::in_flight::InFlight;
use super::limits::Limits;
use crate::admission::request::kind_name;
use crate::admission::{Answer, BadReview, Door, Patience, Record, Reply, VerdictKind};
use crate::telemetry::metrics::{Cap, Decision, Metrics};
use crate::telemetry::readiness::Readiness;

/// Who answers; the server does not know the rules.
pub trait Judge: Send + Sync + 'static {
    /// Decides about one review, without waiting for anything.
    fn judge<'a>(&self, door: Door, body: &'a [u8], patience: Patience) -> Result<Answer<'a>, BadReview>;
}

/// What the doors need.
pub struct Doors {
    /// Who answers.
    pub judge: Arc<dyn Judge>,
    /// Ticks when the cache that the judge looks at has changed.
    pub changes: watch::Receiver<u64>,
    /// Whether that cache is in sync.
    pub readiness: Readiness,
    /// Bounds.
    pub limits: Limits,
    /// Memory of all bodies.
    pub in_flight: InFlight,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// Longest wait for an OperatorVersion that the cache does not show yet.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// `timeoutSeconds` of our own webhook configurations, for callers that do not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Routes of the doors.
pub fn router(doors: Doors) -> Router {
    Door::ALL
        .into_iter()
        .fold(Router::new(), |router, door| {
            let handler =
                move |State(doors): State<Arc<Doors>>, request: Request| enter(doors, door, request);
            router.route(door.path(), post(handler))
        })
        .with_state(Arc::new(doors))
}

async fn enter(doors: Arc<Doors>, door: Door, request: Request) -> Response {
    let start = Instant::now();
    let _counted = Counted::new(&doors.metrics);
    // A span costs as much as its line, and the line of a decision says which review it is of.
    let span = tracing::debug_span!("review", door = door.name());
    let response = match doors.answer(door, request, start).instrument(span).await {
        Ok(reply) => json(reply),
        Err(refusal) => {
            if let Some(cap) = refusal.cap {
                doors.metrics.refused(cap);
            }
            tracing::debug!(
                door = door.name(),
                code = refusal.status.as_u16(),
                text = refusal.text,
                "refused"
            );
            refusal.into_response()
        }
    };
    doors.metrics.answered(door.name(), response.status().as_u16(), start.elapsed());
    response
}

impl Doors {
    async fn answer(&self, door: Door, request: Request, start: Instant) -> Result<Vec<u8>, Refusal> {
        let (head, body) = request.into_parts();
        if !self.readiness.can_judge() {
            body::discard(body, &self.limits).await;
            return Err(Refusal::not_in_sync());
        }
        let body = body::read(&head.headers, body, &self.limits, &self.in_flight).await?;
        let timeout = duration::timeout_of(head.uri.query()).unwrap_or(DEFAULT_TIMEOUT);
        let deadline = start + LONGEST_WAIT.min(timeout / 2);
        let reply = self.decide(door, &body.bytes, deadline).await?;
        self.tell(door, &reply.record, start);
        Ok(reply.body)
    }

    /// Asks again at every change of the cache while admission waits for it.
    async fn decide<'a>(
        &self,
        door: Door,
        body: &'a [u8],
        deadline: Instant,
    ) -> Result<Reply<'a>, BadReview> {
        let mut changes = self.changes.clone();
        changes.mark_unchanged();
        let missing = match self.judge.judge(door, body, Patience::Wait)? {
            Answer::Done(reply) => return Ok(reply),
            Answer::Wait(missing) => missing,
        };
        let span = tracing::debug_span!("wait", door = door.name(), operator_version = %missing);
        let waited = tokio::time::timeout_at(deadline, async {
            while changes.changed().await.is_ok() {
                if let Answer::Done(reply) = self.judge.judge(door, body, Patience::Wait)? {
                    return Ok(reply);
                }
            }
            // Nobody fills the cache any more: nothing will come.
            std::future::pending().await
        });
        if let Ok(answer) = waited.instrument(span).await {
            return answer;
        }
        match self.judge.judge(door, body, Patience::Exhausted)? {
            Answer::Done(reply) => Ok(reply),
            Answer::Wait(missing) => Err(BadReview(format!("OperatorVersion {missing} is not known"))),
        }
    }

    fn tell(&self, door: Door, record: &Record<'_>, start: Instant) {
        let verdict = verdict(record.verdict);
        let mut decision = Decision {
            door: door.name(),
            // Labels that a caller cannot choose freely.
            kind: kind_name(&record.kind).unwrap_or("other"),
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
            self.metrics.admitted(door.name(), rule);
        }
        tell_log(door, record, start);
    }
}

/// Operations that are told apart in metrics.
const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// Who was refused, what was changed for whom and what was let through is worth a line; the rest
/// is not.
fn tell_log(door: Door, record: &Record<'_>, start: Instant) {
    let verdict = verdict(record.verdict);
    let Record { uid, operation, group, kind, namespace, name, user, rules, plan, dry_run, .. } = record;
    let plan = plan.as_deref().unwrap_or_default();
    let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    // The level of a tracing line is a constant, so each level is a line of its own.
    macro_rules! decided {
        ($level:ident) => {
            tracing::$level!(
                door = door.name(),
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
                "decided"
            )
        };
    }
    if matches!(record.verdict, VerdictKind::Denied | VerdictKind::Patched) || !record.admitted.is_empty() {
        decided!(info);
    } else {
        decided!(debug);
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
    /// The API server tries again inside the webhook's timeout, on a new connection, and may
    /// so reach a replica that is in sync.
    fn not_in_sync() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            text: "Interlock has not read yet what it decides with; try again".to_owned(),
            cap: Some(Cap::NotInSync),
            retry: true,
        }
    }

    fn into_response(self) -> Response {
        let mut response = (self.status, format!("{}\n", self.text)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if self.retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<body::Refused> for Refusal {
    fn from(refused: body::Refused) -> Self {
        let status = refused.status();
        let retry = status == StatusCode::TOO_MANY_REQUESTS;
        Self { status, text: refused.to_string(), cap: Some(refused.cap()), retry }
    }
}

impl From<BadReview> for Refusal {
    fn from(bad: BadReview) -> Self {
        let (status, cap) = (StatusCode::BAD_REQUEST, Some(Cap::Malformed));
        Self { status, text: bad.to_string(), cap, retry: false }
    }
}

fn json(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

fn verdict(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Allowed => "allowed",
        VerdictKind::Patched => "patched",
        VerdictKind::Denied => "denied",
        VerdictKind::Skipped => "skipped",
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
