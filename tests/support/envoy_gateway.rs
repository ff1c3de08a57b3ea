//! Envoy Gateway on a control plane, and real Envoys in place of its fake pods. Both listen on fixed ports, so that a case
//! runs in a network namespace of its own ([`super::service_path::inside`]), in which Gateways differ in their ports.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use serde_json::Value;

use super::process::{self, Running};
use super::{Client, Cluster, peers, testbed, wait_until};

/// Its own namespace, in which its proxies are too.
const NAMESPACE: &str = "envoy-gateway-system";
const CAP: Duration = Duration::from_secs(120);

/// Its configuration, but for the certificates, which it expects in `/certs`.
const CONFIGURATION: &str = "
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyGateway
gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
provider:
  type: Kubernetes
  kubernetes: {leaderElection: {disable: true}, proxyTopologyInjector: {disable: true}}
extensionApis: {enableEnvoyPatchPolicy: true}
";

/// Its class `eg`, whose Gateways have an address on a control plane without load balancers.
const CLASS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, namespace: envoy-gateway-system, name: eg}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyProxy
metadata: {name: eg, namespace: envoy-gateway-system}
spec:
  provider: {type: Kubernetes, kubernetes: {envoyService: {type: ClusterIP}}}
  telemetry: {metrics: {prometheus: {disable: true}}}
";

/// Port of [`Envoy::client_of_http3`].
pub const HTTP3_CLIENT_PORT: u16 = 10081;

const HTTP3_CLIENT: &str = "
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: CLIENT_PORT}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: plain
          route_config:
            virtual_hosts: [{name: all, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: http3}}]}]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: http3
    load_assignment:
      cluster_name: http3
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: ADDRESS, port_value: PORT}}}}]}]
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        '@type': type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http3_protocol_options: {}}
    transport_socket:
      name: envoy.transport_sockets.quic
      typed_config:
        '@type': type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport
        upstream_tls_context: {sni: HOST}
";

/// Envoy Gateway; killed when dropped.
pub struct EnvoyGateway<'a> {
    cluster: &'a Cluster,
    admin: Client,
    _process: Running,
}

impl<'a> EnvoyGateway<'a> {
    /// Installs and starts it, and waits until it has accepted its class.
    pub fn start(cluster: &'a Cluster) -> Self {
        Self::start_with(cluster, "", CLASS)
    }

    /// The same, where the Gateways of its class are merged.
    pub fn start_merged(cluster: &'a Cluster) -> Self {
        Self::start_with(cluster, "", &format!("{CLASS}  mergeGateways: true\n"))
    }

    /// The same, where it names listeners by their ports.
    pub fn start_with_names_by_port(cluster: &'a Cluster) -> Self {
        Self::start_with(cluster, "runtimeFlags: {enabled: [XDSNameSchemeV2]}\n", CLASS)
    }

    fn start_with(cluster: &'a Cluster, configuration: &str, class: &str) -> Self {
        let admin = cluster.admin();
        let definitions = peers::envoy_gateway_definitions();
        admin.kubectl(&["apply", "--server-side", "-f", definitions.to_str().expect("UTF-8")]).ok();
        admin.kubectl(&["create", "namespace", NAMESPACE]).ok();

        let root = cluster.dir().join("envoy-gateway");
        std::fs::create_dir_all(root.join("certs")).expect("its folder");
        let (program, place) = (peers::envoy_gateway(), root.join("envoy-gateway"));
        let linked = std::fs::hard_link(&program, &place);
        linked.or_else(|_| std::fs::copy(&program, &place).map(drop)).expect("its program");
        std::fs::copy(admin.kubeconfig(), root.join("kubeconfig")).expect("its kubeconfig");
        std::fs::write(root.join("configuration.yaml"), CONFIGURATION.to_owned() + configuration)
            .expect("its configuration");
        let made = program_in(&root, &["certgen", "--disable-topology-injector"]).output().expect("it runs");
        assert!(made.status.success(), "certgen: {}", String::from_utf8_lossy(&made.stderr));
        write_secret(&admin, "envoy-gateway", &root.join("certs"));
        let server = program_in(&root, &["server", "--config-path", "/configuration.yaml"]);
        let process = Running::start(server, cluster.dir().join("logs/envoy-gateway.log"));

        admin.apply(class);
        wait_until("Envoy Gateway accepts its class", CAP, || {
            let class = admin.get("gatewayclass", "eg").ok_or("no class")?;
            let accepted = condition(&class["status"]["conditions"], "Accepted");
            if accepted == Some("True") { Ok(()) } else { Err(format!("{}\n{class:#}", process.said())) }
        });
        Self { cluster, admin, _process: process }
    }

