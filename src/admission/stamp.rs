//! The stamp as a function of `object` and `oldObject`: what the annotation must be, whatever a
//! request says.
//!
//! It is inline only where it cannot make a legal write fail: all annotations of an object
//! together are limited to 256 KiB, and client-side apply keeps a copy of the object there; etcd
//! takes 1.5 MiB for the whole write, and what fits only without managedFields silently loses
//! them.

use std::borrow::Cow;

use super::facts::Head;
use crate::api::meta;
use crate::api::stamp::{Applied, Envelope, Kept, Previous, SpecHash};

/// Largest spec that is kept inline, as JSON.
pub const SPEC_LIMIT: usize = 32 * 1024;
/// All annotations together, when a spec is inline.
pub const ANNOTATIONS_LIMIT: usize = 192 * 1024;
/// The whole object, when a spec is inline.
pub const OBJECT_LIMIT: usize = 1024 * 1024;
/// All annotations together: `TotalAnnotationSizeLimitB` of the API server.
const ANNOTATIONS_MAX: usize = 256 * 1024;
/// The whole object, where even a bare hash is left off, as etcd would refuse it.
const OBJECT_MAX: usize = 1536 * 1024 - 4 * 1024;

/// How much room an object leaves.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes of all annotations that are not ours; the history of runs gives way to them.
    pub annotations: usize,
    /// Bytes of the object as JSON, with the stamp that it has.
    pub object: usize,
}

impl Room {
    fn fits(&self, text: &str, annotations: usize, object: usize) -> bool {
        let escapes = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
        self.annotations + meta::LAST_APPLIED_SPEC.len() + text.len() <= annotations
            && self.object + text.len() + escapes <= object
    }
}

/// What the stamp of a spec is made from.
pub struct Making<'a> {
    /// Hash of the spec.
    pub hash: &'a SpecHash,
    /// The spec.
    pub spec: &'a Applied<'a>,
    /// What last was carried out in full.
    pub previous: Option<Previous<'a>>,
    /// Uid of the object, where it is known.
    pub uid: Option<&'a str>,
}

/// The annotation's value; `None` where not even a bare hash fits.
pub fn make(making: Making<'_>, room: Room) -> Option<String> {
    let Making { hash, spec, previous, uid } = making;
    let mut envelope = Envelope {
        hash: hash.clone(),
        kept: Kept::Inline { spec: spec.clone() },
        previous,
        uid: uid.map(Cow::Borrowed),
        generation: None,
    };
    if length(spec) <= SPEC_LIMIT {
        let text = envelope.to_json();
        if room.fits(&text, ANNOTATIONS_LIMIT, OBJECT_LIMIT) {
            return Some(text);
        }
    }
    // The object itself is the source of the new spec; an inline previous one has no other.
    envelope.kept = Kept::Elsewhere;
    let text = envelope.to_json();
    if room.fits(&text, ANNOTATIONS_LIMIT, OBJECT_LIMIT) {
        return Some(text);
    }
    if envelope.previous.as_ref().is_some_and(|p| p.kept.inline().is_some()) {
        envelope.previous = None;
    }
    let text = envelope.to_json();
    room.fits(&text, ANNOTATIONS_MAX, OBJECT_MAX).then_some(text)
}

/// A stamp that stays, as far as the other annotations leave room for it: the hash alone where
/// the spec does not fit, `None` where not even that does.
pub fn kept<'t>(text: &'t str, annotations: usize) -> Option<Cow<'t, str>> {
    let room = Room { annotations, object: 0 };
    if room.fits(text, ANNOTATIONS_MAX, usize::MAX) {
        return Some(Cow::Borrowed(text));
    }
    let mut envelope = Envelope::parse(text)?;
    envelope.kept = Kept::Elsewhere;
    envelope.previous = envelope.previous.filter(|previous| previous.kept.inline().is_none());
    let text = envelope.to_json();
    room.fits(&text, ANNOTATIONS_MAX, usize::MAX).then_some(Cow::Owned(text))
}

/// Whether all annotations together fit: those of others, the stamp, and the history with its key.
pub fn holds(others: usize, stamp: Option<&str>, history: usize) -> bool {
    let stamp = stamp.map_or(0, |text| meta::LAST_APPLIED_SPEC.len() + text.len());
    others + stamp + history <= ANNOTATIONS_MAX
}

/// Bytes of a spec as JSON, without its escapes.
fn length(spec: &Applied<'_>) -> usize {
    let parameters: usize = spec.parameters.iter().map(|(k, v)| k.len() + v.len() + 6).sum();
    parameters + spec.operator_version.name.len() + spec.operator_version.namespace.len() + 64
}

/// What last was carried out in full, once a new spec takes the place of the stamp.
///
/// While plans are owed, or the stamp is not what the basis says was carried out, that is still
/// what the stamp says; else it is the stamp itself.
pub fn previous<'a>(
    stamp: Option<Envelope<'a>>,
    basis: Option<&Head>,
    new: &SpecHash,
) -> Option<Previous<'a>> {
    let stamp = stamp?;
    let full = basis.is_some_and(|basis| !basis.owes && basis.hash == stamp.hash.as_str());
    let previous = if full { Some(Previous { hash: stamp.hash, kept: stamp.kept }) } else { stamp.previous };
    previous.filter(|previous| previous.hash != *new)
}

/// Whether a stamp says what another does, however each is kept.
pub fn equivalent(found: &str, wanted: &str) -> bool {
    if found == wanted {
        return true;
    }
    let (Some(found), Some(wanted)) = (Envelope::parse(found), Envelope::parse(wanted)) else { return false };
    let holds = |hash: &SpecHash, kept: &Kept<'_>| kept.inline().is_none_or(|spec| spec.hash() == *hash);
    let previous = |envelope: &Envelope<'_>| envelope.previous.as_ref().map(|p| p.hash.clone());
    // What did not fit may have been dropped by a call that saw more annotations.
    let same_previous = found.previous.is_none() || previous(&found) == previous(&wanted);
    found.hash == wanted.hash
        && holds(&found.hash, &found.kept)
        && found.previous.as_ref().is_none_or(|p| holds(&p.hash, &p.kept))
        && same_previous
        && found.uid == wanted.uid
}
