//! Validates the annotations of Instances and OperatorVersions that set time limits.

use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::ids::REQUEST_UNKNOWN;
use interlock_core::admission::review::{Annotations, ReviewObject};
use interlock_core::api::json::Raw;
use interlock_core::api::meta;

use crate::package::time_limits;

/// Unreadable annotations, of `what` for people and `object` for kubectl; those of the old object may stay.
pub(super) fn violations(
    what: impl Fn() -> String,
    object: impl Fn() -> String,
    new: &ReviewObject<'_>,
    old: Option<&ReviewObject<'_>>,
) -> impl Iterator<Item = Denial> {
    let before = old.map(|old| of(&old.metadata.annotations)).unwrap_or_default();
    let written = KEYS.into_iter().zip(of(&new.metadata.annotations)).zip(before);
    written.filter_map(move |((key, raw), before)| {
        let text = raw.filter(|_| raw.map(Raw::get) != before.map(Raw::get))?.text().ok()?;
        let error = time_limits::problem(key, &text.0)?;
        let field = ViolationField::new(
            format!("metadata.annotations[{key}]"),
            FieldReason::Invalid,
            error.to_string(),
        );
        let sentence = format!("{} has an annotation that cannot be read", what());
        let denial = Denial::invalid(REQUEST_UNKNOWN, sentence, vec![field]);
        Some(denial.next(format!(
            "write a time such as 10m, or leave {key} out (`kubectl annotate {} {key}-` takes it away)",
            object()
        )))
    })
}

const KEYS: [&str; 2] = [meta::STEP_DEADLINE, meta::CLEANUP_PATIENCE];

fn of<'a>(annotations: &Annotations<'a>) -> [Option<Raw<'a>>; 2] {
    KEYS.map(|key| annotations.own(key))
}
