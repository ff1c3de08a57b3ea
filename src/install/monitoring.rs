//! What monitors the process: a ServiceMonitor, alert rules and a dashboard, for the Prometheus operator
//! and Grafana. Opt-in, as a cluster without these kinds refuses them.

use interlock_core::api::meta::install;
use serde_json::{Value, json};

use super::metadata::namespaced;
use super::{InstallOptions, dashboard, workload};

/// ServiceMonitor, PrometheusRule and the ConfigMap of the dashboard.
pub fn all(options: &InstallOptions) -> Vec<Value> {
    vec![service_monitor(options), prometheus_rule(options), dashboard_config_map(options)]
}

/// Scrapes every replica. The certificate is that of the webhook, so Prometheus expects the name of its
/// Service.
pub(super) fn service_monitor(options: &InstallOptions) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": namespaced(install::NAME, options),
        "spec": {
            "selector": {"matchLabels": {
                "app.kubernetes.io/name": install::NAME,
                "app.kubernetes.io/component": workload::METRICS,
            }},
            "endpoints": [{
                "port": workload::METRICS,
                "path": "/metrics",
                "scheme": "https",
                "interval": "30s",
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                "tlsConfig": {
                    "serverName": format!("{}.{}.svc", options.service(), options.namespace),
                    "ca": {"secret": {"name": install::CERTIFICATE_SECRET, "key": "ca.crt"}},
                },
            }],
        },
    })
}

/// The alert rules, as the Prometheus operator reads them.
pub(super) fn prometheus_rule(options: &InstallOptions) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": namespaced(install::NAME, options),
        "spec": rules(),
    })
}

/// The dashboard, as Grafana's sidecar finds it.
pub(super) fn dashboard_config_map(options: &InstallOptions) -> Value {
    let mut metadata = json!(namespaced("interlock-dashboard", options));
    metadata["labels"]["grafana_dashboard"] = json!("1");
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"interlock.json": dashboard::json()},
    })
}

/// One alert rule.
struct Alert {
    name: &'static str,
    expression: &'static str,
    /// How long it holds before it fires; empty for at once.
    lasts: &'static str,
    severity: &'static str,
    summary: &'static str,
    description: &'static str,
}

/// Every replica exposes what it knows of the cluster, so values of several are one by `max`.
const ALERTS: [Alert; 13] = [
    Alert {
        name: "InterlockGuardNotIntact",
        expression: "min by (kind, name) (interlock_guard_intact) == 0",
        lasts: "",
        severity: "critical",
        summary: "{{ $labels.kind }} {{ $labels.name }} is gone or was edited: Instances may not be guarded",
        description: "Apply what was installed again, and find out who changed it: the Event GuardNotIntact names \
                      the field.",
    },
    Alert {
        name: "InterlockGuardUnseen",
        expression: "absent(interlock_guard_intact{kind=\"ValidatingWebhookConfiguration\"})",
        lasts: "5m",
        severity: "critical",
        summary: "No replica of Interlock sees its webhook configurations",
        description: "Run `interlock verify`: no replica runs, none is scraped, or none may read them.",
    },
    Alert {
        name: "InterlockDown",
        expression: "absent(interlock_build_info)",
        lasts: "5m",
        severity: "critical",
        summary: "No replica of Interlock is scraped: guarded kinds may be unwritable",
        description: "Run `interlock verify`, and see docs/break-glass.md for how to get unstuck.",
    },
    Alert {
        name: "InterlockNoLeader",
        expression: "max(leader_election_master_status{name=\"interlock\"}) == 0",
        lasts: "2m",
        severity: "critical",
        summary: "No replica of Interlock leads: no plan is carried out",
        description: "Look at the Lease and the logs: `kubectl -n interlock-system describe lease interlock`.",
    },
    Alert {
        name: "InterlockReconcilerStuck",
        expression: "max(interlock_reconciler_stuck) == 1",
        lasts: "1m",
        severity: "warning",
        summary: "The controllers of a replica are stuck; another one leads",
        description: "Keep its log, and restart the pod.",
    },
    Alert {
        name: "InterlockCertificateExpires",
        expression: "min(interlock_certificate_expiry_seconds) < 7 * 86400",
        lasts: "",
        severity: "critical",
        summary: "The serving certificate was not renewed in time",
        description: "Run `interlock verify`, and look at the Secret interlock-certificate or at the Certificate of \
                      cert-manager.",
    },
    Alert {
        name: "InterlockPanics",
        expression: "sum(increase(interlock_panics_total[10m])) + sum(increase(interlock_controller_panics_total[10m])) > 0",
        lasts: "",
        severity: "warning",
        summary: "A request or a controller of Interlock panicked",
        description: "Keep the log of the replica, and report it.",
    },
    Alert {
        name: "InterlockPlanRunsLong",
        expression: "max(interlock_oldest_running_plan_age_seconds) > 3600",
        lasts: "5m",
        severity: "warning",
        summary: "A plan has been running for {{ $value | humanizeDuration }}",
        description: "Find it with `kubectl get instances -A`, and ask `interlock why instance/NAMESPACE/NAME` what it \
                      waits for.",
    },
    Alert {
        name: "InterlockPlanFailed",
        expression: "max(interlock_instances{state=\"failed\"}) > 0",
        lasts: "10m",
        severity: "warning",
        summary: "The last plan of {{ $value }} Instances failed",
        description: "Mend the cause, and try again: `interlock plan retry NAME -n NAMESPACE --reason WHY`.",
    },
    Alert {
        name: "InterlockInstancesDrifted",
        expression: "max(interlock_instances_drifted) > 0",
        lasts: "10m",
        severity: "warning",
        summary: "The spec of {{ $value }} Instances differs from what was carried out",
        description: "Look at the condition SpecDrift of each, which names the rule and what to do.",
    },
    Alert {
        name: "InterlockInstancesStalled",
        expression: "max by (reason) (interlock_instances_waiting{reason!~\"Waiting|Retrying\"}) > 0",
        lasts: "15m",
        severity: "warning",
        summary: "{{ $value }} Instances are stalled: {{ $labels.reason }}",
        description: "Look at the condition Stalled of each, which names what is missing.",
    },
    Alert {
        name: "InterlockDenialSpike",
        expression: "sum by (rule) (rate(interlock_admission_decisions_total{verdict=\"denied\", dry_run=\"false\"}[10m])) > 1",
        lasts: "10m",
        severity: "info",
        summary: "More than one write a second is refused by rule {{ $labels.rule }}",
        description: "Find the client in the audit log of the API server: it tries again and again.",
    },
    Alert {
        name: "InterlockWebhookSlow",
        expression: "histogram_quantile(0.99, sum by (le, webhook) (rate(interlock_admission_duration_seconds_bucket[10m]))) > 1",
        lasts: "10m",
        severity: "warning",
        summary: "One review of a hundred at {{ $labels.webhook }} takes longer than a second",
        description: "Look at the CPU of the replicas, and at interlock_refused_total.",
    },
];

