//! The chart, rendered here, is the installation; Helm itself renders it in `tests/e2e/helm.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use interlock_core::admission::Freeze;
use interlock_core::api::meta::install;
use interlock_core::api::object::NamespacedName;
use rstest::rstest;
use serde_json::{Value, json};

use super::of;
use crate::install::chart::rendered;
use crate::install::{CertificateIssuer, ClientCa, Endpoint, InstallOptions, Layout, Part, helm};

#[test]
fn the_committed_chart_is_what_is_rendered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/helm/interlock");
    for (path, text) in helm::chart().unwrap() {
        let committed = std::fs::read_to_string(folder.join(&path)).unwrap_or_default();
        assert!(
            committed == text,
            "manifests/helm/interlock/{path} differs from what is rendered; run `cargo run -- render helm --into \
             manifests/helm/interlock`"
        );
    }
}

/// By kind, namespace and name; without what tells Helm to keep a definition.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let keyed = objects.into_iter().map(|mut object| {
        let metadata = &mut object["metadata"];
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("helm.sh/resource-policy");
            if annotations.is_empty() {
                metadata.as_object_mut().unwrap().remove("annotations");
            }
        }
        let key = json!([object["kind"], object["metadata"]["namespace"], object["metadata"]["name"]]);
        (key.to_string(), object)
    });
    keyed.collect()
}

/// Files that follow from the kinds have the actions of the values that the options are.
#[rstest]
#[case::default(InstallOptions::default())]
#[case::same_plan(InstallOptions {
    freeze: Freeze::SamePlan,
    docs: "https://docs.example.org/guard".parse().ok(),
    ..InstallOptions::default()
})]
#[case::managed(InstallOptions {
    namespace: "guard".to_owned(),
    packages: NamespacedName::new("guard", "interlock-packages"),
    certificates: CertificateIssuer::CertManager,
    protect_live: true,
    data_planes: true,
    ..InstallOptions::default()
})]
fn every_file_of_the_chart_comes_to_what_is_rendered(#[case] options: InstallOptions) {
    let mut found = Vec::new();
    for (path, text) in helm::chart().unwrap() {
        if path.starts_with("templates/") && path.ends_with(".yaml") {
            found.extend(rendered("a file of the chart", &text, &options).unwrap());
        }
    }
    let wanted = [of(Part::All, &options), of(Part::Monitoring, &options)].concat();
    let (found, wanted) = (by_name(found), by_name(wanted));
    for (key, object) in &wanted {
        similar_asserts::assert_eq!(found.get(key), Some(object), "{}", key);
    }
    assert_eq!(found.len(), wanted.len());
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart: Value = serde_saphyr::from_str(&helm::chart().unwrap()["Chart.yaml"]).unwrap();
    let version = json!(env!("CARGO_PKG_VERSION"));
    assert_eq!((&chart["version"], &chart["appVersion"]), (&version, &version));
}

#[test]
fn the_schema_has_every_value() {
    let chart = helm::chart().unwrap();
    let values: Value = serde_saphyr::from_str(&chart["values.yaml"]).unwrap();
    let schema: Value = serde_json::from_str(&chart["values.schema.json"]).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for name in keys(&values) {
        let known = &schema["properties"][&name];
        assert!(known.is_object(), "{name}");
        if let Some(nested) = known["properties"].as_object() {
            assert_eq!(keys(&values[&name]), nested.keys().cloned().collect::<Vec<_>>(), "{name}");
        }
    }
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema["properties"].get("render").is_none(), "what is no value of the chart");
}

