//! The Helm chart, from the objects that `interlock render` prints.
//!
//! Objects are rendered with marks where a value belongs, printed, and the marks become template actions. So
//! the chart with its default values is the installation with its default options, and cannot fall behind.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use interlock_core::admission::Freeze;
use interlock_core::api::meta::install;
use interlock_core::api::object::NamespacedName;
use serde_json::{Value, json};

use super::role::DeploymentRole;
use super::{
    CertificateIssuer, InstallOptions, Part, monitoring, objects, opt_in_rights, policies, rbac, workload,
    yaml,
};

/// First line of every template.
const HEADER: &str = "{{- /* Rendered by `interlock render helm`; do not edit. */ -}}\n";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Marks: words that nothing else has.
const NAMESPACE: &str = "mark-namespace";
const IMAGE: &str = "mark-image";
const ARGUMENTS: &str = "mark-arguments";
const POD: &str = "mark-pod";
const DOCS: &str = "https://mark-docs.invalid";
const REPLICAS: i32 = 873_465;

/// What a mark within a line becomes.
const INLINE: [(&str, &str); 2] =
    [(NAMESPACE, "{{ .Release.Namespace }}"), (IMAGE, "'{{ include \"interlock.image\" . }}'")];

type Rendered<T> = Result<T, serde_saphyr::ser::Error>;

/// Every file of the chart by its path.
pub fn chart() -> Rendered<BTreeMap<String, String>> {
    let templates = [
        ("crds", crds()?),
        ("rbac", rbac_templates()?),
        ("workload", workload_templates()?),
        ("policies", policy_templates()?),
        ("webhooks", webhooks()?),
        ("monitoring", monitoring_templates()?),
    ];
    let mut files: BTreeMap<String, String> = templates
        .into_iter()
        .map(|(name, text)| (format!("templates/{name}.yaml"), format!("{HEADER}{text}")))
        .collect();
    for (path, text) in [
        ("templates/_helpers.tpl", include_str!("helm/_helpers.tpl")),
        ("templates/NOTES.txt", include_str!("helm/NOTES.txt")),
        ("values.yaml", include_str!("helm/values.yaml")),
    ] {
        files.insert(path.to_owned(), text.to_owned());
    }
    files.insert("Chart.yaml".to_owned(), yaml(&[about()])?);
    // A value of texts and numbers always serialises.
    let schema = serde_json::to_string_pretty(&schema()).unwrap_or_default();
    files.insert("values.schema.json".to_owned(), format!("{schema}\n"));
    Ok(files)
}

fn about() -> Value {
    json!({
        "apiVersion": "v2",
        "name": install::NAME,
        "description": "Keeps changes to Kubernetes custom resources safe while they are being carried out",
        "type": "application",
        "version": VERSION,
        "appVersion": VERSION,
        "kubeVersion": ">=1.30.0-0",
    })
}

fn options() -> InstallOptions {
    InstallOptions {
        namespace: NAMESPACE.to_owned(),
        packages: NamespacedName::new(NAMESPACE, interlock_core::api::meta::PACKAGES_SERVICE_ACCOUNT),
        image: IMAGE.to_owned(),
        replicas: REPLICAS,
        docs: DOCS.parse().ok(),
        ..InstallOptions::default()
    }
}

/// Objects as templates.
fn template(objects: &[Value]) -> Rendered<String> {
    let mut out = String::new();
    for line in yaml(objects)?.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let _ = match line.trim_start().trim_start_matches("- ") {
            ARGUMENTS => writeln!(out, "{}", indented(indent, ARGUMENT_LINES)),
            text if text.strip_prefix("--docs-url=") == Some(DOCS) => {
                writeln!(out, "{}", indented(indent, DOCS_LINES))
            }
            text if text.starts_with(POD) => writeln!(out, "{}", indented(indent, POD_LINES)),
            _ => writeln!(out, "{}", inline(line)),
        };
    }
    Ok(pages(&out))
}

/// A line with its actions; what looks like one is quoted first.
fn inline(line: &str) -> String {
    let mut line = line.replace("{{", "{{ \"{{\" }}");
    for (mark, action) in INLINE {
        line = line.replace(mark, action);
    }
    line.replace(&REPLICAS.to_string(), "{{ .Values.replicas }}")
}

