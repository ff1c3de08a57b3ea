//! Random objects of a small world, and what happens to them.

use interlock_core::api::stamp::SpecHash;
use interlock_core::topology::KindName;
use interlock_kong::api as kong;
use interlock_kong::data_plane::labelled::{
    DATA_PLANE_AUTOSCALERS, DATA_PLANE_DEPLOYMENTS, DATA_PLANE_DISRUPTION_BUDGETS, DATA_PLANE_ENDPOINTS,
    DATA_PLANE_PODS, DATA_PLANE_SERVICES, FLAVOR_SOURCES, GUARDED_DEPLOYMENTS, GUARDED_SERVICES, LABELLED,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::reference::Key;

/// `apiVersion`, kind, and whether it lives in namespaces: every declared kind, and two that are
/// declared by nobody.
pub const KINDS: [(&str, &str, bool); 46] = [
    ("kudo.dev/v1beta1", "Instance", true),
    ("kudo.dev/v1beta1", "OperatorVersion", true),
    ("kudo.dev/v1beta1", "Operator", true),
    ("interlock.dev/v1alpha1", "Interlock", false),
    ("interlock.dev/v1alpha1", "Override", false),
    ("v1", "Namespace", false),
    ("v1", "Service", true),
    ("networking.k8s.io/v1", "Ingress", true),
    ("gateway.networking.k8s.io/v1", "GatewayClass", false),
    ("gateway.networking.k8s.io/v1", "Gateway", true),
    ("gateway.networking.k8s.io/v1", "HTTPRoute", true),
    ("gateway.networking.k8s.io/v1", "GRPCRoute", true),
    ("gateway.networking.k8s.io/v1", "TLSRoute", true),
    ("gateway.networking.k8s.io/v1", "TCPRoute", true),
    ("gateway.networking.k8s.io/v1", "UDPRoute", true),
    ("gateway.networking.k8s.io/v1", "ListenerSet", true),
    ("gateway.networking.x-k8s.io/v1alpha1", "XListenerSet", true),
    ("gateway.networking.k8s.io/v1", "ReferenceGrant", true),
    ("kuadrant.io/v1", "RateLimitPolicy", true),
    ("kuadrant.io/v1", "AuthPolicy", true),
    ("kuadrant.io/v1", "TLSPolicy", true),
    ("kuadrant.io/v1", "DNSPolicy", true),
    ("gateway.networking.k8s.io/v1", "BackendTLSPolicy", true),
    ("gateway.envoyproxy.io/v1alpha1", "ClientTrafficPolicy", true),
    ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy", true),
    ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy", true),
    ("gateway.envoyproxy.io/v1alpha1", "EnvoyExtensionPolicy", true),
    ("gateway.envoyproxy.io/v1alpha1", "EnvoyPatchPolicy", true),
    ("v1", "LimitsConfigMap", true),
    ("authorino.kuadrant.io/v1beta3", "AuthConfig", true),
    ("limitador.kuadrant.io/v1alpha1", "Limitador", true),
    ("kuadrant.io/v1beta1", "Kuadrant", true),
    ("gateway.envoyproxy.io/v1alpha1", "EnvoyProxy", true),
    (kong::API_VERSION, "DataPlane", true),
    (kong::API_VERSION, "ControlPlane", true),
    ("apps/v1", GUARDED_DEPLOYMENTS.name, true),
    ("v1", GUARDED_SERVICES.name, true),
    ("v1", FLAVOR_SOURCES.name, true),
    ("apps/v1", DATA_PLANE_DEPLOYMENTS.name, true),
    ("v1", DATA_PLANE_SERVICES.name, true),
    ("autoscaling/v2", DATA_PLANE_AUTOSCALERS.name, true),
    ("policy/v1", DATA_PLANE_DISRUPTION_BUDGETS.name, true),
    ("v1", DATA_PLANE_PODS.name, true),
    ("discovery.k8s.io/v1", DATA_PLANE_ENDPOINTS.name, true),
    ("v1", "ConfigMap", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
];

/// Those of gateways that run Kong, which refer to each other and to nobody else.
const KONG: [&str; 6] = [
    "DataPlane",
    "ControlPlane",
    GUARDED_DEPLOYMENTS.name,
    GUARDED_SERVICES.name,
    FLAVOR_SOURCES.name,
    DATA_PLANE_DEPLOYMENTS.name,
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

/// The same as the topology calls it.
pub fn kind_name(name: &str) -> KindName {
    let (api_version, kind, _) = kind(name);
    KindName::new(api_version.split_once('/').map_or("", |(group, _)| group), kind)
}

/// What an object is watched as: labelled ones go by a name of their own.
pub fn kind_of(object: &Value) -> &'static str {
    let labelled = LABELLED.iter().find(|kind| object["kind"] == kind.kind && kind.holds(object));
    kind(labelled.map_or_else(|| object["kind"].as_str().expect("a kind"), |kind| kind.name)).1
}

/// The version of an object.
pub fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0)
}

pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("objects have uids")
}

