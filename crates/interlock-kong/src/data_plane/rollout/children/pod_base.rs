//! The generated pod template, which the user's is merged over: that of Kong's operator
//! (`GenerateNewDeploymentForDataPlane`, `KongDefaults`).

use serde_json::{Value, json};

use crate::api::{PROXY, PROXY_PORTS};

/// Name of the volume with the certificate of the admin API.
pub(super) const CERTIFICATE: &str = "cluster-certificate";
const CERTIFICATE_PATH: &str = "/var/cluster-certificate";

/// Value of `deployment.hardened` that asks for it.
const HARDENED: &str = "enabled";
/// Where a hardened Kong writes.
const PREFIX_PATH: &str = "/var/kong";
/// The user `kong` of Kong's images, by its number: the kubelet cannot tell from a name that it is not root.
const KONG_USER: u32 = 1000;

/// Variables that every gateway has, in the order of their names.
const DEFAULTS: [(&str, &str); 14] = [
    ("KONG_ADMIN_ACCESS_LOG", "/dev/stdout"),
    ("KONG_ADMIN_ERROR_LOG", "/dev/stderr"),
    ("KONG_ADMIN_GUI_ACCESS_LOG", "/dev/stdout"),
    ("KONG_ADMIN_GUI_ERROR_LOG", "/dev/stderr"),
    ("KONG_CLUSTER_LISTEN", "off"),
    ("KONG_DATABASE", "off"),
    ("KONG_NGINX_WORKER_PROCESSES", "2"),
    ("KONG_PLUGINS", "bundled"),
    ("KONG_PORTAL_API_ACCESS_LOG", "/dev/stdout"),
    ("KONG_PORTAL_API_ERROR_LOG", "/dev/stderr"),
    ("KONG_PORT_MAPS", "80:8000, 443:8443"),
    ("KONG_PROXY_ACCESS_LOG", "/dev/stdout"),
    ("KONG_PROXY_ERROR_LOG", "/dev/stderr"),
    ("KONG_STATUS_LISTEN", "0.0.0.0:8100"),
];
const PROXY_LISTEN: (&str, &str) = (
    "KONG_PROXY_LISTEN",
    "0.0.0.0:8000 reuseport backlog=16384, 0.0.0.0:8443 http2 ssl reuseport backlog=16384",
);

/// The admin API with a certificate: it serves only clients that have one of the same CA.
const ADMIN_API: [(&str, &str); 8] = [
    ("KONG_ADMIN_LISTEN", "0.0.0.0:8444 ssl reuseport backlog=16384"),
    ("KONG_ADMIN_SSL_CERT", "/var/cluster-certificate/tls.crt"),
    ("KONG_ADMIN_SSL_CERT_KEY", "/var/cluster-certificate/tls.key"),
    ("KONG_CLUSTER_CERT", "/var/cluster-certificate/tls.crt"),
    ("KONG_CLUSTER_CERT_KEY", "/var/cluster-certificate/tls.key"),
    ("KONG_NGINX_ADMIN_SSL_CLIENT_CERTIFICATE", "/var/cluster-certificate/ca.crt"),
    ("KONG_NGINX_ADMIN_SSL_VERIFY_CLIENT", "on"),
    ("KONG_NGINX_ADMIN_SSL_VERIFY_DEPTH", "3"),
];
/// Without one it would serve everybody, so it is off.
const NO_ADMIN_API: [(&str, &str); 1] = [("KONG_ADMIN_LISTEN", "off")];

/// What the generated template depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct PodFacts<'a> {
    /// Secret with the certificate of the admin API, as far as it is not the user's own volume.
    pub certificate: Option<&'a str>,
    /// Whether the user's template mounts a certificate.
    pub brings_certificate: bool,
    /// `deployment.hardened`.
    pub hardened: Option<&'a str>,
    /// Image of the container `proxy`.
    pub image: Option<&'a str>,
}

impl PodFacts<'_> {
    fn is_hardened(self) -> bool {
        self.hardened == Some(HARDENED)
    }

    fn has_certificate(self) -> bool {
        self.certificate.is_some() || self.brings_certificate
    }
}

