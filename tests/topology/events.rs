//! Effects of events on the graph, and the roots that they affect.

use interlock_core::kinds;
use interlock_core::kinds::{INSTANCE, NAMESPACE};
use interlock_core::topology::{AffectedNodes, Epoch, Graph, GraphChange, KindName, NodeId, NodeLookup};
use interlock_gateway::names::GATEWAY;
use interlock_gateway::names::HTTP_ROUTE;
use interlock_gateway::names::SERVICE;
use interlock_kudo::names::OPERATOR_VERSION;
use rstest::rstest;
use serde_json::{Value, json};

const EPOCH: Epoch = Epoch(1);

/// A graph whose kinds are all available and listed, empty.
struct World {
    graph: Graph,
    version: u64,
}

impl World {
    fn new() -> Self {
        let mut graph = kinds::graph(interlock::kinds::all());
        for kind in kinds::schemas(interlock::kinds::all()).iter().map(|kind| kind.name) {
            let id = graph.kind(kind.group, kind.kind);
            graph.kind_available(id, EPOCH);
            graph.apply(id, EPOCH, GraphChange::Listing(""));
            graph.apply(id, EPOCH, GraphChange::Synced(""));
        }
        let config_maps = graph.kind("", "ConfigMap");
        graph.kind_available(config_maps, EPOCH);
        Self { graph, version: 0 }
    }

    fn with(objects: &[Value]) -> Self {
        let mut world = Self::new();
        objects.iter().for_each(|object| {
            world.apply(object.clone());
        });
        world
    }

    fn apply(&mut self, mut object: Value) -> AffectedNodes {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let kind = self.kind_of(&object);
        self.graph.apply(kind, EPOCH, GraphChange::Applied(&object))
    }

    fn delete(&mut self, object: &Value) -> AffectedNodes {
        let kind = self.kind_of(object);
        self.graph.apply(kind, EPOCH, GraphChange::Deleted(object))
    }

    fn kind_of(&mut self, object: &Value) -> interlock_core::topology::KindId {
        let gvk = interlock_core::api::object::Gvk::of(object).unwrap();
        self.graph.kind(&gvk.group, &gvk.kind)
    }
}

fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-of-{kind}-{name}")},
    });
    json_patch::merge(&mut object, &rest);
    object
}

fn instance(name: &str, rest: Value) -> Value {
    let spec = json!({"spec": {"operatorVersion": {"name": "kafka"}}});
    let mut instance = object("kudo.dev/v1beta1", "Instance", name, spec);
    json_patch::merge(&mut instance, &rest);
    instance
}

fn version() -> Value {
    object("kudo.dev/v1beta1", "OperatorVersion", "kafka", json!({"spec": {"version": "1"}}))
}

fn namespace(rest: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "uid": "u"}});
    json_patch::merge(&mut object, &rest);
    object
}

fn owned_by(name: &str) -> Value {
    json!({"metadata": {"ownerReferences": [{"kind": "Instance", "name": name, "uid": format!("uid-of-Instance-{name}")}]}})
}

fn config_map(owner: &str) -> Value {
    object("v1", "ConfigMap", "settings", owned_by(owner))
}

fn route(parents: Value, services: &[&str]) -> Value {
    let rules: Vec<Value> =
        services.iter().map(|s| json!({"backendRefs": [{"name": s}, {"name": s}]})).collect();
    let spec = json!({"spec": {"parentRefs": parents, "rules": rules}});
    object("gateway.networking.k8s.io/v1", "HTTPRoute", "shop", spec)
}

fn gateway(name: &str, listeners: &[&str]) -> Value {
    let listeners: Vec<Value> = listeners.iter().map(|l| json!({"name": l})).collect();
    let spec = json!({"spec": {"gatewayClassName": "kong", "listeners": listeners}});
    object("gateway.networking.k8s.io/v1", "Gateway", name, spec)
}

fn service(name: &str) -> Value {
    object("v1", "Service", name, json!({"spec": {"clusterIP": "None"}}))
}

fn roots(kind: KindName, names: &[&str]) -> Vec<NodeId> {
    names.iter().map(|name| NodeId::new(kind, "ns", name)).collect()
}

