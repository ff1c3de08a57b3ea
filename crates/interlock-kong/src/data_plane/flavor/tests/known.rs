use std::collections::BTreeSet;

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::SpecHash;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::world::{EX, T, TC, config_map, data_plane, http_route, proxy};
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::deferred::DeferredChecks;
use crate::data_plane::flavor::gateway::{Gateway, sources_of};
use crate::data_plane::flavor::gateway_ref::{GatewayKind, GatewayRef};
use crate::data_plane::flavor::inventory::{GatewayInventory, RolledOut};
use crate::data_plane::flavor::reading::{Effective, FlavorReading};
use crate::data_plane::flavor::routes::Inventory;
use crate::data_plane::flavor::running::rolled_out::is_rolled_out;
use crate::data_plane::flavor::sources::{FlavorSource, GivenSources, KeyLookup, SourceKind, Sources};

fn known(objects: &[Value]) -> GatewayInventory {
    let mut known = GatewayInventory::default();
    objects.iter().for_each(|object| known.take(object, "kong"));
    known
}

fn subject(kind: GatewayKind, name: &str) -> GatewayRef {
    GatewayRef { kind, name: NamespacedName::new("kong", name) }
}

fn deployment(name: &str, container: Value, ready: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "kong", "generation": 2, "labels": {"interlock.dev/guard": "kong-router-flavor"}},
        "spec": {"replicas": 3, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [container], "volumes": [{"name": "much"}]},
        }},
        "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": ready},
    })
}

fn with_env(env: Value) -> Value {
    json!({"name": "proxy", "image": "kong:3.9", "env": env, "resources": {"limits": {"cpu": "1"}}})
}

/// The projection of an object reads like the object.
#[rstest]
#[case::plain(json!([{"name": "KONG_ROUTER_FLAVOR", "value": "expressions"}, {"name": "X", "value": "much"}]))]
#[case::from_config_map(json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}]))]
#[case::referring(json!([{"name": "F", "value": "expressions"}, {"name": "KONG_ROUTER_FLAVOR", "value": "$(F)"}]))]
#[case::by_file(json!([{"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/x"}]))]
#[case::default(json!([]))]
fn what_is_kept_of_a_gateway_reads_the_same(#[case] env: Value) {
    let object = data_plane(with_env(env), true);
    let map = config_map("router", json!({"flavor": "expressions", "other": "x".repeat(4000)}));
    let known = known(&[object.clone(), map.clone()]);
    let sources = GivenSources::of([&map], "kong");
    let kept = known.gateways().next().unwrap();
    let read = |object: &Value, sources: &GivenSources| Gateway::read(object, "kong", sources).unwrap();
    assert_eq!(read(kept, known.sources()), read(&object, &sources));
    assert!(!kept.to_string().contains("much") && !kept.to_string().contains("limits"), "{kept}");
}

#[test]
fn a_long_value_is_not_kept_and_stays_too_long() {
    let known = known(&[config_map("router", json!({"flavor": "x".repeat(100_000)}))]);
    let source = FlavorSource { kind: SourceKind::ConfigMap, name: NamespacedName::new("kong", "router") };
    let KeyLookup::Value(value) = known.sources().ask(&source, "flavor") else { panic!("not kept") };
    assert!((257..300).contains(&value.len()), "{}", value.len());
}

