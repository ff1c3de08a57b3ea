//! An API server that gives the answers it was told to, for tests.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::Response;
use kube::Client;
use kube::client::Body;
use serde_json::json;

/// A client whose requests get these answers, one after another; further ones get none.
pub(crate) fn client(answers: impl IntoIterator<Item = (u16, String)>) -> Client {
    let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
    let service = tower::service_fn(move |_: http::Request<Body>| {
        let answer = answers.lock().unwrap().pop_front();
        async move {
            let Some((code, text)) = answer else { return std::future::pending().await };
            let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
            Ok::<_, Infallible>(response.unwrap())
        }
    });
    Client::new(service, "default")
}

/// An answer with a list of ConfigMaps of these names.
pub(crate) fn listed(names: &[&str]) -> (u16, String) {
    let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
    let list = json!({
        "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items,
    });
    (200, list.to_string())
}

/// An answer that refuses.
pub(crate) fn refused() -> (u16, String) {
    let status =
        json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"});
    (403, status.to_string())
}
