//! The patches of an Instance but its status, built from a subject; pure, and empty where nothing changes.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::admission::size_budget;
use interlock_core::admission::size_budget::SizeBudget;
use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use interlock_core::api::stamp::{Applied, Envelope, KeptSpec, SpecHash};
use interlock_core::last_applied;
use interlock_core::last_applied::LastAppliedInput;
use interlock_kudo::instance::change::creation::Creation;
use interlock_kudo::instance::change::history;
use interlock_kudo::instance::previous_spec;
use interlock_kudo::instance::status::BaselineHead;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use serde_json::{Map, Value, json};

use super::view::InstanceView;

/// The stamp that admission would have made for a spec that now applies; `None` where the object's size
/// budget is exceeded.
pub fn stamp(subject: &InstanceView, spec: &Applied<'static>) -> Option<String> {
    let hash = spec.hash();
    let basis = subject.basis.as_ref();
    let head = basis.map(|b| BaselineHead { hash: b.hash.as_str().into(), owes: !b.pending.is_empty() });
    let previous = match subject.stamp.clone() {
        Some(old) if old.hash == hash => old.previous,
        old => previous_spec::previous(old, head.as_ref(), &hash),
    };
    let making = LastAppliedInput { hash: &hash, spec, previous, uid: Some(subject.uid()) };
    last_applied::make(making, room(&subject.object))
}

fn room(object: &Value) -> SizeBudget {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let annotations = annotations.into_iter().flatten();
    let (ours, others): (Vec<_>, Vec<_>) =
        annotations.partition(|(key, _)| [meta::LAST_APPLIED_SPEC, meta::HISTORY].contains(&key.as_str()));
    let size = |pairs: &[(&String, &Value)]| -> usize {
        pairs.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum()
    };
    let whole = serde_json::to_string(object).map_or(0, |text| text.len());
    SizeBudget { annotations: size(&others), object: whole.saturating_sub(size(&ours)) }
}

/// Our annotations after a write, beside those of others: omits a new stamp that does not fit, and removes
/// the history (`None`) where it would fill the last quarter.
fn annotations(
    subject: &InstanceView,
    stamp: Option<String>,
    ended: Option<history::EndedRun>,
) -> BTreeMap<&'static str, Option<String>> {
    let others = room(&subject.object).annotations;
    let found = |key| annotation(&subject.object, key);
    let stamp = stamp.filter(|text| size_budget::holds(others, Some(text), 0));
    let kept = stamp.as_deref().or(found(meta::LAST_APPLIED_SPEC));
    let size = |text: &str| meta::HISTORY.len() + text.len();
    let ends = ended.is_some();
    let history = ended.and_then(|run| history_with(subject, others, kept, run));
    let gone = found(meta::HISTORY).is_some_and(|text| ends || !size_budget::holds(others, kept, size(text)));
    let mut written = BTreeMap::new();
    if history.is_some() || gone {
        written.insert(meta::HISTORY, history);
    }
    if stamp.is_some() {
        written.insert(meta::LAST_APPLIED_SPEC, stamp);
    }
    written
}

/// The history with one more run, where it leaves the last quarter free.
fn history_with(
    subject: &InstanceView,
    others: usize,
    stamp: Option<&str>,
    run: history::EndedRun,
) -> Option<String> {
    let text = history::with(subject.history(), run);
    let size = others + stamp.map_or(0, str::len) + meta::HISTORY.len() + text.len();
    (size <= size_budget::ANNOTATIONS_LIMIT).then_some(text)
}

/// The changes of a merge patch of an Instance.
#[derive(Clone, Debug, Default)]
pub struct InstanceChange<'a> {
    /// `planExecution`: plan and fresh uid, scheduled.
    pub schedule: Option<(&'a str, &'a str)>,
    /// `planExecution`: a running execution to restore.
    pub put_back: Option<(&'a str, &'a str)>,
    pub stamp: Option<String>,
    pub ended: Option<history::EndedRun>,
    /// Adds the finalizer and the defaults of immutable parameters.
    pub create: Option<&'a Creation<'a>>,
    /// Adds our finalizer.
    pub hold: bool,
    /// Removes our finalizer.
    pub release: bool,
    /// The wanted spec.
    pub spec: Option<&'a Applied<'static>>,
    /// Removes the executed request.
    pub answered: bool,
}

