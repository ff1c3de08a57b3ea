//! What one tenant's packages cost is not felt by answers, nor by another tenant's plans.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::ground::Ground;
use crate::support::instances::await_run;
use crate::support::process::peak;
use crate::support::{Cluster, Interlock, wait_until};

const CAP: Duration = Duration::from_secs(90);

/// A package whose only task renders for longer than `--render-limit`, within every other budget of a
/// template: the files have theirs each.
fn endless() -> String {
    let files: Vec<String> = (0..1_500).map(|i| format!("f{i}.yaml")).collect();
    let template = "{{ range until 1000 }}{{ range until 50 }}{{ $x := add 1 2 }}{{ end }}{{ end }}";
    let templates: serde_json::Map<_, _> = files.iter().map(|file| (file.clone(), json!(template))).collect();
    let package = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": "endless-0.1.0"},
        "spec": {
            "operator": {"kind": "Operator", "name": "endless"}, "version": "0.1.0",
            "tasks": [{"name": "all", "kind": "Apply", "spec": {"resources": files}}],
            "plans": {"deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["all"]}]}]}},
            "templates": templates,
        },
    });
    package.to_string()
}

/// Four tasks at the same time, each of 6 MB, of which the API server takes nothing.
fn large() -> String {
    let tasks = ["one", "two", "three", "four"];
    let resources =
        |task| json!({"name": task, "kind": "Apply", "spec": {"resources": [format!("{task}.yaml")]}});
    let template = |task| {
        let text = "{{ range $i := until 30 }}\n---\napiVersion: v1\nkind: ConfigMap\n\
                    metadata: {name: \"{{ $.Name }}-NAME-{{ $i }}\"}\n\
                    data: {\"no key\": {{ repeat 200000 \"x\" }}}\n{{ end }}";
        (format!("{task}.yaml"), json!(text.replace("NAME", task)))
    };
    let templates: serde_json::Map<_, _> = tasks.into_iter().map(template).collect();
    let steps = json!([{"name": "s", "tasks": tasks}]);
    let package = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": "large-0.1.0"},
        "spec": {
            "operator": {"kind": "Operator", "name": "large"}, "version": "0.1.0",
            "tasks": tasks.map(resources), "templates": templates,
            "plans": {"deploy": {"phases": [{"name": "p", "steps": steps}]}},
        },
    });
    package.to_string()
}

const FINE: &str = r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: fine-0.1.0}
spec:
  operator: {kind: Operator, name: fine}
  version: 0.1.0
  tasks:
  - {name: config, kind: Apply, spec: {resources: [config.yaml]}}
  plans: {deploy: {phases: [{name: all, steps: [{name: config, tasks: [config]}]}]}}
  templates:
    config.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ .Name }}-config"}
"#;

/// While a namespace renders on all that it may use: health and reviews are answered, its
/// neighbour's plan runs, the lease is kept, and SIGTERM ends the process.
#[test]
fn a_package_that_never_stops_rendering_is_felt_by_its_namespace_alone() {
    let cluster = Cluster::own(&[]);
    let interlock = Interlock::install(&cluster, &[]);
    let worst = Ground::new(&cluster, "worst", &endless());
    worst.user.create_package(worst.ns.name(), &large());
    let neighbour = Ground::new(&cluster, "neighbour", FINE);
    for i in 0..6 {
        worst.create(&format!("endless-{i}"), "endless-0.1.0", &json!({}));
    }
    for i in 0..12 {
        worst.create(&format!("large-{i}"), "large-0.1.0", &json!({}));
    }
    let says = |name: &str| {
        worst.await_that(name, "its rendering was interrupted, and is tried again", |found| {
            let steps = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"];
            let message = steps[0]["message"].as_str().unwrap_or_default();
            steps[0]["status"] != "FATAL_ERROR" && message.contains("--render-limit")
        })
    };
    says("endless-0");

    // Instances of six are tried all the time now, each for two seconds of a processor.
    let (mut live, mut reviewed) = (Duration::ZERO, Duration::ZERO);
    for i in 0..20 {
        let began = Instant::now();
        assert_eq!(interlock.ops("/livez").map(|(code, _)| code), Some(200));
        live = live.max(began.elapsed());
        let began = Instant::now();
        let path = format!("{}?dryRun=All", neighbour.path(""));
        let unknown =
            crate::support::ground::instance(&format!("dry-{i}"), "fine-0.1.0", &json!({"NO": "1"}));
        neighbour.user.post(&path, &unknown).refused(422);
        reviewed = reviewed.max(began.elapsed());
    }
    neighbour.create("fine", "fine-0.1.0", &json!({}));
    await_run(&neighbour.user, "fine", "deploy", "");
    let peak = peak(interlock.pid().unwrap());
    eprintln!("beside it /livez took at most {live:?}, a refused create {reviewed:?}; {peak:.0} MiB at most");
    // What the manifests grant.
    assert!(peak < 512.0, "{peak} MiB");
    assert!(live < Duration::from_secs(1), "{live:?}");
    assert!(reviewed < Duration::from_secs(3), "{reviewed:?}");
    let metrics = interlock.ops("/metrics").map(|(_, text)| text).unwrap_or_default();
    assert!(metrics.contains("leader_election_master_status{name=\"interlock\"} 1"), "{metrics}");
    assert!(metrics.contains("interlock_reconciler_stuck 0"), "{metrics}");

    let began = Instant::now();
    assert_eq!(interlock.terminate(), Some(0));
    let ended = began.elapsed();
    eprintln!("ended {ended:?} after SIGTERM");
    assert!(ended < Duration::from_secs(10), "{ended:?}");
}

/// What a namespace's OperatorVersions may take of the memory is bounded: one more waits, with a
/// reason, until there is room.
#[test]
fn operator_versions_over_the_share_of_their_namespace_wait_with_a_reason() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "large", FINE);
    let large = |name: &str| {
        let package = FINE.replace("fine-0.1.0", name);
        let padding = format!("    padding.txt: {}\n", "x".repeat(1 << 20));
        ground.user.create_package(ground.ns.name(), &format!("{}\n{padding}", package.trim_end()));
    };
    ["large-1", "large-2", "large-3", "large-4"].into_iter().for_each(large);
    let path = format!("{}?dryRun=All", ground.path(""));
    let create = |version: &str| {
        ground.user.post(&path, &crate::support::ground::instance("demo", version, &json!({})))
    };
    create("large-3").ok();
    let text = create("large-4").refused(422).to_string();
    assert!(text.contains("take more than 32 MiB") && text.contains(ground.ns.name()), "{text}");
    assert!(text.contains("delete OperatorVersions of that namespace"), "{text}");

    let first = ground.ns.path("kudo.dev/v1beta1", "operatorversions", "large-1");
    ground.user.delete(&first).ok();
    wait_until("there is room for the fourth", CAP, || {
        let answer = create("large-4");
        if answer.code == 201 { Ok(()) } else { Err(answer.to_string()) }
    });
}
