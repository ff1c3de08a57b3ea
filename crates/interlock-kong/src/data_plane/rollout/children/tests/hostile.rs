//! Specs that no schema has looked at: each ends in a child or in an error that names the field.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::data_plane::rollout::drift::{differs, owns_all};

type Made = Result<(), String>;

fn made(spec: &Value) -> Made {
    let text = |error: InvalidTemplate| error.to_string();
    deployment(&edge(), spec, &blue(), SideState::Live, Some(1), Some("c")).map_err(text)?;
    for state in [SideState::Live, SideState::Preview] {
        ingress_service(&edge(), spec, state, "s").map_err(text)?;
    }
    disruption_budget(&edge(), spec, "s").map_err(text)?;
    autoscaler(&edge(), spec, "d").map_err(text)?;
    Ok(())
}

#[rstest]
#[case::nothing(json!({}), "spec.deployment.podTemplateSpec.spec.containers[name=proxy].image is not set: set it")]
#[case::no_object(json!(7), "spec.deployment.podTemplateSpec.spec.containers[name=proxy].image is not set: set it")]
#[case::template(json!({"deployment": {"podTemplateSpec": []}}), "spec.deployment.podTemplateSpec must be an object")]
#[case::template_deleted(
    with_template(json!({"$patch": "delete"})),
    "spec.deployment.podTemplateSpec.spec.containers[name=proxy].image is not set: set it"
)]
#[case::pod_spec(with_template(json!({"spec": "x"})), "spec.deployment.podTemplateSpec.spec must be an object")]
#[case::no_pod_spec(
    with_template(json!({"spec": null, "metadata": null})),
    "spec.deployment.podTemplateSpec.spec.containers[name=proxy].image is not set: set it"
)]
#[case::labels(with_template(json!({"metadata": {"labels": ["app"]}})), "spec.deployment.podTemplateSpec.metadata.labels must be an object")]
#[case::containers(with_template(json!({"spec": {"containers": {}}})), "spec.deployment.podTemplateSpec.spec.containers must be a list")]
#[case::container(with_template(json!({"spec": {"containers": [[]]}})), "spec.deployment.podTemplateSpec.spec.containers[0] must be an object")]
#[case::image(with_proxy(json!({"image": {"tag": 1}}), json!({})), "spec.deployment.podTemplateSpec.spec.containers[name=proxy].image must be a string")]
#[case::no_image(with_template(json!({"spec": {"containers": [{"name": "proxy"}]}})), "spec.deployment.podTemplateSpec.spec.containers[name=proxy].image is not set: set it")]
#[case::proxy_removed(
    with_template(json!({"spec": {"containers": [{"name": "proxy", "$patch": "delete"}]}})),
    "spec.deployment.podTemplateSpec.spec.containers[name=proxy].image is not set: set it"
)]
#[case::two_proxies(
    with_template(json!({"spec": {"containers": [{"name": "proxy", "image": "a"}, {"name": "proxy", "image": "b"}]}})),
    "spec.deployment.podTemplateSpec.spec.containers[name=proxy] is listed twice: keep one of the two"
)]
#[case::environment(with_proxy(json!({"env": [{"value": "x"}]}), json!({})), "spec.deployment.podTemplateSpec.spec.containers[name=proxy].env[0] has no name: set it")]
#[case::resources(with_proxy(json!({"resources": "big"}), json!({})), "spec.deployment.podTemplateSpec.spec.containers[name=proxy].resources must be an object")]
#[case::annotations(json!({"deployment": {"annotations": 1}}), "spec.deployment.annotations must be an object")]
#[case::an_annotation(json!({"deployment": {"annotations": {"a": 1}}}), "spec.deployment.annotations[a] must be a string")]
#[case::service_name(with_ingress(json!({"name": "../secrets/x"})), "spec.network.services.ingress.name must be at most 63 lowercase letters, digits and dashes, with a letter first and no dash last")]
#[case::long_service_name(with_ingress(json!({"name": "a".repeat(64)})), "spec.network.services.ingress.name must be at most 63 lowercase letters, digits and dashes, with a letter first and no dash last")]
#[case::service_type(with_ingress(json!({"type": {}})), "spec.network.services.ingress.type must be a string")]
#[case::ports(with_ingress(json!({"ports": 80})), "spec.network.services.ingress.ports must be a list")]
#[case::port(with_ingress(json!({"ports": [{}]})), "spec.network.services.ingress.ports[0].port must be a number from 1 to 65535")]
#[case::high_port(with_ingress(json!({"ports": [{"port": 65536}]})), "spec.network.services.ingress.ports[0].port must be a number from 1 to 65535")]
#[case::target_port(with_ingress(json!({"ports": [{"port": 1, "targetPort": []}]})), "spec.network.services.ingress.ports[0].targetPort must be a number from 1 to 65535")]
#[case::node_port(with_ingress(json!({"ports": [{"port": 1, "nodePort": -1}]})), "spec.network.services.ingress.ports[0].nodePort must be a number from 1 to 65535")]
#[case::budget(with_rest(json!({"resources": {"podDisruptionBudget": 1}})), "spec.resources.podDisruptionBudget must be an object")]
#[case::spec_of_the_budget(with_rest(json!({"resources": {"podDisruptionBudget": {"spec": []}}})), "spec.resources.podDisruptionBudget.spec must be an object")]
#[case::autoscaler(with_rest(json!({"deployment": {"scaling": {"horizontal": 3}}})), "spec.deployment.scaling.horizontal must be an object")]
fn is_refused_by_field(#[case] spec: Value, #[case] expected: &str) {
    assert_eq!(made(&spec), Err(expected.to_owned()));
}

