//! Capabilities, with the kinds that they read.

use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::supervisor::{self, CapabilityStatus};

/// A capability and its kinds.
#[derive(Debug, Serialize)]
pub(super) struct CapabilityRow {
    name: &'static str,
    state: &'static str,
    message: String,
    since: Timestamp,
    kinds: Vec<Kind>,
}

#[derive(Debug, Serialize)]
struct Kind {
    name: String,
    required: bool,
    watch_state: String,
}

impl CapabilityRow {
    pub(super) fn of(status: &CapabilityStatus) -> Self {
        let kinds = status.kinds.iter().map(|kind| Kind {
            name: kind.name.clone(),
            required: kind.required,
            watch_state: watch_state(&kind.watch_state),
        });
        Self {
            name: status.name,
            state: status.state.name(),
            message: status.state.message(),
            since: status.since,
            kinds: kinds.collect(),
        }
    }
}

/// The watch state of a kind, as shown.
fn watch_state(watch_state: &supervisor::WatchState) -> String {
    use supervisor::WatchState;
    match watch_state {
        WatchState::Absent(absence) => absence.to_string(),
        WatchState::Listing => "is being listed".to_owned(),
        WatchState::Synced => "synced".to_owned(),
        WatchState::Forbidden(verb) => format!("may not be read: no right to {}", verb.as_str()),
        WatchState::Broken(why) => format!("cannot be read: {why}"),
    }
}
