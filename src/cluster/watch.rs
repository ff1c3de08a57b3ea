//! One list and the watch that follows it, over broken connections, until a right is missing or
//! the kind is gone.
//!
//! kube's own watcher keeps to the version of its last list when a watch cannot be started, also
//! when the kind was deleted and made anew meanwhile, and does not say that a watch is open
//! again. Here who started a watch hears of both.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::api::{Api, ListParams, Resource, WatchEvent, WatchParams};
use kube::{Error, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use tracing::debug;

/// What happened to a kind.
#[derive(Clone, Debug)]
pub enum Event<K> {
    /// Every object of the kind, complete: a list that breaks off tells nothing. Again after a
    /// watch that could not be continued.
    Listed(Vec<K>),
    /// An object is there.
    Applied(K),
    /// An object is gone; its last state.
    Deleted(K),
    /// The watch is open.
    Flowing,
    /// It cannot be listed or watched now, and is tried again.
    Trouble(String),
}

/// What happened to an object of a watched kind, for those who keep what is seen.
#[derive(Clone, Debug)]
pub enum Change {
    /// It is there, as given.
    Applied(Arc<Value>),
    /// It is gone; its last known state.
    Deleted(Arc<Value>),
    /// Every object of the kind has been delivered once; again after a broken watch.
    Synced,
}

/// Why a watch ended for good: trying again is up to who started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// 403 at a list. An open watch is not authorised again.
    ListRefused,
    /// 403 at the start of a watch.
    WatchRefused,
    /// 404: the kind is not served, or not yet.
    NotFound,
}

/// Objects of one page: those of CustomResourceDefinitions and of custom resources can be large.
const PAGE: u32 = 250;

/// The API server ends a watch after 290 s, as kube asks it to; one that it does not end is dead.
const IDLE: Duration = Duration::from_secs(295);

/// Follows a kind.
pub async fn follow<K>(
    api: Api<K>,
    labels: Option<String>,
    page: Option<u32>,
    mut emit: impl FnMut(Event<K>) + Send,
) -> End
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let lists = ListParams {
        label_selector: labels.clone(),
        limit: Some(page.unwrap_or(PAGE)),
        ..ListParams::default()
    };
    let watches = WatchParams { label_selector: labels, ..WatchParams::default() };
    let mut pace = Pace::new();
    loop {
        let version = match list(&api, &lists).await {
            Ok((items, version)) => {
                emit(Event::Listed(items));
                version
            }
            Err(error) => match judge(&error) {
                Failure::Refused => return End::ListRefused,
                Failure::NotFound => return End::NotFound,
                failure => {
                    pace.heed(&failure);
                    emit(Event::Trouble(failure.why()));
                    pace.pause().await;
                    continue;
                }
            },
        };
        if let Some(end) = watch_from(&api, &watches, version, &mut pace, &mut emit).await {
            return end;
        }
        pace.pause().await;
    }
}

/// Reads every page.
async fn list<K>(api: &Api<K>, params: &ListParams) -> Result<(Vec<K>, String), Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut params = params.clone();
    let mut items = Vec::new();
    loop {
        let page = api.list(&params).await?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok((items, page.metadata.resource_version.unwrap_or_default())),
        }
    }
}

/// Watches from a version on, until the kind has to be listed again (`None`) or it ends.
async fn watch_from<K>(
    api: &Api<K>,
    params: &WatchParams,
    mut version: String,
    pace: &mut Pace,
    emit: &mut (impl FnMut(Event<K>) + Send),
) -> Option<End>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    loop {
        match api.watch(params, &version).await {
            Ok(stream) => {
                emit(Event::Flowing);
                let opened = Instant::now();
                let mut stream = std::pin::pin!(stream);
                match drain(&mut stream, &mut version, emit).await {
                    Broken::List(why) => {
                        debug!(why, "a watch cannot be continued");
                        return None;
                    }
                    // The usual end, after minutes; one that ends at once is not hurried.
                    Broken::Ended if opened.elapsed() > FIRST_PAUSE * 20 => {}
                    Broken::Ended => pace.pause().await,
                }
            }
            Err(error) => match judge(&error) {
                Failure::Refused => return Some(End::WatchRefused),
                Failure::NotFound => return Some(End::NotFound),
                // Too old a version, a kind that is initialised anew: what was listed may be of
                // another world.
                failure @ (Failure::Answered(_) | Failure::Busy(_)) => {
                    pace.heed(&failure);
                    emit(Event::Trouble(failure.why()));
                    return None;
                }
                Failure::Unanswered(why) => {
                    emit(Event::Trouble(why));
                    pace.pause().await;
                }
            },
        }
    }
}

