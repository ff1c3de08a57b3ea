//! The last-applied annotation of a DataPlane: the spec of its live pods, whatever a request says.
//!
//! It is a function of `object` and `oldObject` alone, so a repeated call gets the same result and
//! restores the annotation after a user's change.

use std::borrow::Cow;

use interlock_core::admission::decision::{Decision, Outcome};
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::ids::STAMP_MISMATCH;
use interlock_core::admission::patch::Operations;
use interlock_core::admission::request::Request;
use interlock_core::admission::review::ReviewObject;
use interlock_core::admission::size_budget::{SPEC_LIMIT, SizeBudget};
use interlock_core::api::canonical;
use interlock_core::api::meta;
use interlock_core::api::stamp::SpecHash;
use interlock_core::last_applied;
use interlock_core::last_applied::{LastAppliedDraft, WholeSpec};
use serde_json::Value;

use crate::api::stamp::{FLAVOR, FLAVOR_SPEC, LiveStamp, SELECTOR, StatusSelectors};
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::gateway::{is_live, literal_flavor, referenced};
use crate::data_plane::flavor::gateway_ref::GatewayRef;
use crate::data_plane::flavor::projection::excerpt;
use crate::data_plane::flavor::reading::FlavorReading;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::report::changes::StagedChanges;

/// The live state before a write, from the stored object.
pub struct Live<'a> {
    /// The annotation, if it is valid for the object.
    stamp: Option<LiveStamp<'a>>,
    /// The same, as received in the review.
    json: Option<&'a str>,
    uid: Option<&'a str>,
    /// `status.selector`.
    selector: Option<String>,
    /// Whether the stored spec is the one that the annotation refers to.
    is_stored: bool,
    /// The status of the stored object.
    status: Value,
    known: KnownSpec<'a>,
}

/// Whether a written spec stages something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staging {
    Nothing,
    Something,
    /// Too little of the live spec is known.
    Unknown,
}

/// How much of the live spec is known.
enum KnownSpec<'a> {
    /// The whole spec, as JSON.
    Whole(Cow<'a, str>),
    /// The fields that decide about the flavor, as JSON, of a spec that the annotation only refers to.
    Excerpt(&'a str),
    /// Its hash, and the flavor if the annotation names it.
    Hash,
}

impl<'a> Live<'a> {
    /// From a stored object and the text of its annotation; `kept` finds a referenced spec among
    /// ControllerRevisions, by the uid of the object and the hash.
    pub fn of(
        old: &'a ReviewObject<'_>,
        stamp: Option<&'a str>,
        kept: impl FnOnce(&str, &SpecHash) -> Option<String>,
    ) -> Self {
        let status = status_of(old);
        let (uid, selectors) = (old.metadata.uid.as_deref(), StatusSelectors::of(&status));
        let stamp = stamp.and_then(LiveStamp::parse).filter(|stamp| stamp.tells_of(uid, &selectors));
        let stamp = stamp.map(|stamp| live_spec::without_unrecorded(stamp, &status));
        let stored = text_of(old);
        let mut is_stored = false;
        let known = match &stamp {
            None => KnownSpec::Whole(Cow::Borrowed(stored)),
            Some(stamp) => match (stamp.live_spec(), stamp.flavor_spec()) {
                (Some(spec), _) => KnownSpec::Whole(Cow::Borrowed(spec)),
                // Nothing is staged.
                (None, _) if is_live(&serde_json::from_str(stored).unwrap_or_default(), stamp) => {
                    is_stored = true;
                    KnownSpec::Whole(Cow::Borrowed(stored))
                }
                (None, excerpt) => match (kept(uid.unwrap_or_default(), &stamp.hash), excerpt) {
                    (Some(spec), _) => KnownSpec::Whole(Cow::Owned(spec)),
                    (None, Some(excerpt)) => KnownSpec::Excerpt(excerpt),
                    (None, None) => KnownSpec::Hash,
                },
            },
        };
        let json = old.metadata.annotations.stamp_json();
        Self { stamp, json, uid, selector: selectors.live, is_stored, status, known }
    }

    /// The live spec, or an excerpt with the same flavor, as JSON; `None` if it is unknown.
    pub fn spec(&self) -> Option<&str> {
        match &self.known {
            KnownSpec::Whole(spec) => Some(spec),
            KnownSpec::Excerpt(excerpt) => Some(excerpt),
            KnownSpec::Hash => None,
        }
    }

    /// The flavor of pods whose spec is known only by its hash.
    pub fn referenced(&self, subject: &GatewayRef) -> Option<FlavorReading> {
        Some(referenced(subject, self.uid.unwrap_or_default(), self.stamp.as_ref()?))
    }

    /// The flavor that live pods have as a literal, as their spec takes it from a ConfigMap or Secret.
    pub fn literal_flavor(&self, subject: &GatewayRef) -> Option<Flavor> {
        literal_flavor(self.stamp.as_ref()?, self.uid.unwrap_or_default(), self.spec()?, subject)
    }

    /// The flavor that the annotation names.
    pub fn flavor(&self) -> Option<Flavor> {
        Flavor::named(self.stamp.as_ref()?.flavor.as_deref()?)
    }

    /// Whether this is the live spec, as canonical JSON.
    pub fn is_of(&self, spec: &str) -> bool {
        matches!(&self.known, KnownSpec::Whole(live) if canonical::canonical(live) == spec)
    }

    /// Whether a written spec stages something: it differs from the live one in more than its immediate
    /// fields.
    pub fn staging(&self, written: &Value) -> Staging {
        let live = match (&self.known, &self.stamp) {
            (KnownSpec::Whole(live), _) => {
                let live = serde_json::from_str(live).unwrap_or_default();
                return match live_spec::is_changed(&live, written) {
                    true => Staging::Something,
                    false => Staging::Nothing,
                };
            }
            (KnownSpec::Excerpt(_) | KnownSpec::Hash, Some(stamp)) if is_live(written, stamp) => {
                return Staging::Nothing;
            }
            (KnownSpec::Excerpt(live), _) => *live,
            (KnownSpec::Hash, _) => return Staging::Unknown,
        };
        match excerpt(&live_spec::after(None, written)).is_some_and(|written| written == live) {
            true => Staging::Unknown,
            false => Staging::Something,
        }
    }

    /// The fields that a written spec stages, if the live one is known.
    pub fn staged_fields(&self, written: &Value) -> Option<StagedChanges> {
        match &self.known {
            KnownSpec::Whole(live) => {
                Some(StagedChanges::between(&serde_json::from_str(live).ok()?, written))
            }
            KnownSpec::Excerpt(_) | KnownSpec::Hash => None,
        }
    }

    /// Value of the label that selects live pods: a valid annotation knows of a promotion before the status.
    fn selector(&self) -> Option<&str> {
        let stamped = self.stamp.as_ref().and_then(|stamp| stamp.selector.as_deref());
        stamped.or(self.selector.as_deref())
    }

    /// The annotation, if it only refers to the live spec.
    fn reference(&self) -> Option<&LiveStamp<'a>> {
        self.stamp.as_ref().filter(|stamp| stamp.spec().is_none())
    }

    /// Hash and text of the spec that the live pods are made from, where Interlock has recorded it.
    fn before(&self) -> Option<(SpecHash, Option<&str>)> {
        let stamp = self.stamp.as_ref()?;
        if let Some(previous) = &stamp.previous {
            return Some((previous.hash.clone(), previous.spec()));
        }
        let spec = serde_json::from_str(stamp.spec()?).ok()?;
        let is_recorded = live_spec::is_recorded(&self.status, &spec, stamp.flavor.as_deref());
        is_recorded.then(|| (stamp.hash.clone(), stamp.spec()))
    }

    /// The fields that decide about the flavor, for an annotation that only refers to the live spec.
    fn excerpt(&self) -> Option<String> {
        match &self.known {
            KnownSpec::Whole(spec) => excerpt(&serde_json::from_str(spec).ok()?),
            KnownSpec::Excerpt(excerpt) => Some((*excerpt).to_owned()),
            KnownSpec::Hash => None,
        }
    }
}

