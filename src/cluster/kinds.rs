//! Which kinds the API server serves, under which plural, and whether in namespaces.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use kube::api::{Api, ListParams};

use crate::api::object::Gvk;

/// How long a kind that was not served is taken as not served; one that is served is
/// remembered until a request for it ends in 404.
const ABSENT_FOR: Duration = Duration::from_secs(1);

/// A kind that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Plural, as in the path.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// Remembers discovery by group and version.
#[derive(Default)]
pub struct Kinds {
    found: Mutex<HashMap<Gvk, Kind>>,
    absent: Mutex<HashMap<Gvk, Instant>>,
}

impl Kinds {
    /// Looks a kind up; `None` when the server does not serve it.
    pub async fn get(&self, client: &Client, gvk: &Gvk) -> Result<Option<Kind>, kube::Error> {
        if let Some(kind) = lock(&self.found).get(gvk) {
            return Ok(Some(kind.clone()));
        }
        if lock(&self.absent).get(gvk).is_some_and(|at| at.elapsed() < ABSENT_FOR) {
            return Ok(None);
        }
        let resources = match list(client, gvk).await {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut found = lock(&self.found);
        for resource in resources.into_iter().filter(|r| !r.name.contains('/')) {
            let key =
                Gvk { group: gvk.group.clone(), version: gvk.version.clone(), kind: resource.kind.clone() };
            found.insert(key, Kind { plural: resource.name, namespaced: resource.namespaced });
        }
        let kind = found.get(gvk).cloned();
        if kind.is_none() {
            lock(&self.absent).insert(gvk.clone(), Instant::now());
        }
        Ok(kind)
    }

    /// Whether a CustomResourceDefinition for the kind is there that does not serve it yet.
    pub async fn is_coming(&self, client: &Client, gvk: &Gvk) -> Result<bool, kube::Error> {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let found = api.list(&ListParams::default()).await?;
        Ok(found.items.iter().any(|crd| {
            let serves = crd.spec.versions.iter().any(|v| v.name == gvk.version && v.served);
            let going = crd.metadata.deletion_timestamp.is_some();
            crd.spec.group == gvk.group && crd.spec.names.kind == gvk.kind && serves && !going
        }))
    }

    /// Forgets a kind, after a request for it found nothing at its path.
    pub fn forget(&self, gvk: &Gvk) {
        lock(&self.found).remove(gvk);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn list(client: &Client, gvk: &Gvk) -> Result<APIResourceList, kube::Error> {
    if gvk.group.is_empty() {
        client.list_core_api_resources(&gvk.version).await
    } else {
        client.list_api_group_resources(&gvk.api_version()).await
    }
}
