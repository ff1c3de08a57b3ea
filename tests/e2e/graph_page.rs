//! The page on the ops port, in a real browser, as a phone and a desk show it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::interlock::{await_definitions, interlock};
use crate::support::{Client, Cluster, Interlock, instances, wait_until};

const CAP: Duration = Duration::from_secs(60);
const PACKAGE: &str = include_str!("plans/operatorversion.yaml");
/// A package whose last step waits for an address that nobody gives.
const WAITS: &str = include_str!("graph_page/search.yaml");
/// The name of a step that would be markup, were it taken for that, and would turn round what follows.
const ODD: &str = "<i id=injected>\u{202e}forbidden</i>";
const SHOWN: &str = "<i id=injected>\\u202eforbidden</i>";
/// The picture of the README.
const PICTURE: &str = "docs/images/page.png";
const PICTURE_LIMIT: usize = 200_000;

fn instance(name: &str, version: &str, parameters: &Value) -> String {
    json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": name},
        "spec": {"operatorVersion": {"name": version}, "parameters": parameters},
    })
    .to_string()
}

fn page(interlock: &Interlock) -> Result<Value, String> {
    let (_, body) = interlock.ops("/graph.json").ok_or("the port does not answer")?;
    serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))
}

/// The row of an object in a list of the page.
fn row<'a>(page: &'a Value, list: &str, name: &str) -> Option<&'a Value> {
    page[list]["shown"].as_array()?.iter().find(|row| row["name"] == name)
}

/// A namespace with a fixed name, as the picture shows it.
fn namespace(cluster: &Cluster, name: &str) -> Client {
    let admin = cluster.admin();
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    admin.post("/api/v1/namespaces", &object).ok();
    wait_until("the namespace has its service account", CAP, || {
        let answer = admin.read(&format!("/api/v1/namespaces/{name}/serviceaccounts/default"));
        if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
    });
    admin.within(name)
}

fn data_plane(flavor: &str) -> String {
    let staged = include_str!("../../examples/gateway/staged.yaml").replace("name: plane", "name: edge");
    staged.replace("value: traditional", &format!("value: {flavor}"))
}

/// One Instance at rest, one that only a person can help, one that runs, and two gateways.
fn furnish(cluster: &Cluster, interlock_process: &Interlock) {
    let definitions = interlock(&cluster.admin(), &["render", "kong-crds"], "").ok();
    cluster.admin().kubectl_in(&["apply", "--server-side", "-f", "-"], &definitions).ok();
    await_definitions(&cluster.admin());
    let (shop, kong) = (namespace(cluster, "shop"), namespace(cluster, "kong"));
    wait_until("DataPlanes are watched", CAP, || {
        let page = page(interlock_process)?;
        let capabilities = page["capabilities"].as_array().into_iter().flatten();
        let mut kinds =
            capabilities.flat_map(|capability| capability["kinds"].as_array().into_iter().flatten());
        let synced = kinds.any(|kind| {
            kind["name"].as_str().is_some_and(|name| name.starts_with("dataplanes"))
                && kind["watch_state"] == "synced"
        });
        if synced { Ok(()) } else { Err(page["capabilities"].to_string()) }
    });
    kong.apply(&data_plane("traditional"));
    kong.apply(
        include_str!("../../examples/gateway/deployment.yaml")
            .replace("name: edge\n", "name: legacy\n")
            .as_str(),
    );
    let ready = json!({"status": {"replicas": 3, "readyReplicas": 3, "selector": "7f9d0c4e-1111-4222-8333-444455556666"}});
    let rolled_out = json!({
        "type": "RolledOut", "status": "False", "reason": "AwaitingPromotion", "message": "", "observedGeneration": 2,
        "lastTransitionTime": format!("{:.0}", jiff::Timestamp::now()),
    });
    kong.merge_patch(
        "/apis/gateway-operator.konghq.com/v1beta1/namespaces/kong/dataplanes/edge/status",
        &ready,
    )
    .ok();
    // Kong's operator has named the live pods: from here on a change waits for a promotion.
    kong.apply(&data_plane("traditional_compatible"));
    let path = "/apis/gateway-operator.konghq.com/v1beta1/namespaces/kong/dataplanes/edge/status";
    kong.merge_patch(path, &json!({"status": {"rollout": {"conditions": [rolled_out]}}})).ok();
    shop.apply(PACKAGE);
    shop.apply(WAITS);
    shop.apply(&instance("catalog", "web-0.1.0", &json!({})));
    instances::await_run(&shop, "catalog", "deploy", "");
    forbid_secrets(&shop);
    shop.apply(&instance("payments", "web-0.1.0", &json!({"FORBIDDEN": "true"})));
    shop.apply(&instance("search", "search-2.3.0", &json!({})));
    wait_until("the process tells of all", CAP, || {
        let page = page(interlock_process)?;
        let stalls = row(&page, "trouble", "payments").is_some_and(|row| row["reason"] == "QuotaExceeded");
        let runs = row(&page, "plans", "search").is_some_and(|row| row["done"] == 2 && row["steps"] == 3);
        let staged = row(&page, "gateways", "edge")
            .is_some_and(|row| row["staged"] == true && row["rollout"]["phase"] == "AwaitingPromotion");
        let rolled_out = row(&page, "gateways", "legacy").is_some_and(|row| row["ready"] == 3);
        if stalls && runs && staged && rolled_out { Ok(()) } else { Err(format!("{page:#}")) }
    });
}

