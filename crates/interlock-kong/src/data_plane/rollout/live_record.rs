//! The live side of a DataPlane: its selector and its spec, read from the last-applied annotation and written into it.
//!
//! An annotation is text that anybody may have written while the guards were away. It is believed where the
//! condition [`RECORDED`] vouches for the staged fields of its spec, or where the spec of the object says the same.
//!
//! The commit of a promotion, and every other write of the annotation, is one patch of the DataPlane on the version that
//! it was decided on. All that follows is derived from it.

use std::borrow::Cow;

use interlock_core::admission::size_budget::{SPEC_LIMIT, SizeBudget};
use interlock_core::api::condition::Condition;
use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, annotation};
use interlock_core::api::revision;
use interlock_core::api::revision::PartsReader;
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::Effect;
use interlock_core::last_applied::{LastAppliedDraft, WholeSpec, write};
use interlock_core::reconcile::{Needs, View};
use serde_json::{Map, Value, json};

use super::children::DataPlaneOwner;
use super::promotion::staged_hash;
use super::report::RolloutPhase;
use super::side::Colour;
use super::view::DataPlaneView;
use crate::api::stamp::{FLAVOR, FLAVOR_SPEC, LiveStamp, SELECTOR};
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::change::FlavorChange;
use crate::data_plane::flavor::compatibility::ProducerConfiguration;
use crate::data_plane::flavor::gateway_ref::{FlavorSpec, GatewayKind, GatewayRef};
use crate::data_plane::flavor::projection::excerpt;
use crate::data_plane::flavor::routes::Inventory;
use crate::data_plane::flavor::sources::Nothing;
use crate::data_plane::flavor::validate::judge;
use crate::data_plane::live_spec;

/// Type of the condition whose message is the hash of the staged fields of the live spec. It is true once the live
/// side was ready.
pub const RECORDED: &str = meta::condition::LIVE_SPEC_RECORDED;

#[derive(Clone, Debug, PartialEq)]
pub struct LiveSide {
    /// Value of the label of its pods.
    pub selector: String,
    pub colour: Colour,
    /// The spec that it is made from, without `deployment.rollout`.
    pub spec: Value,
    /// The last spec that the API server accepted in every child, while `spec` is not: where changes are not staged.
    pub previous: Option<Value>,
    /// Its router flavor, where that comes from a ConfigMap or Secret: its pods have it as a literal.
    pub sourced: Option<Flavor>,
    /// Whether the annotation says all of this.
    pub is_stamped: bool,
    /// Why the spec of the object, which admission never saw, is not carried out.
    pub refused: Option<String>,
}

impl LiveSide {
    /// A side that is not recorded yet.
    pub fn of(selector: String, colour: Colour, spec: Value) -> Self {
        Self { selector, colour, spec, previous: None, sourced: None, is_stamped: false, refused: None }
    }
}

/// What is known of the live side.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveRecord {
    Known(LiveSide),
    /// Which pods are live, not what they are made from; why, for a condition.
    Lost(LiveSide, LostSpec),
    /// Another operator made the live pods.
    OfAnother {
        /// Value of the label of its pods.
        selector: String,
    },
}

/// Why the live spec is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostSpec {
    /// There is no annotation while a change is staged, or what it refers to is gone.
    Missing,
    /// The annotation is not the recorded one.
    Mismatch,
}

impl LostSpec {
    /// The reason of the condition.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Missing => "LastAppliedSpecLost",
            Self::Mismatch => "LastAppliedSpecMismatch",
        }
    }
}

