//! The alert rules, as Prometheus reads them, and the metrics that they are made of.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::support::ground::Ground;
use crate::support::{Interlock, peers, wait_until};

const CAP: Duration = Duration::from_secs(60);
/// `gated-0.1.0`, whose plan deploy waits at a Service without an address where GATED is true.
const PACKAGE: &str = include_str!("bypass/operatorversion.yaml");

fn promtool(arguments: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/monitoring");
    let out = Command::new(peers::promtool()).args(arguments).current_dir(folder).output().unwrap();
    let text = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(out.status.success(), "promtool {arguments:?}:\n{text}");
    text
}

/// Prometheus accepts the rules, and they fire for what they are about, and for nothing else.
#[test]
fn alerts_fire_for_what_they_are_about() {
    let text = promtool(&["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"]);
    assert!(text.contains("13 rules found"), "{text}");
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/monitoring/rules.yaml");
    promtool(&["test", "rules", &cases.display().to_string()]);
}

/// A plan that waits at its gate is seen as it is, then one that is done.
#[test]
fn instances_are_counted_by_what_they_do() {
    let cluster = crate::support::Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster, "counted", PACKAGE);
    let shown = |line: &str| {
        wait_until(&format!("the metrics have {line}"), CAP, || {
            let text = process.ops("/metrics").map(|(_, text)| text).unwrap_or_default();
            if text.lines().any(|found| found == line) {
                return Ok(());
            }
            let about = text
                .lines()
                .filter(|found| found.contains("interlock_instances") || found.contains("oldest"));
            Err(about.collect::<Vec<_>>().join("\n"))
        });
    };
    shown("interlock_instances{state=\"running\"} 0");
    ground.create("demo", "gated-0.1.0", &json!({"GATED": "true"}));
    shown("interlock_instances{state=\"running\"} 1");
    shown("interlock_instances_waiting{reason=\"Waiting\"} 1");
    wait_until("its age grows", CAP, || {
        let text = process.ops("/metrics").map(|(_, text)| text).unwrap_or_default();
        let age =
            text.lines().find_map(|line| line.strip_prefix("interlock_oldest_running_plan_age_seconds "));
        age.and_then(|age| age.parse::<u64>().ok()).filter(|age| *age > 0).ok_or_else(|| format!("{age:?}"))
    });
    ground.open("demo");
    ground.await_plan("demo", "deploy", "COMPLETE");
    shown("interlock_instances{state=\"running\"} 0");
    shown("interlock_instances{state=\"ready\"} 1");
    shown("interlock_instances_waiting{reason=\"Waiting\"} 0");
    shown("interlock_oldest_running_plan_age_seconds 0");
}
