//! Optional kinds of capabilities: which came or went, for Events.

use std::collections::BTreeMap;

use super::capability::Mode;
use super::state::{CapabilitySnapshot, WatchState};

/// A kind that a capability reads if it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionalKind {
    pub capability: &'static str,
    /// Name of its definition, such as `httproutes.gateway.networking.k8s.io`.
    pub kind: String,
    pub watch_state: WatchState,
}

/// Which kinds were synced at the last check.
#[derive(Debug, Default)]
pub struct Optional {
    synced: BTreeMap<(&'static str, String), bool>,
}

impl Optional {
    /// Takes in the states; returns the kinds that came or went. The state at process start and a running
    /// list are not changes.
    pub fn step(&mut self, snapshot: &CapabilitySnapshot) -> Vec<OptionalKind> {
        let mut news = Vec::new();
        for standing in &snapshot.capabilities {
            let capability = standing.name;
            if standing.mode == Mode::Off {
                self.synced.retain(|(name, _), _| *name != capability);
                continue;
            }
            for kind in
                standing.kinds.iter().filter(|kind| !kind.required && kind.watch_state != WatchState::Listing)
            {
                let synced = kind.watch_state == WatchState::Synced;
                let before = self.synced.insert((capability, kind.name.clone()), synced);
                if before.is_some_and(|before| before != synced) {
                    news.push(OptionalKind {
                        capability,
                        kind: kind.name.clone(),
                        watch_state: kind.watch_state.clone(),
                    });
                }
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::state::{
        ApiVerb, CapabilityPhase, CapabilityStatus, Epoch, KindStatus, UnavailableAnswer,
    };
    use super::*;
    use crate::cluster::crds::Absence;

    fn snapshot(mode: Mode, watch_state: WatchState) -> CapabilitySnapshot {
        let kind = |required| KindStatus {
            name: "a.io".to_owned(),
            required,
            terminating: false,
            watch_state: watch_state.clone(),
        };
        CapabilitySnapshot {
            capabilities: vec![CapabilityStatus {
                name: "routes",
                state: CapabilityPhase::Running(Epoch(1)),
                mode,
                since: Timestamp::UNIX_EPOCH,
                answer: UnavailableAnswer::Judge,
                kinds: vec![kind(false), KindStatus { name: "b.io".to_owned(), ..kind(true) }],
            }],
        }
    }

    #[test]
    fn an_optional_kind_that_comes_or_goes_is_reported_once() {
        let absent = || WatchState::Absent(Absence::Missing);
        let course = [
            (Mode::Auto, WatchState::Listing, false),
            (Mode::Auto, absent(), false),
            (Mode::Auto, WatchState::Listing, false),
            (Mode::Auto, WatchState::Synced, true),
            (Mode::Auto, WatchState::Synced, false),
            (Mode::Auto, WatchState::Listing, false),
            (Mode::Auto, WatchState::Forbidden(ApiVerb::Watch), true),
            (Mode::Auto, absent(), false),
            (Mode::Auto, WatchState::Synced, true),
            (Mode::Auto, WatchState::Broken("500".to_owned()), true),
            (Mode::Off, WatchState::Listing, false),
            (Mode::Manual, WatchState::Synced, false),
        ];
        let mut optional = Optional::default();
        for (i, (mode, watch_state, told)) in course.into_iter().enumerate() {
            let seen = OptionalKind {
                capability: "routes",
                kind: "a.io".to_owned(),
                watch_state: watch_state.clone(),
            };
            let wanted: Vec<OptionalKind> = told.then_some(seen).into_iter().collect();
            assert_eq!(optional.step(&snapshot(mode, watch_state)), wanted, "look {i}");
        }
    }
}
