//! Alerts and dashboard.

use std::collections::BTreeSet;

use serde_json::Value;

use super::of;
use crate::install::chart::DASHBOARD;
use crate::install::{InstallOptions, Part};
use crate::telemetry::metrics::{DecisionLabels, Metrics};

/// The names in an expression that are ours, or familiar ones that the process exposes.
fn names(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| {
            ["interlock_", "leader_election_", "controller_runtime_", "rest_client_", "workqueue_"]
                .iter()
                .any(|prefix| word.starts_with(prefix))
        })
        .collect()
}

/// The alert rules.
fn alerts() -> Vec<Value> {
    let all = of(Part::Monitoring, &InstallOptions::default());
    let rules = all.iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
    rules["spec"]["groups"][0]["rules"].as_array().unwrap().clone()
}

/// The exposition of a process that has done something of each kind: what never happened is left out.
fn exposed() -> String {
    let metrics = Metrics::new();
    metrics.guard("kind", "name", true);
    metrics.answered("mutate", 200, std::time::Duration::ZERO);
    metrics.reconciled("instance", "success", std::time::Duration::ZERO);
    metrics.plan_ended("COMPLETE");
    metrics.queue_depth("instance", 0);
    metrics.leads("interlock", true);
    metrics.rest_call("GET", 200);
    let of_none = crate::kinds::all().iter().filter_map(|kind| kind.gauges);
    metrics.kinds(of_none.flat_map(|gauges| gauges(&mut std::iter::empty(), 0)).collect());
    metrics.healed("Deployment", interlock_core::effect::HealCause::Deleted);
    metrics.decided(&DecisionLabels {
        door: "mutate",
        kind: "Instance",
        operation: "CREATE",
        rule: "none",
        verdict: "allowed",
        dry_run: "false",
    });
    metrics.encode(0)
}

/// An alert or a panel about a metric that no process exposes never fires.
#[test]
fn every_metric_in_an_alert_or_a_panel_is_exposed() {
    let exposed = exposed();
    let types: BTreeSet<&str> =
        exposed.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| {
        panel["targets"].as_array().into_iter().flatten().filter_map(|target| target["expr"].as_str())
    });
    let panels: Vec<&str> = panels.collect();
    assert!(panels.len() >= 12, "{panels:?}");
    let examples = include_str!("../../../docs/metrics.md").lines();
    let examples: Vec<&str> = examples.filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(examples.len(), 3, "{examples:?}");
    let alerts = alerts();
    let expressions = alerts.iter().map(|alert| alert["expr"].as_str().unwrap());
    for expression in expressions.chain(panels).chain(examples) {
        for name in names(expression) {
            let base = ["_total", "_bucket", "_info"].iter().find_map(|end| name.strip_suffix(end));
            assert!(types.contains(base.unwrap_or(name)), "{name} in {expression} is not exposed");
        }
    }
}

#[test]
fn every_alert_says_what_to_do_and_is_named_once() {
    let alerts = alerts();
    assert_eq!(alerts.len(), 13);
    let names: BTreeSet<_> = alerts.iter().map(|alert| alert["alert"].as_str().unwrap()).collect();
    assert_eq!(names.len(), alerts.len());
    let page = include_str!("../../../docs/metrics.md");
    for alert in &alerts {
        let name = alert["alert"].as_str().unwrap();
        for text in ["summary", "description"] {
            assert!(alert["annotations"][text].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        }
        assert!(page.contains(&format!("| `{name}` |")), "docs/metrics.md has no {name}");
    }
}

/// Prometheus accepts the certificate by the name that is in it.
#[test]
fn the_server_name_is_that_of_the_certificate() {
    let options = InstallOptions { namespace: "guard".to_owned(), ..InstallOptions::default() };
    let all = of(Part::Monitoring, &options);
    let server = &all[0]["spec"]["endpoints"][0]["tlsConfig"]["serverName"];
    assert_eq!(server, "interlock.guard.svc");
}
