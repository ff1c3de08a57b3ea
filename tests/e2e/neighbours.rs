//! Instances that fail for ever, or hang, beside others.

use std::time::Duration;

use interlock::controllers::instance::WORKERS;
use serde_json::json;

use crate::support::gate::Gate;
use crate::support::ground::Ground;
use crate::support::instances::{await_run, condition, run_of};
use crate::support::{Cluster, Interlock, wait_until};

/// Its plan makes a ConfigMap, and a Secret where that is asked for.
const PACKAGE: &str = r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: refused-0.1.0}
spec:
  operator: {kind: Operator, name: refused}
  version: 0.1.0
  parameters:
  - {name: SECRET, default: "false"}
  - {name: SIZE, default: small}
  tasks:
  - {name: secret, kind: Toggle, spec: {parameter: SECRET, resources: [secret.yaml]}}
  - {name: config, kind: Apply, spec: {resources: [config.yaml]}}
  plans:
    deploy:
      strategy: serial
      phases:
      - {name: all, strategy: serial, steps: [{name: secret, tasks: [secret]}, {name: config, tasks: [config]}]}
  templates:
    secret.yaml: |
      apiVersion: v1
      kind: Secret
      metadata: {name: "{{ .Name }}-secret"}
    config.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ .Name }}-config"}
      data: {size: "{{ .Params.SIZE }}"}
"#;

/// More Instances than there are workers are refused with 403 whenever they are tried: others of the
/// same package and namespace are deployed, updated and deleted beside them.
#[test]
fn instances_that_are_refused_for_ever_hold_up_no_other() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "refused", PACKAGE);
    // A quota that is used up is answered 403.
    ground.ns.forbid("secrets");
    let refused: Vec<String> = (0..WORKERS + 2).map(|i| format!("refused-{i}")).collect();
    for name in &refused {
        ground.create(name, "refused-0.1.0", &json!({"SECRET": "true"}));
    }
    let stalled = |name: &str| {
        ground.await_that(name, "it is refused, and says so", |found| {
            let stalled = condition(found, "Stalled");
            let says = stalled["message"].as_str().is_some_and(|text| text.contains("exceeded quota"));
            stalled["status"] == "True" && says
        })
    };
    refused.iter().for_each(|name| drop(stalled(name)));

    ground.create("fine", "refused-0.1.0", &json!({}));
    let run = run_of(&await_run(&ground.user, "fine", "deploy", ""), "deploy");
    ground.edit("fine", &json!({"SIZE": "large"}));
    await_run(&ground.user, "fine", "deploy", &run);
    let config = ground.user.get("configmap", "fine-config").expect("it was made");
    assert_eq!(config["data"]["size"], "large");
    ground.user.kubectl(&["delete", "instance", "fine", "--timeout=90s"]).ok();

    // They are still at it: refused is not failed for good.
    for name in &refused {
        let found = stalled(name);
        assert_ne!(found["status"]["planStatus"]["deploy"]["status"], "FATAL_ERROR", "{found:#}");
    }
}

/// Requests for Secrets do not come back: more Instances than there are workers wait for theirs, and
/// one of another package is deployed, updated and deleted meanwhile.
#[test]
fn a_package_whose_requests_hang_holds_up_no_other() {
    let cluster = Cluster::own(&["--audit"]);
    let gate = Gate::start(&cluster, &cluster.user("interlock", &[]));
    let _interlock = Interlock::install(&cluster, &[&gate.flag()]);
    let ground = Ground::new(&cluster, "hanging", PACKAGE);
    let other = PACKAGE.replace("refused", "other").replace("{name: secret, tasks: [secret]}, ", "");
    ground.user.create_package(ground.ns.name(), &other);
    gate.close("/secrets");
    for i in 0..3 * WORKERS {
        ground.create(&format!("hanging-{i}"), "refused-0.1.0", &json!({"SECRET": "true"}));
    }
    // None of them holds up its neighbours, or each would wait for the end of another's request.
    wait_until("all of them wait", Duration::from_secs(60), || match gate.waiting() {
        waiting if waiting >= 3 * WORKERS => Ok(()),
        waiting => Err(format!("{waiting} wait")),
    });

    ground.create("fine", "other-0.1.0", &json!({}));
    let run = run_of(&await_run(&ground.user, "fine", "deploy", ""), "deploy");
    ground.edit("fine", &json!({"SIZE": "large"}));
    await_run(&ground.user, "fine", "deploy", &run);
    ground.user.kubectl(&["delete", "instance", "fine", "--timeout=90s"]).ok();

    gate.open();
    for i in 0..3 * WORKERS {
        await_run(&ground.user, &format!("hanging-{i}"), "deploy", "");
    }
}