    /// Starts an Envoy in place of the pod of a Gateway that is there.
    pub fn proxy(&self, namespace: &str, gateway: &str) -> Envoy {
        self.proxy_of(&format!(
            "gateway.envoyproxy.io/owning-gateway-name={gateway},gateway.envoyproxy.io/owning-gateway-namespace={namespace}"
        ))
    }

    /// The same of its class, where Gateways are merged.
    pub fn merged_proxy(&self) -> Envoy {
        self.proxy_of("gateway.envoyproxy.io/owning-gatewayclass=eg")
    }

    fn proxy_of(&self, owned: &str) -> Envoy {
        let admin = self.admin.within(NAMESPACE);
        let first = |path: &str, is_wanted: fn(&Value) -> bool| {
            wait_until("Envoy Gateway has made the proxy of the Gateway", CAP, || {
                let list = admin.read(&format!("{path}?labelSelector={owned}")).body;
                let found = list["items"].as_array().into_iter().flatten().find(|item| is_wanted(item));
                found.cloned().ok_or_else(|| format!("{list:#}"))
            })
        };
        let deployment = first(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments"), |_| true);
        let pod =
            first(&format!("/api/v1/namespaces/{NAMESPACE}/pods"), |pod| pod["status"]["podIP"].is_string());
        let name = |object: &Value| object["metadata"]["name"].as_str().expect("a name").to_owned();
        let address = pod["status"]["podIP"].as_str().expect("an address");

        let folder = self.cluster.dir().join(name(&pod));
        let certificates = folder.join("certs");
        std::fs::create_dir_all(&certificates).expect("its folder");
        write_secret(&admin, "envoy", &certificates);
        let mounted = |text: &str| text.replace("/certs/", &format!("{}/", certificates.display()));
        let discovery = admin.get("configmap", &name(&deployment)).expect("the ConfigMap of the proxy");
        for (file, text) in discovery["data"].as_object().expect("files") {
            std::fs::write(folder.join(file), mounted(text.as_str().expect("text"))).expect("its file");
        }
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
        let envoy = containers.into_iter().flatten().find(|container| container["name"] == "envoy");
        let args = envoy.and_then(|container| container["args"].as_array()).expect("the arguments of Envoy");
        let mut command = process::tethered(&testbed::BIN.join("testbed"), &peers::envoy());
        command.arg("--disable-hot-restart");
        command.args(args.iter().filter_map(Value::as_str).map(|arg| {
            mounted(arg)
                // Ports of this pod, which are on loopback in a network namespace of its own.
                .replace("address: 127.0.0.1", &format!("address: {address}"))
                .replace("envoy-gateway.envoy-gateway-system.svc.cluster.local.", "127.0.0.1")
                .replace("/sds/", &format!("{}/", folder.display()))
                .replace("$(ENVOY_POD_NAME)", &name(&pod))
                .replace("$(ENVOY_SERVICE_ZONE)", "")
        }));
        // A port-forward to port 19000 of any pod goes there.
        std::fs::write(self.cluster.dir().join("pods/administration"), address).expect("its address");
        let process = Running::start(command, self.cluster.dir().join(format!("logs/{}.log", name(&pod))));
        Envoy { address: address.to_owned(), process }
    }
}

/// Envoy Gateway, in a root directory of its own.
fn program_in(root: &Path, args: &[&str]) -> Command {
    let mut command = process::tethered(&testbed::BIN.join("testbed"), Path::new("unshare"));
    command.arg("--root").arg(root).arg("/envoy-gateway").args(args);
    command.env("KUBECONFIG", "/kubeconfig").env("ENVOY_GATEWAY_NAMESPACE", NAMESPACE);
    command
}

/// A Secret as files.
fn write_secret(admin: &Client, name: &str, folder: &Path) {
    let secret = admin.within(NAMESPACE).get("secret", name).expect("a Secret that certgen makes");
    for (file, content) in secret["data"].as_object().expect("files") {
        let engine = base64::engine::general_purpose::STANDARD;
        let content = engine.decode(content.as_str().expect("text")).expect("base64");
        std::fs::write(folder.join(file), content).expect("its file");
    }
}

/// The status of a condition.
pub fn condition<'v>(conditions: &'v Value, of: &str) -> Option<&'v str> {
    conditions.as_array()?.iter().find(|condition| condition["type"] == of)?["status"].as_str()
}

