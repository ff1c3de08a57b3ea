//! The CustomResourceDefinition of DataPlanes, for clusters that have none of Kong's.
//!
//! The part of Kong's schema that decisions need, with its messages (kubernetes-configuration 2.0,
//! `api/gateway-operator/v1beta1/dataplane_types.go`); every other field is accepted and kept as it
//! is. Rules for containers and their environment are not here: they would exceed the cost that the
//! API server allows, and cannot follow references; the webhook enforces them
//! ([`crate::data_plane::validation`]).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Fields that are not named here.
type Rest = BTreeMap<String, Value>;

/// With `has`, as the API server cannot bound the cost of optional fields.
const PROMOTING: &str = "self.spec == oldSelf.spec || !has(self.status) || !has(self.status.rollout) \
    || !has(self.status.rollout.conditions) \
    || self.status.rollout.conditions.all(c, c.type != 'RolledOut' || c.reason != 'PromotionInProgress')";

/// What a DataPlane shall be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "gateway-operator.konghq.com",
    version = "v1beta1",
    kind = "DataPlane",
    plural = "dataplanes",
    singular = "dataplane",
    shortname = "kodp",
    category = "kong",
    doc = "Pods that run Kong Gateway, and the Services before them.",
    namespaced,
    status = "DataPlaneStatus",
    schema = "derived",
    validation = kube::core::Rule::new(PROMOTING)
        .message("DataPlane spec cannot be updated when promotion is in progress"),
    scale(
        spec_replicas_path = ".spec.deployment.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.podSelector"
    ),
    printcolumn = r#"{"name": "Ready", "type": "string", "description": "Whether the live pods are ready.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Flavor", "type": "string", "description": "Router flavor of the live pods.", "jsonPath": ".status.routerFlavor"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "description": "How a staged change stands; empty where changes take effect at once.", "jsonPath": ".status.rollout.conditions[?(@.type==\"RolledOut\")].reason"}"#,
    printcolumn = r#"{"name": "Replicas", "type": "integer", "description": "How many live pods there are.", "jsonPath": ".status.replicas", "priority": 1}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "description": "Why it is ready or not.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[schemars(extend("x-kubernetes-validations" = [{
    "message": "Extension not allowed for DataPlane",
    "rule": "!has(self.extensions) || self.extensions.all(e, (e.group == 'konnect.konghq.com' \
             || e.group == 'gateway-operator.konghq.com') && e.kind == 'KonnectExtension')",
}, {
    "message": "Cross namespace references not allowed for extension references",
    "rule": "!has(self.extensions) || self.extensions.all(e, !has(e.__namespace__))",
}]))]
pub struct DataPlaneDefinition {
    /// How its pods run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployment>,
    /// How it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What stands beside its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// What extends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1))]
    pub extensions: Option<Vec<Extension>>,
    #[serde(flatten)]
    rest: Rest,
}

/// How the pods run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "message": "Using both replicas and scaling fields is not allowed.",
    "rule": "!(has(self.scaling) && has(self.replicas))",
}]))]
pub struct Deployment {
    /// How many pods are wanted; one where nothing says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// An autoscaler that says how many, in place of `replicas`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// What the pods look like: a PodTemplateSpec that is merged over the generated one. Its
    /// container `proxy` runs Kong and names the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub pod_template_spec: Option<Value>,
    /// How a change comes to the pods; at once where nothing says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutSchema>,
    /// Annotations of the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels of the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    rest: Rest,
}

/// An autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// By the number of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizontal: Option<Horizontal>,
    #[serde(flatten)]
    rest: Rest,
}

/// Autoscaling by the number of pods; metrics and behavior are those of a HorizontalPodAutoscaler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Horizontal {
    /// The fewest pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// The most pods.
    pub max_replicas: i32,
    #[serde(flatten)]
    rest: Rest,
}

/// How a change comes to the pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutSchema {
    /// The way.
    pub strategy: Strategy,
    #[serde(flatten)]
    rest: Rest,
}

/// The way of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    /// A second set of pods takes the change, and is promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blue_green: Option<BlueGreenSchema>,
    #[serde(flatten)]
    rest: Rest,
}

/// A second set of pods beside the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlueGreenSchema {
    /// When it takes the place of the first.
    #[serde(default)]
    pub promotion: Promotion,
    /// What happens to its resources.
    #[serde(default)]
    pub resources: RolloutResources,
    #[serde(flatten)]
    rest: Rest,
}

/// When the second set of pods takes the place of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promotion {
    /// `BreakBeforePromotion`: when the annotation
    /// `gateway-operator.konghq.com/promote-when-ready: "true"` says so. `AutomaticPromotion`: as soon as its pods
    /// are ready; Kong's operator knows it, and its own definition does not admit it.
    #[serde(default = "break_before_promotion")]
    #[schemars(extend("enum" = ["BreakBeforePromotion", "AutomaticPromotion"]))]
    pub strategy: String,
}

