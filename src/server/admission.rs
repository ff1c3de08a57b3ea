//! Answers reviews: the pure rules, on the cluster cache.

use std::sync::{Arc, OnceLock};

use interlock_core::admission::lister::{CacheState, Lister, PackageUsers};
use interlock_core::admission::{self, AdmissionAnswer, BadReview, CacheWait, Config, WebhookEndpoint};
use interlock_core::api::interlock::Actions;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::data_plane::flavor::gateway_ref::GatewayRef;
use interlock_core::kinds::data_plane::flavor::inventory::{FlavorDependent, GatewayContext};
use interlock_core::kinds::data_plane::flavor::sources::FlavorSource;
use interlock_core::package::Package;
use tokio::sync::watch;

use super::webhook_routes::Judge;
use crate::cluster::crds::Absence;
use crate::cluster::supervisor::{self as capability, CapabilityPhase, CapabilitySnapshot, WatchState};

/// The rules, a lister and a configuration.
pub struct Admission {
    /// Cross-object facts.
    pub view: Arc<dyn Lister + Send + Sync>,
    /// Set once the process knows its own user; until then a gate keeps the webhook at 503.
    pub config: Arc<OnceLock<Config>>,
    /// Whether the cache is complete.
    pub capabilities: watch::Receiver<Arc<CapabilitySnapshot>>,
}

/// The capability of the kinds that admission guards.
const CAPABILITY: &str = "instances";
/// The capabilities of the kinds that affect the flavors of gateways.
const INVENTORY: [&str; 2] = ["flavors", "routes"];

impl Admission {
    fn cache(&self) -> CacheState {
        let snapshot = self.capabilities.borrow();
        match snapshot.get(CAPABILITY).map(|status| &status.answer) {
            // A closed gate answers "not yet" before this code.
            Some(capability::UnavailableAnswer::Judge | capability::UnavailableAnswer::NotYet) | None => {
                CacheState::Synced
            }
            Some(capability::UnavailableAnswer::InObjectOnly(why)) => CacheState::Partial(why.clone()),
            Some(capability::UnavailableAnswer::Allow(why)) => CacheState::Unavailable(why.clone()),
        }
    }

    /// Kinds that affect flavors and are not cached, with the reason. Unserved kinds have no objects; the
    /// contents of unlisted kinds are unknown.
    fn blind(&self) -> Vec<String> {
        let snapshot = self.capabilities.borrow();
        let mut blind = Vec::new();
        for status in INVENTORY.iter().filter_map(|name| snapshot.get(name)) {
            match status.state {
                CapabilityPhase::Running(_)
                | CapabilityPhase::Degraded(..)
                | CapabilityPhase::Draining(_)
                | CapabilityPhase::Unknown(Some(_)) => {
                    let hidden = status.kinds.iter().filter(|kind| !is_seen(&kind.sight));
                    blind.extend(hidden.map(|kind| format!("{} ({})", kind.name, kind.sight)));
                }
                _ => blind.push(format!("{} ({})", status.name, status.state.message())),
            }
        }
        blind
    }
}

fn is_seen(sight: &WatchState) -> bool {
    matches!(sight, WatchState::Synced | WatchState::Absent(Absence::Missing))
}

/// A lister, and the present state of its cache.
struct Seen<'a> {
    view: &'a dyn Lister,
    cache: CacheState,
    admission: &'a Admission,
}

impl Lister for Seen<'_> {
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>> {
        self.view.operator_version(key)
    }

    fn left_out(&self, operator_version: &NamespacedName) -> Option<String> {
        self.view.left_out(operator_version)
    }

    fn users_of(&self, operator_version: &NamespacedName) -> PackageUsers {
        self.view.users_of(operator_version)
    }

    fn namespace_terminating(&self, namespace: &str) -> bool {
        self.view.namespace_terminating(namespace)
    }

    fn actions(&self, namespace: &str) -> Actions {
        self.view.actions(namespace)
    }

    fn around(&self, gateway: &GatewayRef) -> GatewayContext {
        // Check for uncached kinds first: a kind that is listed in between would otherwise count as empty.
        let blind = self.admission.blind();
        let around = self.view.around(gateway);
        if blind.is_empty() {
            return around;
        }
        GatewayContext { routes: Arc::new(around.routes.hiding(blind)), ..around }
    }

    fn fed_by(&self, source: &FlavorSource) -> Vec<FlavorDependent> {
        self.view.fed_by(source)
    }

    fn overrides_guarded(&self) -> Result<(), String> {
        self.view.overrides_guarded()
    }

    fn cache(&self) -> CacheState {
        self.cache.clone()
    }
}

impl Judge for Admission {
    fn judge<'a>(
        &self,
        door: WebhookEndpoint,
        body: &'a [u8],
        patience: CacheWait,
    ) -> Result<AdmissionAnswer<'a>, BadReview> {
        let Some(config) = self.config.get() else {
            return Err(BadReview("Interlock does not know yet who it is; try again".to_owned()));
        };
        let view = Seen { view: self.view.as_ref(), cache: self.cache(), admission: self };
        admission::answer(door, body, &view, config, patience)
    }
}
