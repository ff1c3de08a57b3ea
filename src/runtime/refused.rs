//! The writes that the API server refused: each is tried again with a back-off, and is an input of the decisions until
//! then ([`View::refused`](interlock_core::reconcile::View::refused)).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::object::{NamespacedName, ObjectKey};
use interlock_core::effect::{ApiFailure, Effect};
use interlock_core::reconcile::RefusedWrite;
use jiff::Timestamp;

/// Back-off of a refused write: doubled up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(1);
/// The longest back-off.
const LONGEST: Duration = Duration::from_secs(60);
/// Refused writes that are remembered of one reconciled object: it has fewer children.
const MOST: usize = 64;

/// The refused writes of all reconciled objects.
#[derive(Debug, Default)]
pub struct RefusedWrites(Mutex<HashMap<NamespacedName, BTreeMap<ObjectKey, Refused>>>);

#[derive(Debug)]
struct Refused {
    write: RefusedWrite,
    tries: u32,
    /// Whether another controller tries it.
    elsewhere: bool,
}

impl RefusedWrites {
    fn all(&self) -> MutexGuard<'_, HashMap<NamespacedName, BTreeMap<ObjectKey, Refused>>> {
        // Changes of the maps do not panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of one reconciled object.
    pub fn of(&self, owner: &NamespacedName) -> BTreeMap<ObjectKey, RefusedWrite> {
        let all = self.all();
        let of = all.get(owner).into_iter().flatten();
        of.map(|(key, refused)| (key.clone(), refused.write.clone())).collect()
    }

    /// Remembers a refused write. The back-off of a write goes on only as long as the same is wanted.
    pub fn refuse(
        &self,
        owner: &NamespacedName,
        key: &ObjectKey,
        effect: Effect,
        failure: ApiFailure,
        now: Timestamp,
    ) {
        let mut all = self.all();
        let of = all.entry(owner.clone()).or_default();
        let before = of.get(key).filter(|before| before.write.effect.is_same_write(&effect));
        let (tries, since) = before.map_or((0, now), |before| (before.tries, before.write.since));
        if of.len() >= MOST && !of.contains_key(key) {
            return;
        }
        let pause = FIRST.saturating_mul(1 << tries.min(6)).min(LONGEST);
        let retry = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        let write = RefusedWrite { effect, failure, since, retry };
        of.insert(key.clone(), Refused { write, tries: tries + 1, elsewhere: false });
    }

    /// Remembers what was refused of a write that another controller makes and tries again, instead of all such before.
    /// `None` where none is left. Whether that is news.
    pub fn elsewhere(&self, owner: &NamespacedName, refused: Option<(ObjectKey, RefusedWrite)>) -> bool {
        let mut all = self.all();
        let of = all.entry(owner.clone()).or_default();
        let mut before = of.extract_if(.., |_, refused| refused.elsewhere).map(|(_, refused)| refused.write);
        let before = before.next();
        let text = |write: &RefusedWrite| write.failure.message.clone();
        let is_news = before.as_ref().map(text) != refused.as_ref().map(|(_, write)| text(write));
        match refused {
            Some((key, write)) => {
                let since = before.map_or(write.since, |before| before.since);
                let write = RefusedWrite { since, ..write };
                of.insert(key, Refused { write, tries: 0, elsewhere: true });
            }
            None if of.is_empty() => {
                all.remove(owner);
            }
            None => {}
        }
        is_news
    }

    /// A write of an object succeeded.
    pub fn succeeded(&self, owner: &NamespacedName, key: &ObjectKey) {
        let mut all = self.all();
        if let Some(of) = all.get_mut(owner) {
            of.remove(key);
            if of.is_empty() {
                all.remove(owner);
            }
        }
    }

    /// How long after `now` the next write is tried again, once a reconcile that decided at `now` has come to its end.
    /// Forgets what was due then: had it still been wanted, it would have been tried.
    pub fn next_retry(&self, owner: &NamespacedName, now: Timestamp) -> Option<Duration> {
        let mut all = self.all();
        let of = all.get_mut(owner)?;
        of.retain(|_, refused| refused.elsewhere || refused.write.retry > now);
        let own = of.values().filter(|refused| !refused.elsewhere);
        let next = own.map(|refused| refused.write.retry).min();
        if of.is_empty() {
            all.remove(owner);
        }
        next.map(|retry| Duration::try_from(retry.duration_since(now)).unwrap_or_default())
    }

    /// The reconciled object is gone.
    pub fn forget(&self, owner: &NamespacedName) {
        self.all().remove(owner);
    }

    /// Another leader epoch begins.
    pub fn clear(&self) {
        self.all().clear();
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::Gvk;
    use serde_json::json;

    use super::*;

    fn create(image: &str, version: &str) -> Effect {
        let metadata = json!({"name": "d", "namespace": "ns", "resourceVersion": version});
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "image": image});
        Effect::Apply { object, force: true }
    }

    #[test]
    fn a_refused_write_is_tried_again_later_each_time_until_another_is_wanted() {
        let (refused, owner) = (RefusedWrites::default(), NamespacedName::new("ns", "edge"));
        let key = ObjectKey {
            gvk: Gvk::new("apps/v1", "Deployment"),
            namespace: Some("ns".into()),
            name: "d".into(),
        };
        let failure = ApiFailure {
            code: 422,
            reason: "Invalid".into(),
            message: "no".into(),
            namespace_terminating: false,
        };
        let pause = |effect| {
            refused.refuse(&owner, &key, effect, failure.clone(), Timestamp::UNIX_EPOCH);
            refused.of(&owner)[&key].retry.as_second()
        };
        let same = ["1", "2", "3", "4", "5", "6", "7", "8"].map(|version| pause(create("a", version)));
        assert_eq!(same, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(create("b", "9")), 1, "another write");
        refused.succeeded(&owner, &key);
        assert!(refused.of(&owner).is_empty());
        assert_eq!(pause(create("b", "9")), 1);

        let next = |second| refused.next_retry(&owner, Timestamp::from_second(second).unwrap());
        assert_eq!(next(0), Some(Duration::from_secs(1)));
        assert_eq!((next(1), refused.of(&owner).len()), (None, 0), "nobody wants it any more");
    }
}