fn break_before_promotion() -> String {
    "BreakBeforePromotion".to_owned()
}

impl Default for Promotion {
    fn default() -> Self {
        Self { strategy: break_before_promotion() }
    }
}

/// What happens to the resources of the second set of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutResources {
    /// The plan.
    #[serde(default)]
    pub plan: RolloutPlan,
}

/// When the second set of pods is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutPlan {
    /// `ScaleDownOnPromotionScaleUpOnRollout`: while a change is staged.
    #[serde(default = "scale_down")]
    #[schemars(extend("enum" = ["ScaleDownOnPromotionScaleUpOnRollout"]))]
    pub deployment: String,
}

fn scale_down() -> String {
    "ScaleDownOnPromotionScaleUpOnRollout".to_owned()
}

impl Default for RolloutPlan {
    fn default() -> Self {
        Self { deployment: scale_down() }
    }
}

/// How a DataPlane is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// Its Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<Services>,
    #[serde(flatten)]
    rest: Rest,
}

/// The Services of a DataPlane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Services {
    /// The one that traffic comes through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    #[serde(flatten)]
    rest: Rest,
}

/// The Service that traffic comes through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "message": "Cannot set NodePort when service type is not NodePort or LoadBalancer",
    "rule": "!has(self.ports) || !self.ports.exists(p, has(p.nodePort)) || self.type in ['LoadBalancer', 'NodePort']",
}, {
    "message": "Cannot set ExternalTrafficPolicy for ClusterIP service.",
    "rule": "self.type != 'ClusterIP' || !has(self.externalTrafficPolicy)",
}]))]
pub struct Ingress {
    /// Type of the Service.
    #[serde(default = "load_balancer", rename = "type")]
    #[schemars(extend("enum" = ["LoadBalancer", "NodePort", "ClusterIP"]))]
    pub type_: String,
    /// Name of the Service; made up where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Annotations of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Ports of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ports: Option<Vec<PortSchema>>,
    /// As of a Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Cluster", "Local"]))]
    pub external_traffic_policy: Option<String>,
    #[serde(flatten)]
    rest: Rest,
}

fn load_balancer() -> String {
    "LoadBalancer".to_owned()
}

/// A port of the Service that traffic comes through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortSchema {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its number.
    pub port: i32,
    /// The port of the pods; 8000 where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_string")]
    pub target_port: Option<Value>,
    /// The port of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_port: Option<i32>,
    #[serde(flatten)]
    rest: Rest,
}

/// What stands beside the pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// How many pods may be away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<PodDisruptionBudget>,
    #[serde(flatten)]
    rest: Rest,
}

/// How many pods may be away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodDisruptionBudget {
    /// Spec of the PodDisruptionBudget, without its selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Budget>,
}

/// Spec of a PodDisruptionBudget, without its selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "message": "You can specify only one of maxUnavailable and minAvailable in a single PodDisruptionBudgetSpec.",
    "rule": "has(self.minAvailable) != has(self.maxUnavailable)",
}]))]
pub struct Budget {
    /// How many must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_string")]
    pub min_available: Option<Value>,
    /// How many may be away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "int_or_string")]
    pub max_unavailable: Option<Value>,
    #[serde(flatten)]
    rest: Rest,
}

/// An object of the same namespace that extends a DataPlane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extension {
    /// Its group.
    #[serde(default = "own_group")]
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; only that of the DataPlane is served, and is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

fn own_group() -> String {
    super::GROUP.to_owned()
}

/// What was observed of a DataPlane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataPlaneStatus {
    /// `Ready`, and those of extensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"], "maxItems" = 8))]
    pub conditions: Option<Vec<Condition>>,
    /// Name of the live Service that traffic comes through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Value of the label `gateway-operator.konghq.com/selector` of the live pods: not a selector,
    /// see `podSelector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 8, max = 512))]
    pub selector: Option<String>,
    /// Label selector of the live pods as text, such as `app=edge`: what `kubectl scale` and
    /// autoscalers find them by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<String>,
    /// How many live pods there are.
    #[serde(default)]
    pub replicas: i32,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Router flavor of the live pods, as their spec sets it; absent where it is not known. Kong's own
    /// definition does not have this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router_flavor: Option<String>,
    /// How a staged change stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
    #[serde(flatten)]
    rest: Rest,
}

/// How a staged change stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutStatus {
    /// `RolledOut`, and while a change is on its way `GatesPassed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"], "maxItems" = 8))]
    pub conditions: Option<Vec<Condition>>,
    #[serde(flatten)]
    rest: Rest,
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true})
}
