//! Answers reviews: the pure rules, on the cluster cache.

use std::sync::{Arc, OnceLock};

use interlock_core::admission;
use interlock_core::admission::kind::GuardedKind;
use interlock_core::admission::lister::{CacheState, KindListers, Lister, Overridden};
use interlock_core::admission::{AdmissionAnswer, BadReview, CacheWait, Config, WebhookEndpoint};
use interlock_core::api::interlock::Actions;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::SpecHash;
use interlock_kong::data_plane::GatewayLister;
use interlock_kong::data_plane::flavor::gateway_ref::GatewayRef;
use interlock_kong::data_plane::flavor::inventory::{FlavorDependent, GatewayContext};
use interlock_kong::data_plane::flavor::sources::FlavorSource;
use jiff::Timestamp;
use tokio::sync::watch;

use super::webhook_routes::Reviewer;
use crate::cluster::crds::Absence;
use crate::cluster::supervisor::{self as capability, CapabilityPhase, CapabilitySnapshot, WatchState};

/// The rules, a lister and a configuration.
pub struct Admission {
    /// The kinds whose requests the rules decide on.
    pub kinds: Arc<[&'static GuardedKind]>,
    /// The cache without its sync state.
    pub lister: Arc<dyn Lister + Send + Sync>,
    /// Set once the process knows its own user; until then a gate keeps the webhook at 503.
    pub config: Arc<OnceLock<Config>>,
    /// Whether the cache is complete.
    pub capabilities: watch::Receiver<Arc<CapabilitySnapshot>>,
}

/// The capabilities of the kinds that affect the flavors of gateways.
const INVENTORY: [&str; 2] = ["flavors", "routes"];

/// The gateways of the cache, and the kinds that it lacks.
pub struct CurrentGateways {
    /// The cache.
    pub gateways: Arc<dyn GatewayLister>,
    /// The watch states of the kinds.
    pub capabilities: watch::Receiver<Arc<CapabilitySnapshot>>,
}

impl CurrentGateways {
    /// Kinds that affect flavors and are not cached, with the reason. Unserved kinds have no objects; the
    /// contents of unlisted kinds are unknown.
    fn unlisted(&self) -> Vec<String> {
        let snapshot = self.capabilities.borrow();
        let mut unlisted = Vec::new();
        for status in INVENTORY.iter().filter_map(|name| snapshot.get(name)) {
            match status.state {
                CapabilityPhase::Running(_)
                | CapabilityPhase::Degraded(..)
                | CapabilityPhase::Outdated(..)
                | CapabilityPhase::Draining(_)
                | CapabilityPhase::Unknown(Some(_)) => {
                    let hidden = status.kinds.iter().filter(|kind| !is_cached(&kind.watch_state));
                    unlisted.extend(hidden.map(|kind| format!("{} ({})", kind.name, kind.watch_state)));
                }
                _ => unlisted.push(format!("{} ({})", status.name, status.state.message())),
            }
        }
        unlisted
    }
}

fn is_cached(watch_state: &WatchState) -> bool {
    matches!(watch_state, WatchState::Synced | WatchState::Absent(Absence::Missing))
}

impl GatewayLister for CurrentGateways {
    fn context_of(&self, gateway: &GatewayRef) -> GatewayContext {
        // Check for uncached kinds first: a kind that is listed in between would otherwise count as empty.
        let unlisted = self.unlisted();
        let gateway_context = self.gateways.context_of(gateway);
        if unlisted.is_empty() {
            return gateway_context;
        }
        GatewayContext { routes: Arc::new(gateway_context.routes.with_unlisted(unlisted)), ..gateway_context }
    }

    fn live_spec(&self, data_plane: &NamespacedName, uid: &str, hash: &SpecHash) -> Option<String> {
        self.gateways.live_spec(data_plane, uid, hash)
    }

    fn dependents(&self, source: &FlavorSource) -> Vec<FlavorDependent> {
        self.gateways.dependents(source)
    }

    fn overrides_guarded(&self) -> Result<(), String> {
        self.gateways.overrides_guarded()
    }
}

impl Lister for Admission {
    fn actions(&self, namespace: &str) -> Actions {
        self.lister.actions(namespace)
    }

    fn kinds(&self) -> &KindListers {
        self.lister.kinds()
    }

    fn overridden(&self, of: Overridden<'_>) -> Option<String> {
        self.lister.overridden(of)
    }

    fn cache(&self, capability: &str) -> CacheState {
        let snapshot = self.capabilities.borrow();
        match snapshot.get(capability).map(|status| &status.answer) {
            // A closed gate answers "not yet" before this code.
            Some(capability::UnavailableAnswer::Judge | capability::UnavailableAnswer::NotYet) | None => {
                CacheState::Synced
            }
            Some(capability::UnavailableAnswer::InObjectOnly(why)) => CacheState::Partial(why.clone()),
            Some(capability::UnavailableAnswer::Allow(why)) => CacheState::Unavailable(why.clone()),
        }
    }
}

impl Reviewer for Admission {
    fn decide<'a>(
        &self,
        endpoint: WebhookEndpoint,
        body: &'a [u8],
        cache_wait: CacheWait,
    ) -> Result<AdmissionAnswer<'a>, BadReview> {
        let Some(config) = self.config.get() else {
            return Err(BadReview("Interlock has not learned its own API user yet; try again".to_owned()));
        };
        let now = Some(Timestamp::now());
        admission::answer(&self.kinds, endpoint, body, self, config, cache_wait, now)
    }
}