/// The spec of the generated template.
pub(super) fn pod_spec(facts: PodFacts<'_>) -> Value {
    let mut volumes = Vec::new();
    if let Some(secret) = facts.certificate {
        let items: Vec<Value> =
            ["tls.crt", "tls.key", "ca.crt"].iter().map(|key| json!({"key": key, "path": key})).collect();
        volumes.push(json!({"name": CERTIFICATE, "secret": {"secretName": secret, "items": items}}));
    }
    if facts.is_hardened() {
        volumes.push(json!({"name": "kong-prefix", "emptyDir": {}}));
        volumes.push(json!({"name": "kong-tmp", "emptyDir": {}}));
    }
    json!({
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "volumes": volumes,
        "containers": [proxy(facts)],
    })
}

fn proxy(facts: PodFacts<'_>) -> Value {
    let mut mounts = Vec::new();
    if facts.has_certificate() {
        mounts.push(json!({"name": CERTIFICATE, "mountPath": CERTIFICATE_PATH, "readOnly": true}));
    }
    if facts.is_hardened() {
        mounts.push(json!({"name": "kong-prefix", "mountPath": PREFIX_PATH}));
        mounts.push(json!({"name": "kong-tmp", "mountPath": "/tmp"}));
    }
    let ports: Vec<Value> = PROXY_PORTS
        .iter()
        .map(|(name, port)| json!({"name": name, "containerPort": port, "protocol": "TCP"}))
        .collect();
    let mut container = json!({
        "name": PROXY,
        "imagePullPolicy": pull_policy(facts.image),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "kong quit"]}}},
        "ports": ports,
        "readinessProbe": {
            "httpGet": {"path": "/status", "port": 8100, "scheme": "HTTP"},
            "initialDelaySeconds": 5,
            "periodSeconds": 10,
            "timeoutSeconds": 1,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "resources": {
            "requests": {"cpu": "100m", "memory": "20Mi"},
            "limits": {"cpu": "2000m", "memory": "2000Mi"},
        },
        "env": environment(facts),
        "volumeMounts": mounts,
    });
    if facts.is_hardened() {
        container["securityContext"] = json!({
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "runAsUser": KONG_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        });
    }
    container
}

/// The variables, in the order of their names.
fn environment(facts: PodFacts<'_>) -> Vec<Value> {
    let admin_api: &[(&str, &str)] = if facts.has_certificate() { &ADMIN_API } else { &NO_ADMIN_API };
    let mut all: Vec<(&str, &str)> = DEFAULTS.iter().chain(admin_api).copied().collect();
    all.push(PROXY_LISTEN);
    if facts.is_hardened() {
        all.push(("KONG_PREFIX", PREFIX_PATH));
    }
    all.sort_unstable();
    all.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// When an image is pulled, as the API server defaults it for a new object. It has to be stated: the API server does
/// not default it anew when the image changes.
fn pull_policy(image: Option<&str>) -> &'static str {
    let image = image.unwrap_or_default();
    if image.contains('@') {
        return "IfNotPresent";
    }
    // A colon before the last slash belongs to the port of the registry.
    let name = image.rsplit('/').next().unwrap_or_default();
    match name.split_once(':') {
        Some((_, tag)) if tag != "latest" => "IfNotPresent",
        _ => "Always",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::tag("kong:3.9", "IfNotPresent")]
    #[case::latest("kong:latest", "Always")]
    #[case::no_tag("kong", "Always")]
    #[case::registry_with_a_port("registry.local:5000/kong", "Always")]
    #[case::registry_with_a_port_and_a_tag("registry.local:5000/kong:3.9", "IfNotPresent")]
    #[case::digest("registry.local:5000/kong@sha256:0f", "IfNotPresent")]
    #[case::tag_and_digest("kong:latest@sha256:0f", "IfNotPresent")]
    fn pull_policies(#[case] image: &str, #[case] policy: &str) {
        assert_eq!(pull_policy(Some(image)), policy);
    }
}
