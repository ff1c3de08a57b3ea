//! An Instance leaves room for the record of its plans: without it no status could be written, and no plan would end.

use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::request::Operation;
use interlock_core::admission::review::ReviewObject;

use super::context::{Evaluation, name_of};
use crate::instance::rules::ids::INSTANCE_SIZE;
use crate::instance::spec::SpecView;
use crate::operator_version::packages;

/// The most bytes of an object that etcd takes, by default.
const OBJECT: usize = 1536 * 1024;
/// Bytes for what else Interlock writes: baseline, conditions, progress, finalizer, planExecution, defaults.
const RESERVE: usize = 64 * 1024;
/// What mutation may add between one look and the next.
const SLACK: usize = 8 * 1024;

/// Denies an Instance that is too large together with the record of its plans. One that was as large may become smaller.
pub(super) fn violation(evaluation: &Evaluation<'_>, operation: &Operation<'_>) -> Option<Denial> {
    let (new, old) = match operation {
        Operation::Create(object) => (*object, None),
        Operation::Update(change) => (change.object, Some(change.old)),
        Operation::Delete(_) => return None,
    };
    let annotations = &new.metadata.annotations;
    let status = new.status.map_or(0, |status| status.get().len());
    let ours = status + annotations.stamp_json().map_or(0, str::len) + annotations.history;
    let size = evaluation.request.size.saturating_sub(ours);
    if size + RESERVE < OBJECT / 2 {
        return None;
    }
    // The room that is left would disclose the size of a package in another namespace.
    let spec =
        SpecView::read(new, evaluation.request.namespace).ok().filter(|_| !evaluation.asks_blindly())?;
    let record_of = |spec: &SpecView<'_>| {
        let package = packages(evaluation.context).operator_version(&spec.version());
        package.map_or(0, |package| package.record.bytes)
    };
    let record = record_of(&spec);
    let written = |object: &ReviewObject<'_>| {
        object.spec.map_or(0, |spec| spec.get().len()) + object.metadata.annotations.others
    };
    let before = old.and_then(|old| {
        let spec = SpecView::read(old, evaluation.request.namespace).ok()?;
        Some(written(old) + record_of(&spec))
    });
    if before.is_some_and(|before| written(new) + record <= before) {
        return None;
    }
    let slack = if evaluation.context.endpoint.patches() { 0 } else { SLACK };
    let most = (OBJECT - RESERVE + slack).saturating_sub(record);
    (size > most).then(|| too_large(&name_of(evaluation.request, new), size, record, most))
}

fn too_large(instance: &str, size: usize, record: usize, most: usize) -> Denial {
    let kib = |bytes: usize| format!("{} KiB", bytes.div_ceil(1024));
    let namespace = instance.split_once('/').unwrap_or_default().0;
    Denial::invalid(
        INSTANCE_SIZE,
        format!("Instance {instance} leaves no room for the record of its plans"),
        vec![ViolationField::new(
            "spec.parameters",
            FieldReason::Invalid,
            format!("with them it has {}, of at most {}", kib(size), kib(most)),
        )],
    )
    .why(format!("the API server takes 1536 KiB, of which the status of its plans may need {}", kib(record + RESERVE)))
    .next(format!(
        "keep large values in a ConfigMap or Secret, and their names in parameters (`kubectl get configmaps,secrets -n {namespace}` \
         lists those that are there)"
    ))
}
