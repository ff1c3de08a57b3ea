//! Requests of a bare client that must succeed.

use http::{Method, Request};
use serde_json::Value;

/// Sends an object, as a merge patch where it is a PATCH; what is answered.
pub async fn send(client: &kube::Client, method: Method, path: &str, object: &Value) -> Value {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = serde_json::to_vec(object).expect("JSON");
    let request = Request::builder().method(method).uri(path).header("Content-Type", content);
    let answer = client.request::<Value>(request.body(body).expect("a request")).await;
    answer.unwrap_or_else(|error| panic!("{path}: {error}"))
}
