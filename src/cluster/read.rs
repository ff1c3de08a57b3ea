//! Reads of single objects and small lists, of kinds without a watch.

use http::{Method, Request};
use interlock_core::effect::ApiFailure;
use kube::Client;
use serde_json::Value;

use super::{path, requests};

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

async fn read(client: &Client, path: &str) -> Result<Value, ApiFailure> {
    let request = Request::builder().method(Method::GET).uri(path).body(Vec::new());
    let request = request.map_err(|error| requests::local(error.to_string()))?;
    client.request::<Value>(request).await.map_err(|error| requests::failure(&error))
}
