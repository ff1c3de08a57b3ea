//! How kinds are served: custom ones by the table of definitions, which costs no request, others
//! by discovery.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use interlock_core::api::object::Gvk;
use interlock_core::api::path::is_kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use tokio::time::Instant;

use super::crds::Absence;
use super::supervisor::Definitions;

/// How long a kind of an aggregated API server is remembered: no watch tells when it goes.
const AGGREGATED_FOR: Duration = Duration::from_secs(30);

/// Groups under `k8s.io` that the API server has built in; the others of that name are defined.
const BUILT_IN: [&str; 15] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Whether the API server itself has a group: a kind of it that is not served never will be.
pub fn is_built_in(group: &str) -> bool {
    !group.contains('.') || BUILT_IN.contains(&group)
}

/// A kind that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Plural, as in the path.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// What is known of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is served.
    Served(Kind),
    /// It is not served, and nothing of it is stored: there is no definition of it, or what that
    /// leaves is being removed. It may be served later: the supervisor tells.
    Undefined,
    /// It is not served, though it is defined, so that objects of it may be stored; why not. It
    /// may be served later: the supervisor tells.
    Withheld(Absence),
    /// It is not served, and never will be.
    Never,
    /// The definitions have not been read yet.
    Unsure,
}

/// Answers how kinds are served.
#[derive(Default)]
pub struct Kinds {
    definitions: Definitions,
    /// Found by discovery, and until when that is believed; built-in kinds for ever.
    found: Mutex<HashMap<Gvk, (Kind, Option<Instant>)>>,
}

impl Kinds {
    /// With the table of the supervisor.
    pub fn new(definitions: Definitions) -> Self {
        Self { definitions, found: Mutex::default() }
    }

    /// Looks a kind up. A failed look-up never reads as "not served".
    pub async fn get(&self, client: &Client, gvk: &Gvk) -> Result<Known, kube::Error> {
        // Discovery puts the version into a path.
        if !is_kind(gvk) {
            return Ok(Known::Never);
        }
        if !is_built_in(&gvk.group) {
            match self.definitions.read(|crds| crds.find_exactly(gvk)) {
                None => return Ok(Known::Unsure),
                // What a definition that is being deleted leaves is removed by the API server.
                Some(Ok(usable)) if usable.leaving => return Ok(Known::Undefined),
                Some(Ok(usable)) => {
                    return Ok(Known::Served(Kind { plural: usable.plural, namespaced: usable.namespaced }));
                }
                Some(Err(Absence::Missing)) => {}
                Some(Err(why)) => return Ok(Known::Withheld(why)),
            }
        }
        self.discover(client, gvk).await
    }

    /// By discovery: what is built in, and what aggregated API servers have.
    async fn discover(&self, client: &Client, gvk: &Gvk) -> Result<Known, kube::Error> {
        let remembered = lock(&self.found).get(gvk).cloned();
        if let Some((kind, until)) = remembered
            && until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(Known::Served(kind));
        }
        let resources = match list(client, gvk).await {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error),
        };
        let built_in = is_built_in(&gvk.group);
        let until = (!built_in).then(|| Instant::now() + AGGREGATED_FOR);
        let mut found = lock(&self.found);
        for resource in resources.into_iter().filter(|r| !r.name.contains('/')) {
            let key =
                Gvk { group: gvk.group.clone(), version: gvk.version.clone(), kind: resource.kind.clone() };
            found.insert(key, (Kind { plural: resource.name, namespaced: resource.namespaced }, until));
        }
        Ok(match found.get(gvk) {
            Some((kind, _)) => Known::Served(kind.clone()),
            None if built_in => Known::Never,
            None => Known::Undefined,
        })
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
