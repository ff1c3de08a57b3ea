//! What authenticates and authorizes requests for AuthPolicies: `spec.policies.authServers`, parsed.

use std::collections::BTreeSet;

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
    /// The Gateways whose requests it decides about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub gateways: Vec<GatewaySetting>,
}

/// The port of Authorino's gRPC service, where none is named.
pub const GRPC_PORT: u16 = 50051;

/// A server that decides about requests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AuthServer {
    /// Host and port; none where they are invalid: no other server decides for its Gateways then.
    address: Option<(String, u16)>,
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
            let gateways = setting.gateways.iter().map(|own| NamespacedName::new(&own.namespace, &own.name));
            let gateways: BTreeSet<NamespacedName> = gateways.collect();
            let are_taken = |other: &AuthServer| {
                (gateways.is_empty() && other.gateways.is_empty()) || !gateways.is_disjoint(&other.gateways)
            };
            let problem = if read.iter().any(are_taken) {
                Some("is for Gateways that an entry before it has; each belongs into one entry")
            } else {
                port.is_none().then_some("has a port that is none; write 1 to 65535")
            };
            // Those of its Gateways that no entry before it has are not given to the server of all others.
            let address = port.filter(|_| problem.is_none()).map(|port| (setting.host.clone(), port));
            read.push(AuthServer { address, gateways });
            let field = || format!("spec.policies.authServers[{index}]");
            problems.extend(problem.map(|own| SettingProblem { field: field(), problem: own.to_owned() }));
        }
        (Self(read), problems)
    }

    /// Host and port of the server of a Gateway; none where the settings have none for it, or an invalid one.
    pub fn of(&self, gateway: &NamespacedName) -> Option<&(String, u16)> {
        let named = self.0.iter().find(|own| own.gateways.contains(gateway));
        named.or_else(|| self.0.iter().find(|own| own.gateways.is_empty()))?.address.as_ref()
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
            {"host": "own.example", "port": 8083, "gateways": gateways("gw")},
            {"host": "again.example", "gateways": [gateways("gw")[0], gateways("beside")[0]]},
            {"host": "all-too.example"},
            {"host": "port.example", "port": 70000, "gateways": gateways("other")},
        ]))
        .unwrap();
        let (servers, problems) = AuthServers::read(&settings);
        let fields: Vec<&str> = problems.iter().map(|own| own.field.as_str()).collect();
        let field = |n: usize| format!("spec.policies.authServers[{n}]");
        assert_eq!(fields, [field(2), field(3), field(4)]);
        let of = |name: &str| servers.of(&NamespacedName::new("a", name)).cloned();
        assert_eq!(of("gw"), Some(("own.example".to_owned(), 8083)));
        assert_eq!(of("any"), Some(("all.example".to_owned(), GRPC_PORT)));
        assert_eq!((of("other"), of("beside")), (None, None));
    }
}