fn with_rest(rest: Value) -> Value {
    let mut spec = with_proxy(json!({}), json!({}));
    json_patch::merge(&mut spec, &rest);
    spec
}

fn with_ingress(ingress: Value) -> Value {
    with_rest(json!({"network": {"services": {"ingress": ingress}}}))
}

#[rstest]
#[case::no_uid(json!({"metadata": {"namespace": "kong", "name": "edge"}}), "metadata.uid is not set: set it")]
#[case::long(
    json!({"metadata": {"namespace": "kong", "name": "e".repeat(64), "uid": "u"}}),
    "metadata.name is longer than 63 characters, the longest value of a label: choose a shorter name"
)]
#[case::empty_selector(overridden(""), OVERRIDE)]
#[case::no_key(overridden("app=a,=b"), OVERRIDE)]
#[case::two_values(overridden("app=a=b"), OVERRIDE)]
#[case::trailing_comma(overridden("app=a,"), OVERRIDE)]
fn owners_are_refused(#[case] object: Value, #[case] expected: &str) {
    assert_eq!(
        DataPlaneOwner::of(&object, None).map_err(|error| error.to_string()),
        Err(expected.to_owned())
    );
}

const OVERRIDE: &str = "metadata.annotations[gateway-operator.konghq.com/service-selector-override] must be \
     KEY=VALUE, or several between commas: correct or remove it";

fn overridden(selector: &str) -> Value {
    json!({"metadata": {"namespace": "kong", "name": "edge", "uid": "u-1", "annotations": {
        "gateway-operator.konghq.com/service-selector-override": selector,
    }}})
}

#[test]
fn absurd_names_are_cut_in_errors() {
    let spec = with_proxy(json!({"x".repeat(100_000): {"$patch": "y".repeat(100_000)}}), json!({}));
    let error = made(&spec).unwrap_err();
    assert!(error.len() < 400, "{} bytes", error.len());
    let name = "é".repeat(100_000);
    let spec = with_template(json!({"spec": {"containers": [{"name": name}, {"name": name}]}}));
    let error = made(&spec).unwrap_err();
    assert!(error.len() < 400 && error.contains("..."), "{} bytes", error.len());
}

