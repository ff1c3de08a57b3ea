//! Sends requests to the API server, within a limit on those in flight.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use http::{Method, Request};
use interlock_core::effect::ApiFailure;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;
use tokio::sync::watch;

use super::lease::Leadership;
use super::request_limit::RequestLimit;
use super::warnings;

/// Name under which fields are owned; merge patches record it in `managedFields`.
pub use interlock_core::api::meta::{APPLY_MANAGER, FIELD_MANAGER};

/// Field validation of the process's own writes. The API server drops unknown fields in any case; for warnings, it
/// checks each decoded object for them.
const VALIDATION: &str = "Ignore";

/// What was answered to a write, and the warnings of the API server about it.
pub struct WarnedAnswer {
    /// The body.
    pub value: Value,
    pub warnings: Vec<String>,
}

/// Sends requests as one user.
#[derive(Clone)]
pub struct ApiRequests {
    client: Client,
    limit: Arc<RequestLimit>,
    /// Under which no write is sent any more once it does not hold.
    fence: Option<Fence>,
}

/// A stretch of leading.
#[derive(Clone)]
pub struct Fence {
    /// Whether this process leads.
    pub leadership: watch::Receiver<Leadership>,
    /// The leader epoch; outside of one nothing is sent.
    pub epoch: Option<u64>,
}

impl Fence {
    /// Whether the epoch lasts.
    pub fn holds(&self) -> bool {
        self.epoch.is_some() && self.leadership.borrow().leader_epoch() == self.epoch
    }
}

impl ApiRequests {
    /// As the user of this client, or as users that it impersonates.
    pub fn new(client: Client, limit: impl Into<Arc<RequestLimit>>) -> Self {
        Self { client, limit: limit.into(), fence: None }
    }

    /// The same, whose writes are sent within a stretch of leading: one that waits for its turn may outlast it.
    #[must_use]
    pub fn within(&self, fence: Fence) -> Self {
        Self { fence: Some(fence), ..self.clone() }
    }

    /// The client, for requests other than object writes.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one request, as `user` where it impersonates one.
    pub async fn send(
        &self,
        user: Option<&str>,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiFailure> {
        let query = match method {
            Method::POST | Method::PUT | Method::PATCH => {
                format!("?fieldManager={FIELD_MANAGER}&fieldValidation={VALIDATION}")
            }
            _ => String::new(),
        };
        self.request(user, method, (path, &query), content_type, body).await
    }

    /// The same for a write of what others have written: the API server tells of fields that it drops.
    pub async fn send_warned(
        &self,
        user: Option<&str>,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<WarnedAnswer, ApiFailure> {
        let query = format!("?fieldManager={FIELD_MANAGER}&fieldValidation=Warn");
        self.exchange(user, method, (path, &query), content_type, Some(body)).await
    }

    /// Server-side apply of the fields that this process owns.
    pub async fn apply(
        &self,
        user: Option<&str>,
        path: &str,
        object: &Value,
        force: bool,
    ) -> Result<Value, ApiFailure> {
        let query = format!("?fieldManager={APPLY_MANAGER}&fieldValidation={VALIDATION}&force={force}");
        self.request(user, Method::PATCH, (path, &query), APPLY_PATCH, Some(object)).await
    }

    async fn request(
        &self,
        user: Option<&str>,
        method: Method,
        (path, query): (&str, &str),
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiFailure> {
        self.exchange(user, method, (path, query), content_type, body).await.map(|answer| answer.value)
    }

    /// Sends one request as soon as it is within the limit.
    async fn exchange(
        &self,
        user: Option<&str>,
        method: Method,
        (path, query): (&str, &str),
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<WarnedAnswer, ApiFailure> {
        let request = Self::build(user, method, (path, query), content_type, body)?;
        let mut share = self.limit.enter(path, request.body().len()).await;
        let fence = self.fence.as_ref().filter(|_| request.method() != Method::GET);
        let sent = within_fence(fence, self.client.send(request.map(Body::from)));
        let Some(answer) = share.hold(sent).await else {
            return Err(local("another process may lead: the write is not sent any more".to_owned()));
        };
        let (head, body) = answer.map_err(|error| failure(&error))?.into_parts();
        share.answered(head.status, &head.headers);
        let body = body.collect_bytes().await.map_err(|error| failure(&error))?;
        if !head.status.is_success() {
            let status: Status = serde_json::from_slice(&body).unwrap_or_else(|_| {
                let text = String::from_utf8_lossy(&body);
                Status::failure(text.trim(), "").with_code(head.status.as_u16())
            });
            return Err(failure(&kube::Error::Api(status.boxed())));
        }
        let value = serde_json::from_slice(&body).map_err(|error| local(error.to_string()))?;
        Ok(WarnedAnswer { value, warnings: warnings::of(&head.headers) })
    }

    fn build(
        user: Option<&str>,
        method: Method,
        (path, query): (&str, &str),
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Request<Vec<u8>>, ApiFailure> {
        let bytes = match body {
            Some(body) => serde_json::to_vec(body).map_err(|error| local(error.to_string()))?,
            None => Vec::new(),
        };
        let mut request = Request::builder().method(method).uri(format!("{path}{query}"));
        if !content_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        if let Some(user) = user {
            request = request.header("Impersonate-User", user);
        }
        request.body(bytes).map_err(|error| local(error.to_string()))
    }
}

/// The answer to a write; `None` once its fence does not hold. A request waits for a connection, and is sent again on
/// another one where its own is closed: each step towards it is one of this future.
async fn within_fence<F: Future>(fence: Option<&Fence>, sent: F) -> Option<F::Output> {
    let mut sent = pin!(sent);
    poll_fn(|task| match fence.is_some_and(|fence| !fence.holds()) {
        true => Poll::Ready(None),
        false => sent.as_mut().poll(task).map(Some),
    })
    .await
}

/// Content type of an object.
pub const JSON: &str = "application/json";
/// Content type of a JSON merge patch (RFC 7396).
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// Content type of a server-side apply; JSON is YAML.
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A failure inside this process, before any request.
pub fn local(message: String) -> ApiFailure {
    ApiFailure { code: 0, reason: "Local".to_owned(), message, namespace_terminating: false }
}

/// The API server's Status, or that no answer came.
pub fn failure(error: &kube::Error) -> ApiFailure {
    let kube::Error::Api(status) = error else { return local(error.to_string()) };
    let namespace_terminating = status
        .details
        .as_ref()
        .is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
    ApiFailure {
        code: status.code,
        reason: status.reason.clone(),
        message: status.message.clone(),
        namespace_terminating,
    }
}
