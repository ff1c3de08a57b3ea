//! What a proxy has of what is written for it.

use std::collections::BTreeMap;

use gateway_policies::{NodeKey, ObjectKind};
use serde_json::{Value, json};

use super::cluster::{Cluster, gateway, limits, policy, route, settings};
use crate::policies::enforcement::patches::{CLUSTER, LISTENER, MAPS};
use crate::policies::enforcement::proxied::{Proxied, ProxyConfig};

/// What Envoy prints of a proxy that has taken the patches of a Gateway.
fn dump(patches: &[Value]) -> Value {
    let (mut listeners, mut clusters, mut routes) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    let operations = patches.iter().flat_map(|own| own["spec"]["jsonPatches"].as_array().unwrap());
    for own in operations {
        let (name, operation) = (own["name"].as_str().unwrap(), &own["operation"]);
        match own["type"].as_str().unwrap() {
            CLUSTER => clusters.push(json!({"cluster": {"name": name}})),
            LISTENER => {
                let filters: &mut Vec<Value> = listeners.entry(name).or_default();
                filters.push(json!({"name": operation["value"]["name"]}));
            }
            _ => {
                let filter = operation["path"].as_str().unwrap().strip_prefix(MAPS).unwrap();
                let configuration: &mut Value = routes.entry(name).or_insert_with(|| json!({}));
                configuration[filter.trim_start_matches('/')] = operation["value"].clone();
            }
        }
    }
    let listeners = listeners.into_iter().map(|(name, filters)| {
        let manager = json!({"typed_config": {"http_filters": filters}});
        json!({"active_state": {"listener": {"name": name, "filter_chains": [{"filters": [manager]}]}}})
    });
    let routes = routes
        .into_iter()
        .map(|(name, filters)| json!({"route_config": {"name": name, "typed_per_filter_config": filters}}));
    json!({"configs": [
        {"dynamic_listeners": listeners.collect::<Vec<_>>()},
        {"dynamic_active_clusters": clusters},
        {"dynamic_route_configs": routes.collect::<Vec<_>>()},
    ]})
}

fn patches() -> Vec<Value> {
    let mut cluster = Cluster::new();
    cluster
        .put(settings(json!([{"namespace": "system", "configMap": "limits", "host": "limitador.system"}])));
    cluster.put(gateway("gw-1"));
    cluster.put(route("route-1", &["gw-1"]));
    cluster.put(route("route-2", &["gw-1"]));
    cluster.put(policy("own", "HTTPRoute/route-1", limits(&["burst"])));
    cluster.put(policy("all", "Gateway/gw-1", limits(&["all"])));
    cluster.settle();
    cluster.patches()
}

fn route_1() -> Proxied {
    Proxied::rules([(&NodeKey::new(ObjectKind::HttpRoute, "shop", "route-1"), 0)])
}

#[test]
fn a_proxy_that_has_all_lacks_nothing() {
    let patches = patches();
    let config = ProxyConfig::read(&dump(&patches));
    let rules = |of: &Proxied| config.taken(&patches, of).rules.len();
    assert_eq!((rules(&Proxied::All), rules(&route_1())), (2, 1));
    assert_eq!(config.taken(&patches, &Proxied::All).lacks, Vec::<String>::new());
}

#[test]
fn what_a_proxy_lacks_is_named() {
    let patches = patches();
    let lacks = |change: fn(&mut Value)| {
        let mut dump = dump(&patches);
        change(&mut dump);
        ProxyConfig::read(&dump).taken(&patches, &route_1()).lacks.join("; ")
    };
    let filters = lacks(|dump| dump["configs"][0] = Value::Null);
    assert!(filters.contains("it has no listener shop/gw-1/http"), "{filters}");
    let filter = |dump: &mut Value| {
        dump["configs"][0]["dynamic_listeners"][0]["active_state"]["listener"]["filter_chains"][0]["filters"]
            .as_array_mut()
            .unwrap()
            .push(json!({"typed_config": {"http_filters": [{"name": "envoy.filters.http.router"}]}}));
    };
    assert!(lacks(filter).contains("its listener shop/gw-1/http has no filter interlock.limits"));
    assert!(
        lacks(|dump| dump["configs"][1] = Value::Null).starts_with("it has no cluster interlock.limitador.")
    );
    let none = lacks(|dump| dump["configs"][2] = Value::Null);
    assert_eq!(none, "its route configuration shop/gw-1/http has nothing for httproute/shop/route-1/rule/0");
    let other = lacks(|dump| {
        let text = dump.to_string().replace("burst", "before");
        *dump = serde_json::from_str(&text).unwrap();
    });
    assert_eq!(
        other,
        "its route configuration shop/gw-1/http has another version for httproute/shop/route-1/rule/0"
    );
    let refused = lacks(|dump| {
        dump["configs"][2]["dynamic_route_configs"][0]["error_state"] = json!({"details": "no overload"});
    });
    assert_eq!(refused, "Envoy refuses: no overload");
}
