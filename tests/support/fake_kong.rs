//! Kong's Admin and status API at the fake pods' own addresses: one server on 0.0.0.0 tells by its
//! local address which pod it is being. Inside a network namespace only ([`super::service_path`]).
//!
//! What it does was taken from Kong's sources, and is what this project assumes of Kong:
//! `GET /` has `version` and `configuration.router_flavor` (none before 3.0); `GET /status` is 200
//! from the start, `GET /status/ready` 503 until there is a configuration; `POST /config` refuses
//! what the route schema of that version and flavor does not know
//! (`kong/db/schema/entities/routes.lua`). The flavor is that of the pod's environment when it was
//! first asked: Kong reads it when it starts.
//!
//! `GET /routes` of the Admin API lists what it was configured with, in pages.
//!
//! On 8444 the same Admin API is served over TLS, with the certificate of the Secret that the pod mounts, to
//! clients with one of its CA. Answers have the header `Server: kong/VERSION`.
//!
//! Annotations of the pod: `testbed.interlock.dev/kong-baked: FLAVOR` (the image sets one where the
//! pod does not), `/kong-lag: MS` (a configuration counts after so long),
//! `/kong-version: VERSION` (what it reports, whatever its image is), `/kong-page: N` (routes of a page, if it is asked
//! for more), `/kong-answer: redirect`,
//! `silence`, `garbage` or `flood` (what the Admin API does instead).

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Client;

/// Port of the Admin API, without TLS.
pub const ADMIN: u16 = 8001;
/// Port of the Admin API, with TLS.
pub const ADMIN_TLS: u16 = 8444;
/// Port of the status API.
pub const STATUS: u16 = 8100;

