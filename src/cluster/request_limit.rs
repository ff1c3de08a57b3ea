//! Limits the requests of this process in flight: for one namespace, and for packages in all. Pauses the
//! requests of a namespace for as long as the API server asks.
//!
//! Each write of an Instance is an event for every watch of Instances. An API server without idle processors
//! delivers these events late, and with them those of all other namespaces: a tenant whose plans fail again
//! and again delayed the plans of its neighbours by a minute (`benches/neighbours`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::telemetry::metrics::{Hindrance, Metrics};

/// Body bytes for which a request takes one more share: the API server's work grows with them.
const BYTES_A_SHARE: usize = 16 << 10;

/// Shares of a namespace in the requests that keep the books. At 5 ms a write these are 800 writes a second.
const OF_BOOKS: usize = 4;

/// Shares of a namespace in the requests of packages, of which one task may send eight at once.
const OF_PACKAGES: usize = 8;

/// Shares of all namespaces in the requests of packages: two namespaces leave no share idle, and the most that a
/// small API server with two processors answers without a queue. More namespaces take turns.
const OF_ALL_PACKAGES: usize = 16;

/// A request that takes longer waits for something else, such as a webhook that hangs: others take its share.
const SLOW: Duration = Duration::from_secs(1);

/// The longest pause that an answer can ask for: a webhook of others can answer for the API server.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The requests in flight, by namespace.
pub struct RequestLimit {
    /// Shares of one namespace.
    shares: usize,
    /// Shares of all.
    all: Option<Arc<Semaphore>>,
    /// After this long in flight a request takes no share.
    slow: Duration,
    lanes: Mutex<HashMap<String, Arc<Lane>>>,
    /// Counts the requests that wait.
    metrics: Option<Arc<Metrics>>,
}

/// The requests of one namespace.
struct Lane {
    shares: Arc<Semaphore>,
    paused_until: Mutex<Option<Instant>>,
}

/// A share of a request, until it is dropped.
pub struct Share {
    lane: Arc<Lane>,
    slow: Duration,
    permits: [Option<OwnedSemaphorePermit>; 2],
}

impl RequestLimit {
    /// For the requests that keep the books. They take their share however long they take: a busy API server is
    /// the reason for this limit.
    pub fn of_books(metrics: Option<Arc<Metrics>>) -> Self {
        Self { shares: OF_BOOKS, all: None, slow: Duration::MAX, lanes: Mutex::default(), metrics }
    }

    pub fn of_packages(metrics: Option<Arc<Metrics>>) -> Self {
        let all = Some(Arc::new(Semaphore::new(OF_ALL_PACKAGES)));
        Self { shares: OF_PACKAGES, all, slow: SLOW, lanes: Mutex::default(), metrics }
    }

    /// Waits until a request with so many bytes at a path is within the shares of its namespace and of all, and
    /// its namespace is not paused. Cluster-scoped objects count as of one namespace.
    pub async fn enter(&self, path: &str, bytes: usize) -> Share {
        let lane = self.lane(namespace(path).unwrap_or_default());
        let shares = (1 + bytes / BYTES_A_SHARE).min(self.shares);
        let shares = u32::try_from(shares).unwrap_or(u32::MAX);
        let own = self.acquire(&lane.shares, shares).await;
        loop {
            if let Some(until) = lane.paused_until() {
                self.hindered(Hindrance::Paused);
                tokio::time::sleep_until(until).await;
            }
            // A paused namespace holds no share of all.
            let of_all = match &self.all {
                Some(all) => self.acquire(all, shares).await,
                None => None,
            };
            if lane.paused_until().is_none() {
                return Share { lane, slow: self.slow, permits: [own, of_all] };
            }
        }
    }

    async fn acquire(&self, semaphore: &Arc<Semaphore>, shares: u32) -> Option<OwnedSemaphorePermit> {
        match semaphore.clone().try_acquire_many_owned(shares) {
            Ok(permit) => Some(permit),
            Err(_) => {
                self.hindered(Hindrance::InFlight);
                // A semaphore that is never closed never fails to acquire.
                semaphore.clone().acquire_many_owned(shares).await.ok()
            }
        }
    }

    fn hindered(&self, why: Hindrance) {
        if let Some(metrics) = &self.metrics {
            metrics.request_hindered(why);
        }
    }

    fn lane(&self, namespace: &str) -> Arc<Lane> {
        let mut lanes = lock(&self.lanes);
        if let Some(there) = lanes.get(namespace) {
            return there.clone();
        }
        lanes.retain(|_, lane| Arc::strong_count(lane) > 1 || lane.paused_until().is_some());
        let lane = Lane { shares: Arc::new(Semaphore::new(self.shares)), paused_until: Mutex::default() };
        let lane = Arc::new(lane);
        lanes.insert(namespace.to_owned(), lane.clone());
        lane
    }
}

impl Lane {
    /// The end of the pause, while there is one.
    fn paused_until(&self) -> Option<Instant> {
        lock(&self.paused_until).filter(|until| *until > Instant::now())
    }
}

impl Share {
    /// Waits for an answer, and gives the share to others while that is slow.
    pub async fn hold<A>(&mut self, answer: impl Future<Output = A>) -> A {
        let mut answer = std::pin::pin!(answer);
        match tokio::time::timeout(self.slow, &mut answer).await {
            Ok(answer) => answer,
            Err(_) => {
                self.permits = [None, None];
                answer.await
            }
        }
    }

