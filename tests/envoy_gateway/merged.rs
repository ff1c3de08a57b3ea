//! Gateways of two namespaces that Envoy Gateway merges into one proxy.

use serde_json::{Value, json};

use crate::ground::{CAP, Ground, auth_policy, await_answer, await_enforced, limit, policy};
use crate::site::{self, HOST, PORT, SECOND_HOST};
use crate::support::envoy_gateway::{Envoy, EnvoyGateway};
use crate::support::interlock::interlock;
use crate::support::{Client, service_path, wait_until};

#[test]
fn the_policies_of_merged_gateways_act_beside_each_other() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let gateway = EnvoyGateway::start_merged(&cluster);
    let Some((ground, _server)) = Ground::with_auth(&cluster) else { return };
    let admin = cluster.admin();
    let team = admin.within("team");
    site::create(&admin);
    site::create_second(&admin);
    let envoy = gateway.merged_proxy();
    envoy.await_status(PORT, HOST, "/limited", 200);
    envoy.await_status(PORT, SECOND_HOST, "/", 200);

    ground.put(&policy("gw", "Gateway/gw", json!({"limits": {"first": limit(2, &[], &[])}})));
    ground.await_enforced("gw");
    await_answer(&envoy, "/limited", "", 429);
    assert_eq!(ground.counted("first"), 2, "requests before the first refusal");
    (0..5).for_each(|_| assert_eq!(envoy.get(PORT, SECOND_HOST, "/", ""), Some(200)));

    // The other's limits count for themselves.
    team.apply(
        &policy("own", "HTTPRoute/api", json!({"limits": {"second": limit(3, &[], &[])}})).to_string(),
    );
    await_enforced(&team, "ratelimitpolicy", "own");
    envoy.await_status(PORT, SECOND_HOST, "/", 429);
    assert_eq!(ground.counted("second"), 3, "requests before the first refusal");
    team.kubectl(&["delete", "ratelimitpolicy", "own"]).ok();
    envoy.await_status(PORT, SECOND_HOST, "/", 200);

    // The other's authentication is its own, and a new route of the first one is let in without.
    let by_header =
        json!({"rules": {"authentication": {"user": {"plain": {"selector": "request.headers.x-user"}}}}});
    team.apply(&auth_policy("own", "Gateway/second", by_header).to_string());
    envoy.await_status(PORT, SECOND_HOST, "/", 401);
    assert_eq!(envoy.get(PORT, SECOND_HOST, "/", "x-user: alice\r\n"), Some(200));
    await_answer(&envoy, "/limited", "", 429);
    ground.admin.apply(&later());
    ground.admin.kubectl(&["delete", "ratelimitpolicy", "gw"]).ok();
    envoy.await_status(PORT, "later.example.org", "/", 200);
    await_answer(&envoy, "/limited", "", 200);
    proxies_have_all(&team);

    // Gateways go; what is left stays guarded.
    ground.admin.kubectl(&["delete", "gateway", "gw"]).ok();
    is_guarded(&envoy, "the first Gateway is gone", |envoy| {
        envoy.get(PORT, HOST, "/limited", "") != Some(200)
    });
    team.kubectl(&["delete", "authpolicy", "own"]).ok();
    envoy.await_status(PORT, SECOND_HOST, "/", 200);
    wait_until("nothing is left", CAP, || {
        let left = admin.read("/apis/gateway.envoyproxy.io/v1alpha1/envoypatchpolicies").body;
        if left["items"] == json!([]) { Ok(()) } else { Err(format!("{left:#}")) }
    });
}

/// A route of the first Gateway that is made while the second is guarded.
fn later() -> String {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "later"},
        "spec": {
            "parentRefs": [{"name": "gw"}], "hostnames": ["later.example.org"],
            "rules": [{"backendRefs": [{"name": "backend", "port": 80}]}],
        },
    })
    .to_string()
}

fn proxies_have_all(team: &Client) {
    let said = interlock(team, &["why", "authpolicy/own", "-n", "team", "--proxy", "-o", "json"], "").ok();
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let own = &said["proxies"][0];
    assert_eq!(
        (&own["rules"], &own["lacks"]),
        (&json!(["httproute/team/api/rule/0"]), &json!([])),
        "{said:#}"
    );
}

/// The second Gateway lets no request in without a name, before and after something is the case.
fn is_guarded(envoy: &Envoy, what: &str, is_so: impl Fn(&Envoy) -> bool) {
    wait_until(what, CAP, || {
        let found = envoy.get(PORT, SECOND_HOST, "/", "");
        assert_ne!(found, Some(200), "it was open while {what}");
        if is_so(envoy) { Ok(()) } else { Err(format!("{found:?}")) }
    });
    envoy.await_status(PORT, SECOND_HOST, "/", 401);
}