/// A quota under which no Secret can be made, which holds a plan at a step.
fn forbid_secrets(user: &Client) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "no-secrets"}, "spec": {"hard": {"count/secrets": "0"}},
    });
    user.apply(&quota.to_string());
    wait_until("the quota counts", CAP, || {
        let found = user.get("resourcequota", "no-secrets").ok_or("no quota")?;
        if found["status"]["hard"].is_null() { Err(format!("{found:#}")) } else { Ok(()) }
    });
}

/// The page fits its window, and can be read.
fn fits(browser: &mut Browser, width: u32) {
    let fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(browser.ask(fits), true, "it scrolls sideways at {width} px");
    let smallest = "Math.min(...[...document.querySelectorAll('body *')].filter(e => e.textContent.trim() \
                    && !['SCRIPT', 'STYLE'].includes(e.tagName)).map(e => parseFloat(getComputedStyle(e).fontSize)))";
    assert!(browser.ask(smallest).as_f64().unwrap() >= 14.0, "text below 14 px at {width}");
    let outside = "[...document.querySelectorAll('main *')].filter(e => { const box = e.getBoundingClientRect(); \
                   return box.width && box.right > document.documentElement.clientWidth + 0.5; }).map(e => e.outerHTML).join()";
    assert_eq!(browser.ask(outside), "", "something is cut off at {width}");
}

fn text(browser: &mut Browser, id: &str) -> String {
    browser.ask(&format!("document.getElementById('{id}').innerText")).as_str().unwrap_or_default().to_owned()
}