fn any_kind() -> impl Strategy<Value = &'static str> {
    // Instances and what they make are what most events are about.
    prop_oneof![
        4 => Just("Instance"),
        3 => Just("ConfigMap"),
        4 => (0..KONG.len()).prop_map(|at| KONG[at]),
        7 => (0..KINDS.len()).prop_map(|at| KINDS[at].1),
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
    let labelled = LABELLED.iter().find(|labelled| labelled.name == key.kind);
    if let Some(labelled) = labelled {
        metadata["labels"][labelled.label] = labelled.value.unwrap_or("yes").into();
    }
    let served = labelled.map_or(key.kind, |labelled| labelled.kind);
    let mut object = json!({"apiVersion": api_version, "kind": served, "metadata": metadata});
    json_patch::merge(&mut object, &content(key.kind, refers, value));
    object
}

/// Every content that objects of a kind can have.
pub fn contents(kind: &'static str) -> impl Iterator<Item = Value> {
    let key = Key { kind, namespace: "a".to_owned(), name: "a".to_owned() };
    (0..4)
        .flat_map(|refers| (0..3).map(move |value| (refers, value)))
        .map(move |(refers, value)| build(&key, (0, 0, 0, refers, value)))
}

fn serving(data_plane: &str, value: u8) -> Value {
    json!({
        "metadata": {"labels": {"app": data_plane}},
        "status": {"podIP": value.to_string()},
        "endpoints": [{"targetRef": {"name": value.to_string()}}],
    })
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
        "Override" => json!({"spec": {"objectUID": name, "rule": value.to_string(), "user": name}}),
        "Interlock" => json!({"spec": {"rules": [{"group": "freeze", "action": value}]}}),
        "DataPlane" => {
            let mut object = json!({
                "spec": {"deployment": {"replicas": value, "podTemplateSpec": template(refers, name)}},
                "status": {"selector": value.to_string()},
            });
            object["metadata"]["annotations"] = match refers {
                // What was live before came from another source.
                1 => json!({"interlock.dev/last-applied-spec": stamp(&value.to_string())}),
                2 => json!({"interlock.dev/config-producer": name}),
                3 => json!({"interlock.dev/config-producer": "b/a"}),
                _ => json!({}),
            };
            object
        }
        "GuardedDeployment" => {
            let mut template = template(refers, name);
            if refers > 1 {
                let told = if value == 0 { name.to_owned() } else { format!("b/{name}") };
                let admin = match refers {
                    2 => json!({"name": "controller", "args": [format!("--kong-admin-svc={told}")]}),
                    _ => json!({"name": "controller", "env": [
                        {"name": "CONTROLLER_KONG_ADMIN_SVC", "value": told}]}),
                };
                template["spec"]["containers"].as_array_mut().expect("containers").push(admin);
            }
            // A controller may be named as its own.
            let producer = (value == 1).then(|| json!({"interlock.dev/config-producer": "a"}));
            let rolled_out = u8::from(value == 2);
            json!({
                "metadata": {"annotations": producer.unwrap_or_else(|| json!({}))},
                "spec": {"replicas": 1, "template": template},
                "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": rolled_out,
                           "availableReplicas": rolled_out},
            })
        }
        "ControlPlane" => match value {
            0 => json!({"spec": {"dataplane": name}}),
            _ => json!({"spec": {"dataplane": {"ref": {"name": name}}, "extensions": [value]}}),
        },
        "DataPlaneDeployment" | "DataPlaneService" | "DataPlaneAutoscaler" | "DataPlaneDisruptionBudget" => {
            json!({
                // Others may own it as well, and who controls it need not be a DataPlane.
                "metadata": {"ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "any", "controller": refers == 3},
                    {"apiVersion": kong::API_VERSION, "kind": "DataPlane", "name": name, "uid": "any",
                     "controller": refers != 3},
                ]},
                "spec": {"replicas": value, "selector": {"app": "a"}},
                "status": {"readyReplicas": value},
            })
        }
        "DataPlanePod" | "DataPlaneEndpointSlice" => serving(name, value),
        "GuardedService" => json!({"spec": {"selector": {"app": value.to_string()}}}),
        "FlavorSource" => json!({"data": {"flavor": value.to_string()}}),
        "HTTPRoute" | "GRPCRoute" | "TLSRoute" => json!({"spec": {
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

/// Pods of a gateway, whose flavor is written, in a ConfigMap or in a Secret.
fn template(refers: u8, name: &str) -> Value {
    let flavor = match refers {
        0 => json!({"value": "expressions"}),
        1 => json!({"valueFrom": {"secretKeyRef": {"name": name, "key": "flavor"}}}),
        _ => json!({"valueFrom": {"configMapKeyRef": {"name": name, "key": "flavor"}}}),
    };
    let mut variable = json!({"name": "KONG_ROUTER_FLAVOR"});
    json_patch::merge(&mut variable, &flavor);
    json!({"spec": {"containers": [{"name": "proxy", "image": "kong:3.6", "env": [variable]}]}})
}

/// What the live pods of a DataPlane with that selector were made from: a flavor of a ConfigMap.
fn stamp(selector: &str) -> String {
    let spec = json!({"deployment": {"podTemplateSpec": template(2, "b")}});
    let hash = SpecHash::of(&spec.to_string());
    json!({"v": 1, "hash": hash, "spec": spec, "selector": selector}).to_string()
}
