//! Deployments: the generated base, the user's template over it, and what is refused.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// The whole of one, so that a change of any generated field is seen here.
#[test]
fn a_deployment_as_a_whole() {
    let selector = Colour::Blue.selector("u-1");
    let body = live(&with_proxy(json!({}), json!({})));
    let env =
        |name: &str| named(&body["spec"]["template"]["spec"]["containers"][0]["env"], name)["value"].clone();
    assert_eq!(env("KONG_DATABASE"), "off");
    assert_eq!(env("KONG_ADMIN_LISTEN"), "0.0.0.0:8444 ssl reuseport backlog=16384");
    assert_eq!(env("KONG_NGINX_ADMIN_SSL_VERIFY_CLIENT"), "on");
    assert_eq!(env("KONG_ROUTER_FLAVOR"), Value::Null, "the flavor is the user's alone");
    let mut body = body;
    body["spec"]["template"]["spec"]["containers"][0]["env"] = json!("above");
    let labels = json!({"app": "edge", "gateway-operator.konghq.com/selector": selector});
    similar_asserts::assert_eq!(
        body,
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "dataplane-edge-blue",
                "namespace": "kong",
                "labels": {
                    "app": "edge",
                    "gateway-operator.konghq.com/managed-by": "dataplane",
                    "gateway-operator.konghq.com/dataplane-deployment-state": "live",
                    "gateway-operator.konghq.com/selector": selector,
                },
                "ownerReferences": owner_references(),
            },
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "restartPolicy": "Always",
                        "terminationGracePeriodSeconds": 30,
                        "dnsPolicy": "ClusterFirst",
                        "schedulerName": "default-scheduler",
                        "volumes": [{"name": "cluster-certificate", "secret": {"secretName": "edge-certificate", "items": [
                            {"key": "tls.crt", "path": "tls.crt"},
                            {"key": "tls.key", "path": "tls.key"},
                            {"key": "ca.crt", "path": "ca.crt"},
                        ]}}],
                        "containers": [{
                            "name": "proxy",
                            "image": "kong:3.9",
                            "imagePullPolicy": "IfNotPresent",
                            "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File",
                            "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "kong quit"]}}},
                            "ports": [
                                {"name": "proxy", "containerPort": 8000, "protocol": "TCP"},
                                {"name": "proxy-ssl", "containerPort": 8443, "protocol": "TCP"},
                                {"name": "metrics", "containerPort": 8100, "protocol": "TCP"},
                                {"name": "admin-ssl", "containerPort": 8444, "protocol": "TCP"},
                            ],
                            "readinessProbe": {
                                "httpGet": {"path": "/status", "port": 8100, "scheme": "HTTP"},
                                "initialDelaySeconds": 5, "periodSeconds": 10, "timeoutSeconds": 1,
                                "successThreshold": 1, "failureThreshold": 3,
                            },
                            "resources": {
                                "requests": {"cpu": "100m", "memory": "20Mi"},
                                "limits": {"cpu": "2000m", "memory": "2000Mi"},
                            },
                            "env": "above",
                            "volumeMounts": [
                                {"name": "cluster-certificate", "mountPath": "/var/cluster-certificate", "readOnly": true},
                            ],
                        }],
                    },
                },
            },
        })
    );
}

