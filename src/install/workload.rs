//! Namespace, Service, Deployments and what keeps them available.

use std::collections::BTreeMap;

use interlock_core::admission::Freeze;
use interlock_core::api::meta::install;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, Namespace,
    ObjectFieldSelector, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceQuota,
    ResourceQuotaSpec, ResourceRequirements, ScopeSelector, ScopedResourceSelectorRequirement,
    SeccompProfile, SecurityContext, Service, ServicePort, ServiceSpec, TopologySpreadConstraint,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::metadata::{cluster_wide, labels, namespaced, strings};
use super::mounted::{Mounted, mounted};
use super::role::DeploymentRole;
use super::{CertificateIssuer, Endpoint, InstallOptions, Layout, network};

/// On SIGTERM readiness fails at once, the webhook answers for at least 15 s more, then drains.
const GRACE_SECONDS: i64 = 60;
/// Nodes under pressure evict other pods first: without a replica, writes of guarded objects are denied.
const PRIORITY_CLASS: &str = "system-cluster-critical";
/// More than any number of replicas that is sensible.
const MOST_CRITICAL_PODS: &str = "100";
const COMPONENT: &str = "app.kubernetes.io/component";
const USER: i64 = 65532;
/// Name of the port of metrics, and component label of its Service.
pub(super) const METRICS: &str = "metrics";

/// The namespace first, then everything in it.
pub fn all(options: &InstallOptions) -> Vec<Value> {
    let mut all = vec![json!(namespace(options))];
    if matches!(options.endpoint, Endpoint::Url { .. }) {
        return all;
    }
    let roles: &[DeploymentRole] = match options.layout {
        Layout::Together => &[DeploymentRole::All],
        Layout::Split => &[DeploymentRole::Controller, DeploymentRole::Webhook],
    };
    let serving = roles.iter().copied().find(|r| r.serves()).unwrap_or(DeploymentRole::All);
    all.push(json!(critical_pods(options)));
    all.push(json!(service(serving, options)));
    all.push(json!(metrics_service(options)));
    all.extend(roles.iter().map(|&role| json!(deployment(role, options))));
    all.extend(roles.iter().map(|&role| json!(disruption_budget(role, options))));
    all.push(json!(network::ingress(options)));
    if options.certificates == CertificateIssuer::CertManager {
        all.extend(cert_manager(options));
    }
    all
}

fn namespace(options: &InstallOptions) -> Namespace {
    let mut metadata = cluster_wide(&options.namespace);
    for mode in ["enforce", "audit", "warn"] {
        let key = format!("pod-security.kubernetes.io/{mode}");
        metadata.labels.get_or_insert_default().insert(key, "restricted".to_owned());
    }
    Namespace { metadata, ..Namespace::default() }
}

fn pod_labels(role: DeploymentRole) -> BTreeMap<String, String> {
    let mut labels = labels();
    labels.insert(COMPONENT.to_owned(), role.component().to_owned());
    labels
}

fn selector(role: DeploymentRole) -> LabelSelector {
    LabelSelector { match_labels: Some(selected(role)), match_expressions: None }
}

fn selected(role: DeploymentRole) -> BTreeMap<String, String> {
    let mut labels = pod_labels(role);
    labels.remove("app.kubernetes.io/part-of");
    labels
}

