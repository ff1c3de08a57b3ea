//! The graph of routes and policies on the page, in a real browser.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::interlock::await_definitions;
use crate::support::{Client, Cluster, Interlock, shared, wait_until};

const CAP: Duration = Duration::from_secs(60);
const BOXES: &str = "[...document.querySelectorAll('#paths-picture g')]";

/// Definitions of the Gateway API, and of Kuadrant's limits.
fn define(cluster: &Cluster) -> Option<()> {
    let admin = cluster.admin();
    let of_gateway_api =
        ["gatewayclasses", "gateways", "httproutes"].map(|name| format!("gateway-api_{name}"));
    for name in of_gateway_api.into_iter().chain(["kuadrant_ratelimitpolicies".to_owned()]) {
        let file = shared::find(&format!("crds/{name}.yaml"))?;
        admin.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()]).ok();
    }
    await_definitions(&admin);
    Some(())
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    let version = match kind {
        "RateLimitPolicy" => "kuadrant.io/v1",
        _ => "gateway.networking.k8s.io/v1",
    };
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn listener(name: &str, hostname: &str) -> Value {
    json!({"name": name, "port": 80, "protocol": "HTTP", "hostname": hostname})
}

fn route(name: &str, hostname: &str, rules: usize) -> Value {
    let rules: Vec<Value> = (0..rules).map(|_| json!({"backendRefs": [{"name": "s", "port": 80}]})).collect();
    object(
        "HTTPRoute",
        name,
        &json!({"parentRefs": [{"name": "entry"}], "hostnames": [hostname], "rules": rules}),
    )
}

fn limit(name: &str, kind: &str, target: &str, block: &str) -> Value {
    let limits = json!({"all": {"rates": [{"limit": 5, "window": "10s"}]}});
    let target = json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": target});
    object("RateLimitPolicy", name, &json!({"targetRef": target, block: {"limits": limits}}))
}

fn list(items: impl IntoIterator<Item = Value>) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items.into_iter().collect::<Vec<_>>()}).to_string()
}

fn few() -> String {
    list([
        object("GatewayClass", "eg", &json!({"controllerName": "example.com/controller"})),
        object(
            "Gateway",
            "entry",
            &json!({"gatewayClassName": "eg", "listeners": [listener("a", "*.a.test"), listener("b", "*.b.test")]}),
        ),
        route("shop", "www.a.test", 1),
        route("blog", "www.b.test", 2),
        route("lost", "www.c.test", 1),
        limit("by-default", "Gateway", "entry", "defaults"),
        limit("of-shop", "HTTPRoute", "shop", "defaults"),
        limit("nowhere", "HTTPRoute", "absent", "defaults"),
    ])
}

