//! The EnvoyPatchPolicies of a fleet: those of its guards, and those of its limits.
//!
//! An operation costs Envoy Gateway as much as the resource that it changes, whatever it changes there: each listener
//! and each route configuration has one. A map that is too large for one object goes on in the next.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::auth::filters;
use super::auth::guards::GuardedRoutes;
use super::names::Patched;
use super::{auth, envoy, names};

/// Bytes of the operations of one EnvoyPatchPolicy; etcd takes objects of 1.5 MiB.
const BYTES: usize = 900 << 10;
/// EnvoyPatchPolicies of each kind of one fleet.
pub(super) const MOST: usize = 16;

pub(super) const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub(super) const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(super) const ROUTE_CONFIGURATION: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// Where a route configuration has the maps of filters.
pub(super) const MAPS: &str = "/typed_per_filter_config";

impl Patched {
    /// What carries out the policies of a kind.
    pub(super) fn of_kind(kind: &str) -> Self {
        if kind == auth::KIND { Self::Guards } else { Self::Limits }
    }

    /// The priority of the first. Guards stand before limits, and what goes on under another's map comes after it.
    pub(super) fn priority(self) -> i32 {
        match self {
            Self::Guards => -100,
            Self::Limits => 0,
        }
    }
}

/// The operations of each EnvoyPatchPolicy, in the order of their priority, and their hash.
pub(super) type Patches = Vec<(Vec<Value>, String)>;

/// A fleet has more limits or guarded routes than its EnvoyPatchPolicies hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl TooLarge {
    /// What to do about it.
    pub(super) fn message() -> String {
        format!(
            "the limits or guarded routes of the Gateway, or those that it is merged with, have more than {} MiB; move routes to another Gateway",
            (MOST * BYTES) >> 20
        )
    }
}

/// What has the limits of a fleet, by route configuration; nothing where there are none. The cluster has the name and
/// definition of its Limitador's.
pub(super) fn of_limits(
    routes: &BTreeMap<String, Map<String, Value>>,
    listeners: &[String],
    cluster: (&str, Value),
) -> Result<Patches, TooLarge> {
    if routes.is_empty() {
        return Ok(Patches::new());
    }
    let filters = [envoy::route_filter(envoy::ROUTE), envoy::limits_filter()];
    let mut filling = Filling::with(cluster, in_listeners(listeners, &filters));
    let nothing = Map::new();
    for (configuration, routes) in routes {
        let (filter, place) = (envoy::LIMITS_FILTER, envoy::ROUTE);
        let map = RouteMap { filter, place, configuration, rest: &nothing, others: None, meanwhile: None };
        filling.add(&map, routes);
    }
    filling.end()
}

/// What guards the routes of a fleet. The cluster has the name and definition of its auth server's.
pub(super) fn of_guards(
    guarded: &GuardedRoutes,
    listeners: &[String],
    cluster: (&str, Value),
) -> Result<Patches, TooLarge> {
    let mut filling = Filling::with(cluster, in_listeners(listeners, &guards(guarded)));
    let refuse = filters::refuse();
    for (configuration, routes) in &guarded.routes {
        let map = RouteMap {
            filter: filters::FILTER,
            place: filters::ROUTE,
            configuration,
            rest: &guarded.rest,
            others: guarded.others.as_ref(),
            meanwhile: Some(&refuse),
        };
        filling.add(&map, routes);
    }
    filling.end()
}

/// What guards listeners that the proxies have under other circumstances: another listener becomes the first of its port,
/// say. Envoy Gateway says that they are not found, and waits for them.
pub(super) fn standby(guarded: &GuardedRoutes, listeners: &[String]) -> Option<(Vec<Value>, String)> {
    let mut left = BYTES;
    let mut operations = in_listeners(listeners, &guards(guarded));
    operations.retain(|own| {
        let size = own.to_string().len();
        let has_room = size <= left;
        left = left.saturating_sub(size);
        has_room
    });
    (!operations.is_empty()).then(|| hashed(operations))
}

fn guards(guarded: &GuardedRoutes) -> [Value; 2] {
    [envoy::route_filter(filters::ROUTE), filters::composite(&guarded.without_map)]
}

