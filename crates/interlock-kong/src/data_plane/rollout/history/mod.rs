//! The history of a DataPlane: the specs that were live, each in ControllerRevisions that the DataPlane owns.
//!
//! A revision is the part of a spec that a promotion makes live. A spec that becomes live again keeps its
//! ControllerRevision and gets a new number, as with Deployments.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use interlock_core::api::revision;
use interlock_core::api::revision::{PartsReader, Revisions};
use interlock_core::api::stamp::SpecHash;
use serde_json::Value;

pub mod record;
pub mod summary;
pub mod undo;

/// A spec that was live.
#[derive(Clone, Debug)]
pub struct Revision<'a> {
    /// Its number: the largest one is that of the newest.
    pub number: i64,
    /// Short hash of the spec.
    pub hash: &'a str,
    /// The ControllerRevisions that keep it, by the number of the part.
    parts: BTreeMap<usize, &'a Value>,
}

/// The revisions of a DataPlane among listed objects.
#[derive(Clone, Debug, Default)]
pub struct History<'a> {
    /// Those whose first part is there, the newest first.
    pub revisions: Vec<Revision<'a>>,
    /// Parts without a first one: of a revision that is not whole yet, or not any more.
    strays: Vec<&'a Value>,
}

impl<'a> History<'a> {
    /// Those of the DataPlane with a uid.
    pub fn of(objects: impl IntoIterator<Item = &'a Value>, uid: &str) -> Self {
        let mut by_hash: BTreeMap<&str, BTreeMap<usize, &Value>> = BTreeMap::new();
        for object in objects.into_iter().filter(|object| is_of(object, uid)) {
            let Some(name) = meta_str(object, "name") else { continue };
            if let (Some(hash), Some(part)) = (revision::short_hash(name), revision::part_number(name)) {
                by_hash.entry(hash).or_default().insert(part, object);
            }
        }
        let mut history = Self::default();
        for (hash, parts) in by_hash {
            match parts.get(&0) {
                Some(first) => {
                    let number = first["revision"].as_i64().unwrap_or_default();
                    history.revisions.push(Revision { number, hash, parts });
                }
                None => history.strays.extend(parts.into_values()),
            }
        }
        history.revisions.sort_by_key(|revision| (Reverse(revision.number), revision.hash));
        history
    }

    /// The revision of a spec.
    pub fn of_hash(&self, hash: &str) -> Option<&Revision<'a>> {
        self.revisions.iter().find(|revision| revision.hash == hash)
    }

    pub fn numbered(&self, number: i64) -> Option<&Revision<'a>> {
        self.revisions.iter().find(|revision| revision.number == number)
    }
}

/// Whether a ControllerRevision belongs to the history of a DataPlane.
fn is_of(object: &Value, uid: &str) -> bool {
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owned = references.filter(|owner| owner["controller"] == true).any(|owner| owner["uid"] == uid);
    owned && object["metadata"]["labels"][meta::HISTORY_OF] == uid && Revisions::is(object)
}

impl Revision<'_> {
    /// The spec; `None` where its parts are not all there, or keep another one.
    pub fn spec(&self) -> Option<Value> {
        let mut parts = PartsReader::default();
        while let Some(number) = parts.next() {
            parts.take(self.parts.get(&number)?)?;
        }
        let text = parts.text().filter(|text| SpecHash::of(text).short() == self.hash)?;
        serde_json::from_str(&text).ok()
    }

    /// Since when it is live, or when it became so last.
    pub fn live_since(&self) -> Option<&str> {
        let first = self.parts.get(&0)?;
        annotation(first, meta::LIVE_SINCE).or_else(|| meta_str(first, "creationTimestamp"))
    }

    /// Why it was made, as the annotation of the DataPlane said.
    pub fn change_cause(&self) -> Option<&str> {
        annotation(self.parts.get(&0)?, meta::CHANGE_CAUSE).filter(|cause| !cause.is_empty())
    }

    /// The router flavor that its pods had, as it was recorded.
    pub fn router_flavor(&self) -> Option<&str> {
        annotation(self.parts.get(&0)?, meta::ROUTER_FLAVOR)
    }

    /// Bytes of what its parts hold.
    fn size(&self) -> usize {
        self.parts.values().map(|part| part["data"].to_string().len()).sum()
    }
}

/// Former revisions that are kept where the annotation says nothing else: as many as a Deployment keeps.
pub const DEFAULT_LIMIT: usize = 10;
/// The most that are kept: they are listed together.
pub const MOST_KEPT: usize = 50;

/// Reads a value of the annotation; `None` for what is no number up to [`MOST_KEPT`].
pub fn parse_limit(value: &str) -> Option<usize> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|limit| digits && *limit <= MOST_KEPT)
}

/// The limit of a DataPlane. An invalid value counts as absent.
pub fn limit_of(object: &Value) -> usize {
    annotation(object, meta::REVISION_HISTORY_LIMIT).and_then(parse_limit).unwrap_or(DEFAULT_LIMIT)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::absent(None, DEFAULT_LIMIT)]
    #[case::none(Some("0"), 0)]
    #[case::some(Some("3"), 3)]
    #[case::most(Some("50"), MOST_KEPT)]
    #[case::more(Some("51"), DEFAULT_LIMIT)]
    #[case::negative(Some("-1"), DEFAULT_LIMIT)]
    #[case::signed(Some("+1"), DEFAULT_LIMIT)]
    #[case::empty(Some(""), DEFAULT_LIMIT)]
    #[case::text(Some("ten"), DEFAULT_LIMIT)]
    fn values_of_the_annotation(#[case] value: Option<&str>, #[case] limit: usize) {
        let object = json!({"metadata": {"annotations": {meta::REVISION_HISTORY_LIMIT: value}}});
        assert_eq!(limit_of(&object), limit);
    }
}