    /// Pauses the namespace where an answer asks for it.
    pub fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        let overloaded = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let seconds = headers.get(RETRY_AFTER).and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        if let Some(seconds) = seconds.filter(|_| overloaded) {
            let pause = Duration::from_secs(seconds).min(LONGEST_PAUSE);
            *lock(&self.lane.paused_until) = Some(Instant::now() + pause);
        }
    }
}

/// No code that holds one of these locks panics half-way through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The namespace of an object or a collection.
fn namespace(path: &str) -> Option<&str> {
    let mut words = path.trim_start_matches('/').split('/');
    let version = if words.next()? == "api" { 0 } else { 1 };
    (words.nth(version + 1)? == "namespaces").then(|| words.next()).flatten()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use rstest::rstest;

    use super::*;

    const A: &str = "/api/v1/namespaces/a/configmaps";
    const B: &str = "/api/v1/namespaces/b/configmaps";
    const C: &str = "/api/v1/namespaces/c/configmaps";

    #[rstest]
    #[case::core("/api/v1/namespaces/a/configmaps/x", Some("a"))]
    #[case::collection("/apis/apps/v1/namespaces/a/deployments", Some("a"))]
    #[case::cluster_scoped("/apis/rbac.authorization.k8s.io/v1/clusterroles/x", None)]
    #[case::named_like_it("/apis/rbac.authorization.k8s.io/v1/clusterroles/namespaces", None)]
    fn a_request_is_of_the_namespace_of_its_path(#[case] path: &str, #[case] expected: Option<&str>) {
        assert_eq!(namespace(path), expected);
    }

    fn enter(limit: &RequestLimit, path: &str, bytes: usize) -> Option<Share> {
        limit.enter(path, bytes).now_or_never()
    }

    fn refill(limit: &RequestLimit, path: &str) -> Vec<Share> {
        std::iter::from_fn(|| enter(limit, path, 100)).collect()
    }

    #[tokio::test]
    async fn a_namespace_waits_for_its_own_requests_alone() {
        let limit = RequestLimit::of_books(None);
        let mut small = refill(&limit, A);
        assert_eq!(small.len(), OF_BOOKS);
        let large =
            enter(&limit, B, 1 << 20).expect("another namespace has its own, and the largest body fits");
        assert!(enter(&limit, B, 100).is_none());
        small.pop();
        assert!(enter(&limit, A, BYTES_A_SHARE).is_none(), "two shares");
        let last = enter(&limit, A, 100).expect("one share");
        drop((small, large, last));
        assert!(enter(&limit, C, 1).is_some());
        assert_eq!(limit.lanes.lock().unwrap().len(), 1, "namespaces without requests are forgotten");
    }

    #[tokio::test]
    async fn one_namespace_leaves_shares_of_packages_to_others() {
        let limit = RequestLimit::of_packages(None);
        let a = refill(&limit, A);
        let mut b = refill(&limit, B);
        assert_eq!((a.len(), a.len() + b.len()), (OF_PACKAGES, OF_ALL_PACKAGES));
        assert!(enter(&limit, C, 1).is_none(), "all are in use");
        // More requests of a namespace do not wait before those of another.
        let (mut more_of_a, mut c) = (Box::pin(limit.enter(A, 1)), Box::pin(limit.enter(C, 1)));
        assert!((&mut more_of_a).now_or_never().is_none() && (&mut c).now_or_never().is_none());
        b.pop();
        assert!(c.now_or_never().is_some() && more_of_a.now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_takes_no_share() {
        let limit = RequestLimit::of_packages(None);
        let mut hang = refill(&limit, A);
        let mut hanging = Box::pin(futures::future::join_all(
            hang.iter_mut().map(|share| share.hold(std::future::pending::<()>())),
        ));
        assert!((&mut hanging).now_or_never().is_none() && enter(&limit, A, 1).is_none());
        assert!(tokio::time::timeout(SLOW, &mut hanging).await.is_err());
        assert!((&mut hanging).now_or_never().is_none() && enter(&limit, A, 1).is_some());
    }

    #[rstest]
    #[case::too_many(429, "2", 2)]
    #[case::unavailable(503, "2", 2)]
    #[case::for_a_year(429, "31536000", 60)]
    #[case::no_number(429, "Fri, 27 Nov 2026 00:00:00 GMT", 0)]
    #[case::of_another_answer(200, "2", 0)]
    #[tokio::test(start_paused = true)]
    async fn a_namespace_pauses_for_as_long_as_it_is_asked(
        #[case] status: u16,
        #[case] retry_after: &str,
        #[case] seconds: u64,
    ) {
        let limit = RequestLimit::of_packages(None);
        let share = enter(&limit, A, 1).expect("a share");
        let headers = HeaderMap::from_iter([(RETRY_AFTER, retry_after.parse().unwrap())]);
        share.answered(StatusCode::from_u16(status).unwrap(), &headers);
        drop(share);
        let began = Instant::now();
        assert!(enter(&limit, B, 1).is_some(), "others go on");
        drop(limit.enter(A, 1).await);
        let paused = began.elapsed();
        assert_eq!(paused.as_secs(), seconds, "{paused:?}");
        assert!(paused <= LONGEST_PAUSE + Duration::from_millis(10));
    }
}