/// A real Envoy in place of a fake pod; killed when dropped.
pub struct Envoy {
    address: String,
    process: Running,
}

/// Whether an answer of HTTP/1.1 has come to its end, as far as its headers say.
fn is_whole(answer: &[u8]) -> bool {
    let answer = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return false };
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match header("content-length:").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => header("transfer-encoding:") == Some("chunked") && body.ends_with("0\r\n\r\n"),
    }
}

impl Envoy {
    /// The status that it answers to a GET, with further header lines; `None` where it does not.
    pub fn get(&self, port: u16, host: &str, path: &str, headers: &str) -> Option<u16> {
        self.answer(port, host, path, headers)?.split(' ').nth(1)?.parse().ok()
    }

    /// All of its answer to a GET.
    pub fn answer(&self, port: u16, host: &str, path: &str, headers: &str) -> Option<String> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\n\r\n");
        self.exchange(port, &request)
    }

    /// An Envoy that takes plain requests at [`HTTP3_CLIENT_PORT`], and hands them to this one over HTTP/3.
    pub fn client_of_http3(&self, cluster: &Cluster, port: u16, host: &str) -> Self {
        let text = HTTP3_CLIENT
            .replace("CLIENT_PORT", &HTTP3_CLIENT_PORT.to_string())
            .replace("ADDRESS", &self.address)
            .replace("PORT", &port.to_string())
            .replace("HOST", host);
        let mut command = process::tethered(&testbed::BIN.join("testbed"), &peers::envoy());
        command.args(["--disable-hot-restart", "--config-yaml", &text]);
        let process = Running::start(command, cluster.dir().join("logs/http3-client.log"));
        Self { address: "127.0.0.1".to_owned(), process }
    }

    /// Waits until it answers so.
    #[track_caller]
    pub fn await_status(&self, port: u16, host: &str, path: &str, status: u16) {
        wait_until(&format!("{host}{path} is answered with {status}"), CAP, || {
            let found = self.get(port, host, path, "");
            let said = || format!("{found:?}; Envoy: {}", self.process.said());
            if found == Some(status) { Ok(()) } else { Err(said()) }
        });
    }

    /// The configuration that it has, as its administration says it.
    pub fn configuration(&self) -> Option<String> {
        self.exchange(19000, "GET /config_dump HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    }

    fn exchange(&self, port: u16, request: &str) -> Option<String> {
        let mut stream = TcpStream::connect((self.address.as_str(), port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        // Not to the end of the connection: Envoy may close it seconds later, where its listener is replaced meanwhile.
        let (mut answer, mut part) = (Vec::new(), [0; 4096]);
        while !is_whole(&answer) {
            match stream.read(&mut part).ok()? {
                0 => break,
                read => answer.extend_from_slice(&part[..read]),
            }
        }
        String::from_utf8(answer).ok()
    }
}