/// The live side, from the object and what was read.
pub fn record(of: &DataPlaneView<'_>, owner: &DataPlaneOwner, view: &View<'_>) -> Result<LiveRecord, Needs> {
    let stamp = of.stamp();
    let stamped = stamp.as_ref().and_then(|stamp| stamp.selector.as_deref());
    let Some(selector) = stamped.or(of.reported_selector()) else {
        // There is none yet.
        let side = LiveSide::of(owner.selector(Colour::Blue), Colour::Blue, of.wanted_spec());
        return Ok(LiveRecord::Known(side));
    };
    let Some(colour) = owner.colour_of(selector) else {
        return Ok(LiveRecord::OfAnother { selector: selector.to_owned() });
    };
    let lost = |selector: &str, colour, why| {
        LiveRecord::Lost(LiveSide::of(selector.to_owned(), colour, Value::Null), why)
    };
    let spec = match &stamp {
        None if is_open(of) => return Ok(lost(selector, colour, LostSpec::Missing)),
        None => of.wanted_spec(),
        Some(stamp) => match stamp.spec() {
            Some(text) => serde_json::from_str(text).unwrap_or_default(),
            None => match referenced(of, &stamp.hash, view)? {
                None => return Ok(lost(selector, colour, LostSpec::Missing)),
                Some(spec) => spec,
            },
        },
    };
    let kept = stamp.as_ref().map(|stamp| previous(of, stamp, view)).transpose()?.flatten();
    if kept.is_none() && !is_trusted(of, &spec) {
        // Nor is its selector: it may be an earlier annotation, of the side that is the preview now.
        let selector = of.reported_selector().unwrap_or(selector);
        let colour = owner.colour_of(selector).unwrap_or(colour);
        return Ok(lost(selector, colour, LostSpec::Mismatch));
    }
    let base = kept.unwrap_or_else(|| spec.clone());
    // A live side that was never ready has no traffic: a correction is made in place, not staged.
    let now = match of.is_blue_green() && has_served(of) {
        true => live_spec::after(Some(base.clone()), of.spec()),
        false => of.wanted_spec(),
    };
    let in_place = !of.is_blue_green() && has_served(of) && !live_spec::is_scaled(&base, &now);
    let refused = if in_place { refusal(of, &base) } else { None };
    let (now, previous) = match (in_place, refused.is_some()) {
        (true, false) => (now, Some(base)),
        (true, true) => (base, None),
        (false, _) => (now, None),
    };
    let states =
        |stamp: &LiveStamp<'_>| stamp.uid.is_some() && stamp.previous.is_some() == previous.is_some();
    let is_stamped = stamped.is_some() && now == spec && stamp.as_ref().is_some_and(states);
    let side = LiveSide::of(selector.to_owned(), colour, now);
    Ok(LiveRecord::Known(LiveSide { previous, is_stamped, refused, ..side }))
}

/// Whether the spec may hold something that is not live: Kong's rule, as `Ready` is of the generation that is live.
fn is_open(of: &DataPlaneView<'_>) -> bool {
    let ready = of.conditions().into_iter().find(|condition| condition.type_ == meta::condition::READY);
    of.is_blue_green() && ready.is_some_and(|ready| ready.observed_generation != Some(of.generation))
}

fn recorded(of: &DataPlaneView<'_>) -> Option<Condition> {
    of.conditions().into_iter().find(|condition| condition.type_ == RECORDED)
}

/// Whether the live side was ready once.
pub fn has_served(of: &DataPlaneView<'_>) -> bool {
    recorded(of).is_some_and(|recorded| recorded.status == "True")
}

fn is_trusted(of: &DataPlaneView<'_>, spec: &Value) -> bool {
    let Some(recorded) = recorded(of) else { return true };
    let hash = staged_hash(spec);
    let with_flavor = stamped_flavor(of).map(|flavor| recorded_hash(spec, Some(flavor)));
    recorded.message == hash.as_str()
        || with_flavor.is_some_and(|hash| recorded.message == hash.as_str())
        || staged_hash(of.spec()) == hash
}

/// The message of [`RECORDED`] for a live spec, and for its router flavor where that comes from a ConfigMap or Secret.
pub fn recorded_hash(spec: &Value, sourced: Option<Flavor>) -> SpecHash {
    match sourced {
        None => staged_hash(spec),
        Some(flavor) => SpecHash::of(&format!("{}\n{flavor}", live_spec::staged_part(spec))),
    }
}

/// The router flavor that the annotation gives the live pods.
pub fn stamped_flavor(of: &DataPlaneView<'_>) -> Option<Flavor> {
    Flavor::named(of.stamp()?.flavor.as_deref()?)
}

/// The same, where the condition vouches for it: a promotion writes the annotation before the status. A condition
/// without a flavor is of before one was recorded.
pub fn recorded_flavor(of: &DataPlaneView<'_>, spec: &Value) -> Option<Flavor> {
    let flavor = stamped_flavor(of)?;
    let Some(recorded) = recorded(of) else { return Some(flavor) };
    let promotes = of.rolled_out().is_some_and(|found| found.reason == RolloutPhase::Promoting.reason());
    let selector = of.stamp().and_then(|stamp| stamp.selector);
    let is_committed = promotes && selector.as_deref() != of.reported_selector();
    let hashes = [recorded_hash(spec, Some(flavor)), recorded_hash(spec, None)];
    (is_committed || hashes.iter().any(|hash| recorded.message == hash.as_str())).then_some(flavor)
}

/// The spec that was live before an edit in place, where the annotation names one that [`RECORDED`] vouches for.
fn previous(of: &DataPlaneView<'_>, stamp: &LiveStamp<'_>, view: &View<'_>) -> Result<Option<Value>, Needs> {
    let Some(previous) = &stamp.previous else { return Ok(None) };
    let spec = match previous.spec() {
        Some(text) => serde_json::from_str(text).ok(),
        None => referenced(of, &previous.hash, view)?,
    };
    let Some(recorded) = recorded(of) else { return Ok(None) };
    let flavor = stamped_flavor(of);
    Ok(spec.filter(|spec| {
        [None, flavor].iter().any(|flavor| recorded.message == recorded_hash(spec, *flavor).as_str())
    }))
}

