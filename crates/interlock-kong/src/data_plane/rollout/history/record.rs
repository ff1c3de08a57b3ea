//! Records the live spec of a DataPlane in its history, and deletes the revisions beyond the limit.
//!
//! The annotation `interlock.dev/live-revision` of the DataPlane names the ControllerRevision of the live spec. It is
//! written last: until then the history is read and written again, and what is there already is left as it is. The
//! first part of a revision is created last and deleted first: a revision without one is not whole.
//!
//! The archive of live specs that are too large for the annotation (`src/controllers/live_specs.rs`) is another one. It
//! keeps the whole spec, with the fields that take effect at once, under the hash that the annotation has; it has to be
//! there before the next change is staged, also where Kong's operator carries DataPlanes out. A revision keeps what a
//! promotion makes live, under the hash of a promotion, and only once the traffic has followed.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, annotation, meta_str};
use interlock_core::api::revision;
use interlock_core::api::revision::RevisionOwner;
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::Effect;
use interlock_core::reconcile::ObjectList;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{History, Revision, limit_of};
use crate::api;
use crate::data_plane::flavor::Flavor;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::live_record;
use crate::data_plane::rollout::view::DataPlaneView;

/// Bytes that the former revisions of a history may take: a list of more than 16 MiB is not read.
const SIZE: usize = 8 << 20;
/// Longest change cause that is kept.
const CAUSE: usize = 1024;

/// What is recorded: the part of the live spec that a promotion makes live.
#[derive(Debug)]
pub struct Record {
    /// Its JSON.
    text: String,
    /// Its hash: that of a request for its promotion.
    hash: SpecHash,
    /// The first ControllerRevision that keeps it.
    pub key: ObjectKey,
}

impl Record {
    /// That of a live spec.
    pub fn of(of: &DataPlaneView<'_>, spec: &Value) -> Self {
        let text = live_spec::staged_part(spec).to_string();
        let hash = SpecHash::of(&text);
        let name = revision::history_name(of.name, of.uid, &hash, 0);
        let key = of.key_of(revision::API_VERSION, revision::KIND, name);
        Self { text, hash, key }
    }

    /// Whether the annotation of the DataPlane says that it is recorded as the newest.
    pub fn is_done(&self, of: &DataPlaneView<'_>) -> bool {
        annotation(of.object, meta::LIVE_REVISION) == Some(self.key.name.as_str())
    }

    /// The writes of a revision; `None` where an object of another has its name. `found` = the object of its name.
    pub fn write(
        &self,
        of: &DataPlaneView<'_>,
        history: &History<'_>,
        found: Option<&Value>,
        now: Timestamp,
    ) -> Option<Vec<Effect>> {
        let newest = history.revisions.iter().filter(|other| other.hash != self.hash.short());
        let before = newest.map(|revision| revision.number).max().unwrap_or_default();
        let mut effects = match (history.of_hash(self.hash.short()), found) {
            (Some(known), _) => renumber(of, known, before, now).into_iter().collect(),
            (None, None) => self.create(of, history, before.saturating_add(1), now)?,
            (None, Some(_)) => return None,
        };
        effects.extend(self.prune(of, history));
        effects.push(of.patch(json!({"metadata": {"annotations": {meta::LIVE_REVISION: self.key.name}}})));
        Some(effects)
    }

    fn create(
        &self,
        of: &DataPlaneView<'_>,
        history: &History<'_>,
        number: i64,
        now: Timestamp,
    ) -> Option<Vec<Effect>> {
        let key = NamespacedName::new(of.namespace, of.name);
        let owner = RevisionOwner {
            api_version: api::API_VERSION,
            kind: "DataPlane",
            key: &key,
            uid: of.uid,
            revision: number,
        };
        let mut parts = revision::history_parts(&owner, &self.hash, &self.text).ok()?;
        if let Some(first) = parts.first_mut() {
            for (name, value) in marks(of, now).into_iter().filter(|(_, value)| !value.is_null()) {
                first["metadata"]["annotations"][name] = value;
            }
        }
        let there: BTreeMap<&str, &Value> =
            history.strays.iter().filter_map(|part| Some((meta_str(part, "name")?, *part))).collect();
        let mut effects = Vec::new();
        for part in parts.into_iter().rev() {
            match meta_str(&part, "name").and_then(|name| there.get(name)) {
                Some(found) if found["data"] == part["data"] => continue,
                Some(found) => effects.extend(delete(of, found)),
                None => {}
            }
            effects.push(Effect::Create { object: part });
        }
        Some(effects)
    }

