//! The cluster's objects, as far as the caller may list them, in a graph.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt as _};
use interlock_core::api::meta;
use interlock_core::api::watched::Labelled;
use interlock_core::kinds;
use interlock_core::kinds::Kinds;
use interlock_core::kinds::capabilities::{ATTACHMENTS, POLICIES};
use interlock_core::kinds::descriptor::Outline;
use interlock_core::topology::KindName;
use interlock_core::topology::snapshot::GraphSnapshot;
use interlock_core::topology::{Epoch, Graph, GraphChange, GroupKind, NodeId};
use kube::Client;
use serde_json::Value;

use super::node_facts::NodeFacts;
use crate::cli::common::discovery::{ServedKinds, ServedResource};
use crate::cli::common::gaps::{Gaps, ListProblem};
use crate::cli::common::progress::ProgressLine;
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, Selection};

/// Concurrent lists.
const CONCURRENCY: usize = 8;

/// Kinds that repeat other objects: by their labels they look as if a package made them.
const DERIVED_KINDS: [(&str, &str); 5] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("metrics.k8s.io", "PodMetrics"),
];

/// Kinds of which only the metadata is read: their content may be large or secret.
const METADATA_ONLY: [(&str, &str); 2] = [("", "ConfigMap"), ("", "Secret")];

/// Listed objects, and gaps.
pub(super) struct Listing {
    graph: Graph,
    /// What is watched under a name of its own.
    labelled: Vec<&'static Labelled>,
    pub(super) gaps: Gaps,
    facts: NodeFacts,
    /// What the outlines read, by the outline.
    outlines: Vec<(&'static Outline, Vec<Value>)>,
}

/// The result of listing a kind.
enum Listed {
    /// All objects of this namespace (of all namespaces where it is empty).
    All(String, Vec<Value>),
    /// Single objects.
    Single(Vec<Value>),
    Nothing,
}

/// The kinds and namespaces to list.
#[derive(Clone, Copy)]
pub(super) struct ListScope<'a> {
    /// The requested namespace; `None` for all.
    pub requested_namespace: Option<&'a str>,
    /// The fallback where the caller may not list all.
    pub default_namespace: &'a str,
    /// The declared kinds.
    pub kinds: Kinds,
}

impl Listing {
    /// Lists all declared kinds, and objects of packages of every other kind.
    pub(super) async fn list_all(client: &Client, served: &ServedKinds, scope: ListScope<'_>) -> Self {
        let all = scope.kinds;
        let labelled_kinds: Vec<&'static Labelled> = kinds::labelled(all).collect();
        let mut listing = Self {
            graph: kinds::graph(all),
            labelled: labelled_kinds.clone(),
            gaps: Gaps::default(),
            facts: NodeFacts::default(),
            outlines: all.iter().filter_map(|kind| Some((kind.outline?, Vec::new()))).collect(),
        };
        let declared = kinds::schemas(all).into_iter().map(|kind| kind.name);
        let labelled =
            |kind: &KindName| labelled_kinds.iter().any(|l| (l.group, l.name) == (kind.group, kind.kind));
        let absent = declared.filter(|kind| {
            !labelled(kind) && !is_only_attached(all, kind) && served.of(kind.group, kind.kind).is_none()
        });
        for kind in absent {
            listing.gaps.add(&plural(all, kind), ListProblem::NotServed);
        }
        let chosen = served.all().filter(|resource| {
            let name = (resource.api.group.as_str(), resource.api.kind.as_str());
            resource.listable && !DERIVED_KINDS.contains(&name)
        });
        let chosen: Vec<_> = chosen.collect();
        let _progress = ProgressLine::start(&format!("listing objects of {} kinds", chosen.len()));
        let lists = chosen.into_iter().map(|resource| async move {
            let (listed, why) = list(client, resource, None, scope).await;
            (resource, listed, why)
        });
        let mut lists = stream::iter(lists).buffered(CONCURRENCY);
        while let Some((resource, listed, why)) = lists.next().await {
            listing.note(&resource.name(), &listed, why);
            listing.add(&resource.api.group, &resource.api.kind, &listed);
        }
        for labelled in labelled_kinds {
            let Some(resource) = served.of(labelled.group, labelled.kind) else { continue };
            let (listed, why) = list(client, resource, Some(&labelled.selector()), scope).await;
            listing.note(&resource.name(), &listed, why);
            listing.add(labelled.group, labelled.name, &listed);
        }
        listing
    }

    /// A snapshot around an object, or of everything; `None` for an object that is not there.
    pub(super) fn snapshot(&self, root: Option<&NodeId>) -> Option<GraphSnapshot> {
        let mut snapshot = match root {
            Some(root) => {
                let found = watched_as(root, &self.labelled).filter_map(|root| self.graph.snapshot_of(&root));
                found.reduce(|mut all, more| {
                    all.nodes.extend(more.nodes);
                    all.edges.extend(more.edges);
                    all
                })?
            }
            None => self.graph.snapshot(),
        };
        self.facts.add_to(&mut snapshot);
        for (outline, objects) in &self.outlines {
            (outline.draw)(objects, &mut snapshot);
        }
        leave_twins_out(&mut snapshot, root, &self.labelled);
        name_as_served(&mut snapshot, &self.labelled);
        Some(snapshot)
    }