#[rstest]
#[case::a_version_appears(&[instance("a", json!({})), instance("b", json!({}))], version(), &["a", "b"])]
#[case::only_its_labels(&[instance("a", json!({})), version()],
    { let mut v = version(); v["metadata"]["labels"] = json!({"x": "y"}); v }, &[])]
#[case::its_spec(&[instance("a", json!({})), version()],
    { let mut v = version(); v["spec"]["version"] = json!("2"); v }, &["a"])]
#[case::a_namespace_terminates(&[instance("a", json!({})), namespace(json!({}))],
    namespace(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})), &["a"])]
#[case::a_namespace_is_labelled(&[instance("a", json!({})), namespace(json!({}))],
    namespace(json!({"metadata": {"labels": {"a": "b"}}})), &["a"])]
#[case::a_namespace_is_annotated(&[instance("a", json!({})), namespace(json!({}))],
    namespace(json!({"metadata": {"annotations": {"a": "b"}}})), &[])]
#[case::an_instance_is_edited(&[instance("a", json!({}))], instance("a", json!({"spec": {"parameters": {"x": "1"}}})), &["a"])]
#[case::an_instance_is_labelled(&[instance("a", json!({}))], instance("a", json!({"metadata": {"labels": {"x": "1"}}})), &[])]
#[case::a_child_instance_too(&[instance("a", json!({}))], instance("b", owned_by("a")), &["a", "b"])]
#[case::an_object_that_was_made(&[instance("a", json!({}))], config_map("a"), &["a"])]
#[case::its_owner_is_another_one(&[instance("a", json!({})), instance("b", json!({})), config_map("a")], config_map("b"), &["a", "b"])]
#[case::its_owner_is_not_there(&[instance("a", json!({}))], config_map("c"), &[])]
#[case::what_it_owns_in_turn(&[instance("a", json!({})), config_map("a")],
    object("v1", "ConfigMap", "second", json!({"metadata": {"ownerReferences": [{"uid": "uid-of-ConfigMap-settings"}]}})), &["a"])]
fn an_event_concerns_instances(#[case] there: &[Value], #[case] event: Value, #[case] expected: &[&str]) {
    let mut world = World::with(there);
    assert_eq!(world.apply(event).roots, roots(INSTANCE, expected));
}

#[rstest]
#[case::all_listeners(&[gateway("g", &["http"])], route(json!([{"name": "g"}]), &[]), &["g"])]
#[case::one_listener(&[gateway("g", &["http"])], route(json!([{"name": "g", "sectionName": "http"}]), &[]), &["g"])]
#[case::no_such_listener(&[gateway("g", &["http"])], route(json!([{"name": "g", "sectionName": "tcp"}]), &[]), &[])]
#[case::another_parent(&[gateway("g", &["http"])], route(json!([{"name": "g", "kind": "Service", "group": ""}]), &[]), &[])]
#[case::it_moves(&[gateway("g", &["http"]), gateway("h", &[]), route(json!([{"name": "g"}]), &[])], route(json!([{"name": "h"}]), &[]), &["g", "h"])]
#[case::its_service(&[gateway("g", &["http"]), route(json!([{"name": "g", "sectionName": "http"}]), &["s"])], service("s"), &["g"])]
#[case::another_service(&[gateway("g", &["http"]), route(json!([{"name": "g"}]), &["s"])], service("t"), &[])]
fn an_event_concerns_gateways(#[case] there: &[Value], #[case] event: Value, #[case] expected: &[&str]) {
    let mut world = World::with(there);
    assert_eq!(world.apply(event).roots, roots(GATEWAY, expected));
}

#[test]
fn a_recreated_object_is_another_one() {
    let mut world = World::with(&[instance("a", json!({})), config_map("a")]);
    let second = instance("a", json!({"metadata": {"uid": "second"}}));
    assert_eq!(world.apply(second.clone()).roots, roots(INSTANCE, &["a"]));
    assert_eq!(world.delete(&config_map("a")).roots, [], "it belonged to the first");
    assert_eq!(
        world.delete(&instance("a", json!({}))),
        AffectedNodes::default(),
        "a late word about the first"
    );
    assert_eq!(world.delete(&second).roots, roots(INSTANCE, &["a"]));
    let (nodes, edges) = world.graph.size();
    assert_eq!((nodes, edges), (0, 0), "nothing is left of what is gone: {:?}", world.graph.snapshot());
}