/// The spec that the annotation refers to: that of the object, or one in ControllerRevisions; `None` where it is gone.
fn referenced(of: &DataPlaneView<'_>, hash: &SpecHash, view: &View<'_>) -> Result<Option<Value>, Needs> {
    let stored = of.wanted_spec();
    if SpecHash::of(&stored.to_string()) == *hash {
        return Ok(Some(stored));
    }
    let mut parts = PartsReader::default();
    while let Some(number) = parts.next() {
        let name = revision::name(of.name, of.uid, hash, number);
        let key = of.key_of(revision::API_VERSION, revision::KIND, name);
        if view.get(&key)?.and_then(|part| parts.take(part)).is_none() {
            return Ok(None);
        }
    }
    Ok(parts.spec(hash).and_then(|text| serde_json::from_str(&text).ok()))
}

/// Records a live side. A promotion also removes the annotation that asked for it.
pub fn commit(of: &DataPlaneView<'_>, side: &LiveSide, promotes: bool) -> Effect {
    let mut annotations = Map::new();
    annotations.insert(meta::LAST_APPLIED_SPEC.to_owned(), stamp(of, side).map_or(Value::Null, Value::from));
    if promotes && annotation(of.object, meta::PROMOTE_WHEN_READY).is_some() {
        annotations.insert(meta::PROMOTE_WHEN_READY.to_owned(), Value::Null);
    }
    // The history has the flavor of a revision: one that comes from a source may be promoted alone.
    if promotes && side.sourced.is_some() && annotation(of.object, meta::LIVE_REVISION).is_some() {
        annotations.insert(meta::LIVE_REVISION.to_owned(), Value::Null);
    }
    of.patch(json!({"metadata": {"annotations": annotations}}))
}

/// The annotation; `None` where not even the hash of the spec fits.
fn stamp(of: &DataPlaneView<'_>, side: &LiveSide) -> Option<String> {
    let spec = side.spec.to_string();
    let known = || of.flavor(&side.spec, &Nothing)?.effective.known();
    let flavor = side.sourced.or_else(known).map(Flavor::as_str);
    let excerpt = excerpt(&side.spec);
    let mut more = vec![(SELECTOR, side.selector.as_str())];
    more.extend(flavor.map(|flavor| (FLAVOR, flavor)));
    let previous = side.previous.as_ref().map(|spec| {
        let spec = spec.to_string();
        let hash = SpecHash::of(&spec);
        WholeSpec {
            hash: Cow::Owned(hash.as_str().to_owned()),
            spec: (spec.len() <= SPEC_LIMIT).then_some(Cow::Owned(spec)),
            changes: None,
        }
    });
    let draft = LastAppliedDraft {
        hash: &SpecHash::of(&spec),
        spec: Some(&spec),
        previous,
        uid: Some(of.uid),
        more: &more,
        excerpt: excerpt.as_deref().map(|excerpt| (FLAVOR_SPEC, excerpt)),
    };
    write(&draft, room(of))
}

/// The room that the other annotations and the rest of the object leave.
fn room(of: &DataPlaneView<'_>) -> SizeBudget {
    let listed = of.object["metadata"]["annotations"].as_object().into_iter().flatten();
    let others = listed.filter(|(name, _)| *name != meta::LAST_APPLIED_SPEC);
    let annotations = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    let own = annotation(of.object, meta::LAST_APPLIED_SPEC).map_or(0, str::len);
    SizeBudget { annotations, object: of.object.to_string().len().saturating_sub(own) }
}

/// Why the spec, which admission never saw, is not carried out in place of the live one; `None` where it is. A router
/// flavor that comes from a ConfigMap or Secret is not read here: those are guarded where they are written.
fn refusal(of: &DataPlaneView<'_>, live: &Value) -> Option<String> {
    let flavor = |spec| Some(FlavorSpec { reading: of.flavor(spec, &Nothing)?, staged: false });
    let (before, new) = (flavor(live)?, flavor(of.spec())?);
    let name = NamespacedName::new(of.namespace, of.name);
    let findings = judge(&FlavorChange {
        subject: &GatewayRef { kind: GatewayKind::DataPlane, name },
        live: Some(&before.reading),
        stored: Some(&before),
        new: &new,
        // As admission judges it: what is live may be an earlier spec, whose pods are gone.
        stopped: is_stopped(of.spec()) && of.object["status"]["replicas"].as_i64().unwrap_or_default() == 0,
        routes: &Inventory::empty(),
        configuration: ProducerConfiguration::Usual,
        group: None,
        allowance: None,
    });
    let refused = findings.denied.first()?;
    Some(format!(
        "the spec was changed past admission and is not carried out, the live pods stay as they are: {refused}; write \
         the spec of the live pods back (`interlock rollout status {}` shows both), or change it in steps that are \
         allowed",
        of.name
    ))
}

fn is_stopped(spec: &Value) -> bool {
    spec["deployment"]["replicas"] == 0
}
