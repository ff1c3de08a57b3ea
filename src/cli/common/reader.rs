//! Reads objects with the caller's rights: an unreadable object never counts as absent.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::path::segment;
use kube::api::{Api, DynamicObject, ListParams, TypeMeta};
use kube::core::PartialObjectMeta;
use kube::{Client, Error};
use serde_json::{Value, json};

use super::discovery::ServedResource;
pub(in crate::cli) use super::error::reason as api_message;

/// Objects for each page of a list.
const PAGE: u32 = 500;
/// Retries of a list that the API server cannot give yet: that of a kind whose definition is new, for a
/// second or two.
const MAX_TRIES: u32 = 5;
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The result of a read of one object.
#[derive(Clone, Debug)]
pub(in crate::cli) enum ReadOutcome {
    /// It exists.
    There(Arc<Value>),
    /// The API server answered 404.
    Missing,
    /// It is unknown whether it exists, for this reason.
    Unknown(String),
}

/// What to list.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Selection<'a> {
    /// One namespace; `None` for all.
    pub(in crate::cli) namespace: Option<&'a str>,
    /// Label selector.
    pub(in crate::cli) labels: Option<&'a str>,
    /// Field selector.
    pub(in crate::cli) fields: Option<&'a str>,
    pub(in crate::cli) metadata_only: bool,
}

/// One object.
pub(in crate::cli) async fn get(
    client: &Client,
    resource: &ServedResource,
    namespace: &str,
    name: &str,
) -> ReadOutcome {
    // A reference may be any text, and becomes a part of the path.
    if segment(name).is_err() || !namespace.is_empty() && segment(namespace).is_err() {
        return ReadOutcome::Missing;
    }
    let selection = Selection { namespace: Some(namespace), ..Selection::default() };
    match api(client, resource, &selection).get(name).await {
        Ok(object) => match to_value(object, resource) {
            Ok(value) => ReadOutcome::There(Arc::new(value)),
            Err(error) => ReadOutcome::Unknown(error.to_string()),
        },
        Err(error) if code(&error) == Some(404) => ReadOutcome::Missing,
        Err(error) => ReadOutcome::Unknown(api_message(&error)),
    }
}

/// All objects of a selection; the whole list or an error, never a part of it.
pub(in crate::cli) async fn list(
    client: &Client,
    resource: &ServedResource,
    selection: &Selection<'_>,
) -> Result<Vec<Value>, Error> {
    let mut page = Some(PAGE);
    for _ in 1..MAX_TRIES {
        match pages(client, resource, selection, page).await {
            // The list took longer than the API server keeps its versions.
            Err(error) if code(&error) == Some(410) => page = None,
            Err(error) if code(&error) == Some(429) => tokio::time::sleep(RETRY_PAUSE).await,
            other => return other,
        }
    }
    pages(client, resource, selection, page).await
}

async fn pages(
    client: &Client,
    resource: &ServedResource,
    selection: &Selection<'_>,
    page: Option<u32>,
) -> Result<Vec<Value>, Error> {
    let api = api(client, resource, selection);
    let mut wanted = ListParams {
        label_selector: selection.labels.map(str::to_owned),
        field_selector: selection.fields.map(str::to_owned),
        limit: page,
        ..ListParams::default()
    };
    let mut all = Vec::new();
    loop {
        let (objects, next) = page_of(&api, &wanted, selection.metadata_only).await?;
        for object in objects {
            all.push(to_value(object, resource).map_err(Error::SerdeError)?);
        }
        wanted.continue_token = next.filter(|token| !token.is_empty());
        if wanted.continue_token.is_none() {
            return Ok(all);
        }
    }
}

async fn page_of(
    api: &Api<DynamicObject>,
    wanted: &ListParams,
    metadata_only: bool,
) -> Result<(Vec<DynamicObject>, Option<String>), Error> {
    if !metadata_only {
        let list = api.list(wanted).await?;
        return Ok((list.items, list.metadata.continue_));
    }
    let list = api.list_metadata(wanted).await?;
    let bare = |found: PartialObjectMeta<DynamicObject>| DynamicObject {
        types: None,
        metadata: found.metadata,
        data: json!({}),
    };
    Ok((list.items.into_iter().map(bare).collect(), list.metadata.continue_))
}

fn api(client: &Client, resource: &ServedResource, selection: &Selection<'_>) -> Api<DynamicObject> {
    match selection.namespace.filter(|_| resource.namespaced) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource.api),
        None => Api::all_with(client.clone(), &resource.api),
    }
}

fn to_value(mut object: DynamicObject, resource: &ServedResource) -> Result<Value, serde_json::Error> {
    // Items of lists carry no kind.
    object.types =
        Some(TypeMeta { api_version: resource.api.api_version.clone(), kind: resource.api.kind.clone() });
    serde_json::to_value(object)
}

/// The status code of an answer that is an error.
pub(in crate::cli) fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}