fn trouble_comes_first(browser: &mut Browser) {
    let order = browser.ask(
        "[...document.querySelectorAll('h2')].filter(h => h.offsetParent).map(h => h.textContent).join()",
    );
    assert_eq!(order, "Trouble,Running plans,Gateways,Instances,OperatorVersions,Capabilities");
    let trouble = text(browser, "trouble");
    for part in [
        "stalled",
        "shop/payments",
        "QuotaExceeded",
        "for ",
        "exceeded quota",
        "Raise the quota",
        "kubectl get resourcequotas -n shop",
    ] {
        assert!(trouble.contains(part), "{part} is not in\n{trouble}");
    }
    let plans = text(browser, "plans");
    for part in ["shop/search", "deploy", "2 of 3 steps", "network / address"] {
        assert!(plans.contains(part), "{part} is not in\n{plans}");
    }
    let gateways = text(browser, "gateways");
    for part in [
        "kong/edge",
        "DataPlane",
        "traditional → traditional_compatible (staged)",
        "3 of 3 pods",
        "AwaitingPromotion",
        "gate promotion waits for: a promotion",
        "interlock rollout promote edge -n kong",
        "kong/legacy",
        "Deployment",
    ] {
        assert!(gateways.contains(part), "{part} is not in\n{gateways}");
    }
    let instances = text(browser, "instances");
    assert!(instances.contains("shop/catalog") && instances.contains("at rest"), "{instances}");
    let versions = text(browser, "versions");
    assert!(versions.contains("shop/web-0.1.0") && versions.contains("2 Instances"), "{versions}");
    let without = "[...document.querySelectorAll('main time')].filter(t => !/^(for )?\\d+[smhd]/.test(t.textContent)).length";
    assert_eq!(browser.ask(without), 0, "an age is missing");
    for id in ["trouble", "plans", "gateways", "instances", "versions"] {
        let ages = browser.ask(&format!("document.querySelectorAll('#{id} time').length"));
        assert!(ages.as_u64() >= Some(1), "no age in {id}");
    }
}

fn capabilities_are_one_row(browser: &mut Browser) {
    browser.await_true("document.getElementById('capabilities').innerText.includes('5 of 5 run')");
    let row = text(browser, "capabilities");
    assert!(row.contains("kinds are not installed"), "{row}");
    assert!(row.contains("dataplanes: disabled"), "{row}");
    assert_eq!(browser.ask("document.getElementById('capabilities').open"), false);
    assert!(
        browser.ask("document.getElementById('capabilities').offsetHeight").as_f64().unwrap() < 64.0,
        "{row}"
    );
}

/// With the keyboard alone, and the focus stays while the page goes on.
fn a_command_is_copied(browser: &mut Browser) {
    browser.ask("document.querySelector('#trouble button').focus()");
    browser.press("Enter");
    browser.await_true("document.querySelector('#trouble button').textContent === 'Copied'");
    let copied = browser.ask("navigator.clipboard.readText()");
    assert_eq!(copied, browser.ask("document.querySelector('#trouble code').textContent"));
    assert!(copied.as_str().is_some_and(|text| text.starts_with("kubectl get ")), "{copied}");
    browser.await_true("document.querySelector('#trouble button').textContent === 'Copy'");
    browser.await_true("document.activeElement === document.querySelector('#trouble button')");
    let label = browser.ask("document.activeElement.getAttribute('aria-label')").to_string();
    assert!(label.contains("Copy the command for"), "{label}");
}

fn a_screen_reader_finds_its_way(browser: &mut Browser) {
    let nodes = browser.accessible();
    for wanted in [
        "heading: Trouble",
        "table: Running plans",
        "table: Gateways",
        "columnheader: Progress",
        "cell: ",
        "listitem: ",
        "searchbox: Filter Instances",
        "navigation: Sections",
    ] {
        assert!(nodes.iter().any(|node| node.starts_with(wanted)), "{wanted} is not in {nodes:#?}");
    }
    let cell = |node: &String| node.starts_with("cell: ") && node.ends_with("2 of 3 steps");
    assert!(nodes.iter().any(cell), "{nodes:#?}");
}

/// Names of a package that are meant to do harm are shown as what they are.
fn odd_names_are_text(cluster: &Cluster, browser: &mut Browser) {
    let shop = cluster.admin().within("shop");
    let step = format!("- name: {}\n          tasks", json!(format!("{ODD}{}", "x".repeat(400))));
    let package = PACKAGE.replace("web", "odd").replace("- name: forbidden\n          tasks", &step);
    shop.apply(&package);
    shop.apply(&instance("odd", "odd-0.1.0", &json!({"FORBIDDEN": "true"})));
    browser.await_true(&format!("document.getElementById('plans').innerText.includes({})", json!(SHOWN)));
    browser.await_true("document.getElementById('trouble').innerText.includes('shop/odd')");
    assert_eq!(browser.ask("document.getElementById('injected')"), Value::Null);
    let longest = "Math.max(...[...document.querySelectorAll('#plans bdi')].map(b => b.textContent.length))";
    assert!(browser.ask(longest).as_f64().unwrap() < 200.0);
}

