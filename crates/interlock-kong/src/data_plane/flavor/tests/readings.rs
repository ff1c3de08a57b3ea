use rstest::rstest;
use serde_json::{Value, json};

use super::world::{config_map, data_plane, read};
use crate::data_plane::flavor::reading::FlavorReading;

fn cluster() -> Vec<Value> {
    vec![
        config_map(
            "router",
            json!({"flavor": "expressions", "ROUTER_FLAVOR": " traditional\n", "bad": "s3cret"}),
        ),
        config_map("late", json!({"FLAVOR": "expressions"})),
        config_map("empty", json!({})),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "kong", "name": "router"},
            "data": {"flavor": "dHJhZGl0aW9uYWw="},
        }),
    ]
}

fn reading(container: Value) -> FlavorReading {
    let mut container = container;
    container["name"] = json!("proxy");
    if container.get("image").is_none() {
        container["image"] = json!("kong:3.9");
    }
    read(&data_plane(container, false), &cluster()).spec.reading
}

const FLAVOR: &str = "KONG_ROUTER_FLAVOR";
const DEFAULT: &str = "traditional_compatible";

fn key(kind: &str, name: &str, key: &str, optional: bool) -> Value {
    json!({"name": FLAVOR, "valueFrom": {kind: {"name": name, "key": key, "optional": optional}}})
}

#[rstest]
#[case::nothing(json!([]), DEFAULT)]
#[case::value(json!([{"name": FLAVOR, "value": " expressions\n"}]), "expressions")]
#[case::empty(json!([{"name": FLAVOR, "value": ""}]), "\"\", which is no flavor")]
#[case::absent_value(json!([{"name": FLAVOR}]), "\"\", which is no flavor")]
#[case::typo(json!([{"name": FLAVOR, "value": "expression"}]), "\"expression\", which is no flavor")]
#[case::case_matters(json!([{"name": FLAVOR, "value": "Expressions"}]), "\"Expressions\", which is no flavor")]
#[case::the_last_counts(json!([{"name": FLAVOR, "value": "traditional"}, {"name": FLAVOR, "value": "expressions"}]), "expressions")]
#[case::reference(json!([{"name": "A", "value": "press"}, {"name": FLAVOR, "value": "ex$(A)ions"}]), "expressions")]
#[case::forward_reference(json!([{"name": FLAVOR, "value": "$(A)"}, {"name": "A", "value": "expressions"}]), "\"$(A)\", which is no flavor")]
#[case::escaped(json!([{"name": "A", "value": "expressions"}, {"name": FLAVOR, "value": "$$(A)"}]), "\"$(A)\", which is no flavor")]
#[case::to_itself(json!([{"name": FLAVOR, "value": "expressions"}, {"name": FLAVOR, "value": "$(KONG_ROUTER_FLAVOR)"}]), "expressions")]
#[case::what_lua_calls_a_space(json!([{"name": FLAVOR, "value": "\t\u{b}expressions\r\n"}]), "expressions")]
#[case::no_space_for_lua(json!([{"name": FLAVOR, "value": "\u{a0}expressions"}]), "\"\\u{a0}expressions\", which is no flavor")]
#[case::vault(json!([{"name": FLAVOR, "value": "{vault://env/x}"}]), "unknown: it comes from a vault")]
#[case::config_map(json!([key("configMapKeyRef", "router", "flavor", false)]), "expressions")]
#[case::secret_decoded_once(json!([key("secretKeyRef", "router", "flavor", false)]), "traditional")]
#[case::hidden(json!([key("configMapKeyRef", "router", "bad", false)]), "*** (of ConfigMap kong/router key \"bad\"), which is no flavor")]
#[case::no_key(json!([key("configMapKeyRef", "router", "lost", false)]), "unknown: ConfigMap kong/router key \"lost\" not found")]
#[case::optional_key(json!([key("configMapKeyRef", "router", "lost", true)]), DEFAULT)]
#[case::optional_keeps_what_is_there(json!([{"name": FLAVOR, "value": "traditional"}, key("configMapKeyRef", "router", "lost", true)]), "traditional")]
#[case::not_seen(json!([key("secretKeyRef", "other", "flavor", true)]), "unknown: it comes from Secret kong/other key \"flavor\", which cannot be read here")]
#[case::own_label(json!([{"name": FLAVOR, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['flavor']"}}}]), "expressions")]
#[case::pod_field(json!([{"name": FLAVOR, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), "unknown: it comes from fieldRef metadata.name")]
#[case::resource(json!([{"name": FLAVOR, "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]), "unknown: it comes from a valueFrom that is not known here")]
#[case::unknown_reference(json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": FLAVOR, "value": "$(A)"}]), "unknown: it comes from fieldRef spec.nodeName")]
#[case::file(json!([{"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/run/flavor"}]), "unknown: it comes from the file /run/flavor")]
#[case::file_and_value(json!([{"name": FLAVOR, "value": "expressions"}, {"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/run/flavor"}]), "none, as KONG_ROUTER_FLAVOR and KONG_ROUTER_FLAVOR_FILE are both set")]
#[case::file_and_empty(json!([{"name": FLAVOR, "value": ""}, {"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/run/flavor"}]), "unknown: it comes from the file /run/flavor")]
#[case::no_file(json!([{"name": FLAVOR, "value": "expressions"}, {"name": "KONG_ROUTER_FLAVOR_FILE", "value": ""}]), "expressions")]
fn by_env(#[case] env: Value, #[case] effective: &str) {
    assert_eq!(reading(json!({"env": env})).effective.to_string(), effective);
}

