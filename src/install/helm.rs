//! The chart as `interlock render helm` writes it: the files that are written by hand, and those that follow from the
//! kinds. An option that a value of the chart sets is the action of that value.

use std::collections::BTreeMap;
use std::slice::from_ref;

use interlock_core::admission::Freeze;
use interlock_core::api::docs::DocsUrl;
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::rule::Rule;
use interlock_core::kinds::descriptor::PolicyOptions;
use serde_json::{Value, json};

use super::chart::{ChartError, WRITTEN, dashboard, literal, rules_of_roles, yaml};
use super::{CertificateIssuer, InstallOptions, crds, policies, webhooks};

/// First line of every file that follows from the kinds.
const HEADER: &str = "{{- /* Rendered by `interlock render helm`; do not edit. */ -}}\n";

/// Every file of the chart by its path.
pub fn chart() -> Result<BTreeMap<String, String>, ChartError> {
    let options = options();
    let derived = [
        ("templates/_dashboard.tpl", dashboard()),
        ("templates/_rules.tpl", rules_of_roles(options.kinds)?),
        ("templates/crds.yaml", crd_templates()?),
        ("templates/policies.yaml", policy_templates(&options)?),
        ("templates/webhooks.yaml", webhook_templates(&options)?),
    ];
    let derived = derived.into_iter().map(|(path, text)| (path.to_owned(), format!("{HEADER}{text}")));
    let written = WRITTEN.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    Ok(derived.chain(written).collect())
}

fn options() -> InstallOptions {
    let namespace = "{{ .Release.Namespace }}";
    InstallOptions {
        namespace: namespace.to_owned(),
        packages: NamespacedName::new(namespace, meta::PACKAGES_SERVICE_ACCOUNT),
        docs: None,
        ..InstallOptions::default()
    }
}

fn when(condition: &str, text: &str) -> String {
    format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n")
}

fn either(condition: &str, text: &str, other: &str) -> String {
    format!("{{{{- if {condition} }}}}\n{text}{{{{- else }}}}\n{other}{{{{- end }}}}\n")
}

/// Templates, so that an upgrade upgrades them; kept, as all objects of people would go with them.
fn crd_templates() -> Result<String, ChartError> {
    let mut all: Vec<Value> = crds::all().iter().map(|crd| json!(crd)).collect();
    for crd in &mut all {
        crd["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    }
    Ok(when(".Values.crds.install", &literal(&yaml(&all)?)))
}

fn policy_templates(options: &InstallOptions) -> Result<String, ChartError> {
    let given = |freeze| PolicyOptions { freeze, see: at_the_address_of_the_values, ..options.policies() };
    let (strict, same_plan) = (given(Freeze::Strict), given(Freeze::SamePlan));
    let mut text = String::new();
    for (strict, same_plan) in
        policies::of(options.kinds, &strict).iter().zip(&policies::of(options.kinds, &same_plan))
    {
        let (strict, same_plan) = (yaml(from_ref(strict))?, yaml(from_ref(same_plan))?);
        text.push_str("---\n");
        text.push_str(&if strict == same_plan {
            strict
        } else {
            either("eq .Values.freeze \"same-plan\"", &same_plan, &strict)
        });
    }
    let protect_live = yaml(&policies::protecting_live(&strict))?;
    text.push_str(&when(".Values.protectLive", &format!("---\n{protect_live}")));
    Ok(text)
}

/// Where to read about a rule: its page, where the values have an address of the documentation.
fn at_the_address_of_the_values(rule: Rule, _: Option<&DocsUrl>) -> String {
    let (page, command) = (rule.page(), rule.see(None));
    format!("{{{{with .Values.docsUrl}}}}{{{{trimSuffix `/` .}}}}/{page}{{{{else}}}}{command}{{{{end}}}}")
}

/// Only the metadata depend on who issues the certificate.
fn webhook_templates(options: &InstallOptions) -> Result<String, ChartError> {
    let managed = InstallOptions { certificates: CertificateIssuer::CertManager, ..options.clone() };
    let mut text = String::new();
    for (mut plain, mut managed) in webhooks::all(options).into_iter().zip(webhooks::all(&managed)) {
        let entries = json!({"webhooks": plain["webhooks"].take()});
        for configuration in [&mut plain, &mut managed] {
            configuration.as_object_mut().and_then(|fields| fields.remove("webhooks"));
        }
        let head = either("eq .Values.certificates \"cert-manager\"", &yaml(&[managed])?, &yaml(&[plain])?);
        text = format!("{text}---\n{head}{}", yaml(&[entries])?);
    }
    Ok(when(".Values.webhooks.install", &text))
}
