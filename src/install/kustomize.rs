//! The folder `manifests/`: a kustomize base, which is the installation with the default options, and overlays, which are
//! what an option changes of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chart::{ChartError, DASHBOARD};
use super::{CertificateIssuer, InstallOptions, Layout, Part, objects, yaml};

/// First line of every file.
const HEADER: &str = "# Rendered by `interlock render kustomize`; do not edit.\n";

/// Every file of the folder by its path, with the default options.
pub fn tree() -> Result<BTreeMap<String, String>, ChartError> {
    let plain = InstallOptions::default();
    let file = |objects: &[Value]| Ok::<_, ChartError>(format!("{HEADER}{}", yaml(objects)?));
    let mut files = BTreeMap::new();
    let base = [
        ("workload.yaml", Part::Workload),
        ("crds.yaml", Part::Crds),
        ("rbac.yaml", Part::Rbac),
        ("policies.yaml", Part::Policies),
        ("webhooks.yaml", Part::Webhooks),
    ];
    for (name, part) in base {
        files.insert(format!("base/{name}"), file(&objects(part, &plain)?)?);
    }
    let resources = base.map(|(name, _)| name);
    files.insert("base/kustomization.yaml".to_owned(), file(&[kustomization(&resources, &[])])?);
    let all = objects(Part::All, &plain)?;
    for Overlay { name, resource, with_base, objects } in overlays(&plain)? {
        let base = with_base.then_some("../../base");
        let resources: Vec<&str> = base.into_iter().chain([resource]).collect();
        let (added, patches) = changes(&all, objects);
        let patched: Vec<String> = patches.iter().map(patch_file).collect();
        let kustomization = kustomization(&resources, &patched);
        files.insert(format!("overlays/{name}/{resource}"), file(&added)?);
        files.insert(format!("overlays/{name}/kustomization.yaml"), file(&[kustomization])?);
        for (path, patch) in patched.into_iter().zip(patches) {
            files.insert(format!("overlays/{name}/{path}"), file(&[patch])?);
        }
    }
    files.insert("install.yaml".to_owned(), file(&objects(Part::Install, &plain)?)?);
    let monitoring = objects(Part::Monitoring, &plain)?;
    let rules: Vec<Value> = monitoring
        .into_iter()
        .filter(|object| object["kind"] == "PrometheusRule")
        .map(|mut object| object["spec"].take())
        .collect();
    files.insert("monitoring/rules.yaml".to_owned(), file(&rules)?);
    files.insert("monitoring/dashboard.json".to_owned(), DASHBOARD.to_owned());
    Ok(files)
}

/// A folder of `overlays/`.
struct Overlay {
    name: &'static str,
    /// The file of what the base lacks.
    resource: &'static str,
    with_base: bool,
    /// What it comes to; what the base has as well may be left out.
    objects: Vec<Value>,
}

fn overlays(plain: &InstallOptions) -> Result<Vec<Overlay>, ChartError> {
    let with = |change: fn(&mut InstallOptions)| {
        let mut options = plain.clone();
        change(&mut options);
        objects(Part::All, &options)
    };
    let overlay = |name, resource, objects| Overlay { name, resource, with_base: true, objects };
    Ok(vec![
        overlay("packages-cluster-admin", "binding.yaml", with(|o| o.packages_cluster_admin = true)?),
        overlay("flavor-secrets", "rbac.yaml", with(|o| o.flavor_secrets = true)?),
        overlay("dataplanes", "rbac.yaml", with(|o| o.data_planes = true)?),
        overlay("policies", "rbac.yaml", with(|o| o.policies = true)?),
        overlay("strict-egress", "network-policy.yaml", with(|o| o.strict_egress = true)?),
        overlay("split", "webhook.yaml", with(|o| o.layout = Layout::Split)?),
        overlay(
            "cert-manager",
            "certificate.yaml",
            with(|o| o.certificates = CertificateIssuer::CertManager)?,
        ),
        overlay("kong-crds", "crds.yaml", objects(Part::KongCrds, plain)?),
        overlay("kuadrant-crds", "crds.yaml", objects(Part::KuadrantCrds, plain)?),
        overlay("prometheus", "monitoring.yaml", objects(Part::Monitoring, plain)?),
        Overlay {
            // It is applied to an installation, and deleted again where people have to interfere.
            with_base: false,
            ..overlay("protect-live", "policies.yaml", with(|o| o.protect_live = true)?)
        },
        Overlay {
            // It is added to an installation that carries DataPlanes out.
            with_base: false,
            ..overlay("dataplane-certificates", "rbac.yaml", with(|o| o.data_plane_certificates = true)?)
        },
    ])
}

fn kustomization(resources: &[&str], patches: &[String]) -> Value {
    let mut file = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    });
    if !patches.is_empty() {
        file["patches"] = patches.iter().map(|path| json!({ "path": path })).collect();
    }
    file
}

/// A file for each, as the kustomize of kubectl 1.30 takes one patch a file.
fn patch_file(patch: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    format!("patch-{}-{}.yaml", word(&patch["kind"]), word(&patch["metadata"]["name"]))
}

/// The objects that the base lacks, and a patch of each that differs from it.
fn changes(base: &[Value], objects: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    let (mut added, mut patches) = (Vec::new(), Vec::new());
    for object in objects {
        let identity = identity(&object);
        match base.iter().find(|of_base| self::identity(of_base) == identity) {
            None => added.push(object),
            Some(same) if *same == object => {}
            Some(other) => {
                let mut patch = identity;
                json_patch::merge(&mut patch, &change(other, &object));
                patches.push(patch);
            }
        }
    }
    (added, patches)
}

/// The fields by which an object is found.
fn identity(object: &Value) -> Value {
    let mut identity = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {"name": object["metadata"]["name"]},
    });
    if let Some(namespace) = object["metadata"].get("namespace") {
        identity["metadata"]["namespace"] = namespace.clone();
    }
    identity
}

/// What a strategic merge adds to an object, or sets in it: of a map the fields that differ, of a list of what has names
/// the items that differ.
fn change(from: &Value, to: &Value) -> Value {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            let differs = |(key, value): &(&String, &Value)| from.get(*key) != Some(*value);
            let of = |(key, value): (&String, &Value)| {
                (key.clone(), from.get(key).map_or_else(|| value.clone(), |old| change(old, value)))
            };
            Value::Object(to.iter().filter(differs).map(of).collect())
        }
        (Value::Array(from), Value::Array(to)) if to.iter().all(|item| item["name"].is_string()) => {
            let of = |item: &Value| {
                let old = from.iter().find(|old| old["name"] == item["name"]);
                let mut change = old.map_or_else(|| item.clone(), |old| change(old, item));
                change["name"] = item["name"].clone();
                change
            };
            to.iter().filter(|item| !from.contains(item)).map(of).collect()
        }
        _ => to.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_committed_manifests_are_what_is_rendered() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
        for (path, text) in tree().unwrap() {
            let committed = std::fs::read_to_string(folder.join(&path)).unwrap_or_default();
            assert!(
                committed == text,
                "manifests/{path} differs from what is rendered; run `cargo run -- render kustomize --into manifests`"
            );
        }
    }

    #[test]
    fn what_is_rendered_reads_back_the_same() {
        for layout in [Layout::Together, Layout::Split] {
            let all = objects(Part::All, &InstallOptions { layout, ..InstallOptions::default() }).unwrap();
            let text = yaml(&all).unwrap();
            let back: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            assert_eq!(back, all);
        }
    }
}