/// The chart names what the process reads and writes.
#[test]
fn the_chart_and_the_process_agree_on_names() {
    let options = InstallOptions {
        layout: Layout::Split,
        data_plane_certificates: true,
        data_planes: true,
        strict_egress: true,
        client_ca: Some(ClientCa { config_map: "callers".to_owned(), names: Vec::new() }),
        ..InstallOptions::default()
    };
    let all = of(Part::All, &options);
    let has = |kind: &str, name: &str| all.iter().any(|o| o["kind"] == kind && o["metadata"]["name"] == name);
    for (kind, name) in [
        ("Deployment", install::NAME),
        ("Deployment", install::WEBHOOK_NAME),
        ("ServiceAccount", install::WEBHOOK_NAME),
        ("Service", install::SERVICE),
        ("Service", install::METRICS_SERVICE),
        ("ResourceQuota", install::CRITICAL_PODS),
        ("NetworkPolicy", install::EGRESS_POLICY),
        ("ClusterRole", install::METRICS_READER),
    ] {
        assert!(has(kind, name), "{kind} {name}");
    }
    let roles: Vec<&Value> = all.iter().filter_map(|object| object.get("rules")).collect();
    let rules: Vec<&Value> = roles.into_iter().filter_map(Value::as_array).flatten().collect();
    for (resource, name) in [
        ("leases", install::LEASE),
        ("leases", interlock_kong::api::OPERATOR_LEASE),
        ("configmaps", install::ENFORCED),
        ("secrets", install::CERTIFICATE_SECRET),
        ("secrets", install::TEMPLATE_KEY_SECRET),
        ("secrets", install::DATA_PLANE_CA_SECRET),
        ("validatingwebhookconfigurations", install::WEBHOOK_CONFIGURATION),
        ("validatingadmissionpolicybindings", install::FREEZE_BINDING),
        ("validatingadmissionpolicybindings", interlock_kong::data_plane::policies::OVERRIDES),
    ] {
        let of = |rule: &&&Value, list: &str, item: &str| {
            rule[list].as_array().is_some_and(|list| list.iter().any(|found| found == item))
        };
        let named =
            rules.iter().any(|rule| of(&rule, "resources", resource) && of(&rule, "resourceNames", name));
        assert!(named, "{resource} {name}");
    }
    let label =
        all.iter().find_map(|object| object.pointer("/aggregationRule/clusterRoleSelectors/0/matchLabels"));
    assert_eq!(label, Some(&json!({(interlock_core::api::watched::AGGREGATE): "true"})));
    let pod = all.iter().filter(|o| o["kind"] == "Deployment").map(|o| &o["spec"]["template"]["spec"]);
    for pod in pod {
        let ports = &pod["containers"][0]["ports"];
        assert_eq!(
            (&ports[0]["containerPort"], &ports[1]["containerPort"]),
            (&json!(install::WEBHOOK_PORT), &json!(install::METRICS_PORT))
        );
        for volume in pod["volumes"].as_array().into_iter().flatten().filter(|v| v["name"] == "client-ca") {
            assert_eq!(volume["configMap"]["items"][0]["key"], install::CLIENT_CA_KEY);
        }
    }
}

/// What looks like YAML or like an action stays the text that it is.
#[rstest]
#[case("o'brien\\x: \"y\" # z")]
#[case("{{ .Values }}\n- {a: b}")]
#[case("übung \u{200b}\u{7f}\t")]
fn any_text_of_an_option_is_kept(#[case] text: &str) {
    let options = InstallOptions {
        controller_user: Some(text.to_owned()),
        image: text.to_owned(),
        namespace: "123".to_owned(),
        packages: NamespacedName::new("456", text),
        endpoint: Endpoint::Service { name: "789".to_owned() },
        client_ca: Some(ClientCa { config_map: "true".to_owned(), names: vec![text.to_owned()] }),
        replicas: i32::MAX,
        ..InstallOptions::default()
    };
    let all = of(Part::Install, &options);
    let deployment = all.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let arguments = pod["containers"][0]["args"].as_array().unwrap();
    for argument in [
        format!("--controller-user={text}"),
        format!("--client-name={text}"),
        format!("--packages-service-account=456/{text}"),
        "--service-name=789".to_owned(),
    ] {
        assert!(arguments.contains(&json!(argument)), "{arguments:#?}");
    }
    assert_eq!(
        (&pod["containers"][0]["image"], &deployment["spec"]["replicas"]),
        (&json!(text), &json!(i32::MAX))
    );
    assert_eq!(pod["volumes"][0]["configMap"]["name"], "true");
    for object in all.iter().filter(|object| object["metadata"].get("namespace").is_some()) {
        assert!(object["metadata"]["namespace"].is_string() && object["metadata"]["name"].is_string());
    }
}
