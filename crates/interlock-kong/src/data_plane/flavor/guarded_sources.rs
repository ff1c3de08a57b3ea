//! The annotation that lists the flavor sources that are guarded, as `configmaps/NAME,secrets/NAME`.

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use serde_json::Value;

use super::sources::{FlavorSource, SourceKind};

/// The most sources of a gateway: the authorizer is asked about each.
pub const MOST: usize = 8;

/// The entries of the annotation.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|entry| !entry.is_empty())
}

/// Whether a gateway asks to guard a source of its namespace.
pub fn is_listed(gateway: &Value, source: &FlavorSource) -> bool {
    let text = annotation(gateway, meta::GUARDED_SOURCES).unwrap_or_default();
    listed(text).any(|entry| entry == entry_of(source))
}

/// Whether an object is published by the cluster: with a label on it, users who may write gateways would keep its owner from
/// changing it.
pub fn is_of_cluster(source: &FlavorSource) -> bool {
    const PUBLISHED: [&str; 3] = ["kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"];
    let namespace = source.name.namespace.as_str();
    namespace.starts_with("kube-")
        || source.kind == SourceKind::ConfigMap && PUBLISHED.contains(&source.name.name.as_str())
}

pub fn entry_of(source: &FlavorSource) -> String {
    format!("{}/{}", source.kind().1, source.name.name)
}

/// The annotation of a gateway with one more source, for a command line: `None` where the source has a name that no object
/// has. Of what is listed now, entries that are no names are left out.
pub fn with(gateway: &Value, source: &FlavorSource) -> Option<String> {
    let text = annotation(gateway, meta::GUARDED_SOURCES).unwrap_or_default();
    let is_entry = |entry: &&str| {
        let name = entry.strip_prefix("configmaps/").or(entry.strip_prefix("secrets/"));
        name.is_some_and(is_object_name)
    };
    let entry = entry_of(source);
    let entries = listed(text).filter(is_entry).take(MOST - 1).chain([entry.as_str()]);
    is_object_name(&source.name.name).then(|| entries.collect::<Vec<_>>().join(","))
}

/// Whether an object may have this name, as the policy asks: what a gateway refers to may be any text.
pub fn is_object_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 253 && name.chars().all(plain) && name.starts_with(ends) && name.ends_with(ends)
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::NamespacedName;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// It is part of a command that people copy.
    #[rstest]
    #[case::first("", "router", Some("configmaps/router"))]
    #[case::another("secrets/a", "router", Some("secrets/a,configmaps/router"))]
    #[case::forged("secrets/a;reboot,$(reboot)", "router", Some("configmaps/router"))]
    #[case::no_name("", "a;reboot", None)]
    fn what_a_tenant_wrote_is_no_command(
        #[case] now: &str,
        #[case] name: &str,
        #[case] expected: Option<&str>,
    ) {
        let gateway = json!({"metadata": {"annotations": {meta::GUARDED_SOURCES: now}}});
        let source = FlavorSource { kind: SourceKind::ConfigMap, name: NamespacedName::new("kong", name) };
        assert_eq!(with(&gateway, &source).as_deref(), expected);
    }
}
