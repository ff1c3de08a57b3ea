//! Where the limits of RateLimitPolicies are counted: `spec.policies.limitadors`, parsed.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SettingProblem;
use crate::api::object::NamespacedName;

/// A Limitador: either `limitador`, or `configMap` and `host`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitadorSetting {
    /// The namespace of the Limitador, or of the ConfigMap.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The name of an object of the kind Limitador. Interlock writes its `spec.limits`; its status says where it is
    /// reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub limitador: Option<String>,
    /// The name of a ConfigMap whose key `limits.yaml` Interlock writes, for a Limitador that reads it as its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub config_map: Option<String>,
    /// The host of that Limitador, such as `limitador.limitador-system.svc.cluster.local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub host: Option<String>,
    /// The port of its gRPC service; 8081 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// The Gateways whose requests it counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub gateways: Vec<GatewaySetting>,
}

/// A Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatewaySetting {
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Where a Limitador takes its limits from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitStore {
    /// An object of the kind Limitador.
    Limitador(NamespacedName),
    /// A ConfigMap.
    ConfigMap(NamespacedName),
}

/// The port of Limitador's gRPC service, where none is named.
pub const GRPC_PORT: u16 = 8081;

/// A Limitador that counts requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limitador {
    /// Where it takes its limits from.
    pub store: LimitStore,
    /// Host and port, where the settings name them.
    pub address: Option<(String, u16)>,
    /// The Gateways that it counts for; empty = all that no other names.
    gateways: BTreeSet<NamespacedName>,
}

/// The Limitadors of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limitadors(Vec<Limitador>);

impl Limitadors {
    /// Reads `spec.policies.limitadors`. What cannot be honoured is left out.
    pub fn read(settings: &[LimitadorSetting]) -> (Self, Vec<SettingProblem>) {
        let mut problems = Vec::new();
        let mut read: Vec<Limitador> = Vec::new();
        for (index, setting) in settings.iter().enumerate() {
            let found = setting.read().and_then(|own| match read.iter().find(|other| other.overlaps(&own)) {
                Some(_) => Err(
                    "names a store, or Gateways, that an entry before it has; each belongs into one entry",
                ),
                None => Ok(own),
            });
            match found {
                Ok(own) => read.push(own),
                Err(problem) => problems.push(SettingProblem {
                    field: format!("spec.policies.limitadors[{index}]"),
                    problem: problem.to_owned(),
                }),
            }
        }
        (Self(read), problems)
    }

    /// Whether one takes its limits from there.
    pub fn has(&self, store: &LimitStore) -> bool {
        self.0.iter().any(|own| own.store == *store)
    }

    /// The Limitador of a Gateway; none where the settings have none for it.
    pub fn of(&self, gateway: &NamespacedName) -> Option<&Limitador> {
        let named = self.0.iter().find(|own| own.gateways.contains(gateway));
        named.or_else(|| self.0.iter().find(|own| own.gateways.is_empty()))
    }
}

impl LimitadorSetting {
    fn read(&self) -> Result<Limitador, &'static str> {
        let of_namespace = |name: &String| NamespacedName::new(&self.namespace, name);
        let (store, address) = match (&self.limitador, &self.config_map, &self.host) {
            (Some(name), None, None) => (LimitStore::Limitador(of_namespace(name)), None),
            (None, Some(name), Some(host)) => {
                let port = self.port.map_or(Ok(GRPC_PORT), u16::try_from).ok().filter(|port| *port > 0);
                let Some(port) = port else { return Err("has a port that is none; write 1 to 65535") };
                let address = (host.clone(), port);
                (LimitStore::ConfigMap(of_namespace(name)), Some(address))
            }
            _ => return Err("has to name either limitador, or configMap and host"),
        };
        let gateways = self.gateways.iter().map(|own| NamespacedName::new(&own.namespace, &own.name));
        Ok(Limitador { store, address, gateways: gateways.collect() })
    }
}

impl Limitador {
    fn overlaps(&self, other: &Self) -> bool {
        let are_default = self.gateways.is_empty() && other.gateways.is_empty();
        self.store == other.store || are_default || !self.gateways.is_disjoint(&other.gateways)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_gateway_has_one_limitador_and_what_is_wrong_is_named() {
        let settings: Vec<LimitadorSetting> = serde_json::from_value(json!([
            {"namespace": "l", "limitador": "all"},
            {"namespace": "l", "configMap": "limits", "host": "l.example", "gateways": [{"namespace": "a", "name": "gw"}]},
            {"namespace": "l", "configMap": "none"},
            {"namespace": "l", "limitador": "default-too"},
            {"namespace": "l", "limitador": "b", "gateways": [{"namespace": "a", "name": "gw"}]},
            {"namespace": "l", "configMap": "p", "host": "p.example", "port": 70000, "gateways": [{"namespace": "a", "name": "p"}]},
        ]))
        .unwrap();
        let (limitadors, problems) = Limitadors::read(&settings);
        let fields: Vec<&str> = problems.iter().map(|own| own.field.as_str()).collect();
        let field = |n: usize| format!("spec.policies.limitadors[{n}]");
        assert_eq!(fields, [field(2), field(3), field(4), field(5)]);
        let of = |name: &str| limitadors.of(&NamespacedName::new("a", name)).unwrap();
        assert_eq!(of("gw").address, Some(("l.example".to_owned(), 8081)));
        assert_eq!(of("other").store, LimitStore::Limitador(NamespacedName::new("l", "all")));
    }
}
