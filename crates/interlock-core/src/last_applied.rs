//! The last-applied annotation as a function of `object` and `oldObject`, whatever a request says.

use std::borrow::Cow;

use crate::admission::size_budget::{
    ANNOTATIONS_LIMIT, ANNOTATIONS_MAX, OBJECT_LIMIT, OBJECT_MAX, SPEC_LIMIT, SizeBudget,
};
use crate::api::json::json_string;
use crate::api::revision;
use crate::api::stamp::{Applied, Envelope, KeptSpec, Previous, SpecChanges, SpecHash};

/// The last spec that was carried out in full, as text.
#[derive(Debug, PartialEq, Eq)]
pub struct WholeSpec<'a> {
    /// Text of its hash.
    pub hash: Cow<'a, str>,
    /// Its canonical JSON; `None` if the annotation only refers to it.
    pub spec: Option<Cow<'a, str>>,
    /// What makes it of the new spec, as JSON; written instead where that is inline. `None` = never.
    pub changes: Option<String>,
}

/// The source of a last-applied annotation, as texts.
pub struct LastAppliedDraft<'a> {
    /// Hash of the spec.
    pub hash: &'a SpecHash,
    /// Its canonical JSON; `None` if it is not known here.
    pub spec: Option<&'a str>,
    /// The last spec that was carried out in full.
    pub previous: Option<WholeSpec<'a>>,
    /// Uid of the object, if known.
    pub uid: Option<&'a str>,
    /// Further members, as names that need no escapes and strings.
    pub more: &'a [(&'a str, &'a str)],
    /// A member beside a referenced spec, as a name that needs no escapes and JSON: the fields of the
    /// spec that admission decides by. It is omitted if it does not fit.
    pub excerpt: Option<(&'a str, &'a str)>,
}

/// The annotation's value; `None` if not even a bare hash fits.
pub fn write(draft: &LastAppliedDraft<'_>, room: SizeBudget) -> Option<String> {
    let previous = draft.previous.as_ref();
    if let Some(spec) = draft.spec.filter(|spec| spec.len() <= SPEC_LIMIT) {
        let text = text_of(draft, Some(spec), previous);
        if room.fits(&text, ANNOTATIONS_LIMIT, OBJECT_LIMIT) {
            return Some(text);
        }
    }
    // The object itself holds the new spec; an inline previous one exists only here.
    let text = text_of(draft, None, previous);
    if room.fits(&text, ANNOTATIONS_LIMIT, OBJECT_LIMIT) {
        return Some(text);
    }
    let previous = previous.filter(|previous| previous.spec.is_none());
    let text = text_of(draft, None, previous);
    if room.fits(&text, ANNOTATIONS_MAX, OBJECT_MAX) {
        return Some(text);
    }
    draft.excerpt?;
    let text = text_of(&LastAppliedDraft { previous: None, excerpt: None, ..*draft }, None, previous);
    room.fits(&text, ANNOTATIONS_MAX, OBJECT_MAX).then_some(text)
}

const SPEC: &str = ",\"spec\":";

