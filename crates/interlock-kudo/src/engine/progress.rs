//! Progress of a run that must survive a restart and has no field in KUDO's status: `status.progress`.

use jiff::{SignedDuration, Timestamp};

pub use crate::api::Progress;

impl Progress {
    /// The same after a pause, which counts for no deadline of a step.
    #[must_use]
    pub fn after_pause(mut self, paused: Timestamp, now: Timestamp) -> Self {
        let length = now.duration_since(paused).max(SignedDuration::ZERO);
        for begun in self.begun.values_mut() {
            // A step that began during the pause cannot have.
            *begun = begun.checked_add(length).unwrap_or(now).min(now);
        }
        self.retrying_since = None;
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::api::PackageHash;

    #[test]
    fn a_pause_counts_for_no_deadline() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let progress = Progress {
            plan: "deploy".to_owned(),
            uid: "u".to_owned(),
            package: PackageHash::of(b"{}"),
            started: at(0),
            retrying_since: Some(at(5)),
            done: BTreeMap::new(),
            begun: BTreeMap::from([("main/gate".to_owned(), at(10))]),
        };
        let after = progress.clone().after_pause(at(20), at(120));
        assert_eq!(after.begun, BTreeMap::from([("main/gate".to_owned(), at(110))]));
        assert_eq!((after.started, after.retrying_since), (at(0), None));
        // By another clock, it ended before it began.
        assert_eq!(progress.clone().after_pause(at(120), at(20)).begun, progress.begun);
    }
}
