//! The ports of the Service that traffic comes through: Kong listens on each.
//!
//! Texts and conditions are those of the ValidatingAdmissionPolicy
//! `ports.dataplane.gateway-operator.konghq.com` of Kong's operator, which reads only literal values
//! and denies every port that has a name.

use std::collections::BTreeSet;

use interlock_core::api::pod::Container;
use serde_json::Value;

use crate::api::{IngressPort, PROXY_PORTS};
use crate::data_plane::flavor::change::Findings;
use crate::data_plane::flavor::environment::{EnvVariable, Surroundings, Unknown, variables};
use crate::data_plane::rules::ids::DATA_PLANE_PORTS;

const PORT_MAPS: &str = "KONG_PORT_MAPS";
const PROXY_LISTEN: &str = "KONG_PROXY_LISTEN";
const STREAM_LISTEN: &str = "KONG_STREAM_LISTEN";

/// Default target of a port of the Service.
const DEFAULT_TARGET: i64 = 8000;
/// Ports on which Kong listens by default under Kong's operator.
const DEFAULT_LISTEN: [i64; 2] = [8000, 8443];

/// End of a refusal where no variable says on which ports Kong listens.
pub const BY_DEFAULT: &str = "Kong listens on 8000 and 8443, as neither is set";

/// Target of a port of the Service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Port(i64),
    /// No port of the container has this name.
    Nowhere,
}

/// The problems of the ports.
pub(super) fn problems(
    ports: &[IngressPort],
    proxy: &Container,
    surroundings: Surroundings<'_>,
    findings: &mut Findings,
) {
    if ports.is_empty() || proxy.env.is_empty() && proxy.env_from.is_empty() {
        return;
    }
    let targets: Vec<Target> = ports.iter().map(|port| target(port.target_port.as_ref(), proxy)).collect();
    let found = variables(proxy, surroundings, &[PORT_MAPS, PROXY_LISTEN, STREAM_LISTEN]);
    let value = |name: &'static str| match found.get(name) {
        Some(EnvVariable::Set { value, .. }) if !value.is_empty() => Ok(Some(value.as_str())),
        Some(EnvVariable::Unknown(why)) => Err((name, why)),
        _ => Ok(None),
    };
    let unheard = |open: &BTreeSet<i64>| {
        let heard = |target: &Target| matches!(target, Target::Port(port) if open.contains(port));
        ports.iter().zip(&targets).find(|(_, target)| !heard(target)).map(|(port, _)| told(port))
    };
    match value(PORT_MAPS) {
        Ok(Some(maps)) => {
            unheard(&mapped(maps)).into_iter().for_each(|port| deny(findings, PORT_MAPS, &port))
        }
        Ok(_) => {}
        Err(unknown) => unknown_port(findings, unknown),
    }
    let (proxies, streams) = match (value(PROXY_LISTEN), value(STREAM_LISTEN)) {
        (Ok(proxies), Ok(streams)) => (proxies, streams),
        (Err(unknown), _) | (_, Err(unknown)) => return unknown_port(findings, unknown),
    };
    let mut open: BTreeSet<i64> = proxies.map_or_else(|| DEFAULT_LISTEN.into(), listened);
    open.extend(streams.into_iter().flat_map(listened));
    if let Some(mut port) = unheard(&open) {
        if (proxies, streams) == (None, None) {
            port = format!("{port}; {BY_DEFAULT}");
        }
        deny(findings, "KONG_PROXY_LISTEN or KONG_STREAM_LISTEN", &port);
    }
}

/// A port of the Service, as people wrote it.
fn told(port: &IngressPort) -> String {
    let target = match port.target_port.as_ref() {
        None | Some(Value::Null) => DEFAULT_TARGET.to_string(),
        Some(Value::String(name)) => format!("\"{}\"", name.escape_debug()),
        Some(number) => number.to_string(),
    };
    format!("port {} has targetPort {target}", port.port.as_ref().unwrap_or(&Value::Null))
}

fn deny(findings: &mut Findings, variable: &str, port: &str) {
    findings.deny(
        DATA_PLANE_PORTS,
        format!(
            "Each port from spec.network.services.ingress.ports has to have an accompanying port in {variable} env: \
             {port}"
        ),
    );
}