    /// Deletes the oldest revisions beyond the limit, and what is left of others.
    fn prune(&self, of: &DataPlaneView<'_>, history: &History<'_>) -> Vec<Effect> {
        let limit = limit_of(of.object);
        let mut size = 0;
        let former = history.revisions.iter().filter(|revision| revision.hash != self.hash.short());
        let old = former.enumerate().filter(|(place, revision)| {
            size += revision.size();
            *place >= limit || size > SIZE
        });
        let old: Vec<&Value> = old.flat_map(|(_, revision)| revision.parts.values().copied()).collect();
        let own: BTreeSet<String> = (0..revision::MAX_PARTS)
            .map(|part| revision::history_name(of.name, of.uid, &self.hash, part))
            .collect();
        let is_own = |part: &&&Value| meta_str(part, "name").is_some_and(|name| own.contains(name));
        let strays = history.strays.iter().filter(|part| !is_own(part)).copied();
        old.into_iter().chain(strays).filter_map(|part| delete(of, part)).collect()
    }
}

/// Makes a revision that is there the newest one, where it is not.
fn renumber(of: &DataPlaneView<'_>, revision: &Revision<'_>, before: i64, now: Timestamp) -> Option<Effect> {
    let first = revision.parts.get(&0)?;
    let is_newest = revision.number > before;
    let marks = marks(of, now);
    // Of the newest one, the flavor may have changed alone: that of a ConfigMap or Secret.
    if is_newest && annotation(first, meta::ROUTER_FLAVOR) == marks[2].1.as_str() {
        return None;
    }
    let number = if is_newest { revision.number } else { before.saturating_add(1) };
    let annotations: BTreeMap<&str, Value> = marks.into();
    let patch = json!({"metadata": {"annotations": annotations}, "revision": number});
    Effect::patch_of(key(of, first)?, first, patch)
}

/// Annotations of the first part: since when it is live, why, and with which router flavor; null for one that it shall
/// not have.
fn marks(of: &DataPlaneView<'_>, now: Timestamp) -> [(&'static str, Value); 3] {
    let cause = annotation(of.object, meta::CHANGE_CAUSE);
    let cause = cause.map(|cause| &cause[..cause.floor_char_boundary(CAUSE)]);
    let since = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let flavor = live_record::stamped_flavor(of).map(Flavor::as_str);
    [
        (meta::LIVE_SINCE, json!(since)),
        (meta::CHANGE_CAUSE, json!(cause)),
        (meta::ROUTER_FLAVOR, json!(flavor)),
    ]
}

fn delete(of: &DataPlaneView<'_>, part: &Value) -> Option<Effect> {
    if meta_str(part, "deletionTimestamp").is_some() {
        return None;
    }
    Some(Effect::delete_of(key(of, part)?, part))
}

fn key(of: &DataPlaneView<'_>, part: &Value) -> Option<ObjectKey> {
    Some(of.key_of(revision::API_VERSION, revision::KIND, meta_str(part, "name")?))
}