pub(super) fn service(serving: DeploymentRole, options: &InstallOptions) -> Service {
    Service {
        metadata: namespaced(options.service(), options),
        spec: Some(ServiceSpec {
            selector: Some(selected(serving)),
            ports: Some(vec![ServicePort {
                name: Some("webhook".to_owned()),
                port: 443,
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::String("webhook".to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Metrics of every replica, whatever its role.
fn metrics_service(options: &InstallOptions) -> Service {
    let mut metadata = namespaced(install::METRICS_SERVICE, options);
    let component = (COMPONENT.to_owned(), METRICS.to_owned());
    metadata.labels.get_or_insert_default().extend([component]);
    let selected = [("app.kubernetes.io/name".to_owned(), install::NAME.to_owned())].into();
    Service {
        metadata,
        spec: Some(ServiceSpec {
            selector: Some(selected),
            ports: Some(vec![ServicePort {
                name: Some(METRICS.to_owned()),
                port: i32::from(install::METRICS_PORT),
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::String(METRICS.to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

pub(super) fn deployment(role: DeploymentRole, options: &InstallOptions) -> Deployment {
    // Two controllers overlap only for a moment; the Lease decides.
    Deployment {
        metadata: namespaced(role.name(), options),
        spec: Some(DeploymentSpec {
            replicas: Some(options.replicas),
            selector: selector(role),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(1)),
                    max_unavailable: Some(IntOrString::Int(0)),
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(pod_labels(role)), ..ObjectMeta::default() }),
                spec: Some(pod(role, options)),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

/// Manifests omit empty lists.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn pod(role: DeploymentRole, options: &InstallOptions) -> PodSpec {
    let spread = |key: &str| TopologySpreadConstraint {
        max_skew: 1,
        topology_key: key.to_owned(),
        when_unsatisfiable: "ScheduleAnyway".to_owned(),
        label_selector: Some(selector(role)),
        ..TopologySpreadConstraint::default()
    };
    let mounted = mounted(role, options);
    PodSpec {
        containers: vec![container(role, options)],
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            fs_group: Some(USER),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        priority_class_name: Some(PRIORITY_CLASS.to_owned()),
        service_account_name: Some(role.name().to_owned()),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        topology_spread_constraints: Some(vec![
            spread("kubernetes.io/hostname"),
            spread("topology.kubernetes.io/zone"),
        ]),
        volumes: some(mounted.iter().map(Mounted::volume).collect()),
        ..PodSpec::default()
    }
}

pub(super) fn arguments(role: DeploymentRole, options: &InstallOptions) -> Vec<String> {
    let mut arguments = vec![
        "run".to_owned(),
        format!("--role={}", role.as_str()),
        format!("--metrics-bind-address=0.0.0.0:{}", install::METRICS_PORT),
    ];
    if role == DeploymentRole::Webhook || options.controller_user.is_some() {
        arguments.push(format!("--controller-user={}", options.controller_user()));
    }
    if role != DeploymentRole::Webhook {
        arguments.push(format!("--packages-service-account={}", options.packages));
    }
    if options.freeze == Freeze::SamePlan {
        arguments.push("--freeze=same-plan".to_owned());
    }
    if let Some(docs) = options.docs.as_ref().filter(|_| role.serves()) {
        arguments.push(format!("--docs-url={}", docs.as_str()));
    }
    if options.flavor_secrets && role != DeploymentRole::Webhook {
        arguments.push("--flavor-secrets".to_owned());
    }
    if !options.watch_namespaces.is_empty() {
        arguments.push(format!("--watch-namespaces={}", options.watch_namespaces.join(",")));
    }
    if options.service() != install::SERVICE {
        arguments.push(format!("--service-name={}", options.service()));
    }
    if role.serves() && !options.api_servers.is_empty() {
        let ranges: Vec<_> = options.api_servers.iter().map(ToString::to_string).collect();
        arguments.push(format!("--api-server-cidr={}", ranges.join(",")));
    }
    arguments.extend(mounted(role, options).iter().flat_map(Mounted::arguments));
    arguments
}

fn container_port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

fn container(role: DeploymentRole, options: &InstallOptions) -> Container {
    let probe = |path: &str, period: i32| Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("webhook".to_owned()),
            scheme: Some("HTTPS".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(2),
        failure_threshold: Some(3),
        ..Probe::default()
    };
    let field = |name: &str, path: &str| EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: path.to_owned(), api_version: None }),
            ..EnvVarSource::default()
        }),
        value: None,
    };
    let quantities = |pairs: &[(&str, &str)]| {
        Some(pairs.iter().map(|&(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).collect())
    };
    Container {
        name: install::NAME.to_owned(),
        image: Some(options.image.clone()),
        args: Some(arguments(role, options)),
        env: Some(vec![field("INTERLOCK_NAMESPACE", "metadata.namespace")]),
        ports: Some(vec![
            container_port("webhook", install::WEBHOOK_PORT),
            container_port(METRICS, install::METRICS_PORT),
        ]),
        liveness_probe: Some(probe("/livez", 10)),
        readiness_probe: Some(probe("/readyz", 2)),
        // A cold start reads all Instances first; liveness must not end it.
        startup_probe: Some(Probe { failure_threshold: Some(60), ..probe("/livez", 1) }),
        // A CPU limit would only delay answers.
        resources: Some(ResourceRequirements {
            requests: quantities(&[("cpu", "50m"), ("memory", "64Mi")]),
            limits: quantities(&[("memory", "512Mi")]),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(strings(["ALL"])), add: None }),
            read_only_root_filesystem: Some(true),
            ..SecurityContext::default()
        }),
        volume_mounts: some(mounted(role, options).iter().map(Mounted::mount).collect()),
        ..Container::default()
    }
}

/// Where an API server limits critical pods (`limitedResources` of its ResourceQuota plugin, as some
/// providers do outside `kube-system`), a quota of a namespace permits them there.
fn critical_pods(options: &InstallOptions) -> ResourceQuota {
    let of_the_class = ScopedResourceSelectorRequirement {
        scope_name: "PriorityClass".to_owned(),
        operator: "In".to_owned(),
        values: Some(strings([PRIORITY_CLASS])),
    };
    ResourceQuota {
        metadata: namespaced(install::CRITICAL_PODS, options),
        spec: Some(ResourceQuotaSpec {
            hard: Some([("pods".to_owned(), Quantity(MOST_CRITICAL_PODS.to_owned()))].into()),
            scope_selector: Some(ScopeSelector { match_expressions: Some(vec![of_the_class]) }),
            scopes: None,
        }),
        status: None,
    }
}

pub(super) fn disruption_budget(role: DeploymentRole, options: &InstallOptions) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: namespaced(role.name(), options),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(selector(role)),
            // A pod that is not ready protects nothing.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    }
}

/// A self-signed issuer and the certificate of the webhook, for cert-manager.
pub(super) fn cert_manager(options: &InstallOptions) -> Vec<Value> {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": kind,
            "metadata": namespaced(name, options),
            "spec": spec,
        })
    };
    let host = format!("{}.{}.svc", options.service(), options.namespace);
    vec![
        object("Issuer", install::NAME, json!({ "selfSigned": {} })),
        object(
            "Certificate",
            install::CERTIFICATE_SECRET,
            json!({
                "secretName": install::CERTIFICATE_SECRET,
                "dnsNames": [host, format!("{host}.cluster.local")],
                "issuerRef": { "kind": "Issuer", "name": install::NAME },
                "privateKey": { "algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always" },
            }),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let flag = "--api-server-cidr=10.0.0.0/24,10.1.0.7/32".to_owned();
        assert!(arguments(DeploymentRole::Webhook, &options).contains(&flag));
        assert!(!arguments(DeploymentRole::Controller, &options).contains(&flag));
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
            let find =
                |name: &str| all.iter().find(|o| o["metadata"]["name"] == name && o["kind"] == "Service");
            let wanted =
                find(install::METRICS_SERVICE).unwrap()["spec"]["selector"].as_object().unwrap().clone();
            let (mut pods, mut missed) = (0, Vec::new());
            for deployment in all.iter().filter(|o| o["kind"] == "Deployment") {
                pods += 1;
                let template = &deployment["spec"]["template"];
                let labels = &template["metadata"]["labels"];
                let container = &template["spec"]["containers"][0];
                let opens = container["args"]
                    .as_array()
                    .unwrap()
                    .contains(&json!("--metrics-bind-address=0.0.0.0:8443"));
                let named = container["ports"][1]
                    == json!({"name": "metrics", "containerPort": 8443, "protocol": "TCP"});
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
}
