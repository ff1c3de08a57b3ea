//! The Helm chart, `manifests/helm/interlock`: written by hand once, and rendered here by the values that the options
//! are. What follows from the kinds is given to it ([`super::helm`]).

use std::fmt::Write as _;

use go_template::{Functions, Never, ParseError, RenderError, Root, Template};
use interlock_core::admission::Freeze;
use interlock_core::api::docs::DocsUrl;
use interlock_core::kinds::Kinds;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::{CertificateIssuer, ClientCa, Endpoint, InstallOptions, Layout, rules};

macro_rules! written {
    ($($path:literal),+ $(,)?) => {
        [$(($path, include_str!(concat!("../../manifests/helm/interlock/", $path)))),+]
    };
}

/// Every file that is written by hand, by its path.
pub(super) const WRITTEN: [(&str, &str); 9] = written![
    "Chart.yaml",
    "values.yaml",
    "values.schema.json",
    "templates/NOTES.txt",
    "templates/_deployment.tpl",
    "templates/_helpers.tpl",
    "templates/monitoring.yaml",
    "templates/rbac.yaml",
    "templates/workload.yaml",
];

/// The dashboard of Grafana, to import or to mount.
pub(super) const DASHBOARD: &str = include_str!("../../manifests/monitoring/dashboard.json");

/// Why a chart comes to no objects.
#[derive(Debug, Error)]
pub enum ChartError {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error("{0} is no YAML")]
    Read(&'static str, #[source] serde_saphyr::Error),
    #[error("it cannot be written as YAML")]
    Write(#[from] serde_saphyr::ser::Error),
}

/// A file of the chart that is written by hand.
fn written(path: &str) -> &'static str {
    WRITTEN.iter().find(|(name, _)| *name == path).map_or("", |(_, text)| text)
}

/// The objects of a template, in its order.
pub(super) fn objects(path: &'static str, options: &InstallOptions) -> Result<Vec<Value>, ChartError> {
    rendered(path, written(path), options)
}

/// The objects of a text with the named templates of the chart.
pub(super) fn rendered(
    name: &'static str,
    text: &str,
    options: &InstallOptions,
) -> Result<Vec<Value>, ChartError> {
    let helpers = ["templates/_helpers.tpl", "templates/_deployment.tpl"].map(written).concat();
    let text = [helpers.as_str(), &rules_of_roles(options.kinds)?, &dashboard(), text].concat();
    let root = go_template::Value::from(json!({
        "Values": values(options)?,
        "Release": {"Namespace": options.namespace},
        "Chart": {"AppVersion": env!("CARGO_PKG_VERSION")},
    }));
    let text = Template::parse(name, &text, &Functions::sprig())?.render(&Root::from(&root), &Never)?;
    let objects = serde_saphyr::from_multiple(&text).map_err(|error| ChartError::Read(name, error))?;
    Ok(objects.into_iter().filter(|object: &Value| !object.is_null()).collect())
}

/// The values of the chart, with all that it has by default and no option is about.
fn values(options: &InstallOptions) -> Result<Map<String, Value>, ChartError> {
    let mut values: Map<String, Value> = serde_saphyr::from_str(written("values.yaml"))
        .map_err(|error| ChartError::Read("values.yaml", error))?;
    let freeze = match options.freeze {
        Freeze::Strict => "strict",
        Freeze::SamePlan => "same-plan",
    };
    let certificates = match options.certificates {
        CertificateIssuer::BuiltIn => "builtin",
        CertificateIssuer::CertManager => "cert-manager",
    };
    let given = [
        // The image is one of `render`.
        ("image", json!({"repository": "", "tag": "", "pullPolicy": ""})),
        ("replicas", json!(options.replicas)),
        ("freeze", json!(freeze)),
        ("docsUrl", json!(options.docs.as_ref().map(DocsUrl::as_str))),
        ("certificates", json!(certificates)),
        ("flavorSecrets", json!(options.flavor_secrets)),
        ("dataplanes", json!(options.data_planes)),
        ("policies", json!(options.policies)),
        ("dataplaneCertificates", json!(options.data_plane_certificates)),
        ("protectLive", json!(options.protect_live)),
        ("packages", json!({"clusterAdmin": options.packages_cluster_admin})),
        ("monitoring", json!({"serviceMonitor": true, "rules": true, "dashboard": true})),
        ("render", beyond_values(options)),
    ];
    values.extend(given.map(|(name, value)| (name.to_owned(), value)));
    Ok(values)
}

/// The options that the values of the chart have nothing for.
fn beyond_values(options: &InstallOptions) -> Value {
    let client_ca = |ca: &ClientCa| json!({"configMap": ca.config_map, "names": ca.names});
    json!({
        "apiServers": options.api_servers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "clientCa": options.client_ca.as_ref().map(client_ca),
        "controllerUser": options.controller_user,
        "image": options.image,
        "outside": matches!(options.endpoint, Endpoint::Url { .. }),
        "packages": options.packages.to_string(),
        "serviceName": options.service(),
        "split": options.layout == Layout::Split,
        "strictEgress": options.strict_egress,
        "watchNamespaces": options.watch_namespaces,
    })
}

/// A named template for each role, with the rules that follow from the kinds; without any it is empty.
pub(super) fn rules_of_roles(kinds: Kinds) -> Result<String, serde_saphyr::ser::Error> {
    let template = |(role, rules): (&str, Vec<PolicyRule>)| {
        let rules = if rules.is_empty() { String::new() } else { yaml(&[json!(rules)])? };
        Ok(named(&format!("rules.{role}"), &rules))
    };
    rules::of_roles(kinds).into_iter().map(template).collect()
}

/// The dashboard as a template, for a block of lines in the ConfigMap.
pub(super) fn dashboard() -> String {
    let lines: String = DASHBOARD.lines().map(|line| format!("    {line}\n")).collect();
    named("dashboard", &lines)
}

/// A template with a name, without a line break at its end.
fn named(name: &str, text: &str) -> String {
    format!("{{{{- define \"interlock.{name}\" }}}}\n{}{{{{- end }}}}\n", literal(text))
}

/// A text that holds no action.
pub(super) fn literal(text: &str) -> String {
    text.replace("{{", "{{`{{`}}")
}

/// Multi-document YAML.
pub fn yaml(objects: &[Value]) -> Result<String, serde_saphyr::ser::Error> {
    let mut out = String::new();
    for (i, object) in objects.iter().enumerate() {
        let separator = if i > 0 { "---\n" } else { "" };
        let text = serde_saphyr::to_string(object)?;
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{separator}{}", text.trim_end());
    }
    Ok(out)
}