#[test]
fn the_sources_of_a_flavor_are_all_that_could_set_it() {
    let mut container = with_env(json!([
        {"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "OTHER", "valueFrom": {"configMapKeyRef": {"name": "unrelated", "key": "k"}}},
    ]));
    container["envFrom"] = json!([
        {"configMapRef": {"name": "all"}},
        {"prefix": "KONG_ROUTER_", "configMapRef": {"name": "prefixed"}},
        {"prefix": "OTHER_", "configMapRef": {"name": "elsewhere"}},
    ]);
    let object = data_plane(container, false);
    let names: Vec<String> = sources_of(&object).iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ConfigMap kong/all", "ConfigMap kong/prefixed", "Secret kong/s"]);
    let known = known(&[object]);
    let fed = |kind, name: &str| {
        known.dependents(&FlavorSource { kind, name: NamespacedName::new("kong", name) }).len()
    };
    assert_eq!((fed(SourceKind::Secret, "s"), fed(SourceKind::ConfigMap, "unrelated")), (1, 0));
}

#[rstest]
#[case::all_of_one_template(3, true)]
#[case::not_all_ready(2, false)]
fn a_rollout_is_over_when_all_pods_are_of_one_template(#[case] ready: i64, #[case] over: bool) {
    assert_eq!(is_rolled_out(&deployment("edge", proxy("kong:3.9", None), ready)), over);
}

#[test]
fn live_is_what_was_rolled_out_last() {
    let edge = subject(GatewayKind::Deployment, "edge");
    let flavor = |known: &GatewayInventory| match known.context_of(&edge).rolled_out {
        RolledOut::With(reading) => Some(reading.effective),
        RolledOut::Never => None,
        RolledOut::Untold(why) => panic!("{why}"),
    };
    let of = |flavor: &str, ready| deployment("edge", proxy("kong:3.9", Some(flavor)), ready);
    let mut new = of("traditional", 1);
    new["metadata"]["generation"] = json!(1);
    let mut known = known(&[new]);
    assert_eq!(flavor(&known), None, "it never was");
    known.take(&of("traditional", 3), "");
    known.take(&of("traditional_compatible", 1), "");
    assert_eq!(flavor(&known), Some(Effective::Known(T)));
    known.take(&of("traditional_compatible", 3), "");
    assert_eq!(flavor(&known), Some(Effective::Known(TC)));
    known.drop("GuardedDeployment", &edge.name);
    assert_eq!(flavor(&known), None);
}

/// The report of a new process before and after the ReplicaSets were read.
#[rstest]
#[case::earlier(Ok(Some("traditional")), RolledOut::With)]
#[case::no_pods(Ok(None), |_| RolledOut::Never)]
#[case::forbidden(Err("forbidden"), |_| RolledOut::Untold("forbidden".to_owned()))]
fn a_rollout_that_nobody_saw_begin_is_told_of(
    #[case] found: Result<Option<&str>, &str>,
    #[case] then: fn(FlavorReading) -> RolledOut,
) {
    let edge = subject(GatewayKind::Deployment, "edge");
    let of = |flavor: &str, ready| deployment("edge", proxy("kong:3.9", Some(flavor)), ready);
    let mut known = known(&[of("traditional_compatible", 1)]);
    assert!(matches!(known.context_of(&edge).rolled_out, RolledOut::Untold(_)));
    assert_eq!(known.unresolved(), std::slice::from_ref(&edge.name));
    let template = |flavor: &str| of(flavor, 3)["spec"]["template"].clone();
    let found = found.map(|found| found.map(template)).map_err(str::to_owned);
    known.tell(&edge.name, found.as_ref().map(Option::as_ref).map_err(String::clone));
    let reading = |flavor| super::world::read(&of(flavor, 3), &[]).spec.reading;
    assert_eq!(known.context_of(&edge).rolled_out, then(reading("traditional")));
    assert_eq!(known.unresolved().is_empty(), found.is_ok());
    // The end of a rollout takes precedence over ReplicaSets.
    known.take(&of("traditional_compatible", 3), "");
    known.tell(&edge.name, Ok(None));
    assert_eq!(known.context_of(&edge).rolled_out, RolledOut::With(reading("traditional_compatible")));
}

/// A DataPlane with a producer, that runs one flavor and has staged another.
fn staged(name: &str, live: &str, stored: &str) -> Value {
    let mut plane = data_plane(proxy("kong:3.9", Some(live)), true);
    let spec = plane["spec"].to_string();
    let stamp = json!({"v": 1, "hash": SpecHash::of(&spec), "spec": plane["spec"], "selector": "s-1", "flavor": live});
    plane["spec"] = data_plane(proxy("kong:3.9", Some(stored)), true)["spec"].take();
    plane["status"] = json!({"selector": "s-1"});
    plane["metadata"]["name"] = json!(name);
    plane["metadata"]["annotations"] =
        json!({meta::CONFIG_PRODUCER: "kic", meta::LAST_APPLIED_SPEC: stamp.to_string()});
    plane
}

#[rstest]
#[case::staged("s-1", TC)]
#[case::promoted("s-2", EX)]
fn others_count_by_what_they_run(#[case] selector: &str, #[case] runs: Flavor) {
    let mut other = staged("other", "traditional_compatible", "expressions");
    other["status"]["selector"] = json!(selector);
    let known = known(&[staged("edge", "expressions", "expressions"), other]);
    let group = known.context_of(&subject(GatewayKind::DataPlane, "edge")).group.unwrap();
    let others: Vec<_> = group.others.iter().map(|(_, effective)| effective.known()).collect();
    assert_eq!(others, [Some(runs)]);
}

/// Sources of the live template count, as well as those of the staged or new one.
#[test]
fn sources_of_what_runs_are_wanted_as_well() {
    let from = |map: &str| {
        let from = json!({"configMapKeyRef": {"name": map, "key": "flavor"}});
        with_env(json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}]))
    };
    let mut plane = staged("plane", "traditional", "traditional");
    plane["spec"] = data_plane(from("plane-next"), true)["spec"].take();
    let live = data_plane(from("plane-live"), true)["spec"].take();
    let stamp = json!({"v": 1, "hash": SpecHash::of(&live.to_string()), "spec": live, "selector": "s-1"});
    plane["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp.to_string());
    let mut known = known(&[plane, deployment("edge", from("edge-live"), 3)]);
    known.take(&deployment("edge", from("edge-next"), 1), "");
    let wanted: Vec<String> = known.referenced_sources().into_iter().map(|source| source.name.name).collect();
    assert_eq!(wanted, ["edge-live", "edge-next", "plane-live", "plane-next"]);
    for name in wanted {
        let source = FlavorSource { kind: SourceKind::ConfigMap, name: NamespacedName::new("kong", &name) };
        assert_eq!(known.dependents(&source).len(), 1, "{name}");
    }
}

