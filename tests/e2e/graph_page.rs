//! The live graph on the ops port, in a real browser, as a phone and a desk show it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::{Interlock, instances, wait_until};

const CAP: Duration = Duration::from_secs(60);
const PACKAGE: &str = include_str!("plans/operatorversion.yaml");
/// A step whose name would be markup, were it taken for that.
const ODD: &str = "<i id=injected>forbidden</i>";

fn instance(name: &str, parameters: &Value) -> String {
    json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": name},
        "spec": {"operatorVersion": {"name": "web-0.1.0"}, "parameters": parameters},
    })
    .to_string()
}

/// What the process tells of an Instance.
fn told(interlock: &Interlock, namespace: &str, name: &str) -> Option<Value> {
    let (_, body) = interlock.ops("/graph.json")?;
    let graph: Value = serde_json::from_str(&body).ok()?;
    let all = graph["instances"].as_array()?;
    all.iter().find(|found| found["namespace"] == namespace && found["name"] == name).cloned()
}

/// Text of the summary of an Instance.
fn summary(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('summary')].map(s => s.innerText).find(t => t.startsWith('{name} ')) || ''"
    )
}

#[test]
fn the_page_draws_plans_and_capabilities_on_a_phone_and_on_a_desk() {
    let Some(mut browser) = Browser::start() else { return };
    let (cluster, interlock) = Interlock::shared();
    let ns = cluster.namespace("page");
    let (user, name) = (ns.user("alice"), ns.name().to_owned());
    user.apply(
        &PACKAGE.replace("- name: forbidden\n          tasks", &format!("- name: {ODD}\n          tasks")),
    );
    user.apply(&instance("calm", &json!({})));
    instances::await_run(&user, "calm", "deploy", "");
    ns.forbid("secrets");
    user.apply(&instance("held", &json!({"FORBIDDEN": "true"})));
    wait_until("the process tells of both", CAP, || {
        let (calm, held) = (told(interlock, &name, "calm"), told(interlock, &name, "held"));
        let stalls = held.as_ref().is_some_and(|held| held["trouble"][0]["type"] == "Stalled");
        let rests = calm.as_ref().is_some_and(|calm| calm["plan"].is_null() && calm["well"] == true);
        if stalls && rests { Ok(()) } else { Err(format!("{calm:#?} {held:#?}")) }
    });

    let port = interlock.ops_port();
    browser.resize(390, 844);
    browser.prefer("light");
    browser.open(&format!("http://127.0.0.1:{port}/graph#{name}"));
    browser.await_true("document.querySelectorAll('summary').length === 2");
    browser.await_true(&format!("/deploy (ERROR|IN_PROGRESS)/.test({})", summary("held")));
    browser.await_true(&format!("({}).includes('at rest')", summary("calm")));
    let capabilities = browser.ask("document.getElementById('capabilities').innerText").to_string();
    assert!(capabilities.contains("instances") && capabilities.contains("Running"), "{capabilities}");
    // The Instance with work is open by itself; its odd step is text.
    browser.await_true("document.querySelector('details[open] svg') !== null");
    let open = browser.ask("document.querySelector('details[open]').innerText").to_string();
    assert!(open.contains(ODD) && open.contains("exceeded quota"), "{open}");
    assert_eq!(browser.ask("document.getElementById('injected')"), Value::Null);

    for (width, height, scheme, file) in [
        (390, 844, "light", "graph-phone.png"),
        (390, 844, "dark", "graph-phone-dark.png"),
        (1280, 800, "light", "graph-desk.png"),
    ] {
        browser.resize(width, height);
        browser.prefer(scheme);
        browser.ask("document.querySelectorAll('details:not([open]) summary').forEach(s => s.click())");
        browser.await_true("document.querySelectorAll('svg').length === 2");
        let wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
        browser.await_true(wide);
        let smallest = "Math.min(...[...document.querySelectorAll('body *')].filter(e => e.textContent.trim() \
                        && !['SCRIPT', 'STYLE'].includes(e.tagName)).map(e => parseFloat(getComputedStyle(e).fontSize)))";
        assert!(browser.ask(smallest).as_f64().unwrap() >= 14.0, "text below 14 px at {width}");
        browser.screenshot(file);
    }

    // It lives: what happens is seen without a reload.
    ns.allow("secrets");
    browser.await_true(&format!("({}).includes('at rest')", summary("held")));
    let elsewhere: Vec<_> = browser
        .requests()
        .iter()
        .filter(|url| !url.starts_with(&format!("http://127.0.0.1:{port}/")))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    assert!(browser.errors().is_empty(), "{:#?}", browser.errors());
}