fn unknown_port(findings: &mut Findings, (variable, why): (&str, &Unknown)) {
    findings.warn(
        DATA_PLANE_PORTS,
        format!(
            "cannot determine {variable}: {why}; each port from spec.network.services.ingress.ports has to have an \
             accompanying port in it"
        ),
    );
}

fn target(port: Option<&Value>, proxy: &Container) -> Target {
    let named = |name: &str| {
        let own = proxy.ports.iter().find(|port| port.name == name).map(|port| port.container_port);
        let generated =
            || PROXY_PORTS.iter().find(|(known, _)| *known == name).map(|(_, port)| i64::from(*port));
        own.or_else(generated).map_or(Target::Nowhere, Target::Port)
    };
    match port {
        None | Some(Value::Null) => Target::Port(DEFAULT_TARGET),
        Some(Value::String(name)) => name.parse().map_or_else(|_| named(name), Target::Port),
        Some(number) => number.as_i64().map_or(Target::Nowhere, Target::Port),
    }
}

/// The ports of the pods in `80:8000, 443:8443`.
fn mapped(maps: &str) -> BTreeSet<i64> {
    maps.split(',').filter_map(|map| map.split(':').nth(1)?.trim().parse().ok()).collect()
}

/// The ports in `0.0.0.0:8000 reuseport, [::]:8443 ssl`, or none in `off`.
fn listened(listen: &str) -> BTreeSet<i64> {
    let addresses = listen.split(',').filter_map(|entry| entry.split_whitespace().next());
    addresses.filter_map(|address| address.rsplit(':').next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use crate::api::DataPlaneSpec;
    use crate::data_plane::flavor::sources::GivenSources;

    const MAPS: &str = "denied [dataplane-ports] Each port from spec.network.services.ingress.ports has to have an accompanying port in KONG_PORT_MAPS env: ";
    const LISTEN: &str = "denied [dataplane-ports] Each port from spec.network.services.ingress.ports has to have an accompanying port in KONG_PROXY_LISTEN or KONG_STREAM_LISTEN env: ";
    const UNTOLD: &str = "warned [dataplane-ports] cannot determine KONG_PROXY_LISTEN: it comes from ConfigMap kong/unseen key \"x\", which cannot be read here; each port from spec.network.services.ingress.ports has to have an accompanying port in it";
    const FULL: &str = "0.0.0.0:8000 reuseport backlog=16384, 0.0.0.0:8443 http2 ssl reuseport backlog=16384";

    use super::*;

    fn env(entries: &[(&str, &str)]) -> Value {
        entries.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    }

    fn from(name: &str, map: &str) -> Value {
        json!([{"name": name, "valueFrom": {"configMapKeyRef": {"name": map, "key": "x"}}}])
    }

    /// Cases of Kong's own test of its policy, and cases that the policy does not check.
    #[rstest]
    #[case::no_ports(json!(null), env(&[(PORT_MAPS, "80:1")]), &[])]
    #[case::no_env(json!([{"port": 80, "targetPort": 1}]), json!(null), &[])]
    #[case::empty_env(json!([{"port": 80, "targetPort": 1}]), json!([]), &[])]
    #[case::maps(json!([{"port": 80, "targetPort": 8000}, {"port": 443, "targetPort": 8443}]), env(&[(PORT_MAPS, "80:8000,443:8443")]), &[])]
    #[case::spaces(json!([{"port": 80, "targetPort": 8000}]), env(&[(PORT_MAPS, " 80:8000 , 443:8443")]), &[])]
    #[case::not_mapped(json!([{"port": 80, "targetPort": 8443}]), env(&[(PORT_MAPS, "80:8000")]), &[MAPS])]
    #[case::neither(json!([{"port": 80, "targetPort": 8001}]), env(&[(PORT_MAPS, "80:8000,443:8443"), (PROXY_LISTEN, FULL)]), &[MAPS, LISTEN])]
    #[case::listened(json!([{"port": 80, "targetPort": 8443}]), env(&[(PROXY_LISTEN, FULL)]), &[])]
    #[case::not_listened(json!([{"port": 80, "targetPort": 8001}]), env(&[(PROXY_LISTEN, FULL)]), &[LISTEN])]
    #[case::defaults(json!([{"port": 80, "targetPort": 8000}, {"port": 443, "targetPort": 8443}]), env(&[("OTHER", "x")]), &[])]
    #[case::not_the_defaults(json!([{"port": 80, "targetPort": 80}]), env(&[("OTHER", "x")]), &[LISTEN])]
    #[case::streams(json!([{"port": 8899, "targetPort": 8899}]), env(&[(PROXY_LISTEN, "0.0.0.0:8000"), (STREAM_LISTEN, "0.0.0.0:8899 ssl")]), &[])]
    #[case::off(json!([{"port": 80, "targetPort": 8000}]), env(&[(PROXY_LISTEN, "off")]), &[LISTEN])]
    #[case::version_6(json!([{"port": 80, "targetPort": 9000}]), env(&[(PROXY_LISTEN, "[::]:9000 ssl")]), &[])]
    #[case::no_target(json!([{"port": 80}]), env(&[(PORT_MAPS, "80:8000")]), &[])]
    #[case::generated_name(json!([{"port": 443, "targetPort": "proxy-ssl"}]), env(&[("OTHER", "x")]), &[])]
    #[case::own_name(json!([{"port": 443, "targetPort": "extra"}]), env(&[(PROXY_LISTEN, "0.0.0.0:9443")]), &[])]
    #[case::no_such_name(json!([{"port": 443, "targetPort": "lost"}]), env(&[("OTHER", "x")]), &[LISTEN])]
    #[case::number_as_text(json!([{"port": 80, "targetPort": "8000"}]), env(&[("OTHER", "x")]), &[])]
    #[case::value_from(json!([{"port": 80, "targetPort": 9000}]), from(PROXY_LISTEN, "seen"), &[])]
    #[case::value_from_elsewhere(json!([{"port": 80, "targetPort": 8000}]), from(PROXY_LISTEN, "seen"), &[LISTEN])]
    #[case::unseen(json!([{"port": 80, "targetPort": 8000}]), from(PROXY_LISTEN, "unseen"), &[UNTOLD])]
    #[case::later_entry_wins(json!([{"port": 80, "targetPort": 8000}]), env(&[(PORT_MAPS, "80:1"), (PORT_MAPS, "80:8000")]), &[])]
    fn of_a_spec(#[case] ports: Value, #[case] env: Value, #[case] said: &[&str]) {
        let found = judged(&ports, &env);
        assert_eq!(found.len(), said.len(), "{found:?}");
        assert!(found.iter().zip(said).all(|(found, said)| found.starts_with(said)), "{found:?}");
    }

    #[rstest]
    #[case::second(json!([{"port": 80, "targetPort": 8000}, {"port": 81, "targetPort": 8001}]), env(&[("OTHER", "x")]), "port 81 has targetPort 8001; Kong listens on 8000 and 8443, as neither is set")]
    #[case::set(json!([{"port": 80}]), env(&[(PROXY_LISTEN, "off")]), "port 80 has targetPort 8000")]
    #[case::named(json!([{"port": 443, "targetPort": "lo\nst"}]), env(&[(PROXY_LISTEN, "off")]), "port 443 has targetPort \"lo\\nst\"")]
    fn the_port_is_named(#[case] ports: Value, #[case] env: Value, #[case] port: &str) {
        assert_eq!(judged(&ports, &env), [format!("{LISTEN}{port}")]);
    }

    fn judged(ports: &Value, env: &Value) -> Vec<String> {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kong", "name": "seen"},
            "data": {"x": "0.0.0.0:9000"},
        });
        let proxy = json!({"name": "proxy", "image": "kong:3.9", "env": env, "ports": [{"name": "extra", "containerPort": 9443}]});
        // The container may be at any position.
        let containers = json!([{"name": "sidecar", "image": "x", "env": [{"name": PROXY_LISTEN, "value": "off"}]}, proxy]);
        let spec: DataPlaneSpec = serde_json::from_value(json!({
            "deployment": {"podTemplateSpec": {"spec": {"containers": containers}}},
            "network": {"services": {"ingress": {"ports": ports}}},
        }))
        .unwrap();
        let findings = super::super::problems(&spec, "kong", &GivenSources::of([&map], "kong"));
        let denied = findings.denied.iter().map(|finding| format!("denied {finding}"));
        denied.chain(findings.warned.iter().map(|finding| format!("warned {finding}"))).collect()
    }
}