/// Puts filters before the router, in their order.
fn in_listeners(listeners: &[String], filters: &[Value]) -> Vec<Value> {
    let before = format!("..http_filters[?(@.name=='{}')]", envoy::ROUTER);
    let add = |listener: &String, filter: &Value| {
        operation(LISTENER, listener, json!({"op": "add", "jsonPath": before, "value": filter}))
    };
    let of_listener = |listener| filters.iter().map(move |filter| add(listener, filter));
    listeners.iter().flat_map(of_listener).collect()
}

fn operation(message: &str, name: &str, operation: Value) -> Value {
    json!({"type": message, "name": name, "operation": operation})
}

fn hashed(operations: Vec<Value>) -> (Vec<Value>, String) {
    let hash = names::hash(&Value::from(operations.clone()));
    (operations, hash)
}

/// The map of a route configuration, but for its routes.
struct RouteMap<'a> {
    filter: &'a str,
    /// Where the filter finds the name of a route.
    place: &'a str,
    configuration: &'a str,
    /// What stands in its last part.
    rest: &'a Map<String, Value>,
    /// What is done for a route that no part has.
    others: Option<&'a Value>,
    /// The same, as long as the next part is not there.
    meanwhile: Option<&'a Value>,
}

/// EnvoyPatchPolicies as they are filled.
struct Filling {
    left: usize,
    all: Vec<Vec<Value>>,
}

/// A map as it is filled.
struct Part {
    path: String,
    entries: Map<String, Value>,
    is_first: bool,
}

impl Filling {
    /// With a cluster of this name, and what is done in listeners.
    fn with((name, cluster): (&str, Value), in_listeners: Vec<Value>) -> Self {
        let cluster = operation(CLUSTER, name, json!({"op": "add", "path": "", "value": cluster}));
        let mut filling = Self { left: BYTES, all: vec![Vec::new()] };
        for own in std::iter::once(cluster).chain(in_listeners) {
            let size = own.to_string().len();
            if size > filling.left {
                filling.go_on();
            }
            filling.left = filling.left.saturating_sub(size);
            filling.push(own);
        }
        filling
    }

    fn go_on(&mut self) {
        self.all.push(Vec::new());
        self.left = BYTES;
    }

    fn push(&mut self, operation: Value) {
        if let Some(last) = self.all.last_mut() {
            last.push(operation);
        }
    }

    fn end(self) -> Result<Patches, TooLarge> {
        if self.all.len() > MOST { Err(TooLarge) } else { Ok(self.all.into_iter().map(hashed).collect()) }
    }

    /// Adds the map of a route configuration. Its parts are one behind the other: a route that one does not have is
    /// looked up in the next.
    fn add(&mut self, map: &RouteMap<'_>, routes: &Map<String, Value>) {
        let path = format!("{MAPS}/{}", map.filter);
        let mut part = Part { path, entries: Map::new(), is_first: true };
        for (prefix, action) in routes {
            self.make_room(size(prefix, action), map, &mut part);
            part.entries.insert(prefix.clone(), action.clone());
        }
        // It is found by shorter beginnings than routes, so no part may come after it.
        let rest = map.rest.iter().map(|(prefix, action)| size(prefix, action)).sum::<usize>();
        self.make_room(rest, map, &mut part);
        part.entries.extend(map.rest.clone());
        self.put(map, part, map.others);
    }

    /// Goes on in the next EnvoyPatchPolicy where this one has no room.
    fn make_room(&mut self, bytes: usize, map: &RouteMap<'_>, part: &mut Part) {
        if bytes > self.left && self.left < BYTES {
            if !part.entries.is_empty() {
                let path = format!("{}/matcher/on_no_match", part.path);
                let next = Part { path, entries: Map::new(), is_first: false };
                self.put(map, std::mem::replace(part, next), map.meanwhile);
            }
            self.go_on();
        }
        self.left = self.left.saturating_sub(bytes);
    }

    fn put(&mut self, map: &RouteMap<'_>, part: Part, others: Option<&Value>) {
        let mut matcher = envoy::by_prefix(map.place, part.entries);
        if let Some(others) = others {
            matcher["on_no_match"] = others.clone();
        }
        let value = if part.is_first { envoy::per_route(matcher) } else { envoy::go_on(matcher) };
        let add = json!({"op": "add", "path": part.path, "value": value});
        self.push(operation(ROUTE_CONFIGURATION, map.configuration, add));
    }
}

fn size(prefix: &str, action: &Value) -> usize {
    prefix.len() + action.to_string().len()
}