#[rstest]
#[case::prefix(json!([{"prefix": "KONG_", "configMapRef": {"name": "router"}}]), "traditional")]
#[case::longer_prefix(json!([{"prefix": "KONG_ROUTER_", "configMapRef": {"name": "late"}}]), "expressions")]
#[case::later_wins(json!([{"prefix": "KONG_", "configMapRef": {"name": "router"}}, {"prefix": "KONG_ROUTER_", "configMapRef": {"name": "late"}}]), "expressions")]
#[case::other_prefix(json!([{"prefix": "NGINX_", "configMapRef": {"name": "lost"}}]), DEFAULT)]
#[case::no_key(json!([{"configMapRef": {"name": "empty"}}]), DEFAULT)]
#[case::not_seen(json!([{"configMapRef": {"name": "lost", "optional": true}}]), "unknown: it comes from ConfigMap kong/lost key \"KONG_ROUTER_FLAVOR\", which cannot be read here")]
#[case::neither(json!([{"prefix": "KONG_"}]), DEFAULT)]
fn by_env_from(#[case] env_from: Value, #[case] effective: &str) {
    assert_eq!(reading(json!({"envFrom": env_from})).effective.to_string(), effective);
}

#[rstest]
#[case::env_beats_env_from(json!({"env": [{"name": FLAVOR, "value": "expressions"}], "envFrom": [{"prefix": "KONG_", "configMapRef": {"name": "router"}}]}), "expressions")]
#[case::before_3_0(json!({"image": "kong:2.8.4", "env": [{"name": FLAVOR, "value": "expressions"}]}), "the router of Kong before 3.0")]
#[case::no_version(json!({"image": "kong:latest"}), DEFAULT)]
#[case::own_command(json!({"command": ["kong", "start"], "env": [{"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/x"}]}), DEFAULT)]
#[case::own_arguments(json!({"args": ["kong", "docker-start"], "env": [{"name": "KONG_ROUTER_FLAVOR_FILE", "value": "/x"}]}), "unknown: it comes from the file /x")]
#[case::conf_argument(json!({"args": ["kong", "start", "-c", "/conf"]}), "unknown: it may be set in the configuration file /conf")]
#[case::env_beats_conf(json!({"args": ["kong", "start", "-c", "/conf"], "env": [{"name": FLAVOR, "value": "expressions"}]}), "expressions")]
#[case::mounted_conf(json!({"volumeMounts": [{"mountPath": "/etc/kong/"}]}), "unknown: it may be set in the configuration file /etc/kong")]
#[case::other_mount(json!({"volumeMounts": [{"mountPath": "/etc/kong-plugins"}]}), DEFAULT)]
#[case::conf_in_a_script(json!({"command": ["sh", "-c", "exec kong start -c /conf"]}), "unknown: it may be set in the configuration file /conf")]
#[case::script(json!({"command": ["sh", "-c", "exec kong start"]}), DEFAULT)]
#[case::shell(json!({"command": ["sh", "-c", "KONG_ROUTER_FLAVOR=expressions kong start"]}), "unknown: the container's command line names it")]
#[case::null(json!({"env": null, "envFrom": null, "args": null}), DEFAULT)]
fn by_container(#[case] container: Value, #[case] effective: &str) {
    assert_eq!(reading(container).effective.to_string(), effective);
}

#[test]
fn only_the_container_named_proxy_counts() {
    let mut plane = data_plane(json!({"name": "proxy", "image": "kong:3.9"}), false);
    let containers = &mut plane["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"];
    let sidecar =
        json!({"name": "sidecar", "image": "x:1.0", "env": [{"name": FLAVOR, "value": "expressions"}]});
    containers.as_array_mut().unwrap().insert(0, sidecar);
    let reading = read(&plane, &[]).spec.reading;
    assert_eq!(reading.effective.to_string(), DEFAULT);
    assert_eq!(reading.elsewhere, ["sidecar"]);
    let containers = &mut plane["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"];
    containers.as_array_mut().unwrap().remove(1);
    assert_eq!(
        read(&plane, &[]).spec.reading.effective.to_string(),
        "unknown: no container is called \"proxy\""
    );
}

/// Each entry doubles the previous one: no value longer than any flavor is built.
#[test]
fn values_that_grow_are_not_followed() {
    let mut env = vec![json!({"name": "A0", "value": "expressions"})];
    for i in 1..5000 {
        env.push(json!({"name": format!("A{i}"), "value": format!("$(A{0})$(A{0})", i - 1)}));
    }
    env.push(json!({"name": FLAVOR, "value": "$(A4999)"}));
    let reading = reading(json!({"env": env}));
    assert_eq!(reading.effective.to_string(), "unknown: its value is longer than 256 bytes");
}
