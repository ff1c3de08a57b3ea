//! `--watch-namespaces`: what lies outside is neither refused nor carried out. The flag is of a
//! process, and of what is installed with it: a control plane of its own.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::{Cluster, Interlock, Namespace, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// `gated-0.1.0`, whose plan deploy waits where GATED is true.
const PACKAGE: &str = include_str!("bypass/operatorversion.yaml");

fn instance(name: &str, parameters: &Value) -> Value {
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance", "metadata": {"name": name},
        "spec": {"operatorVersion": {"name": "gated-0.1.0"}, "parameters": parameters},
    })
}

fn path(ns: &Namespace<'_>, name: &str) -> String {
    ns.path(meta::KUDO_API_VERSION, "instances", name)
}

#[test]
fn what_lies_outside_is_neither_refused_nor_carried_out() {
    let cluster = Cluster::own(&[]);
    let (inside, outside) = (cluster.namespace("inside"), cluster.namespace("outside"));
    let flag = format!("--watch-namespaces={}", inside.name());
    let _process = Interlock::install(&cluster, &[&flag]);
    let admin = cluster.admin();

    let refused = instance("refused", &json!({"NO-SUCH": "parameter"}));
    let dry = |ns: &Namespace<'_>| admin.post(&format!("{}?dryRun=All", path(ns, "")), &refused);
    for ns in [&outside, &inside] {
        admin.create_package(ns.name(), PACKAGE);
    }
    let text = wait_until("what is wrong inside is refused", CAP, || match dry(&inside) {
        answer if answer.code == 422 => Ok(answer.message().to_owned()),
        answer => Err(answer.to_string()),
    });
    assert!(text.contains("NO-SUCH"), "{text}");
    dry(&outside).ok();

    // The one outside comes first: whoever looked at both would have seen it by the time that the
    // other is done.
    let before = admin.post(&path(&outside, ""), &instance("demo", &json!({"GATED": "true"}))).ok();
    admin.post(&path(&inside, ""), &instance("demo", &json!({"GATED": "true"}))).ok();
    wait_until("the plan inside waits at its gate", CAP, || {
        let found = admin.read(&path(&inside, "demo")).ok();
        let step = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][1]["status"];
        if step == "IN_PROGRESS" { Ok(()) } else { Err(found.to_string()) }
    });
    let frozen = json!({"spec": {"parameters": {"SIZE": "large"}}});
    admin.merge_patch(&path(&inside, "demo"), &frozen).refused(422);
    let after = admin.read(&path(&outside, "demo")).ok();
    assert_eq!(after, before, "nobody has touched it");
    admin.merge_patch(&path(&outside, "demo"), &frozen).ok();
    admin.delete(&path(&outside, "demo")).ok();
}
