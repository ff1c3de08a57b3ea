//! Reads of single objects and small lists, of kinds without a watch.

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use interlock_core::effect::ApiFailure;
use kube::Client;
use kube::client::Body;
use kube::core::response::Status;
use serde_json::Value;

use super::{path, requests};

/// The most objects that a bounded list reads.
pub const MOST_OBJECTS: usize = 500;
const MOST_BYTES: usize = 16 << 20;

/// The object at a path of [`path::of`]; `None` for 404.
pub async fn get(client: &Client, path: &str) -> Result<Option<Value>, ApiFailure> {
    match read(client, path).await {
        Ok(object) => Ok(Some(object)),
        Err(failure) if failure.code == 404 => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The objects of the collection at a path of [`path::of`], filtered by labels if given.
pub async fn list(client: &Client, path: &str, labels: &str) -> Result<Vec<Value>, ApiFailure> {
    let path = match labels {
        "" => path.to_owned(),
        labels => format!("{path}?labelSelector={}", path::query(labels)),
    };
    match read(client, &path).await?["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

/// A list that was read within its limits.
#[derive(Debug, PartialEq)]
pub enum BoundedList {
    /// All of its objects.
    Whole(Vec<Value>),
    /// It has more than 500 objects, or than 16 MiB.
    TooLarge,
}

/// The same as [`list`], for labels that anybody may set on any number of objects.
pub async fn list_bounded(client: &Client, path: &str, labels: &str) -> Result<BoundedList, ApiFailure> {
    bounded(client, &format!("{path}?limit={MOST_OBJECTS}&labelSelector={}", path::query(labels))).await
}

/// The same by a field selector.
pub async fn list_by_field(client: &Client, path: &str, fields: &str) -> Result<BoundedList, ApiFailure> {
    bounded(client, &format!("{path}?limit={MOST_OBJECTS}&fieldSelector={}", path::query(fields))).await
}

async fn bounded(client: &Client, path: &str) -> Result<BoundedList, ApiFailure> {
    let request = Request::builder().method(Method::GET).uri(path).body(Body::empty());
    let request = request.map_err(|error| requests::local(error.to_string()))?;
    let response = client.send(request).await.map_err(|error| requests::failure(&error))?;
    let status = response.status();
    let body = match Limited::new(response.into_body(), MOST_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Ok(BoundedList::TooLarge),
        Err(error) => return Err(requests::local(error.to_string())),
    };
    if !status.is_success() {
        return Err(refusal(status, &body));
    }
    let mut list: Value =
        serde_json::from_slice(&body).map_err(|error| requests::local(error.to_string()))?;
    if list["metadata"]["continue"].as_str().is_some_and(|token| !token.is_empty()) {
        return Ok(BoundedList::TooLarge);
    }
    match list["items"].take() {
        Value::Array(items) => Ok(BoundedList::Whole(items)),
        _ => Ok(BoundedList::Whole(Vec::new())),
    }
}

/// The API server's Status; a proxy before it may answer another text.
fn refusal(code: StatusCode, body: &[u8]) -> ApiFailure {
    let status = serde_json::from_slice::<Status>(body).unwrap_or_else(|_| {
        Status::failure(&format!("the server answers {code}"), "").with_code(code.as_u16())
    });
    requests::failure(&kube::Error::Api(status.boxed()))
}

async fn read(client: &Client, path: &str) -> Result<Value, ApiFailure> {
    let request = Request::builder().method(Method::GET).uri(path).body(Vec::new());
    let request = request.map_err(|error| requests::local(error.to_string()))?;
    client.request::<Value>(request).await.map_err(|error| requests::failure(&error))
}
