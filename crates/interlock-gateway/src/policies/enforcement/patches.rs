//! The EnvoyPatchPolicies of a Gateway.
//!
//! An operation costs Envoy Gateway as much as the resource that it changes, whatever it changes there: each listener
//! and each route configuration has one. A map that is too large for one object goes on in the next.

use serde_json::{Map, Value, json};

use super::envoy;
use super::output::GatewayOutput;

/// Bytes of the operations of one EnvoyPatchPolicy; etcd takes objects of 1.5 MiB.
const BYTES: usize = 900 << 10;
/// EnvoyPatchPolicies of one Gateway.
const MOST: usize = 16;

const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
const ROUTE_CONFIGURATION: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

/// A Gateway has more limits than its EnvoyPatchPolicies hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl TooLarge {
    /// What to do about it.
    pub(super) fn message() -> String {
        format!(
            "the limits of the Gateway have more than {} MiB; move routes to another Gateway",
            (MOST * BYTES) >> 20
        )
    }
}

/// The operations of each EnvoyPatchPolicy, in the order of their priority; none where nothing is limited.
pub(super) fn operations(
    output: &GatewayOutput,
    cluster: (&str, Value),
) -> Result<Vec<Vec<Value>>, TooLarge> {
    if output.routes.is_empty() {
        return Ok(Vec::new());
    }
    let (name, cluster) = cluster;
    let mut first = vec![operation(CLUSTER, name, json!({"op": "add", "path": "", "value": cluster}))];
    for listener in &output.listeners {
        for filter in envoy::filters() {
            let before = format!("..http_filters[?(@.name=='{}')]", envoy::ROUTER);
            let add = json!({"op": "add", "jsonPath": before, "value": filter});
            first.push(operation(LISTENER, listener, add));
        }
    }
    let mut filling = Filling { left: BYTES, all: vec![first] };
    for (configuration, routes) in &output.routes {
        filling.add(configuration, routes);
    }
    if filling.all.len() > MOST { Err(TooLarge) } else { Ok(filling.all) }
}

fn operation(message: &str, name: &str, operation: Value) -> Value {
    json!({"type": message, "name": name, "operation": operation})
}

/// EnvoyPatchPolicies as they are filled.
struct Filling {
    left: usize,
    all: Vec<Vec<Value>>,
}

impl Filling {
    /// Adds the map of a route configuration. Its parts are one behind the other: a route that one does not have is
    /// looked up in the next.
    fn add(&mut self, configuration: &str, routes: &Map<String, Value>) {
        let mut path = format!("/typed_per_filter_config/{}", envoy::LIMITS_FILTER);
        let mut part = Map::new();
        let mut is_first = true;
        for (prefix, action) in routes {
            let size = prefix.len() + action.to_string().len();
            if size > self.left && !part.is_empty() {
                self.put(configuration, &mut path, std::mem::take(&mut part), &mut is_first);
                self.all.push(Vec::new());
                self.left = BYTES;
            }
            self.left = self.left.saturating_sub(size);
            part.insert(prefix.clone(), action.clone());
        }
        self.put(configuration, &mut path, part, &mut is_first);
    }

    fn put(&mut self, configuration: &str, path: &mut String, part: Map<String, Value>, is_first: &mut bool) {
        let matcher = envoy::by_prefix(part);
        let value = if *is_first { envoy::per_route(matcher) } else { envoy::go_on(matcher) };
        let add = json!({"op": "add", "path": *path, "value": value});
        if let Some(last) = self.all.last_mut() {
            last.push(operation(ROUTE_CONFIGURATION, configuration, add));
        }
        path.push_str("/matcher/on_no_match");
        *is_first = false;
    }
}
