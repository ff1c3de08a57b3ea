//! The history of a DataPlane for people and programs: each revision with what it changed.

use std::fmt;

use interlock_core::api::display::display;
use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use interlock_core::api::revision;
use serde::Serialize;
use serde_json::Value;

use super::{History, Revision};
use crate::data_plane::flavor::sources::Nothing;
use crate::data_plane::rollout::promotion::staged_hash;
use crate::data_plane::rollout::report::changes::{LiveSpec, StagedChanges};
use crate::data_plane::rollout::report::summary::image;
use crate::data_plane::rollout::view::flavor_of;

/// Characters of a recorded flavor that are shown.
const WORD: usize = 40;

/// What a revision is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RevisionState {
    Live,
    /// It was live, and is staged again.
    Staged,
    /// It was live.
    Former,
}

impl fmt::Display for RevisionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Live => "live",
            Self::Staged => "staged",
            Self::Former => "former",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionSummary {
    /// Its number.
    pub revision: i64,
    /// What it is now.
    pub state: RevisionState,
    /// When it became live last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_since: Option<String>,
    /// Short hash of the spec, as `rollout status` and `rollout promote` print it.
    pub hash: String,
    /// Image of the container `proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Router flavor of its pods: that of the spec, or the recorded one where it came from elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router_flavor: Option<String>,
    /// The annotation `kubernetes.io/change-cause` of the DataPlane when it became live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_cause: Option<String>,
    /// What differs from the revision before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<StagedChanges>,
    /// Whether its spec cannot be read: a part of it is missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
}

/// The short hash of what is live; `None` where it is not known.
pub(super) fn live_hash(object: &Value, kept: Option<&Value>) -> Option<String> {
    match LiveSpec::of(object, kept) {
        LiveSpec::Known(live) => Some(staged_hash(&live).short().to_owned()),
        LiveSpec::Referenced(_) | LiveSpec::Unrecorded(_) => {
            let recorded = annotation(object, meta::LIVE_REVISION)?;
            revision::short_hash(recorded).map(str::to_owned)
        }
    }
}

/// The revisions of a DataPlane, the oldest first. `kept` is its live spec, where that was read from the archive.
pub fn summaries(object: &Value, kept: Option<&Value>, history: &History<'_>) -> Vec<RevisionSummary> {
    let live = live_hash(object, kept);
    let written = staged_hash(&object["spec"]);
    let mut before: Option<Value> = None;
    let mut all = Vec::new();
    for revision in history.revisions.iter().rev() {
        let state = match revision.hash {
            hash if live.as_deref() == Some(hash) => RevisionState::Live,
            hash if hash == written.short() => RevisionState::Staged,
            _ => RevisionState::Former,
        };
        let spec = revision.spec();
        all.push(summary(revision, state, spec.as_ref(), before.as_ref()));
        before = spec;
    }
    all
}

fn summary(
    revision: &Revision<'_>,
    state: RevisionState,
    spec: Option<&Value>,
    before: Option<&Value>,
) -> RevisionSummary {
    let changes = before.zip(spec).map(|(before, spec)| StagedChanges::between(before, spec));
    RevisionSummary {
        revision: revision.number,
        state,
        live_since: revision.live_since().map(str::to_owned),
        hash: revision.hash.to_owned(),
        image: spec.and_then(image),
        router_flavor: spec
            .and_then(router_flavor)
            .or_else(|| revision.router_flavor().map(|flavor| display(flavor, WORD))),
        change_cause: revision.change_cause().map(str::to_owned),
        changes,
        unreadable: spec.is_none(),
    }
}

fn router_flavor(spec: &Value) -> Option<String> {
    Some(flavor_of(spec, "", &Nothing)?.effective.known()?.as_str().to_owned())
}

impl RevisionSummary {
    /// Why it was made: the change cause, else the first change, in one line.
    pub fn change(&self) -> String {
        if let Some(cause) = &self.change_cause {
            return cause.clone();
        }
        match &self.changes {
            _ if self.unreadable => "<unreadable: a part of its spec is missing>".to_owned(),
            None => "<none>".to_owned(),
            Some(changes) => {
                let more = changes.fields.len().saturating_sub(1) + changes.more;
                let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
                changes.fields.first().map_or_else(|| "<none>".to_owned(), |first| format!("{first}{rest}"))
            }
        }
    }
}
