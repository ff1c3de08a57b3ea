//! The chart, by Helm itself: it comes to what the process renders of it and to the kustomize base, and is installed,
//! upgraded and uninstalled.

use std::path::{Path, PathBuf};

use interlock::install::{self, InstallOptions, Layout, Part};
use interlock_core::admission::Freeze;
use serde_json::{Value, json};

use crate::manifests::by_name;
use crate::support::{Client, Cluster, Output, peers};

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/helm/interlock")
}

fn helm(admin: &Client, arguments: &[&str]) -> Output {
    admin.command(&peers::helm(), arguments, "")
}

fn template(admin: &Client, flags: &[&str]) -> Vec<Value> {
    let chart = chart().display().to_string();
    let arguments = [&["template", "interlock", &chart, "-n", "interlock-system"], flags].concat();
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&helm(admin, &arguments).ok()).unwrap();
    // Where Helm's output differs: what makes it keep a definition, and the policy of an image.
    for object in &mut objects {
        let is_definition = object["kind"] == "CustomResourceDefinition";
        if let Some(metadata) = object["metadata"].as_object_mut().filter(|_| is_definition) {
            assert_eq!(metadata["annotations"]["helm.sh/resource-policy"], "keep");
            metadata["annotations"].as_object_mut().unwrap().remove("helm.sh/resource-policy");
            if metadata["annotations"] == json!({}) {
                metadata.remove("annotations");
            }
        }
        if object["kind"] == "Deployment" {
            let pod = &mut object["spec"]["template"]["spec"];
            let policy = pod["containers"][0].as_object_mut().unwrap().remove("imagePullPolicy");
            assert_eq!(policy, Some(json!("IfNotPresent")), "the default for an image with a version");
        }
    }
    objects
}

/// All that the process renders but the namespace, which Helm makes.
fn rendered(options: &InstallOptions) -> Vec<Value> {
    let mut all = install::objects(Part::All, options).unwrap();
    all.retain(|object| object["kind"] != "Namespace");
    all
}

#[track_caller]
fn same(found: Vec<Value>, wanted: Vec<Value>, what: &str) {
    let (found, wanted) = (by_name(found), by_name(wanted));
    for (key, object) in &wanted {
        similar_asserts::assert_eq!(found.get(key), Some(object), "{}: {}", what, key);
    }
    assert_eq!(found.len(), wanted.len(), "{what}");
}

/// The chart with its defaults is the kustomize base, object by object, and with values what is rendered with
/// the flags of the same meaning.
#[test]
fn the_chart_comes_to_what_is_rendered() {
    let (cluster, _) = crate::support::Interlock::shared();
    let admin = cluster.admin();
    let plain = InstallOptions::default();
    let mut base = crate::manifests::kustomize(&admin, "base");
    base.retain(|object| object["kind"] != "Namespace");
    same(template(&admin, &[]), base, "the defaults");
    let same_plan = InstallOptions { freeze: Freeze::SamePlan, ..plain.clone() };
    same(template(&admin, &["--set=freeze=same-plan"]), rendered(&same_plan), "same-plan");
    let docs = "https://docs.example.org/guard".parse().ok();
    let documented = InstallOptions { docs, ..plain.clone() };
    let chart_says = template(&admin, &["--set=docsUrl=https://docs.example.org/guard/"]);
    same(chart_says, rendered(&documented), "docs");
    let managed = InstallOptions { certificates: install::CertificateIssuer::CertManager, ..plain.clone() };
    same(template(&admin, &["--set=certificates=cert-manager"]), rendered(&managed), "cert-manager");
    let opt_in = InstallOptions {
        flavor_secrets: true,
        data_planes: true,
        data_plane_certificates: true,
        protect_live: true,
        ..plain.clone()
    };
    let flags = "--set=flavorSecrets=true,dataplanes=true,dataplaneCertificates=true,protectLive=true";
    same(template(&admin, &[flags]), rendered(&opt_in), "opt-in");
    let flags = "--set=packages.clusterAdmin=true,monitoring.serviceMonitor=true,monitoring.rules=true,monitoring.dashboard=true";
    let mut all = rendered(&InstallOptions { packages_cluster_admin: true, ..plain.clone() });
    all.extend(install::objects(Part::Monitoring, &plain).unwrap());
    same(template(&admin, &[flags]), all, "with monitoring");
    let without =
        template(&admin, &["--set=webhooks.install=false,crds.install=false,replicas=3,image.tag=v9"]);
    let kinds = |kind: &str| without.iter().filter(|object| object["kind"] == kind).count();
    assert_eq!((kinds("CustomResourceDefinition"), kinds("ValidatingWebhookConfiguration")), (0, 0));
    let deployment = without.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "interlock:v9");
    // Whoever leaves the number to an autoscaler takes it out, as Helm's null does.
    let scaled = template(&admin, &["--set=replicas=null"]);
    let deployment = scaled.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["spec"].get("replicas").filter(|replicas| !replicas.is_null()), None);
    assert!(matches!(plain.layout, Layout::Together));
    let chart = chart().display().to_string();
    let said = helm(&admin, &["template", "interlock", &chart, "--set=replica=3"]).refused();
    assert!(said.contains("replica"), "a misspelt value is refused: {said}");
    let said = helm(&admin, &["lint", &chart, "--strict"]);
    assert_eq!(said.code, 0, "{said}");
}

