//! Deployments, what keeps them available, what they read, and what may reach them.

use interlock_core::api::meta::install;
use serde_json::{Value, json};

use super::{added, of};
use crate::install::{CertificateIssuer, ClientCa, Endpoint, InstallOptions, Layout, Part};

fn all(options: &InstallOptions) -> Vec<Value> {
    of(Part::Workload, options)
}

/// The pod of the Deployment of that name.
fn pod(name: &str, options: &InstallOptions) -> Value {
    let all = all(options);
    let found = all.iter().find(|o| o["kind"] == "Deployment" && o["metadata"]["name"] == name);
    found.unwrap()["spec"]["template"]["spec"].clone()
}

fn arguments(pod: &Value) -> Vec<&str> {
    pod["containers"][0]["args"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn pods_are_restricted_and_have_time_to_drain() {
    for layout in [Layout::Together, Layout::Split] {
        let all = all(&InstallOptions { layout, ..InstallOptions::default() });
        for deployment in all.iter().filter(|o| o["kind"] == "Deployment") {
            let pod = &deployment["spec"]["template"]["spec"];
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
            assert_eq!(pod["terminationGracePeriodSeconds"], 60);
            assert_eq!(pod["priorityClassName"], "system-cluster-critical");
            let container = &pod["containers"][0];
            assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
            assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
            assert_eq!(deployment["spec"]["replicas"], 2);
            assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
        }
    }
}

#[test]
fn what_serves_knows_the_api_servers() {
    let api_servers = vec!["10.0.0.0/24".parse().unwrap(), "10.1.0.7".parse().unwrap()];
    let options = InstallOptions { layout: Layout::Split, api_servers, ..InstallOptions::default() };
    let flag = "--api-server-cidr=10.0.0.0/24,10.1.0.7/32";
    assert!(arguments(&pod(install::WEBHOOK_NAME, &options)).contains(&flag));
    assert!(!arguments(&pod(install::NAME, &options)).contains(&flag));
}

#[test]
fn the_service_finds_what_serves() {
    for layout in [Layout::Together, Layout::Split] {
        let all = all(&InstallOptions { layout, ..InstallOptions::default() });
        let service =
            all.iter().find(|o| o["metadata"]["name"] == install::SERVICE && o["kind"] == "Service");
        let service = service.unwrap();
        let wanted = service["spec"]["selector"].as_object().unwrap();
        let found: Vec<_> = all
            .iter()
            .filter(|o| o["kind"] == "Deployment")
            .filter(|d| {
                let labels = &d["spec"]["template"]["metadata"]["labels"];
                wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
            })
            .map(|d| d["spec"]["template"]["spec"]["containers"][0]["args"][1].as_str().unwrap())
            .collect();
        assert_eq!(found, [if layout == Layout::Split { "--role=webhook" } else { "--role=all" }]);
    }
}

/// Every replica is scraped, on the port that it opens.
#[test]
fn the_metrics_of_every_replica_are_found() {
    for layout in [Layout::Together, Layout::Split] {
        let all = all(&InstallOptions { layout, ..InstallOptions::default() });
        let find = |name: &str| all.iter().find(|o| o["metadata"]["name"] == name && o["kind"] == "Service");
        let wanted = find(install::METRICS_SERVICE).unwrap()["spec"]["selector"].as_object().unwrap().clone();
        let (mut pods, mut missed) = (0, Vec::new());
        for deployment in all.iter().filter(|o| o["kind"] == "Deployment") {
            pods += 1;
            let template = &deployment["spec"]["template"];
            let labels = &template["metadata"]["labels"];
            let container = &template["spec"]["containers"][0];
            let opens =
                container["args"].as_array().unwrap().contains(&json!("--metrics-bind-address=0.0.0.0:8443"));
            let named =
                container["ports"][1] == json!({"name": "metrics", "containerPort": 8443, "protocol": "TCP"});
            if !(opens && named && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))) {
                missed.push(deployment["metadata"]["name"].clone());
            }
        }
        assert_eq!((pods, missed), (if layout == Layout::Split { 2 } else { 1 }, vec![]));
    }
}

#[test]
fn a_process_outside_the_cluster_has_no_deployment() {
    let endpoint = Endpoint::Url { base: "https://127.0.0.1:9443".to_owned(), ca_bundle: Vec::new() };
    let all = all(&InstallOptions { endpoint, ..InstallOptions::default() });
    assert_eq!(all.len(), 1);
}