#[test]
fn a_late_answer_does_not_bring_an_object_back() {
    let mut world = World::with(&[instance("a", json!({}))]);
    assert!(world.delete(&instance("a", json!({}))).news);
    assert_eq!(world.apply(instance("a", json!({}))), AffectedNodes::default());
}

/// What is remembered of a uid is the latest: an object that a watch by labels loses and sees again, and that another
/// replaces, or that takes its name back, is gone in the end.
#[rstest]
#[case::it_was_replaced(&["first", "second"])]
#[case::it_was_there_again(&["first", "second", "first"])]
fn a_late_answer_of_what_was_seen_again_brings_nothing_back(#[case] then: &[&str]) {
    let of = |uid: &str, version: u64| {
        let version = version.to_string();
        instance("a", json!({"metadata": {"uid": uid, "resourceVersion": version}}))
    };
    let mut world = World::new();
    let kind = world.kind_of(&of("first", 0));
    let mut take = |change: GraphChange<'_>| world.graph.apply(kind, EPOCH, change).news;
    assert!(take(GraphChange::Applied(&of("first", 1))));
    assert!(take(GraphChange::Deleted(&of("first", 2))));
    for (version, uid) in (3..).zip(then) {
        assert!(take(GraphChange::Applied(&of(uid, version))), "{uid} of {version}");
    }
    let last = then.last().unwrap();
    assert!(take(GraphChange::Deleted(&of(last, 9))));
    for (version, uid) in (3..).zip(then) {
        assert!(!take(GraphChange::Applied(&of(uid, version))), "late: {uid} of {version}");
    }
    assert!(!take(GraphChange::Applied(&of("first", 1))), "late: the first of all");
}

#[test]
fn an_echo_tells_nothing() {
    let mut world = World::with(&[instance("a", json!({}))]);
    let again = instance("a", json!({"metadata": {"resourceVersion": "1"}, "spec": {"x": "y"}}));
    let kind = world.kind_of(&again);
    assert_eq!(world.graph.apply(kind, EPOCH, GraphChange::Applied(&again)), AffectedNodes::default());
}

#[test]
fn what_a_list_does_not_hold_is_gone_when_it_is_complete() {
    let mut world = World::with(&[instance("a", json!({})), instance("b", json!({}))]);
    let kind = world.graph.kind(INSTANCE.group, INSTANCE.kind);
    world.graph.apply(kind, EPOCH, GraphChange::Listing(""));
    let same = instance("a", json!({"metadata": {"resourceVersion": "1"}}));
    assert_eq!(world.graph.apply(kind, EPOCH, GraphChange::Listed(&same)), AffectedNodes::default());
    assert!(matches!(world.graph.get(kind, "ns", "b"), NodeLookup::Present(_)), "half a list says nothing");
    let dirty = world.graph.apply(kind, EPOCH, GraphChange::Synced(""));
    assert_eq!((dirty.roots, dirty.gone), (roots(INSTANCE, &["b"]), roots(INSTANCE, &["b"])));
    assert!(matches!(world.graph.get(kind, "ns", "b"), NodeLookup::Absent));
}

#[test]
fn a_list_that_broke_off_says_nothing() {
    let (a, b) = (instance("a", json!({})), instance("b", json!({})));
    let mut world = World::with(&[a.clone(), b]);
    let kind = world.kind_of(&a);
    world.graph.apply(kind, EPOCH, GraphChange::Listing(""));
    world.graph.apply(kind, EPOCH, GraphChange::Listed(&a));
    assert_eq!(world.graph.rows(kind).count(), 2, "the rest may follow");
    world.graph.apply(kind, EPOCH, GraphChange::Listing(""));
    let dirty = world.graph.apply(kind, EPOCH, GraphChange::Synced(""));
    assert_eq!(dirty.gone.len(), 2, "what was seen in the one that broke off is asked for again");
}

