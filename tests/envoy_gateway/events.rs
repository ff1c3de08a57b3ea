//! What an event costs in a cluster: the outputs that it has written, the requests, and the time to the first refusal of
//! a real Envoy.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ground::{CAP, Ground, condition, limit, policy};
use crate::site::{self, HOST, PORT};
use crate::support::audit::{Audit, Request, tally};
use crate::support::envoy_gateway::EnvoyGateway;
use crate::support::{Client, announce, service_path, wait_until};

const GATEWAYS: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/app/gateways";
const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/app/httproutes";
const POLICIES: &str = "/apis/kuadrant.io/v1/namespaces/app/ratelimitpolicies";

/// Looks at the renewals of the lease after which an event is over.
const RENEWALS: usize = 6;

fn gateway(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": name},
        "spec": {"gatewayClassName": "eg", "listeners": [{"name": "http", "port": port, "protocol": "HTTP"}]},
    })
}

fn route(name: &str, gateways: &[&str]) -> Value {
    let parents: Vec<Value> = gateways.iter().map(|name| json!({"name": name})).collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name},
        "spec": {
            "parentRefs": parents, "hostnames": [format!("{name}.example.org")],
            "rules": [{"backendRefs": [{"name": "backend", "port": 80}]}],
        },
    })
}

fn limits(most: u64) -> Value {
    json!({"limits": {"all": limit(most, &[], &[])}})
}

/// The objects of the example that the graph was made for.
struct Example {
    ground: Ground,
    audit: Audit,
    at: u64,
}

impl Example {
    /// What is written and asked from here on until nothing is any more, but for leases and reviews.
    fn settled(&mut self) -> Vec<Request> {
        let mut found = Vec::new();
        wait_until("nothing is asked any more", CAP, || {
            let (seen, end) = self.audit.while_renewed(self.at, RENEWALS);
            self.at = end;
            let mut rest = seen;
            rest.retain(|own| !own.is_about_leases() && !own.resource.ends_with("reviews"));
            let is_over = rest.is_empty();
            found.extend(rest);
            if is_over { Ok(()) } else { Err(format!("{:?}", tally(&found))) }
        });
        found
    }

    /// Does something, and says what it had written: plural and name of each object, and of conditions the plural with
    /// its subresource.
    fn event(&mut self, what: &str, act: impl Fn(&Client), expected: &[&str]) {
        let counts_routes = what.contains("route is ");
        self.settled();
        act(&self.ground.admin);
        let requests = self.settled();
        let written: BTreeSet<String> = requests
            .iter()
            .filter(|own| own.writes())
            .map(|own| format!("{} {}", own.resource, own.name))
            .collect();
        let lists = requests.iter().filter(|own| own.verb == "list").count();
        announce(&format!(
            "counted: {what} | {} | {} requests, {} of them writes",
            written.iter().cloned().collect::<Vec<_>>().join(", "),
            requests.len(),
            requests.iter().filter(|own| own.writes()).count()
        ));
        // Envoy Gateway may drop the condition of a Gateway, as it counts its routes; it is written again.
        let is_again =
            |own: &String| own.starts_with("gateways/status ") && !expected.contains(&own.as_str());
        let written: BTreeSet<String> = match counts_routes {
            true => written.into_iter().filter(|own| !is_again(own)).collect(),
            false => written,
        };
        let expected: BTreeSet<String> = expected.iter().map(|own| (*own).to_owned()).collect();
        assert_eq!(written, expected, "{what}: {requests:#?}");
        assert_eq!(lists, 0, "{what}: {requests:#?}");
    }
}

const LIMITS: &str = "configmaps limits";
const PATCH_1: &str = "envoypatchpolicies interlock-limits-gw-1-0";
const PATCH_2: &str = "envoypatchpolicies interlock-limits-gw-2-0";
const GATEWAY_1: &str = "gateways/status gw-1";
const GATEWAY_2: &str = "gateways/status gw-2";
const POLICY_1: &str = "ratelimitpolicies/status rlp-1";
const POLICY_2: &str = "ratelimitpolicies/status rlp-2";
const POLICY_3: &str = "ratelimitpolicies/status rlp-3";
const POLICY_4: &str = "ratelimitpolicies/status rlp-4";

