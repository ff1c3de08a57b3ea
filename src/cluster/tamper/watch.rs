//! The watch of one kind of the policy layer.

use std::collections::BTreeSet;

use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

use super::object::{GuardId, GuardKind, Observation, resource};

/// The result of a watch, for the objects it is about.
pub(super) type WatchResult = Result<Vec<Observation>, watcher::Error>;

/// Follows the named objects of a kind, forever. A single object is watched by name, as a webhook that
/// runs separately has no other right; several share one watch of their whole kind, which saves
/// connections.
pub(super) fn follow(
    client: &Client,
    kind: GuardKind,
    names: BTreeSet<String>,
) -> BoxStream<'static, WatchResult> {
    let (Some(resource), Some(name)) = (resource(kind), names.first()) else {
        return stream::pending().boxed();
    };
    let config = match names.len() {
        1 => watcher::Config::default().fields(&format!("metadata.name={name}")),
        _ => watcher::Config::default(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut sorter = Sorter { kind, names, unseen: BTreeSet::new() };
    let observations = watcher(api, config).default_backoff();
    observations.map(move |event| event.map(|event| sorter.sort(event))).boxed()
}

/// Sorts events by the named objects.
struct Sorter {
    kind: GuardKind,
    names: BTreeSet<String>,
    /// Named objects that the current list has not delivered yet.
    unseen: BTreeSet<String>,
}

impl Sorter {
    fn sort(&mut self, event: Event<DynamicObject>) -> Vec<Observation> {
        match event {
            Event::Init => {
                self.unseen = self.names.clone();
                Vec::new()
            }
            Event::InitDone => {
                let absent = std::mem::take(&mut self.unseen).into_iter();
                absent
                    .map(|name| Observation { id: GuardId { kind: self.kind, name }, object: None })
                    .collect()
            }
            Event::Apply(object) | Event::InitApply(object) => self.seen(&object, true),
            Event::Delete(object) => self.seen(&object, false),
        }
    }

    fn seen(&mut self, object: &DynamicObject, there: bool) -> Vec<Observation> {
        let Some(name) = object.metadata.name.clone().filter(|name| self.names.contains(name)) else {
            return Vec::new();
        };
        self.unseen.remove(&name);
        // A value decoded from JSON encodes as JSON.
        let object = there.then(|| serde_json::to_value(object).unwrap_or_default());
        vec![Observation { id: GuardId { kind: self.kind, name }, object }]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"a": "b"}})).unwrap()
    }

    #[test]
    fn what_a_list_leaves_out_is_not_there() {
        let names = ["a", "b"].map(str::to_owned).into();
        let mut sorter = Sorter { kind: GuardKind::Policy, names, unseen: BTreeSet::new() };
        let mut observations = |event| -> Vec<(String, Option<Value>)> {
            let seen = sorter.sort(event).into_iter();
            seen.map(|seen| (seen.id.name, seen.object.map(|object| object["spec"]["a"].clone()))).collect()
        };
        let there = |name: &str| vec![(name.to_owned(), Some(json!("b")))];
        let gone = |name: &str| vec![(name.to_owned(), None)];
        assert_eq!(observations(Event::Init), []);
        assert_eq!(observations(Event::InitApply(object("other"))), []);
        assert_eq!(observations(Event::InitApply(object("a"))), there("a"));
        assert_eq!(observations(Event::InitDone), gone("b"));
        assert_eq!(observations(Event::Apply(object("b"))), there("b"));
        assert_eq!(observations(Event::Delete(object("a"))), gone("a"));
        assert_eq!(observations(Event::Delete(object("other"))), []);
        assert_eq!(observations(Event::Init), []);
        assert_eq!(
            observations(Event::InitApply(object("a"))),
            there("a"),
            "it came while nothing was watched"
        );
        assert_eq!(observations(Event::InitDone), gone("b"), "it went while nothing was watched");
    }
}