fn names(browser: &mut Browser, filter: &str) -> Vec<String> {
    let names = browser.ask(&format!(
        "{BOXES}.filter(g => {filter}).map(g => g.getAttribute('aria-label').split(';')[0]).sort()"
    ));
    names.as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Clicks a box as a pointer does.
fn click(browser: &mut Browser, name: &str) {
    let wanted = json!(name);
    browser.ask(&format!(
        "{BOXES}.find(g => g.getAttribute('aria-label').split(';')[0] === {wanted}).dispatchEvent(new MouseEvent('click'))"
    ));
}

/// To the listener of the route, and to the other one.
fn with_the_keyboard(browser: &mut Browser, space: &str) {
    browser.press("ArrowLeft");
    browser.press("ArrowDown");
    browser.press("Enter");
    let focused = browser.ask("document.activeElement.getAttribute('aria-label').split(';')[0]");
    let other = ["a", "b"].map(|listener| json!(format!("Listener {space}/entry#{listener}")));
    assert!(other.contains(&focused), "{focused}");
    assert_eq!(browser.ask("document.activeElement.getAttribute('aria-pressed')"), "true");
    browser.press("Escape");
    assert_eq!(browser.ask("document.querySelectorAll('#paths .lit').length"), 0);
    let nodes = browser.accessible();
    assert!(
        nodes.iter().any(|node| node.starts_with(&format!("button: HTTPRoute {space}/shop"))),
        "{nodes:#?}"
    );
}

/// What is left out is counted.
fn a_thousand_boxes(browser: &mut Browser, user: &Client, space: &str) {
    user.kubectl_in(
        &["apply", "--server-side", "-f", "-"],
        &list((0..250).map(|number| route(&format!("r{number}"), "www.a.test", 3))),
    )
    .ok();
    browser.await_true(&format!("{BOXES}.length === 1000"));
    browser.await_true("document.getElementById('paths-note').innerText === 'the first 1000 of 1012'");
    click(browser, &format!("Listener {space}/entry#a"));
    let lit = browser.ask("document.querySelectorAll('#paths g.lit').length").as_u64().unwrap();
    assert!(lit > 900, "{lit}");
    let fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(browser.ask(fits), true);
    browser.screenshot("paths-thousand.png");
}

#[test]
fn a_route_lights_its_paths_and_the_policies_that_act_on_it() {
    let Some(mut browser) = Browser::start() else { return };
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let address = format!("http://127.0.0.1:{}/graph", process.ops_port());
    browser.resize(1280, 860);
    browser.open(&address);
    browser.await_true("document.getElementById('paths-section').hidden");
    if define(&cluster).is_none() {
        return;
    }
    let namespace = cluster.namespace("web");
    let user = cluster.admin().within(namespace.name());
    wait_until("all is applied", CAP, || {
        let out = user.kubectl_in(&["apply", "-f", "-"], &few());
        if out.code == 0 { Ok(()) } else { Err(out.to_string()) }
    });
    browser.await_true("!document.getElementById('paths-section').hidden");
    browser.ask("document.querySelector('#paths summary').click()");
    let space = namespace.name().to_owned();
    let named = |kind: &str, name: &str| format!("{kind} {space}/{name}");
    browser.await_true(&format!(
        "{BOXES}.length === 12 && document.getElementById('paths-picture').textContent.includes('of-shop')"
    ));

    // What carries nothing, and what has no target, says why.
    let lost = browser
        .ask(&format!("{BOXES}.find(g => g.textContent.includes('/lost')).getAttribute('aria-label')"));
    assert!(lost.as_str().unwrap().contains("no listener carries it"), "{lost}");
    let nowhere = browser
        .ask(&format!("{BOXES}.find(g => g.textContent.includes('nowhere')).getAttribute('aria-label')"));
    assert!(nowhere.as_str().unwrap().contains("was not found"), "{nowhere}");

    click(&mut browser, &named("HTTPRoute", "shop"));
    let mut shop = vec![
        "GatewayClass eg".to_owned(),
        named("Gateway", "entry"),
        named("HTTPRoute", "shop"),
        named("Listener", "entry#a"),
        named("Rule", "shop#rule-1"),
    ];
    shop.sort();
    assert_eq!(names(&mut browser, "g.classList.contains('lit')"), shop);
    let concerned =
        browser.ask("[...document.querySelectorAll('#paths .concerned')].map(t => t.textContent).join()");
    assert!(
        concerned.as_str().is_some_and(|text| text.contains("of-shop") && !text.contains(',')),
        "{concerned}"
    );
    let said = browser.ask("document.getElementById('paths-lit').innerText");
    for part in
        ["Policies that act:", "of-shop", &format!("interlock policies effective HTTPRoute/{space}/shop")]
    {
        assert!(said.as_str().unwrap().contains(part), "{part}: {said}");
    }
    browser.prefer("dark");
    browser.screenshot("paths-dark.png");
    browser.prefer("light");

    with_the_keyboard(&mut browser, &space);

    // It lives: a deleted policy lets the one above act.
    click(&mut browser, &named("HTTPRoute", "shop"));
    user.kubectl(&["delete", "ratelimitpolicy", "of-shop"]).ok();
    browser.await_true("document.getElementById('paths-lit').innerText.includes('by-default')");

    a_thousand_boxes(&mut browser, &user, &space);
    let elsewhere = browser
        .requests()
        .iter()
        .filter(|url| !url.starts_with("http://127.0.0.1:") && *url != "about:blank");
    assert_eq!(elsewhere.collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(browser.errors().is_empty(), "{:#?}", browser.errors());
}