#[rstest]
#[case::live_blue(Colour::Blue, SideState::Live, "dataplane-edge-blue", "live")]
#[case::live_green(Colour::Green, SideState::Live, "dataplane-edge-green", "live")]
#[case::preview_blue(Colour::Blue, SideState::Preview, "dataplane-edge-blue", "preview")]
#[case::preview_green(Colour::Green, SideState::Preview, "dataplane-edge-green", "preview")]
fn sides(#[case] colour: Colour, #[case] state: SideState, #[case] name: &str, #[case] label: &str) {
    let identity = edge().identity(colour);
    let spec = with_proxy(json!({}), json!({}));
    let make = |state, replicas| deployment(&edge(), &spec, &identity, state, replicas, Some("c")).unwrap();
    let body = make(state, None);
    assert_eq!(body["metadata"]["name"], name);
    assert_eq!(body["metadata"]["labels"]["gateway-operator.konghq.com/dataplane-deployment-state"], label);
    assert_eq!(body["spec"]["selector"]["matchLabels"], body["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(body["spec"].get("replicas"), None, "an autoscaler owns their number");
    let template = |body: &Value| body["spec"]["template"].clone();
    let other = make(if state == SideState::Live { SideState::Preview } else { SideState::Live }, Some(0));
    assert_eq!(template(&other), template(&body), "neither a promotion nor a number of pods touches them");
    assert_eq!(make(state, None).to_string(), body.to_string());
}

#[test]
fn a_deployment_of_another_operator_keeps_its_name_and_selector() {
    let identity =
        DeploymentIdentity { name: "dataplane-edge-x7k2p".to_owned(), selector: "3f0e".to_owned() };
    let spec = with_proxy(json!({}), json!({}));
    let body = deployment(&edge(), &spec, &identity, SideState::Live, None, None).unwrap();
    assert_eq!(body["metadata"]["name"], "dataplane-edge-x7k2p");
    assert_eq!(
        body["spec"]["selector"]["matchLabels"],
        json!({"app": "edge", "gateway-operator.konghq.com/selector": "3f0e"})
    );
}

/// A value of the container `proxy`, or of the pod, after the merge.
#[rstest]
#[case::image(with_proxy(json!({"image": "registry.local:5000/kong@sha256:0f"}), json!({})), "image", json!("registry.local:5000/kong@sha256:0f"))]
#[case::pulled_once(with_proxy(json!({"image": "registry.local:5000/kong@sha256:0f"}), json!({})), "imagePullPolicy", json!("IfNotPresent"))]
#[case::pulled_always(with_proxy(json!({"image": "registry.local:5000/kong"}), json!({})), "imagePullPolicy", json!("Always"))]
#[case::pulled_as_said(with_proxy(json!({"image": "kong", "imagePullPolicy": "Never"}), json!({})), "imagePullPolicy", json!("Never"))]
#[case::resources_by_name(
    with_proxy(json!({"resources": {"limits": {"cpu": "4"}, "requests": {"memory": "1Gi"}}}), json!({})), "resources",
    json!({"limits": {"cpu": "4", "memory": "2000Mi"}, "requests": {"cpu": "100m", "memory": "1Gi"}})
)]
#[case::a_probe_for_configurations(
    with_proxy(json!({"readinessProbe": {"httpGet": {"path": "/status/ready"}}}), json!({})), "readinessProbe.httpGet",
    json!({"path": "/status/ready", "port": 8100, "scheme": "HTTP"})
)]
#[case::no_probe(with_template(json!({"spec": {"containers": [{"name": "proxy", "image": "kong", "readinessProbe": {}}]}})), "readinessProbe", Value::Null)]
#[case::another_hook(
    with_proxy(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 15}}}}), json!({})), "lifecycle",
    json!({"preStop": {"sleep": {"seconds": 15}}})
)]
#[case::not_hardened(with_proxy(json!({}), json!({})), "securityContext", Value::Null)]
fn the_container_proxy(#[case] spec: Value, #[case] path: &str, #[case] expected: Value) {
    let body = live(&spec);
    let container = named(&body["spec"]["template"]["spec"]["containers"], "proxy");
    let found = path.split('.').fold(container, |value, name| &value[name]);
    assert_eq!(*found, expected);
}

#[test]
fn a_sidecar_may_be_listed_first() {
    let body = live(&with_template(json!({"spec": {"containers": [
        {"name": "log", "image": "fluent-bit", "env": [{"name": "KONG_PLUGINS", "value": "mine"}]},
        {"name": "proxy", "image": "kong:3.9", "volumeMounts": [{"name": "extra", "mountPath": "/extra"}]},
    ], "volumes": [{"name": "extra", "emptyDir": {}}, {"name": "cluster-certificate"}]}})));
    let pod = &body["spec"]["template"]["spec"];
    assert_eq!(names(&pod["containers"]), ["log", "proxy"]);
    let log = named(&pod["containers"], "log");
    assert_eq!(
        *log,
        json!({"name": "log", "image": "fluent-bit", "env": [{"name": "KONG_PLUGINS", "value": "mine"}]})
    );
    assert_eq!(names(&pod["volumes"]), ["extra", "cluster-certificate"]);
    let certificate = named(&pod["volumes"], "cluster-certificate");
    assert_eq!(
        certificate["secret"]["secretName"], "edge-certificate",
        "an empty volume keeps the generated source"
    );
    let mounts = &named(&pod["containers"], "proxy")["volumeMounts"];
    assert_eq!(names(mounts), ["extra", "cluster-certificate"]);
}

