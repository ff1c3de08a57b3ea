//! Filters as Envoy 1.40 has them.
//!
//! A composite filter in each HTTP connection manager looks up the route's name in a map of its route configuration, which
//! says what is asked for it: one for authentication, and behind it one for limits. An operation for each route would cost
//! Envoy Gateway the square of their number.

use serde_json::{Map, Value, json};

use super::limits::RequestLimit;

/// Where the name of a route is kept for the filter of the limits.
pub(super) const ROUTE: &str = "interlock.route";
/// The filter of the limits, and the key of its map in a route configuration.
pub(super) const LIMITS_FILTER: &str = "interlock.limits";
/// The router, before which both stand.
pub(super) const ROUTER: &str = "envoy.filters.http.router";
/// How long a proxy waits for Limitador; then the request goes on.
const TIMEOUT: &str = "0.1s";
/// What Limitador is called in requests; else it is the cluster's name, which servers refuse that is no host.
const AUTHORITY: &str = "limitador";

pub(super) fn typed(message: &str, fields: Value) -> Value {
    let mut typed = Map::from_iter([("@type".to_owned(), format!("type.googleapis.com/{message}").into())]);
    if let Value::Object(fields) = fields {
        typed.extend(fields);
    }
    Value::Object(typed)
}

pub(super) fn extension(name: &str, message: &str, fields: Value) -> Value {
    json!({"name": name, "typed_config": typed(message, fields)})
}

/// The filter that keeps the route's name in a place for the filter behind it.
pub(super) fn route_filter(place: &str) -> Value {
    let name = json!({"text_format_source": {"inline_string": "%ROUTE_NAME%"}});
    let state = json!([{"object_key": place, "factory_key": "envoy.string", "format_string": name}]);
    let state = json!({"on_request_headers": state});
    extension(place, "envoy.extensions.filters.http.set_filter_state.v3.Config", state)
}

/// The filter of the limits.
pub(super) fn limits_filter() -> Value {
    extension(LIMITS_FILTER, "envoy.extensions.filters.http.composite.v3.Composite", json!({}))
}

/// The map of a route configuration.
pub(super) fn per_route(matcher: Value) -> Value {
    typed("envoy.extensions.filters.http.composite.v3.CompositePerRoute", json!({"matcher": matcher}))
}

fn route_name(place: &str) -> Value {
    extension(
        "route",
        "envoy.extensions.matching.common_inputs.network.v3.FilterStateInput",
        json!({"key": place}),
    )
}

/// Looks a route up by the beginning of its name, which is kept in a place.
pub(super) fn by_prefix(place: &str, entries: Map<String, Value>) -> Value {
    json!({"matcher_tree": {"input": route_name(place), "prefix_match_map": {"map": entries}}})
}

/// Looks a route up by the end of its name, one of several.
pub(super) fn by_suffix(place: &str, entries: impl IntoIterator<Item = (Vec<String>, Value)>) -> Value {
    let matchers = entries.into_iter().map(|(suffixes, on_match)| {
        let single = |suffix: &String| {
            json!({"single_predicate": {"input": route_name(place), "value_match": {"suffix": suffix}}})
        };
        let predicate = match suffixes.as_slice() {
            [suffix] => single(suffix),
            suffixes => json!({"or_matcher": {"predicate": suffixes.iter().map(single).collect::<Vec<_>>()}}),
        };
        json!({"predicate": predicate, "on_match": on_match})
    });
    json!({"matcher_list": {"matchers": matchers.collect::<Vec<_>>()}})
}

/// Asks another matcher.
pub(super) fn go_on(matcher: Value) -> Value {
    json!({"matcher": matcher})
}

/// Asks Limitador about the limits of a rule.
pub(super) fn ask<'a>(domain: &str, cluster: &str, limits: impl Iterator<Item = &'a RequestLimit>) -> Value {
    // One descriptor has all limits. An entry whose expression fails is left out, and its limit does not count.
    let actions: Vec<Value> = limits.flat_map(entries).collect();
    let filter = extension(
        "envoy.filters.http.ratelimit",
        "envoy.extensions.filters.http.ratelimit.v3.RateLimit",
        json!({
            "domain": domain,
            "timeout": TIMEOUT,
            "rate_limit_service": {
                "grpc_service": {"envoy_grpc": {"cluster_name": cluster, "authority": AUTHORITY}, "timeout": TIMEOUT},
                "transport_api_version": "V3",
            },
            "rate_limits": [{"actions": actions}],
        }),
    );
    execute("limits", filter)
}

/// Lets a filter decide about a request.
pub(super) fn execute(name: &str, filter: Value) -> Value {
    let action = json!({"typed_config": filter});
    json!({"action": extension(name, "envoy.extensions.filters.http.composite.v3.ExecuteFilterAction", action)})
}

fn entries(limit: &RequestLimit) -> impl Iterator<Item = Value> {
    let counters = limit.counters.iter().enumerate();
    let counters = counters.map(|(index, text)| entry(&limit.counter_key(index), text));
    std::iter::once(entry(&limit.id, &limit.condition())).chain(counters)
}

fn entry(key: &str, expression: &str) -> Value {
    json!({"extension": extension(
        "envoy.rate_limit_descriptors.expr",
        "envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor",
        json!({"descriptor_key": key, "skip_if_error": true, "text": expression}),
    )})
}

/// The cluster of a server that is asked, with filters of its own.
pub(super) fn cluster(name: &str, (host, port): &(String, u16), filters: Option<Value>) -> Value {
    let address = json!({"socket_address": {"address": host, "port_value": port}});
    // A server whose machine is gone does not close its connections.
    let keepalive = json!({"connection_keepalive": {"connection_idle_interval": "1s", "timeout": "1s"}});
    let mut options = json!({"explicit_http_config": {"http2_protocol_options": keepalive}});
    if let Some(filters) = filters {
        options["http_filters"] = filters;
    }
    let options = typed("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", options);
    json!({
        "name": name,
        "type": "STRICT_DNS",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options,
        },
    })
}
