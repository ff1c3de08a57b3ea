//! Metadata of the objects that follow from the kinds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub(super) fn strings<const N: usize>(list: [&str; N]) -> Vec<String> {
    list.into_iter().map(str::to_owned).collect()
}

/// Metadata with the labels of every installed object.
pub(super) fn cluster_wide(name: &str) -> ObjectMeta {
    let labels = [("app.kubernetes.io/name", "interlock"), ("app.kubernetes.io/part-of", "interlock")];
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        ..ObjectMeta::default()
    }
}
