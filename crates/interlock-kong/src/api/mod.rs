//! `gateway-operator.konghq.com/v1beta1`: DataPlane.
//!
//! The fields that decisions read, under the names of Kong's stock CRD (kubernetes-configuration
//! 2.0, `api/gateway-operator/v1beta1`). Other fields are accepted and kept: the text of the object
//! is stored and carried out. `null` reads as absent, as in Go.

pub mod definition;
pub mod labels;
pub mod listing;
pub mod stamp;

use interlock_core::api::pod::{PodTemplate, or_default};
use serde::Deserialize;
use serde_json::Value;

/// Group of DataPlanes and ControlPlanes.
pub const GROUP: &str = "gateway-operator.konghq.com";
/// Version of DataPlanes.
pub const VERSION: &str = "v1beta1";
/// `apiVersion` of DataPlanes.
pub const API_VERSION: &str = "gateway-operator.konghq.com/v1beta1";
/// Lease of the leader of Kong's operator, in its namespace (`modules/manager/run.go`).
pub const OPERATOR_LEASE: &str = "a7feedc84.konghq.com";
/// Finalizer of Kong's operator on Deployments, Services and Secrets of DataPlanes; only it takes it off.
pub const WAIT_FOR_OWNER: &str = "gateway-operator.konghq.com/wait-for-owner";
/// Name of the container that runs Kong; the others do not count, in any position.
pub const PROXY: &str = "proxy";
/// Ports that the generated container [`PROXY`] has, by name.
pub const PROXY_PORTS: [(&str, u16); 4] =
    [("proxy", 8000), ("proxy-ssl", 8443), ("metrics", 8100), ("admin-ssl", 8444)];

/// The condition of a type in a status.
pub fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

/// The container [`PROXY`] of a pod template.
pub fn proxy(template: &Value) -> Option<&Value> {
    template["spec"]["containers"].as_array()?.iter().find(|container| container["name"] == PROXY)
}

/// Spec of a DataPlane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DataPlaneSpec {
    /// Deployment of its pods.
    #[serde(default, deserialize_with = "or_default")]
    pub deployment: DataPlaneDeployment,
    /// Network settings: its Services.
    #[serde(default, deserialize_with = "or_default")]
    pub network: DataPlaneNetwork,
}

/// Network settings of a DataPlane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DataPlaneNetwork {
    #[serde(default, deserialize_with = "or_default")]
    pub services: DataPlaneServices,
}

/// The Services of a DataPlane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DataPlaneServices {
    #[serde(default, deserialize_with = "or_default")]
    pub ingress: IngressService,
}

/// The ingress Service, which receives the traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IngressService {
    /// Its ports; 80 and 443 where there are none.
    #[serde(default, deserialize_with = "or_default")]
    pub ports: Vec<IngressPort>,
}

/// A port of the ingress Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressPort {
    /// Number of the port of the Service.
    #[serde(default)]
    pub port: Option<Value>,
    /// Number or name of the port of the pods; 8000 where it is absent.
    #[serde(default)]
    pub target_port: Option<Value>,
}

/// Deployment of the pods of a DataPlane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataPlaneDeployment {
    /// Number of desired pods; absent means one.
    #[serde(default)]
    pub replicas: Option<i32>,
    #[serde(default, deserialize_with = "or_default")]
    pub pod_template_spec: PodTemplate,
    /// Rollout of changes.
    #[serde(default)]
    pub rollout: Option<Rollout>,
}

/// Rollout of changes to the pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Rollout {
    #[serde(default, deserialize_with = "or_default")]
    pub strategy: RolloutStrategy,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// A second set of pods beside the first, promoted when it is ready.
    #[serde(default)]
    pub blue_green: Option<BlueGreen>,
}

/// A second set of pods beside the first; no decision reads its details.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct BlueGreen {}

impl DataPlaneSpec {
    /// Whether changes are staged: a second set of pods takes them.
    pub fn is_staged(&self) -> bool {
        self.deployment.rollout.as_ref().is_some_and(|rollout| rollout.strategy.blue_green.is_some())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::nothing(json!({}), false)]
    #[case::no_strategy(json!({"rollout": {}}), false)]
    #[case::null(json!({"rollout": {"strategy": {"blueGreen": null}}, "podTemplateSpec": null}), false)]
    #[case::defaults(json!({"rollout": {"strategy": {"blueGreen": {}}}}), true)]
    #[case::said(json!({"rollout": {"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}}}), true)]
    fn blue_green_is_seen(#[case] deployment: serde_json::Value, #[case] staged: bool) {
        let spec: DataPlaneSpec =
            serde_json::from_value(json!({"deployment": deployment, "network": {"any": 1}})).unwrap();
        assert_eq!(spec.is_staged(), staged);
    }
}
