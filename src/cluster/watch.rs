//! One list and the watch that follows it, over broken connections, until a right is missing or the kind is
//! gone.
//!
//! When a watch cannot start, kube's own watcher keeps the version of its last list, even if the kind was
//! deleted and created again meanwhile, and it does not report that a watch is open again. This one reports
//! both to its caller.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use interlock_core::api::object::meta_str;
use kube::api::{WatchEvent, WatchParams};
use kube::{Client, Error};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use tracing::debug;

use super::strip_managed_fields::{Stripped, Whole};
use crate::cluster::crds::DecodedDefinition;
use crate::cluster::list::{self, ListedResource, Portion};

#[derive(Clone, Debug)]
pub enum KindEvent<K> {
    /// A list begins. It may break off, and start again.
    Listing,
    /// An object is in the list.
    Listed(K),
    /// The list is complete: objects that it does not hold are gone.
    Synced,
    /// An object was added or modified.
    Applied(K),
    /// An object is gone; its last state.
    Deleted(K),
    /// The watch is open.
    Opened,
    /// A list or watch failed and is retried.
    Trouble(String),
}

/// An event of an object of a watched kind, for the sink. Namespaces are empty where one watch covers all
/// of them.
#[derive(Clone, Debug)]
pub enum WatchChange {
    /// A list of that namespace begins.
    Listing(Arc<str>),
    Listed(Arc<Value>),
    /// The list of that namespace is complete: objects that it does not hold are gone.
    Synced(Arc<str>),
    /// It was added or modified; its new state.
    Applied(Arc<Value>),
    /// It is gone; its last known state.
    Deleted(Arc<Value>),
}

/// The type that objects are decoded to.
pub trait Watchable: Clone + DeserializeOwned + Debug + Send + 'static {
    /// `metadata.resourceVersion`.
    fn version(&self) -> &str;
}

impl Watchable for Stripped {
    fn version(&self) -> &str {
        meta_str(&self.0, "resourceVersion").unwrap_or_default()
    }
}

impl Watchable for Whole {
    fn version(&self) -> &str {
        meta_str(&self.0, "resourceVersion").unwrap_or_default()
    }
}

impl Watchable for DecodedDefinition {
    fn version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }
}

/// Why a watch ended for good: its caller decides whether to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// 403 at a list. An open watch is not authorised again.
    ListRefused,
    /// 403 at the start of a watch.
    WatchRefused,
    /// 404: the kind is not served, or not yet.
    NotFound,
}

/// The API server ends a watch after 290 s, as kube asks it to; one open for longer is dead.
const IDLE: Duration = Duration::from_secs(295);

/// Follows a kind.
pub async fn follow<K: Watchable>(
    client: Client,
    resource: ListedResource,
    mut emit: impl FnMut(KindEvent<K>) + Send,
) -> WatchEnd {
    let watches = WatchParams { label_selector: resource.labels.clone(), ..WatchParams::default() };
    let (mut backoff, mut portion) = (WatchBackoff::new(), Portion::default());
    loop {
        // Before the list request: events from other sources are newer from now on.
        emit(KindEvent::Listing);
        let listed =
            list::read(&client, &resource, &mut portion, |object| emit(KindEvent::Listed(object))).await;
        let version = match listed {
            Ok(version) => {
                emit(KindEvent::Synced);
                portion = Portion::default();
                version
            }
            Err(error) => match classify(&error) {
                Failure::Refused => return WatchEnd::ListRefused,
                Failure::NotFound => return WatchEnd::NotFound,
                failure => {
                    backoff.limit_pause(&failure);
                    emit(KindEvent::Trouble(failure.why()));
                    backoff.pause().await;
                    continue;
                }
            },
        };
        if let Some(end) = watch_from(&client, &resource, &watches, version, &mut backoff, &mut emit).await {
            return end;
        }
        backoff.pause().await;
    }
}

/// Watches from a version on, until the kind needs a new list (`None`) or the watch ends.
async fn watch_from<K: Watchable>(
    client: &Client,
    resource: &ListedResource,
    params: &WatchParams,
    mut version: String,
    backoff: &mut WatchBackoff,
    emit: &mut (impl FnMut(KindEvent<K>) + Send),
) -> Option<WatchEnd> {
    loop {
        let opened = match resource.watch(params, &version) {
            Ok(request) => client.request_events::<K>(request).await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(stream) => {
                emit(KindEvent::Opened);
                let opened = Instant::now();
                let mut stream = std::pin::pin!(stream);
                match drain(&mut stream, &mut version, emit).await {
                    Broken::List(why) => {
                        debug!(why, "a watch cannot continue");
                        return None;
                    }
                    // The last version would deliver the same unreadable event again.
                    Broken::Unreadable(why) => {
                        emit(KindEvent::Trouble(why));
                        return None;
                    }
                    // A normal end, after minutes; after an immediate end, pause first.
                    Broken::Ended if opened.elapsed() > FIRST_PAUSE * 20 => {}
                    Broken::Ended => backoff.pause().await,
                }
            }
            Err(error) => match classify(&error) {
                Failure::Refused => return Some(WatchEnd::WatchRefused),
                Failure::NotFound => return Some(WatchEnd::NotFound),
                // The version is too old, or the kind was created anew: the listed objects may belong to
                // another CRD.
                failure @ (Failure::Answered(_) | Failure::Busy(_)) => {
                    backoff.limit_pause(&failure);
                    emit(KindEvent::Trouble(failure.why()));
                    return None;
                }
                Failure::Unanswered(why) => {
                    emit(KindEvent::Trouble(why));
                    backoff.pause().await;
                }
            },
        }
    }
}

