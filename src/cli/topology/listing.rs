//! The cluster's objects, as far as the caller may list them, in a graph.

use futures::stream::{self, StreamExt as _};
use interlock_core::api::meta;
use interlock_core::api::watched::LABELLED;
use interlock_core::kinds::{self, Kinds};
use interlock_core::topology::KindName;
use interlock_core::topology::{Epoch, Graph, GraphChange};
use kube::Client;
use serde_json::{Value, json};

use crate::cli::discovery::{Resource, ServedKinds};
use crate::cli::reader::{self, ReadOutcome, Selection};

/// Concurrent lists.
const CONCURRENCY: usize = 8;

/// Kinds that repeat other objects: by their labels they look as if a package made them.
const ECHOES: [(&str, &str); 5] = [
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
    pub(super) graph: Graph,
    /// Kinds that were listed incompletely, in order.
    unlisted: Vec<Blind>,
}

/// A kind that was listed incompletely, and why.
struct Blind {
    kind: String,
    why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// The API server does not serve it.
    NotServed,
    /// The caller may list it in this namespace only.
    OnlyIn(String),
    /// The caller may not list it.
    Forbidden,
    /// The API server's message.
    Failed(String),
}

impl Why {
    fn text(&self) -> String {
        match self {
            Self::NotServed => "not served by this cluster".to_owned(),
            Self::OnlyIn(namespace) => {
                format!("seen in namespace {namespace} only, as you may not list all namespaces")
            }
            Self::Forbidden => "you may not list it".to_owned(),
            Self::Failed(why) => why.clone(),
        }
    }
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
pub(super) struct Horizon<'a> {
    /// The requested namespace; `None` for all.
    pub asked: Option<&'a str>,
    /// The fallback where the caller may not list all.
    pub home: &'a str,
    /// The declared kinds.
    pub kinds: Kinds,
}

impl Listing {
    /// Lists all declared kinds, and objects of packages of every other kind.
    pub(super) async fn look(client: &Client, served: &ServedKinds, horizon: Horizon<'_>) -> Self {
        let all = horizon.kinds;
        let mut listing = Self { graph: kinds::graph(all), unlisted: Vec::new() };
        let declared = kinds::schemas(all).into_iter().map(|kind| kind.name);
        let labelled =
            |kind: &KindName| LABELLED.iter().any(|l| (l.group, l.name) == (kind.group, kind.kind));
        let absent = declared.filter(|kind| !labelled(kind) && served.of(kind.group, kind.kind).is_none());
        for kind in absent {
            listing.unlisted.push(Blind { kind: kind.to_string(), why: Why::NotServed });
        }
        let chosen = served.all().filter(|resource| {
            let name = (resource.api.group.as_str(), resource.api.kind.as_str());
            resource.listable && !ECHOES.contains(&name)
        });
        let lists = chosen.map(|resource| async move {
            let (listed, why) = list(client, resource, None, horizon).await;
            (resource, listed, why)
        });
        let mut lists = stream::iter(lists).buffered(CONCURRENCY);
        while let Some((resource, listed, why)) = lists.next().await {
            listing.unlisted.extend(why.map(|why| Blind { kind: resource.name(), why }));
            listing.feed(&resource.api.group, &resource.api.kind, &listed);
        }
        for labelled in &LABELLED {
            let Some(resource) = served.of(labelled.group, labelled.kind) else { continue };
            let (listed, why) = list(client, resource, Some(&labelled.selector()), horizon).await;
            listing.unlisted.extend(why.map(|why| Blind { kind: labelled.name.to_owned(), why }));
            listing.feed(labelled.group, labelled.name, &listed);
        }
        listing.unlisted.sort_by(|a, b| a.kind.cmp(&b.kind));
        listing
    }

    fn feed(&mut self, group: &str, kind: &str, listed: &Listed) {
        let (namespace, objects) = match listed {
            Listed::All(namespace, objects) => (Some(namespace), objects),
            Listed::Single(objects) => (None, objects),
            Listed::Nothing => return,
        };
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
            self.graph.apply(kind, epoch, GraphChange::Listed(object));
        }
        if let Some(namespace) = namespace {
            self.graph.apply(kind, epoch, GraphChange::Synced(namespace));
        }
    }

    /// Whether every kind was listed everywhere.
    pub(super) fn is_whole(&self) -> bool {
        self.unlisted.is_empty()
    }

    /// The gaps, for people: a line for each reason.
    pub(super) fn unlisted_lines(&self) -> Vec<String> {
        let mut reasons: Vec<&Why> = self.unlisted.iter().map(|unlisted| &unlisted.why).collect();
        reasons.sort();
        reasons.dedup();
        let of = |why: &Why| {
            let kinds = self.unlisted.iter().filter(|unlisted| unlisted.why == *why);
            kinds.map(|unlisted| unlisted.kind.as_str()).collect::<Vec<_>>().join(", ")
        };
        reasons.into_iter().map(|why| format!("not seen ({}): {}", why.text(), of(why))).collect()
    }

    /// The gaps, for programs.
    pub(super) fn not_seen(&self) -> Vec<Value> {
        self.unlisted
            .iter()
            .map(|unlisted| json!({ "kind": unlisted.kind, "why": unlisted.why.text() }))
            .collect()
    }
}

/// All objects with these labels, else all of a declared kind and those of packages of others.
async fn list(
    client: &Client,
    resource: &Resource,
    labels: Option<&str>,
    horizon: Horizon<'_>,
) -> (Listed, Option<Why>) {
    let name = (resource.api.group.as_str(), resource.api.kind.as_str());
    let declared =
        kinds::schemas(horizon.kinds).into_iter().any(|kind| (kind.name.group, kind.name.kind) == name);
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
    if let (true, Some(asked)) = (is_namespace, horizon.asked) {
        return (one_namespace(asked).await, None);
    }
    let asked = horizon.asked.filter(|_| resource.namespaced);
    let error = match ask(asked).await {
        Ok(objects) => return (Listed::All(asked.unwrap_or_default().to_owned(), objects), None),
        Err(error) => error,
    };
    if reader::code(&error) != Some(403) {
        return (Listed::Nothing, Some(Why::Failed(reader::said(&error))));
    }
    let home = horizon.home;
    if is_namespace {
        return (one_namespace(home).await, Some(Why::OnlyIn(home.to_owned())));
    }
    if resource.namespaced && asked.is_none() {
        match ask(Some(home)).await {
            Ok(objects) => {
                return (Listed::All(home.to_owned(), objects), Some(Why::OnlyIn(home.to_owned())));
            }
            Err(error) if reader::code(&error) == Some(403) => {}
            Err(error) => return (Listed::Nothing, Some(Why::Failed(reader::said(&error)))),
        }
    }
    (Listed::Nothing, Some(Why::Forbidden))
}