#[test]
fn variables_keep_the_users_order_after_the_generated_ones() {
    let body = live(&with_proxy(
        json!({"env": [
            {"name": "ZONE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "KONG_LOG_LEVEL", "value": "debug"},
            {"name": "KONG_ADMIN_LISTEN", "value": "off"},
            {"name": "A_PATH", "value": "$(ZONE)/$(KONG_LOG_LEVEL)"},
            {"name": "KONG_PROXY_LISTEN", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        ]}),
        json!({}),
    ));
    let env = &body["spec"]["template"]["spec"]["containers"][0]["env"];
    let all = names(env);
    let users = ["ZONE", "KONG_LOG_LEVEL", "KONG_ADMIN_LISTEN", "A_PATH", "KONG_PROXY_LISTEN"];
    assert!(all.ends_with(&users), "{all:?}");
    let generated = &all[..all.len() - users.len()];
    assert!(generated.is_sorted(), "{generated:?}");
    assert!(
        generated.iter().all(|name| !users.contains(name)),
        "a variable of the user's takes the place of ours"
    );
    let listen = named(env, "KONG_PROXY_LISTEN");
    assert_eq!(listen.get("value"), None, "a variable has a value or a source");
}

#[rstest]
#[case::enabled(json!("enabled"), true)]
#[case::disabled(json!("disabled"), false)]
#[case::absent(Value::Null, false)]
fn hardened(#[case] value: Value, #[case] expected: bool) {
    let mut spec = with_proxy(json!({"securityContext": {"runAsUser": 7}}), json!({}));
    spec["deployment"]["hardened"] = value;
    let body = live(&spec);
    let pod = &body["spec"]["template"]["spec"];
    let proxy = &pod["containers"][0];
    assert_eq!(proxy["securityContext"]["readOnlyRootFilesystem"] == true, expected);
    assert_eq!(proxy["securityContext"]["runAsUser"], 7, "the user's wins");
    assert_eq!(named(&proxy["env"], "KONG_PREFIX")["value"] == "/var/kong", expected);
    assert_eq!(names(&pod["volumes"]).contains(&"kong-tmp"), expected);
    assert_eq!(names(&proxy["volumeMounts"]).contains(&"kong-prefix"), expected);
}

#[test]
fn labels_and_annotations_are_the_users_but_the_reserved_ones() {
    let mut spec = with_template(json!({
        "metadata": {
            "labels": {"team": "edge", "app": "other", "gateway-operator.konghq.com/selector": "other"},
            "annotations": {"note": "x"}, "creationTimestamp": null,
        },
        "spec": {"containers": [{"name": "proxy", "image": "kong"}]},
    }));
    let maps = json!({"team": "edge", "app": "x", "deployment.kubernetes.io/revision": "9",
        "gateway-operator.konghq.com/dataplane-deployment-state": "preview", "gone": null});
    spec["deployment"]["labels"] = maps.clone();
    spec["deployment"]["annotations"] = maps;
    let body = live(&spec);
    let selector = Colour::Blue.selector("u-1");
    assert_eq!(body["metadata"]["annotations"], json!({"team": "edge"}));
    assert_eq!(body["metadata"]["labels"]["team"], "edge");
    assert_eq!(body["metadata"]["labels"]["app"], "edge");
    assert_eq!(body["metadata"]["labels"]["gateway-operator.konghq.com/dataplane-deployment-state"], "live");
    assert_eq!(body["metadata"]["labels"].get("gone"), None);
    assert_eq!(
        body["spec"]["template"]["metadata"],
        json!({
            "labels": {"team": "edge", "app": "edge", "gateway-operator.konghq.com/selector": selector},
            "annotations": {"note": "x"},
        })
    );
}

#[rstest]
#[case::none(json!([]), None, false, json!({"secretName": "edge-certificate"}))]
#[case::empty(json!([{"name": "cluster-certificate"}]), None, false, json!({"secretName": "edge-certificate"}))]
#[case::a_secret(
    json!([{"name": "x", "emptyDir": {}}, {"name": "cluster-certificate", "secret": {"secretName": "mine"}}]),
    Some("mine"), true, json!({"secretName": "mine"})
)]
#[case::a_driver(json!([{"name": "cluster-certificate", "csi": {"driver": "csi.cert-manager.io"}}]), None, true, Value::Null)]
#[case::taken_away(json!([{"name": "cluster-certificate", "secret": null}]), None, false, Value::Null)]
#[case::removed(json!([{"name": "cluster-certificate", "$patch": "delete"}]), None, false, Value::Null)]
fn certificates(
    #[case] volumes: Value,
    #[case] secret: Option<&str>,
    #[case] brought: bool,
    #[case] source: Value,
) {
    let spec = with_proxy(json!({}), json!({"volumes": volumes}));
    assert_eq!(certificate_of(&spec), secret);
    assert_eq!(brings_certificate(&spec), brought);
    let body = live(&spec);
    let mut volume = named(&body["spec"]["template"]["spec"]["volumes"], "cluster-certificate").clone();
    if let Some(secret) = volume.get_mut("secret").and_then(Value::as_object_mut) {
        secret.remove("items");
    }
    assert_eq!(volume["secret"], source);
}

#[rstest]
#[case::made(json!([]), Some("made"), true)]
#[case::brought(json!([{"name": "cluster-certificate", "secret": {"secretName": "mine"}}]), None, true)]
#[case::neither(json!([]), None, false)]
fn without_a_certificate_the_admin_api_is_off(
    #[case] volumes: Value,
    #[case] certificate: Option<&str>,
    #[case] serves: bool,
) {
    let spec = with_proxy(json!({}), json!({"volumes": volumes}));
    let body = deployment(&edge(), &spec, &blue(), SideState::Live, None, certificate).unwrap();
    let proxy = &body["spec"]["template"]["spec"]["containers"][0];
    let listen = &named(&proxy["env"], "KONG_ADMIN_LISTEN")["value"];
    assert_eq!(*listen != "off", serves);
    assert_eq!(names(&proxy["env"]).contains(&"KONG_ADMIN_SSL_CERT"), serves);
    assert_eq!(!proxy["volumeMounts"].as_array().unwrap().is_empty(), serves);
}
