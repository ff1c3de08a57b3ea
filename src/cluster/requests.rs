//! Sends requests to the API server, with a limit on the writes into each namespace.

use std::sync::Arc;

use http::{Method, Request};
use interlock_core::effect::ApiFailure;
use kube::Client;
use serde_json::Value;

use super::write_limit::WriteLimit;

/// Name under which fields are owned; merge patches record it in `managedFields`.
pub use interlock_core::api::meta::{APPLY_MANAGER, FIELD_MANAGER};

/// Field validation of writes. The API server drops unknown fields in any case; for warnings, which this
/// process would not read, it checks each decoded object for them.
const VALIDATION: &str = "Ignore";

/// Sends requests as one user.
#[derive(Clone)]
pub struct ApiRequests {
    client: Client,
    writes: Option<Arc<WriteLimit>>,
}

impl ApiRequests {
    /// As the user of this client, or as users that it impersonates.
    pub fn new(client: Client) -> Self {
        Self { client, writes: None }
    }

    /// The same, with few writes in flight for one namespace.
    pub fn limited(client: Client) -> Self {
        Self { client, writes: Some(Arc::default()) }
    }

    /// What limits the writes of a namespace, if anything does.
    pub fn writes(&self) -> Option<&Arc<WriteLimit>> {
        self.writes.as_ref()
    }

    /// The client, for requests other than object writes.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one request, as `user` where it impersonates one. A limited write waits until it is within the
    /// share of its namespace.
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
        let bytes = match body {
            Some(body) => serde_json::to_vec(body).map_err(|error| local(error.to_string()))?,
            None => Vec::new(),
        };
        let _share = match &self.writes {
            Some(writes) if method != Method::GET => writes.enter(path, bytes.len()).await,
            _ => None,
        };
        let mut request = Request::builder().method(method).uri(format!("{path}{query}"));
        if !content_type.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content_type);
        }
        if let Some(user) = user {
            request = request.header("Impersonate-User", user);
        }
        let request = request.body(bytes).map_err(|error| local(error.to_string()))?;
        self.client.request::<Value>(request).await.map_err(|error| failure(&error))
    }
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
