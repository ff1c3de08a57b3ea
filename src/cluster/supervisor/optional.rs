//! Kinds that a capability can do without: which of them came or went, as people should hear.

use std::collections::BTreeMap;

use super::capability::Mode;
use super::state::{Sight, Snapshot};

/// A kind that a capability reads where it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The capability.
    pub capability: &'static str,
    /// Name of its definition, such as `httproutes.gateway.networking.k8s.io`.
    pub kind: String,
    /// How it is seen now.
    pub sight: Sight,
}

/// Which kinds were read when they were last looked at.
#[derive(Debug, Default)]
pub struct Optional {
    read: BTreeMap<(&'static str, String), bool>,
}

impl Optional {
    /// Takes in how everything stands; answers what came or went. What a process finds when it
    /// starts is no news, and neither is what is being listed.
    pub fn look(&mut self, snapshot: &Snapshot) -> Vec<Seen> {
        let mut news = Vec::new();
        for standing in &snapshot.capabilities {
            let capability = standing.name;
            if standing.mode == Mode::Off {
                self.read.retain(|(name, _), _| *name != capability);
                continue;
            }
            for kind in standing.kinds.iter().filter(|kind| !kind.required && kind.sight != Sight::Listing) {
                let read = kind.sight == Sight::Synced;
                let before = self.read.insert((capability, kind.name.clone()), read);
                if before.is_some_and(|before| before != read) {
                    news.push(Seen { capability, kind: kind.name.clone(), sight: kind.sight.clone() });
                }
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::state::{Answer, Epoch, KindStatus, State, Status, Verb};
    use super::*;
    use crate::cluster::crds::Absence;

    fn snapshot(mode: Mode, sight: Sight) -> Snapshot {
        let kind =
            |required| KindStatus { name: "a.io".to_owned(), required, leaving: false, sight: sight.clone() };
        Snapshot {
            capabilities: vec![Status {
                name: "routes",
                state: State::Running(Epoch(1)),
                mode,
                since: Timestamp::UNIX_EPOCH,
                answer: Answer::Judge,
                kinds: vec![kind(false), KindStatus { name: "b.io".to_owned(), ..kind(true) }],
            }],
        }
    }

    #[test]
    fn what_comes_and_goes_is_told_once() {
        let absent = || Sight::Absent(Absence::Missing);
        let course = [
            (Mode::Auto, Sight::Listing, false),
            (Mode::Auto, absent(), false),
            (Mode::Auto, Sight::Listing, false),
            (Mode::Auto, Sight::Synced, true),
            (Mode::Auto, Sight::Synced, false),
            (Mode::Auto, Sight::Listing, false),
            (Mode::Auto, Sight::Forbidden(Verb::Watch), true),
            (Mode::Auto, absent(), false),
            (Mode::Auto, Sight::Synced, true),
            (Mode::Auto, Sight::Broken("500".to_owned()), true),
            (Mode::Off, Sight::Listing, false),
            (Mode::Manual, Sight::Synced, false),
        ];
        let mut optional = Optional::default();
        for (i, (mode, sight, told)) in course.into_iter().enumerate() {
            let seen = Seen { capability: "routes", kind: "a.io".to_owned(), sight: sight.clone() };
            let wanted: Vec<Seen> = told.then_some(seen).into_iter().collect();
            assert_eq!(optional.look(&snapshot(mode, sight)), wanted, "look {i}");
        }
    }
}
