//! What decides whether two situations are the same: versions, generations and times left out, runs distinguished by
//! where their uid stands.
//!
//! Situations are merged only where they behave the same: what the ledger knows of a uid or a spec counts wherever
//! an object names it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::cluster::Cluster;
use super::ledger::Ledger;
use super::shape::Named;
use super::situation::{Situation, Sleeper};

/// The key of a situation.
pub fn fingerprint(situation: &Situation) -> u64 {
    let mut print = Fingerprint::default();
    print.cluster(&situation.cluster);
    if let Some(Sleeper { cached, before_request, left }) = &situation.sleeper {
        print.add(before_request);
        print.cluster(cached);
        print.versions(left, &situation.cluster);
    }
    print.hasher.finish()
}

#[derive(Default)]
struct Fingerprint<'a> {
    hasher: DefaultHasher,
    /// Uids in the order in which they are met.
    uids: HashMap<&'a str, usize>,
}

impl<'a> Fingerprint<'a> {
    fn add(&mut self, part: impl Hash) {
        part.hash(&mut self.hasher);
    }

    fn cluster(&mut self, cluster: &'a Cluster) {
        let ledger = &*cluster.ledger;
        for (path, stored) in cluster.objects.all() {
            self.add((path, stored.shape.hash));
            for named in &stored.shape.named {
                match named {
                    Named::Uid(uid) => self.uid(uid, ledger),
                    Named::Spec(hash) => self.add(ledger.is_known(hash)),
                }
            }
        }
        for (plan, run) in &ledger.runs {
            self.add((plan, &run.params));
            self.uid(&run.uid, ledger);
        }
        self.add((&ledger.first, &ledger.last, ledger.cleaned, ledger.skipped));
        let open = ledger.promised.as_ref().filter(|uid| !ledger.uids.contains(*uid));
        self.add(open.is_some());
        open.into_iter().for_each(|uid| self.uid(uid, ledger));
    }

    fn uid(&mut self, uid: &'a str, ledger: &Ledger) {
        let next = self.uids.len();
        let met = *self.uids.entry(uid).or_insert(next);
        self.add((met, ledger.uids.contains(uid)));
    }

    /// Which objects one cluster has at the version that another has.
    fn versions(&mut self, one: &Cluster, other: &Cluster) {
        let version = |cluster: &Cluster, path: &String| {
            cluster.objects.get(path).map(|object| object["metadata"]["resourceVersion"].clone())
        };
        for (path, _) in one.objects.all().chain(other.objects.all()) {
            self.add((path, version(one, path) == version(other, path)));
        }
    }
}
