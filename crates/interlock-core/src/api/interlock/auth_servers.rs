//! What authenticates and authorizes requests for AuthPolicies: `spec.policies.authServers`, parsed.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SettingProblem;
use super::limitadors::GatewaySetting;
use crate::api::object::NamespacedName;

/// An Authorino, or another server that reads AuthConfigs and speaks Envoy's protocol of external authorization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthServerSetting {
    /// Its host, such as `authorino-authorino-authorization.kuadrant-system.svc.cluster.local`.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// The port of its gRPC service; 50051 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// How long a proxy waits for its answer before it refuses a request, in milliseconds; 200 by default. One that asks
    /// others itself, such as an issuer or a metadata source, needs more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_milliseconds: Option<i64>,
    /// The Gateways whose requests it decides about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub gateways: Vec<GatewaySetting>,
}

/// The port of Authorino's gRPC service, where none is named.
pub const GRPC_PORT: u16 = 50051;
/// How long a proxy waits for an answer, in milliseconds, where the settings do not say.
const TIMEOUT: u64 = 200;
/// The longest wait, in milliseconds: requests that wait take memory of their proxy.
const LONGEST_TIMEOUT: u64 = 30_000;

/// Where proxies reach a server, and how long they wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthEndpoint {
    /// Host and port.
    pub address: (String, u16),
    /// How long a proxy waits for an answer.
    pub timeout: Duration,
}

/// A server that decides about requests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AuthServer {
    /// None where it is invalid: no other server decides for its Gateways then.
    endpoint: Option<AuthEndpoint>,
    /// The Gateways that it decides for; empty = all that no other names.
    gateways: BTreeSet<NamespacedName>,
}

/// The servers of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthServers(Vec<AuthServer>);

impl AuthServers {
    /// Reads `spec.policies.authServers`. What cannot be honoured is left out.
    pub fn read(settings: &[AuthServerSetting]) -> (Self, Vec<SettingProblem>) {
        let mut problems = Vec::new();
        let mut read: Vec<AuthServer> = Vec::new();
        for (index, setting) in settings.iter().enumerate() {
            let port = setting.port.map_or(Ok(GRPC_PORT), u16::try_from).ok().filter(|port| *port > 0);
            let timeout = setting.timeout_milliseconds.map_or(Ok(TIMEOUT), u64::try_from).ok();
            let timeout = timeout.filter(|own| (1..=LONGEST_TIMEOUT).contains(own));
            let gateways = setting.gateways.iter().map(|own| NamespacedName::new(&own.namespace, &own.name));
            let gateways: BTreeSet<NamespacedName> = gateways.collect();
            let are_taken = |other: &AuthServer| {
                (gateways.is_empty() && other.gateways.is_empty()) || !gateways.is_disjoint(&other.gateways)
            };
            let problem = if read.iter().any(are_taken) {
                Some("is for Gateways that an entry before it has; each belongs into one entry")
            } else if port.is_none() {
                Some("has a port that is none; write 1 to 65535")
            } else {
                timeout.is_none().then_some("has a timeoutMilliseconds that is none; write 1 to 30000")
            };
            // Those of its Gateways that no entry before it has are not given to the server of all others.
            let endpoint =
                port.zip(timeout).filter(|_| problem.is_none()).map(|(port, timeout)| AuthEndpoint {
                    address: (setting.host.clone(), port),
                    timeout: Duration::from_millis(timeout),
                });
            read.push(AuthServer { endpoint, gateways });
            let field = || format!("spec.policies.authServers[{index}]");
            problems.extend(problem.map(|own| SettingProblem { field: field(), problem: own.to_owned() }));
        }
        (Self(read), problems)
    }

    /// The server of a Gateway; none where the settings have none for it, or an invalid one.
    pub fn of(&self, gateway: &NamespacedName) -> Option<&AuthEndpoint> {
        let named = self.0.iter().find(|own| own.gateways.contains(gateway));
        named.or_else(|| self.0.iter().find(|own| own.gateways.is_empty()))?.endpoint.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_gateway_has_one_server_and_what_is_wrong_is_named() {
        let gateways = |name: &str| json!([{"namespace": "a", "name": name}]);
        let settings: Vec<AuthServerSetting> = serde_json::from_value(json!([
            {"host": "all.example"},
            {"host": "own.example", "port": 8083, "timeoutMilliseconds": 1500, "gateways": gateways("gw")},
            {"host": "again.example", "gateways": [gateways("gw")[0], gateways("beside")[0]]},
            {"host": "all-too.example"},
            {"host": "port.example", "port": 70000, "gateways": gateways("other")},
            {"host": "at-once.example", "timeoutMilliseconds": 0, "gateways": gateways("at-once")},
            {"host": "patient.example", "timeoutMilliseconds": 30_001, "gateways": gateways("patient")},
        ]))
        .unwrap();
        let (servers, problems) = AuthServers::read(&settings);
        let fields: Vec<&str> = problems.iter().map(|own| own.field.as_str()).collect();
        let field = |n: usize| format!("spec.policies.authServers[{n}]");
        assert_eq!(fields, [2, 3, 4, 5, 6].map(field));
        let of = |name: &str| servers.of(&NamespacedName::new("a", name)).cloned();
        let endpoint = |host: &str, port, timeout| {
            let timeout = Duration::from_millis(timeout);
            Some(AuthEndpoint { address: (host.to_owned(), port), timeout })
        };
        assert_eq!(of("gw"), endpoint("own.example", 8083, 1500));
        assert_eq!(of("any"), endpoint("all.example", GRPC_PORT, TIMEOUT));
        for none in ["other", "beside", "at-once", "patient"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