/// Admitted while its source could not be read; validated with the value read later.
#[rstest]
#[case::two_steps(
    "expressions",
    Some(
        "router flavor traditional -> expressions was admitted, as its source could not be read then, and would have been refused: [RF03] "
    )
)]
#[case::one_step("traditional_compatible", None)]
#[case::none("traditional", None)]
fn what_could_not_be_read_is_judged_when_it_can_be(#[case] value: &str, #[case] told: Option<&str>) {
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let next = deployment("edge", with_env(json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}])), 1);
    let mut known = known(&[deployment("edge", proxy("kong:3.9", Some("traditional")), 3)]);
    known.take(&next, "");
    assert!(known.take_deferred(&GivenSources::default()).is_empty(), "nobody knows yet");
    known.take(&next, "");
    known.take(&config_map("router", json!({"flavor": value})), "");
    let found: Vec<String> =
        known.take_deferred(&GivenSources::default()).iter().map(DeferredChecks::message).collect();
    assert_eq!(found.len(), usize::from(told.is_some()), "{found:?}");
    assert!(told.is_none_or(|told| found[0].starts_with(told)), "{found:?}");
    assert!(known.take_deferred(&GivenSources::default()).is_empty(), "it is told once");
}

/// Where nobody guards its source, it is read by request: what the change leads to, and what it comes from.
#[rstest]
#[case::two_steps("traditional", "expressions", Some("traditional -> expressions"))]
#[case::one_step("traditional", "traditional_compatible", None)]
fn what_is_not_labelled_is_read(#[case] from: &str, #[case] to: &str, #[case] told: Option<&str>) {
    let sourced = |name: &str| {
        let from = json!({"configMapKeyRef": {"name": name, "key": "flavor"}});
        deployment("edge", with_env(json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}])), 1)
    };
    let literal = |flavor: &str| deployment("edge", proxy("kong:3.9", Some(flavor)), 1);
    let given = |(name, flavor): (&str, &str)| config_map(name, json!({"flavor": flavor}));
    let both = [("before", from), ("after", to)].map(given);
    for (before, after) in [
        (sourced("before"), sourced("after")),
        (sourced("before"), literal(to)),
        (literal(from), sourced("after")),
    ] {
        let mut known = known(&[before]);
        known.take(&after, "");
        let wanted: Vec<String> = unread(&mut known, at(0)).0.iter().map(|it| it.name.name.clone()).collect();
        assert!(!wanted.is_empty() && wanted.iter().all(|it| it == "before" || it == "after"), "{wanted:?}");
        let nothing = GivenSources::default();
        assert!(
            known.take_deferred(&nothing).is_empty()
                && unread(&mut known, at(1)) == (BTreeSet::new(), Some(at(30)))
        );
        let found: Vec<String> =
            known.take_deferred(&GivenSources::of(&both, "")).iter().map(DeferredChecks::message).collect();
        assert_eq!(found.len(), usize::from(told.is_some()), "{found:?}");
        assert!(told.is_none_or(|told| found[0].contains(told)), "{found:?}");
        assert!(unread(&mut known, at(40)) == Default::default());
    }
}

/// What never exists is not asked for for ever, and an edit of something else asks for nothing.
#[test]
fn what_does_not_exist_is_read_a_few_times() {
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let sourced = |replicas: i64| {
        let env = json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}]);
        deployment("edge", with_env(env), replicas)
    };
    let mut known = known(&[deployment("edge", proxy("kong:3.9", Some("traditional")), 1)]);
    known.take(&sourced(1), "");
    let mut reads = 0;
    for second in 0..1000 {
        known.take(&sourced(second), "");
        reads += unread(&mut known, at(second)).0.len();
        assert!(known.take_deferred(&GivenSources::default()).is_empty());
    }
    assert_eq!(reads, 6);
}

