use rstest::rstest;
use serde_json::{Value, json};

use super::world::{EX, T, TC, data_plane, http_route, plane, proxy, read, served};
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::compatibility::ProducerConfiguration;
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::plan::{FlavorPlan, NoPlan, Question};
use crate::data_plane::flavor::routes::Inventory;

fn plan(gateway: &Gateway, to: Flavor, routes: &Inventory) -> Result<FlavorPlan, NoPlan> {
    FlavorPlan::make(&Question {
        subject: &gateway.subject,
        live: &gateway.spec,
        to,
        routes,
        configuration: ProducerConfiguration::Usual,
        group: None,
        outage: true,
        notes: &[],
    })
}

#[rstest]
#[case("kong:3.9", "traditional", EX, &["hop 1 of 2: traditional -> traditional_compatible, staged: allowed", "hop 2 of 2: traditional_compatible -> expressions, staged: allowed"])]
#[case("kong:3.6", "expressions", T, &["hop 1 of 2: expressions -> traditional_compatible, staged: allowed", "hop 2 of 2: traditional_compatible -> traditional, staged: allowed"])]
#[case("kong:3.2", "traditional", EX, &["hop 1 of 2: traditional -> traditional_compatible, staged: allowed", "hop 2 of 2: traditional_compatible -> expressions, staged: REFUSED"])]
#[case("kong:3.9", "traditional", TC, &["hop 1 of 1: traditional -> traditional_compatible, staged: allowed"])]
#[case("kong:3.9", "traditional", T, &[])]
fn hops_of(#[case] image: &str, #[case] from: &str, #[case] to: Flavor, #[case] wanted: &[&str]) {
    let text = plan(&plane(image, Some(from), true), to, &Inventory::Unseen).unwrap().to_string();
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("hop ")).collect();
    assert_eq!(found, wanted, "{text}");
}

#[test]
fn the_whole_text() {
    let search = http_route("kong", "search", json!({"queryParams": [{"name": "q", "value": "x"}]}));
    let routes = served(&[search]);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "kong", "name": "edge"},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [proxy("kong:3.9", Some("expressions"))]}}},
    });
    let staged = plan(&plane("kong:3.6", Some("traditional_compatible"), false), EX, &routes).unwrap();
    assert!(staged.works());
    insta::assert_snapshot!("staged", staged.to_string());
    let rolling = plan(&read(&deployment, &[]), T, &routes).unwrap();
    assert!(!rolling.works());
    insta::assert_snapshot!("rolling", rolling.to_string());
}

const FLAVOR: &str = "KONG_ROUTER_FLAVOR";
const FILE: &str = "KONG_ROUTER_FLAVOR_FILE";

fn env(entries: Value) -> Value {
    json!({"name": "proxy", "image": "kong:3.9", "env": entries})
}

#[rstest]
#[case(json!({"name": "proxy", "image": "kong:2.8"}), "DataPlane kong/edge runs a Kong before 3.0, which has no router flavors: upgrade it with KONG_ROUTER_FLAVOR=traditional first")]
#[case(env(json!([{"name": FLAVOR, "value": "x"}])), "DataPlane kong/edge runs with \"x\", which is no flavor: set KONG_ROUTER_FLAVOR on container \"proxy\" to what its pods report first")]
#[case::not_given(env(json!([{"name": FLAVOR, "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}])), "DataPlane kong/edge runs with unknown: it comes from ConfigMap kong/router key \"flavor\", which cannot be read here: with -f give ConfigMap kong/router with --objects; of a gateway of the cluster get the right to read it")]
#[case::no_proxy(json!({"name": "kong", "image": "kong:3.9"}), "DataPlane kong/edge runs with unknown: no container is called \"proxy\": call the container that runs Kong so, or give another gateway")]
#[case::both(env(json!([{"name": FLAVOR, "value": "expressions"}, {"name": FILE, "value": "/f"}])), "DataPlane kong/edge runs with none, as KONG_ROUTER_FLAVOR and KONG_ROUTER_FLAVOR_FILE are both set: take KONG_ROUTER_FLAVOR_FILE out, and set KONG_ROUTER_FLAVOR on container \"proxy\" to what its pods report first")]
#[case::file(env(json!([{"name": FILE, "value": "/f"}])), "DataPlane kong/edge runs with unknown: it comes from the file /f: take KONG_ROUTER_FLAVOR_FILE out, and set KONG_ROUTER_FLAVOR on container \"proxy\" to what its pods report first")]
#[case::command(json!({"name": "proxy", "image": "kong:3.9", "command": ["sh", "-c", "KONG_ROUTER_FLAVOR=x kong start"]}), "DataPlane kong/edge runs with unknown: the container's command line names it: take it out there, and set KONG_ROUTER_FLAVOR on container \"proxy\" to what its pods report first")]
fn nowhere_to_begin(#[case] container: Value, #[case] text: &str) {
    let error = plan(&read(&data_plane(container, false), &[]), EX, &Inventory::Unseen).unwrap_err();
    assert_eq!(error.to_string(), text);
}
