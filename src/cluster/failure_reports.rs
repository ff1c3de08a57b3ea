//! Events about requests that the API server refuses: each text once for an object.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::meta::condition::MISSING_RIGHT;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::{ApiFailure, Note, Severity};
use interlock_core::rejection::Rejection;
use tokio::time::Instant;

use super::events::EventPublisher;

/// The most objects of a namespace whose last text is known; at more, each of them is reported once more.
const MOST: usize = 512;

/// After which the same is reported again: API servers keep Events for an hour.
const AGAIN: Duration = Duration::from_secs(45 * 60);

/// UID and text of the last Event, and when it was, by object, until it is settled.
type Told = HashMap<ObjectKey, (String, String, Instant)>;

/// Reports failed requests on the objects that they are about.
pub struct FailureReports {
    events: EventPublisher,
    /// What was reported, by namespace.
    told: Mutex<HashMap<Option<String>, Told>>,
}

impl FailureReports {
    /// Publishes there.
    pub fn new(events: EventPublisher) -> Self {
        Self { events, told: Mutex::default() }
    }

    /// Says on an object what was not done because of a failed request. Where the API server does not answer, it takes no
    /// Event either; a write that met another one is made again.
    pub async fn failed(&self, key: &ObjectKey, uid: &str, what: &str, failure: &ApiFailure) {
        if failure.code == 0 || failure.code == 409 && failure.reason == "Conflict" {
            return;
        }
        let (reason, message) = text(what, failure);
        self.report(key, uid, reason, message).await;
    }

    /// Publishes a Warning on an object, unless its last one had this text.
    pub async fn report(&self, key: &ObjectKey, uid: &str, reason: &str, message: String) {
        if self.is_news(key, uid, &message) {
            let note = Note { severity: Severity::Warning, reason: reason.to_owned(), message };
            self.events.publish_on(key, uid, note).await;
        }
    }

    /// Whether a text is not that of the last Event on an object; it is from now on.
    fn is_news(&self, key: &ObjectKey, uid: &str, message: &str) -> bool {
        let mut all = self.told();
        let told = all.entry(key.namespace.clone()).or_default();
        // What was reported of objects that are gone is never settled.
        if told.len() >= MOST && !told.contains_key(key) {
            told.clear();
        }
        let is_known =
            |(of, text, at): &(String, String, Instant)| of == uid && text == message && at.elapsed() < AGAIN;
        let is_news = !told.get(key).is_some_and(is_known);
        if is_news {
            told.insert(key.clone(), (uid.to_owned(), message.to_owned(), Instant::now()));
        }
        is_news
    }

    /// What was reported of an object is over, or the object is gone.
    pub fn settle(&self, key: &ObjectKey) {
        let mut all = self.told();
        if let Some(told) = all.get_mut(&key.namespace) {
            told.remove(key);
            if told.is_empty() {
                all.remove(&key.namespace);
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, HashMap<Option<String>, Told>> {
        // Changes of the map do not panic half-way.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reason and text of the Event about a failed request; `what` was not done.
pub fn text(what: &str, failure: &ApiFailure) -> (&'static str, String) {
    let rejection = Rejection::of(failure);
    let reason = rejection.kind.reason();
    let remedy = match reason {
        MISSING_RIGHT => "; grant it: interlock render rbac, with the flags of this installation",
        _ => "",
    };
    let colon = if what.is_empty() { "" } else { ": " };
    (reason, format!("{what}{colon}{}{remedy}", rejection.message))
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::Gvk;
    use rstest::rstest;

    use super::*;

    fn reports() -> FailureReports {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        FailureReports::new(EventPublisher::new(kube::Client::try_from(nowhere).unwrap()))
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            gvk: Gvk::new("v1", "ConfigMap"),
            namespace: Some("ns".to_owned()),
            name: name.to_owned(),
        }
    }

    #[rstest]
    #[case::refused(403, "Forbidden", 1)]
    #[case::taken(409, "AlreadyExists", 1)]
    #[case::met_another_write(409, "Conflict", 0)]
    #[case::no_answer(0, "", 0)]
    #[tokio::test]
    async fn what_a_person_may_mend_is_told(#[case] code: u16, #[case] reason: &str, #[case] told: usize) {
        let (reports, reason) = (reports(), reason.to_owned());
        let failure = ApiFailure { code, reason, message: "no".to_owned(), namespace_terminating: false };
        reports.failed(&key("a"), "u-1", "it was not written", &failure).await;
        assert_eq!(reports.told().values().map(HashMap::len).sum::<usize>(), told);
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_is_told_once_until_its_event_is_gone() {
        let reports = reports();
        let is_news = |name: &str, uid: &str, text: &str| reports.is_news(&key(name), uid, text);
        assert!(is_news("a", "u-1", "no"));
        assert!(!is_news("a", "u-1", "no"));
        assert!(is_news("a", "u-1", "never"), "another text");
        assert!(is_news("a", "u-2", "never"), "another object of that name");
        reports.settle(&key("a"));
        assert!(is_news("a", "u-2", "never"), "it was over");
        tokio::time::advance(AGAIN).await;
        assert!(is_news("a", "u-2", "never"), "its Event is about to go");
        for n in 0..MOST {
            assert!(is_news(&n.to_string(), "u", "no"));
        }
        assert_eq!(reports.told().values().map(HashMap::len).sum::<usize>(), 1, "it has a bound");
    }
}
