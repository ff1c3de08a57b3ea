//! The reviewers that are measured: the real rules, and one that only parses the uid.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use interlock::server::admission::Admission;
use interlock::server::webhook_routes::Reviewer;
use interlock_core::admission::{AdmissionAnswer, BadReview, CacheWait, Config, Freeze, WebhookEndpoint};
use interlock_core::api::meta;
use serde::Deserialize;
use tokio::sync::watch;

use super::server::allowed;
use super::{OURS, reviews};

/// By its name, for reviews of about so many bytes.
pub fn named(what: &str, bytes: &str) -> Arc<dyn Reviewer> {
    let bytes = bytes.parse().expect("a number of bytes");
    if what == OURS { Arc::new(rules(bytes)) } else { Arc::new(OnlyTheUid) }
}

fn rules(bytes: usize) -> Admission {
    let config =
        Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze: Freeze::Strict, docs: None };
    let view = Arc::new(reviews::update(bytes).view);
    // No supervisor: the view is whole.
    let capabilities = watch::channel(Arc::default()).1;
    Admission {
        kinds: interlock_core::kinds::guarded(interlock::kinds::all()),
        lister: view,
        config: Arc::new(OnceLock::from(config)),
        capabilities,
    }
}

/// The least that a webhook can do: the answer repeats the uid of the review.
struct OnlyTheUid;

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

impl Reviewer for OnlyTheUid {
    fn decide<'a>(
        &self,
        _: WebhookEndpoint,
        body: &'a [u8],
        _: CacheWait,
    ) -> Result<AdmissionAnswer<'a>, BadReview> {
        let review: Review<'_> = serde_json::from_slice(body).map_err(|e| BadReview(e.to_string()))?;
        Ok(allowed(review.request.uid, None))
    }
}