/// Over the definitions that somebody installed before, with `--take-ownership`; an upgrade keeps what the
/// process has written, and an uninstallation keeps the definitions.
#[test]
fn helm_installs_upgrades_and_uninstalls() {
    let cluster = Cluster::own(&[]);
    if !cluster.has_workloads() {
        return;
    }
    let admin = cluster.admin();
    let crds = install::yaml(&install::objects(Part::Crds, &InstallOptions::default()).unwrap()).unwrap();
    admin.kubectl_in(&["apply", "--server-side", "-f", "-"], &crds).ok();
    let chart = chart().display().to_string();
    let install = ["install", "interlock", &chart, "-n", "interlock-system", "--create-namespace"];
    let said = helm(&admin, &install).refused();
    assert!(said.contains("invalid ownership metadata"), "{said}");
    let waits = ["--take-ownership", "--wait", "--timeout=120s"];
    let out = helm(&admin, &[&install[..], &waits].concat()).ok();
    assert!(out.contains("interlock uninstall -n interlock-system"), "{out}");

    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/interlock";
    let bundle = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": other_ca()}]);
    admin.json_patch(webhooks, &bundle).ok();
    let written = admin.read(webhooks).ok()["webhooks"][0]["clientConfig"]["caBundle"].clone();
    let upgrade = [
        "upgrade",
        "interlock",
        &chart,
        "-n",
        "interlock-system",
        "--set=replicas=3",
        "--wait",
        "--timeout=120s",
    ];
    helm(&admin, &upgrade).ok();
    let deployment = admin.read("/apis/apps/v1/namespaces/interlock-system/deployments/interlock").ok();
    assert_eq!(deployment["spec"]["replicas"], 3);
    let kept = admin.read(webhooks).ok()["webhooks"][0]["clientConfig"]["caBundle"].clone();
    assert_eq!(kept, written, "the process maintains the caBundle");

    helm(&admin, &["uninstall", "interlock", "-n", "interlock-system", "--wait", "--timeout=120s"]).ok();
    assert_eq!(admin.read(webhooks).code, 404);
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/instances.kudo.dev";
    let left = admin.read(definition).ok();
    assert!(left["metadata"]["deletionTimestamp"].is_null(), "{left}");
}

/// PEM of a CA, in base64.
fn other_ca() -> String {
    use base64::Engine as _;
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = rcgen::CertificateParams::default().self_signed(&key).unwrap().pem();
    base64::engine::general_purpose::STANDARD.encode(pem)
}
