//! What may happen to the Secret of the certificates from outside, and costs no call.

use serde_json::json;

use crate::process::{CAP, SECRET, bundle, calls_while, cluster, secret};
use crate::support::{Interlock, backup, wait_for};

#[test]
fn a_secret_restored_from_a_backup_costs_no_call() {
    let cluster = cluster();
    let _ = cluster.admin().delete(SECRET);
    let process = Interlock::install(&cluster, &["--cert-lifetime=30s"]);
    let restored = backup::another(&secret(&cluster)["data"]);
    let (failures, calls) = calls_while(&cluster, || {
        let mut object = secret(&cluster);
        object["metadata"]["resourceVersion"] = json!(null);
        object["data"] = json!(restored.write());
        cluster.admin().put(SECRET, &object).ok();
        wait_for("only the restored CA is trusted", CAP * 2, || {
            backup::ca_bundle(&restored) == bundle(&cluster)
        });
    });
    assert!(failures.is_empty(), "{failures:?}");
    eprintln!("{calls} calls");
    assert_eq!(process.ops("/readyz").map(|(code, _)| code), Some(200));
}