#[test]
fn a_list_of_one_namespace_says_nothing_of_another() {
    let (a, b) = (instance("a", json!({})), instance("b", json!({"metadata": {"namespace": "other"}})));
    let mut world = World::with(&[a.clone(), b.clone()]);
    let kind = world.kind_of(&a);
    world.graph.apply(kind, EPOCH, GraphChange::Listing("ns"));
    world.graph.apply(kind, EPOCH, GraphChange::Listing("other"));
    world.graph.apply(kind, EPOCH, GraphChange::Listed(&b));
    assert_eq!(world.graph.apply(kind, EPOCH, GraphChange::Synced("other")).gone, []);
    assert_eq!(world.graph.apply(kind, EPOCH, GraphChange::Synced("ns")).gone, roots(INSTANCE, &["a"]));
}

#[test]
fn what_was_told_while_a_list_was_read_is_newer() {
    let (a, b) = (instance("a", json!({})), instance("b", json!({})));
    let mut world = World::with(std::slice::from_ref(&a));
    let kind = world.kind_of(&a);
    world.graph.apply(kind, EPOCH, GraphChange::Listing(""));
    world.apply(b.clone());
    assert_eq!(world.graph.apply(kind, EPOCH, GraphChange::Synced("")).gone, roots(INSTANCE, &["a"]));
    assert!(world.graph.row(kind, "ns", "b").is_some());
}

#[test]
fn the_objects_of_a_kind_go_with_it() {
    let world_of = [instance("a", json!({})), config_map("a")];
    let mut world = World::with(&world_of);
    let kind = world.kind_of(&world_of[1]);
    let dirty = world.graph.gone(kind);
    assert_eq!((dirty.roots, dirty.gone.len()), (roots(INSTANCE, &["a"]), 1));
    assert!(world.graph.epoch(kind).is_none(), "nothing tells of it any more");
}

#[test]
fn a_list_is_believed_also_where_versions_have_gone_back() {
    let mut world = World::with(&[namespace(json!({})), version(), instance("a", json!({}))]);
    let kind = world.graph.kind(INSTANCE.group, INSTANCE.kind);
    world.graph.apply(kind, EPOCH, GraphChange::Listing(""));
    let older =
        instance("a", json!({"metadata": {"resourceVersion": "2"}, "spec": {"parameters": {"x": "1"}}}));
    assert_eq!(world.graph.apply(kind, EPOCH, GraphChange::Listed(&older)).roots, roots(INSTANCE, &["a"]));
}

/// At another version of the kind, or in full after a metadata-only watch.
#[test]
fn a_watch_that_begins_anew_reads_also_what_has_not_changed() {
    let route = |rest| object("gateway.networking.k8s.io/v1", "HTTPRoute", "r", rest);
    let mut world = World::with(&[route(json!({}))]);
    let kind = world.graph.kind(HTTP_ROUTE.group, HTTP_ROUTE.kind);
    let mut whole = route(json!({"spec": {"rules": [{"name": "first"}]}}));
    whole["metadata"]["resourceVersion"] = json!("1");
    world.graph.apply(kind, EPOCH, GraphChange::Listing(""));
    assert!(!world.graph.apply(kind, EPOCH, GraphChange::Listed(&whole)).news, "it was read in this life");
    let next = Epoch(2);
    world.graph.kind_available(kind, next);
    world.graph.apply(kind, next, GraphChange::Listing(""));
    assert!(world.graph.apply(kind, next, GraphChange::Listed(&whole)).news);
    let picture = world.graph.snapshot_of(&NodeId::new(HTTP_ROUTE, "ns", "r")).unwrap();
    assert_eq!(picture.nodes.keys().map(|id| &*id.section).collect::<Vec<_>>(), ["", "first"]);
    assert!(!world.graph.apply(kind, next, GraphChange::Listed(&whole)).news);
}

