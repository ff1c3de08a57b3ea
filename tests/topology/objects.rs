//! Random objects of a small world, and what happens to them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::reference::Key;

/// `apiVersion`, kind, and whether it lives in namespaces. The last two are declared by nobody.
pub const KINDS: [(&str, &str, bool); 11] = [
    ("kudo.dev/v1beta1", "Instance", true),
    ("kudo.dev/v1beta1", "OperatorVersion", true),
    ("kudo.dev/v1beta1", "Operator", true),
    ("v1", "Namespace", false),
    ("v1", "Service", true),
    ("networking.k8s.io/v1", "Ingress", true),
    ("gateway.networking.k8s.io/v1", "GatewayClass", false),
    ("gateway.networking.k8s.io/v1", "Gateway", true),
    ("gateway.networking.k8s.io/v1", "HTTPRoute", true),
    ("v1", "ConfigMap", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
];

/// What happens.
#[derive(Clone, Debug)]
pub enum Op {
    Apply(Value),
    Delete(Key),
    Late(usize),
    Echo(Key),
    Unavailable(&'static str),
    Available(&'static str),
    List(&'static str, u8),
    Gone(&'static str),
}

pub fn kind(name: &str) -> (&'static str, &'static str, bool) {
    *KINDS.iter().find(|(_, kind, _)| *kind == name).expect("a kind of this world")
}

pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("objects have uids")
}

fn any_kind() -> impl Strategy<Value = &'static str> {
    // Instances and what they make are what most events are about.
    prop_oneof![
        4 => Just("Instance"),
        3 => Just("ConfigMap"),
        6 => (0..KINDS.len()).prop_map(|at| KINDS[at].1),
    ]
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b")]
}

fn namespace() -> impl Strategy<Value = &'static str> {
    // Names of Namespaces are those of objects, so that the two meet.
    prop_oneof![Just("a"), Just("b")]
}

fn key() -> impl Strategy<Value = Key> {
    (any_kind(), namespace(), name()).prop_map(|(name_of_kind, namespace, name)| {
        let (_, kind, namespaced) = kind(name_of_kind);
        Key { kind, namespace: if namespaced { namespace } else { "" }.to_owned(), name: name.to_owned() }
    })
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => object().prop_map(Op::Apply),
        3 => key().prop_map(Op::Delete),
        1 => (0..3_usize).prop_map(Op::Late),
        1 => key().prop_map(Op::Echo),
        1 => any_kind().prop_map(Op::Unavailable),
        1 => any_kind().prop_map(Op::Available),
        1 => (any_kind(), any::<u8>()).prop_map(|(kind, missing)| Op::List(kind, missing)),
        1 => any_kind().prop_map(Op::Gone),
    ]
}

/// Numbers that an object's content is made of.
type Dice = (u8, u8, u8, u8, u8);

fn object() -> impl Strategy<Value = Value> {
    let dice: BoxedStrategy<Dice> = (0..2_u8, 0..3_u8, 0..6_u8, 0..4_u8, 0..3_u8).boxed();
    (key(), dice).prop_map(|(key, dice)| build(&key, dice))
}

fn build(key: &Key, (life, noise, owner, refers, value): Dice) -> Value {
    let (api_version, _, namespaced) = kind(key.kind);
    let own = |kind: &str, namespace: &str, name: &str, life: u8| format!("{kind}-{namespace}-{name}-{life}");
    let mut metadata = json!({
        "name": key.name,
        "uid": own(key.kind, &key.namespace, &key.name, life),
        "labels": {"noise": noise.to_string()},
    });
    // Owners are Instances and ConfigMaps, of either life, and sometimes nobody.
    let namespace = if namespaced { &key.namespace } else { "a" };
    let maker = match owner {
        0 | 1 => Some(own("Instance", namespace, "a", owner)),
        2 => Some(own("Instance", namespace, "b", 0)),
        3 => Some(own("ConfigMap", namespace, "b", 0)),
        _ => None,
    };
    if namespaced {
        metadata["namespace"] = key.namespace.clone().into();
        if let Some(uid) = maker {
            metadata["ownerReferences"] = json!([{"uid": uid, "kind": "any", "name": "any"}]);
        }
    } else if let Some(uid) = maker {
        metadata["labels"]["interlock.dev/instance-uid"] = uid.into();
    }
    if value == 2 && noise == 2 {
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    let mut object = json!({"apiVersion": api_version, "kind": key.kind, "metadata": metadata});
    let content = content(key.kind, refers, value);
    object.as_object_mut().expect("an object").extend(content.as_object().expect("an object").clone());
    object
}

fn content(kind: &str, refers: u8, value: u8) -> Value {
    let name = ["a", "b", "c"][usize::from(refers % 3)];
    match kind {
        "Instance" => json!({
            "spec": {"operatorVersion": {"name": name}, "parameters": {"x": value.to_string()},
                     "planExecution": {"planName": if refers == 3 { "deploy" } else { "" }}},
        }),
        "OperatorVersion" => json!({"spec": {"operator": {"name": name}, "version": value.to_string()}}),
        "Service" => json!({"spec": {"clusterIP": if value == 0 { "" } else { "None" }, "ports": [value]}}),
        "Ingress" => json!({"spec": {"defaultBackend": {"service": {"name": name}}, "rules": [
            {"http": {"paths": [{"path": value.to_string(), "backend": {"service": {"name": "a"}}}]}}]}}),
        "GatewayClass" => json!({"spec": {"controllerName": value.to_string()}}),
        "Gateway" => json!({"spec": {"gatewayClassName": name, "listeners": [
            {"name": "http"}, {"name": value.to_string()}]}}),
        "HTTPRoute" => json!({"spec": {
            "parentRefs": [
                {"name": name, "sectionName": (refers == 3).then_some("http")},
                {"name": "b", "namespace": "a", "sectionName": value.to_string()}],
            "rules": [
                {"backendRefs": [{"name": name}, {"name": name}]},
                {"name": (value == 1).then_some("second"), "backendRefs": [{"name": "a", "namespace": "b"}]}],
        }}),
        "ConfigMap" => json!({"data": {"x": value.to_string()}}),
        _ => json!({}),
    }
}
