//! What the proxies of Gateways have of what is written for them, read from their administration port with the caller's
//! rights.

use std::time::Duration;

use gateway_policies::{NodeKey, ObjectKind};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use interlock_core::kinds::story::Told;
use interlock_gateway::policies::proxied::{ProxyConfig, Taken, is_for};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::source::Source;
use super::story;
use crate::cli::common::error::reason;

/// The administration port of Envoy Gateway's proxies, which listens on loopback.
const PORT: u16 = 19000;
/// Bytes of a configuration that are read: some 20,000 routes.
const BYTES: usize = 256 << 20;
/// How long a proxy may take to print it.
const TIME: Duration = Duration::from_secs(60);
/// Proxies of a Gateway that are asked.
const PROXIES: usize = 8;
/// What is said of one that lacks more.
const LACKS: usize = 6;

/// What the proxies have of an object; none where it is no policy, route or Gateway that Interlock carries out.
pub(in crate::cli) async fn told(client: &Client, source: &Source, object: &Value) -> Option<Told> {
    let mut told = Told::default();
    let mut proxies = Vec::new();
    let asked = story::proxied(source, object)?;
    if asked.is_empty() {
        told.is.push("no proxy has anything of it: it acts below no Gateway".to_owned());
    }
    for (target, of) in asked {
        let pods = match pods(client, &target).await {
            Ok(pods) => pods,
            Err(why) => {
                told.unknown.push(format!("the proxies of {target}: {why}"));
                continue;
            }
        };
        if pods.is_empty() {
            let or = match target.kind {
                ObjectKind::Gateway => ", or nothing is written yet for the class that it is merged in",
                _ => "",
            };
            told.unknown.push(format!("the proxies of {target}: no pod of one runs{or}"));
        }
        if let Some(more) = pods.len().checked_sub(PROXIES).filter(|more| *more > 0) {
            told.unknown.push(format!("{more} more proxies of {target}, which are not asked"));
        }
        for pod in pods.iter().take(PROXIES) {
            let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
            match tokio::time::timeout(TIME, config(client, pod)).await {
                Ok(Ok(config)) => {
                    let patches = source.objects().iter().filter(|own| is_for(own, &target));
                    let taken = config.taken(patches, &of);
                    told.is.extend(lines(&name, &taken));
                    let (rules, lacks) = (taken.rules, taken.lacks);
                    proxies.push(json!({"proxy": name, "rules": rules, "lacks": lacks}));
                }
                Ok(Err(why)) => told.unknown.push(format!("the proxy {name}: {why}")),
                Err(_) => told.unknown.push(format!("the proxy {name}: it did not answer in {TIME:?}")),
            }
        }
    }
    told.member = Some(("proxies", json!(proxies)));
    Some(told)
}

fn lines(name: &str, taken: &Taken) -> Vec<String> {
    if taken.lacks.is_empty() {
        let rules: Vec<&str> = taken.rules.iter().take(LACKS).map(String::as_str).collect();
        return vec![match (rules.len(), taken.rules.len()) {
            (0, _) => format!("the proxy {name}: nothing is written for it"),
            (shown, all) if shown < all => {
                format!(
                    "the proxy {name} has what is written for {} and {} more",
                    rules.join(", "),
                    all - shown
                )
            }
            _ => format!("the proxy {name} has what is written for {}", rules.join(", ")),
        }];
    }
    let mut lines: Vec<String> =
        taken.lacks.iter().take(LACKS).map(|own| format!("the proxy {name}: {own}")).collect();
    if let Some(more) = taken.lacks.len().checked_sub(LACKS).filter(|more| *more > 0) {
        lines.push(format!("the proxy {name}: {more} more"));
    }
    lines
}

/// The running pods of the proxies of a Gateway, or of those that are merged in a GatewayClass.
async fn pods(client: &Client, target: &NodeKey) -> Result<Vec<Pod>, String> {
    const OWNER: &str = "gateway.envoyproxy.io/owning-gateway";
    let labels = match target.kind {
        ObjectKind::GatewayClass => format!("{OWNER}class={}", target.name),
        _ => format!("{OWNER}-name={},{OWNER}-namespace={}", target.name, target.namespace),
    };
    let api: Api<Pod> = Api::all(client.clone());
    let list = api.list(&ListParams::default().labels(&labels)).await.map_err(|error| reason(&error))?;
    let runs = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
    };
    Ok(list.items.into_iter().filter(runs).collect())
}

async fn config(client: &Client, pod: &Pod) -> Result<ProxyConfig, String> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let forwarded = api.portforward(&pod.name_any(), &[PORT]).await;
    let mut forwarded = forwarded.map_err(|error| format!("port-forward: {}", reason(&error)))?;
    let stream = forwarded.take_stream(PORT).ok_or("port-forward: it has no stream")?;
    let failed = |error: hyper::Error| format!("its port {PORT} does not answer: {error}");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    // It ends with the sender.
    tokio::spawn(connection);
    let request = Request::get("/config_dump")
        .header("host", "localhost")
        .header("connection", "close")
        .body(Empty::<Bytes>::new());
    let request = request.map_err(|error| error.to_string())?;
    let answer = sender.send_request(request).await.map_err(failed)?;
    if !answer.status().is_success() {
        return Err(format!("its port {PORT} answers {}", answer.status()));
    }
    let body = Limited::new(answer.into_body(), BYTES).collect().await.map_err(|error| error.to_string())?;
    let dump = serde_json::from_slice(&body.to_bytes()).map_err(|error| error.to_string())?;
    Ok(ProxyConfig::read(&dump))
}