    fn note(&mut self, kind: &str, listed: &Listed, why: Option<ListProblem>) {
        if matches!(listed, Listed::All(..)) {
            self.gaps.seen();
        }
        if let Some(why) = why {
            self.gaps.add(kind, why);
        }
    }

    fn add(&mut self, group: &str, kind: &str, listed: &Listed) {
        let (namespace, objects) = match listed {
            Listed::All(namespace, objects) => (Some(namespace), objects),
            Listed::Single(objects) => (None, objects),
            Listed::Nothing => return,
        };
        for (_, read) in self.outlines.iter_mut().filter(|(outline, _)| (outline.reads)(group, kind)) {
            read.extend(objects.iter().cloned());
        }
        let known = self.graph.find_kind(group, kind).is_some();
        if objects.is_empty() && !known {
            return;
        }
        let kind = self.graph.kind(group, kind);
        let epoch = Epoch::default();
        self.graph.kind_available(kind, epoch);
        if let Some(namespace) = namespace {
            self.graph.apply(kind, epoch, GraphChange::Listing(namespace));
        }
        for object in objects {
            self.facts.note(object);
            self.graph.apply(kind, epoch, GraphChange::Listed(object));
        }
        if let Some(namespace) = namespace {
            self.graph.apply(kind, epoch, GraphChange::Synced(namespace));
        }
    }
}

/// Whether a kind is read for nothing but policies: where none is served, the graph lacks nothing.
fn is_only_attached(kinds: Kinds, name: &KindName) -> bool {
    let mut own =
        kinds.iter().filter(|kind| (kind.resource.group, kind.resource.kind) == (name.group, name.kind));
    let watch = own.find_map(|kind| kind.watch);
    watch.is_some_and(|watch| [ATTACHMENTS.name, POLICIES.name].contains(&watch.capability.name))
}

/// Leaves out what is a node twice: a labelled object under the name of its watch, and under that of its kind, as of
/// some kinds all objects are listed. The latter stays where more than the same owner is linked to it, or it is the root.
fn leave_twins_out(snapshot: &mut GraphSnapshot, root: Option<&NodeId>, labelled: &[&Labelled]) {
    let mut parents: BTreeMap<&NodeId, BTreeSet<&NodeId>> = BTreeMap::new();
    for (parent, child, _) in &snapshot.edges {
        parents.entry(child).or_default().insert(parent);
    }
    let with_children: BTreeSet<&NodeId> = snapshot.edges.iter().map(|(parent, ..)| parent).collect();
    let none = BTreeSet::new();
    let twin_of = |id: &NodeId| {
        let watched = (&*id.kind.group, &*id.kind.kind);
        let labelled = labelled.iter().find(|labelled| (labelled.group, labelled.name) == watched)?;
        let twin = NodeId::new(KindName::new(labelled.group, labelled.kind), &id.namespace, &id.name);
        let of = |id: &NodeId| parents.get(id).unwrap_or(&none);
        let repeats = of(&twin).is_subset(of(id)) && !with_children.contains(&twin) && root != Some(&twin);
        repeats.then_some(twin)
    };
    let twins: BTreeSet<NodeId> = snapshot.nodes.keys().filter_map(twin_of).collect();
    snapshot.nodes.retain(|id, _| !twins.contains(id));
    snapshot.edges.retain(|(_, child, _)| !twins.contains(child));
}

/// An object under its kind, and under the names of the watches that may have it.
fn watched_as<'a>(id: &'a NodeId, labelled: &'a [&Labelled]) -> impl Iterator<Item = NodeId> + 'a {
    let is = |labelled: &&&Labelled| (labelled.group, labelled.kind) == (&*id.kind.group, &*id.kind.kind);
    let watches = labelled.iter().filter(is).map(|labelled| KindName::new(labelled.group, labelled.name));
    std::iter::once(id.kind.clone())
        .chain(watches.map(GroupKind::from))
        .map(|kind| NodeId { kind, ..id.clone() })
}

/// Names labelled objects as people do: the name of a watch means nothing to kubectl.
fn name_as_served(snapshot: &mut GraphSnapshot, labelled: &[&Labelled]) {
    let served = |id: NodeId| {
        let watched = (&*id.kind.group, &*id.kind.kind);
        let labelled = labelled.iter().find(|labelled| (labelled.group, labelled.name) == watched);
        let kind = labelled.map(|labelled| GroupKind::new(labelled.group, labelled.kind));
        NodeId { kind: kind.unwrap_or_else(|| id.kind.clone()), ..id }
    };
    let edges = std::mem::take(&mut snapshot.edges).into_iter();
    snapshot.edges = edges.map(|(parent, child, name)| (served(parent), served(child), name)).collect();
    for (id, node) in std::mem::take(&mut snapshot.nodes) {
        let kept = snapshot.nodes.entry(served(id)).or_insert_with(|| node.clone());
        kept.is = kept.is.min(node.is);
        kept.facts.extend(node.facts);
    }
}

