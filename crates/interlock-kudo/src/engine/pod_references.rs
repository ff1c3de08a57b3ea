//! The ConfigMaps and Secrets that a pod template names (KUDO `renderer/dependencies.go:
//! addFromEmbeddedPodTemplateSpec`).

use interlock_core::api::interlock::CountedReferences;
use interlock_core::config_digest::ConfigKind;
use serde_json::Value;

/// A ConfigMap or Secret of the pod's namespace; ordered as KUDO does, by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodReference<'t> {
    pub kind: ConfigKind,
    /// Its name, as it is written: it may be none.
    pub name: &'t str,
}

/// The references of a pod template that count, in order. What volumes name twice counts twice, as in KUDO;
/// what KUDO does not count is added once, so that a template without such references keeps its hash.
pub fn counted(template: &Value, references: CountedReferences) -> Vec<PodReference<'_>> {
    let spec = &template["spec"];
    let mut found: Vec<PodReference<'_>> = pull_secrets(spec).chain(volumes(spec)).collect();
    if references == CountedReferences::All {
        for reference in variables(spec).chain(projected(spec)) {
            if !found.contains(&reference) {
                found.push(reference);
            }
        }
    }
    found.sort();
    found
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A reference below a field, where that is a map; `name` is the field with the name in it.
fn reference<'t>(kind: ConfigKind, value: &'t Value, name: &str) -> Option<PodReference<'t>> {
    let fields = value.as_object()?;
    Some(PodReference { kind, name: fields.get(name).and_then(Value::as_str).unwrap_or_default() })
}

fn pull_secrets(spec: &Value) -> impl Iterator<Item = PodReference<'_>> {
    list(&spec["imagePullSecrets"]).filter_map(|secret| reference(ConfigKind::Secret, secret, "name"))
}

fn volumes(spec: &Value) -> impl Iterator<Item = PodReference<'_>> {
    list(&spec["volumes"]).flat_map(|volume| {
        [
            reference(ConfigKind::ConfigMap, &volume["configMap"], "name"),
            reference(ConfigKind::Secret, &volume["secret"], "secretName"),
        ]
        .into_iter()
        .flatten()
    })
}

fn projected(spec: &Value) -> impl Iterator<Item = PodReference<'_>> {
    let sources = list(&spec["volumes"]).flat_map(|volume| list(&volume["projected"]["sources"]));
    sources.flat_map(|source| either(&source["configMap"], &source["secret"]))
}

fn variables(spec: &Value) -> impl Iterator<Item = PodReference<'_>> {
    let containers = list(&spec["initContainers"]).chain(list(&spec["containers"]));
    containers.flat_map(|container| {
        let sources = list(&container["env"]).map(|variable| &variable["valueFrom"]);
        let one = sources.flat_map(|from| either(&from["configMapKeyRef"], &from["secretKeyRef"]));
        let all =
            list(&container["envFrom"]).flat_map(|from| either(&from["configMapRef"], &from["secretRef"]));
        one.chain(all)
    })
}

fn either<'t>(config_map: &'t Value, secret: &'t Value) -> impl Iterator<Item = PodReference<'t>> {
    let both =
        [reference(ConfigKind::ConfigMap, config_map, "name"), reference(ConfigKind::Secret, secret, "name")];
    both.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// Kind and name of each, `c` for a ConfigMap.
    fn found(spec: &Value, references: CountedReferences) -> Vec<String> {
        let template = json!({"spec": spec});
        let shown = |r: PodReference<'_>| match r.kind {
            ConfigKind::ConfigMap => format!("c/{}", r.name),
            ConfigKind::Secret => format!("s/{}", r.name),
        };
        counted(&template, references).into_iter().map(shown).collect()
    }

    fn volume(name: &str) -> Value {
        json!({"name": "v", "configMap": {"name": name}})
    }

    #[rstest]
    #[case::none(json!({"containers": [{"name": "a"}]}), &[])]
    #[case::no_map(json!({"volumes": "x", "imagePullSecrets": [1, null]}), &[])]
    #[case::volumes(json!({"volumes": [{"secret": {"secretName": "b"}}, volume("z"), volume("a"), {"emptyDir": {}}]}), &["c/a", "c/z", "s/b"])]
    #[case::pull_secrets(json!({"imagePullSecrets": [{"name": "b"}, {"name": "a"}]}), &["s/a", "s/b"])]
    #[case::twice(json!({"imagePullSecrets": [{"name": "a"}], "volumes": [volume("c"), {"secret": {"secretName": "a"}}, volume("c")]}), &["c/c", "c/c", "s/a", "s/a"])]
    #[case::without_a_name(json!({"volumes": [{"configMap": {}}, {"secret": null}]}), &["c/"])]
    fn volumes_and_pull_secrets(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(found(&spec, CountedReferences::Volumes), expected);
        assert_eq!(found(&spec, CountedReferences::All), expected, "they have the same hash");
    }

    #[rstest]
    #[case::env(json!({"containers": [{"env": [
        {"name": "A", "value": "a"}, {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}}]}]}), &["c/a", "s/b"])]
    #[case::env_from(json!({"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]}]}), &["c/a", "s/b"])]
    #[case::init_containers(json!({"initContainers": [{"envFrom": [{"secretRef": {"name": "b"}}]}]}), &["s/b"])]
    #[case::projected(json!({"volumes": [{"projected": {"sources": [
        {"serviceAccountToken": {}}, {"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]}}]}), &["c/a", "s/b"])]
    #[case::once(json!({"containers": [
        {"env": [{"valueFrom": {"configMapKeyRef": {"name": "a"}}}, {"valueFrom": {"configMapKeyRef": {"name": "a"}}}]},
        {"envFrom": [{"configMapRef": {"name": "a"}}]}]}), &["c/a"])]
    fn what_kudo_does_not_count(#[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(found(&spec, CountedReferences::Volumes), [""; 0]);
        assert_eq!(found(&spec, CountedReferences::All), expected);
    }
}