/// The merge patch of an Instance.
pub fn instance(subject: &InstanceView, change: InstanceChange<'_>) -> Value {
    let mut annotations: Map<String, Value> =
        annotations(subject, change.stamp.clone(), change.ended.clone())
            .into_iter()
            .map(|(key, text)| (key.to_owned(), Value::from(text)))
            .collect();
    if change.answered {
        annotations.extend(answered(subject).map(|key| (key.to_owned(), Value::Null)));
    }
    let mut metadata = Map::new();
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    let mut spec = change.spec.map(|wanted| whole_spec(subject, wanted)).unwrap_or_default();
    if let Some((plan, uid)) = change.schedule {
        spec.insert("planExecution".to_owned(), json!({"planName": plan, "uid": uid, "status": "NEVER_RUN"}));
    }
    if let Some((plan, uid)) = change.put_back {
        spec.insert("planExecution".to_owned(), json!({"planName": plan, "uid": uid}));
    }
    if let Some(finalizers) = finalizers(subject, &change) {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
    if let Some(creation) = change.create {
        let defaults: Map<String, Value> =
            creation.defaults.iter().map(|(k, v)| ((*k).to_owned(), Value::from(*v))).collect();
        if !defaults.is_empty() {
            spec.insert("parameters".to_owned(), Value::Object(defaults));
        }
    }
    let mut patch = Map::new();
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    if !spec.is_empty() {
        patch.insert("spec".to_owned(), Value::Object(spec));
    }
    Value::Object(patch)
}

/// The present annotations of a request.
fn answered(subject: &InstanceView) -> impl Iterator<Item = &'static str> {
    let keys = [meta::REQUEST, meta::REASON, meta::REQUESTED_BY];
    keys.into_iter().filter(|key| annotation(&subject.object, key).is_some())
}

/// The applied part of the spec, replaced as a whole: a merge patch keeps what it does not name.
fn whole_spec(subject: &InstanceView, wanted: &Applied<'static>) -> Map<String, Value> {
    let mut spec = Map::new();
    let version = &wanted.operator_version;
    if subject.spec.operator_version != *version {
        let own = version.namespace == subject.key.namespace;
        let namespace = if own { Value::Null } else { json!(version.namespace) };
        spec.insert("operatorVersion".to_owned(), json!({"name": version.name, "namespace": namespace}));
    }
    let gone = subject.spec.parameters.keys().filter(|key| !wanted.parameters.contains_key(key));
    let mut parameters: Map<String, Value> = gone.map(|key| (key.to_string(), Value::Null)).collect();
    parameters.extend(wanted.parameters.iter().map(|(key, value)| (key.to_string(), json!(value))));
    if !parameters.is_empty() {
        spec.insert("parameters".to_owned(), Value::Object(parameters));
    }
    spec
}

/// The whole list, as a merge patch replaces it; `None` when it stays.
fn finalizers(subject: &InstanceView, change: &InstanceChange<'_>) -> Option<Vec<String>> {
    let found = subject.instance.metadata.finalizers.clone().unwrap_or_default();
    let wanted = change.hold || change.create.is_some_and(|creation| creation.finalizer);
    if change.release {
        return Some(found.into_iter().filter(|f| f != meta::FINALIZER).collect());
    }
    (wanted && !subject.has_finalizer()).then(|| {
        let mut finalizers = found;
        finalizers.push(meta::FINALIZER.to_owned());
        finalizers
    })
}

/// The JSON patch that removes a finished execution, or a dropped trigger, from `planExecution`, only while
/// it names that execution; it also removes the executed request, only while it is that one.
pub fn clear(subject: &InstanceView, ended: Option<history::EndedRun>, request: Option<&str>) -> Patch {
    let (field, value) = match subject.plan_uid() {
        "" => ("planName", subject.plan()),
        uid => ("uid", uid),
    };
    let mut operations = vec![
        PatchOperation::Test(TestOperation {
            path: pointer(&["spec", "planExecution", field]),
            value: Value::from(value),
        }),
        PatchOperation::Replace(ReplaceOperation {
            path: pointer(&["spec", "planExecution"]),
            value: json!({}),
        }),
    ];
    if let Some(request) = request {
        operations.push(PatchOperation::Test(TestOperation {
            path: pointer(&["metadata", "annotations", meta::REQUEST]),
            value: Value::from(request),
        }));
        operations.extend(answered(subject).map(|key| {
            PatchOperation::Remove(RemoveOperation { path: pointer(&["metadata", "annotations", key]) })
        }));
    }
    let annotations = annotations(subject, settled_stamp(subject).map(|stamp| stamp.to_json()), ended);
    if !annotations.is_empty() && subject.object.pointer("/metadata/annotations").is_none() {
        operations.push(add(&["metadata", "annotations"], json!({})));
    }
    for (key, text) in annotations {
        let path = ["metadata", "annotations", key];
        operations.push(match text {
            Some(text) => add(&path, Value::from(text)),
            None => PatchOperation::Remove(RemoveOperation { path: pointer(&path) }),
        });
    }
    Patch(operations)
}