fn look_at_all_widths(browser: &mut Browser) {
    for (width, height, scheme, file) in [
        (390, 844, "light", "page-phone.png"),
        (390, 844, "dark", "page-phone-dark.png"),
        (1280, 860, "dark", "page-desk-dark.png"),
        (1280, 860, "light", "page-desk.png"),
    ] {
        browser.resize(width, height);
        browser.prefer(scheme);
        browser.await_true(&format!("innerWidth === {width}"));
        fits(browser, width);
        browser.screenshot(file);
    }
}

/// With INTERLOCK_BLESS=1 the picture of the README is made anew.
fn the_picture_of_the_readme(browser: &mut Browser) {
    let (path, picture) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE), browser.picture());
    if std::env::var_os("INTERLOCK_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &picture).unwrap();
    }
    assert!(picture.len() < PICTURE_LIMIT, "{} bytes", picture.len());
    let kept = std::fs::read(&path).expect("the picture; INTERLOCK_BLESS=1 makes it");
    assert!(kept.len() < PICTURE_LIMIT && kept.starts_with(b"\x89PNG"), "{PICTURE}");
}

#[test]
fn the_page_shows_trouble_first_on_a_phone_and_on_a_desk() {
    let Some(mut browser) = Browser::start() else { return };
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let port = process.ops_port();
    let address = format!("http://127.0.0.1:{port}/graph");
    browser.resize(1280, 860);
    browser.prefer("light");
    browser.open(&address);
    // An empty cluster says what to do.
    browser
        .await_true("document.getElementById('instances').innerText.includes('interlock package install')");
    browser.screenshot("page-empty.png");
    fits(&mut browser, 1280);

    furnish(&cluster, &process);
    // The page asks every few seconds: what the process tells of the last Instance shows all the rest.
    browser.await_true("document.getElementById('plans').innerText.includes('network / address')");
    browser.await_true("document.getElementById('trouble').innerText.includes('shop/payments')");
    browser.await_true("document.getElementById('gateways').innerText.includes('AwaitingPromotion')");
    browser.await_true("document.getElementById('gateways').innerText.includes('3 of 3 pods')");
    the_picture_of_the_readme(&mut browser);
    trouble_comes_first(&mut browser);
    capabilities_are_one_row(&mut browser);
    a_screen_reader_finds_its_way(&mut browser);
    a_command_is_copied(&mut browser);
    look_at_all_widths(&mut browser);

    // The filter, and what an Instance made.
    browser.open(&format!("{address}#catalog"));
    browser.await_true("document.querySelectorAll('#instances details').length === 1");
    browser.ask("document.querySelector('#instances summary').click()");
    browser.await_true("document.querySelector('#instances details[open] svg') !== null");
    browser.screenshot("page-instance.png");
    browser.open(&address);
    browser.await_true("document.querySelectorAll('#instances details').length > 1");

    odd_names_are_text(&cluster, &mut browser);
    for width in [390, 1280] {
        browser.resize(width, 860);
        browser.await_true(&format!("innerWidth === {width}"));
        fits(&mut browser, width);
        browser.screenshot(&format!("page-odd-{width}.png"));
    }
    // The roles stay where a table becomes cards.
    browser.resize(390, 844);
    a_screen_reader_finds_its_way(&mut browser);

    // It lives: what happens is seen without a reload.
    cluster.admin().within("shop").kubectl(&["delete", "resourcequota", "no-secrets"]).ok();
    browser.await_true("!document.getElementById('trouble').innerText.includes('shop/payments')");
    let elsewhere: Vec<_> = browser
        .requests()
        .iter()
        .filter(|url| !url.starts_with(&format!("http://127.0.0.1:{port}/")) && *url != "about:blank")
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    assert!(browser.errors().is_empty(), "{:#?}", browser.errors());
}