/// The server; it ends with the test's process, and with it its network namespace.
#[derive(Clone)]
pub struct FakeKong {
    admin: Client,
    pods: Arc<Mutex<HashMap<String, Kong>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

/// One pod since it was first asked.
#[derive(Clone)]
struct Kong {
    name: String,
    version: (u32, u32),
    flavor: String,
    /// The version that it reports where that is not its own.
    other_version: String,
    namespace: String,
    /// The Secret with the certificate of its Admin API.
    secret: Option<String>,
    lag: Duration,
    answer: String,
    configured: Option<Instant>,
    routes: Vec<Value>,
    page: usize,
}

impl FakeKong {
    /// Begins to answer as every pod of the cluster; `admin` reads them.
    pub fn start(admin: Client) -> Self {
        let kong = Self { admin, pods: Arc::default(), asked: Arc::default() };
        for port in [ADMIN, ADMIN_TLS, STATUS] {
            let listener = TcpListener::bind(("0.0.0.0", port)).expect("a network namespace of its own");
            let kong = kong.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let kong = kong.clone();
                    std::thread::spawn(move || kong.accept(stream, port));
                }
            });
        }
        kong
    }

    /// Names of pods whose Admin API was asked for `/`.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a producer does: sends a configuration to a pod.
    pub fn push(&self, address: &str, routes: &Value) -> (u16, Value) {
        let body = json!({"_format_version": "3.0", "routes": routes}).to_string();
        let head =
            format!("POST /config HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n", body.len());
        exchange(address, ADMIN, &format!("{head}{body}")).expect("the pod answers")
    }

    /// Like [`Self::push`], where the pod may be gone already.
    pub fn offer(&self, address: &str, routes: &Value) {
        let body = json!({"_format_version": "3.0", "routes": routes}).to_string();
        let head =
            format!("POST /config HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n", body.len());
        exchange(address, ADMIN, &format!("{head}{body}"));
    }

    /// One GET of a pod.
    pub fn get(&self, address: &str, port: u16, path: &str) -> (u16, Value) {
        exchange(address, port, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
            .expect("the pod answers")
    }

    fn accept(&self, stream: TcpStream, port: u16) -> Option<()> {
        let here = stream.local_addr().ok()?;
        if port != ADMIN_TLS {
            return self.serve(here, stream);
        }
        let config = self.pod(&here.ip().to_string())?.tls(&self.admin)?;
        let connection = rustls::ServerConnection::new(Arc::new(config)).ok()?;
        let mut stream = rustls::StreamOwned::new(connection, stream);
        self.serve(here, &mut stream)?;
        stream.conn.send_close_notify();
        stream.flush().ok()
    }

    fn serve(&self, here: SocketAddr, stream: impl Read + Write) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            if header.trim().is_empty() {
                break;
            }
            let (name, value) = header.split_once(':')?;
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (code, text) = self.answer(here, line.trim().trim_end_matches(" HTTP/1.1"), &body)?;
        let version = self.pod(&here.ip().to_string())?.reports();
        let mut stream = reader.into_inner();
        write!(
            stream,
            "HTTP/1.1 {code} x\r\nContent-Type: application/json\r\nLocation: /elsewhere\r\nConnection: \
             close\r\nServer: kong/{version}\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )
        .ok()
    }

    fn answer(&self, here: SocketAddr, request: &str, body: &[u8]) -> Option<(u16, String)> {
        let address = here.ip().to_string();
        let kong = self.pod(&address)?;
        let message = |code, text: &str| Some((code, json!({"message": text}).to_string()));
        match (here.port(), request) {
            (ADMIN | ADMIN_TLS, "GET /") => {
                self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(kong.name.clone());
                match kong.answer.as_str() {
                    "redirect" => message(301, "elsewhere"),
                    "garbage" => Some((200, "<html>".to_owned())),
                    "flood" => Some((200, format!("{{\"x\":\"{}\"}}", "x".repeat(2 << 20)))),
                    "silence" => {
                        // Longer than anybody waits; the thread ends with the process.
                        std::thread::sleep(Duration::from_secs(600));
                        None
                    }
                    _ => Some((200, kong.root().to_string())),
                }
            }
            (ADMIN | ADMIN_TLS, list) if list.starts_with("GET /routes?") => {
                Some((200, kong.page_of_routes(list).to_string()))
            }
            (_, "GET /status") => Some((200, json!({"database": {"reachable": true}}).to_string())),
            (_, "GET /status/ready") => match kong.configured {
                Some(at) if at.elapsed() >= kong.lag => message(200, "ready"),
                _ => message(503, "no configuration available (empty configuration present)"),
            },
            (ADMIN, "POST /config") => {
                let config: Value = serde_json::from_slice(body).unwrap_or_default();
                let routes = config["routes"].as_array().cloned().unwrap_or_default();
                match routes.iter().enumerate().find_map(|(i, route)| Some((i + 1, kong.objects(route)?))) {
                    Some((i, why)) => {
                        message(400, &format!("declarative config is invalid: routes[{i}]: {why}"))
                    }
                    None => {
                        let mut pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
                        if let Some(kong) = pods.values_mut().find(|known| known.name == kong.name) {
                            kong.configured = Some(Instant::now());
                            kong.routes = routes;
                        }
                        Some((201, "{}".to_owned()))
                    }
                }
            }
            _ => message(404, "Not found"),
        }
    }

    fn pod(&self, address: &str) -> Option<Kong> {
        let path = format!("/api/v1/pods?fieldSelector=status.podIP={address}");
        let list = self.admin.read(&path).ok();
        let alive = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        let pod = list["items"].as_array()?.iter().find(alive)?.clone();
        let uid = pod["metadata"]["uid"].as_str()?.to_owned();
        let mut pods = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        Some(pods.entry(uid).or_insert_with(|| self.begin(&pod)).clone())
    }

    /// What a pod starts with.
    fn begin(&self, pod: &Value) -> Kong {
        let containers = pod["spec"]["containers"].as_array().expect("containers");
        let proxy = containers.iter().find(|container| container["name"] == "proxy").unwrap_or(&Value::Null);
        let note = |key: &str| {
            pod["metadata"]["annotations"][format!("testbed.interlock.dev/{key}")]
                .as_str()
                .unwrap_or_default()
        };
        let tag =
            proxy["image"].as_str().and_then(|image| image.rsplit_once(':')).map_or("3.9", |(_, tag)| tag);
        let mut numbers = tag.split('.').map(|number| number.parse().unwrap_or(0));
        let set = |entry: &Value| {
            let from = &entry["valueFrom"]["configMapKeyRef"];
            match entry["value"].as_str() {
                Some(value) => value.to_owned(),
                None => {
                    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
                    let name = from["name"].as_str().unwrap_or_default();
                    let map =
                        self.admin.read(&format!("/api/v1/namespaces/{namespace}/configmaps/{name}")).ok();
                    map["data"][from["key"].as_str().unwrap_or_default()]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned()
                }
            }
        };
        let entries = proxy["env"].as_array().into_iter().flatten();
        let flavor = entries.filter(|entry| entry["name"] == "KONG_ROUTER_FLAVOR").map(set).next_back();
        let baked = Some(note("kong-baked").to_owned()).filter(|baked| !baked.is_empty());
        Kong {
            name: pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            version: (numbers.next().unwrap_or(3), numbers.next().unwrap_or(0)),
            flavor: flavor.or(baked).unwrap_or_else(|| "traditional_compatible".to_owned()),
            other_version: note("kong-version").to_owned(),
            namespace: pod["metadata"]["namespace"].as_str().unwrap_or_default().to_owned(),
            secret: secret(pod),
            lag: Duration::from_millis(note("kong-lag").parse().unwrap_or(0)),
            answer: note("kong-answer").to_owned(),
            configured: None,
            routes: Vec::new(),
            page: note("kong-page").parse().unwrap_or(1000),
        }
    }
}

