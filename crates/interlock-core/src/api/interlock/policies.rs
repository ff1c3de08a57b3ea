//! How policies of the Gateway API are carried out: `spec.policies`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::auth_servers::AuthServerSetting;
use super::limitadors::LimitadorSetting;

/// How policies of the Gateway API are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoliciesSetting {
    /// The Limitadors that count requests. One that names no Gateways counts for all that no other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub limitadors: Vec<LimitadorSetting>,
    /// The servers that authenticate and authorize requests, by the AuthConfigs that Interlock writes. One that names no
    /// Gateways decides for all that no other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub auth_servers: Vec<AuthServerSetting>,
    /// Whether Envoy Gateway runs with its runtime flag `XDSNameSchemeV2`, which names listeners by their ports.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub xds_name_scheme_v2: bool,
}

impl PoliciesSetting {
    /// Reads `spec.policies`; none where it is not as its schema says.
    pub fn of(policies: &Value) -> Option<Self> {
        if policies.is_null() { Some(Self::default()) } else { Self::deserialize(policies).ok() }
    }
}