fn unread(known: &mut GatewayInventory, at: Timestamp) -> (BTreeSet<FlavorSource>, Option<Timestamp>) {
    known.unread_sources(at, true)
}

/// A write of something else reads and reports nothing, whatever runs: a rollout that is stuck has many.
#[test]
fn a_change_is_read_and_reported_once() {
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let map = config_map("router", json!({"flavor": "expressions"}));
    let sourced = with_env(json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}]));
    let mut known = known(&[deployment("edge", proxy("kong:3.9", Some("traditional")), 3)]);
    let mut next = deployment("edge", sourced.clone(), 3);
    next["metadata"]["generation"] = json!(3);
    known.take(&next, "");
    assert_eq!(unread(&mut known, at(0)).0.len(), 1);
    assert_eq!(known.take_deferred(&GivenSources::of([&map], "")).len(), 1);
    for ready in 0..3 {
        next["status"]["availableReplicas"] = json!(ready);
        known.take(&next, "");
        assert_eq!(unread(&mut known, at(60)), Default::default());
        assert_eq!(known.take_deferred(&GivenSources::of([&map], "")).len(), 0);
    }

    // A DataPlane whose pods have the recorded flavor as a literal.
    let mut plane = staged("plane", "traditional", "traditional");
    plane["spec"] = data_plane(sourced, true)["spec"].take();
    let mut planes = GatewayInventory::default();
    planes.take(&plane, "kong");
    for generation in 0..3 {
        plane["status"]["observedGeneration"] = json!(generation);
        planes.take(&plane, "kong");
        assert_eq!(unread(&mut planes, at(0)), Default::default());
    }
}

/// What is read at last still counts, and then it is given up.
#[test]
fn a_source_that_comes_late_is_read() {
    let (mut known, map) = changed();
    for round in 0..6 {
        assert_eq!(unread(&mut known, at(30 * round)).0.len(), 1, "{round}");
    }
    let mut late = known.clone();
    assert_eq!(late.take_deferred(&GivenSources::of([&map], "")).len(), 1);
    assert_eq!(unread(&mut known, at(180)), Default::default());
    assert_eq!(known.take_deferred(&GivenSources::of([&map], "")).len(), 0);
}

/// A process that does not lead leaves it to the leader, and does not report it again when it leads.
#[test]
fn what_the_leader_has_read_is_left() {
    let (mut known, map) = changed();
    known.leave_unread(at(0), true);
    let mut soon = known.clone();
    soon.leave_unread(at(10), true);
    assert_eq!(unread(&mut soon, at(20)).0.len(), 1, "the leader may have died before");
    known.leave_unread(at(40), true);
    assert_eq!(unread(&mut known, at(50)), Default::default());
    assert_eq!(known.take_deferred(&GivenSources::of([&map], "")).len(), 0);
}

/// What is listed is read where nothing labels it: an object of the cluster, and all while the policy is not in force.
#[test]
fn what_is_listed_and_not_labelled_is_read() {
    let from = |name: &str| json!({"configMapKeyRef": {"name": name, "key": "flavor"}});
    for (name, is_guarding, is_read) in
        [("router", true, false), ("router", false, true), ("kube-root-ca.crt", true, true)]
    {
        let env = json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from(name)}]);
        let mut next = deployment("edge", with_env(env), 3);
        next["metadata"]["annotations"] = json!({meta::GUARDED_SOURCES: format!("configmaps/{name}")});
        let mut known = known(&[deployment("edge", proxy("kong:3.9", Some("traditional")), 3)]);
        known.take(&next, "");
        let (wanted, again) = known.unread_sources(at(0), is_guarding);
        assert_eq!((wanted.len() == 1, again.is_some()), (is_read, is_read), "{name}");
    }
}

/// One tenant's gateways hold up nobody else's.
#[test]
fn a_namespace_takes_its_turn() {
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let env = json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}]);
    let mut known = GatewayInventory::default();
    let many = (0..100).map(|n| ("crowd", format!("edge-{n}"))).chain([("kong", "edge".to_owned())]);
    for (namespace, name) in many {
        let mut object = deployment(&name, proxy("kong:3.9", Some("traditional")), 3);
        object["metadata"]["namespace"] = json!(namespace);
        known.take(&object, "");
        object["spec"]["template"]["spec"]["containers"] = json!([with_env(env.clone())]);
        object["spec"]["template"]["spec"]["containers"][0]["env"][0]["valueFrom"]["configMapKeyRef"]["name"] =
            json!(name);
        known.take(&object, "");
    }
    let (wanted, again) = unread(&mut known, at(0));
    assert_eq!(wanted.iter().filter(|source| source.name.namespace == "crowd").count(), 16);
    assert_eq!(wanted.iter().filter(|source| source.name.namespace == "kong").count(), 1);
    assert_eq!(again, Some(at(1)));
}

