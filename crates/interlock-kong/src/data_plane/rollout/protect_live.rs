//! The policy that keeps people from deleting the live side of a DataPlane, which would be made again, but not
//! with the pods and the address that it had. Installations opt in.

use interlock_core::api::meta;
use interlock_core::kinds::descriptor::cel;
use interlock_core::kinds::descriptor::{PolicyOptions, PolicyScope, only_where, policy_over};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};

use crate::api::{GROUP, labels};
use crate::data_plane::rules::ids::DATA_PLANE_LIVE_CHILD;

/// Name of the policy.
pub const PROTECT_LIVE: &str = "interlock-protect-live";

/// What a live side is made of: group, version and resource.
const CHILDREN: [(&str, &str, &str); 4] = [
    ("apps", "v1", "deployments"),
    ("", "v1", "services"),
    ("autoscaling", "v2", "horizontalpodautoscalers"),
    ("policy", "v1", "poddisruptionbudgets"),
];

/// Who deletes what is live with its DataPlane or its namespace, and takes owners off: controllers of Kubernetes,
/// under their own accounts or under that of all of them.
const OF_KUBERNETES: [&str; 3] = [
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:kube-controller-manager",
];

/// What is live is neither deleted nor stripped of its marks, except by the process and Kubernetes.
pub fn protect_live(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let named = options.named_rule(DATA_PLANE_LIVE_CHILD);
    let (owner, hash) = (is_owner(), meta::APPLIED_HASH);
    let what = format!("nobody deletes it, or takes its labels, its owner or annotation {hash} off");
    let remedy = "change the DataPlane, or delete that";
    let owner = format!("oldObject.metadata.ownerReferences.filter(r, {owner})[0]");
    let validation = Validation {
        expression: format!(
            "request.operation != 'DELETE' && {} && object.metadata.ownerReferences.exists(r, r.uid == {owner}.uid)",
            is_live("object")
        ),
        message: Some(format!("it is live for a DataPlane: {what}; {remedy}{named}")),
        message_expression: Some(format!(
            "request.kind.kind + ' ' + request.namespace + '/' + request.name + ' is live for DataPlane ' + {owner}.name + \
             ': {what}; {remedy}{named}'"
        )),
        reason: Some("Invalid".to_owned()),
    };
    let scope = PolicyScope { resources: &CHILDREN, operations: &["UPDATE", "DELETE"] };
    let policy = policy_over(PROTECT_LIVE, &scope, &[], vec![validation], options);
    let others = OF_KUBERNETES.map(cel::string).join(", ");
    let policy = only_where(policy, "not-kubernetes", &format!("!(request.userInfo.username in [{others}])"));
    only_where(policy, "is-live", &is_live("oldObject"))
}

/// Whether an owner reference is that of a DataPlane which controls the object.
fn is_owner() -> String {
    let group = cel::string(&format!("{GROUP}/"));
    format!("r.?controller.orValue(false) && r.kind == 'DataPlane' && r.apiVersion.startsWith({group})")
}

/// Whether an object is one that Interlock applied for the live side of a DataPlane. What Kong's operator made has
/// the labels, and not the annotation.
fn is_live(object: &str) -> String {
    let label = |name| format!("{object}.?metadata.?labels[?{}].orValue('')", cel::string(name));
    let live = format!(
        "({} == 'live' || {} == 'live' || (request.resource.resource in ['horizontalpodautoscalers', 'poddisruptionbudgets'] \
         && {} == {}))",
        label(labels::DEPLOYMENT_STATE),
        label(labels::SERVICE_STATE),
        label(labels::MANAGED_BY),
        cel::string(labels::MANAGED_BY_DATA_PLANE),
    );
    format!(
        "{live} && {object}.?metadata.?annotations[?{hash}].orValue('') != '' \
         && {object}.?metadata.?ownerReferences.orValue([]).exists(r, {owner})",
        hash = cel::string(meta::APPLIED_HASH),
        owner = is_owner(),
    )
}