/// Templates of more than 200 KB are made as others are; `tests/hostile/large.rs` bounds the time.
#[rstest]
#[case::variables("env", |i| json!({"name": format!("V{i}"), "value": "$(V1)"}), 20_000)]
#[case::repeated_variables("env", |i| json!({"name": format!("V{}", i % 100), "value": "x"}), 100)]
#[case::mounts("volumeMounts", |i| json!({"name": "v", "mountPath": format!("/{i}")}), 20_000)]
#[case::ports("ports", |i| json!({"containerPort": i, "name": format!("p{i}")}), 20_000)]
fn large_lists(#[case] field: &str, #[case] element: fn(usize) -> Value, #[case] expected: usize) {
    let list: Vec<Value> = (1..=20_000).map(element).collect();
    let spec = with_proxy(json!({field: list}), json!({}));
    assert!(spec.to_string().len() > 200 << 10);
    let body = live(&spec);
    let made = body["spec"]["template"]["spec"]["containers"][0][field].as_array().unwrap();
    let own = live(&with_proxy(json!({}), json!({})));
    let generated = own["spec"]["template"]["spec"]["containers"][0][field].as_array().unwrap();
    let users = made.iter().filter(|element| !generated.contains(element)).count();
    assert_eq!(users, expected);
}

fn any_value() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "proxy",
        "delete",
        "replace",
        "cluster-certificate",
        "A",
        "$(A)",
        "",
        "kong:3.9",
        "TCP",
        "8000",
        "1Gi",
        "é",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1_i64..70_000).prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "name",
        "$patch",
        "containers",
        "env",
        "ports",
        "volumes",
        "volumeMounts",
        "readinessProbe",
        "httpGet",
        "exec",
        "secret",
        "value",
        "containerPort",
        "port",
        "protocol",
        "mountPath",
        "labels",
        "annotations",
        "image",
        "resources",
        "limits",
        "metadata",
        "spec",
        "type",
        "targetPort",
        "nodePort",
    ]);
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a spec is, it ends in children or in an error; the children of one spec are the same bytes, and none
    /// differs from itself.
    #[test]
    fn any_spec_is_made_or_refused(template in any_value(), proxy in any_value(), pod in any_value(), rest in any_value()) {
        let mut named = with_proxy(json!({}), json!({}));
        json_patch::merge(&mut named["deployment"]["podTemplateSpec"]["spec"]["containers"][0], &proxy);
        let mut around = with_proxy(json!({}), json!({}));
        json_patch::merge(&mut around["deployment"]["podTemplateSpec"]["spec"], &pod);
        let mut beside = with_proxy(json!({}), json!({}));
        for path in ["hardened", "labels", "annotations", "scaling"] {
            beside["deployment"][path] = rest.clone();
        }
        beside["network"]["services"]["ingress"] = rest.clone();
        beside["resources"]["podDisruptionBudget"]["spec"] = rest.clone();
        for spec in [with_template(template), named, around, beside, rest] {
            let make = || deployment(&edge(), &spec, &blue(), SideState::Live, Some(1), Some("c"));
            let _ = made(&spec);
            if let Ok(body) = make() {
                prop_assert_eq!(make().unwrap().to_string(), body.to_string());
                prop_assert_eq!(differs(&body, &body), None, "{}", body);
            }
            if let Ok(body) = ingress_service(&edge(), &spec, SideState::Live, "s") {
                prop_assert_eq!(differs(&body, &body), None, "{}", body);
            }
        }
    }

    /// No two objects make the comparisons fail.
    #[test]
    fn any_objects_are_compared(wanted in any_value(), found in any_value()) {
        let _ = differs(&wanted, &found);
        let found = json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": found}]}});
        let _ = owns_all(&found, &wanted, "m");
    }
}
