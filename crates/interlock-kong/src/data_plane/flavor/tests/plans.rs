//! Plans, and properties of every gateway and change. `tests/hostile` compares the resolver with a second reading.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use super::world::{Case, EX, T, TC, data_plane, http_route, plane, proxy, read, served};
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any environment and any change of it can be validated.
    #[test]
    fn anything_can_be_judged(
        values in prop::collection::vec("\\PC{0,30}", 4),
        images in prop::collection::vec("\\PC{0,12}|kong:[0-9.v-]{0,8}", 2),
        words in prop::collection::vec("\\PC{0,12}|-c|kong|/etc[a-z/.]{0,9}", 3),
    ) {
        let container = |image: &str, value: &str| json!({
            "name": "proxy", "image": image, "args": words,
            "env": [{"name": "A", "value": values[2]}, {"name": FLAVOR, "value": value}],
            "envFrom": [{"prefix": values[3], "secretRef": {"name": "s"}}],
            "volumeMounts": [{"mountPath": words[0]}],
        });
        let old = read(&data_plane(container(&images[0], &values[0]), true), &[]);
        let new = read(&data_plane(container(&images[1], &values[1]), false), &[]);
        let _ = Case::change(&old, &new).judge();
        prop_assert_eq!(Case::change(&new, &new).judge(), Default::default());
    }
}

fn any_plane() -> impl Strategy<Value = (String, Option<&'static str>, bool)> {
    let flavors = [None, Some("traditional"), Some("traditional_compatible"), Some("expressions"), Some("x")];
    let images =
        ["kong:2.8", "kong:3.0.0", "kong:3.1", "kong:3.3", "kong:3.4", "kong:3.6", "kong:3.9", "kong"];
    (prop::sample::select(images.to_vec()), prop::sample::select(flavors.to_vec()), any::<bool>())
        .prop_map(|(image, flavor, staged)| (image.to_owned(), flavor, staged))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_holds_for_every_change(live in any_plane(), stored in any_plane(), new in any_plane()) {
        let make = |(image, flavor, staged): &(String, Option<&str>, bool)| plane(image, *flavor, *staged);
        let (live, stored, new) = (make(&live), make(&stored), make(&new));
        let case = |new| Case { stored: Some(stored.clone()), ..Case::change(&live, new) };

        // The live spec can always be restored.
        if live.spec.reading.effective.known().is_some() {
            prop_assert_eq!(case(&live).judge().denied, vec![]);
        }
        // An invalid stored object stays editable: existing problems are not repeated.
        let kept = Case::change(&stored, &stored).judge();
        prop_assert_eq!(kept, Default::default());
        // Every sentence is one line.
        for finding in case(&new).judge().denied {
            prop_assert!(!finding.text.contains('\n'));
        }
    }
}
