//! The Grafana dashboard, as JSON.

use serde_json::{Value, json};

/// Panels side by side.
const COLUMNS: usize = 2;
const WIDTH: usize = 24 / COLUMNS;
const HEIGHT: usize = 7;

/// One panel: title, unit of Grafana, and its queries with their legends.
struct Panel {
    title: &'static str,
    unit: &'static str,
    queries: &'static [(&'static str, &'static str)],
}

const PANELS: [Panel; 12] = [
    Panel {
        title: "Instances by state",
        unit: "short",
        queries: &[("max by (state) (interlock_instances)", "{{state}}")],
    },
    Panel {
        title: "Age of the oldest running plan",
        unit: "s",
        queries: &[("max(interlock_oldest_running_plan_age_seconds)", "age")],
    },
    Panel {
        title: "Instances that wait, by reason; drifted",
        unit: "short",
        queries: &[
            ("max by (reason) (interlock_instances_waiting) > 0", "{{reason}}"),
            ("max(interlock_instances_drifted)", "drifted"),
        ],
    },
    Panel {
        title: "Runs of plans that ended",
        unit: "short",
        queries: &[(
            "sum by (result) (increase(interlock_plans_ended_total[$__rate_interval]))",
            "{{result}}",
        )],
    },
    Panel {
        title: "Refused writes, by rule",
        unit: "reqps",
        queries: &[(
            "sum by (rule) (rate(interlock_admission_decisions_total{verdict=\"denied\"}[$__rate_interval]))",
            "{{rule}}",
        )],
    },
    Panel {
        title: "Time of a review",
        unit: "s",
        queries: &[
            (
                "histogram_quantile(0.99, sum by (le, webhook) (rate(interlock_admission_duration_seconds_bucket[$__rate_interval])))",
                "p99 {{webhook}}",
            ),
            (
                "histogram_quantile(0.5, sum by (le, webhook) (rate(interlock_admission_duration_seconds_bucket[$__rate_interval])))",
                "p50 {{webhook}}",
            ),
        ],
    },
    Panel {
        title: "Guard objects as installed",
        unit: "bool",
        queries: &[("min by (kind, name) (interlock_guard_intact)", "{{kind}} {{name}}")],
    },
    Panel {
        title: "Leader",
        unit: "bool",
        queries: &[("leader_election_master_status{name=\"interlock\"}", "{{pod}}")],
    },
    Panel {
        title: "Reconciles, by result",
        unit: "ops",
        queries: &[(
            "sum by (controller, result) (rate(interlock_reconcile_total[$__rate_interval]))",
            "{{controller}} {{result}}",
        )],
    },
    Panel {
        title: "Objects that wait for a worker",
        unit: "short",
        queries: &[("max by (name) (workqueue_depth)", "{{name}}")],
    },
    Panel {
        title: "Calls to the API server",
        unit: "reqps",
        queries: &[(
            "sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]))",
            "{{method}} {{code}}",
        )],
    },
    Panel {
        title: "Serving certificate expires in",
        unit: "s",
        queries: &[("min(interlock_certificate_expiry_seconds)", "left")],
    },
];

/// The dashboard, to import or to mount.
pub fn json() -> String {
    let panels: Vec<Value> = PANELS.iter().enumerate().map(|(number, of)| panel(number, of)).collect();
    let dashboard = json!({
        "title": "Interlock",
        "uid": "interlock",
        "tags": ["interlock"],
        "editable": true,
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        }]},
        "panels": panels,
    });
    // A value of texts and numbers always serialises.
    format!("{}\n", serde_json::to_string_pretty(&dashboard).unwrap_or_default())
}

fn panel(number: usize, of: &Panel) -> Value {
    let datasource = json!({"type": "prometheus", "uid": "${datasource}"});
    let targets: Vec<Value> = ('A'..)
        .zip(of.queries)
        .map(|(letter, (query, legend))| {
            json!({"refId": letter, "expr": query, "legendFormat": legend, "datasource": datasource})
        })
        .collect();
    json!({
        "id": number + 1,
        "title": of.title,
        "type": "timeseries",
        "datasource": datasource,
        "gridPos": {
            "x": number % COLUMNS * WIDTH, "y": number / COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": of.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": targets,
    })
}