/// The list of the ControllerRevisions of a history.
pub fn list(of: &DataPlaneView<'_>) -> ObjectList {
    ObjectList {
        gvk: Gvk::new(revision::API_VERSION, revision::KIND),
        namespace: of.namespace.to_owned(),
        labels: [(meta::HISTORY_OF.to_owned(), of.uid.to_owned())].into(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A spec of random characters, which gzip does not make smaller than a part.
    fn large() -> Value {
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'0' + u8::try_from(state >> 58).unwrap())
        };
        let noise: String = (0..1_600_000).map(|_| noise()).collect();
        json!({"deployment": {"podTemplateSpec": {"metadata": {"annotations": {"large": noise}}}}})
    }

    fn data_plane() -> Value {
        json!({
            "apiVersion": api::API_VERSION, "kind": "DataPlane",
            "metadata": {
                "namespace": "kong", "name": "edge", "uid": "0123456789", "generation": 1, "resourceVersion": "7",
            },
        })
    }

    /// What the writes of a revision create and delete, by part, and whether they end with the annotation.
    fn writes(spec: &Value, there: &[Value]) -> (Vec<String>, bool) {
        let object = data_plane();
        let of = DataPlaneView::of(&object).unwrap();
        let history = History::of(there, of.uid);
        let effects = Record::of(&of, spec).write(&of, &history, None, Timestamp::UNIX_EPOCH).unwrap();
        let part = |key: &ObjectKey| key.name.rsplit_once('-').unwrap().1.to_owned();
        let lines = effects.iter().filter_map(|effect| match effect {
            Effect::Create { object } => Some(format!("create {}", part(&ObjectKey::of(object).unwrap()))),
            Effect::Delete { key, .. } => Some(format!("delete {}", part(key))),
            _ => None,
        });
        let ends = matches!(effects.last(), Some(Effect::Patch { key, .. }) if key.gvk.kind == "DataPlane");
        (lines.collect(), ends)
    }

    /// The parts of a spec, as the API server has them.
    fn parts(spec: &Value, number: i64) -> Vec<Value> {
        let object = data_plane();
        let of = DataPlaneView::of(&object).unwrap();
        let record = Record::of(&of, spec);
        let mut history = History::default();
        history.revisions.push(Revision { number: number - 1, hash: "before", parts: BTreeMap::new() });
        let effects = record.write(&of, &history, None, Timestamp::UNIX_EPOCH).unwrap();
        let created = effects.into_iter().filter_map(|effect| match effect {
            Effect::Create { object } => Some(object),
            _ => None,
        });
        let mut parts: Vec<Value> = created.collect();
        parts.reverse();
        for part in &mut parts {
            part["metadata"]["uid"] = json!("u");
            part["metadata"]["resourceVersion"] = json!("1");
        }
        parts
    }

    #[test]
    fn the_first_part_is_written_last() {
        let spec = large();
        let whole = parts(&spec, 1);
        assert!(whole.len() > 1, "{}", whole.len());
        let creates: Vec<String> = (0..whole.len()).rev().map(|part| format!("create {part}")).collect();
        assert_eq!(writes(&spec, &[]), (creates.clone(), true));
        // Killed before the first part: what is there is not made again.
        assert_eq!(writes(&spec, &whole[1..]), (vec!["create 0".to_owned()], true));
        // Another version of gzip made it.
        let mut other = whole[1..].to_vec();
        other[0]["data"]["gzip"] = json!("AAAA");
        let (found, _) = writes(&spec, &other);
        assert_eq!(found[found.len() - 3..], ["delete 1", "create 1", "create 0"]);
        assert_eq!(writes(&spec, &whole), (vec![], true), "all of it is there");
    }

    #[test]
    fn what_is_left_of_another_revision_is_deleted() {
        let old = parts(&large(), 1);
        let (found, _) = writes(&json!({"deployment": {}}), &old[1..]);
        assert_eq!(found[..2], ["create 0", "delete 1"]);
    }

    #[rstest]
    #[case::whole(|_: &mut Value| {}, 1)]
    #[case::of_another(|part: &mut Value| part["metadata"]["ownerReferences"][0]["uid"] = json!("u-2"), 0)]
    #[case::not_its_controller(|part: &mut Value| part["metadata"]["ownerReferences"][0]["controller"] = json!(false), 0)]
    #[case::another_label(|part: &mut Value| part["metadata"]["labels"][meta::HISTORY_OF] = json!("u-2"), 0)]
    #[case::no_spec(|part: &mut Value| part["data"] = json!({}), 0)]
    #[case::no_part(|part: &mut Value| part["metadata"]["name"] = json!("edge-x"), 0)]
    fn what_belongs_to_a_history(#[case] change: fn(&mut Value), #[case] count: usize) {
        let spec = json!({"deployment": {"hardened": "enabled"}});
        let mut part = parts(&spec, 1).remove(0);
        change(&mut part);
        let history = History::of([&part], "0123456789");
        assert_eq!(history.revisions.len(), count);
        assert!(history.revisions.iter().all(|revision| revision.spec().as_ref() == Some(&spec)));
    }

    /// However many it may keep, what would be too large to list is not kept.
    #[test]
    fn a_history_has_a_size() {
        let spec = json!({"deployment": {}});
        let mut all = parts(&large(), 1);
        for number in 2..=6 {
            let mut other = large();
            other["number"] = json!(number);
            all.extend(parts(&other, number));
        }
        let bytes = |parts: &[Value]| parts.iter().map(|part| part["data"].to_string().len()).sum::<usize>();
        assert!(bytes(&all) > SIZE, "{}", bytes(&all));
        let (found, _) = writes(&spec, &all);
        let deleted = found.iter().filter(|line| line.starts_with("delete 0")).count();
        let kept = 6 - deleted;
        assert!(deleted > 0 && kept * (bytes(&all) / 6) <= SIZE, "{found:?}");
    }
}