/// Each event has exactly the outputs written that it affects, and nothing is listed.
#[test]
#[ignore = "minutes; run by make soak"]
fn each_event_writes_what_it_affects_and_lists_nothing() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster_with(&["--audit"]);
    let _gateway = EnvoyGateway::start(&cluster);
    let Some(ground) = Ground::new(&cluster) else { return };
    let Some(audit) = Audit::of(&cluster) else { return };
    site::create(&cluster.admin());
    let admin = &ground.admin;
    admin.kubectl(&["delete", "httproute", "api"]).ok();
    admin.kubectl(&["delete", "gateway", "gw"]).ok();
    [gateway("gw-1", 10081), gateway("gw-2", 10082)].iter().for_each(|own| admin.apply(&own.to_string()));
    for (name, gateways) in [
        ("route-1", &["gw-1"][..]),
        ("route-2", &["gw-1"]),
        ("route-3", &["gw-1", "gw-2"]),
        ("route-4", &["gw-2"]),
    ] {
        admin.apply(&route(name, gateways).to_string());
    }
    ground.put(&policy("rlp-1", "Gateway/gw-1", limits(1)));
    for n in 2..=4 {
        ground.put(&policy(&format!("rlp-{n}"), &format!("HTTPRoute/route-{n}"), limits(1)));
    }
    ["rlp-1", "rlp-2", "rlp-3", "rlp-4"].iter().for_each(|own| ground.await_enforced(own));
    audit.settle(&cluster);
    let at = audit.since(0).1;
    let mut example = Example { ground, audit, at };
    let patch =
        |path: String, patch: Value| move |admin: &Client| drop(admin.merge_patch(&path, &patch).ok());
    let most = |name: &str, most: u64| {
        patch(format!("{POLICIES}/{name}"), json!({"spec": {"limits": {"all": limit(most, &[], &[])}}}))
    };
    let delete = |path: String| move |admin: &Client| drop(admin.delete(&path).ok());

    example.event("rlp-1 is changed", most("rlp-1", 2), &[LIMITS, POLICY_1]);
    example.event("rlp-2 is changed", most("rlp-2", 2), &[LIMITS, POLICY_2]);
    example.event("rlp-3, of a route of two Gateways, is changed", most("rlp-3", 2), &[LIMITS, POLICY_3]);
    let when = json!({"spec": {"limits": {"all": limit(2, &["request.method == 'GET'"], &[])}}});
    example.event(
        "rlp-3 has a predicate",
        patch(format!("{POLICIES}/rlp-3"), when),
        &[PATCH_1, PATCH_2, POLICY_3],
    );
    example.event("rlp-4 is deleted", delete(format!("{POLICIES}/rlp-4")), &[LIMITS, PATCH_2, GATEWAY_2]);
    let own = policy("rlp-4", "HTTPRoute/route-4", limits(1));
    let again = move |admin: &Client| admin.apply(&own.to_string());
    example.event("rlp-4 is created", again, &[LIMITS, PATCH_2, GATEWAY_2, POLICY_4]);
    example.event("rlp-1 is deleted", delete(format!("{POLICIES}/rlp-1")), &[LIMITS, PATCH_1, GATEWAY_1]);
    let own = policy("rlp-1", "Gateway/gw-1", limits(1));
    let again = move |admin: &Client| admin.apply(&own.to_string());
    example.event("rlp-1 is created", again, &[LIMITS, PATCH_1, GATEWAY_1, POLICY_1]);
    let path = json!({"spec": {"rules": [{
        "matches": [{"path": {"type": "PathPrefix", "value": "/a"}}], "backendRefs": [{"name": "backend", "port": 80}],
    }]}});
    example.event("route-1 matches another path", patch(format!("{ROUTES}/route-1"), path), &[]);
    let new = |admin: &Client| admin.apply(&route("route-5", &["gw-1"]).to_string());
    example.event("a route is created", new, &[LIMITS, PATCH_1]);
    example.event("that route is deleted", delete(format!("{ROUTES}/route-5")), &[LIMITS, PATCH_1]);
    let new = |admin: &Client| admin.apply(&route("route-6", &["gw-2"]).to_string());
    example.event("another route is created, without a policy", new, &[]);
    example.event("that route is deleted", delete(format!("{ROUTES}/route-6")), &[]);
    let moved = json!({"spec": {"parentRefs": [{"name": "gw-1"}]}});
    example.event(
        "route-4 moves to gw-1",
        patch(format!("{ROUTES}/route-4"), moved),
        &[LIMITS, PATCH_1, PATCH_2, GATEWAY_1, GATEWAY_2],
    );
    let back = json!({"spec": {"parentRefs": [{"name": "gw-2"}]}});
    example.event(
        "and back",
        patch(format!("{ROUTES}/route-4"), back),
        &[LIMITS, PATCH_1, PATCH_2, GATEWAY_1, GATEWAY_2],
    );
    let allowed = json!({"spec": {"listeners": [
        {"name": "http", "port": 10082, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "Same"}}},
    ]}});
    example.event("gw-2 says what is so by default", patch(format!("{GATEWAYS}/gw-2"), allowed), &[]);
    // The patch is collected with its Gateway.
    example.event("gw-2 is deleted", delete(format!("{GATEWAYS}/gw-2")), &[LIMITS, POLICY_4]);
}