enum Broken {
    /// It can be taken up at the last version.
    Ended,
    /// The kind has to be listed again.
    List(String),
}

async fn drain<K: Resource>(
    stream: &mut (impl Stream<Item = Result<WatchEvent<K>, Error>> + Unpin),
    version: &mut String,
    emit: &mut (impl FnMut(Event<K>) + Send),
) -> Broken {
    loop {
        let Ok(Some(Ok(event))) = tokio::time::timeout(IDLE, stream.next()).await else {
            return Broken::Ended;
        };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                *version = object.resource_version().unwrap_or_default();
                emit(Event::Applied(object));
            }
            WatchEvent::Deleted(object) => {
                *version = object.resource_version().unwrap_or_default();
                emit(Event::Deleted(object));
            }
            WatchEvent::Bookmark(bookmark) => *version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) => return Broken::List(status.message),
        }
    }
}

enum Failure {
    Refused,
    NotFound,
    /// 429: it is to be asked again soon, as while the storage of a kind is initialised.
    Busy(String),
    /// The API server said something else.
    Answered(String),
    /// Nobody answered.
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

fn judge(error: &Error) -> Failure {
    match error {
        Error::Api(status) if status.code == 403 => Failure::Refused,
        Error::Api(status) if status.code == 404 => Failure::NotFound,
        Error::Api(status) if status.code == 429 => Failure::Busy(format!("429 {}", status.message)),
        Error::Api(status) => Failure::Answered(format!("{} {}", status.code, status.message)),
        other => Failure::Unanswered(other.to_string()),
    }
}

/// Pause before a broken watch is taken up again: 50 ms, doubled at each failure up to 30 s,
/// short again after 30 s without one.
///
/// A watch is refused two or three times in the second after its CRD was created ("storage is
/// (re)initializing", then "too old resource version"), and an Instance that follows its
/// OperatorVersion back to back is waited for no longer than 2 s.
#[derive(Debug)]
pub(super) struct Pace {
    pause: Duration,
    last: Option<Instant>,
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause where the API server says to come again soon; it asks for one second.
const SOON: Duration = Duration::from_secs(2);
/// The longest pause before anything that failed is tried again.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Pace {
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

    /// Does not let pauses grow while the API server says that it will be ready soon.
    fn heed(&mut self, failure: &Failure) {
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

    #[test]
    fn a_broken_watch_is_taken_up_again_five_times_within_the_wait_for_a_version() {
        let (mut pace, now) = (Pace::new(), Instant::now());
        assert!((0..5).map(|_| pace.next(now)).sum::<Duration>() < Duration::from_secs(2));
        assert_eq!(pace.next(now), FIRST_PAUSE * 32, "a success in between is no reason to hurry");
        assert_eq!((0..20).map(|_| pace.next(now)).last(), Some(LONGEST_PAUSE));
        assert_eq!(pace.next(now + LONGEST_PAUSE * 3), FIRST_PAUSE);
    }

    #[test]
    fn an_api_server_that_will_be_ready_soon_is_asked_again_soon() {
        let (mut pace, now) = (Pace::new(), Instant::now());
        let pauses: Vec<Duration> = (0..20)
            .map(|_| {
                pace.heed(&Failure::Busy("storage is (re)initializing".to_owned()));
                pace.next(now)
            })
            .collect();
        assert_eq!(pauses.iter().max(), Some(&SOON), "{pauses:?}");
    }
}