/// A text in which each page of a rule, `[RULE]; see ADDRESS/PAGE.md`, is at the address of the values, or is
/// what a command prints. A line may end before the address.
fn pages(text: &str) -> String {
    let mark = format!("{DOCS}/");
    let mut parts = text.split(mark.as_str());
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rule =
            out.rsplit('[').next().and_then(|text| text.split(']').next()).unwrap_or_default().to_owned();
        let (page, rest) = part.split_once(".md").unwrap_or((part, ""));
        let _ = write!(
            out,
            "{{{{ with .Values.docsUrl }}}}{{{{ trimSuffix \"/\" . }}}}/{page}.md{{{{ else }}}}`interlock explain {rule}`{{{{ end \
             }}}}{rest}"
        );
    }
    out
}

fn indented(indent: &str, lines: &[&str]) -> String {
    let line =
        |line: &&str| if line.starts_with("{{-") { (*line).to_owned() } else { format!("{indent}{line}") };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

const ARGUMENT_LINES: &[&str] = &[
    "{{- if eq .Values.freeze \"same-plan\" }}",
    "- --freeze=same-plan",
    "{{- end }}",
    "{{- if .Values.flavorSecrets }}",
    "- --flavor-secrets",
    "{{- end }}",
    "{{- range .Values.extraArgs }}",
    "- {{ . | quote }}",
    "{{- end }}",
];

const DOCS_LINES: &[&str] = &[
    "{{- with .Values.docsUrl }}",
    "- {{ printf \"--docs-url=%s\" (trimSuffix \"/\" .) | quote }}",
    "{{- end }}",
];

/// Fields of the pod that the installation has none of.
const POD_LINES: &[&str] = &[
    "{{- with .Values.imagePullSecrets }}",
    "imagePullSecrets: {{ toJson . }}",
    "{{- end }}",
    "{{- with .Values.nodeSelector }}",
    "nodeSelector: {{ toJson . }}",
    "{{- end }}",
    "{{- with .Values.tolerations }}",
    "tolerations: {{ toJson . }}",
    "{{- end }}",
];

/// Text that a condition guards.
fn when(condition: &str, text: &str) -> String {
    format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n")
}

fn either(condition: &str, text: &str, other: &str) -> String {
    format!("{{{{- if {condition} }}}}\n{text}{{{{- else }}}}\n{other}{{{{- end }}}}\n")
}

/// Documents of a file, one after the other.
fn documents(texts: &[String]) -> String {
    texts.iter().map(|text| format!("---\n{text}")).collect()
}

/// Templates, so that an upgrade upgrades them; kept, as all objects of people would go with them.
fn crds() -> Rendered<String> {
    let mut all = objects(Part::Crds, &options());
    for crd in &mut all {
        crd["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    }
    Ok(when(".Values.crds.install", &template(&all)?))
}

fn rbac_templates() -> Rendered<String> {
    let options = options();
    let admin = template(&[opt_in_rights::packages_cluster_admin(&options)])?;
    Ok([
        template(&rbac::all(&options))?,
        when(".Values.packages.clusterAdmin", &documents(&[admin])),
        when(".Values.flavorSecrets", &documents(&[template(&opt_in_rights::flavor_secrets(&options))?])),
        when(".Values.dataplanes", &documents(&[template(&opt_in_rights::data_planes(&options))?])),
        when(
            ".Values.dataplaneCertificates",
            &documents(&[template(&opt_in_rights::data_plane_certificates(&options))?]),
        ),
    ]
    .concat())
}

/// All but the namespace, which Helm makes.
fn workload_templates() -> Rendered<String> {
    let (builtin, managed) =
        (options(), InstallOptions { certificates: CertificateIssuer::CertManager, ..options() });
    let is_other = |object: &Value| !["Namespace", "Deployment"].iter().any(|kind| object["kind"] == *kind);
    let others: Vec<Value> = workload::all(&builtin).into_iter().filter(is_other).collect();
    let deployment = |options: &InstallOptions| -> Rendered<String> {
        let mut deployment = json!(workload::deployment(DeploymentRole::All, options));
        let pod = &mut deployment["spec"]["template"]["spec"];
        pod[POD] = json!(true);
        let container = &mut pod["containers"][0];
        container["imagePullPolicy"] = json!(PULL_POLICY);
        container["resources"] = json!(RESOURCES);
        if let Some(arguments) = container["args"].as_array_mut() {
            arguments.push(json!(ARGUMENTS));
        }
        let text = template(&[deployment])?;
        Ok(text
            .replace(PULL_POLICY, "{{ .Values.image.pullPolicy }}")
            .replace(RESOURCES, "{{ toJson .Values.resources }}"))
    };
    let issued = documents(&[template(&workload::cert_manager(&managed))?]);
    let cert_manager = "eq .Values.certificates \"cert-manager\"";
    Ok([
        template(&others)?,
        documents(&[either(cert_manager, &deployment(&managed)?, &deployment(&builtin)?)]),
        when(cert_manager, &issued),
    ]
    .concat())
}

const PULL_POLICY: &str = "mark-pull-policy";
const RESOURCES: &str = "mark-resources";

fn policy_templates() -> Rendered<String> {
    let of = |freeze| template(&objects(Part::Policies, &InstallOptions { freeze, ..options() }));
    let (strict, same) = (of(Freeze::Strict)?, of(Freeze::SamePlan)?);
    let protect = template(&policies::protect_live(&options()))?;
    Ok([
        either("eq .Values.freeze \"same-plan\"", &same, &strict),
        when(".Values.protectLive", &documents(&[protect])),
    ]
    .concat())
}

fn webhooks() -> Rendered<String> {
    let of = |certificates| template(&objects(Part::Webhooks, &InstallOptions { certificates, ..options() }));
    let text = either(
        "eq .Values.certificates \"cert-manager\"",
        &of(CertificateIssuer::CertManager)?,
        &of(CertificateIssuer::BuiltIn)?,
    );
    Ok(when(".Values.webhooks.install", &text))
}

fn monitoring_templates() -> Rendered<String> {
    let options = options();
    let parts = [
        ("serviceMonitor", monitoring::service_monitor(&options)),
        ("rules", monitoring::prometheus_rule(&options)),
        ("dashboard", monitoring::dashboard_config_map(&options)),
    ];
    let part = |(name, object): &(&str, Value)| {
        let text = documents(&[template(std::slice::from_ref(object))?]);
        Ok(when(&format!(".Values.monitoring.{name}"), &text))
    };
    parts.iter().map(part).collect()
}

/// The schema of the values: a name that is misspelt is refused.
fn schema() -> Value {
    let closed = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
    let (text, flag) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let one_of = |words: &[&str]| json!({"type": "string", "enum": words});
    let mut schema = closed(json!({
        "image": closed(json!({
            "repository": {"type": "string", "minLength": 1},
            "tag": text,
            "pullPolicy": one_of(&["Always", "IfNotPresent", "Never"]),
        })),
        "imagePullSecrets": {"type": "array", "items": {"type": "object"}},
        "replicas": {"type": "integer", "minimum": 0},
        "freeze": one_of(&["strict", "same-plan"]),
        "docsUrl": {"type": "string", "pattern": "^(https?://[A-Za-z0-9._~:/@%+,=\\[\\]-]{1,120})?$"},
        "certificates": one_of(&["builtin", "cert-manager"]),
        "flavorSecrets": flag,
        "dataplanes": flag,
        "protectLive": flag,
        "dataplaneCertificates": flag,
        "packages": closed(json!({"clusterAdmin": flag})),
        "crds": closed(json!({"install": flag})),
        "webhooks": closed(json!({"install": flag})),
        "monitoring": closed(json!({"serviceMonitor": flag, "rules": flag, "dashboard": flag})),
        "extraArgs": {"type": "array", "items": {"type": "string", "pattern": "^--"}},
        "resources": {"type": "object"},
        "nodeSelector": {"type": "object"},
        "tolerations": {"type": "array", "items": {"type": "object"}},
        "global": {"type": "object"},
    }));
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_committed_chart_is_what_is_rendered() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/helm/interlock");
        for (path, text) in chart().unwrap() {
            let committed = std::fs::read_to_string(folder.join(&path)).unwrap_or_default();
            assert!(
                committed == text,
                "manifests/helm/interlock/{path} differs from what is rendered; run `cargo run -- render helm --into \
                 manifests/helm/interlock`"
            );
        }
    }

    /// Each mark has become an action, and each block ends.
    #[test]
    fn no_mark_is_left() {
        for (path, text) in chart().unwrap() {
            assert!(!text.contains("mark-") && !text.contains(&REPLICAS.to_string()), "{path}");
            let opened = ["{{- if ", "{{- with ", "{{- range ", "{{- define "];
            let opened: usize = opened.iter().map(|action| text.matches(action).count()).sum();
            assert_eq!(opened, text.matches("{{- end }}").count(), "{path}");
        }
    }

    #[test]
    fn the_schema_has_every_value() {
        let values: Value = serde_saphyr::from_str(include_str!("helm/values.yaml")).unwrap();
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let schema = schema();
        for name in keys(&values) {
            let known = &schema["properties"][&name];
            assert!(known.is_object(), "{name}");
            if let Some(nested) = known["properties"].as_object() {
                assert_eq!(keys(&values[&name]), nested.keys().cloned().collect::<Vec<_>>(), "{name}");
            }
        }
    }
}
