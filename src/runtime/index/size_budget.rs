//! Size budgets: how much memory the objects of one namespace may take.

use std::collections::HashMap;
use std::hash::Hash;

/// Bytes of the OperatorVersions of one namespace. A dozen large packages, or a hundred usual ones; eight
/// namespaces that use all of it fit into the memory that the manifests grant.
pub(super) const PACKAGES: usize = 32 << 20;

/// Bytes of the objects that the Instances of one namespace made, as text. A plan reads the others when it
/// needs them.
pub(super) const BODIES: usize = 32 << 20;

/// Bytes of the unsettled Instances of one namespace, in memory. Each step reads the others.
pub(super) const INSTANCES: usize = 32 << 20;

/// Bytes of the objects of one namespace that reconcilers read, as text: a hundred DataPlanes with their children and
/// pods take 4 MiB.
pub(super) const KEPT: usize = 16 << 20;

/// Values by key, each charged to a namespace.
#[derive(Debug)]
pub(super) struct Shares<K, V> {
    limit: usize,
    kept: HashMap<K, Charged<V>>,
    used: HashMap<String, usize>,
}

#[derive(Debug)]
struct Charged<V> {
    value: V,
    namespace: String,
    bytes: usize,
}

impl<K: Eq + Hash, V> Shares<K, V> {
    /// An empty cache, with a limit in bytes for each namespace.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, kept: HashMap::new(), used: HashMap::new() }
    }

    /// Stores a value in place of the one under its key; returns whether it fitted. If not, nothing is
    /// stored under the key.
    pub(super) fn keep(&mut self, key: K, namespace: &str, bytes: usize, value: V) -> bool {
        self.remove(&key);
        let used = self.used(namespace);
        if used.saturating_add(bytes) > self.limit {
            return false;
        }
        self.used.insert(namespace.to_owned(), used + bytes);
        self.kept.insert(key, Charged { value, namespace: namespace.to_owned(), bytes });
        true
    }

    /// The value under a key.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.kept.get(key).map(|charged| &charged.value)
    }

    /// Removes a value; returns whether there was one.
    pub(super) fn remove(&mut self, key: &K) -> bool {
        let Some(Charged { namespace, bytes, .. }) = self.kept.remove(key) else { return false };
        if let Some(used) = self.used.get_mut(&namespace) {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                self.used.remove(&namespace);
            }
        }
        true
    }

    /// Bytes that are charged to a namespace.
    pub(super) fn used(&self, namespace: &str) -> usize {
        self.used.get(namespace).copied().unwrap_or_default()
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> usize {
        self.used.values().sum()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.kept.keys()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Stored (`a/x=3`), removed (`-a/x`) or rejected values (`!a/x=9`), of at most 10 bytes.
    #[rstest]
    #[case::fits("a/x=4 a/y=6", 10)]
    #[case::the_newest_waits("a/x=4 a/y=6 !a/z=1", 10)]
    #[case::another_namespace_has_its_own("a/x=10 b/x=10 !b/y=1", 10)]
    #[case::what_goes_makes_room("a/x=4 a/y=6 !a/z=4 -a/x a/z=4", 10)]
    #[case::what_grows_too_large_is_kept_no_more("a/x=4 a/y=4 !a/x=7 a/z=6", 10)]
    #[case::what_is_replaced_counts_once("a/x=6 a/x=9 a/x=10", 10)]
    #[case::removed_twice("a/x=6 -a/x -a/x a/y=10", 10)]
    #[case::larger_than_all("!a/x=11", 0)]
    fn shares(#[case] course: &str, #[case] used: usize) {
        let mut shares = Shares::new(10);
        for word in course.split(' ') {
            if let Some(key) = word.strip_prefix('-') {
                shares.remove(&key);
                continue;
            }
            let (key, bytes) = word.trim_start_matches('!').split_once('=').unwrap();
            let kept = shares.keep(key, &key[..1], bytes.parse().unwrap(), ());
            assert_eq!(kept, !word.starts_with('!'), "{word} in {course}");
            assert_eq!(shares.get(&key).is_some(), kept);
        }
        assert_eq!(shares.used("a"), used);
        let all: usize = shares.keys().map(|key| shares.kept[key].bytes).sum();
        assert_eq!(all, shares.used.values().sum::<usize>());
    }
}
