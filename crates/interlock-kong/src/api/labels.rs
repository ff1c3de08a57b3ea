//! Labels and annotations of what a DataPlane is made of: those of Kong's operator, which clients read.

/// Prefix of all of them but [`APP`]; users set none of these.
pub const PREFIX: &str = "gateway-operator.konghq.com/";
/// Label on all of it: name of the DataPlane.
pub const APP: &str = "app";
/// Label on all of it but pods; its value is [`MANAGED_BY_DATA_PLANE`].
pub const MANAGED_BY: &str = "gateway-operator.konghq.com/managed-by";
/// Value of the label [`MANAGED_BY`].
pub const MANAGED_BY_DATA_PLANE: &str = "dataplane";
/// Label on Deployments: `live` or `preview`.
pub const DEPLOYMENT_STATE: &str = "gateway-operator.konghq.com/dataplane-deployment-state";
/// Label on Services: `live` or `preview`.
pub const SERVICE_STATE: &str = "gateway-operator.konghq.com/dataplane-service-state";
/// Label on Services: [`INGRESS`] or [`ADMIN`].
pub const SERVICE_TYPE: &str = "gateway-operator.konghq.com/dataplane-service-type";
/// Value of the label [`SERVICE_TYPE`]: the traffic.
pub const INGRESS: &str = "ingress";
/// Value of the label [`SERVICE_TYPE`]: the admin API.
pub const ADMIN: &str = "admin";
/// Label on Secrets with a certificate: the admin Service whose pods serve it.
pub const SERVICE_SECRET: &str = "gateway-operator.konghq.com/service-secret";
/// Label on Deployments and their pods: which of the two sets of pods.
pub const SELECTOR: &str = "gateway-operator.konghq.com/selector";
/// Annotation on Deployments that the Deployment controller writes.
pub const REVISION: &str = "deployment.kubernetes.io/revision";

/// Whether users may not set a label or an annotation of this name on what a DataPlane is made of.
pub fn is_reserved(name: &str) -> bool {
    name == APP || name == REVISION || name.starts_with(PREFIX)
}
