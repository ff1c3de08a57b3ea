//! The lock in CEL.

/// The predicate of [`crate::instance::change::lock`] on the old object, which CREATE lacks: `locked`, and the
/// variables it uses.
pub(super) const LOCKED: [(&str, &str); 8] = [
    ("old", "oldObject == null ? {} : oldObject.?spec.?planExecution.orValue({})"),
    ("oldPlan", "variables.old.?planName.orValue('')"),
    ("oldUid", "variables.old.?uid.orValue('')"),
    ("past", "oldObject == null ? {} : oldObject.?status.?planStatus.orValue({})"),
    ("entry", "variables.past[?variables.oldPlan].orValue({})"),
    (
        "scheduled",
        "variables.oldPlan != '' && !(variables.oldUid != '' && variables.entry.?uid.orValue('') == variables.oldUid \
         && variables.entry.?status.orValue('') in ['COMPLETE', 'FATAL_ERROR'])",
    ),
    (
        "running",
        "variables.past.filter(p, variables.past[p].?status.orValue('') in ['PENDING', 'IN_PROGRESS', 'ERROR'])",
    ),
    ("locked", "variables.scheduled || variables.running.size() > 0"),
];
