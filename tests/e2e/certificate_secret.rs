//! What may happen to the Secret of the certificates from outside, and costs no call.

use interlock::cluster::certificates::stored::Stored;
use serde_json::{Map, Value, json};

use crate::process::{CAP, SECRET, bundle, call, calls_while, cluster, secret};
use crate::support::{Interlock, backup, wait_for, wait_until};

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

/// Each way in which parts of the Secret do not belong together: a name, and what is written.
fn spoiled(other: &Stored) -> Vec<(&'static str, Value)> {
    let other = json!(other.write());
    // "spoiled"
    let nonsense = json!("c3BvaWxlZA==");
    let of_another = |keys: &[&str]| -> Value {
        keys.iter().map(|key| ((*key).to_owned(), other[*key].clone())).collect::<Map<_, _>>().into()
    };
    vec![
        ("tls.key is none", json!({"tls.key": nonsense})),
        ("tls.key is of another", of_another(&["tls.key"])),
        ("the leaf is of another CA", of_another(&["tls.crt", "tls.key"])),
        ("ca.key is none", json!({"ca.key": nonsense})),
        ("ca.key is of another", of_another(&["ca.key"])),
        ("the CA is another", of_another(&["ca.crt", "ca.key"])),
        ("the next CA has no key", json!({"next-ca.crt": other["ca.crt"], "next-ca.key": nonsense})),
    ]
}

#[test]
fn a_secret_whose_parts_do_not_belong_together_is_mended_and_costs_no_call() {
    let cluster = cluster();
    let _ = cluster.admin().delete(SECRET);
    let process = Interlock::install(&cluster, &[]);
    let good = secret(&cluster)["data"].clone();
    let (failures, calls) = calls_while(&cluster, || {
        for (what, data) in spoiled(&backup::another(&good)) {
            cluster.admin().merge_patch(SECRET, &json!({"data": data})).ok();
            wait_for(what, CAP, || secret(&cluster)["data"] == good);
        }
    });
    assert!(failures.is_empty(), "{failures:?}");
    eprintln!("{calls} calls");
    assert_eq!(process.ops("/readyz").map(|(code, _)| code), Some(200));
}

#[test]
fn a_start_with_a_secret_whose_parts_do_not_belong_together_heals_by_itself() {
    let cluster = cluster();
    let _ = cluster.admin().delete(SECRET);
    let process = Interlock::install(&cluster, &[]);
    for (what, data) in spoiled(&backup::another(&secret(&cluster)["data"])) {
        process.kill();
        cluster.admin().merge_patch(SECRET, &json!({"data": data})).ok();
        process.start();
        process.await_ready();
        wait_until(what, CAP, || call(&cluster));
        let _ = backup::stored(&secret(&cluster)["data"]);
    }
}
