//! The watch of one kind of the policy layer.

use std::collections::BTreeSet;

use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

use super::object::{Id, Kind, Seen, resource};

/// What a watch told of the objects that it is about.
pub(super) type Told = Result<Vec<Seen>, watcher::Error>;

/// Follows those of a kind, for ever. One alone is watched by its name, which is all the right
/// that a webhook has that runs apart; more are watched with all others of their kind, which
/// takes one connection in place of many.
pub(super) fn follow(client: &Client, kind: Kind, names: BTreeSet<String>) -> BoxStream<'static, Told> {
    let (Some(resource), Some(name)) = (resource(kind), names.first()) else {
        return stream::pending().boxed();
    };
    let config = match names.len() {
        1 => watcher::Config::default().fields(&format!("metadata.name={name}")),
        _ => watcher::Config::default(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut sorter = Sorter { kind, names, unseen: BTreeSet::new() };
    let told = watcher(api, config).default_backoff();
    told.map(move |event| event.map(|event| sorter.sort(event))).boxed()
}

/// Tells what an event means for those that are looked for.
struct Sorter {
    kind: Kind,
    names: BTreeSet<String>,
    /// Those that a list that is being read has not named yet.
    unseen: BTreeSet<String>,
}

impl Sorter {
    fn sort(&mut self, event: Event<DynamicObject>) -> Vec<Seen> {
        match event {
            Event::Init => {
                self.unseen = self.names.clone();
                Vec::new()
            }
            Event::InitDone => {
                let absent = std::mem::take(&mut self.unseen).into_iter();
                absent.map(|name| Seen { id: Id { kind: self.kind, name }, object: None }).collect()
            }
            Event::Apply(object) | Event::InitApply(object) => self.seen(&object, true),
            Event::Delete(object) => self.seen(&object, false),
        }
    }

    fn seen(&mut self, object: &DynamicObject, there: bool) -> Vec<Seen> {
        let Some(name) = object.metadata.name.clone().filter(|name| self.names.contains(name)) else {
            return Vec::new();
        };
        self.unseen.remove(&name);
        // What was read from JSON can be written as JSON.
        let object = there.then(|| serde_json::to_value(object).unwrap_or_default());
        vec![Seen { id: Id { kind: self.kind, name }, object }]
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
        let mut sorter = Sorter { kind: Kind::Policy, names, unseen: BTreeSet::new() };
        let mut told = |event| -> Vec<(String, Option<Value>)> {
            let seen = sorter.sort(event).into_iter();
            seen.map(|seen| (seen.id.name, seen.object.map(|object| object["spec"]["a"].clone()))).collect()
        };
        let there = |name: &str| vec![(name.to_owned(), Some(json!("b")))];
        let gone = |name: &str| vec![(name.to_owned(), None)];
        assert_eq!(told(Event::Init), []);
        assert_eq!(told(Event::InitApply(object("other"))), []);
        assert_eq!(told(Event::InitApply(object("a"))), there("a"));
        assert_eq!(told(Event::InitDone), gone("b"));
        assert_eq!(told(Event::Apply(object("b"))), there("b"));
        assert_eq!(told(Event::Delete(object("a"))), gone("a"));
        assert_eq!(told(Event::Delete(object("other"))), []);
        assert_eq!(told(Event::Init), []);
        assert_eq!(told(Event::InitApply(object("a"))), there("a"), "it came while nothing was watched");
        assert_eq!(told(Event::InitDone), gone("b"), "it went while nothing was watched");
    }
}
