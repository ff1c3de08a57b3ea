//! Answers reviews: the pure rules, on the cluster cache.

use std::sync::{Arc, OnceLock};

use interlock_core::admission;
use interlock_core::admission::kind::GuardedKind;
use interlock_core::admission::lister::{CacheState, KindListers, Lister, Overridden};
use interlock_core::admission::{AdmissionAnswer, BadReview, CacheWait, Config, WebhookEndpoint};
use interlock_core::api::interlock::Actions;
use jiff::Timestamp;
use tokio::sync::watch;

use super::webhook_routes::Reviewer;
use crate::cluster::supervisor::{self as capability, CapabilitySnapshot};

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
