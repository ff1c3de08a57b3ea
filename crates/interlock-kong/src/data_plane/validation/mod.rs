//! DataPlane validation, whatever the flavor: the rules of Kong's own schema about containers and their
//! environment, without its gaps.
//!
//! Kong's schema checks only the first container, reads only literal values, and fails on a spec
//! without `deployment` with an error of its own (kubernetes-configuration 2.0,
//! `api/gateway-operator/v1beta1/dataplane_types.go`); its policy reads only literal values, too.
//! Interlock finds the container by its name, and reads its environment as the kubelet makes it.

mod child_problem;
pub mod children;
mod pod_fields;
mod pod_template;
mod ports;

pub use ports::BY_DEFAULT;

use super::flavor::change::Findings;
use super::flavor::environment::{EnvVariable, Surroundings, variables};
use super::flavor::sources::Sources;
use crate::api::{DataPlaneSpec, PROXY};
use crate::data_plane::rules::ids::{DATA_PLANE_DATABASE, DATA_PLANE_IMAGE};

const DATABASE: &str = "KONG_DATABASE";

pub fn problems(spec: &DataPlaneSpec, namespace: &str, sources: &dyn Sources) -> Findings {
    let mut findings = Findings::default();
    let template = &spec.deployment.pod_template_spec;
    let surroundings = Surroundings { namespace, template: &template.metadata, sources };
    let proxies = || template.spec.containers.iter().filter(|container| container.name == PROXY);
    if !proxies().any(|proxy| proxy.image.as_deref().is_some_and(|image| !image.is_empty())) {
        findings
            .deny(DATA_PLANE_IMAGE, "DataPlane requires an image to be set on proxy container".to_owned());
    }
    for proxy in proxies() {
        match variables(proxy, surroundings, &[DATABASE]).remove(DATABASE) {
            Some(EnvVariable::Set { value, .. }) if !value.is_empty() && value != "off" => {
                findings.deny(DATA_PLANE_DATABASE, "DataPlane supports only db mode 'off'".to_owned());
            }
            Some(EnvVariable::Unknown(why)) => findings.warn(
                DATA_PLANE_DATABASE,
                format!("cannot determine {DATABASE}: {why}; DataPlane supports only db mode 'off'"),
            ),
            _ => {}
        }
        ports::problems(&spec.network.services.ingress.ports, proxy, surroundings, &mut findings);
    }
    findings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::data_plane::flavor::sources::GivenSources;

    const IMAGE: &str = "denied [dataplane-image] DataPlane requires an image to be set on proxy container";
    const DB: &str = "denied [dataplane-database] DataPlane supports only db mode 'off'";

    fn containers(containers: Value) -> Value {
        json!({"deployment": {"podTemplateSpec": {"spec": {"containers": containers}}}})
    }

    fn proxy(env: Value) -> Value {
        json!({"name": "proxy", "image": "kong:3.9", "env": env})
    }

    fn from(map: &str, key: &str) -> Value {
        json!([{"name": "KONG_DATABASE", "valueFrom": {"configMapKeyRef": {"name": map, "key": key}}}])
    }

    #[rstest]
    #[case::nothing(json!({}), &[IMAGE])]
    #[case::null(json!({"deployment": {"podTemplateSpec": null}}), &[IMAGE])]
    #[case::no_image(containers(json!([{"name": "proxy"}])), &[IMAGE])]
    #[case::only_a_sidecar(containers(json!([{"name": "sidecar", "image": "x"}])), &[IMAGE])]
    #[case::no_env(containers(json!([{"name": "proxy", "image": "kong:3.9"}])), &[])]
    #[case::off(containers(json!([proxy(json!([{"name": "KONG_DATABASE", "value": "off"}]))])), &[])]
    #[case::empty(containers(json!([proxy(json!([{"name": "KONG_DATABASE", "value": ""}]))])), &[])]
    #[case::postgres(containers(json!([proxy(json!([{"name": "KONG_DATABASE", "value": "postgres"}]))])), &[DB])]
    #[case::sidecar_first(containers(json!([{"name": "sidecar", "image": "x"}, proxy(json!([{"name": "KONG_DATABASE", "value": "postgres"}]))])), &[DB])]
    #[case::of_a_sidecar(containers(json!([{"name": "sidecar", "image": "x", "env": [{"name": "KONG_DATABASE", "value": "postgres"}]}, proxy(json!([]))])), &[])]
    #[case::second_proxy(containers(json!([proxy(json!([])), proxy(json!([{"name": "KONG_DATABASE", "value": "postgres"}]))])), &[DB])]
    #[case::later_entry_wins(containers(json!([proxy(json!([{"name": "KONG_DATABASE", "value": "off"}, {"name": "KONG_DATABASE", "value": "postgres"}]))])), &[DB])]
    #[case::value_from(containers(json!([proxy(from("db", "pg"))])), &[DB])]
    #[case::value_from_off(containers(json!([proxy(from("db", "off"))])), &[])]
    #[case::env_from(containers(json!([{"name": "proxy", "image": "kong:3.9", "envFrom": [{"prefix": "KONG_", "configMapRef": {"name": "db"}}]}])), &[DB])]
    #[case::unseen(containers(json!([proxy(from("other", "x"))])), &["warned [dataplane-database] cannot determine KONG_DATABASE: it comes from ConfigMap kong/other key \"x\", which cannot be read here; DataPlane supports only db mode 'off'"])]
    fn specs(#[case] spec: Value, #[case] said: &[&str]) {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kong", "name": "db"},
            "data": {"pg": "postgres", "off": "off", "DATABASE": "cassandra"},
        });
        let spec: DataPlaneSpec = serde_json::from_value(spec).unwrap();
        let findings = problems(&spec, "kong", &GivenSources::of([&map], "kong"));
        let denied = findings.denied.iter().map(|finding| format!("denied {finding}"));
        let found: Vec<String> =
            denied.chain(findings.warned.iter().map(|finding| format!("warned {finding}"))).collect();
        assert_eq!(found, said);
    }
}
