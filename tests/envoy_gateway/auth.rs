//! AuthPolicies, as Interlock carries them out through a real Envoy that Envoy Gateway configures, with a server that
//! answers as Authorino does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::ground::{CAP, Ground, auth_policy, await_answer, condition, limit, policy};
use crate::site::{self, HOST, PORT};
use crate::support::auth_server::AuthServer;
use crate::support::envoy_gateway::{Envoy, EnvoyGateway};
use crate::support::{announce, service_path, wait_until};

/// Rules by which a header names the user.
fn by_header(header: &str) -> Value {
    json!({"rules": {
        "authentication": {"user": {"plain": {"selector": format!("request.headers.{header}")}}},
        "response": {"success": {"filters": {"identity": {
            "json": {"properties": {"userid": {"selector": "auth.identity"}}},
        }}}},
    }})
}

const SECOND_ROUTE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: later, namespace: app}
spec:
  parentRefs: [{name: gw}]
  hostnames: [later.example.org]
  rules: [{backendRefs: [{name: backend, port: 80}]}]
";

#[test]
fn requests_are_let_in_by_the_policies_of_their_route() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let gateway = EnvoyGateway::start(&cluster);
    let Some((ground, mut server)) = Ground::with_auth(&cluster) else { return };
    site::create(&cluster.admin());
    let envoy = Arc::new(gateway.proxy("app", "gw"));
    envoy.await_status(PORT, HOST, "/limited", 200);

    // By rule: the other one is open.
    ground.put(&auth_policy("own", "HTTPRoute/api#rule-1", by_header("x-user")));
    ground.await_enforced_of("authpolicy", "own");
    await_answer(&envoy, "/limited", "", 401);
    assert_eq!(envoy.get(PORT, HOST, "/limited", "x-user: alice\r\n"), Some(200));
    assert_eq!(envoy.get(PORT, HOST, "/other", ""), Some(200));
    assert!(server.asked().iter().all(|own| own["path"] != "/other"), "{:#?}", server.asked());

    // The Gateway's guards the rest, and the route's own replaces it.
    ground.put(&auth_policy("all", "Gateway/gw", by_header("x-admin")));
    ground.await_enforced_of("authpolicy", "all");
    await_answer(&envoy, "/other", "", 401);
    assert_eq!(envoy.get(PORT, HOST, "/other", "x-admin: root\r\n"), Some(200));
    await_answer(&envoy, "/limited", "x-user: alice\r\n", 200);
    assert_eq!(envoy.get(PORT, HOST, "/limited", "x-admin: root\r\n"), Some(401));

    a_route_that_is_asked_from_before_it_exists_lets_nobody_in(&ground, &envoy);

    // The death of Interlock changes nothing.
    ground.interlock.kill();
    assert_eq!(envoy.get(PORT, HOST, "/limited", ""), Some(401));
    assert_eq!(envoy.get(PORT, HOST, "/limited", "x-user: alice\r\n"), Some(200));
    ground.interlock.start();
    ground.interlock.await_ready();

    without_the_auth_server_guarded_routes_are_closed(&ground, &envoy, &mut server);

    // What the auth server has not taken in lets nobody in, and the policy says what is awaited.
    server.follow(false);
    ground.put(&auth_policy("new", "HTTPRoute/api#rule-2", by_header("x-user")));
    await_answer(&envoy, "/other", "x-user: alice\r\n", 403);
    wait_until("the policy says what is awaited", CAP, || {
        let policy = ground.admin.get("authpolicy", "new").ok_or("there is none")?;
        let enforced = condition(&policy, "Enforced");
        let said = enforced["message"].as_str().unwrap_or_default();
        if said.contains("[AuthConfig app/interlock-auth-") { Ok(()) } else { Err(format!("{enforced:#}")) }
    });
    server.follow(true);
    await_answer(&envoy, "/other", "x-user: alice\r\n", 200);
    ground.await_enforced_of("authpolicy", "new");

    what_people_do_to_an_auth_config_is_put_right(&ground, &envoy);

    // Limits know who sends a request.
    ground.put(&policy(
        "users",
        "HTTPRoute/api#rule-1",
        json!({"limits": {"user": limit(1, &[], &["auth.identity.userid"])}}),
    ));
    ground.await_enforced("users");
    await_answer(&envoy, "/limited", "x-user: carol\r\n", 429);
    assert_eq!(envoy.get(PORT, HOST, "/limited", "x-user: dave\r\n"), Some(200));
    await_answer(&envoy, "/limited", "x-user: dave\r\n", 429);

    // Without policies all is open, and nothing is left.
    ground.admin.kubectl(&["delete", "authpolicy", "own", "new"]).ok();
    await_answer(&envoy, "/other", "", 200);
    wait_until("no AuthConfig is left", CAP, || match names_of_configs(&ground) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

fn a_route_that_is_asked_from_before_it_exists_lets_nobody_in(ground: &Ground, envoy: &Arc<Envoy>) {
    let stop = Arc::new(AtomicBool::default());
    let (stopped, asking) = (stop.clone(), envoy.clone());
    let asked = std::thread::spawn(move || {
        let mut found: Vec<Option<u16>> = Vec::new();
        while !stopped.load(Ordering::SeqCst) {
            found.push(asking.get(PORT, "later.example.org", "/", ""));
        }
        found
    });
    ground.admin.apply(SECOND_ROUTE);
    wait_until("the new route is guarded by the Gateway's policy", CAP, || {
        match envoy.get(PORT, "later.example.org", "/", "x-admin: root\r\n") {
            Some(200) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    stop.store(true, Ordering::SeqCst);
    let found = asked.join().expect("it ends");
    let let_in = found.iter().filter(|own| **own == Some(200)).count();
    announce(&format!(
        "counted: of {} requests to a route from before it existed on, {let_in} were let in",
        found.len()
    ));
    assert_eq!(let_in, 0);
}

fn without_the_auth_server_guarded_routes_are_closed(
    ground: &Ground,
    envoy: &Envoy,
    server: &mut AuthServer,
) {
    ground.admin.kubectl(&["delete", "authpolicy", "all"]).ok();
    await_answer(envoy, "/other", "", 200);
    server.kill();
    await_answer(envoy, "/limited", "x-user: alice\r\n", 503);
    assert_eq!(envoy.get(PORT, HOST, "/other", ""), Some(200));
    server.restart();
    await_answer(envoy, "/limited", "x-user: alice\r\n", 200);
}

const CONFIGS: &str = "/apis/authorino.kuadrant.io/v1beta3/namespaces/app/authconfigs";

fn names_of_configs(ground: &Ground) -> Vec<String> {
    let all = ground.admin.read(CONFIGS).body["items"].as_array().cloned().unwrap_or_default();
    all.iter().map(|own| own["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn what_people_do_to_an_auth_config_is_put_right(ground: &Ground, envoy: &Envoy) {
    for name in names_of_configs(ground) {
        let anybody = json!({"spec": {"authentication": {"anybody": {"anonymous": {}}}}});
        ground.admin.merge_patch(&format!("{CONFIGS}/{name}"), &anybody).ok();
    }
    wait_until("the AuthConfigs are as they were", CAP, || {
        let all = ground.admin.read(CONFIGS).body["items"].as_array().cloned().unwrap_or_default();
        let wrong = all.iter().find(|own| !own["spec"]["authentication"]["anybody"].is_null());
        match wrong {
            None if all.len() == 2 => Ok(()),
            _ => Err(format!("{all:#?}")),
        }
    });
    await_answer(envoy, "/limited", "", 401);
}
