//! As many writes as a plan of the neighbour takes, by clients that work nothing out: what the API server
//! alone makes the neighbour wait.

use std::time::{Duration, Instant};

use kube::api::Api;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::neighbour::CAP;
use crate::support::{Client, Cluster, Namespace, block_on};

/// A user who makes an object and watches it, and a service account that carries it out: the API server
/// queues the two apart, as it does a neighbour's requests and Interlock's.
pub struct Bare<'a> {
    ns: Namespace<'a>,
    user: Client,
    account: Client,
    made: usize,
}

impl<'a> Bare<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        let ns = cluster.namespace("bare");
        let user = ns.user("bob");
        let account = format!("system:serviceaccount:{}:bare", ns.name());
        ns.bind(&account, "ClusterRole", "cluster-admin");
        let account = cluster.user(&account, &["system:serviceaccounts"]);
        Self { ns, user, account, made: 0 }
    }

    /// How long it takes from the request that creates an object until its status is seen to be complete:
    /// the object, its status, what it makes, its status. ConfigMaps, so that no webhook and no policy of
    /// ours is asked.
    pub fn plan(&mut self) -> Duration {
        self.made += 1;
        let name = format!("bare-{}", self.made);
        let all = self.ns.path("v1", "configmaps", "");
        let one = format!("{all}/{name}");
        let complete = |found: Option<&k8s_openapi::api::core::v1::ConfigMap>| {
            found.and_then(|found| found.data.as_ref()?.get("status")).is_some_and(|is| is == "COMPLETE")
        };
        let api = Api::namespaced(self.user.kube(), self.ns.name());
        let begun = Instant::now();
        written(|| self.user.post(&all, &object(&name, "")));
        let seen = async { tokio::time::timeout(CAP, await_condition(api, &name, complete)).await };
        let writes = || {
            written(|| self.account.put(&one, &object(&name, "IN_PROGRESS")));
            written(|| self.account.post(&all, &object(&format!("{name}-config"), "")));
            written(|| self.account.put(&one, &object(&name, "COMPLETE")));
        };
        std::thread::scope(|scope| {
            scope.spawn(writes);
            if let Ok(seen) = block_on(seen) {
                seen.expect("a watch");
            }
        });
        begun.elapsed()
    }
}

/// Sends until it is taken: an API server that is busy refuses.
fn written(send: impl Fn() -> Answer) {
    let begun = Instant::now();
    while begun.elapsed() < CAP && !matches!(send().code, 200..=299 | 409) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn object(name: &str, status: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"status": status}})
}