/// Gateways of 64 listeners and routes that name none of them (kuadrant-operator 1085: 30 minutes).
#[test]
#[ignore = "a measurement; run by make soak"]
fn many_listeners_and_routes_come_to_rest_soon() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let _gateway = EnvoyGateway::start(&cluster);
    let Some(ground) = Ground::new(&cluster) else { return };
    site::create(&cluster.admin());
    let admin = &ground.admin;
    let listener = |n: u16| json!({"name": format!("l{n}"), "port": 10080, "protocol": "HTTP", "hostname": format!("*.h{n}.example.org")});
    let mut wide = gateway("wide", 10080);
    wide["spec"]["listeners"] = (0..64).map(listener).collect();
    admin.apply(&wide.to_string());
    ground.put(&policy("wide", "Gateway/wide", limits(1)));
    let routes: Vec<Value> = (0..63)
        .map(|n| {
            let mut own = route(&format!("wide-{n}"), &["wide"]);
            own["spec"]["hostnames"] = json!([]);
            own
        })
        .collect();
    let (last, before) = routes.split_last().expect("routes");
    before.iter().for_each(|own| drop(admin.post(ROUTES, own).ok()));
    let patch =
        "/apis/gateway.envoyproxy.io/v1alpha1/namespaces/app/envoypatchpolicies/interlock-limits-wide-0";
    admin.post(ROUTES, last).ok();
    let began = Instant::now();
    let has_all = || {
        let text = admin.read(patch).body.to_string();
        routes.iter().all(|own| {
            text.contains(&format!("httproute/app/{}/", own["metadata"]["name"].as_str().expect("a name")))
        })
    };
    wait_until(
        "the output has all routes",
        CAP,
        || if has_all() { Ok(()) } else { Err("not yet".to_owned()) },
    );
    let output = began.elapsed();
    ground.await_enforced("wide");
    let enforced = began.elapsed();
    let now = || {
        let policy = admin.get("ratelimitpolicy", "wide").expect("it is there");
        (admin.read(patch).body["metadata"]["resourceVersion"].clone(), condition(&policy, "Enforced"))
    };
    let mut seen = (now(), began.elapsed());
    wait_until("nothing changes for five seconds", CAP, || {
        let found = now();
        if found != seen.0 {
            seen = (found, began.elapsed());
        }
        if began.elapsed() - seen.1 > Duration::from_secs(5) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    // Each write of its status, of Envoy Gateway most of all, costs the API server as much.
    let began = Instant::now();
    admin.merge_patch(&format!("{GATEWAYS}/wide"), &json!({"metadata": {"annotations": {"a": "b"}}})).ok();
    let write = began.elapsed();
    announce(&format!(
        "counted: 64 listeners, 63 routes: a write of the Gateway takes {write:?}; after the last create, its output after \
         {output:?}, Enforced after {enforced:?}, \
         no change since {:?}",
        seen.1
    ));
}

/// How long a change of one policy takes to the first refusal of the Envoy, beside so many routes.
#[test]
#[ignore = "minutes; run by make soak"]
fn a_change_among_many_routes_refuses_soon() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let gateway = EnvoyGateway::start(&cluster);
    let Some(ground) = Ground::new(&cluster) else { return };
    site::create(&cluster.admin());
    let envoy = gateway.proxy("app", "gw");
    ground.put(&policy("api", "HTTPRoute/api", limits(1_000_000)));
    ground.await_enforced("api");
    envoy.await_status(PORT, HOST, "/limited", 200);
    let mut made = 0;
    for routes in [100, 1_000] {
        for n in made..routes {
            let name = format!("many-{n}");
            ground.admin.post(ROUTES, &route(&name, &["gw"])).ok();
            let mut own = policy(&name, &format!("HTTPRoute/{name}"), limits(1_000_000));
            own["metadata"]["namespace"] = "app".into();
            ground.admin.post(POLICIES, &own).ok();
        }
        made = routes;
        ground.await_enforced(&format!("many-{}", routes - 1));
        envoy.await_status(PORT, &format!("many-{}.example.org", routes - 1), "/", 200);
        let mut times: Vec<Duration> = (0..7).map(|_| first_refusal(&ground, &envoy)).collect();
        times.sort();
        announce(&format!(
            "counted: beside {routes} routes with a policy each, from the answer to the change to the first 429: median {:?} \
             of {times:?}",
            times[times.len() / 2]
        ));
    }
}

fn first_refusal(ground: &Ground, envoy: &crate::support::envoy_gateway::Envoy) -> Duration {
    let set = |most: u64, when: &[&str]| {
        let spec = json!({"spec": {"limits": {"all": limit(most, when, &[])}}});
        ground.admin.merge_patch(&format!("{POLICIES}/api"), &spec).ok();
        Instant::now()
    };
    // With a predicate, so that the proxy needs another configuration, too.
    let began = set(0, &["request.method == 'GET'"]);
    envoy.await_status(PORT, HOST, "/limited", 429);
    let took = began.elapsed();
    set(1_000_000, &[]);
    envoy.await_status(PORT, HOST, "/limited", 200);
    ground.await_enforced("api");
    took
}
