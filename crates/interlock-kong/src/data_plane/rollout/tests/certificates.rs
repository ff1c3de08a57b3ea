//! What the pods of either side serve, on the small cluster: the certificate of the admin API, and routes.

use interlock_core::api::meta;
use interlock_core::certificate::CertificateAnswer;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::scenarios::settle;
use super::world::{PassEnd, World, spec};

fn condition<'w>(world: &'w World, type_: &str) -> Option<&'w Value> {
    let all = world.get()["status"]["conditions"].as_array()?;
    all.iter().find(|condition| condition["type"] == type_)
}

fn denied() -> CertificateAnswer {
    CertificateAnswer::Denied("User \"u\" cannot get resource \"secrets\"".to_owned())
}

/// A DataPlane whose pods do not start.
fn starting(answer: CertificateAnswer) -> World {
    let mut world = World::with(spec("kong:3.8"));
    world.certificate = answer;
    world.mounts_since = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    world
}

#[test]
fn without_the_right_a_missing_secret_is_told_with_both_remedies() {
    let mut world = starting(denied());
    let ready = condition(&world, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(ready.contains("dataplane-edge-certificate"), "{ready}");
    assert_eq!(condition(&world, "Stalled"), None, "its pods may be starting");
    world.wait(30);
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    let stalled = condition(&world, "Stalled").expect("Stalled");
    assert_eq!(stalled["reason"], "MissingRight");
    let message = stalled["message"].as_str().unwrap();
    for said in
        ["dataplane-edge-certificate", "cannot get resource", "--dataplane-certificates", "create the Secret"]
    {
        assert!(message.contains(said), "{message}");
    }
    // It was granted.
    world.certificate = CertificateAnswer::InPlace(Timestamp::MAX);
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    assert_eq!(condition(&world, "Stalled"), None);
}

/// Pods that run have mounted it: it is there, whether Interlock made it or not.
#[test]
fn without_the_right_a_data_plane_whose_pods_run_is_not_stalled() {
    let mut world = starting(denied());
    world.mounts_since = None;
    world.settle_deployments();
    world.wait(300);
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    assert_eq!(
        (condition(&world, "Stalled"), &condition(&world, "Ready").unwrap()["status"]),
        (None, &json!("True"))
    );
}

#[test]
fn a_template_with_a_certificate_of_its_own_asks_for_none() {
    let mut own = spec("kong:3.8");
    own["deployment"]["podTemplateSpec"]["spec"]["volumes"] =
        json!([{"name": "cluster-certificate", "secret": {"secretName": "mine"}}]);
    let mut world = World::with(own);
    world.certificate = CertificateAnswer::NoAuthority("it would be told".to_owned());
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    assert_eq!(condition(&world, "Stalled"), None);
}

#[test]
fn a_ca_that_cannot_sign_is_told() {
    let world = starting(CertificateAnswer::NoAuthority("Secret s/ca is no CA: delete it".to_owned()));
    let stalled = condition(&world, "Stalled").expect("Stalled");
    assert_eq!(stalled["reason"], "InvalidCertificateAuthority");
    assert_eq!(stalled["message"], "Secret s/ca is no CA: delete it");
}

/// Where the certificate is ours, the pods of a preview are asked which flavor they run with.
#[test]
fn a_preview_of_another_flavor_is_not_promoted() {
    let mut world = starting(CertificateAnswer::InPlace(Timestamp::MAX));
    world.mounts_since = None;
    for spec in [spec("kong:3.8"), spec("kong:3.9")] {
        world.edit(spec);
        world.settle_deployments();
        world.reconcile(usize::MAX);
        world.settle_deployments();
        world.flavor = "expressions";
        world.reconcile(usize::MAX);
    }
    assert_eq!(world.rolled_out(), "Progressing");
    let said = world.get().pointer("/status/rollout/conditions/0/message").unwrap().as_str().unwrap();
    assert!(said.contains("runs with router flavor expressions"), "{said}");
    // Of a Secret that users made, its CA is not known: nothing is asked.
    world.certificate = CertificateAnswer::OfAnother(Timestamp::MAX);
    world.reconcile(usize::MAX);
    assert_eq!(world.rolled_out(), "AwaitingPromotion");
    world.certificate = CertificateAnswer::InPlace(Timestamp::MAX);
    world.flavor = "traditional_compatible";
    world.reconcile(usize::MAX);
    assert_eq!(world.rolled_out(), "AwaitingPromotion");
}

fn with_own_certificate() -> Value {
    let mut own = spec("kong:3.9");
    own["deployment"]["podTemplateSpec"]["spec"]["volumes"] =
        json!([{"name": "cluster-certificate", "secret": {"secretName": "mine"}}]);
    own
}

fn with_variable(name: &str, value: &str) -> Value {
    let mut own = spec("kong:3.9");
    let env = json!([{"name": name, "value": value}]);
    own["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"] = env;
    own
}

/// Where the admin API is not asked, the condition says why, and what to do.
#[rstest]
#[case::asked(CertificateAnswer::InPlace(Timestamp::MAX), spec("kong:3.9"), &[])]
#[case::no_right(denied(), spec("kong:3.9"), &["may not make Secret dataplane-edge-certificate", "--dataplane-certificates"])]
#[case::of_a_user(CertificateAnswer::OfAnother(Timestamp::MAX), spec("kong:3.9"), &["is not of Interlock's CA: delete it"])]
#[case::own(CertificateAnswer::InPlace(Timestamp::MAX), with_own_certificate(), &["a certificate of its own: take the volume"])]
#[case::off(
    CertificateAnswer::InPlace(Timestamp::MAX),
    with_variable("KONG_ADMIN_LISTEN", "off"),
    &["KONG_ADMIN_LISTEN of container proxy", "leave it out"]
)]
#[case::unknown(
    CertificateAnswer::InPlace(Timestamp::MAX),
    with_variable("KONG_ROUTER_FLAVOR_FILE", "/flavor"),
    &["does not tell it: set KONG_ROUTER_FLAVOR"]
)]
fn what_is_not_asked_is_told_with_its_remedy(
    #[case] answer: CertificateAnswer,
    #[case] next: Value,
    #[case] said: &[&str],
) {
    let mut world = World::with(spec("kong:3.8"));
    world.certificate = answer;
    settle(&mut world);
    world.edit(next);
    settle(&mut world);
    assert_eq!(world.rolled_out(), "AwaitingPromotion");
    let message = world.get().pointer("/status/rollout/conditions/0/message").unwrap().as_str().unwrap();
    assert!(
        said.iter().all(|part| message.contains(part)) && message.is_empty() == said.is_empty(),
        "{message}"
    );
}

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
