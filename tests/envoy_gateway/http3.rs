//! Limits beside what else a proxy does: HTTP/3, and limits of Envoy Gateway's own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::ground::{Ground, await_answer, limit, policy};
use crate::site::{self, HOST, PORT};
use crate::support::envoy_gateway::{EnvoyGateway, HTTP3_CLIENT_PORT, condition as condition_of};
use crate::support::service_path;

/// Port of the listener with TLS, by TCP and by UDP.
const TLS_PORT: u16 = 10443;

/// A limit holds for requests over HTTP/3 too, whose listener in Envoy is another one. Limits of a BackendTrafficPolicy on
/// the same route go on beside it, and after it.
#[test]
fn limits_hold_over_http3_and_beside_those_of_envoy_gateway() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let gateway = EnvoyGateway::start(&cluster);
    let ground = Ground::with_own_definition(&cluster);
    site::create(&cluster.admin());
    let pair = rcgen::generate_simple_self_signed([HOST.to_owned()]).expect("a certificate");
    let encoded = |text: String| STANDARD.encode(text);
    ground.put(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "type": "kubernetes.io/tls",
        "data": {"tls.crt": encoded(pair.cert.pem()), "tls.key": encoded(pair.signing_key.serialize_pem())},
    }));
    let listeners = json!({"spec": {"listeners": [
        {"name": "http", "port": PORT, "protocol": "HTTP"},
        {"name": "https", "port": TLS_PORT, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "tls"}]}},
    ]}});
    ground.admin.kubectl(&["patch", "gateway", "gw", "--type=merge", "-p", &listeners.to_string()]).ok();
    ground.put(&json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "ClientTrafficPolicy", "metadata": {"name": "http3"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}],
            "http3": {},
        },
    }));
    ground.put(&json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "BackendTrafficPolicy", "metadata": {"name": "theirs"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"}],
            "rateLimit": {"type": "Local", "local": {"rules": [{
                "clientSelectors": [{"headers": [{"name": "x-theirs", "value": "1"}]}],
                "limit": {"requests": 2, "unit": "Hour"},
            }]}},
        },
    }));
    let envoy = gateway.proxy("app", "gw");
    envoy.await_status(PORT, HOST, "/limited", 200);
    // Another Envoy speaks HTTP/3 to it.
    let client = envoy.client_of_http3(&cluster, TLS_PORT, HOST);
    client.await_status(HTTP3_CLIENT_PORT, HOST, "/limited", 200);

    ground.put(&policy("closed", "HTTPRoute/api#rule-1", json!({"limits": {"none": limit(0, &[], &[])}})));
    ground.await_enforced("closed");
    // Interlock's definition has the conditions by Gateway, too.
    let closed = ground.admin.get("ratelimitpolicy", "closed").expect("it is there");
    let of_gateway = &closed["status"]["ancestors"][0];
    assert_eq!(of_gateway["ancestorRef"]["name"], "gw", "{closed:#}");
    assert_eq!(condition_of(&of_gateway["conditions"], "Programmed"), Some("True"), "{closed:#}");
    client.await_status(HTTP3_CLIENT_PORT, HOST, "/limited", 429);
    envoy.await_status(PORT, HOST, "/limited", 429);
    assert_eq!(client.get(HTTP3_CLIENT_PORT, HOST, "/other", ""), Some(200));

    ground.put(&policy(
        "ours",
        "HTTPRoute/api#rule-2",
        json!({"limits": {"own": limit(1, &["'x-ours' in request.headers"], &[])}}),
    ));
    ground.await_enforced("ours");
    await_answer(&envoy, "/other", "x-ours: 1\r\n", 429);
    await_answer(&envoy, "/other", "x-theirs: 1\r\n", 429);
    assert_eq!(envoy.get(PORT, HOST, "/other", ""), Some(200));
    let refused = envoy.answer(PORT, HOST, "/other", "x-ours: 1\r\n").unwrap_or_default();
    assert!(refused.contains("x-envoy-ratelimited: true"), "{refused}");
    assert!(!refused.to_lowercase().contains("retry-after"), "{refused}");
    ground.admin.kubectl(&["delete", "ratelimitpolicy", "ours"]).ok();
    await_answer(&envoy, "/other", "x-ours: 1\r\n", 200);
    // Their count begins anew with each configuration that Envoy takes.
    await_answer(&envoy, "/other", "x-theirs: 1\r\n", 429);
}
