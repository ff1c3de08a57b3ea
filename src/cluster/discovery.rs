//! Discovery: custom kinds by the table of definitions, which costs no request, others by the discovery
//! API.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use interlock_core::api::object::Gvk;
use interlock_core::api::path::is_kind;
use interlock_core::api::resource::Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use tokio::time::Instant;

use super::crds::Absence;
use super::supervisor::Definitions;

/// How long a kind of an aggregated API server is cached: no watch reports its removal.
const AGGREGATED_FOR: Duration = Duration::from_secs(30);

/// Where histories and large specs are kept.
const CONTROLLER_REVISIONS: Resource =
    Resource::built_in("apps", &["v1"], "ControllerRevision", "controllerrevisions");

/// Groups under `k8s.io` that are built into the API server; CRDs define the others of that name.
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

/// Whether a group is built into the API server: an unserved kind of it never will be served.
pub fn is_built_in(group: &str) -> bool {
    !group.contains('.') || BUILT_IN.contains(&group)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// Plural, as in the path.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// The result of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindLookup {
    Served(ServedKind),
    /// It is not served, and none of its objects is stored: it has no definition, or one whose last objects
    /// are being removed. It may be served later: the supervisor reports that.
    Undefined,
    /// It is not served, though it is defined, so that objects of it may be stored; the reason. It may be
    /// served later: the supervisor reports that.
    NotServed(Absence),
    /// It is not served, and never will be.
    NeverServed,
    /// The definitions have not been read yet.
    Unknown,
}

/// Looks up how kinds are served.
pub struct KindDiscovery {
    definitions: Definitions,
    /// Results of discovery, and their expiry; built-in kinds never expire.
    found: Mutex<HashMap<Gvk, (ServedKind, Option<Instant>)>>,
}

impl Default for KindDiscovery {
    fn default() -> Self {
        Self::new(Definitions::default())
    }
}

impl KindDiscovery {
    /// With the table of the supervisor.
    pub fn new(definitions: Definitions) -> Self {
        // What every API server has, and a 404 takes back.
        let built_in =
            crate::kinds::all().iter().map(|kind| &kind.resource).filter(|resource| resource.built_in);
        let built_in = built_in.chain([&CONTROLLER_REVISIONS]);
        let served = |resource: &Resource| ServedKind {
            plural: resource.plural.to_owned(),
            namespaced: resource.namespaced,
        };
        let found = built_in.map(|resource| (resource.gvk(), (served(resource), None)));
        Self { definitions, found: Mutex::new(found.collect()) }
    }

    /// Looks a kind up. A failed look-up never reads as "not served".
    pub async fn get(&self, client: &Client, gvk: &Gvk) -> Result<KindLookup, kube::Error> {
        // Discovery puts the version into a path.
        if !is_kind(gvk) {
            return Ok(KindLookup::NeverServed);
        }
        if !is_built_in(&gvk.group) {
            match self.definitions.read(|crds| crds.find_exactly(gvk)) {
                None => return Ok(KindLookup::Unknown),
                // The API server removes the objects of a definition that is being deleted.
                Some(Ok(usable)) if usable.terminating => return Ok(KindLookup::Undefined),
                Some(Ok(usable)) => {
                    return Ok(KindLookup::Served(ServedKind {
                        plural: usable.plural,
                        namespaced: usable.namespaced,
                    }));
                }
                Some(Err(Absence::Missing)) => {}
                Some(Err(why)) => return Ok(KindLookup::NotServed(why)),
            }
        }
        self.discover(client, gvk).await
    }

    /// By the discovery API: built-in kinds and those of aggregated API servers.
    async fn discover(&self, client: &Client, gvk: &Gvk) -> Result<KindLookup, kube::Error> {
        let remembered = lock(&self.found).get(gvk).cloned();
        if let Some((kind, until)) = remembered
            && until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(KindLookup::Served(kind));
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
            found.insert(key, (ServedKind { plural: resource.name, namespaced: resource.namespaced }, until));
        }
        Ok(match found.get(gvk) {
            Some((kind, _)) => KindLookup::Served(kind.clone()),
            None if built_in => KindLookup::NeverServed,
            None => KindLookup::Undefined,
        })
    }

    /// Drops a kind from the cache, after a 404 at its path.
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