/// The stamp with uid and generation added, and without `previous` once no plan is pending; `None` when it
/// is unchanged.
fn settled_stamp(subject: &InstanceView) -> Option<Envelope<'static>> {
    let found = subject.stamp.as_ref()?;
    let mut stamp = found.clone();
    if stamp.uid.is_none() {
        stamp.uid = Some(subject.uid().to_owned().into());
        stamp.generation = subject.generation();
    }
    if subject.basis.as_ref().is_some_and(|b| b.pending.is_empty() && b.hash == stamp.hash) {
        stamp.previous = None;
    }
    (stamp != *found).then_some(stamp)
}

/// Hashes of the specs that a stamp only refers to.
pub fn referenced(stamp: Option<&Envelope<'_>>) -> BTreeSet<SpecHash> {
    let previous = stamp.and_then(|stamp| stamp.previous.as_ref());
    let own = stamp.map(|stamp| (&stamp.hash, &stamp.kept));
    let both = own.into_iter().chain(previous.map(|previous| (&previous.hash, &previous.kept)));
    both.filter(|(_, kept)| **kept == KeptSpec::Referenced).map(|(hash, _)| hash.clone()).collect()
}

fn pointer(tokens: &[&str]) -> PointerBuf {
    PointerBuf::from_tokens(tokens.iter().copied())
}

fn add(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: pointer(path), value })
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::NamespacedName;
    use interlock_kudo::api::ExecutionStatus;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::little(1024, true)]
    #[case::the_last_quarter(size_budget::ANNOTATIONS_LIMIT, false)]
    #[case::all(size_budget::ANNOTATIONS_MAX, false)]
    fn a_run_is_said_to_be_kept_where_it_is(#[case] others: usize, #[case] kept: bool) {
        let object = json!({
            "metadata": {"name": "i", "namespace": "ns", "annotations": {"others.example/x": "x".repeat(others)}},
            "spec": {},
        });
        let subject = InstanceView::read(&NamespacedName::new("ns", "i"), object.into()).unwrap();
        let run = history::EndedRun {
            plan: "cleanup".to_owned(),
            uid: "u".to_owned(),
            hash: None,
            result: ExecutionStatus::FatalError,
            start: None,
            end: None,
            asked: Vec::new(),
        };
        let written = instance(&subject, InstanceChange { ended: Some(run), ..InstanceChange::default() });
        assert_eq!(annotation(&written, meta::HISTORY).is_some(), kept);
    }

    const A: &str = "sha256:aaaaaaaaaaaaaaaa";
    const B: &str = "sha256:bbbbbbbbbbbbbbbb";

    #[rstest]
    #[case::none(json!({"v": 1, "hash": A, "spec": {"operatorVersion": {"name": "v", "namespace": "ns"}}}), &[])]
    #[case::one(json!({"v": 1, "hash": A, "ref": "ControllerRevision"}), &[A])]
    #[case::both(json!({"v": 1, "hash": A, "ref": "ControllerRevision", "previous": {"hash": B, "ref": "ControllerRevision"}}), &[A, B])]
    #[case::before(
        json!({"v": 1, "hash": A, "spec": {"operatorVersion": {"name": "v", "namespace": "ns"}},
               "previous": {"hash": B, "ref": "ControllerRevision"}}),
        &[B]
    )]
    fn what_a_stamp_refers_to(#[case] stamp: Value, #[case] all: &[&str]) {
        let text = stamp.to_string();
        let found = referenced(Some(&Envelope::parse(&text).unwrap()));
        assert_eq!(found.iter().map(SpecHash::as_str).collect::<Vec<_>>(), all);
    }
}