#[test]
fn an_unavailable_kind_is_frozen_and_never_read_as_empty() {
    let mut world = World::with(&[instance("a", json!({})), config_map("a")]);
    let kind = world.graph.kind("", "ConfigMap");
    world.graph.kind_unavailable(kind);
    assert_eq!(world.graph.concerned_by(kind).collect::<Vec<_>>(), roots(INSTANCE, &["a"]));
    assert_eq!(world.delete(&config_map("a")), AffectedNodes::default());
    assert!(matches!(world.graph.get(kind, "ns", "settings"), NodeLookup::Present(_)));
    assert!(matches!(world.graph.get(kind, "ns", "other"), NodeLookup::Unknown));
    let next = Epoch(2);
    world.graph.kind_available(kind, next);
    assert_eq!(world.graph.concerned_by(kind).collect::<Vec<_>>(), roots(INSTANCE, &["a"]));
    let old = config_map("b");
    assert_eq!(
        world.graph.apply(kind, EPOCH, GraphChange::Applied(&old)),
        AffectedNodes::default(),
        "of another life"
    );
    world.graph.apply(kind, next, GraphChange::Listing(""));
    assert!(matches!(world.graph.get(kind, "ns", "other"), NodeLookup::Unknown));
    let dirty = world.graph.apply(kind, next, GraphChange::Synced(""));
    assert_eq!(dirty.roots, roots(INSTANCE, &["a"]), "it went while nobody looked");
    assert!(matches!(world.graph.get(kind, "ns", "other"), NodeLookup::Absent));
}

#[test]
fn a_cluster_scoped_object_belongs_by_its_label() {
    let mut world = World::with(&[instance("a", json!({}))]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {
        "name": "reader", "uid": "r", "labels": {"interlock.dev/instance-uid": "uid-of-Instance-a"}}});
    let kind = world.kind_of(&role);
    world.graph.kind_available(kind, EPOCH);
    assert_eq!(world.apply(role).roots, roots(INSTANCE, &["a"]));
}

#[test]
fn rules_of_a_route_have_names_that_differ() {
    let rules = json!([{"name": "[1]x"}, {}, {"name": "second"}, {"name": "second"}]);
    let route = object("gateway.networking.k8s.io/v1", "HTTPRoute", "r", json!({"spec": {"rules": rules}}));
    let world = World::with(&[route]);
    let root = NodeId::new(HTTP_ROUTE, "ns", "r");
    let picture = world.graph.snapshot_of(&root).unwrap();
    let names: Vec<&str> = picture.nodes.keys().map(|id| &*id.section).collect();
    assert_eq!(names, ["", "[1]", "[1]x", "[3]", "second"]);
}

#[test]
fn facts_and_links_are_read_back() {
    let scheduled = json!({"spec": {"planExecution": {"planName": "deploy", "uid": "u"}}});
    let world = World::with(&[instance("b", scheduled), instance("a", json!({})), version()]);
    let kind = world.graph.find_kind(OPERATOR_VERSION.group, OPERATOR_VERSION.kind).unwrap();
    let version = world.graph.row(kind, "ns", "kafka").unwrap();
    let mut users: Vec<(String, &str)> = version
        .along(interlock_core::topology::schema::Side::Child, kinds::link::OPERATOR_VERSION)
        .map(|row| (row.id().name.to_string(), row.word(kinds::fact::LOCKED).unwrap()))
        .collect();
    users.sort();
    assert_eq!(users, [("a".to_owned(), ""), ("b".to_owned(), "deploy")]);
}