impl Kong {
    fn root(&self) -> Value {
        let mut configuration = json!({"database": "off"});
        if self.version >= (3, 0) {
            configuration["router_flavor"] = json!(self.flavor);
        }
        json!({"version": self.reports(), "hostname": self.name, "configuration": configuration})
    }

    /// A page of its routes; the offset is the place of the first one.
    fn page_of_routes(&self, request: &str) -> Value {
        let number = |name: &str| {
            let query = request.split_once('?').map_or("", |(_, query)| query);
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<usize>().ok())
        };
        let (first, size) = (number("offset").unwrap_or(0), number("size").unwrap_or(100).min(self.page));
        let page: Vec<&Value> = self.routes.iter().skip(first).take(size).collect();
        let next = first + page.len();
        match next < self.routes.len() {
            true => {
                json!({"data": page, "next": format!("/routes?offset={next}"), "offset": next.to_string()})
            }
            false => json!({"data": page, "next": null}),
        }
    }

    fn reports(&self) -> String {
        match self.other_version.as_str() {
            "" => format!("{}.{}", self.version.0, self.version.1),
            other => other.to_owned(),
        }
    }

    /// What its Admin API is served with, as the Secret has it now.
    fn tls(&self, admin: &Client) -> Option<rustls::ServerConfig> {
        use base64::Engine as _;
        use rustls::pki_types::pem::PemObject as _;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        let name = self.secret.as_ref()?;
        let found = admin.read(&format!("/api/v1/namespaces/{}/secrets/{name}", self.namespace));
        let text = |key: &str| {
            base64::engine::general_purpose::STANDARD.decode(found.body["data"][key].as_str()?).ok()
        };
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(
            CertificateDer::pem_slice_iter(&text("ca.crt")?).filter_map(Result::ok),
        );
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let chain = CertificateDer::pem_slice_iter(&text("tls.crt")?).filter_map(Result::ok).collect();
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().ok()?;
        let builder = builder.with_client_cert_verifier(clients.build().ok()?);
        builder.with_single_cert(chain, PrivateKeyDer::from_pem_slice(&text("tls.key")?).ok()?).ok()
    }

    fn objects(&self, route: &Value) -> Option<String> {
        takes(&self.flavor, self.version, route)
    }
}

fn secret(pod: &Value) -> Option<String> {
    let mut volumes = pod["spec"]["volumes"].as_array()?.iter();
    let volume = volumes.find(|volume| volume["name"] == "cluster-certificate")?;
    volume["secret"]["secretName"].as_str().map(str::to_owned)
}

/// Why a version of Kong does not take a route under a flavor; `None` where it does.
pub fn takes(flavor: &str, version: (u32, u32), route: &Value) -> Option<String> {
    const FIELDS: [&str; 7] = ["methods", "hosts", "paths", "headers", "snis", "sources", "destinations"];
    let field = FIELDS.into_iter().find(|field| !route[*field].is_null());
    let expression = ["expression", "priority"].into_iter().find(|field| !route[*field].is_null());
    let wildcard = route["snis"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|sni| sni.as_str().is_some_and(|s| s.contains('*')));
    match (flavor, field, expression) {
        ("expressions", Some(field), None) if version < (3, 7) => Some(format!("{field}: unknown field")),
        ("expressions", Some(_), Some(_)) => Some(
            "cannot set 'expression' with 'methods', 'hosts', 'paths', 'headers', 'snis', 'sources' or \
                 'destinations' simultaneously"
                .to_owned(),
        ),
        ("traditional" | "traditional_compatible", _, Some(field)) => Some(format!("{field}: unknown field")),
        ("traditional", ..) if wildcard => Some("snis: wildcards are not supported".to_owned()),
        _ => None,
    }
}

/// Sends one request and reads until the connection ends; `None` where nobody answers.
pub fn exchange(address: &str, port: u16, request: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect((address, port)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let code = text.split(' ').nth(1)?.parse().ok()?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Some((code, serde_json::from_str(body).unwrap_or_default()))
}

/// Defines DataPlanes, unless Interlock's own definition is there.
pub fn define_data_planes(admin: &Client) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let name = "dataplanes.gateway-operator.konghq.com";
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {
            "group": "gateway-operator.konghq.com", "scope": "Namespaced",
            "names": {"plural": "dataplanes", "singular": "dataplane", "kind": "DataPlane", "listKind": "DataPlaneList"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}},
            }],
        },
    });
    let answer = admin.post(path, &definition);
    assert!([201, 409].contains(&answer.code), "{answer}");
    super::wait_until("DataPlanes are served", Duration::from_secs(60), || {
        let answer = admin.read("/apis/gateway-operator.konghq.com/v1beta1/dataplanes");
        if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
    });
}
