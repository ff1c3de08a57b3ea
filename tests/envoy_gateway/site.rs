//! A Gateway, a route, and a backend behind them.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::support::{Client, block_on, service_path, spawn};

/// Port of the Gateway.
pub const PORT: u16 = 10080;
/// Hostname of the route.
pub const HOST: &str = "www.example.org";

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: app}
---
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: app}
spec: {ports: [{name: http, port: 80, targetPort: 8000}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: app}
spec: {gatewayClassName: eg, listeners: [{name: http, port: 10080, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: api, namespace: app}
spec:
  parentRefs: [{name: gw}]
  hostnames: [www.example.org]
  rules:
  - {matches: [{path: {value: /limited}}], backendRefs: [{name: backend, port: 80}]}
  - {matches: [{path: {value: /}}], backendRefs: [{name: backend, port: 80}]}
";

/// Hostname of the route of [`create_second`].
pub const SECOND_HOST: &str = "team.example.net";

const SECOND: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: team}
spec: {ports: [{name: http, port: 80, targetPort: 8000}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: second, namespace: team}
spec:
  gatewayClassName: eg
  listeners: [{name: http, port: 10080, protocol: HTTP, hostname: '*.example.net'}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: api, namespace: team}
spec: {parentRefs: [{name: second}], hostnames: [team.example.net], rules: [{backendRefs: [{name: backend, port: 80}]}]}
";

/// Creates a Gateway of another namespace on the same port, and a route to the backend of [`create`].
pub fn create_second(admin: &Client) {
    admin.apply(SECOND);
    let address = service_path::REPLICAS[0];
    service_path::write_endpoints(admin, "team", "backend", "http", &[(address, 8000, true)]);
}

/// Creates all of it; the backend answers 200.
pub fn create(admin: &Client) {
    admin.apply(OBJECTS);
    // Envoy Gateway takes no endpoint on loopback.
    let address = service_path::REPLICAS[0];
    let listener = block_on(TcpListener::bind((address, 8000))).expect("a port");
    spawn(async move {
        let answer = hyper::service::service_fn(|_| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"backend"))))
        });
        while let Ok((socket, _)) = listener.accept().await {
            spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), answer));
        }
    });
    service_path::write_endpoints(admin, "app", "backend", "http", &[(address, 8000, true)]);
}
