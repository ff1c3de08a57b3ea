//! Overrides of the rules about router flavors.

use interlock_core::api::meta;
use interlock_core::kinds::descriptor::cel;
use interlock_core::kinds::descriptor::{PolicyOptions, PolicyScope, only_where, policy_over};
use k8s_openapi::api::admissionregistration::v1::{AuditAnnotation, ValidatingAdmissionPolicy, Validation};

use super::flavor::guarded_sources::MOST;
use super::flavor::reading::VARIABLE;
use crate::api;
use crate::api::PROXY;
use crate::data_plane::rules::ids::FLAVOR_ALLOWED;
use crate::data_plane::rules::ids::FLAVOR_SOURCE;

/// Overrides of the rules about router flavors, by the API server's own authorizer. No override counts
/// unless policy and binding are intact.
pub const OVERRIDES: &str = "interlock-flavor-overrides";

/// Resources that declare a flavor: group, version and resource. A write of the status of a Deployment may bring
/// annotations as well.
const WRITTEN_IN: [(&str, &str, &str); 5] = [
    (api::GROUP, api::VERSION, "dataplanes"),
    ("apps", "v1", "deployments"),
    ("apps", "v1", "deployments/status"),
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
    let named = options.named_rule(FLAVOR_ALLOWED);
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
/// checked. An expression of CEL may ask the authorizer twice (`PerCallLimit`), so each question is a variable.
pub fn guarded_sources(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let key = cel::string(meta::GUARDED_SOURCES);
    let of = |object: &str| {
        format!("({object} == null ? '' : {object}.?metadata.?annotations[?{key}].orValue(''))")
    };
    let (new, old) = (of("object"), of("oldObject"));
    let named = options.named_rule(FLAVOR_SOURCE);
    let what = format!(
        "annotation {} lists objects of this namespace that the author may update, as configmaps/NAME or secrets/NAME, at \
         most {MOST}",
        meta::GUARDED_SOURCES
    );
    let remedy = "leave the others out: their changes are then not guarded";
    let mut variables = vec![
        ("listed".to_owned(), format!("{new}.split(',')")),
        ("configmaps".to_owned(), may_update_all("configmaps")),
        ("secrets".to_owned(), may_update_all("secrets")),
    ];
    let mut expression = format!(
        "variables.listed.size() <= {MOST} && \
         variables.listed.all(entry, entry.matches('^(configmaps|secrets)/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'))"
    );
    for at in 0..MOST {
        let entry = format!("variables.listed[{at}]");
        let general =
            format!("({entry}.startsWith('configmaps/') ? variables.configmaps : variables.secrets)");
        let by_name = format!(
            "authorizer.group('').resource({entry}.split('/')[0]).namespace(request.namespace)\
             .name({entry}.split('/')[1]).check('update').allowed()"
        );
        variables
            .push((format!("may{at}"), format!("variables.listed.size() <= {at} || {general} || {by_name}")));
        expression.push_str(&format!(" && variables.may{at}"));
    }
    let validation = Validation {
        expression,
        message: Some(format!("{what}; {remedy}{named}")),
        message_expression: Some(format!(
            "request.kind.kind + ' ' + request.namespace + '/' + request.name + ': {what}; {remedy}{named}'"
        )),
        reason: Some("Invalid".to_owned()),
    };
    let variables: Vec<_> = variables.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let scope = PolicyScope { resources: &WRITTEN_IN[..3], operations: &["CREATE", "UPDATE"] };
    let policy = policy_over(GUARDED_SOURCES, &scope, &variables, vec![validation], options);
    only_where(policy, "lists-other-sources", &format!("{new} != '' && {new} != {old}"))
}

fn may_update_all(resource: &str) -> String {
    format!(
        "authorizer.group('').resource('{resource}').namespace(request.namespace).check('update').allowed()"
    )
}

/// The references of pods at this path of the spec: those of the variable, and whole objects. Of a DataPlane only the
/// container of Kong counts.
fn references(template: &str, member: &str, whole: &str) -> String {
    let containers = format!("object.?spec.?{template}.?spec.?containers.orValue([])");
    let is_kong = if template == OF_DATA_PLANES { format!("c.name == '{PROXY}' && ") } else { String::new() };
    format!(
        "{containers}.exists(c, {is_kong}(\
         c.?env.orValue([]).exists(e, e.name.startsWith('{VARIABLE}') && e.?valueFrom.?{member}.hasValue()) || \
         c.?envFrom.orValue([]).exists(f, f.?{whole}.hasValue())))"
    )
}

/// Where DataPlanes and Deployments have the template of their pods.
pub(crate) const OF_DATA_PLANES: &str = "deployment.?podTemplateSpec";
pub(crate) const OF_DEPLOYMENTS: &str = "template";

/// Whether the pods at this path of the spec have variables from ConfigMaps or Secrets.
pub(crate) fn have_sources(template: &str) -> String {
    format!("{} || {}", of_config_maps(template), of_secrets(template))
}

fn of_config_maps(template: &str) -> String {
    references(template, "configMapKeyRef", "configMapRef")
}

fn of_secrets(template: &str) -> String {
    references(template, "secretKeyRef", "secretRef")
}

/// Whether the user may update every ConfigMap of the namespace, if one is referred to.
pub(crate) fn may_update_config_maps(template: &str) -> String {
    format!("!({}) || {}", of_config_maps(template), may_update_all("configmaps"))
}

pub(crate) fn may_update_secrets(template: &str) -> String {
    format!("!({}) || {}", of_secrets(template), may_update_all("secrets"))
}

/// Whether the user may override the rules about flavors on the written object.
pub(crate) fn may_override() -> String {
    format!(
        "authorizer.group(request.resource.group).resource(request.resource.resource)\
         .namespace(request.namespace).name(request.name).check({}).allowed()",
        cel::string(meta::ALLOW_FLAVOR_VERB)
    )
}
