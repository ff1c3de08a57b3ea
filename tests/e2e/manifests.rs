//! What is rendered and committed, as an API server takes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use interlock::install::{self, CertificateIssuer, InstallOptions, Layout, Part};
use serde_json::Value;

use crate::support::interlock::opt_in_rights;
use crate::support::{Client, Interlock, wait_until};

pub fn kustomize(client: &Client, folder: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests").join(folder);
    let text = client.kubectl(&["kustomize", &folder.display().to_string()]).ok();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// By kind, namespace and name, as kustomize has an order of its own.
pub fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let key = |object: &Value| {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        [text("/kind"), text("/metadata/namespace"), text("/metadata/name")].join("/")
    };
    objects.into_iter().map(|object| (key(&object), object)).collect()
}

/// The overlays come to what `interlock render` prints with the flags of the same meaning.
#[test]
fn overlays_are_what_is_rendered() {
    let (cluster, _) = Interlock::shared();
    let admin = cluster.admin();
    let plain = InstallOptions::default();
    let split = InstallOptions { layout: Layout::Split, ..plain.clone() };
    let managed = InstallOptions { certificates: CertificateIssuer::CertManager, ..plain.clone() };
    for (folder, options) in
        [("base", &plain), ("overlays/split", &split), ("overlays/cert-manager", &managed)]
    {
        let built = by_name(kustomize(&admin, folder));
        let rendered = by_name(install::objects(Part::All, options).unwrap());
        for (key, object) in &rendered {
            similar_asserts::assert_eq!(built.get(key), Some(object), "{}: {}", folder, key);
        }
        assert_eq!(built.len(), rendered.len(), "{folder}");
    }
    let all = |options: &InstallOptions| by_name(install::objects(Part::All, options).unwrap());
    let admins = InstallOptions { packages_cluster_admin: true, ..plain.clone() };
    assert_eq!(by_name(kustomize(&admin, "overlays/packages-cluster-admin")), all(&admins));
    let labelling = InstallOptions { flavor_secrets: true, ..plain.clone() };
    assert_eq!(by_name(kustomize(&admin, "overlays/flavor-secrets")), all(&labelling));
    let carrying_out = InstallOptions { data_planes: true, ..plain.clone() };
    assert_eq!(by_name(kustomize(&admin, "overlays/dataplanes")), all(&carrying_out));
    let protected = by_name(install::policies::protect_live(&plain));
    assert_eq!(by_name(kustomize(&admin, "overlays/protect-live")), protected);
    let certificates = InstallOptions { data_plane_certificates: true, ..plain.clone() };
    let certificates = by_name(opt_in_rights(&certificates));
    assert_eq!(by_name(kustomize(&admin, "overlays/dataplane-certificates")), certificates);
    let strict = InstallOptions { strict_egress: true, ..plain.clone() };
    assert_eq!(by_name(kustomize(&admin, "overlays/strict-egress")), all(&strict));
    let mut with_kong = install::objects(Part::All, &plain).unwrap();
    with_kong.extend(install::objects(Part::KongCrds, &plain).unwrap());
    assert_eq!(by_name(kustomize(&admin, "overlays/kong-crds")), by_name(with_kong));
    let mut with_kuadrant = install::objects(Part::All, &plain).unwrap();
    with_kuadrant.extend(install::objects(Part::KuadrantCrds, &plain).unwrap());
    assert_eq!(by_name(kustomize(&admin, "overlays/kuadrant-crds")), by_name(with_kuadrant));
    let mut watched = install::objects(Part::All, &plain).unwrap();
    watched.extend(install::objects(Part::Monitoring, &plain).unwrap());
    assert_eq!(by_name(kustomize(&admin, "overlays/prometheus")), by_name(watched));
}

/// No field is unknown and every CEL expression compiles.
#[test]
fn the_api_server_takes_everything_strictly() {
    let (cluster, _) = Interlock::shared();
    let admin = cluster.admin();
    let arguments =
        ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-"];
    for folder in [
        "base",
        "overlays/split",
        "overlays/packages-cluster-admin",
        "overlays/dataplanes",
        "overlays/protect-live",
        "overlays/dataplane-certificates",
        "overlays/strict-egress",
        "overlays/kong-crds",
        "overlays/kuadrant-crds",
        "overlays/cert-manager",
    ] {
        let served: Vec<_> = kustomize(&admin, folder)
            .into_iter()
            .filter(|object| {
                !object["apiVersion"].as_str().unwrap_or_default().starts_with("cert-manager.io/")
            })
            .collect();
        let text = install::yaml(&served).unwrap();
        let out = admin.kubectl_in(&arguments, &text).ok();
        assert_eq!(out.lines().count(), served.len(), "{out}");
    }
    for flags in [&["--freeze=same-plan"][..], &["--watch-namespaces=a,b"]] {
        for part in ["policies", "webhooks"] {
            let text =
                crate::support::interlock::interlock(&admin, &[&["render", part], flags].concat(), "").ok();
            admin.kubectl_in(&arguments, &text).ok();
        }
    }
}

/// The API server's own type check of the policies finds nothing.
#[test]
fn policies_have_no_type_warnings() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let admin = cluster.admin();
    for name in [
        interlock_kudo::instance::policies::FREEZE,
        interlock_kudo::instance::policies::LOCK,
        interlock_kudo::instance::policies::PLAN_EXECUTION,
        interlock_kudo::instance::policies::STATUS,
        interlock_kudo::instance::policies::VERBS,
        interlock_kong::data_plane::policies::OVERRIDES,
    ] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}");
        let checked = wait_until("the policy is type-checked", Duration::from_secs(60), || {
            let policy = admin.read(&path).ok();
            let status = policy["status"].clone();
            let done = status["observedGeneration"] == policy["metadata"]["generation"];
            if done && status.get("typeChecking").is_some() { Ok(status) } else { Err(status.to_string()) }
        });
        assert!(checked["typeChecking"].get("expressionWarnings").is_none(), "{name}: {checked:#}");
    }
}
