//! Router flavors that come from a ConfigMap, on the small cluster.

use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::scenarios::{BLUE, GREEN, replicas, settle};
use super::world::{PassEnd, World, spec};

const TC: &str = "traditional_compatible";
const EX: &str = "expressions";

fn sourced(image: &str) -> Value {
    let mut spec = spec(image);
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let env = json!([
        {"name": "KONG_ROUTER_FLAVOR", "valueFrom": from},
        {"name": "SEEN", "value": "$(KONG_ROUTER_FLAVOR)"},
    ]);
    spec["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"] = env;
    spec
}

fn imported(image: &str) -> Value {
    let mut spec = spec(image);
    let from = json!([{"prefix": "KONG_ROUTER_", "configMapRef": {"name": "router"}}]);
    spec["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["envFrom"] = from;
    spec
}

fn in_place(mut spec: Value) -> Value {
    spec["deployment"].as_object_mut().unwrap().remove("rollout");
    spec
}

fn running(spec: Value, flavor: Option<&str>) -> World {
    let mut world = World::with(spec);
    world.give_flavor(flavor);
    settle(&mut world);
    world
}

/// The entry of the variable in the pods of a Deployment.
fn entry(world: &World, deployment: &str) -> Value {
    let found = world.child("Deployment", deployment).expect("the Deployment");
    let env = found["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    env.iter().find(|entry| entry["name"] == "KONG_ROUTER_FLAVOR").cloned().unwrap_or_default()
}

fn literal(flavor: &str) -> Value {
    json!({"name": "KONG_ROUTER_FLAVOR", "value": flavor})
}

fn staged(world: &World) -> Option<&str> {
    let all = world.get()["status"]["conditions"].as_array()?;
    let found = all.iter().find(|condition| condition["type"] == meta::condition::ROUTER_FLAVOR_STAGED)?;
    found["message"].as_str()
}

#[rstest]
#[case::a_variable(sourced("kong:3.9"))]
#[case::all_of_a_map(imported("kong:3.9"))]
fn a_changed_source_is_staged_and_promoted(#[case] spec: Value) {
    let mut world = running(spec, Some(TC));
    // With a key that says the default, as with any other.
    assert_eq!((entry(&world, BLUE), &world.stamp()["flavor"]), (literal(TC), &json!(TC)));
    let live = world.child("Deployment", BLUE).unwrap()["spec"].clone();

    world.give_flavor(Some(EX));
    settle(&mut world);
    assert_eq!(world.rolled_out(), "AwaitingPromotion");
    assert_eq!(world.child("Deployment", BLUE).unwrap()["spec"], live, "no live pod starts again");
    assert_eq!((entry(&world, GREEN), replicas(&world, GREEN)), (literal(EX), 1));
    assert_eq!(
        staged(&world),
        Some("router flavor traditional_compatible -> expressions, of ConfigMap kong/router")
    );
    assert_eq!(world.stamp()["flavor"], TC);
    // What is made again meanwhile is as it was.
    world.delete("Deployment", BLUE);
    settle(&mut world);
    assert_eq!(entry(&world, BLUE), literal(TC));

    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!(world.rolled_out(), "PromotionDone");
    assert_eq!((&world.stamp()["flavor"], staged(&world)), (&json!(EX), None));
    assert_eq!(
        (entry(&world, GREEN), entry(&world, BLUE)),
        (literal(EX), literal(TC)),
        "it can still go back"
    );
    let revisions = world.objects.values().filter(|object| object["kind"] == "ControllerRevision");
    let flavors: Vec<&Value> =
        revisions.map(|revision| &revision["metadata"]["annotations"][meta::ROUTER_FLAVOR]).collect();
    assert_eq!(flavors, [EX], "the spec is the same");
}

#[test]
fn a_source_that_is_set_back_stages_nothing() {
    let mut world = running(sourced("kong:3.9"), Some(TC));
    world.give_flavor(Some(EX));
    settle(&mut world);
    world.give_flavor(Some(TC));
    settle(&mut world);
    assert_eq!((world.rolled_out(), replicas(&world, GREEN), staged(&world)), ("WaitingForChange", 0, None));
}

/// Neither do the live pods need it, nor is anything staged that could not start.
#[rstest]
fn a_source_that_is_gone_or_no_flavor_leaves_the_live_side(
    #[values(None, Some("atc"))] flavor: Option<&str>,
) {
    let mut world = running(sourced("kong:3.9"), Some(TC));
    world.give_flavor(flavor);
    settle(&mut world);
    assert_eq!((world.rolled_out(), entry(&world, BLUE)), ("WaitingForChange", literal(TC)));
    world.delete("Deployment", BLUE);
    settle(&mut world);
    assert_eq!(entry(&world, BLUE), literal(TC));
}

#[test]
fn spec_and_source_are_staged_together() {
    let mut world = running(sourced("kong:3.8"), Some(TC));
    world.give_flavor(Some(EX));
    world.edit(sourced("kong:3.9"));
    settle(&mut world);
    assert_eq!((entry(&world, BLUE), entry(&world, GREEN)), (literal(TC), literal(EX)));
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!((world.rolled_out(), &world.stamp()["flavor"]), ("PromotionDone", &json!(EX)));
    assert_eq!(entry(&world, GREEN), literal(EX));
}

/// Between any two writes of a promotion, each side keeps its flavor.
#[test]
fn a_promotion_of_a_flavor_survives_the_death_of_the_process() {
    let mut killed = 0;
    for writes in 0.. {
        let mut world = running(sourced("kong:3.9"), Some(TC));
        world.give_flavor(Some(EX));
        settle(&mut world);
        world.annotate(meta::PROMOTE_WHEN_READY, "true");
        let end = world.reconcile(writes);
        assert_eq!((entry(&world, BLUE), entry(&world, GREEN)), (literal(TC), literal(EX)), "{writes}");
        settle(&mut world);
        assert_eq!((world.rolled_out(), &world.stamp()["flavor"]), ("PromotionDone", &json!(EX)), "{writes}");
        assert_eq!((entry(&world, BLUE), entry(&world, GREEN)), (literal(TC), literal(EX)), "{writes}");
        match end {
            PassEnd::Killed => killed += 1,
            PassEnd::Waits => break,
        }
    }
    assert!(killed > 2, "{killed}");
}

#[test]
fn without_blue_green_a_changed_source_is_rolled_out() {
    let mut world = running(in_place(sourced("kong:3.9")), Some(TC));
    assert_eq!(entry(&world, BLUE), literal(TC));
    world.give_flavor(Some(EX));
    settle(&mut world);
    assert_eq!(
        (entry(&world, BLUE), &world.stamp()["flavor"], staged(&world)),
        (literal(EX), &json!(EX), None)
    );
}

/// What may not be read is left to the kubelet.
#[test]
fn a_source_that_may_not_be_read_stays_a_reference() {
    let mut world = World::with(sourced("kong:3.9"));
    world.withholds = true;
    settle(&mut world);
    assert_eq!(entry(&world, BLUE)["valueFrom"]["configMapKeyRef"]["name"], "router");
    assert_eq!(world.rolled_out(), "WaitingForChange");
}

/// Where the map has no such key, the image decides, with what it may set by itself.
#[test]
fn a_map_without_the_key_sets_nothing_until_it_has_it() {
    let mut bare = imported("kong:3.9");
    bare["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["envFrom"][0]["prefix"] = json!("OTHER_");
    let mut world = running(bare, Some(EX));
    assert_eq!(entry(&world, BLUE), Value::Null);
    let mut other = imported("kong:3.9");
    other["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["optional"] =
        json!(true);
    world = running(other, None);
    assert_eq!((entry(&world, BLUE), &world.stamp()["flavor"]), (Value::Null, &json!(TC)));
    world.give_flavor(Some(EX));
    settle(&mut world);
    assert_eq!((entry(&world, BLUE), entry(&world, GREEN)), (literal(TC), literal(EX)));
    assert_eq!(world.rolled_out(), "AwaitingPromotion");
}

/// The annotation may be written while the guards are away; the condition vouches for its flavor.
#[test]
fn a_forged_flavor_reaches_no_live_pod() {
    let mut world = running(sourced("kong:3.9"), Some(TC));
    let mut forged = world.stamp();
    forged["flavor"] = json!(EX);
    world.annotate(meta::LAST_APPLIED_SPEC, &forged.to_string());
    settle(&mut world);
    assert_eq!((entry(&world, BLUE), &world.stamp()["flavor"]), (literal(TC), &json!(TC)));
    assert_eq!(world.rolled_out(), "WaitingForChange");
}
