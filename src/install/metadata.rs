//! Names and labels of installed objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::options::InstallOptions;

pub(super) fn strings<const N: usize>(list: [&str; N]) -> Vec<String> {
    list.into_iter().map(str::to_owned).collect()
}

/// Labels of every installed object.
pub(super) fn labels() -> BTreeMap<String, String> {
    [("app.kubernetes.io/name", "interlock"), ("app.kubernetes.io/part-of", "interlock")]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
}

pub(super) fn cluster_wide(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels()), ..ObjectMeta::default() }
}

pub(super) fn within(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.to_owned()), ..cluster_wide(name) }
}

pub(super) fn namespaced(name: &str, options: &InstallOptions) -> ObjectMeta {
    within(&options.namespace, name)
}
