//! What is live and what is staged, from a DataPlane's stamp and spec.

use interlock_core::api::stamp::SpecHash;
use serde_json::Value;

use crate::api::stamp::{LiveStamp, NoStamp};
use crate::data_plane::live_spec;
use crate::data_plane::rollout::report::changes::StagedChanges;

/// The live spec of a DataPlane, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveSpec {
    /// The whole spec.
    Known(Value),
    /// Its hash: the ControllerRevision that keeps it was not read.
    Referenced(SpecHash),
    /// It is not recorded.
    Unrecorded(NoStamp),
}

impl LiveSpec {
    /// That of an object; `kept` is the spec of its ControllerRevision, where that was read.
    pub fn of(object: &Value, kept: Option<&Value>) -> Self {
        let stamp = match LiveStamp::of_object(object) {
            Ok(stamp) => live_spec::without_unrecorded(stamp, &object["status"]),
            // Another operator has made the stored spec live.
            Err(NoStamp::Superseded) => return Self::Known(live_spec::after(None, &object["spec"])),
            Err(why) => return Self::Unrecorded(why),
        };
        if let Some(spec) = stamp.live_spec().and_then(|text| serde_json::from_str(text).ok()) {
            return Self::Known(spec);
        }
        let stored = live_spec::after(None, &object["spec"]);
        match kept {
            _ if SpecHash::of(&stored.to_string()) == stamp.hash => Self::Known(stored),
            Some(kept) if SpecHash::of(&kept.to_string()) == stamp.hash => Self::Known(kept.clone()),
            _ => Self::Referenced(stamp.hash),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StagedState {
    Nothing,
    Fields(StagedChanges),
    /// Something; the live spec was not read.
    Something,
    /// What is live is not recorded.
    Unknown(NoStamp),
}

impl StagedState {
    pub fn of(live: &LiveSpec, written: &Value) -> Self {
        if !live_spec::is_staged(written) {
            return Self::Nothing;
        }
        match live {
            LiveSpec::Known(live) if !live_spec::is_changed(live, written) => Self::Nothing,
            LiveSpec::Known(live) => Self::Fields(StagedChanges::between(live, written)),
            LiveSpec::Referenced(hash) if live_spec::hash(written) == *hash => Self::Nothing,
            LiveSpec::Referenced(_) => Self::Something,
            LiveSpec::Unrecorded(why) => Self::Unknown(*why),
        }
    }

    /// Whether something is known to be staged.
    pub fn is_something(&self) -> bool {
        matches!(self, Self::Fields(_) | Self::Something)
    }
}
