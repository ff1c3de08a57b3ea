//! Connections of a tenant to the webhook port, and the API server's beside them.

use std::net::SocketAddr;

use http::Request;
use serde_json::{Value, json};

use super::rotation;
use crate::support::hostile_caller::HostileCaller;
use crate::support::{Namespace, announce, block_on, service_path};

/// The row of the issue: with one of the API server's these are all that may be open.
const IDLE: usize = 1_023;
/// Reviews at the same time.
const BURST: usize = 200;

fn port() -> SocketAddr {
    format!("{}:9443", service_path::REPLICAS[0]).parse().unwrap()
}

/// Connections that have asked for /livez once, and are idle. Those that were closed for others are
/// kept here as well.
async fn idle(from: &str, count: usize) -> Vec<HostileCaller> {
    let mut idle = Vec::new();
    for _ in 0..count {
        let mut caller = HostileCaller::connect(from, port()).await.expect("it is accepted");
        assert_eq!(caller.ask("/livez", None).await.expect("an answer").0, 200);
        idle.push(caller);
    }
    idle
}

/// So many dry-run updates at once, each a review on a connection of its own; what failed.
fn burst(ns: &Namespace<'_>, round: usize) -> Vec<String> {
    let client = ns.admin().kube();
    let path = format!("{}?dryRun=All", ns.path("kudo.dev/v1beta1", "instances", "quiet"));
    let update = |n: usize| {
        let (client, path) = (client.clone(), path.clone());
        async move {
            let patch = json!({"metadata": {"annotations": {"burst": format!("{round}-{n}")}}});
            let request = Request::patch(&path)
                .header("Content-Type", "application/merge-patch+json")
                .body(patch.to_string().into_bytes())
                .unwrap();
            client.request::<Value>(request).await.err().map(|error| error.to_string())
        }
    };
    let all = async { futures::future::join_all((0..BURST).map(update)).await };
    block_on(all).into_iter().flatten().collect()
}

#[test]
fn idle_connections_of_a_tenant_keep_no_review_out() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let _installed = service_path::install(&cluster, 1, &[]);
    let ns = rotation::ready(&cluster);
    let tenant = service_path::REPLICAS[2];
    let held = block_on(idle(tenant, IDLE));
    let mut failed = Vec::new();
    for round in 0..3 {
        failed.extend(burst(&ns, round));
    }
    let mut kubelet = block_on(HostileCaller::connect(service_path::API_SERVER, port())).expect("accepted");
    assert_eq!(block_on(kubelet.ask("/livez", None)).expect("an answer").0, 200);
    announce(&format!(
        "counted: {} idle connections of a tenant, {} dry-run updates, {BURST} at a time, {} failed",
        held.len(),
        3 * BURST,
        failed.len()
    ));
    assert!(failed.is_empty(), "{:#?}", &failed[..failed.len().min(5)]);
    let closed = held.into_iter().filter_map(|mut caller| block_on(caller.ask("/livez", None)).err()).count();
    assert_eq!(closed, IDLE - 64, "of the tenant's");
}