/// Whether a written spec changes the number of pods alone, which the API server refuses of no Deployment.
fn is_scaled(before: Option<&str>, written: &Value) -> bool {
    let before = before.and_then(|text| serde_json::from_str(text).ok());
    before.is_some_and(|before| live_spec::is_scaled(&before, &live_spec::after(None, written)))
}

/// The spec as received.
pub fn text_of<'a>(object: &ReviewObject<'a>) -> &'a str {
    object.spec.map_or("{}", |raw| raw.get())
}

/// The status of an object; null where it has none.
fn status_of(object: &ReviewObject<'_>) -> Value {
    object.status.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// The last-applied annotation that an object must carry; `None` if not even a hash fits or is known.
pub struct WantedStamp<'a>(Option<Made<'a>>);

/// A computed annotation, and the values to compare it by.
struct Made<'a> {
    text: String,
    hash: SpecHash,
    uid: Option<&'a str>,
    selector: Option<&'a str>,
    excerpt: Option<String>,
    previous: Option<SpecHash>,
}

impl Made<'_> {
    /// Whether another annotation means the same. The flavor may have become known or unknown since
    /// that was written; the excerpt may not have fitted.
    fn is_stated_by(&self, found: &LiveStamp<'_>) -> bool {
        let excerpt = found.flavor_spec();
        found.hash == self.hash
            && found.uid.as_deref() == self.uid
            && found.selector.as_deref() == self.selector
            && found.previous.as_ref().map(|previous| &previous.hash) == self.previous.as_ref()
            && (excerpt.is_none() || excerpt == self.excerpt.as_deref())
    }
}