/// A gateway whose flavor comes from a source that nobody lists, and that source.
fn changed() -> (GatewayInventory, Value) {
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let mut known = known(&[deployment("edge", proxy("kong:3.9", Some("traditional")), 3)]);
    let env = json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}]);
    known.take(&deployment("edge", with_env(env), 1), "");
    (known, config_map("router", json!({"flavor": "expressions"})))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The same staged in a DataPlane, and for one that is deleted.
#[test]
fn what_could_not_be_read_and_is_staged_is_judged_as_staged() {
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let mut next = staged("edge", "traditional", "traditional");
    let mut known = known(&[next.clone()]);
    next["spec"] =
        data_plane(with_env(json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}])), true)["spec"].take();
    known.take(&next, "");
    let mut gone = known.clone();
    for known in [&mut known, &mut gone] {
        known.take(&config_map("router", json!({"flavor": "expressions"})), "");
    }
    let found: Vec<String> =
        known.take_deferred(&GivenSources::default()).iter().map(DeferredChecks::message).collect();
    assert!(found.len() == 1 && found[0].contains("[RF03]"), "{found:?}");
    gone.drop("DataPlane", &NamespacedName::new("kong", "edge"));
    assert!(gone.take_deferred(&GivenSources::default()).is_empty());
}

#[test]
fn routes_come_and_go() {
    let gateway = subject(GatewayKind::DataPlane, "edge");
    let query = http_route("kong", "search", json!({"queryParams": [{"name": "q"}]}));
    let plain = http_route("kong", "search", json!({"path": {"type": "PathPrefix", "value": "/"}}));
    let count = |known: &GatewayInventory| match &*known.context_of(&gateway).routes {
        Inventory::Unseen => None,
        Inventory::Seen { routes, .. } => Some(routes.len()),
    };
    let mut known = known(std::slice::from_ref(&query));
    assert_eq!(count(&known), Some(1));
    known.take(&plain, "");
    assert_eq!(count(&known), Some(0));
    known.take(&query, "");
    known.drop("HTTPRoute", &NamespacedName::new("kong", "search"));
    assert_eq!(count(&known), Some(0));
}

#[rstest]
#[case("HTTPRoute", 1, 0)]
#[case("GuardedDeployment", 0, 1)]
#[case("DataPlane", 1, 1)]
fn a_kind_that_is_not_watched_any_more_is_forgotten(
    #[case] kind: &str,
    #[case] gateways: usize,
    #[case] routes: usize,
) {
    let mut known = known(&[
        http_route("kong", "search", json!({"queryParams": [{"name": "q"}]})),
        deployment("edge", proxy("kong:3.9", None), 3),
    ]);
    known.forget(kind);
    let context = known.context_of(&subject(GatewayKind::DataPlane, "edge"));
    let Inventory::Seen { routes: left, .. } = &*context.routes else { panic!("not seen") };
    assert_eq!((known.gateways().count(), left.len()), (gateways, routes));
}

/// A ControlPlane by reference, an ingress controller by its admin Service.
#[test]
fn producers_are_found() {
    let control_plane = json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "ControlPlane",
        "metadata": {"namespace": "kong", "name": "cp"}, "spec": {"dataplane": "edge", "image": "kic"},
    });
    let controller = deployment(
        "kic",
        json!({"name": "controller", "args": ["--kong-admin-svc=kong/admin"], "env": [{"name": "X", "value": "y"}]}),
        3,
    );
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "kong", "name": "admin"},
        "spec": {"selector": {"app": "proxy"}, "ports": []},
    });
    let objects = [
        data_plane(proxy("kong:3.9", None), false),
        control_plane,
        controller,
        service,
        deployment("proxy", proxy("kong:3.9", None), 3),
    ];
    let known = known(&objects);
    let producer = |kind, name| known.context_of(&subject(kind, name)).group.map(|group| group.producer);
    assert_eq!(producer(GatewayKind::DataPlane, "edge").as_deref(), Some("ControlPlane kong/cp"));
    assert_eq!(producer(GatewayKind::Deployment, "proxy").as_deref(), Some("Deployment kong/kic"));
    assert_eq!(producer(GatewayKind::Deployment, "kic"), None);
}
