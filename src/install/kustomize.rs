//! The folder `manifests/`: a kustomize base and overlays, rendered like everything else.

use std::collections::BTreeMap;

use interlock_core::api::meta::install;
use serde_json::{Value, json};

use super::role::DeploymentRole;
use super::{
    CertificateIssuer, InstallOptions, Layout, Part, dashboard, monitoring, network, objects, opt_in_rights,
    policies, rbac, webhooks, workload, yaml,
};

/// First line of every file.
const HEADER: &str = "# Rendered by `interlock render kustomize`; do not edit.\n";

/// Every file of the folder by its path, with the default options.
pub fn tree() -> Result<BTreeMap<String, String>, serde_saphyr::ser::Error> {
    let options = InstallOptions::default();
    let mut files = BTreeMap::new();
    let mut put = |path: &str, objects: &[Value]| {
        let text = format!("{HEADER}{}", yaml(objects)?);
        files.insert(path.to_owned(), text);
        Ok::<_, serde_saphyr::ser::Error>(())
    };
    let base = [
        ("workload.yaml", Part::Workload),
        ("crds.yaml", Part::Crds),
        ("rbac.yaml", Part::Rbac),
        ("policies.yaml", Part::Policies),
        ("webhooks.yaml", Part::Webhooks),
    ];
    for (file, part) in base {
        put(&format!("base/{file}"), &objects(part, &options))?;
    }
    put("base/kustomization.yaml", &[kustomization(&base.map(|(file, _)| file), &[])])?;

    let admin = "overlays/packages-cluster-admin";
    put(&format!("{admin}/binding.yaml"), &[opt_in_rights::packages_cluster_admin(&options)])?;
    put(&format!("{admin}/kustomization.yaml"), &[kustomization(&["../../base", "binding.yaml"], &[])])?;

    let secrets = InstallOptions { flavor_secrets: true, ..options.clone() };
    let flavors = "overlays/flavor-secrets";
    put(&format!("{flavors}/rbac.yaml"), &opt_in_rights::flavor_secrets(&secrets))?;
    put(&format!("{flavors}/patches.yaml"), &[argument_patch(DeploymentRole::All, &secrets)])?;
    put(
        &format!("{flavors}/kustomization.yaml"),
        &[kustomization(&["../../base", "rbac.yaml"], &["patches.yaml"])],
    )?;

    let data_planes = "overlays/dataplanes";
    put(&format!("{data_planes}/rbac.yaml"), &opt_in_rights::data_planes(&options))?;
    put(&format!("{data_planes}/kustomization.yaml"), &[kustomization(&["../../base", "rbac.yaml"], &[])])?;

    // Without the base: it is applied to an installation, and deleted again where people have to interfere.
    let protect = "overlays/protect-live";
    put(&format!("{protect}/policies.yaml"), &policies::protect_live(&options))?;
    put(&format!("{protect}/kustomization.yaml"), &[kustomization(&["policies.yaml"], &[])])?;
    // Without the base: it is added to an installation that carries DataPlanes out.
    let certificates = "overlays/dataplane-certificates";
    put(&format!("{certificates}/rbac.yaml"), &opt_in_rights::data_plane_certificates(&options))?;
    put(&format!("{certificates}/kustomization.yaml"), &[kustomization(&["rbac.yaml"], &[])])?;

    let egress = "overlays/strict-egress";
    put(&format!("{egress}/network-policy.yaml"), &[json!(network::egress(&options))])?;
    put(
        &format!("{egress}/kustomization.yaml"),
        &[kustomization(&["../../base", "network-policy.yaml"], &[])],
    )?;

    let kong = "overlays/kong-crds";
    put(&format!("{kong}/crds.yaml"), &objects(Part::KongCrds, &options))?;
    put(&format!("{kong}/kustomization.yaml"), &[kustomization(&["../../base", "crds.yaml"], &[])])?;

    let split = InstallOptions { layout: Layout::Split, ..options.clone() };
    put("overlays/split/webhook.yaml", &split_resources(&split))?;
    put("overlays/split/patches.yaml", &split_patches(&split))?;
    put(
        "overlays/split/kustomization.yaml",
        &[kustomization(&["../../base", "webhook.yaml"], &["patches.yaml"])],
    )?;

    let prometheus = "overlays/prometheus";
    put(&format!("{prometheus}/monitoring.yaml"), &monitoring::all(&options))?;
    put(
        &format!("{prometheus}/kustomization.yaml"),
        &[kustomization(&["../../base", "monitoring.yaml"], &[])],
    )?;
    put("monitoring/rules.yaml", &[monitoring::rules()])?;

    let managed = InstallOptions { certificates: CertificateIssuer::CertManager, ..options };
    put("overlays/cert-manager/certificate.yaml", &workload::cert_manager(&managed))?;
    put("overlays/cert-manager/patches.yaml", &cert_manager_patches(&managed))?;
    put(
        "overlays/cert-manager/kustomization.yaml",
        &[kustomization(&["../../base", "certificate.yaml"], &["patches.yaml"])],
    )?;
    put("install.yaml", &objects(Part::Install, &InstallOptions::default()))?;
    files.insert("monitoring/dashboard.json".to_owned(), dashboard::json());
    Ok(files)
}