impl<'a> WantedStamp<'a> {
    /// The annotation for a write; `flavor_of` returns the flavor of a spec if it is known, and `literal` is that of the
    /// live pods where it stays until a promotion.
    pub fn of(
        request: &Request<'_>,
        object: &ReviewObject<'_>,
        old: Option<(&'a ReviewObject<'_>, &'a Live<'_>)>,
        flavor_of: impl FnOnce(&str) -> Option<Flavor>,
        literal: Option<Flavor>,
    ) -> Self {
        let written: Value = serde_json::from_str(text_of(object)).unwrap_or_default();
        let annotations = &object.metadata.annotations;
        let room = annotations.room(request.size);
        let room = SizeBudget { annotations: room.annotations + annotations.history, ..room };
        let uid = old.and_then(|(old, _)| old.metadata.uid.as_deref());
        let selector = old.and_then(|(_, live)| live.selector());
        let staged = old.map(|(_, live)| live).filter(|_| live_spec::is_staged(&written));
        let reference = staged.and_then(|live| Some((live, live.reference()?)));
        // Where nothing is staged before and after, the object itself holds what becomes live.
        let reference =
            reference.filter(|(live, _)| !(live.is_stored && live.staging(&written) == Staging::Nothing));
        let (hash, spec, excerpt, known) = match reference {
            // No staged change has reached the pods since.
            Some((live, reference)) => (reference.hash.clone(), None, live.excerpt(), live.flavor()),
            None => {
                let before = staged.and_then(|live| serde_json::from_str(live.spec()?).ok());
                let live = live_spec::after(before, &written);
                let spec = live.to_string();
                let excerpt = excerpt(&live);
                let known = literal.filter(|_| staged.is_some()).or_else(|| flavor_of(&spec));
                (SpecHash::of(&spec), Some(spec), excerpt, known)
            }
        };
        // Where changes are not staged, what was live before stays known until the API server has accepted this one.
        let before = old.map(|(_, live)| live).filter(|_| !live_spec::is_staged(&written));
        let previous = before.and_then(Live::before);
        let previous = previous.filter(|(before, spec)| *before != hash && !is_scaled(*spec, &written));
        let mut more: Vec<(&str, &str)> = Vec::new();
        more.extend(selector.map(|selector| (SELECTOR, selector)));
        more.extend(known.map(|flavor| (FLAVOR, flavor.as_str())));
        let draft = LastAppliedDraft {
            hash: &hash,
            spec: spec.as_deref(),
            previous: previous.as_ref().map(|(hash, spec)| WholeSpec {
                hash: Cow::Borrowed(hash.as_str()),
                spec: spec.filter(|spec| spec.len() <= SPEC_LIMIT).map(Cow::Borrowed),
                changes: None,
            }),
            uid,
            more: &more,
            excerpt: excerpt.as_deref().map(|excerpt| (FLAVOR_SPEC, excerpt)),
        };
        let text = last_applied::write(&draft, room);
        let previous = previous.map(|(hash, _)| hash);
        Self(text.map(|text| Made { text, hash, uid, selector, excerpt, previous }))
    }

    /// Patches an object that carries another annotation, and warns if a user changed it.
    pub fn patch(self, object: &ReviewObject<'_>, old: Option<&ReviewObject<'_>>) -> Decision {
        let found = object.metadata.annotations.stamp_text();
        let wanted = self.0.map(|made| made.text);
        if found.as_deref() == wanted.as_deref() {
            return Decision::allow();
        }
        let before = old.and_then(|old| old.metadata.annotations.stamp_text());
        let undone = old.is_some() && found.is_some() && found != before;
        let mut operations = Operations::default();
        operations.stamp(&object.metadata, wanted);
        let mut verdict = Decision::of(Outcome::Allow { patch: operations.finish() });
        if undone {
            verdict.warn(
                STAMP_MISMATCH,
                "annotation interlock.dev/last-applied-spec is Interlock's own; the change of it was undone",
            );
        }
        verdict
    }

    /// A denial, if the object carries another annotation.
    pub fn refusal(
        &self,
        subject: &GatewayRef,
        object: &ReviewObject<'_>,
        live: Option<&Live<'_>>,
    ) -> Option<Denial> {
        let annotations = &object.metadata.annotations;
        // Mostly it equals the stored one, which is already parsed.
        let kept = live.filter(|live| live.json.is_some() && live.json == annotations.stamp_json());
        let same = match (kept.and_then(|live| live.stamp.as_ref()), &self.0) {
            (Some(kept), Some(made)) => made.is_stated_by(kept),
            (_, made) => match (annotations.stamp_text().as_deref(), made) {
                (None, None) => true,
                (Some(found), Some(made)) => {
                    LiveStamp::parse(found).is_some_and(|found| made.is_stated_by(&found))
                }
                _ => false,
            },
        };
        (!same).then(|| {
            let detail = format!("{} is not the stamp of what is live", meta::LAST_APPLIED_SPEC);
            Denial::invalid(
                STAMP_MISMATCH,
                format!("{subject} is not as Interlock's mutating webhook makes it"),
                vec![ViolationField::new("metadata.annotations", FieldReason::Invalid, detail)],
            )
            .why("another webhook changed it since, or the mutating webhook was not called")
            .next(
                "send the request again; if it is refused again, compare `kubectl get mutatingwebhookconfigurations -o yaml` \
                 with `interlock render webhooks`",
            )
        })
    }
}