#[test]
fn it_is_printed_in_order() {
    let world = World::with(&[
        service("s"),
        route(json!([{"name": "g", "sectionName": "http"}]), &["s", "t"]),
        gateway("g", &["https", "http"]),
    ]);
    let tree = "\
GatewayClass.gateway.networking.k8s.io/kong [missing]
└─ Gateway.gateway.networking.k8s.io/ns/g
   ├─ Gateway.gateway.networking.k8s.io/ns/g#http
   │  └─ HTTPRoute.gateway.networking.k8s.io/ns/shop
   │     ├─ HTTPRoute.gateway.networking.k8s.io/ns/shop#[0]
   │     │  └─ Service/ns/s [healthy=yes]
   │     └─ HTTPRoute.gateway.networking.k8s.io/ns/shop#[1]
   │        └─ Service/ns/t [missing]
   └─ Gateway.gateway.networking.k8s.io/ns/g#https
";
    assert_eq!(world.graph.snapshot().tree(), tree);
    let below = world.graph.snapshot_of(&NodeId::new(SERVICE, "ns", "t")).unwrap();
    let dot = "\
digraph topology {
  rankdir=LR;
  node [shape=box, fontname=\"sans-serif\"];
  n1 [label=\"Gateway\\nns/g\"];
  n2 [label=\"Gateway\\nns/g#http\"];
  n3 [label=\"GatewayClass\\nkong\\n[missing]\", style=dashed, color=\"#b00020\"];
  n4 [label=\"HTTPRoute\\nns/shop\"];
  n5 [label=\"HTTPRoute\\nns/shop#[1]\"];
  n6 [label=\"Service\\nns/t\\n[missing]\", style=dashed, color=\"#b00020\"];
  n1 -> n2 [label=\"listener\"];
  n2 -> n4 [label=\"parent\"];
  n3 -> n1 [label=\"class\"];
  n4 -> n5 [label=\"rule\"];
  n5 -> n6 [label=\"backend\"];
}
";
    assert_eq!(below.dot(), dot);
    let json = below.json();
    let node = json!({
        "id": "Service/ns/t", "kind": "Service", "namespace": "ns", "name": "t", "is": "missing", "facts": {},
    });
    assert_eq!(json["nodes"][5], node);
    assert_eq!(json["edges"].as_array().map(Vec::len), Some(5));
    assert_eq!(world.graph.snapshot_of(&NodeId::new(NAMESPACE, "", "none")), None);
}

/// A kind that follows the Instance it refers to, as one outside of this crate may be declared.
#[test]
fn a_link_that_follows_affects_its_holder_where_the_target_comes_or_goes() {
    use interlock_core::topology::schema::{
        DeclaredKind, EventRow, EventScope, EventTriggers, Family, Holder, Link, LinkPath, Ref, Side,
    };

    fn target(holder: &Holder<'_>) -> Vec<Ref> {
        vec![Ref::to(holder.namespace, holder.object["spec"]["instance"].as_str().unwrap_or_default())]
    }

    static FOLLOWER: DeclaredKind = DeclaredKind {
        name: KindName::new("example.dev", "Follower"),
        about: "follows an Instance",
        facts: &[],
        links: &[Link {
            name: "instance",
            family: Family::Needs,
            other: Side::Parent,
            kind: Some(INSTANCE),
            follows: true,
            read: target,
        }],
        sections: None,
        events: EventRow {
            create: EventTriggers::Roots(&[LinkPath::Itself]),
            update: EventScope::Nobody("nothing differs"),
            delete: EventTriggers::Nobody("nothing depends on it"),
        },
    };
    let all: Vec<&'static DeclaredKind> =
        kinds::schemas(interlock::kinds::all()).into_iter().chain([&FOLLOWER]).collect();
    let mut graph = Graph::new(&all, &kinds::MADE);
    let ids = [FOLLOWER.name, INSTANCE].map(|kind| graph.kind(kind.group, kind.kind));
    ids.into_iter().for_each(|kind| graph.kind_available(kind, EPOCH));
    let [followers, instances] = ids;
    let follower = object("example.dev/v1", "Follower", "f", json!({"spec": {"instance": "kafka-1"}}));
    let itself = NodeId::new(FOLLOWER.name, "ns", "f");
    let affected = graph.apply(followers, EPOCH, GraphChange::Applied(&follower)).roots;
    assert_eq!(affected, std::slice::from_ref(&itself));
    let target = instance("kafka-1", json!({}));
    for change in [GraphChange::Applied(&target), GraphChange::Deleted(&target)] {
        assert!(graph.apply(instances, EPOCH, change).roots.contains(&itself));
    }
    let other = instance("kafka-2", json!({}));
    assert!(!graph.apply(instances, EPOCH, GraphChange::Applied(&other)).roots.contains(&itself));
}
