//! Limits the writes of this process in flight for one namespace.
//!
//! Each write of an Instance is an event for every watch of Instances. An API server without idle processors
//! delivers these events late, and with them those of all other namespaces: a tenant whose plans fail again
//! and again delayed the plans of its neighbours by a minute (`benches/neighbours`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Shares of a namespace that may be in use at the same time. At 5 ms a write these are 800 writes a second.
const SHARES: usize = 4;

/// Body bytes for which a write takes one more share: the API server's work grows with them.
const BYTES_A_SHARE: usize = 16 << 10;

/// The writes in flight, by namespace.
#[derive(Debug, Default)]
pub struct WriteLimit(Mutex<HashMap<String, Weak<Semaphore>>>);

impl WriteLimit {
    /// Waits until a write of so many bytes at a path is within the share of its namespace. The write is in
    /// flight until the permit is dropped. `None` for paths without a namespace.
    pub async fn enter(&self, path: &str, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.enter_namespace(namespace(path)?, bytes).await
    }

    /// The same for a write into this namespace.
    pub async fn enter_namespace(&self, namespace: &str, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let shares = (1 + bytes / BYTES_A_SHARE).min(SHARES);
        let shares = u32::try_from(shares).unwrap_or(u32::MAX);
        // A semaphore that is never closed never fails to acquire.
        self.of(namespace).acquire_many_owned(shares).await.ok()
    }

    fn of(&self, namespace: &str) -> Arc<Semaphore> {
        // No code that holds the lock panics half-way through a change.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = all.get(namespace).and_then(Weak::upgrade) {
            return there;
        }
        all.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(SHARES));
        all.insert(namespace.to_owned(), Arc::downgrade(&semaphore));
        semaphore
    }
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

    #[rstest]
    #[case::core("/api/v1/namespaces/a/configmaps/x", Some("a"))]
    #[case::collection("/apis/apps/v1/namespaces/a/deployments", Some("a"))]
    #[case::cluster_scoped("/apis/rbac.authorization.k8s.io/v1/clusterroles/x", None)]
    #[case::named_like_it("/apis/rbac.authorization.k8s.io/v1/clusterroles/namespaces", None)]
    fn a_write_is_of_the_namespace_of_its_path(#[case] path: &str, #[case] expected: Option<&str>) {
        assert_eq!(namespace(path), expected);
    }

    #[tokio::test]
    async fn a_namespace_waits_for_its_own_writes_alone() {
        let limit = WriteLimit::default();
        let enter = |path: &'static str, bytes| limit.enter(path, bytes).now_or_never().flatten();
        let (a, b) = ("/api/v1/namespaces/a/configmaps", "/api/v1/namespaces/b/configmaps");
        let mut small: Vec<_> = (0..SHARES).filter_map(|_| enter(a, 100)).collect();
        assert_eq!(small.len(), SHARES);
        assert!(enter(a, 100).is_none(), "the share is in use");
        let large = enter(b, 1 << 20).expect("another namespace has its own, and the largest body fits");
        assert!(enter(b, 100).is_none());
        small.pop();
        assert!(enter(a, BYTES_A_SHARE).is_none(), "two shares");
        let last = enter(a, 100).expect("one share");
        drop((small, large, last));
        assert!(enter("/api/v1/namespaces/c/configmaps", 1).is_some());
        assert_eq!(limit.0.lock().unwrap().len(), 1, "namespaces without writes are forgotten");
    }
}
