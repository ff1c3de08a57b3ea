//! Requests of a bare client that must succeed.

use http::{Method, Request};
use interlock_core::api::meta;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::{Value, json};

use crate::support::Client;

/// Sends an object, as a merge patch where it is a PATCH; what is answered.
pub async fn send(client: &kube::Client, method: Method, path: &str, object: &Value) -> Value {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = serde_json::to_vec(object).expect("JSON");
    let request = Request::builder().method(method).uri(path).header("Content-Type", content);
    let answer = client.request::<Value>(request.body(body).expect("a request")).await;
    answer.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Who holds the lease of the controllers, and for how many seconds.
#[allow(dead_code, reason = "no benchmark needs all of it")]
pub fn lead(admin: &Client, holder: &str, seconds: u32) {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", meta::NAMESPACE);
    let leases = admin.read(&path).ok();
    let name = leases["items"][0]["metadata"]["name"].as_str().expect("a lease").to_owned();
    let now = MicroTime(Timestamp::now());
    let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now});
    admin.merge_patch(&format!("{path}/{name}"), &json!({"spec": spec})).ok();
}
