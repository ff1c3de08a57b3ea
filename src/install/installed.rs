//! What an installation was rendered with, read back from its objects in a cluster.

use interlock_core::admission::Freeze;
use interlock_core::api::meta::install;
use interlock_core::api::object::NamespacedName;
use serde_json::Value;

use super::webhooks::bookkeeper_of;
use super::{Endpoint, InstallOptions, Layout};

/// The objects of an installation that show its options; `None` and empty where they are absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct InstalledObjects<'a> {
    /// The MutatingWebhookConfiguration.
    pub mutating: Option<&'a Value>,
    /// The ValidatingWebhookConfiguration.
    pub validating: Option<&'a Value>,
    /// The Deployments of its namespace.
    pub deployments: &'a [Value],
}

impl InstalledObjects<'_> {
    /// The namespace of the Service that the API server calls, if it calls one.
    pub fn namespace(&self) -> Option<String> {
        let found = self.client_config()?.pointer("/service/namespace")?;
        found.as_str().map(str::to_owned)
    }

    /// The freeze that the process runs with; `None` where no Deployment shows its flags.
    pub fn freeze(&self) -> Option<Freeze> {
        let mut arguments = self.arguments().peekable();
        arguments.peek()?;
        let softer = arguments.any(|argument| argument == "--freeze=same-plan");
        Some(if softer { Freeze::SamePlan } else { Freeze::Strict })
    }

    /// The options, as far as the objects show them; the rest as `defaults` have it.
    pub fn options(&self, defaults: InstallOptions) -> InstallOptions {
        let named = |name: &str| self.deployments.iter().any(|found| found["metadata"]["name"] == name);
        let configuration = self.validating.or(self.mutating);
        let by_default = defaults.controller_user();
        InstallOptions {
            endpoint: self.client_config().map_or(defaults.endpoint, endpoint),
            controller_user: configuration
                .and_then(bookkeeper_of)
                .filter(|user| *user != by_default)
                .or(defaults.controller_user),
            packages: self.flag("--packages-service-account=").and_then(account).unwrap_or(defaults.packages),
            freeze: self.freeze().unwrap_or(defaults.freeze),
            docs: self.flag("--docs-url=").and_then(|url| url.parse().ok()).or(defaults.docs),
            flavor_secrets: self.arguments().any(|argument| argument == "--flavor-secrets"),
            watch_namespaces: configuration.map(watched).unwrap_or_default(),
            layout: if named(install::WEBHOOK_NAME) { Layout::Split } else { Layout::Together },
            ..defaults
        }
    }

    fn client_config(&self) -> Option<&Value> {
        let webhooks = self.validating.or(self.mutating)?["webhooks"].as_array()?;
        Some(&webhooks.first()?["clientConfig"])
    }

    /// The arguments of our containers.
    fn arguments(&self) -> impl Iterator<Item = &str> {
        let ours = [install::NAME, install::WEBHOOK_NAME];
        let is_ours = move |found: &&Value| ours.iter().any(|name| found["metadata"]["name"] == *name);
        let containers =
            self.deployments.iter().filter(is_ours).filter_map(|found| {
                found.pointer("/spec/template/spec/containers").and_then(Value::as_array)
            });
        let ours = containers.flatten().filter(|container| container["name"] == install::NAME);
        ours.filter_map(|container| container["args"].as_array()).flatten().filter_map(Value::as_str)
    }

    fn flag(&self, name: &str) -> Option<&str> {
        self.arguments().find_map(|argument| argument.strip_prefix(name))
    }
}

fn endpoint(client_config: &Value) -> Endpoint {
    let text = |at: &str| client_config.pointer(at).and_then(Value::as_str);
    match text("/url") {
        Some(url) => {
            let base = url.rsplit_once('/').map_or(url, |(base, _)| base);
            Endpoint::Url { base: base.to_owned(), ca_bundle: Vec::new() }
        }
        None => Endpoint::Service { name: text("/service/name").unwrap_or(install::SERVICE).to_owned() },
    }
}

fn account(text: &str) -> Option<NamespacedName> {
    text.split_once('/').map(|(namespace, name)| NamespacedName::new(namespace, name))
}

/// The namespaces that the first webhook is restricted to; none means all.
fn watched(configuration: &Value) -> Vec<String> {
    let expressions = configuration.pointer("/webhooks/0/namespaceSelector/matchExpressions");
    let mut expressions = expressions.and_then(Value::as_array).into_iter().flatten();
    let only = expressions.find(|e| e["key"] == "kubernetes.io/metadata.name" && e["operator"] == "In");
    let names = only.and_then(|only| only["values"].as_array()).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::install::{Part, objects};

    fn read_back(options: &InstallOptions) -> (InstallOptions, Option<Freeze>, Option<String>) {
        let all = objects(Part::All, options).unwrap();
        let find = |kind: &str| all.iter().find(|object| object["kind"] == kind);
        let deployments: Vec<_> = all.iter().filter(|o| o["kind"] == "Deployment").cloned().collect();
        let found = InstalledObjects {
            mutating: find("MutatingWebhookConfiguration"),
            validating: find("ValidatingWebhookConfiguration"),
            deployments: &deployments,
        };
        let defaults = InstallOptions { namespace: options.namespace.clone(), ..InstallOptions::default() };
        (found.options(defaults), found.freeze(), found.namespace())
    }

    #[rstest]
    #[case::default(InstallOptions::default())]
    #[case::same_plan(InstallOptions { freeze: Freeze::SamePlan, ..InstallOptions::default() })]
    #[case::documented(InstallOptions {
        docs: Some("https://docs.example.org/guard".parse().unwrap()),
        ..InstallOptions::default()
    })]
    #[case::apart(InstallOptions { layout: Layout::Split, ..InstallOptions::default() })]
    #[case::elsewhere(InstallOptions {
        namespace: "guard".to_owned(),
        endpoint: Endpoint::Service { name: "hook".to_owned() },
        packages: NamespacedName::new("guard", "deployer"),
        flavor_secrets: true,
        watch_namespaces: vec!["a".to_owned(), "b".to_owned()],
        ..InstallOptions::default()
    })]
    fn what_was_rendered_is_read_back(#[case] options: InstallOptions) {
        let (read, freeze, namespace) = read_back(&options);
        assert_eq!((freeze, namespace.as_ref()), (Some(options.freeze), Some(&options.namespace)));
        assert_eq!(objects(Part::All, &read).unwrap(), objects(Part::All, &options).unwrap());
    }

    #[test]
    fn a_process_outside_the_cluster_shows_its_address_and_no_flags() {
        let endpoint = Endpoint::Url { base: "https://127.0.0.1:9443".to_owned(), ca_bundle: Vec::new() };
        let (read, freeze, namespace) =
            read_back(&InstallOptions { endpoint: endpoint.clone(), ..InstallOptions::default() });
        assert_eq!((read.endpoint, freeze, namespace), (endpoint, None, None));
    }
}
