//! The labelled objects that are watched for gateways and DataPlanes.

use interlock_core::api::meta;
use interlock_core::api::watched::Labelled;

use crate::api::labels;

/// Deployments that run Kong or configure it.
pub const GUARDED_DEPLOYMENTS: Labelled = guarded("apps", "Deployment", "GuardedDeployment");
/// Services by which ingress controllers reach their gateways.
pub const GUARDED_SERVICES: Labelled = guarded("", "Service", "GuardedService");
/// ConfigMaps that flavors may come from.
pub const FLAVOR_SOURCES: Labelled =
    Labelled { group: "", kind: "ConfigMap", label: meta::FLAVOR_SOURCE, value: None, name: "FlavorSource" };

/// Deployments that belong to DataPlanes.
pub const DATA_PLANE_DEPLOYMENTS: Labelled = of_data_planes("apps", "Deployment", "DataPlaneDeployment");
/// Services that belong to DataPlanes.
pub const DATA_PLANE_SERVICES: Labelled = of_data_planes("", "Service", "DataPlaneService");
/// HorizontalPodAutoscalers that belong to DataPlanes.
pub const DATA_PLANE_AUTOSCALERS: Labelled =
    of_data_planes("autoscaling", "HorizontalPodAutoscaler", "DataPlaneAutoscaler");
/// PodDisruptionBudgets that belong to DataPlanes.
pub const DATA_PLANE_DISRUPTION_BUDGETS: Labelled =
    of_data_planes("policy", "PodDisruptionBudget", "DataPlaneDisruptionBudget");

/// Pods of DataPlanes.
pub const DATA_PLANE_PODS: Labelled =
    Labelled { group: "", kind: "Pod", label: labels::SELECTOR, value: None, name: "DataPlanePod" };
/// EndpointSlices of the Services of DataPlanes: Kubernetes copies the labels of a Service to its endpoints.
pub const DATA_PLANE_ENDPOINTS: Labelled =
    of_data_planes("discovery.k8s.io", "EndpointSlice", "DataPlaneEndpointSlice");

pub const LABELLED: [Labelled; 9] = [
    GUARDED_DEPLOYMENTS,
    GUARDED_SERVICES,
    FLAVOR_SOURCES,
    DATA_PLANE_DEPLOYMENTS,
    DATA_PLANE_SERVICES,
    DATA_PLANE_AUTOSCALERS,
    DATA_PLANE_DISRUPTION_BUDGETS,
    DATA_PLANE_PODS,
    DATA_PLANE_ENDPOINTS,
];

const fn guarded(group: &'static str, kind: &'static str, name: &'static str) -> Labelled {
    Labelled { group, kind, label: meta::GUARD, value: Some(meta::GUARD_FLAVOR), name }
}

const fn of_data_planes(group: &'static str, kind: &'static str, name: &'static str) -> Labelled {
    Labelled { group, kind, label: labels::MANAGED_BY, value: Some(labels::MANAGED_BY_DATA_PLANE), name }
}