/// The CA's key can sign certificates for any name that the API server trusts.
#[test]
fn no_pod_mounts_the_key_of_the_ca() {
    let layouts = [
        (Layout::Together, CertificateIssuer::BuiltIn),
        (Layout::Split, CertificateIssuer::BuiltIn),
        (Layout::Together, CertificateIssuer::CertManager),
        (Layout::Split, CertificateIssuer::CertManager),
    ];
    let mut mounted = 0;
    for (layout, certificates) in layouts {
        let all = all(&InstallOptions { layout, certificates, ..InstallOptions::default() });
        for deployment in all.iter().filter(|o| o["kind"] == "Deployment") {
            let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
            for volume in volumes.as_array().into_iter().flatten() {
                let items = volume["secret"]["items"].as_array().expect("items");
                let keys: Vec<_> = items.iter().map(|item| item["key"].as_str().unwrap()).collect();
                assert_eq!(keys, ["tls.crt", "tls.key"]);
                mounted += 1;
            }
        }
    }
    assert_eq!(mounted, 3);
}

#[test]
fn what_serves_asks_for_client_certificates() {
    let client_ca = ClientCa { config_map: "callers".to_owned(), names: vec!["kube-apiserver".to_owned()] };
    let options =
        InstallOptions { layout: Layout::Split, client_ca: Some(client_ca), ..InstallOptions::default() };
    let controller = pod(install::NAME, &options);
    assert!(controller["volumes"].is_null() && controller["containers"][0]["volumeMounts"].is_null());
    let serving = pod(install::WEBHOOK_NAME, &options);
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let mounts = &serving["containers"][0]["volumeMounts"];
    assert_eq!(names(&serving["volumes"]), ["certificate", "client-ca"]);
    assert_eq!(names(mounts), ["certificate", "client-ca"]);
    assert_eq!(serving["volumes"][1]["configMap"]["name"], "callers");
    let flags = ["--client-ca=/etc/interlock/client-ca/client-ca.crt", "--client-name=kube-apiserver"];
    assert!(arguments(&serving).ends_with(&flags));
    assert!(flags[0].contains(mounts[1]["mountPath"].as_str().unwrap()));
}

/// Only the overlay restricts egress.
#[test]
fn an_installation_restricts_nothing_that_goes_out() {
    for layout in [Layout::Together, Layout::Split] {
        let all = of(Part::All, &InstallOptions { layout, ..InstallOptions::default() });
        let policies: Vec<_> = all.iter().filter(|o| o["kind"] == "NetworkPolicy").collect();
        assert_eq!(policies.len(), 1, "{policies:#?}");
        assert_eq!(policies[0]["spec"]["policyTypes"], json!(["Ingress"]));
        assert_eq!(policies[0]["spec"].get("egress"), None);
    }
}

#[test]
fn only_api_servers_come_in_where_their_addresses_are_known() {
    let api_servers = vec!["10.0.0.0/24".parse().unwrap(), "10.1.0.7".parse().unwrap()];
    let ingress = |options: &InstallOptions| {
        let policy = all(options).into_iter().find(|object| object["kind"] == "NetworkPolicy").unwrap();
        policy["spec"]["ingress"][0].clone()
    };
    let rule = ingress(&InstallOptions { api_servers, ..InstallOptions::default() });
    let blocks = json!([{"ipBlock": {"cidr": "10.0.0.0/24"}}, {"ipBlock": {"cidr": "10.1.0.7/32"}}]);
    assert_eq!((&rule["from"], &rule["ports"][0]["port"]), (&blocks, &json!(9443)));
    assert_eq!(ingress(&InstallOptions::default()).get("from"), None);
}

/// Policies add up: the overlay's does not restrict ingress.
#[test]
fn the_overlay_restricts_only_what_goes_out() {
    let strict = InstallOptions { strict_egress: true, ..InstallOptions::default() };
    let added = added(Part::Workload, &strict);
    let policy = &added[0];
    assert_eq!(added.len(), 1);
    assert_ne!(policy["metadata"]["name"], install::NAME);
    assert_eq!(policy["spec"]["policyTypes"], json!(["Egress"]));
    assert_eq!(policy["spec"].get("ingress"), None);
}
