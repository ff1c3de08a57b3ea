//! What the last-applied annotation of an Instance says of the spec before it.

use std::borrow::Cow;

use interlock_core::admission::review::Annotations;
use interlock_core::admission::size_budget::SPEC_LIMIT;
use interlock_core::api::stamp::{Beginning, Envelope, Previous, SpecChanges, SpecHash};
use interlock_core::last_applied::WholeSpec;

use super::spec::SpecView;
use super::status::BaselineHead;

/// The last spec that was carried out in full, for an annotation that gets a new spec.
///
/// While plans are pending, or the annotation differs from the baseline, that is the annotation's
/// `previous`; else it is the annotation's own spec.
pub fn previous<'a>(
    stamp: Option<Envelope<'a>>,
    basis: Option<&BaselineHead<'_>>,
    new: &SpecHash,
) -> Option<Previous<'a>> {
    let stamp = stamp?;
    let full = basis.is_some_and(|basis| !basis.owes && basis.hash == stamp.hash.as_str());
    let previous = if full { Some(Previous { hash: stamp.hash, kept: stamp.kept }) } else { stamp.previous };
    previous.filter(|previous| previous.hash != *new)
}

/// The same for an annotation as received, which is not parsed if the old spec suffices.
pub fn replaced<'a>(
    annotations: &Annotations<'_>,
    old: &'a SpecView<'_>,
    basis: Option<&BaselineHead<'_>>,
    new: &SpecView<'_>,
) -> Option<WholeSpec<'a>> {
    let beginning = Beginning::of(annotations.stamp_json()?);
    if let (Some(basis), Some(beginning)) = (basis.filter(|basis| !basis.owes), beginning)
        && basis.hash == beginning.hash
        && basis.hash == old.hash().as_str()
    {
        let inline = beginning.inline && old.canonical().len() <= SPEC_LIMIT;
        let changes = || SpecChanges::between(&new.applied, &old.applied).to_json();
        return (old.hash() != new.hash()).then(|| WholeSpec {
            hash: Cow::Borrowed(old.hash().as_str()),
            spec: inline.then(|| Cow::Borrowed(old.canonical())),
            changes: inline.then(changes),
        });
    }
    let text = annotations.stamp_text()?;
    previous(Envelope::parse(&text), basis, new.hash()).map(|previous| WholeSpec::of(previous, &new.applied))
}
