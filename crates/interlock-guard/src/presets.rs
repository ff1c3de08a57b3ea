//! The presets that Interlock has, a line each.

use std::sync::LazyLock;

use serde::Deserialize as _;

use crate::preset::Preset;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(include_str!(concat!("../presets/", $name, ".yaml"))),+]
    };
}

const FILES: &[&str] = files![
    "alertmanager",
    "ansible-job",
    "argo-cd",
    "argo-cd-applicationset",
    "argo-rollouts",
    "argo-rollouts-runs",
    "atlas",
    "aws-ack",
    "camel-k",
    "cert-manager",
    "clickhouse",
    "clickhouse-keeper",
    "cloudnative-pg",
    "cluster-api",
    "cluster-api-aws",
    "cluster-api-controlplane",
    "cluster-api-machinedeployment",
    "cluster-api-machinepool",
    "confluent",
    "crossplane",
    "daemonset",
    "deployment",
    "eck-agents",
    "eck-elasticsearch",
    "eck-stack",
    "flagger",
    "flink",
    "flux",
    "flux-images",
    "flux-sources",
    "gardener-shoot",
    "gcp-config-connector",
    "gitops-promoter",
    "grafana",
    "humio",
    "istio-operator",
    "keycloak",
    "knative-service",
    "koperator",
    "kruise-broadcastjob",
    "kruise-cloneset",
    "kruise-daemonset",
    "kruise-rollouts",
    "kruise-statefulset",
    "kserve",
    "kubevirt",
    "mariadb",
    "minio",
    "nmstate",
    "numaflow",
    "numaflow-isbservice",
    "numaflow-pipeline",
    "numaplane",
    "numaplane-monovertex",
    "numaplane-pipeline",
    "open-cluster-management-policies",
    "openfaas",
    "openshift-deploymentconfig",
    "openshift-storagecluster",
    "pravega",
    "pravega-zookeeper",
    "prometheus",
    "pulumi",
    "rook-ceph",
    "sap-btp",
    "solr",
    "spark",
    "statefulset",
    "strimzi",
    "strimzi-connector",
    "strimzi-pools",
    "strimzi-topics",
    "trident",
    "trident-protect",
    "victoria-metrics",
    "victoria-metrics-cluster",
    "victoria-metrics-single",
    "zalando-postgres",
];

static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| FILES.iter().filter_map(|text| read(text).ok()).collect());

static GENERIC: LazyLock<Option<Preset>> =
    LazyLock::new(|| read(include_str!("../presets/generic.yaml")).ok());

/// What is asked of kinds that have no preset.
pub fn generic() -> Option<&'static Preset> {
    GENERIC.as_ref()
}

/// All presets, by name.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The preset of a name.
pub fn named(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|own| own.name == name)
}

/// The preset of a kind: one that names it, before one of its family.
pub fn of_kind(group: &str, kind: &str) -> Option<&'static Preset> {
    let names = |own: &&Preset| own.kinds.iter().any(|own| own.group.is_some() && own.kind == kind);
    let all = || presets().iter().filter(|own| own.is_for(group, kind));
    all().find(names).or_else(|| all().next())
}

fn read(text: &str) -> Result<Preset, String> {
    let documents = go_template::yaml::documents(text).map_err(|error| error.to_string())?;
    let document = documents.into_iter().next().ok_or("it is empty")?;
    Preset::deserialize(document).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::judgement::Guard;

    #[test]
    fn every_preset_can_be_used() {
        let mut kinds = BTreeSet::new();
        for text in FILES {
            let preset = read(text).unwrap();
            Guard::of_preset(&preset).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
            assert!(preset.patience.as_secs() > 0, "{}", preset.name);
            for kind in &preset.kinds {
                assert!(kinds.insert(kind.to_string()), "{kind} is of two presets");
            }
        }
        assert!(presets().is_sorted_by_key(|own| &own.name), "they are listed by name");
        assert!(kinds.len() >= 60, "{}", kinds.len());
        Guard::of_preset(generic().unwrap()).unwrap();
    }
}