/// The rule file of Prometheus.
pub fn rules() -> Value {
    let rule = |alert: &Alert| {
        let mut rule = json!({
            "alert": alert.name,
            "expr": alert.expression,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": alert.description},
        });
        if !alert.lasts.is_empty() {
            rule["for"] = json!(alert.lasts);
        }
        rule
    };
    json!({ "groups": [{ "name": "interlock", "rules": ALERTS.iter().map(rule).collect::<Vec<_>>() }] })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
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
        let dashboard: Value = serde_json::from_str(&dashboard::json()).unwrap();
        let panels = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| {
            panel["targets"].as_array().into_iter().flatten().filter_map(|target| target["expr"].as_str())
        });
        let panels: Vec<&str> = panels.collect();
        assert!(panels.len() >= 12, "{panels:?}");
        let examples = include_str!("../../docs/metrics.md").lines();
        let examples: Vec<&str> = examples.filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
        assert_eq!(examples.len(), 3, "{examples:?}");
        for expression in ALERTS.iter().map(|alert| alert.expression).chain(panels).chain(examples) {
            for name in names(expression) {
                let base = ["_total", "_bucket", "_info"].iter().find_map(|end| name.strip_suffix(end));
                assert!(types.contains(base.unwrap_or(name)), "{name} in {expression} is not exposed");
            }
        }
    }

    #[test]
    fn every_alert_says_what_to_do_and_is_named_once() {
        let names: BTreeSet<_> = ALERTS.iter().map(|alert| alert.name).collect();
        assert_eq!(names.len(), ALERTS.len());
        let page = include_str!("../../docs/metrics.md");
        for alert in &ALERTS {
            assert!(!alert.description.is_empty() && !alert.summary.is_empty(), "{}", alert.name);
            assert!(page.contains(&format!("| `{}` |", alert.name)), "docs/metrics.md has no {}", alert.name);
        }
    }

    /// Prometheus accepts the certificate by the name that is in it.
    #[test]
    fn the_server_name_is_that_of_the_certificate() {
        let options = InstallOptions { namespace: "guard".to_owned(), ..InstallOptions::default() };
        let monitor = service_monitor(&options);
        let server = &monitor["spec"]["endpoints"][0]["tlsConfig"]["serverName"];
        assert_eq!(server, "interlock.guard.svc");
    }
}
