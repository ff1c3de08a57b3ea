//! Overrides of the rules about router flavors.

use crate::api::kong;
use crate::api::meta;
use crate::api::rule::Rule;
use k8s_openapi::api::admissionregistration::v1::{AuditAnnotation, ValidatingAdmissionPolicy, Validation};

use super::flavor::guarded_sources::MOST;
use super::flavor::reading::VARIABLE;
use crate::kinds::descriptor::cel;
use crate::kinds::descriptor::{PolicyOptions, PolicyScope, only_where, policy_over};

/// Overrides of the rules about router flavors, by the API server's own authorizer. No override counts
/// unless policy and binding are intact.
pub const OVERRIDES: &str = "interlock-flavor-overrides";

/// Resources that declare a flavor: group, version and resource.
const WRITTEN_IN: [(&str, &str, &str); 4] = [
    (kong::GROUP, kong::VERSION, "dataplanes"),
    ("apps", "v1", "deployments"),
    ("", "v1", "configmaps"),
    ("", "v1", "secrets"),
];

/// The author of the annotation must have the verb on that object. Only writes that add it are checked: an
/// unchanged one permits nothing new, and a new object has nothing to override.
pub fn overrides(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let key = cel::string(meta::ALLOW_FLAVOR);
    let of = |object: &str| format!("{object}.?metadata.?annotations[?{key}].orValue('')");
    let (new, old) = (of("object"), of("oldObject"));
    let verb = meta::ALLOW_FLAVOR_VERB;
    let may = may_override();
    let resource =
        "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)";
    let named = options.named_rule(Rule::FLAVOR_ALLOWED);
    let validation = Validation {
        expression: may,
        message: Some(format!(
            "annotation {} needs the verb {verb} on the object; ask for a role that gives it{named}",
            meta::ALLOW_FLAVOR
        )),
        message_expression: Some(format!(
            "request.kind.kind + ' ' + request.namespace + '/' + request.name + ': user ' + request.userInfo.username + \
             ' has no verb {verb} on ' + {resource} + ' here, which annotation {} needs; ask for a role that gives it, as \
             admin does{named}'",
            meta::ALLOW_FLAVOR
        )),
        reason: Some("Invalid".to_owned()),
    };
    let scope = PolicyScope { resources: &WRITTEN_IN, operations: &["UPDATE"] };
    let policy = policy_over(OVERRIDES, &scope, &[], vec![validation], options);
    let mut policy = only_where(policy, "brings-an-override", &format!("{new} != '' && {new} != {old}"));
    if let Some(spec) = &mut policy.spec {
        spec.audit_annotations = Some(vec![AuditAnnotation {
            key: "router-flavor-override".to_owned(),
            value_expression: format!("request.userInfo.username + ': ' + {new}"),
        }]);
    }
    policy
}

/// Only who may update a ConfigMap or Secret has it guarded for a gateway: the guard keeps others from changing it.
pub const GUARDED_SOURCES: &str = "interlock-guarded-flavor-sources";

/// The author of the annotation must have the right to update each object that it lists. Only writes that change it are
/// checked.
pub fn guarded_sources(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let key = cel::string(meta::GUARDED_SOURCES);
    let of = |object: &str| {
        format!("({object} == null ? '' : {object}.?metadata.?annotations[?{key}].orValue(''))")
    };
    let (new, old) = (of("object"), of("oldObject"));
    let named = options.named_rule(Rule::FLAVOR_SOURCE);
    let what = format!(
        "annotation {} lists objects of this namespace that the author may update, as configmaps/NAME or secrets/NAME, at \
         most {MOST}",
        meta::GUARDED_SOURCES
    );
    let remedy = "leave the others out: they are read all the same, and not guarded";
    let validation = Validation {
        expression: format!(
            "variables.listed.size() <= {MOST} && variables.listed.all(entry, entry.matches('^(configmaps|secrets)/[^/]+$') && \
             authorizer.group('').resource(entry.split('/')[0]).namespace(request.namespace)\
             .name(entry.split('/')[1]).check('update').allowed())"
        ),
        message: Some(format!("{what}; {remedy}{named}")),
        message_expression: Some(format!(
            "request.kind.kind + ' ' + request.namespace + '/' + request.name + ': {what}; {remedy}{named}'"
        )),
        reason: Some("Invalid".to_owned()),
    };
    let listed = format!("{new}.split(',')");
    let scope = PolicyScope { resources: &WRITTEN_IN[..2], operations: &["CREATE", "UPDATE"] };
    let policy = policy_over(GUARDED_SOURCES, &scope, &[("listed", &listed)], vec![validation], options);
    only_where(policy, "lists-other-sources", &format!("{new} != '' && {new} != {old}"))
}

/// Whether the pods at this path of the spec have variables from ConfigMaps or Secrets, all of which the user may update. The right
/// to update every object of the namespace is asked for first: a condition may ask seven times.
pub(crate) fn may_update_sources(template: &str) -> String {
    let containers = format!("object.?spec.?{template}.?spec.?containers.orValue([])");
    let (entries, whole) =
        (format!("c.?env.orValue([]).filter(e, e.name.startsWith('{VARIABLE}'))"), "c.?envFrom.orValue([])");
    let may = |resource: &str, key: &str, map: &str| {
        let ask = format!("authorizer.group('').resource('{resource}').namespace(request.namespace)");
        format!(
            "({ask}.check('update').allowed() || {containers}.all(c, \
             {entries}.all(e, !e.?valueFrom.?{key}.?name.hasValue() || {ask}.name(e.valueFrom.{key}.name).check('update').allowed()) && \
             {whole}.all(f, !f.?{map}.?name.hasValue() || {ask}.name(f.{map}.name).check('update').allowed())))"
        )
    };
    format!(
        "{containers}.exists(c, {entries}.exists(e, e.?valueFrom.hasValue()) || {whole}.size() > 0)\n&& {}\n&& {}",
        may("configmaps", "configMapKeyRef", "configMapRef"),
        may("secrets", "secretKeyRef", "secretRef")
    )
}

/// Whether the user may override the rules about flavors on the written object.
pub(crate) fn may_override() -> String {
    format!(
        "authorizer.group(request.resource.group).resource(request.resource.resource)\
         .namespace(request.namespace).name(request.name).check({}).allowed()",
        cel::string(meta::ALLOW_FLAVOR_VERB)
    )
}