/// Writes what [`Envelope::to_json`] writes, from texts that are canonical JSON already.
fn text_of(draft: &LastAppliedDraft<'_>, spec: Option<&str>, previous: Option<&WholeSpec<'_>>) -> String {
    let of = |out: &mut String, hash: &str, spec: Option<(&str, &str)>| {
        out.push_str("\"hash\":");
        json_string(out, hash);
        match spec {
            Some((name, spec)) => {
                out.push_str(name);
                out.push_str(spec);
            }
            None => {
                out.push_str(",\"ref\":");
                json_string(out, revision::KIND);
            }
        }
    };
    let inline = previous.and_then(|previous| {
        let text = previous.spec.as_deref()?;
        let changes = previous.changes.as_deref().filter(|_| spec.is_some());
        Some(changes.map_or((SPEC, text), |changes| (",\"changes\":", changes)))
    });
    let length = spec.map_or(0, str::len) + inline.map_or(0, |(_, text)| text.len()) + 320;
    let mut out = String::with_capacity(length);
    out.push_str("{\"v\":1,");
    of(&mut out, draft.hash.as_str(), spec.map(|spec| (SPEC, spec)));
    if let Some(previous) = previous {
        out.push_str(",\"previous\":{");
        of(&mut out, &previous.hash, inline);
        out.push('}');
    }
    if let Some(uid) = draft.uid {
        out.push_str(",\"uid\":");
        json_string(&mut out, uid);
    }
    for (name, text) in draft.more {
        out.push_str(",\"");
        out.push_str(name);
        out.push_str("\":");
        json_string(&mut out, text);
    }
    if let Some((name, json)) = draft.excerpt.filter(|_| spec.is_none()) {
        out.push_str(",\"");
        out.push_str(name);
        out.push_str("\":");
        out.push_str(json);
    }
    out.push('}');
    out
}

/// The source of a last-applied annotation.
pub struct LastAppliedInput<'a> {
    /// Hash of the spec.
    pub hash: &'a SpecHash,
    /// The spec.
    pub spec: &'a Applied<'a>,
    /// The last spec that was carried out in full.
    pub previous: Option<Previous<'a>>,
    /// Uid of the object, if known.
    pub uid: Option<&'a str>,
}

/// The annotation's value; `None` if not even a bare hash fits.
pub fn make(making: LastAppliedInput<'_>, room: SizeBudget) -> Option<String> {
    let LastAppliedInput { hash, spec, previous, uid } = making;
    let canonical = spec.canonical();
    let previous = previous.map(|previous| WholeSpec::of(previous, spec));
    let draft = LastAppliedDraft { hash, spec: Some(&canonical), previous, uid, more: &[], excerpt: None };
    write(&draft, room)
}

/// An existing annotation, as far as the other annotations leave space: only the hash if the spec does
/// not fit, `None` if not even that does.
pub fn kept<'t>(text: &'t str, annotations: usize) -> Option<Cow<'t, str>> {
    let room = SizeBudget { annotations, object: 0 };
    if room.fits(text, ANNOTATIONS_MAX, usize::MAX) {
        return Some(Cow::Borrowed(text));
    }
    let mut envelope = Envelope::parse(text)?;
    if envelope.kept.inline().is_some() {
        envelope.kept = KeptSpec::Referenced;
    }
    envelope.previous = envelope.previous.filter(|previous| previous.kept.inline().is_none());
    let text = envelope.to_json();
    room.fits(&text, ANNOTATIONS_MAX, usize::MAX).then_some(Cow::Owned(text))
}

impl WholeSpec<'_> {
    /// For an annotation that gets a new spec.
    pub fn of(previous: Previous<'_>, new: &Applied<'_>) -> Self {
        let spec = previous.kept.inline();
        Self {
            hash: Cow::Owned(previous.hash.as_str().to_owned()),
            spec: spec.map(|spec| Cow::Owned(spec.canonical())),
            changes: spec.map(|spec| SpecChanges::between(new, spec).to_json()),
        }
    }
}

/// Whether an annotation means the same as a draft, inline or by reference.
pub fn says(found: &str, draft: &LastAppliedDraft<'_>) -> bool {
    let Some(found) = Envelope::parse(found) else { return false };
    let holds = |hash: &SpecHash, kept: &KeptSpec<'_>| kept.inline().is_none_or(|spec| spec.hash() == *hash);
    // A call for another object size may have inlined a spec that this one does not, or the reverse;
    // but only specs of the draft.
    let previous = draft.previous.as_ref().map(|previous| previous.hash.as_ref());
    let same_previous =
        found.previous.as_ref().is_none_or(|p| previous == Some(p.hash.as_str()) && holds(&p.hash, &p.kept));
    found.hash == *draft.hash
        && holds(&found.hash, &found.kept)
        && same_previous
        && found.uid.as_deref() == draft.uid
}
