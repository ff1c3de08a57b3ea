//! References to OperatorVersions of other namespaces.

use interlock_core::api::meta;
use interlock_core::kinds::descriptor::cel;
use interlock_core::kinds::descriptor::{PolicyOptions, only_where};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::instance_policy::{guard, policy};
use crate::instance::rules::ids::VERSION_NAMESPACE;

/// OperatorVersions of other namespaces, by the API server's own authorizer.
pub const VERSIONS: &str = meta::install::VERSIONS_POLICY;

/// A reference to an OperatorVersion of another namespace needs the right to read it: its templates and
/// defaults show in the objects of the Instance.
pub fn versions(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let of = |object: &str, field: &str| format!("{object}.?spec.?operatorVersion.?{field}.orValue('')");
    let before = |field: &str| format!("oldObject == null ? '' : {}", of("oldObject", field));
    let owned = [
        ("newNamespace", of("object", "namespace")),
        ("newName", of("object", "name")),
        ("oldNamespace", before("namespace")),
        ("oldName", before("name")),
        (
            "refers",
            "variables.newNamespace != '' && variables.newNamespace != request.namespace \
             && (variables.newNamespace != variables.oldNamespace || variables.newName != variables.oldName)"
                .to_owned(),
        ),
    ];
    let variables: Vec<(&str, &str)> = owned.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let may_read = format!(
        "!variables.refers || authorizer.group({}).resource('operatorversions').namespace(variables.newNamespace)\
         .name(variables.newName).check('get').allowed()",
        cel::string(meta::KUDO_GROUP)
    );
    let validations = vec![guard(
        options,
        VERSION_NAMESPACE,
        &may_read,
        "an OperatorVersion of another namespace is used only by who may get it there; use one of the Instance's own",
        "user ' + request.userInfo.username + ' may not get OperatorVersion ' + variables.newNamespace + '/' + \
         variables.newName + '; use one of namespace ' + request.namespace + ', or ask for the right to get that one",
    )];
    let all = policy(VERSIONS, ("instances", &["CREATE", "UPDATE"]), &variables, validations, options);
    only_where(all, "names-a-namespace", &format!("{} != ''", of("object", "namespace")))
}