/// A declared kind as roles and `kubectl api-resources` name it.
fn plural(kinds: Kinds, name: KindName) -> String {
    let mut declared = kinds.iter().filter(|kind| kind.schema.is_some_and(|schema| schema.name == name));
    declared.next().map_or_else(|| name.to_string(), |kind| kind.resource.name())
}

/// All objects with these labels, else all of a declared kind and those of packages of others.
async fn list(
    client: &Client,
    resource: &ServedResource,
    labels: Option<&str>,
    scope: ListScope<'_>,
) -> (Listed, Option<ListProblem>) {
    let name = (resource.api.group.as_str(), resource.api.kind.as_str());
    let declared =
        kinds::schemas(scope.kinds).into_iter().any(|kind| (kind.name.group, kind.name.kind) == name);
    let heritage = format!("{}={}", meta::HERITAGE, meta::HERITAGE_VALUE);
    let is_namespace = name == (kinds::NAMESPACE.group, kinds::NAMESPACE.kind);
    let ask = async |namespace: Option<&str>| {
        let labels = labels.or((!declared).then_some(heritage.as_str()));
        let metadata_only = METADATA_ONLY.contains(&name);
        let selection = Selection { namespace, labels, fields: None, metadata_only };
        reader::list(client, resource, &selection).await
    };
    let one_namespace = async |name: &str| match reader::get(client, resource, "", name).await {
        ReadOutcome::There(namespace) => Listed::Single(vec![(*namespace).clone()]),
        ReadOutcome::Missing | ReadOutcome::Unknown(_) => Listed::Nothing,
    };
    if let (true, Some(requested_namespace)) = (is_namespace, scope.requested_namespace) {
        return (one_namespace(requested_namespace).await, None);
    }
    let requested_namespace = scope.requested_namespace.filter(|_| resource.namespaced);
    let error = match ask(requested_namespace).await {
        Ok(objects) => {
            return (Listed::All(requested_namespace.unwrap_or_default().to_owned(), objects), None);
        }
        Err(error) => error,
    };
    if reader::code(&error) != Some(403) {
        return (Listed::Nothing, Some(ListProblem::Failed(reader::api_message(&error))));
    }
    let default_namespace = scope.default_namespace;
    if is_namespace {
        let found = one_namespace(default_namespace).await;
        let why = match found {
            Listed::Single(_) => ListProblem::OnlyIn(default_namespace.to_owned()),
            _ => ListProblem::Forbidden,
        };
        return (found, Some(why));
    }
    if resource.namespaced && requested_namespace.is_none() {
        match ask(Some(default_namespace)).await {
            Ok(objects) => {
                return (
                    Listed::All(default_namespace.to_owned(), objects),
                    Some(ListProblem::OnlyIn(default_namespace.to_owned())),
                );
            }
            Err(error) if reader::code(&error) == Some(403) => {}
            Err(error) => return (Listed::Nothing, Some(ListProblem::Failed(reader::api_message(&error)))),
        }
    }
    (Listed::Nothing, Some(ListProblem::Forbidden))
}

#[cfg(test)]
mod tests {
    use interlock_kong::api::{API_VERSION, GROUP};
    use serde_json::json;

    use super::*;

    fn listing(objects: &[(&str, &str, Value)]) -> Listing {
        let (gaps, facts) = (Gaps::default(), NodeFacts::default());
        let mut listing = Listing {
            graph: kinds::graph(crate::kinds::all()),
            labelled: kinds::labelled(crate::kinds::all()).collect(),
            gaps,
            facts,
            outlines: Vec::new(),
        };
        for (group, kind, object) in objects {
            listing.add(group, kind, &Listed::All(String::new(), vec![object.clone()]));
        }
        listing
    }

    #[test]
    fn a_service_of_a_data_plane_is_one_node() {
        let plane = json!({
            "apiVersion": API_VERSION, "kind": "DataPlane",
            "metadata": {"namespace": "kong", "name": "edge", "uid": "u"}, "spec": {},
        });
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "kong", "name": "edge", "uid": "s", "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": "DataPlane", "name": "edge", "uid": "u", "controller": true},
            ]},
            "spec": {},
        });
        let twice = [
            (GROUP, "DataPlane", plane),
            ("", "Service", service.clone()),
            ("", "DataPlaneService", service.clone()),
        ];
        let listing = listing(&twice);
        let kinds = |snapshot: GraphSnapshot| -> Vec<String> {
            snapshot.nodes.keys().map(|id| id.kind.kind.to_string()).collect()
        };
        assert_eq!(kinds(listing.snapshot(None).unwrap()), ["DataPlane", "Service"]);
        let root = NodeId::new(KindName::new("", "Service"), "kong", "edge");
        assert!(kinds(listing.snapshot(Some(&root)).unwrap()).contains(&"Service".to_owned()));
        let other = self::listing(&[("", "Service", service)]);
        assert!(kinds(other.snapshot(None).unwrap()).contains(&"Service".to_owned()), "it is there once");
    }
}
