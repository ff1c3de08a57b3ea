//! Rights that are opt-in: each a ClusterRole with its binding, behind a flag of `interlock render`, a value of the
//! chart or an overlay of its own.

use interlock_core::api::meta::install;
use interlock_core::kinds::descriptor::Role as Grantee;
use interlock_kong::api::OPERATOR_LEASE;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::rbac_objects::{Named, bind, bind_cluster, cluster_role, own, role, rule, subject};
use super::{InstallOptions, kind_rights};

/// The rights that KUDO gives its packages: everything. An overlay of its own, never part of the base.
pub fn packages_cluster_admin(options: &InstallOptions) -> Value {
    json!(bind_cluster(
        "interlock-packages-cluster-admin",
        "cluster-admin",
        subject(&options.packages.namespace, &options.packages.name)
    ))
}

/// The rights to label Secrets that are sources of flavors. Opt-in: the right to read a Secret whose name
/// is not known beforehand is the right to read them all.
pub fn flavor_secrets(options: &InstallOptions) -> Vec<Value> {
    let rules = kind_rights::of(options.kinds, Grantee::FlavorSecrets);
    granted(FLAVOR_SECRETS, rules, FLAVOR_SECRETS_WHY, options)
}

/// The rights to carry DataPlanes out. Opt-in: the right to write Deployments is the right to run pods as any
/// service account.
pub fn data_planes(options: &InstallOptions) -> Vec<Value> {
    let mut rules = kind_rights::of_watches(options.kinds, |watch| !kind_rights::is_on_by_default(watch));
    rules.extend(kind_rights::of(options.kinds, Grantee::DataPlanes));
    // Whether Kong's operator leads: nothing is taken over from it while it does.
    rules.push(rule(["coordination.k8s.io"], ["leases"], ["get"]).named([OPERATOR_LEASE]));
    granted(DATA_PLANES, rules, DATA_PLANES_WHY, options)
}

/// The rights to make the certificates of the admin APIs of DataPlanes. Opt-in: RBAC cannot limit a right to names
/// that begin the same, so it is one on every Secret of a namespace.
pub fn data_plane_certificates(options: &InstallOptions) -> Vec<Value> {
    let rules = kind_rights::of(options.kinds, Grantee::DataPlaneCertificates);
    let authority = vec![rule([""], ["secrets"], ["get", "patch"]).named([install::DATA_PLANE_CA_SECRET])];
    let mut all = granted(DATA_PLANE_CERTIFICATES, rules, DATA_PLANE_CERTIFICATES_WHY, options);
    all.push(json!(role(DATA_PLANE_CERTIFICATES, &options.namespace, authority)));
    all.push(json!(bind(DATA_PLANE_CERTIFICATES, &options.namespace, options)));
    all
}

/// A ClusterRole and the binding of the process to it.
fn granted(name: &str, rules: Vec<PolicyRule>, why: &str, options: &InstallOptions) -> Vec<Value> {
    vec![
        json!(cluster_role(name, rules, Some(why))),
        json!(bind_cluster(name, name, own(install::NAME, options))),
    ]
}

/// ClusterRole and binding of `--flavor-secrets`.
pub(super) const FLAVOR_SECRETS: &str = "interlock-flavor-secrets";
const FLAVOR_SECRETS_WHY: &str = "Secrets that the router flavor of a gateway comes from are labelled, so that changes of \
     them are judged (--flavor-secrets). Their names are not known beforehand; they are read and patched by name, and nothing \
     lists or watches Secrets.";

/// ClusterRole and binding of `--dataplanes`.
pub(super) const DATA_PLANES: &str = "interlock-dataplanes";
const DATA_PLANES_WHY: &str = "The process makes what belongs to DataPlanes, and changes and deletes it (--dataplanes), \
     while spec.capabilities.dataplanes.mode of Interlock default is auto or manual. With the right to write Deployments \
     it can run pods in every namespace.";

/// ClusterRole and binding of `--dataplane-certificates`, and the Role for the CA in the namespace of the process.
pub(super) const DATA_PLANE_CERTIFICATES: &str = "interlock-dataplane-certificates";
const DATA_PLANE_CERTIFICATES_WHY: &str = "The process makes the Secret dataplane-NAME-certificate of each DataPlane whose \
     pods mount it, and renews it (--dataplane-certificates). RBAC cannot limit a right to names that begin the same: this \
     one is to read and write every Secret. To limit it to the namespaces of DataPlanes, delete the ClusterRoleBinding and \
     bind the ClusterRole there by RoleBindings. Nothing lists, watches or deletes Secrets.";
