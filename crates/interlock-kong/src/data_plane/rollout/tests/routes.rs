//! Routes of a preview and of the live side, on the small cluster.

use interlock_core::api::meta;
use interlock_core::certificate::CertificateAnswer;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::scenarios::settle;
use super::world::{World, spec};

const TC: &str = "traditional_compatible";

fn with_flavor(image: &str, flavor: &str) -> Value {
    let mut spec = spec(image);
    let env = json!([{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]);
    spec["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"] = env;
    spec
}

/// From a spec that is live to one that is staged, with pods that hold these routes.
fn staged(live: Value, next: Value, flavor: &'static str, routes: [&'static [&'static str]; 2]) -> World {
    let mut world = World::with(live);
    world.certificate = CertificateAnswer::InPlace(Timestamp::MAX);
    settle(&mut world);
    world.edit(next);
    (world.flavor, world.routes) = (flavor, routes);
    settle(&mut world);
    world
}

fn said(world: &World) -> &str {
    world.get().pointer("/status/rollout/conditions/0/message").and_then(Value::as_str).unwrap_or_default()
}

#[rstest]
#[case::same(&["a", "b"], &["b", "a"], None)]
#[case::none(&[], &[], None)]
#[case::lacks(&["a", "b"], &["a"], Some("it lacks 1 route of the 2 of live pod dataplane-edge-blue-kong39-0: b"))]
#[case::lacks_all(&["a", "b"], &[], Some("it lacks 2 routes of the 2 of live pod dataplane-edge-blue-kong39-0: a, b"))]
#[case::live_has_none(&[], &["a"], Some("it has 1 route beside the 0 of live pod dataplane-edge-blue-kong39-0: a"))]
fn across_dialects_a_preview_needs_the_routes_of_the_live_side(
    #[case] live: &'static [&'static str],
    #[case] preview: &'static [&'static str],
    #[case] expected: Option<&str>,
    #[values((TC, "expressions"), ("expressions", TC))] hop: (&'static str, &'static str),
) {
    let mut world =
        staged(with_flavor("kong:3.9", hop.0), with_flavor("kong:3.9", hop.1), hop.1, [live, preview]);
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    match expected {
        None => assert_eq!(world.rolled_out(), "PromotionDone", "{}", said(&world)),
        Some(expected) => {
            assert_eq!(world.rolled_out(), "Progressing");
            assert!(said(&world).contains(expected), "{}", said(&world));
            // It goes on when the preview holds what the live side does.
            world.routes = [live, live];
            settle(&mut world);
            assert_eq!(world.rolled_out(), "PromotionDone", "{}", said(&world));
        }
    }
}

#[test]
fn within_a_dialect_no_routes_are_compared() {
    let world = staged(
        with_flavor("kong:3.9", "traditional"),
        with_flavor("kong:3.9", TC),
        TC,
        [&["a", "b"], &["a"]],
    );
    assert_eq!(world.rolled_out(), "AwaitingPromotion");
}

/// Without a certificate nothing of the admin API is asked.
#[test]
fn without_a_certificate_no_routes_are_compared() {
    let mut world = World::with(with_flavor("kong:3.9", TC));
    settle(&mut world);
    world.edit(with_flavor("kong:3.9", "expressions"));
    world.routes = [&["a"], &[]];
    settle(&mut world);
    assert_eq!(world.rolled_out(), "AwaitingPromotion");
}