enum Broken {
    /// It can continue at the last version.
    Ended,
    /// The kind needs a new list.
    List(String),
    /// An event cannot be decoded; the next list holds its object.
    Unreadable(String),
}

async fn drain<K: Watchable>(
    stream: &mut (impl Stream<Item = Result<WatchEvent<K>, Error>> + Unpin),
    version: &mut String,
    emit: &mut (impl FnMut(KindEvent<K>) + Send),
) -> Broken {
    loop {
        let event = match tokio::time::timeout(IDLE, stream.next()).await {
            Ok(Some(Ok(event))) => event,
            Ok(Some(Err(error @ (Error::SerdeError(_) | Error::Api(_))))) => {
                return Broken::Unreadable(unreadable(&error));
            }
            _ => return Broken::Ended,
        };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                object.version().clone_into(version);
                emit(KindEvent::Applied(object));
            }
            WatchEvent::Deleted(object) => {
                object.version().clone_into(version);
                emit(KindEvent::Deleted(object));
            }
            WatchEvent::Bookmark(bookmark) => *version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) => return Broken::List(status.message),
        }
    }
}

/// The message for an event that cannot be decoded. The client decodes such an event as a Status, which has
/// no required fields, and does not report the error.
fn unreadable(error: &Error) -> String {
    match error {
        Error::Api(status) if status.code == 0 && status.message.is_empty() => {
            "an event cannot be read: it may be nested too deeply".to_owned()
        }
        other => format!("an event cannot be read: {other}"),
    }
}

enum Failure {
    Refused,
    NotFound,
    /// 429: retry soon, as while the storage of a kind is initialised.
    Busy(String),
    /// Another error from the API server.
    Answered(String),
    /// No answer.
    Unanswered(String),
}

impl Failure {
    fn why(self) -> String {
        match self {
            Self::Refused => "403".to_owned(),
            Self::NotFound => "404".to_owned(),
            Self::Busy(why) | Self::Answered(why) | Self::Unanswered(why) => why,
        }
    }
}

fn classify(error: &Error) -> Failure {
    match error {
        Error::Api(status) if status.code == 403 => Failure::Refused,
        Error::Api(status) if status.code == 404 => Failure::NotFound,
        Error::Api(status) if status.code == 429 => Failure::Busy(format!("429 {}", status.message)),
        Error::Api(status) => Failure::Answered(format!("{} {}", status.code, status.message)),
        other => Failure::Unanswered(other.to_string()),
    }
}

/// Back-off before a broken watch continues: 50 ms, doubled at each failure up to 30 s, short again after
/// 30 s without one.
///
/// The API server refuses a watch two or three times in the second after its CRD was created ("storage is
/// (re)initializing", then "too old resource version"); an Instance that is created right after its
/// OperatorVersion waits for at most 2 s.
#[derive(Debug)]
pub(super) struct WatchBackoff {
    pause: Duration,
    last: Option<Instant>,
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause where the API server asks for a retry soon; it asks for one second.
const SOON: Duration = Duration::from_secs(2);
/// The longest pause before a retry of any failure.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl WatchBackoff {
    pub(super) fn new() -> Self {
        Self { pause: FIRST_PAUSE, last: None }
    }

    /// How long to wait after a failure now.
    pub(super) fn next(&mut self, now: Instant) -> Duration {
        if self.last.is_some_and(|last| now - last > self.pause + LONGEST_PAUSE) {
            self.pause = FIRST_PAUSE;
        }
        self.last = Some(now);
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }

    /// Limits the pauses while the API server answers that it will be ready soon.
    fn limit_pause(&mut self, failure: &Failure) {
        if matches!(failure, Failure::Busy(_)) {
            self.pause = self.pause.min(SOON);
        }
    }

    async fn pause(&mut self) {
        let pause = self.next(Instant::now());
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event that the client cannot decode, and one that it can.
    #[tokio::test]
    async fn an_event_that_cannot_be_read_ends_the_watch() {
        let bookmark = serde_json::from_str(
            r#"{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"7"}}}"#,
        );
        let unreadable = Error::Api(Box::default());
        let mut events = futures::stream::iter([Ok(bookmark.unwrap()), Err(unreadable)]);
        let mut version = String::new();
        let broken = drain(&mut events, &mut version, &mut |_: KindEvent<Stripped>| {}).await;
        let said = "an event cannot be read: it may be nested too deeply";
        assert!(matches!(broken, Broken::Unreadable(why) if why == said));
        assert_eq!(version, "7");
    }

    #[test]
    fn a_broken_watch_is_taken_up_again_five_times_within_the_wait_for_a_version() {
        let (mut backoff, now) = (WatchBackoff::new(), Instant::now());
        assert!((0..5).map(|_| backoff.next(now)).sum::<Duration>() < Duration::from_secs(2));
        assert_eq!(backoff.next(now), FIRST_PAUSE * 32, "a success in between is no reason to hurry");
        assert_eq!((0..20).map(|_| backoff.next(now)).last(), Some(LONGEST_PAUSE));
        assert_eq!(backoff.next(now + LONGEST_PAUSE * 3), FIRST_PAUSE);
    }

    #[test]
    fn an_api_server_that_will_be_ready_soon_is_asked_again_soon() {
        let (mut backoff, now) = (WatchBackoff::new(), Instant::now());
        let pauses: Vec<Duration> = (0..20)
            .map(|_| {
                backoff.limit_pause(&Failure::Busy("storage is (re)initializing".to_owned()));
                backoff.next(now)
            })
            .collect();
        assert_eq!(pauses.iter().max(), Some(&SOON), "{pauses:?}");
    }
}
