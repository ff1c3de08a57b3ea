//! The objects that reconcilers read ([`Kept`]), as text: in each namespace up to a budget, so that the objects of one
//! tenant push out no other tenant's. What exceeds it is read by request.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::api::watched::Labelled;
use interlock_core::kinds::Kinds;
use interlock_core::kinds::descriptor::Kept;
use interlock_core::reconcile::ObjectList;
use interlock_core::topology::{Graph, KindId};
use serde_json::Value;

use super::object_bytes::{Child, ObjectBody};
use super::size_budget::{KEPT, Shares};

/// A kind whose objects are kept.
#[derive(Clone, Copy, Debug)]
struct KeptKind {
    /// In the topology.
    id: KindId,
    group: &'static str,
    kind: &'static str,
    labelled: Option<&'static Labelled>,
    kept: &'static Kept,
}

/// The name of an object of a kept kind: the topology's kind, namespace, name.
type Key = (KindId, Box<str>, Box<str>);
/// `None` where they are too large to keep.
type Labels = Option<BTreeMap<Box<str>, Box<str>>>;

/// The most bytes of labels that are kept of an object. One with more has its namespace's lists read by request.
const LABELS: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct KeptObjects {
    kinds: Vec<KeptKind>,
    /// The labels of all of them, in order.
    labels: BTreeMap<Key, Labels>,
    bodies: Shares<Key, ObjectBody>,
}

impl KeptObjects {
    /// None yet, of those of `kinds` that are kept.
    pub(super) fn new(kinds: Kinds, graph: &mut Graph) -> Self {
        let mut kept = Vec::new();
        for kind in kinds {
            let (Some(watch), Some(schema)) = (&kind.watch, kind.schema) else { continue };
            let Some(projection) = watch.kept else { continue };
            kept.push(KeptKind {
                id: graph.kind(schema.name.group, schema.name.kind),
                group: kind.resource.group,
                kind: kind.resource.kind,
                labelled: watch.labelled,
                kept: projection,
            });
        }
        Self { kinds: kept, labels: BTreeMap::new(), bodies: Shares::new(KEPT) }
    }

    /// The kinds of the topology that objects of a kind belong to, each with what is kept and whether this object is one
    /// of them.
    pub(super) fn kinds_of(
        &self,
        group: &str,
        kind: &str,
        object: &Value,
    ) -> Vec<(KindId, &'static Kept, bool)> {
        let of = self.kinds.iter().filter(|kept| kept.group == group && kept.kind == kind);
        of.map(|of| (of.id, of.kept, of.labelled.is_none_or(|labelled| labelled.holds(object)))).collect()
    }

    /// Takes in an object that the topology has taken in.
    pub(super) fn keep(&mut self, kind: KindId, object: &Value, body: ObjectBody) {
        let Some(key) = key_of(kind, object) else { return };
        self.labels.insert(key.clone(), labels_of(object));
        let namespace = key.1.clone();
        self.bodies.keep(key, &namespace, body.len(), body);
    }

    pub(super) fn drop(&mut self, kind: KindId, namespace: &str, name: &str) {
        let key = (kind, namespace.into(), name.into());
        self.labels.remove(&key);
        self.bodies.remove(&key);
    }

    /// Objects over the budgets, and bytes of all others.
    pub(super) fn totals(&self) -> (usize, usize) {
        (self.labels.len() - self.bodies.len(), self.bodies.bytes())
    }

    /// Whether all objects of a kind in a namespace are known, with the labels that a list asks for.
    fn covering(
        &self,
        graph: &Graph,
        key: (&str, &str, &str),
        labels: Option<&BTreeMap<String, String>>,
    ) -> Option<KindId> {
        let (group, kind, namespace) = key;
        let covers = |kept: &&KeptKind| match (kept.labelled, labels) {
            (Some(Labelled { label, value, .. }), Some(labels)) => {
                labels.get(*label).is_some_and(|asked| value.is_none_or(|value| value == asked))
            }
            _ => true,
        };
        let mut kinds = self.kinds.iter().filter(|kept| kept.group == group && kept.kind == kind);
        let found = kinds.find(covers)?;
        graph.knows(found.id, namespace).then_some(found.id)
    }

    /// An object; `None` where the kind is not kept, or not listed yet. [`Child::Absent`] where no object of that name
    /// has the label that is watched.
    pub(super) fn get(&self, graph: &Graph, key: &ObjectKey) -> Option<KeptLookup> {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let kind = self.covering(graph, (&key.gvk.group, &key.gvk.kind, namespace), None)?;
        let key: Key = (kind, namespace.into(), key.name.as_str().into());
        Some(match (self.bodies.get(&key), self.labels.contains_key(&key)) {
            (Some(body), _) => KeptLookup::Body(body.clone()),
            (None, true) => KeptLookup::Unread,
            (None, false) => KeptLookup::Absent,
        })
    }

    /// The objects of a list; `None` where they have to be read by request.
    pub(super) fn list(&self, graph: &Graph, list: &ObjectList) -> Option<Vec<ObjectBody>> {
        let kind =
            self.covering(graph, (&list.gvk.group, &list.gvk.kind, &list.namespace), Some(&list.labels))?;
        let namespace: Box<str> = list.namespace.as_str().into();
        let first = (kind, namespace.clone(), Box::default());
        let in_namespace =
            self.labels.range(first..).take_while(|((of, within, _), _)| *of == kind && *within == namespace);
        let mut bodies = Vec::new();
        for (key, labels) in in_namespace {
            let labels = labels.as_ref()?;
            let mut asked = list.labels.iter();
            if asked.all(|(name, value)| labels.get(&**name).is_some_and(|found| **found == **value)) {
                bodies.push(self.bodies.get(key)?.clone());
            }
        }
        Some(bodies)
    }
}

/// An object as it is kept.
pub(super) enum KeptLookup {
    /// Its text.
    Body(ObjectBody),
    /// It exists, and is over the budget of its namespace.
    Unread,
    /// There is none.
    Absent,
}

impl KeptLookup {
    /// The object; decodes it.
    pub(super) fn open(self) -> Child {
        match self {
            Self::Body(body) => body.open().map_or(Child::Unread, Child::Kept),
            Self::Unread => Child::Unread,
            Self::Absent => Child::Absent,
        }
    }
}

/// Decodes the objects of a list; `None` where one cannot be.
pub(super) fn open(bodies: &[ObjectBody]) -> Option<Vec<Arc<Value>>> {
    bodies.iter().map(ObjectBody::open).collect()
}

fn key_of(kind: KindId, object: &Value) -> Option<Key> {
    let namespace = meta_str(object, "namespace").unwrap_or_default();
    Some((kind, namespace.into(), meta_str(object, "name")?.into()))
}

fn labels_of(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let text = |(name, value): (&String, &Value)| Some((name.as_str().into(), value.as_str()?.into()));
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    let bytes: usize = labels.into_iter().flatten().map(size).sum();
    (bytes <= LABELS).then(|| labels.into_iter().flatten().filter_map(text).collect())
}