fn kustomization(resources: &[&str], patches: &[&str]) -> Value {
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

fn split_resources(options: &InstallOptions) -> Vec<Value> {
    let mut all = rbac::webhook(options);
    all.push(json!(workload::deployment(DeploymentRole::Webhook, options)));
    all.push(json!(workload::disruption_budget(DeploymentRole::Webhook, options)));
    all
}

/// The base's Deployment becomes the controller, the Service selects the webhook.
fn split_patches(options: &InstallOptions) -> Vec<Value> {
    let service = json!(workload::service(DeploymentRole::Webhook, options));
    vec![
        patch(
            "v1",
            "Service",
            options.service(),
            Some(options),
            json!({ "spec": { "selector": service["spec"]["selector"] } }),
        ),
        argument_patch(DeploymentRole::Controller, options),
    ]
}

/// Gives the base's Deployment the arguments of a role.
fn argument_patch(role: DeploymentRole, options: &InstallOptions) -> Value {
    let container = json!({ "args": workload::arguments(role, options) });
    patch("apps/v1", "Deployment", install::NAME, Some(options), pod_patch(container, json!({})))
}

fn cert_manager_patches(options: &InstallOptions) -> Vec<Value> {
    let deployment = json!(workload::deployment(DeploymentRole::All, options));
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let mut patches = vec![patch(
        "apps/v1",
        "Deployment",
        install::NAME,
        Some(options),
        pod_patch(
            json!({ "args": container["args"], "volumeMounts": container["volumeMounts"] }),
            json!({ "volumes": pod["volumes"] }),
        ),
    )];
    patches.extend(webhooks::all(options).iter().map(|configuration| {
        patch(
            "admissionregistration.k8s.io/v1",
            configuration["kind"].as_str().unwrap_or_default(),
            install::WEBHOOK_CONFIGURATION,
            None,
            json!({ "metadata": { "annotations": configuration["metadata"]["annotations"] } }),
        )
    }));
    patches
}

/// A strategic merge patch; `options` where the object lives in our namespace.
fn patch(
    api_version: &str,
    kind: &str,
    name: &str,
    options: Option<&InstallOptions>,
    change: Value,
) -> Value {
    let mut patch = change;
    patch["apiVersion"] = json!(api_version);
    patch["kind"] = json!(kind);
    patch["metadata"]["name"] = json!(name);
    if let Some(options) = options {
        patch["metadata"]["namespace"] = json!(options.namespace);
    }
    patch
}

fn pod_patch(container: Value, pod: Value) -> Value {
    let (mut container, mut pod) = (container, pod);
    container["name"] = json!(install::NAME);
    pod["containers"] = json!([container]);
    json!({ "spec": { "template": { "spec": pod } } })
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
            let all = objects(Part::All, &InstallOptions { layout, ..InstallOptions::default() });
            let text = yaml(&all).unwrap();
            let back: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            assert_eq!(back, all);
        }
    }
}
